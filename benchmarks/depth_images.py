"""How long does one depth image take, by Warp and by MuJoCo's own rays? Prints JSON; CPU time of one thread in ms.

Both cast the same rays of a 160 x 120 camera at OpenArm behind a table, in turns, so that they meet the same machine.
"""

import json
import statistics
import time
from collections.abc import Callable

import mujoco
import numpy as np
import torch

import simulo
from simulo.sensors import look_at


class Scene(simulo.Task):
    """OpenArm, a table, a cube, one camera."""

    observation_dim, action_dim = 1, 1

    def build(self, scene):
        scene.add(simulo.Robot("openarm"), at="/World/Robot")
        table = simulo.Prop.box(size=(0.6, 1.0, 0.25), fixed=True, pose=simulo.Pose((0.45, 0.0, 0.125)))
        scene.add(table, at="/World/Table")
        scene.add(simulo.Prop.box(size=(0.04,) * 3, mass=0.1, pose=simulo.Pose((0.3, -0.2, 0.27))), at="/World/Cube")
        self.camera = simulo.DepthCamera(look_at((0.8, -0.5, 0.9), (0.25, -0.1, 0.5)))
        scene.add(self.camera, at="/World/Camera")

    def apply_actions(self, actions): ...

    def get_observations(self):
        return torch.zeros(self.env.num_envs, 1)


def engine_rays(env: simulo.LearningEnv) -> Callable[[], None]:
    """A function that casts the camera's rays with MuJoCo."""
    camera, model, data = env.task.camera, env.backend.model, env.backend.data[0]
    rays = camera.rays.reshape(-1, 3).astype(float) @ camera.pose.rotation.T
    unit = (rays / np.linalg.norm(rays, axis=1, keepdims=True)).flatten()
    visible = np.array([1, 0, 0, 0, 0, 0], dtype=np.uint8)
    geoms, distance, eye = np.zeros(len(rays), dtype=np.int32), np.zeros(len(rays)), np.array(camera.pose.position)

    def cast() -> None:
        mujoco.mj_multiRay(model, data, eye, unit, visible, True, -1, geoms, distance, None, len(rays), 1e10)

    return cast


def main(rounds: int = 15) -> None:
    env = simulo.LearningEnv(Scene())
    env.reset(seed=0)
    contenders = {"warp": lambda: env.task.camera.depth([0]), "mujoco": engine_rays(env)}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, image in contenders.items():
            start = time.thread_time()
            image()
            times[name].append(1e3 * (time.thread_time() - start))
    hit = torch.isfinite(env.task.camera.depth([0])).float().mean()
    medians = {name: round(statistics.median(values), 2) for name, values in times.items()}
    print(json.dumps({"pixels": 160 * 120, "share_hit": round(float(hit), 3), "ms_per_image": medians}))


if __name__ == "__main__":
    main()
