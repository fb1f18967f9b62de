"""The motion check of a gate: where a way begins, what a verdict says of it, and what one without it leaves open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import simulo
from simulo.collision import ConvexShape, Primitives
from simulo.errors import GateError
from simulo.gate import CollisionGate
from simulo.pose import Pose
from tests.gate.arm import openarm, placed, poses, rest
from tests.gate.tasks import JointTargets

ELBOW = "openarm_right_joint4"
COLUMN = openarm().joint_names.index(ELBOW)
FAR = rest()
FAR[COLUMN] += 1.2
HALF = rest()
HALF[COLUMN] += 0.6
HAND = "openarm_right_ee_base_link"


POST = tuple(map(float, placed(HAND, HALF).centroid))
"""The middle of the hand, half way from rest to FAR: a thin post stands there [m]."""


def post() -> simulo.Prop:
    return simulo.Prop.box(size=(0.01, 0.01, 0.01), fixed=True, pose=Pose(POST))


def environment(**options) -> simulo.LearningEnv:
    gate = CollisionGate(openarm(), world="primitives", **options)
    env = simulo.LearningEnv(JointTargets({"Post": post()}), num_envs=2, gate=gate)
    env.reset(seed=0)
    return env


def action(*rows: np.ndarray) -> torch.Tensor:
    return torch.tensor(np.stack(rows), dtype=torch.float32)


def test_a_jump_over_an_obstacle_is_refused_only_with_the_motion_check():
    plain, moving = environment(), environment(motion_check=True)
    *_, info = plain.step(action(FAR, rest()))
    assert info["gate"].clear.all()
    *_, info = moving.step(action(FAR, rest()))
    verdict = info["gate"]
    assert verdict.clear.tolist() == [False, True] and verdict.kind_name(0) == "world"
    assert verdict.parties(0)[1] == "Post" and 0.1 < float(verdict.between[0]) < 0.6
    text = verdict.describe(0)
    assert f"{100 * float(verdict.between[0]):.0f} % of the way to row 0: refused (world): openarm_right_" in text
    assert torch.equal(moving.task.robot.joint_position_targets[0, :16], action(rest())[0])  # held
    assert "all along the way, straight in joint space" in verdict.describe(1)
    assert verdict.unchecked_motion(1) == 0.0


def test_the_first_way_begins_where_the_robot_is_measured_and_not_where_it_was_sent():
    """Sent past the post while it is not there, the arm is on its way when the post stands behind it."""
    env = environment(motion_check=True)
    gate, robot = env.gate, env.task.robot
    candidate = action(FAR)
    assert not gate.check(candidate, env_ids=[0]).clear[0]
    robot.set_joint_positions(torch.tensor(FAR, dtype=torch.float32), env_ids=[0])
    assert gate.check(candidate, env_ids=[0]).clear[0]
    assert not gate.check(action(rest()), env_ids=[0]).clear[0]
    assert gate.check(action(rest()), env_ids=[1]).clear[0]


def test_clear_without_the_check_says_how_much_motion_nobody_looked_at():
    """At least as far as the fastest point of the hand's triangles goes, and not much further."""
    gate = CollisionGate(openarm(), world="none", device="cpu")
    gate.set_configuration(rest())
    step = rest()
    step[COLUMN] += 0.05
    verdict = gate.check(step)
    tips = [placed(f"openarm_right_ee_{f}_finger", q).vertices for q in (rest(), step) for f in ("inner", "outer")]
    moved = max(np.linalg.norm(tips[i + 2] - tips[i], axis=1).max() for i in range(2))
    assert moved <= verdict.unchecked_motion(0) < 1.5 * moved
    assert f"is not checked, up to {1000 * verdict.unchecked_motion(0):.1f} mm of it" in verdict.describe(0)
    gate.attach("right", ConvexShape.sphere(0.05), Pose((0.0, 0.0, -0.5)))
    far = [poses(q)[HAND] @ [0.0, 0.0, -0.55, 1.0] for q in (rest(), step)]
    assert gate.check(step).unchecked_motion(0) >= np.linalg.norm(far[1] - far[0]) > moved


def test_a_gate_that_does_not_know_where_its_robot_is_says_so_or_refuses():
    lone = CollisionGate(openarm(), world="none", device="cpu")
    assert "nor how the first one is reached" in lone.check(rest()).describe(0)
    assert lone.check(rest()).unchecked_motion(0) == 0.0
    moving = CollisionGate(openarm(), world="none", motion_check=True, device="cpu")
    with pytest.raises(GateError, match="set_configuration"):
        moving.check(rest())
    moving.set_configuration(rest())
    assert moving.check(FAR).clear[0]
    assert "first one" not in moving.check(FAR).describe(0)


def test_rows_of_a_chunk_are_checked_from_one_to_the_next():
    gate = CollisionGate(openarm(), world="primitives", motion_check=True, horizon=3, device="cpu")
    at = torch.tensor([[[*POST, 1.0, 0.0, 0.0, 0.0]]])
    gate.set_world(Primitives.of(["Post"], [ConvexShape.box((0.01, 0.01, 0.01))], at))
    gate.set_configuration(rest())
    chunk = np.stack([rest(), FAR, FAR])
    verdict = gate.check(chunk[None])
    assert int(verdict.row[0]) == 1 and float(verdict.between[0]) > 0.0
    assert "% of the way to row 1" in verdict.describe(0)


def test_a_base_that_floats_is_said_to_be_judged_where_it_is():
    floating = replace(openarm(), floating_base=True)
    assert "the base floats, and is judged where it is measured" in (
        CollisionGate(floating, world="none", device="cpu").check(rest()).describe(0)
    )
    assert "floats" not in CollisionGate(openarm(), world="none", device="cpu").check(rest()).describe(0)
