"""Bad input at the doors a user comes through: a clear error, and nothing changed."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import simulo
from simulo.description.sources import resolve_model


class Wave(simulo.Task):
    """OpenArm alone; actions are its joint targets."""

    observation_dim = action_dim = 16

    def build(self, scene: simulo.Scene) -> None:
        self.robot = simulo.Robot(asset="openarm")
        scene.add(self.robot, at="/World/Robot")

    def apply_actions(self, actions: torch.Tensor) -> None:
        self.robot.set_joint_position_target(actions)

    def get_observations(self) -> torch.Tensor:
        return self.robot.state.joint_positions[:, :16]


@pytest.fixture(scope="module")
def env() -> Iterator[simulo.LearningEnv]:
    env = simulo.LearningEnv(Wave(), num_envs=3)
    env.reset(seed=0)
    yield env
    env.close()


def _everything(env: simulo.LearningEnv) -> list[torch.Tensor]:
    robot = env.scene.robots["Robot"]
    state = robot.state
    return [state.joint_positions, state.joint_velocities, state.link_poses, robot.joint_position_targets.clone()]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_an_action_that_is_not_finite(env: simulo.LearningEnv, value: float) -> None:
    before, steps = _everything(env), env.step_count
    actions = torch.zeros(3, 16)
    actions[1, 7] = value
    with pytest.raises(ValueError, match=r"not finite in environments \[1\]; nothing was applied"):
        env.step(actions)
    assert env.step_count == steps
    assert all(torch.equal(a, b) for a, b in zip(before, _everything(env), strict=True))


@pytest.mark.parametrize("shape", [(3, 15), (3, 17), (2, 16), (16,), (1, 3, 16)])
def test_an_action_of_the_wrong_width(env: simulo.LearningEnv, shape: tuple[int, ...]) -> None:
    before = _everything(env)
    with pytest.raises(ValueError, match=r"\(num_envs, action_dim\) = \(3, 16\), got .*; nothing was applied"):
        env.step(torch.ones(shape))
    assert all(torch.equal(a, b) for a, b in zip(before, _everything(env), strict=True))


@pytest.mark.parametrize("door", ["load_description", "Robot", "CollisionGate"])
def test_an_unknown_robot(door: str) -> None:
    with pytest.raises(simulo.DescriptionError, match=r"unknown robot 'openram': did you mean 'openarm'\?"):
        getattr(simulo, door)("openram")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_cuda_without_a_gpu() -> None:
    with pytest.raises(simulo.BackendError, match=r"'cuda:0'.*0 CUDA devices.*device='cpu'"):
        simulo.LearningEnv(Wave(), device="cuda:0")
    with pytest.raises(simulo.BackendError, match=r"'cuda:0'.*0 CUDA devices.*device='cpu'"):
        simulo.LearningEnv(Wave(), gate=simulo.CollisionGate("openarm", world="none", device="cuda:0"))


def test_a_mesh_missing_at_lowering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from simulo.lowering import lower_robot

    source = simulo.load_description("openarm").source
    installed = resolve_model(source).parents[1]
    shutil.copytree(installed, tmp_path / "openarm_mujoco" / "v2")
    mesh = tmp_path / "openarm_mujoco" / "v2" / "assets" / "collision" / "finger_outer_part_02_left.stl"
    mesh.unlink()
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    with pytest.raises(
        simulo.SimuloError, match=r"finger_outer_part_02_left\.stl of link openarm_left_ee_outer_finger"
    ):
        lower_robot("openarm")
