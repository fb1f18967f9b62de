"""`CollisionGate.check` on one robot, against distances from coal on the links' own triangles."""

from __future__ import annotations

import coal
import numpy as np
import pytest
import torch

from simulo.collision import ConvexShape, Kind, Primitives, VoxelGrid
from simulo.collision.reference import posed_pieces
from simulo.errors import GateError
from simulo.gate import CollisionGate
from simulo.pose import Pose
from tests.gate.arm import empty_map, mesh_gap, openarm, placed, poses, rest, single_cell

SIDES = ("left", "right")


@pytest.fixture(scope="module")
def voxels() -> CollisionGate:
    return CollisionGate(openarm(), device="cpu", max_age=float("inf"))


@pytest.fixture(scope="module")
def alone() -> CollisionGate:
    return CollisionGate(openarm(), world="none", device="cpu")


def at(centre: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = centre
    return pose


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("finger", ["inner", "outer"])
def test_b13_a_query_of_a_hand_sees_either_finger(voxels, side, finger):
    """A 5 mm cube 2 mm inside one fingertip of the open hand, well clear of the other."""
    q = rest(**{f"{side}_finger_joint1": openarm().gripper(side).open_position})
    link, other = (
        f"openarm_{side}_ee_{finger}_finger",
        f"openarm_{side}_ee_{'outer' if finger == 'inner' else 'inner'}_finger",
    )
    tips = {name: placed(name, q) for name in (link, other)}
    lowest = tips[link].vertices[tips[link].vertices[:, 2].argmin()]
    centre = lowest - (0.0, 0.0, 0.0005)  # the cube's upper face is 2 mm above the tip's lowest point
    assert mesh_gap(tips[link], coal.Box(0.005, 0.005, 0.005), at(centre)) <= 0.0
    assert mesh_gap(tips[other], coal.Box(0.005, 0.005, 0.005), at(centre)) > 0.05
    voxels.set_world(single_cell(centre, 0.005))
    verdict = voxels.check(q, links=f"gripper:{side}")
    assert not verdict.clear[0] and verdict.kind_name(0) == "world"
    assert verdict.parties(0)[0] == link
    x, y, z = centre
    assert f"the occupied cell at ({x:.3f}, {y:.3f}, {z:.3f}) m" in verdict.describe(0)
    far = "left" if side == "right" else "right"
    assert voxels.check(q, links=f"gripper:{far}").clear[0]


def test_the_cube_between_open_fingers_is_clear_and_the_swept_model_stops(voxels):
    q = rest(right_finger_joint1=openarm().gripper("right").open_position)
    tips = [placed(f"openarm_right_ee_{f}_finger", q) for f in ("inner", "outer")]
    centre = np.mean([t.vertices[t.vertices[:, 2].argmin()] for t in tips], axis=0)
    assert min(mesh_gap(t, coal.Box(0.005, 0.005, 0.005), at(centre)) for t in tips) > 0.025
    voxels.set_world(single_cell(centre, 0.005))
    assert voxels.check(q).clear[0]
    swept = CollisionGate(openarm(), finger_model="swept", device="cpu", max_age=float("inf"))
    swept.set_world(single_cell(centre, 0.005))
    assert swept.check(q).kind_name(0) == "world"


def test_b31_a_tilted_cylinder_keeps_its_shape():
    """Radius 22.5, half-height 44.1 mm, 45 degrees in the hand: an empty corner of its box is no cylinder."""
    gate = CollisionGate(openarm(), world="primitives", device="cpu")
    radius, half = 0.0225, 0.0441
    q = rest()
    hand = poses(q)["openarm_right_ee_base_link"]
    grip = Pose.from_rpy((0.0, 0.0, -0.2), (0.0, np.pi / 4, 0.0))
    cylinder = hand @ grip.matrix
    coal_cylinder = coal.Cylinder(radius, 2 * half)

    def probe(local: np.ndarray) -> tuple[Primitives, float]:
        centre = cylinder[:3, :3] @ local + cylinder[:3, 3]
        result = coal.DistanceResult()
        where = coal.Transform3s(cylinder[:3, :3], cylinder[:3, 3])
        ball = coal.Transform3s(np.eye(3), centre)
        coal.distance(coal_cylinder, where, coal.Sphere(0.001), ball, coal.DistanceRequest(), result)
        pose = torch.tensor([[[*centre, 1.0, 0.0, 0.0, 0.0]]], dtype=torch.float32)
        return Primitives.of(["probe"], [ConvexShape.sphere(0.001)], pose), result.min_distance

    gate.set_configuration(q)
    # 11 mm beyond the rim, diagonally: far inside the box that holds the tilted cylinder (47.1 mm half edges).
    out = 0.011 / np.sqrt(2.0)
    corner, gap = probe(np.array([radius + out, 0.0, half + out]))
    assert gap == pytest.approx(0.010, abs=1e-4)
    assert (np.abs(cylinder[:3, :3] @ [radius + out, 0.0, half + out]) < 0.0475).sum() >= 2
    gate.set_world(corner)
    gate.attach("right", ConvexShape.cylinder(radius, 2 * half), grip)
    assert gate.check(q).clear[0]
    inside, gap = probe(np.array([radius - 0.002 + 0.001, 0.0, 0.0]))
    assert gap < 0.0
    gate.set_world(inside)
    verdict = gate.check(q)
    assert verdict.kind_name(0) == "payload" and "the object in the right hand" in verdict.describe(0)
    assert "probe" in verdict.parties(0)


def test_b29_what_a_hand_holds_may_touch_its_fingers_and_nothing_else(alone):
    size = (0.40, 0.05, 0.05)  # a bar across the hand, long enough to reach the arm's own elbow
    block = ConvexShape.box(size)
    q = rest(right_finger_joint1=-0.2)
    grip = Pose((0.0, 0.0, -0.17))
    fingers = [placed(f"openarm_right_ee_{f}_finger", q) for f in ("inner", "outer")]
    where = poses(q)["openarm_right_ee_base_link"] @ grip.matrix
    assert min(mesh_gap(f, coal.Box(*size), where) for f in fingers) <= 0.0
    assert alone.check(q).clear[0]
    alone.attach("right", block, grip)
    try:
        assert alone.check(q).clear[0]
        hit = {}
        rng = np.random.default_rng(3)
        limits = np.array([(j.lower, j.upper) for j in openarm().joints])
        candidates = rng.uniform(limits[:, 0], limits[:, 1], (4000, 16))
        candidates[:, 15] = -0.2
        verdict = alone.check(candidates)
        for i in np.flatnonzero(verdict.kind.numpy() == Kind.PAYLOAD):
            hit.setdefault(verdict.parties(i)[1], i)
        elbow = [link for link in hit if link.startswith("openarm_right_link")]
        other = [link for link in hit if link.startswith("openarm_left_ee") and link.endswith("finger")]
        assert elbow and other, hit
        assert not [link for link in hit if link.startswith("openarm_right_ee")]
        for link in (*elbow, *other):
            block_at = poses(candidates[hit[link]])["openarm_right_ee_base_link"] @ grip.matrix
            gap = mesh_gap(placed(link, candidates[hit[link]]), coal.Box(*size), block_at)
            assert gap < 0.06  # the hull of the link meets the block; its triangles are no farther than hulls overhang
    finally:
        alone.detach("right")
    assert verdict.counts["payload"] > 10
    assert "payload" not in alone.check(candidates).counts


def test_b33_an_attached_block_leaves_the_map_and_the_list_and_comes_back():
    """A block of 40 x 40 x 100 mm in the hand and in the world, and a neighbour 30 mm beside it."""
    size, cell = np.array([0.04, 0.04, 0.10]), 0.01
    q = rest(right_finger_joint1=-0.6)
    grip = Pose((0.0, 0.0, -0.20))
    block_pose = poses(q)["openarm_right_ee_base_link"] @ grip.matrix
    corner = block_pose[:3, 3] - 0.2
    centers = np.stack(np.meshgrid(*[np.arange(40)] * 3, indexing="ij"), -1) * cell + 0.5 * cell + corner
    local = (centers - block_pose[:3, 3]) @ block_pose[:3, :3]
    in_block = (np.abs(local) <= 0.5 * size + 0.5 * cell).all(-1)
    beside = local - np.array([0.07, 0.0, 0.0])
    neighbour = (np.abs(beside) <= 0.5 * size + 0.5 * cell).all(-1)
    assert in_block.sum() > 100 and not (in_block & neighbour).any()

    def grid(cells: np.ndarray) -> VoxelGrid:
        return VoxelGrid.from_cells(
            torch.tensor(cells)[None],
            cell,
            torch.tensor(corner, dtype=torch.float32)[None],
            torch.tensor([[1.0, 0, 0, 0]]),
        )

    raised = q.copy()
    raised[openarm().joint_names.index("openarm_right_joint4")] += 0.02
    gate = CollisionGate(openarm(), device="cpu", max_age=float("inf"))
    gate.set_configuration(q)
    gate.set_world(grid(in_block))
    before = gate.check(q)
    gate.attach("right", ConvexShape.box(tuple(size)), grip)
    assert gate.check(q).clear[0] and gate.check(raised).clear[0]
    gate.detach("right")
    assert gate.check(q).kind_name(0) == before.kind_name(0)
    probe = gate.check(raised, distances=True)
    assert not probe.clear[0] or float(probe.distance[0]) < 0.05

    gate.set_world(grid(in_block | neighbour))
    gate.attach("right", ConvexShape.box(tuple(size)), grip)
    kept = gate.check(q, distances=True)
    gate.detach("right")
    gate.set_world(grid(neighbour))
    gate.attach("right", ConvexShape.box(tuple(size)), grip)
    alone = gate.check(q, distances=True)
    assert float(kept.distance[0]) == float(alone.distance[0]) < 0.03  # the neighbour is there to the last cell

    exact = CollisionGate(openarm(), world="primitives", device="cpu")
    exact.set_configuration(q)
    as_pose = Pose.from_matrix(block_pose)
    listed = torch.tensor(
        [[[*as_pose.position, *as_pose.orientation_wxyz], [2.0, 0, 0, 1, 0, 0, 0]]], dtype=torch.float32
    )
    box = ConvexShape.box(tuple(size))
    exact.set_world(Primitives.of(["Block", "Other"], [box, box], listed))
    probe_q = rest(right_finger_joint1=0.0)
    assert exact.check(probe_q).kind_name(0) == "world" and "Block" in exact.check(probe_q).parties(0)
    exact.attach("right", box, grip)
    assert exact.check(q).clear[0]
    exact.detach("right")
    assert exact.check(probe_q).kind_name(0) == "world"


def test_no_world_yet_and_a_stale_one_are_refused_by_name():
    gate = CollisionGate(openarm(), device="cpu", max_age=0.5)
    verdict = gate.check(rest())
    assert verdict.kind_name(0) == "no_map" and "call gate.set_world" in verdict.describe(0)
    gate.set_world(empty_map(), stamp=torch.tensor([-0.4], dtype=torch.float64))
    assert gate.check(rest()).clear[0]
    gate.set_world(empty_map(), stamp=torch.tensor([-0.6], dtype=torch.float64))
    verdict = gate.check(rest())
    assert verdict.kind_name(0) == "stale_map" and "max_age" in verdict.describe(0)
    assert verdict.counts == {"stale_map": 1}
    assert gate.check(rest(), world=False).clear[0]


def test_clear_says_what_was_checked(alone):
    text = alone.check(rest()).describe(0)
    assert "not the world (world='none')" in text and "motion between configurations is not checked" in text
    one = alone.check(rest(), links="gripper:left").describe(0)
    assert "gripper:left" in one


def test_distances_are_least_distances(alone):
    quick, exact = alone.check(rest()), alone.check(rest(), distances=True)
    assert quick.clear[0] and exact.clear[0]
    assert float(quick.distance[0]) <= float(exact.distance[0]) + 1e-6
    pieces = posed_pieces(openarm(), rest())
    first, second = ([coal_hull(vertices) for vertices in pieces[link]] for link in exact.parties(0))
    nearest = min(coal_distance(one, other) for one in first for other in second)
    assert float(exact.distance[0]) == pytest.approx(nearest, abs=1e-5)


def coal_hull(vertices: np.ndarray) -> coal.Convex:
    model = coal.BVHModelOBBRSS()
    model.beginModel(0, len(vertices))
    for vertex in vertices:
        model.addVertex(vertex)
    model.endModel()
    model.buildConvexHull(True, "Qt")
    return model.convex


def coal_distance(one: coal.Convex, other: coal.Convex) -> float:
    identity = coal.Transform3s.Identity()
    return coal.distance(one, identity, other, identity, coal.DistanceRequest(), coal.DistanceResult())


def test_candidates_of_every_shape(alone):
    q = rest()
    assert len(alone.check(q)) == 1
    assert len(alone.check(np.tile(q, (7, 1)))) == 7
    assert len(alone.check(torch.tensor(q)[None, None])) == 1
    folded = np.tile(q, (3, 1))
    folded[1, openarm().joint_names.index("openarm_right_joint4")] = np.nan
    verdict = alone.check(folded)
    assert verdict.clear.tolist() == [True, False, True] and verdict.kind_name(1) == "non_finite"
    assert "not a finite number" in verdict.describe(1)
    for bad in (np.zeros(15), np.zeros((2, 3, 15)), np.zeros((0, 16)), np.zeros((1, 1, 1, 16))):
        with pytest.raises(ValueError, match="dof = 16"):
            alone.check(bad)


def test_a_chunk_names_its_first_offending_row():
    gate = CollisionGate(openarm(), world="none", horizon=4, device="cpu")
    folded = rest(right_joint4=0.0, right_joint1=0.0)
    rng = np.random.default_rng(0)
    limits = np.array([(j.lower, j.upper) for j in openarm().joints])
    samples = rng.uniform(limits[:, 0], limits[:, 1], (500, 16))
    refused = samples[~gate.check(samples).clear.numpy()][0]
    chunk = np.stack([rest(), folded, refused, refused])
    chunk[1] = rest()
    verdict = gate.check(chunk[None])
    assert not verdict.clear[0] and int(verdict.row[0]) == 2
    assert verdict.describe(0).startswith("environment 0, row 2: refused (self): openarm_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"world": None}, "world='none'"),
        ({"world": "octomap"}, "'voxels', 'primitives', 'none'"),
        ({"on_stop": "pause"}, "'hold', 'terminate', 'report'"),
        ({"finger_model": "rigid"}, "'mimic', 'swept'"),
        ({"unknown": "maybe"}, "'free', 'occupied'"),
        ({"world_margin": -0.01}, "world_margin"),
        ({"self_margin": float("nan")}, "self_margin"),
        ({"max_age": 0.0}, "max_age"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(GateError, match=message):
        CollisionGate(openarm(), **options)


def test_the_tracking_margin_widens_both_margins(voxels):
    q = rest()
    tip = placed("openarm_right_ee_outer_finger", q).vertices
    centre = tip[tip[:, 2].argmin()] - (0.0, 0.0, 0.012 + 0.0025)
    voxels.set_world(single_cell(centre, 0.005))
    wide = CollisionGate(openarm(), tracking_margin=0.01, device="cpu", max_age=float("inf"))
    wide.set_world(single_cell(centre, 0.005))
    assert voxels.check(q).clear[0] and wide.check(q).kind_name(0) == "world"


def test_unknown_cells_are_counted_or_solid():
    q = rest()
    tip = placed("openarm_right_ee_outer_finger", q).vertices
    seen = single_cell(tip[tip[:, 2].argmin()], 0.02)
    unseen = VoxelGrid(torch.zeros_like(seen.bricks), seen.cell, seen.position, seen.orientation_wxyz, seen.bricks)
    free = CollisionGate(openarm(), device="cpu", max_age=float("inf"))
    free.set_world(unseen)
    verdict = free.check(q)
    assert verdict.clear[0] and int(verdict.unknown_cells[0]) >= 1 and "unseen cells in reach" in verdict.describe(0)
    solid = CollisionGate(openarm(), unknown="occupied", device="cpu", max_age=float("inf"))
    solid.set_world(unseen)
    assert solid.check(q).kind_name(0) == "world"


@pytest.mark.parametrize("seed", range(4))
def test_unseen_cells_in_reach_are_counted_brick_by_brick(seed):
    tip = placed("openarm_right_ee_outer_finger", rest()).vertices
    cells = torch.tensor(np.random.default_rng(seed).random((1, 4, 4, 4)) < (seed + 1) / 4)
    corner = torch.tensor(tip[tip[:, 2].argmin()] - 0.02, dtype=torch.float32)[None]
    none = torch.zeros_like(cells)
    grid = VoxelGrid.from_cells(none, 0.01, corner, torch.tensor([[1.0, 0, 0, 0]]), unknown=cells)
    gate = CollisionGate(openarm(), device="cpu", max_age=float("inf"))
    gate.set_world(grid)
    verdict = gate.check(rest(), links="openarm_right_ee_outer_finger")
    assert int(verdict.unknown_cells[0]) == int(cells.sum())


def test_a_world_of_another_kind_or_count_is_refused(alone, voxels):
    with pytest.raises(GateError, match="takes no voxels"):
        alone.set_world(empty_map())
    with pytest.raises(GateError, match="2 environments, the gate 1"):
        voxels.set_world(empty_map(2))


def test_attaching_without_knowing_where_the_hand_is_is_refused():
    gate = CollisionGate(openarm(), device="cpu", max_age=float("inf"))
    gate.set_world(empty_map())
    with pytest.raises(GateError, match="set_configuration"):
        gate.attach("right", ConvexShape.sphere(0.02), Pose((0.0, 0.0, -0.2)))
    gate.set_configuration(rest())
    gate.attach("right", ConvexShape.sphere(0.02), Pose((0.0, 0.0, -0.2)))
    gate.attach("right", ConvexShape.sphere(0.02), Pose((0.0, 0.0, -0.2)))
    with pytest.raises(GateError, match="holds 2 objects already"):
        gate.attach("right", ConvexShape.sphere(0.02), Pose((0.0, 0.0, -0.2)))
    with pytest.raises(GateError, match="not finite"):
        gate.attach("left", ConvexShape.sphere(0.02), torch.tensor([np.nan, 0, 0, 1, 0, 0, 0]))


def test_parts_beyond_the_map_are_told_of(voxels):
    voxels.set_world(empty_map())  # 4 cm wide, at the foot plate
    verdict = voxels.check(rest())
    assert verdict.clear[0] and int(verdict.outside_map[0]) > 10
    assert f"{int(verdict.outside_map[0])} bodies reach past the map's edges, where nothing is known" in (
        verdict.describe(0)
    )
    assert "past the map" not in voxels.check(rest(), world=False).describe(0)


def test_a_wider_margin_is_told_with_the_verdict(alone):
    least = float(alone.check(rest(), distances=True).distance[0])
    clear, stopped = (alone.check(rest(), widen=least + more) for more in (-2e-4, 2e-4))
    assert clear.clear[0] and f"both wider by {1000 * (least - 2e-4):.1f} mm" in clear.describe(0)
    assert stopped.kind_name(0) == "self" and f"the margin is {1000 * (least + 2e-4):.1f} mm" in stopped.describe(0)
    assert alone.check(rest()).clear[0]


def test_a_printed_verdict_says_how_many_are_refused_and_why(alone):
    q = np.stack([rest()] * 7)
    assert str(alone.check(q)) == "all 7 clear of self-collision at margin 0.0 mm and not the world (world='none')"
    assert repr(alone.check(q)) == "<Verdict on 7: 7 clear>"
    q[1:, 3] = np.nan
    verdict = alone.check(q)
    assert repr(verdict) == f"{verdict!r}" == "<Verdict on 7: 1 clear, 6 non_finite>"
    first, *sentences, last = f"{verdict}".split("\n  ")
    assert (first, last) == ("6 of 7 refused", "and 2 more")
    assert sentences == [verdict.describe(i) for i in (1, 2, 3, 4)]
    assert repr({"gate": verdict}) == "{'gate': <Verdict on 7: 1 clear, 6 non_finite>}"
