"""Depth images against MuJoCo's own rays and against closed forms."""

import mujoco
import numpy as np
import pytest
import torch

import simulo
from simulo.errors import BackendError
from simulo.sensors import look_at


class Still(simulo.Task):
    """OpenArm, one prop of every shape, and two cameras."""

    observation_dim, action_dim = 1, 1

    def build(self, scene):
        self.robot = simulo.Robot("openarm", initial_joint_positions={"openarm_right_joint4": 1.5})
        scene.add(self.robot, at="/World/Robot")
        turn = (0.8, 0.2, -0.4, 0.4)
        corners = [[x, y, z] for x in (-0.03, 0.05) for y in (-0.02, 0.03) for z in (-0.05, 0.04)]
        table = simulo.Prop.box(size=(0.5, 0.9, 0.2), fixed=True, pose=simulo.Pose((0.45, 0.0, 0.1)))
        scene.add(table, at="/World/Table")
        self.props = {
            "Box": simulo.Prop.box(size=(0.04, 0.06, 0.08), mass=0.2, pose=simulo.Pose((0.4, 0.3, 0.35), turn)),
            "Ball": simulo.Prop.sphere(0.04, mass=0.2, pose=simulo.Pose((0.4, 0.15, 0.35))),
            "Can": simulo.Prop.cylinder(0.03, 0.1, mass=0.2, pose=simulo.Pose((0.4, 0.0, 0.35), turn)),
            "Pill": simulo.Prop.capsule(0.03, 0.08, mass=0.2, pose=simulo.Pose((0.4, -0.15, 0.35), turn)),
            "Stone": simulo.Prop.hull(corners, mass=0.2, pose=simulo.Pose((0.4, -0.3, 0.35), turn)),
        }
        for name, prop in self.props.items():
            scene.add(prop, at=f"/World/{name}")
        self.front = simulo.DepthCamera(look_at((1.2, -0.5, 0.9), (0.3, 0.0, 0.35)))
        self.above = simulo.DepthCamera(look_at((0.4, 0.001, 1.2), (0.4, 0.0, 0.3)), width=80, height=60, fovy=0.8)
        scene.add(self.front, at="/World/Front")
        scene.add(self.above, at="/World/Above")

    def apply_actions(self, actions): ...

    def get_observations(self):
        return torch.zeros(self.env.num_envs, 1)


@pytest.fixture(scope="module")
def env() -> simulo.LearningEnv:
    made = simulo.LearningEnv(Still(), num_envs=3)
    made.reset(seed=0)
    rng = np.random.default_rng(0)
    limits = made.task.robot.joint_limits[:16].numpy()
    made.task.robot.set_joint_positions(torch.tensor(rng.uniform(limits[:, 0], limits[:, 1], (3, 16))))
    return made


def engine_depth(env: simulo.LearningEnv, camera: simulo.DepthCamera, env_id: int) -> np.ndarray:
    rays = camera.rays.reshape(-1, 3).astype(float) @ camera.pose.rotation.T
    lengths = np.linalg.norm(rays, axis=1)
    geoms, distance = np.zeros(len(rays), dtype=np.int32), np.zeros(len(rays))
    visible = np.array([1, 0, 0, 0, 0, 0], dtype=np.uint8)
    unit, origin = (rays / lengths[:, None]).flatten(), np.array(camera.pose.position)
    arguments = (origin, unit, visible, True, -1, geoms, distance, None, len(rays), 1e10)
    mujoco.mj_multiRay(env.backend.model, env.backend.data[env_id], *arguments)
    return np.where(distance < 0, np.inf, distance / lengths).reshape(camera.height, camera.width)


@pytest.mark.parametrize("name", ["front", "above"])
def test_images_are_the_engines_own_rays(env, name):
    camera = getattr(env.task, name)
    images = camera.depth()
    assert images.shape == (3, camera.height, camera.width)
    assert images.dtype == torch.float32
    for env_id in range(3):
        truth, image = engine_depth(env, camera, env_id), images[env_id].numpy()
        # A ray that grazes an edge may fall on either side of it in single precision.
        both = np.isfinite(truth) & np.isfinite(image)
        assert (np.isfinite(truth) != np.isfinite(image)).mean() < 2e-3
        assert (np.abs(truth[both] - image[both]) > 1e-4).mean() < 2e-3
        assert both.mean() > 0.2


def test_every_shape_was_hit(env):
    """So that the comparison above covered each of them."""
    for name, prop in env.task.props.items():
        seen = env.task.above.depth([0])[0]
        prop.park([0])
        without = env.task.above.depth([0])[0]
        prop.reset([0])
        assert (without - seen > 0.01).sum() > 10, name
        assert (without >= seen - 1e-6).all(), name


def test_a_subset_of_environments_is_the_same_images(env):
    everything = env.task.front.depth()
    assert torch.equal(env.task.front.depth([2, 0]), everything[[2, 0]])
    assert env.task.front.depth([]).shape == (0, 120, 160)
    with pytest.raises(IndexError, match="num_envs=3"):
        env.task.front.depth([3])


def test_a_camera_sees_what_is_for_looking_at_and_not_the_engines_proxies(env):
    model = env.backend.model
    for geom in range(model.ngeom):
        touched = model.geom_contype[geom] != 0 or model.geom_conaffinity[geom] != 0
        on_robot = model.body(model.geom_bodyid[geom]).name.startswith("Robot/")
        assert (model.geom_group[geom] == 0) == (not (touched and on_robot))


class Wall(simulo.Task):
    """A plane wall 2 m ahead of a camera, and a ball half-way."""

    observation_dim, action_dim = 1, 1

    def build(self, scene):
        self.wall = simulo.Prop.box(size=(0.2, 9.0, 9.0), fixed=True, pose=simulo.Pose((2.1, 0.0, 0.0)))
        scene.add(self.wall, at="/World/Wall")
        scene.add(simulo.Prop.sphere(0.1, fixed=True, pose=simulo.Pose((1.0, 0.0, 0.0))), at="/World/Ball")
        self.camera = simulo.DepthCamera(look_at((0, 0, 0), (1, 0, 0)), width=81, height=61)
        scene.add(self.camera, at="/World/Camera")

    def apply_actions(self, actions): ...

    def get_observations(self):
        return torch.zeros(self.env.num_envs, 1)


def test_depth_is_along_the_optical_axis():
    env = simulo.LearningEnv(Wall())
    env.reset()
    image = env.task.camera.depth()[0]
    assert image[30, 40] == pytest.approx(0.9)
    assert torch.allclose(image[0], torch.tensor(2.0))  # a wall square to the axis is one depth, corners too
    env.task.wall.park()
    assert torch.isinf(env.task.camera.depth()[0, 0]).all()


def test_a_shape_that_rays_cannot_meet_is_refused_by_name():
    from simulo.backends.mujoco.depth import VisibleShapes

    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body name='egg'><geom type='ellipsoid' size='.1 .2 .3'/></body></worldbody></mujoco>"
    )
    with pytest.raises(BackendError, match=r"mjGEOM_ELLIPSOID of body 'egg'"):
        VisibleShapes(model)
