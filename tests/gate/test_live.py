"""What the gate's kernels read of a robot by themselves, against what torch reads of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import simulo
from simulo.collision import Closing, CollisionChecker, ConvexShape, LiveRobot, build_model
from simulo.errors import CollisionModelError
from simulo.gate import CollisionGate
from tests.gate.arm import openarm, rest
from tests.gate.tasks import JointTargets

CUBE = ConvexShape.box((0.02, 0.02, 0.02))
N = 5


def environment(**options) -> simulo.LearningEnv:
    gate = CollisionGate(openarm(), **{"world": "none", **options})
    env = simulo.LearningEnv(JointTargets({}), num_envs=N, gate=gate)
    env.reset(seed=0)
    return env


def by_torch(env: simulo.LearningEnv) -> torch.Tensor:
    """The rows of a verdict on what is commanded, as `check` comes by them."""
    session = env.gate._session
    commanded = env.task.robot.commanded_chunk()
    return session.check(commanded, session.body.base_pose(), None, None, True, False).raw.block


def by_kernels(env: simulo.LearningEnv) -> torch.Tensor:
    found = env.gate._session.check_step()
    assert found is not None
    verdict, all_clear = found
    assert all_clear == bool(verdict.clear.all())
    return verdict.raw.block


def command(env: simulo.LearningEnv, seed: int) -> None:
    """Targets all over the place, some beyond the limits, in one environment not finite."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.as_tensor(rest(), dtype=torch.float32) + 1.2 * torch.randn(N, 16, generator=generator)
    q[seed % N, seed % 16] = (torch.nan, torch.inf, -torch.inf)[seed % 3]
    env.task.robot.set_joint_position_target(q)


@pytest.mark.parametrize("motion_check", [False, True])
def test_the_kernels_judge_what_torch_judges_bit_for_bit(motion_check: bool):
    env = environment(motion_check=motion_check)
    kinds = set()
    for seed in range(12):
        command(env, seed)
        rows = by_kernels(env)
        assert torch.equal(rows, by_torch(env))
        kinds |= set(rows[0].tolist())
    assert {0, 1, 4} <= kinds, "clear, not finite and the robot itself: the draws meet them all"


def test_a_closed_hand_and_a_held_object_are_posed_as_measured_too():
    env = environment()
    start = torch.as_tensor(rest(), dtype=torch.float32).repeat(N, 1)
    start[:, 15] = -0.7854
    for _ in range(40):
        env.task.gripper_commands = torch.tensor([-1.0, 1.0, 1.0, -1.0, 1.0])
        env.step(start)
    assert env.task.gripper.state.tolist() == [-1, 1, 1, -1, 1]
    env.gate.attach("left", CUBE, simulo.Pose((0.0, 0.0, 0.1)), env_ids=[2, 3])
    rows = by_kernels(env)
    active = env.gate._session.checker._query.measured_active[:, :2]
    hands = [gripper.name for gripper in env.gate.model.grippers]
    assert active[:, hands.index("right")].tolist() == [0, 1, 1, 0, 1]
    assert active[:, hands.index("left")].tolist() == [0, 0, 1, 1, 0]
    assert torch.equal(rows, by_torch(env))


def test_an_actuator_that_joins_later_is_read_too():
    env = environment()
    by_kernels(env)
    left = simulo.ParallelGripperActuator(
        robot=env.task.robot,
        finger_joints="openarm_left_finger_joint.*",
        open_width=0.7854,
        position_tolerance=0.02,
        velocity_tolerance=0.1,
    )
    for _ in range(40):
        left.set_command(1)
        env.step(env.task.robot.joint_position_targets[:, :16].clone())
        left.update(env.dt)
    assert left.state.tolist() == [1] * N
    by_kernels(env)
    hands = [gripper.name for gripper in env.gate.model.grippers]
    assert env.gate._session.checker._query.measured_active[:, hands.index("left")].tolist() == [1] * N


def test_more_than_positions_goes_through_torch():
    env = environment(horizon=2)
    assert env.gate._session.check_step() is not None
    env.task.robot.set_joint_position_chunk(torch.as_tensor(rest(), dtype=torch.float32).repeat(2, 1))
    assert env.gate._session.check_step() is None


def test_a_snapshot_outlives_the_next_check():
    env = environment()
    command(env, 0)
    first, _ = env.gate._session.check_step()
    before = first.raw.block.clone(), first.unchecked_motion(1)
    command(env, 1)
    by_kernels(env)
    assert torch.equal(first.raw.block, before[0]) and first.unchecked_motion(1) == before[1]


MISFITS = {
    "targets": lambda robot: {"targets": robot.targets[:, :3]},
    "limits": lambda robot: {"limits": robot.limits.T},
    "positions": lambda robot: {"positions": robot.positions[:1]},
    "integers": lambda robot: {"positions": robot.positions.long()},
    "columns": lambda robot: {"columns": robot.columns + 100},
    "holding": lambda robot: {"holding": robot.holding.float()},
    "closing": lambda robot: {"closing": (Closing(7, torch.zeros(2, dtype=torch.int32), 1),)},
    "spoiled": lambda robot: {"spoiled": robot.spoiled[:1]},
    "base_pose": lambda robot: {"base_pose": robot.base_pose[:, :3]},
    "map_status": lambda robot: {"map_status": robot.map_status.long()},
}


@pytest.fixture(scope="module")
def checker() -> CollisionChecker:
    return CollisionChecker(build_model(openarm()), 2)


@pytest.mark.parametrize("name", MISFITS)
def test_a_robot_that_does_not_fit_is_refused(name: str, checker: CollisionChecker):
    robot = LiveRobot(
        targets=torch.zeros(2, 16),
        limits=torch.zeros(16, 2),
        positions=torch.zeros(2, 20, dtype=torch.float64),
        columns=torch.arange(16),
        holding=torch.zeros(2, 2, dtype=torch.bool),
        closing=(),
        spoiled=torch.zeros(2, dtype=torch.bool),
        base_pose=torch.tensor([[0.0, 0, 0, 1, 0, 0, 0]]).repeat(2, 1),
        map_status=torch.zeros(2, dtype=torch.int8),
    )
    checker.read_live(robot)
    assert checker.check_live()[0].clear.shape == (2,)
    with pytest.raises(CollisionModelError):
        checker.read_live(replace(robot, **MISFITS[name](robot)))
