"""What a panel of gates remembers of a hand, which decides what of the engine's contacts was allowed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import simulo
from simulo.evaluation.panel import JudgePanel
from simulo.evaluation.records import JudgeName
from simulo.gate import CollisionGate, Region
from simulo.pose import Pose
from tests.gate.arm import openarm, poses, rest
from tests.gate.tasks import JointTargets

HAND = Pose.from_matrix(poses(rest())["openarm_right_ee_base_link"])
CUBE = simulo.Prop.box((0.03, 0.03, 0.03), fixed=True, pose=Pose((3.0, 0.0, 0.0)))


@pytest.fixture(scope="module")
def panel() -> JudgePanel:
    """A board under the right hand, a post on it, and a panel of one gate; no environment step takes the hand away."""
    below = np.array(HAND.position) - (0.0, 0.0, 0.30)
    props = {
        "Board": simulo.Prop.box((0.20, 0.20, 0.02), fixed=True, pose=Pose(tuple(below - (0.0, 0.0, 0.025)))),
        "Post": simulo.Prop.box((0.02, 0.02, 0.06), fixed=True, pose=Pose(tuple(np.add(below, (0.06, 0.0, 0.015))))),
        "Cube": CUBE,
    }
    gates = {JudgeName("mimic", "primitives", 0.01): CollisionGate(openarm(), "report", world="primitives")}
    panel = JudgePanel(gates, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    env = simulo.LearningEnv(JointTargets(props), num_envs=2, gate=panel)
    env.reset(seed=0)
    return panel


def hang(panel: JudgePanel, lift: float, support: Region | None) -> None:
    """Environment 0's hand has the cube with its lower face `lift` [m] above the board."""
    panel.attach("right", CUBE.shape, Pose((0.0, 0.0, -0.30 + lift)), support=support, env_ids=[0], object="Cube")


def step(panel: JudgePanel) -> None:
    panel.env.step(torch.tensor(rest(), dtype=torch.float32).repeat(2, 1))


def test_a_held_object_may_touch_its_support_alone_until_it_has_been_lifted_off(panel: JudgePanel) -> None:
    """A cell diagonal and a margin are 22.3 mm."""
    top = np.array(HAND.position) - (0.0, 0.0, 0.315)
    support = Region(Pose(tuple(top - (0.0, 0.0, 0.010))), (0.22, 0.22, 0.03))  # 5 mm around the board
    hang(panel, 0.001, support)
    assert panel.supports(0) == ("Board",), "the post only stands in the region"
    assert panel.supports(1) == ()
    step(panel)
    hang(panel, 0.020, None)
    step(panel)
    assert panel.supports(0) == ("Board",), "15 mm above the region"
    hang(panel, 0.035, None)
    step(panel)
    assert panel.supports(0) == ()
    hang(panel, 0.001, None)
    step(panel)
    assert panel.supports(0) == (), "put down again without a declaration"
    panel.declare_place(support, 1.0, "right", env_ids=[0])
    assert panel.supports(0) == ("Board",)
    panel.detach("right", env_ids=[0])
    assert panel.supports(0) == ()
