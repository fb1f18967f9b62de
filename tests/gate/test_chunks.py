"""Tasks that command chunks: every row is judged before any is applied, and joints whose way nobody knows are told."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import simulo
from simulo.errors import GateError
from simulo.gate import CollisionGate
from tests.gate.arm import openarm, rest
from tests.gate.tasks import JointTargets
from tests.gate.test_in_environment import NEAR, REACH, action, targets, wall
from tests.sdk.fakes import attached, two_finger_description

ROWS = 3


class Chunks(JointTargets):
    """Actions are ROWS rows of the OpenArm's 16 joint targets; only the first is commanded."""

    action_dim = ROWS * 16

    def apply_actions(self, actions: torch.Tensor) -> None:
        self.robot.set_joint_position_chunk(actions.reshape(-1, ROWS, 16))


def environment(**options) -> simulo.LearningEnv:
    gate = CollisionGate(openarm(), **{"world": "primitives", "horizon": ROWS, **options})
    env = simulo.LearningEnv(Chunks({"Wall": wall()}), num_envs=2, gate=gate)
    env.reset(seed=0)
    return env


def chunks(*entries: list[np.ndarray]) -> torch.Tensor:
    return torch.cat([action(*rows).reshape(1, -1) for rows in entries])


def test_a_chunk_with_an_offending_row_is_refused_whole():
    env = environment()
    measured = env.task.robot.state.joint_positions[:, :16].clone()
    *_, info = env.step(chunks([NEAR, NEAR, REACH], [NEAR, NEAR, NEAR]))
    verdict = info["gate"]
    assert verdict.clear.tolist() == [False, True] and verdict.row.tolist() == [2, -1]
    assert verdict.describe(0).startswith("environment 0, row 2: refused (world): openarm_right_")
    assert torch.equal(targets(env)[0], measured[0]), "its first row is not applied either"
    assert torch.equal(targets(env)[1], action(NEAR)[0])
    *_, info = env.step(chunks([NEAR] * 3, [REACH] * 3))
    assert info["gate"].clear.tolist() == [True, False] and info["gate"].row.tolist() == [-1, 0]
    assert torch.equal(targets(env)[0], action(NEAR)[0])


def test_what_was_announced_is_forgotten_after_the_step():
    env = environment()
    env.step(chunks([NEAR, NEAR, REACH], [NEAR] * 3))
    env.task.apply_actions = lambda _: env.task.robot.set_joint_position_target(action(NEAR, NEAR))
    *_, info = env.step(torch.zeros(2, ROWS * 16))
    assert info["gate"].clear.all()


def test_a_chunk_longer_than_the_gate_looks_ahead_is_refused_by_name():
    env = environment(horizon=2)
    with pytest.raises(GateError, match=r"chunk of 3 rows, and this gate looks 2 ahead; .*horizon=3"):
        env.step(chunks([NEAR] * 3, [NEAR] * 3))


def test_without_a_gate_only_the_first_row_does_anything():
    ends = []
    for rows in ([NEAR, NEAR, NEAR], [NEAR, REACH, REACH]):
        env = simulo.LearningEnv(Chunks({"Wall": wall()}), num_envs=1)
        env.reset(seed=0)
        env.step(chunks(rows))
        ends.append(env.task.robot.state.joint_positions)
    assert torch.equal(*ends)


def test_with_the_motion_check_the_ways_between_rows_are_looked_at():
    env = environment(motion_check=True, on_stop="report")
    *_, info = env.step(chunks([rest(), NEAR, rest()], [NEAR, REACH, NEAR]))
    assert info["gate"].clear.tolist() == [True, False] and int(info["gate"].row[1]) == 1


def test_a_chunk_of_some_joints_leaves_the_others_as_commanded():
    robot, _ = attached(two_finger_description(coupled=True), 3)
    robot.set_joint_position_target([0.1, 0.01])
    robot.set_joint_position_chunk([[0.2], [0.3], [0.4]], joint_ids=[0], env_ids=[1])
    robot.set_joint_position_chunk([[0.02], [9.0]], joint_ids=[1], env_ids=[1, 2])
    chunk = robot.commanded_chunk()
    top = float(robot.joint_limits[1, 1])
    expected = torch.tensor(
        [[[0.1, 0.01]] * 3, [[0.2, 0.02], [0.3, top], [0.4, top]], [[0.1, 0.02], [0.1, top], [0.1, top]]]
    )
    assert torch.allclose(chunk, expected)
    assert torch.allclose(robot.joint_position_targets[1], torch.tensor([0.2, 0.02, 0.02]))
    robot.flush()
    assert robot.commanded_chunk().shape == (3, 1, 2)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("what", ["position", "velocity", "effort", "later row"])
def test_what_is_no_number_is_none_for_a_gate_whatever_the_limits(what: str, value: float):
    robot, _ = attached(two_finger_description(coupled=True), 3)
    robot._attached.articulation.check_mode = lambda mode, columns: None
    robot.set_joint_position_target([0.1, 0.01])
    command = {
        "position": robot.set_joint_position_target,
        "velocity": robot.set_joint_velocity_target,
        "effort": robot.set_joint_effort_target,
        "later row": lambda values, **of: robot.set_joint_position_chunk([[0.01], values], **of),
    }[what]
    command([value], joint_ids=[1], env_ids=[1])
    wrong = ~torch.isfinite(robot.commanded_chunk())
    assert wrong.any(dim=1).tolist() == [[False, False], [False, True], [False, False]]
    assert bool(wrong[1, -1, 1])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (torch.zeros(2), "is (H, K) or (M, H, K), got (2,)"),
        (torch.zeros(3, 4, 3), "for 2 joints"),
        (torch.zeros(0, 2), "got (0, 2)"),
        (torch.zeros(2, 4, 2), "the chunk has 2 environments and 3 are commanded"),
    ],
)
def test_chunks_of_another_shape_are_refused_and_nothing_is_written(values, said):
    robot, _ = attached(two_finger_description(coupled=True), 3)
    before = robot.joint_position_targets.clone()
    with pytest.raises(ValueError) as caught:
        robot.set_joint_position_chunk(values)
    assert said in str(caught.value)
    with pytest.raises(ValueError, match="'finger2' follows 'finger1'"):
        robot.set_joint_position_chunk(torch.zeros(2, 1), joint_ids=[2])
    assert torch.equal(robot.joint_position_targets, before) and robot.commanded_chunk().shape[1] == 1


def test_joints_under_effort_are_told_of():
    """The engine's servos take no effort; what the gate makes of a robot that does is seen on its commands alone."""
    env = environment()
    robot = env.task.robot
    robot._attached.articulation.check_mode = lambda mode, columns: None
    robot._attached.articulation.write_commands = lambda commands: None
    env.task.apply_actions = lambda _: robot.set_joint_effort_target([1.0], joint_ids=[3], env_ids=[1])
    *_, info = env.step(torch.zeros(2, ROWS * 16))
    name = openarm().joint_names[3]
    assert info["gate"].joints_by_effort(0) == () and info["gate"].joints_by_effort(1) == (name,)
    assert f"under effort, and judged where measured: {name}" in info["gate"].describe(1)
    assert "under effort" not in info["gate"].describe(0)
