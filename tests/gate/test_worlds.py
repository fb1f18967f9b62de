"""Maps that are missing, old, unseen or hollow; and several things in one hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import simulo
from simulo.collision import ConvexShape, Primitives, VoxelGrid
from simulo.gate import CollisionGate
from simulo.pose import Pose
from tests.gate.arm import empty_map, openarm, placed, poses, rest, single_cell
from tests.gate.tasks import JointTargets

HAND = "openarm_right_ee_base_link"
OPEN = rest(right_finger_joint1=-0.6)


def stepped(gate: CollisionGate, num_envs: int = 2) -> simulo.LearningEnv:
    env = simulo.LearningEnv(JointTargets({}), num_envs=num_envs, gate=gate, physics_steps_per_action=50)
    env.reset(seed=0)
    return env


def test_b26_without_frames_a_map_grows_stale_and_is_not_called_clear():
    """A map given once at 0 s, max_age 0.5 s, steps of 0.1 s: clear up to 0.5 s, stale after; a new one is fresh."""
    gate = CollisionGate(openarm(), max_age=0.5)
    env = stepped(gate)
    gate.set_world(empty_map(2))
    rows = torch.tensor(np.stack([rest(), rest()]), dtype=torch.float32)
    kinds = []
    for _ in range(8):
        *_, info = env.step(rows)
        kinds.append(info["gate"].kind_name(0))
    assert kinds == ["clear"] * 6 + ["stale_map"] * 2
    assert "stale_map" in info["gate"].describe(1) and "max_age" in info["gate"].describe(1)
    gate.set_world(empty_map(2), stamp=torch.tensor([env.time, env.time - 0.6], dtype=torch.float64))
    *_, info = env.step(rows)
    assert info["gate"].counts == {"clear": 1, "stale_map": 1}


ROOM = np.array([[-1.0, -1.2, -0.2], [1.0, 1.2, 1.6]])  # holds all that the OpenArm can reach


def within(box: np.ndarray, unseen: np.ndarray | None = None, cell: float = 0.02) -> VoxelGrid:
    """An empty map with its edges at `box` [m], low and high corner, in whole bricks; around a point, unseen."""
    counts = np.round((box[1] - box[0]) / cell).astype(int)
    corner = box[0] if unseen is None else unseen - cell * (np.floor((unseen - box[0]) / cell) + 0.5)
    hidden = torch.zeros((1, *counts.tolist()), dtype=torch.bool)
    if unseen is not None:
        hidden[0, *np.floor((unseen - corner) / cell).astype(int).tolist()] = True
    at, upright = torch.tensor(corner, dtype=torch.float32)[None], torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    return VoxelGrid.from_cells(torch.zeros_like(hidden), cell, at, upright, hidden)


def test_b28_unseen_space_on_the_way_is_told_or_refused():
    """The finger swings through a cell that nobody has seen, on its way between two places that are known."""
    start, end, half = OPEN.copy(), OPEN.copy(), OPEN.copy()
    column = openarm().joint_names.index("openarm_right_joint4")
    end[column] += 0.8
    half[column] += 0.4
    tip = placed("openarm_right_ee_outer_finger", half).vertices
    hidden = within(ROOM, tip[tip[:, 2].argmin()], 0.02)
    for policy, motion, kind in (("free", True, "clear"), ("occupied", False, "clear"), ("occupied", True, "world")):
        gate = CollisionGate(
            openarm(), unknown=policy, motion_check=motion, max_age=float("inf"), horizon=2, device="cpu"
        )
        gate.set_configuration(start)
        gate.set_world(hidden)
        verdict = gate.check(np.stack([end, end])[None])
        assert verdict.kind_name(0) == kind, (policy, motion)
        through = gate.check(np.stack([half, end])[None])
        assert int(through.unknown_cells[0]) >= 1 or policy == "occupied"
        assert through.kind_name(0) == ("clear" if policy == "free" else "world")


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("side", [0, 1])
def test_b28_past_the_maps_edge_nothing_is_seen_either(axis, side):
    """A map that ends 20 mm inside the outermost vertex of all that moves, and one that holds everything."""
    moving = [link for link in openarm().geometry if "body_link0" not in link and not link.endswith("base_link")]
    moving += ["openarm_left_ee_base_link", "openarm_right_ee_base_link"]
    points = {link: placed(link, OPEN).vertices[:, axis] for link in moving}
    outermost = min(points, key=lambda k: points[k].min()) if side == 0 else max(points, key=lambda k: points[k].max())
    short = ROOM.copy()
    short[side, axis] = points[outermost].min() + 0.02 if side == 0 else points[outermost].max() - 0.02
    short[1 - side, axis] = short[side, axis] + (1 if side == 0 else -1) * 2.4  # whole bricks
    for policy, kind in (("free", "clear"), ("occupied", "world")):
        gate = CollisionGate(openarm(), unknown=policy, max_age=float("inf"), device="cpu")
        gate.set_world(within(short))
        verdict = gate.check(OPEN)
        assert verdict.kind_name(0) == kind, verdict.describe(0)
        assert int(verdict.outside_map[0]) > 0
        if policy == "occupied":
            assert verdict.parties(0)[1] == "the unseen space past the map's edge"
            assert bool(verdict.bound[0]) and float(verdict.distance[0]) <= 0.005
            assert verdict.describe(0).startswith("environment 0: refused (world): openarm_")
        gate.set_world(within(ROOM))
        assert gate.check(OPEN).clear[0]
        assert int(gate.check(OPEN).outside_map[0]) == 0


def test_b28_the_way_and_what_is_held_may_not_leave_the_map_unseen():
    """The forearm swings up through the level, out of the map and back, with both ends well inside; then a long rod
    sticks out of it."""
    start, middle, end = (rest(right_finger_joint1=-0.6, right_joint4=angle) for angle in (0.5, 1.4, 2.4))
    links = [link for link in openarm().geometry if link.startswith("openarm_right")]
    foremost = [max(placed(link, q).vertices[:, 0].max() for link in links) for q in (start, middle, end)]
    assert foremost[1] > max(foremost[0], foremost[2]) + 0.05
    box = ROOM.copy()
    box[1, 0] = foremost[1] - 0.01
    box[0, 0] = box[1, 0] - 1.6
    gate = CollisionGate(
        openarm(), unknown="occupied", motion_check=True, max_age=float("inf"), horizon=2, device="cpu"
    )
    gate.set_configuration(start)
    gate.set_world(within(box))
    for q in (start, end):
        gate.set_configuration(q)
        assert gate.check(q).clear[0], gate.check(q).describe(0)
    gate.set_configuration(start)
    verdict = gate.check(np.stack([end, start])[None])
    assert verdict.kind_name(0) == "world" and float(verdict.between[0]) > 0.0, "found before it arrives"
    assert verdict.parties(0)[1] == "the unseen space past the map's edge"
    gate.set_world(within(ROOM))
    assert gate.check(np.stack([end, start])[None]).clear[0]
    gate.attach("right", ConvexShape.box((3.0, 0.02, 0.02)), Pose((0.0, 0.0, -0.35)))
    verdict = gate.check(start)
    assert verdict.kind_name(0) == "payload" and verdict.parties(0)[1] == "the unseen space past the map's edge"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_one_hand_holds_two_things_and_each_is_checked(order):
    """Two balls under one hand, one left and one right of it; an obstacle at either is hit by that one."""
    gate = CollisionGate(openarm(), world="primitives", device="cpu")
    gate.set_configuration(OPEN)
    grips = [Pose((0.06 * side, 0.0, -0.3)) for side in (-1.0, 1.0)]
    far = torch.tensor([[[3.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]])
    gate.set_world(Primitives.of(["Post"], [ConvexShape.sphere(0.01)], far))
    for k in order:
        gate.attach("right", ConvexShape.sphere(0.02), grips[k])
    assert gate.check(OPEN).clear[0]
    for k in range(2):
        x, y, z, _ = poses(OPEN)[HAND] @ [*grips[k].position, 1.0]
        at = torch.tensor([[[x, y, z, 1.0, 0.0, 0.0, 0.0]]], dtype=torch.float32)
        gate.set_world(Primitives.of(["Post"], [ConvexShape.sphere(0.01)], at))
        verdict = gate.check(OPEN, links="gripper:right")
        assert verdict.kind_name(0) == "payload"
        slot = order.index(k)
        assert verdict.parties(0) == (f"the object in the right hand{f' (slot {slot})' if slot else ''}", "Post")
        assert gate.check(OPEN, links="gripper:left").clear[0], "another hand's question"
        assert gate.check(OPEN, links="openarm_right_ee_inner_finger").clear[0], "and a finger's alone"
    gate.detach("right")
    assert gate.check(OPEN).kind_name(0) != "payload"


def test_b44_what_changes_after_the_check_was_recorded_is_seen_by_the_next():
    """A check is a recorded graph: a new map of another size, another payload and another cell must reach it."""
    gate = CollisionGate(openarm(), max_age=float("inf"), device="cpu")
    gate.set_configuration(OPEN)
    gate.set_world(empty_map())
    assert gate.check(OPEN).clear[0]
    tip = placed("openarm_right_ee_outer_finger", OPEN).vertices
    low = tip[tip[:, 2].argmin()]
    gate.set_world(single_cell(low, 0.01))
    assert gate.check(OPEN).kind_name(0) == "world"
    larger = torch.zeros((1, 32, 8, 64), dtype=torch.bool)
    larger[0, 30, 5, 60] = True
    corner = torch.tensor(low - (np.array([30.5, 5.5, 60.5]) * 0.02), dtype=torch.float32)[None]
    gate.set_world(VoxelGrid.from_cells(larger, 0.02, corner, torch.tensor([[1.0, 0, 0, 0]])))
    assert gate.check(OPEN).kind_name(0) == "world"
    gate.set_world(empty_map())
    assert gate.check(OPEN).clear[0]
    below = poses(OPEN)[HAND] @ [0.0, 0.0, -0.4, 1.0]
    gate.set_world(single_cell(below[:3], 0.01))
    assert gate.check(OPEN).clear[0]
    gate.attach("right", ConvexShape.sphere(0.02), Pose((0.03, 0.0, -0.4)), touch_links=())
    gate.set_world(single_cell(below[:3] + np.array([0.03, 0.0, 0.0]), 0.01))
    assert gate.check(OPEN).kind_name(0) == "payload"
    gate.detach("right")
    gate.set_world(single_cell(below[:3], 0.01))
    assert gate.check(OPEN).clear[0]
