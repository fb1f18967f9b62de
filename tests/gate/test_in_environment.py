"""The gate between a task and MuJoCo: what physics gets to see, and what it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import simulo
from simulo.errors import GateError
from simulo.gate import CollisionGate
from simulo.pose import Pose
from tests.gate.arm import openarm, poses, rest
from tests.gate.tasks import JointTargets

REACH = rest(right_joint4=rest()[openarm().joint_names.index("openarm_right_joint4")] + 0.5)
"""A pose with the right elbow bent, whose hand stands in a wall that the tests put there."""


def wall() -> simulo.Prop:
    there, here = (poses(q)["openarm_right_ee_base_link"][:3, 3] for q in (REACH, rest()))
    beyond = there + 0.12 * (there - here) / np.linalg.norm(there - here)
    return simulo.Prop.box(size=(0.2, 0.2, 0.2), fixed=True, pose=Pose(tuple(beyond)))


def environment(num_envs: int = 2, **options) -> simulo.LearningEnv:
    gate = CollisionGate(openarm(), **{"world": "primitives", **options})
    env = simulo.LearningEnv(JointTargets({"Wall": wall()}), num_envs=num_envs, gate=gate)
    env.reset(seed=0)
    return env


def targets(env: simulo.LearningEnv) -> torch.Tensor:
    return env.task.robot.joint_position_targets[:, :16].clone()


def action(*rows: np.ndarray) -> torch.Tensor:
    return torch.tensor(np.stack(rows), dtype=torch.float32)


NEAR = rest(left_joint4=rest()[openarm().joint_names.index("openarm_left_joint4")] + 0.05)


def test_hold_keeps_the_measured_configuration_before_anything_was_accepted():
    env = environment()
    measured = env.task.robot.state.joint_positions[:, :16].clone()
    *_, info = env.step(action(REACH, NEAR))
    verdict = info["gate"]
    assert verdict.clear.tolist() == [False, True] and verdict.kind_name(0) == "world"
    assert "Wall" in verdict.parties(0) and verdict.parties(0)[0].startswith("openarm_right_")
    assert torch.equal(targets(env)[0], measured[0])
    assert torch.equal(targets(env)[1], action(NEAR)[0])
    assert not info["stop"]


def test_hold_replaces_the_whole_row_by_the_last_accepted_targets():
    env = environment()
    moved = NEAR.copy()
    moved[15] = -0.3
    env.step(action(moved, moved))
    accepted = targets(env)
    refused = REACH.copy()
    refused[15] = -0.1  # the fingers are held back too
    env.step(action(refused, NEAR))
    assert torch.equal(targets(env)[0], accepted[0])
    assert torch.equal(targets(env)[1], action(NEAR)[0])


def test_a_refused_close_command_is_taken_back_with_the_targets():
    env = environment()
    start = np.array(rest())
    start[15] = -0.7854
    env.step(action(start, start))
    for _ in range(40):
        env.task.gripper_commands[:] = 1.0
        env.step(action(REACH, start))  # environment 0 is refused each time
    states = env.task.gripper.state.tolist()
    assert states[0] == -1 and states[1] in (0, 1)
    assert float(env.task.robot.state.joint_positions[0, 15]) < -0.7
    assert float(env.task.robot.state.joint_positions[1, 15]) > -0.2


def test_terminate_ends_the_episode_with_the_reason():
    env = environment(on_stop="terminate")
    _, _, terminated, truncated, info = env.step(action(REACH, NEAR))
    assert terminated.tolist() == [True, False] and not truncated.any()
    assert info["stop"][0].startswith("gate: environment 0: refused (world): openarm_right_") and len(info["stop"]) == 1


def test_report_lets_everything_through():
    env = environment(on_stop="report")
    *_, info = env.step(action(REACH, NEAR))
    assert info["gate"].counts == {"clear": 1, "world": 1}
    assert torch.equal(targets(env), action(REACH, NEAR))


@pytest.mark.parametrize("audited", [False, True], ids=["kernels read it", "torch reads it"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("on_stop", ["hold", "report"])
def test_a_target_that_is_not_finite_stops_its_environment_and_no_other(on_stop, value, audited, tmp_path):
    """Infinity, too, which a clamp to the limits would make a target of."""
    bad, good = environment(3, on_stop=on_stop, audit=tmp_path if audited else None), environment(3, on_stop=on_stop)
    poisoned = action(NEAR, NEAR, NEAR)
    poisoned[1, 3] = value
    bad.task.apply_actions = lambda _: bad.task.robot.joint_position_targets[:, :16].copy_(poisoned)
    *_, info = bad.step(action(NEAR, NEAR, NEAR))
    good.step(action(NEAR, NEAR, NEAR))
    assert [info["gate"].kind_name(i) for i in range(3)] == ["clear", "non_finite", "clear"]
    assert torch.isfinite(targets(bad)).all()
    for i in (0, 2):
        assert torch.equal(bad.task.robot.state.joint_positions[i], good.task.robot.state.joint_positions[i])
        assert torch.equal(info["gate"].raw.block[:, i], info["gate"].raw.block[:, 0])


def test_check_touches_nothing():
    env = environment()
    before = targets(env)
    verdict = env.gate.check(np.stack([REACH, NEAR]))
    assert verdict.clear.tolist() == [False, True]
    many = env.gate.check(np.stack([REACH, NEAR, REACH]), env_ids=[1, 1, 0])
    assert many.clear.tolist() == [False, True, False] and many.env_ids.tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match="env_ids"):
        env.gate.check(np.stack([REACH, NEAR, REACH]))
    with pytest.raises(IndexError, match="num_envs=2"):
        env.gate.check(REACH, env_ids=[4])
    assert torch.equal(targets(env), before)


@pytest.mark.parametrize("gate", ["openarm", True, CollisionGate])
def test_what_is_no_gate_is_refused_by_name(gate):
    with pytest.raises(TypeError, match=r"gate must be a simulo\.CollisionGate\(robot\) or None"):
        simulo.LearningEnv(JointTargets({}), gate=gate)


def test_a_start_in_collision_raises():
    env = environment()
    env.task.robot._initial[:] = action(REACH)[0]
    with pytest.raises(GateError, match=r"start in a configuration that the gate refuses: .*Wall"):
        env.reset(seed=0)


def test_a_model_that_is_not_the_simulators_robot_is_refused():
    joints = list(openarm().joints)
    shifted = joints[3].origin.position
    joints[3] = replace(
        joints[3], origin=Pose((shifted[0], shifted[1], shifted[2] + 0.0015), joints[3].origin.orientation_wxyz)
    )
    wrong = replace(openarm(), joints=tuple(joints))
    with pytest.raises(GateError, match=r"1\.5 mm from where the simulator has it"):
        simulo.LearningEnv(JointTargets({}), num_envs=1, gate=CollisionGate(wrong, world="none"))
    other = replace(openarm(), digest="of another file")
    with pytest.raises(GateError, match="exactly one robot of the very same description"):
        simulo.LearningEnv(JointTargets({}), num_envs=1, gate=CollisionGate(other, world="none"))


def test_a_gate_that_was_promised_a_map_and_got_none_holds():
    env = environment(world="voxels")
    measured = env.task.robot.state.joint_positions[:, :16].clone()
    *_, info = env.step(action(NEAR, NEAR))
    assert info["gate"].counts == {"no_map": 2}
    assert torch.equal(targets(env), measured)
