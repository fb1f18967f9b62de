"""One long bar in both hands of the OpenArm: it meets neither itself nor its holders, and everything else."""

from __future__ import annotations

import coal
import numpy as np
import pytest
import torch

from simulo.collision import ConvexShape, Kind, Primitives, VoxelGrid
from simulo.gate import CollisionGate
from simulo.gate.audit import take_record
from simulo.gate.replay import replay
from simulo.pose import Pose
from tests.gate.arm import mesh_gap, openarm, placed, poses, rest

OUT = rest(left_joint4=1.5, right_joint4=1.5, left_finger_joint1=0.3, right_finger_joint1=-0.3)
"""Both forearms forward, the hands a third of a metre apart."""
SIZE = (0.03, 0.40, 0.03)
BAR = ConvexShape.box(SIZE)
HANDS = ("left", "right")


def other(hand: str) -> str:
    return HANDS[hand == "left"]


def bar_pose() -> np.ndarray:
    """Through both hands, between their pads: 4 x 4, in the base frame."""
    pads = [(poses(OUT)[p.link] @ [*p.position, 1.0])[:3] for hand in HANDS for p in openarm().gripper(hand).pad_points]
    pose = np.eye(4)
    pose[:3, 3] = np.mean(pads, axis=0)
    return pose


def grip(hand: str) -> Pose:
    """The bar in the hand's frame."""
    return Pose.from_matrix(np.linalg.inv(poses(OUT)[f"openarm_{hand}_ee_base_link"]) @ bar_pose())


def listed(**things: tuple[ConvexShape, np.ndarray]) -> Primitives:
    rows = [Pose.from_matrix(matrix) for _, matrix in things.values()]
    pose = torch.tensor([[[*p.position, *p.orientation_wxyz] for p in rows]], dtype=torch.float32)
    return Primitives.of(list(things), [shape for shape, _ in things.values()], pose)


def moved(**joints: float) -> np.ndarray:
    q = OUT.copy()
    for name, value in joints.items():
        q[openarm().joint_names.index(f"openarm_{name}")] = value
    return q


@pytest.fixture
def gate() -> CollisionGate:
    gate = CollisionGate(openarm(), world="primitives", device="cpu")
    gate.set_configuration(OUT)
    gate.set_world(listed(Bar=(BAR, bar_pose())))
    return gate


def hold(gate: CollisionGate, *hands: str) -> None:
    for hand in hands:
        gate.attach(hand, BAR, grip(hand), object="Bar")


@pytest.mark.parametrize("first", HANDS)
def test_both_hold_it_and_let_go_one_after_the_other(gate: CollisionGate, first: str) -> None:
    second = other(first)
    assert gate.check(OUT).kind_name(0) == "world", "its fingers are in the bar"
    hold(gate, first)
    alone = gate.check(OUT)
    assert alone.kind_name(0) == "payload" and f"openarm_{second}_ee" in " ".join(alone.parties(0))
    hold(gate, second)
    assert gate.check(OUT).clear[0]
    gate.detach(first)
    verdict = gate.check(OUT)
    assert verdict.kind_name(0) == "payload", "what let go of it is a stranger to it"
    assert (
        verdict.parties(0)[0].startswith(f"Bar in the {second} hand") and f"openarm_{first}_ee" in verdict.parties(0)[1]
    )
    away = moved(**{f"{first}_joint4": 0.0})
    assert gate.check(away).clear[0], "the bar is no obstacle while the other hand has it"
    hold(gate, first)
    assert gate.check(OUT).clear[0], "taken again"
    gate.detach(first)
    gate.detach(second)
    assert gate.check(away).kind_name(0) == "world" and "Bar" in gate.check(away).parties(0)
    world = gate._session.world._primitives
    np.testing.assert_allclose(world.pose[0, 0, :3], bar_pose()[:3, 3], atol=1e-6)


def test_held_by_both_it_meets_all_but_their_fingers(gate: CollisionGate) -> None:
    """Wherever either hand takes it: elbows, torso, posts, and what another hand holds."""
    hold(gate, *HANDS)
    rng = np.random.default_rng(5)
    limits = np.array([(joint.lower, joint.upper) for joint in openarm().joints])
    q = np.clip(OUT + rng.uniform(-1.2, 1.2, (4000, 16)), limits[:, 0], limits[:, 1])
    q[:, [7, 15]] = OUT[[7, 15]]
    verdict = gate.check(q)
    hits: dict[tuple[str, str], int] = {}
    for i in np.flatnonzero(verdict.kind.numpy() == Kind.PAYLOAD):
        hits.setdefault(verdict.parties(i), i)
    met = {link for _, link in hits}
    assert {who.split()[3] for who, _ in hits} == set(HANDS)
    assert any("_link" in link and link.startswith("openarm_left") for link in met)
    assert any("_link" in link and link.startswith("openarm_right") for link in met)
    assert not [link for link in met if link.endswith("finger") or "Bar" in link], met
    for (who, link), i in hits.items():
        at = poses(q[i])[f"openarm_{who.split()[3]}_ee_base_link"] @ grip(who.split()[3]).matrix
        assert mesh_gap(placed(link, q[i]), coal.Box(*SIZE), at) < 0.06, "no farther than hulls overhang"
    post = bar_pose() @ Pose((0.0, 0.0, SIZE[2])).matrix
    gate.set_world(listed(Bar=(BAR, bar_pose()), Post=(ConvexShape.sphere(0.02), post)))
    gate.detach("left")
    hold(gate, "left")
    assert gate.check(OUT).parties(0) == ("Bar in the left hand", "Post")


def test_another_thing_in_the_other_hand_is_met(gate: CollisionGate) -> None:
    """Of another name, or of none: two things that touch."""
    for name in ("", "Ball"):
        gate.set_world(listed(Bar=(BAR, bar_pose()), Ball=(ConvexShape.sphere(0.01), np.eye(4))))
        gate.attach("left", BAR, grip("left"), object="Bar", touch_links=_fingers("right"))
        gate.attach("right", ConvexShape.sphere(0.01), grip("right"), object=name, touch_links=_fingers("left"))
        verdict = gate.check(OUT)
        assert verdict.kind_name(0) == "payload" and "in the right hand" in verdict.parties(0)[1]
        gate.detach("left")
        gate.detach("right")


def _fingers(hand: str) -> list[str]:
    return [f"openarm_{hand}_ee_{which}_finger" for which in ("inner", "outer")]


def test_on_the_way_and_in_a_record_of_a_stop_they_are_one_too() -> None:
    gate = CollisionGate(openarm(), world="primitives", device="cpu", motion_check=True)
    gate.set_configuration(OUT)
    gate.set_world(listed(Bar=(BAR, bar_pose()), Post=(ConvexShape.sphere(0.02), np.eye(4))))
    hold(gate, *HANDS)
    assert gate.check(moved(left_joint1=0.01, right_joint1=-0.01)).clear[0]
    apart = torch.tensor(moved(left_joint1=0.6, left_joint4=2.2)[None], dtype=torch.float32)
    assert gate.check(apart).kind_name(0) == "payload"
    for q in (apart, torch.tensor(OUT[None], dtype=torch.float32)):
        verdict = gate.check(q)
        again = replay(take_record(gate._session, gate.settings, verdict, q, 0), openarm())
        assert again.same and again.kind == verdict.kind_name(0)
    assert verdict.clear[0], "or the second says nothing of what was exempt"


@pytest.mark.parametrize("first", HANDS)
def test_its_cells_come_back_with_the_last_hand(first: str) -> None:
    cell, corner = 0.01, bar_pose()[:3, 3] - 0.3
    centres = (np.stack(np.meshgrid(*[np.arange(60)] * 3, indexing="ij"), -1) + 0.5) * cell + corner
    filled = (np.abs(centres - bar_pose()[:3, 3]) <= 0.5 * np.array(SIZE) + 0.5 * cell).all(-1)
    where = torch.tensor(corner, dtype=torch.float32)[None]
    grid = VoxelGrid.from_cells(torch.tensor(filled)[None], cell, where, torch.tensor([[1.0, 0, 0, 0]]))
    gate = CollisionGate(openarm(), device="cpu", max_age=float("inf"))
    gate.set_configuration(OUT)
    gate.set_world(grid)
    away = moved(**{f"{first}_joint4": 0.0})
    assert gate.check(away).kind_name(0) == "world"
    gate._hands._props = {"Bar": BAR}  # a scene's props have names, a lone gate's cells have none
    hold(gate, *HANDS)
    assert gate.check(OUT).clear[0]
    gate.detach(first)
    assert gate.check(away).clear[0]
    gate.detach(other(first))
    assert gate.check(away).kind_name(0) == "world"
