"""Links of spheres, capsules, boxes: distances, verdicts, ways, cells and pixels, against coal, MuJoCo and by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import coal
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from simulo.collision import CollisionChecker, Kind, build_model, build_motion_bounds
from simulo.collision.kernels.shapes import BOX, BRUTE
from simulo.collision.reference import self_distances
from simulo.description import ConvexPiece, RobotDescription, reference_fk
from simulo.errors import CollisionModelError
from simulo.lowering.pieces import fit_piece
from simulo.perception import Intrinsics, SelfFilter
from simulo.pose import Pose
from tests.collision.oracle import build_oracle, coal_distance, coal_hull, coal_piece
from tests.collision.robots import ball_arm, box_piece, describe, joint, link, piece
from tests.collision.worlds import grid

BAND = 10e-6  # m: how far below the truth a distance may be


def coal_gap(description: RobotDescription, q, a: str, b: str) -> float:
    """Distance [m] of two links by coal's own spheres, capsules and hulls; 0 or less where they meet."""
    poses = reference_fk(description, q)
    gaps = []
    for first, second in product(description.geometry[a].pieces, description.geometry[b].pieces):
        (one, turn_one, at_one), (two, turn_two, at_two) = coal_piece(first), coal_piece(second)
        here, there = np.eye(4), np.eye(4)
        here[:3, :3], here[:3, 3], there[:3, :3], there[:3, 3] = turn_one, at_one, turn_two, at_two
        between = np.linalg.inv(poses[a] @ here) @ poses[b] @ there
        gaps.append(coal_distance(one, two, between[:3, :3], between[:3, 3]))
    return min(gaps)


def configurations(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-3.0, 3.0, (count, 4)).astype(np.float32)


def rail(first: ConvexPiece, second: ConvexPiece) -> RobotDescription:
    """Two links on a slide along x, their frames one at zero."""
    slide = joint("slide", "a", "b", axis=(1.0, 0.0, 0.0), kind="prismatic", lower=-9, upper=9)
    return describe("rail", ["a", "b"], [slide], geometry=[link("a", first), link("b", second)])


@pytest.mark.parametrize(
    ("first", "second", "slide", "gap"),
    [
        (piece([[0, 0, 0]], radius=0.1), piece([[0, 0, 0]], radius=0.05), 0.2, 0.05),
        (piece([[0, 0, -0.2], [0, 0, 0.2]], radius=0.1), piece([[0, 0, 0.1]], radius=0.05), 0.4, 0.25),
        (piece([[0, 0, -0.2], [0, 0, 0.2]], radius=0.1), piece([[0, -1, 0], [0, 1, 0]], radius=0.05), 0.16, 0.01),
        (piece([[0, 0, 0.3], [0, 0, 0.7]], radius=0.1), box_piece((0.2, 0.2, 0.2)), 0.0, 0.1),
        (piece([[0, 0, 0]], radius=0.1), box_piece((0.2, 0.2, 0.2)), 0.5, 0.3),
        (piece([[0, 0.13, 0.14]], radius=0.02), box_piece((0.2, 0.2, 0.2)), 0.0, 0.03),  # an edge: 30 and 40 mm away
    ],
    ids=["balls", "capsule-ball", "crossed", "end-face", "ball-face", "ball-edge"],
)
def test_distances_by_hand(first: ConvexPiece, second: ConvexPiece, slide: float, gap: float) -> None:
    robot = rail(first, second)
    checker = CollisionChecker(build_model(robot), 2, self_margin=0.0)
    found = checker.check(torch.tensor([[slide], [slide]]), world=False, distances=True)
    assert gap - BAND <= float(found.distance[0]) <= gap
    assert not bool(found.bound[0]) and bool(found.clear[0])
    assert self_distances(robot, [slide])[0].distance == pytest.approx(gap, abs=1e-12)
    at = torch.tensor([[slide], [slide]])
    assert CollisionChecker(build_model(robot), 2, self_margin=gap - 2 * BAND).check(at, world=False).clear.all()
    assert not CollisionChecker(build_model(robot), 2, self_margin=gap + 1e-7).check(at, world=False).clear.any()


def test_depths_of_crossed_capsules_and_of_one_point() -> None:
    """Axes that meet have no depth of their own: the balls' radii are all of it."""
    crossed = rail(piece([[0, 0, -0.2], [0, 0, 0.2]], radius=0.1), piece([[0, -1, 0], [0, 1, 0]], radius=0.05))
    assert self_distances(crossed, [0.0])[0].distance == pytest.approx(-0.15)
    assert self_distances(crossed, [0.1])[0].distance == pytest.approx(-0.05)
    found = CollisionChecker(build_model(crossed), 1).check(torch.zeros(1, 1), world=False, distances=True)
    assert not found.clear[0] and float(found.distance[0]) <= -0.15 + 1e-9
    balls = rail(piece([[0, 0, 0]], radius=0.1), piece([[0, 0, 0]], radius=0.05))
    assert self_distances(balls, [0.0])[0].distance == pytest.approx(-0.15)


def test_every_pairs_distance_is_coals() -> None:
    """Never above the truth, and within 10 um of it where apart; the float64 reference within a nanometre."""
    robot, q = ball_arm(), configurations(150, 1)
    model = build_model(robot)
    checker = CollisionChecker(model, len(q), self_margin=0.0)
    references = [{(r.link_a, r.link_b): r.distance for r in self_distances(robot, row)} for row in q]
    apart = 0
    for a, b in model.pairs:
        found = checker.check(torch.from_numpy(q), links=(a, b), world=False, distances=True)
        for row, distance in enumerate(found.distance.tolist()):
            truth = coal_gap(robot, q[row], a, b)
            if truth <= 1e-6:
                assert distance <= 0.0 and references[row][a, b] <= 1e-6
                continue
            apart += 1
            assert distance <= truth + 1e-9
            assert distance >= truth - BAND, (a, b, q[row])
            assert references[row][a, b] == pytest.approx(truth, abs=1e-8)
    assert apart > 500


def test_mujoco_finds_no_contact_that_is_missed() -> None:
    robot, q = ball_arm(), configurations(4000, 2)
    oracle, clear = build_oracle(robot), CollisionChecker(build_model(robot), len(q)).check(
        torch.from_numpy(q), world=False
    ).clear.numpy()  # fmt: skip
    contacts, false = 0, 0
    for row, passed in zip(q, clear, strict=True):
        oracle.pose(row)
        touching = bool(oracle.contacts())
        contacts += touching
        assert not (touching and passed), row
        if not touching and not passed:
            false += min(r.distance for r in self_distances(robot, row)) > BAND
    assert 500 < contacts < 3500
    assert false == 0


def test_stages_leave_the_verdict_alone_whatever_the_batch() -> None:
    robot, q = ball_arm(), torch.from_numpy(configurations(64, 3))
    model = build_model(robot)
    whole = CollisionChecker(model, 64).check(q, world=False, distances=True)
    for row in range(0, 64, 9):
        one = CollisionChecker(model, 1).check(q[row : row + 1], world=False, distances=True)
        assert float(one.distance[0]) == float(whole.distance[row]) and bool(one.clear[0]) == bool(whole.clear[row])


def test_no_sample_of_a_cleared_way_touches() -> None:
    """The way between two configurations at 129 samples, against MuJoCo."""
    robot, rng = ball_arm(), np.random.default_rng(4)
    model = build_model(robot)
    checker = CollisionChecker(model, 200, motion=build_motion_bounds(model))
    start = rng.uniform(-2.5, 2.5, (200, 4)).astype(np.float32)
    end = (start + rng.uniform(-0.4, 0.4, start.shape)).astype(np.float32)
    verdict = checker.check(torch.from_numpy(end), world=False, start=torch.from_numpy(start))
    oracle, cleared, refused_between = build_oracle(robot), 0, 0
    alone = CollisionChecker(model, 200).check(torch.from_numpy(end), world=False).clear.numpy()
    for row, clear in enumerate(verdict.clear.tolist()):
        refused_between += not clear and alone[row]
        if not clear:
            continue
        cleared += 1
        for share in np.linspace(0.0, 1.0, 129):
            oracle.pose(start[row] + share * (end[row] - start[row]))
            assert not oracle.contacts(), (row, share)
    assert cleared > 40 and refused_between > 3


def test_bounds_of_motion_hold_for_the_balls_surfaces() -> None:
    robot, rng = ball_arm(), np.random.default_rng(5)
    model = build_model(robot)
    bounds = build_motion_bounds(model)
    for q in rng.uniform(-3, 3, (40, 4)):
        other = np.clip(q + rng.uniform(-0.05, 0.05, 4), -3, 3)
        here, there = reference_fk(robot, q), reference_fk(robot, other)
        for row, (_posed, link_number) in enumerate(zip(model.bodies.body[:, 0], model.bodies.link, strict=True)):
            name = model.link_names[link_number]
            directions = rng.normal(size=(50, 3))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
            for part in robot.geometry[name].pieces[:1]:
                points = (part.vertices[:, None] + part.radius * directions).reshape(-1, 3)
                moved = points @ (here[name][:3, :3] - there[name][:3, :3]).T + here[name][:3, 3] - there[name][:3, 3]
                if len(robot.geometry[name].pieces) == 1:
                    assert np.linalg.norm(moved, axis=1).max() <= bounds.body[row] @ np.abs(other - q) + 1e-9


def test_cells_get_coals_verdict() -> None:
    """One occupied cell of 2 cm for each configuration, somewhere near the arm."""
    robot, q, rng = ball_arm(), configurations(300, 6), np.random.default_rng(7)
    cell, margin, shape = 0.02, 0.005, (40, 40, 40)
    turn = Rotation.from_rotvec([0.3, -0.5, 0.4])
    cells = np.zeros((len(q), *shape), dtype=bool)
    index = rng.integers(0, 40, (len(q), 3))
    cells[np.arange(len(q)), index[:, 0], index[:, 1], index[:, 2]] = True
    lattice = grid(cells, cell, (0, 0, 0), turn)
    corners = []
    for i in range(len(q)):
        pose = reference_fk(robot, q[i])[str(rng.choice(["upper", "fore", "shoulder"]))]
        target = pose[:3, 3] + rng.normal(size=3) * 0.06
        corners.append(target - turn.apply((index[i] + 0.5) * cell))
    lattice = replace(lattice, position=torch.tensor(np.array(corners), dtype=torch.float32))
    model = build_model(robot)
    checker = CollisionChecker(model, len(q), self_margin=0.0, world_margin=margin)
    checker.set_voxels(lattice)
    alone = checker.check(torch.from_numpy(q), world=False).clear.numpy()
    verdict = checker.check(torch.from_numpy(q))
    cube, hits, clear = coal.Box(cell, cell, cell), 0, 0
    for i in np.flatnonzero(alone):
        at = lattice.position[i].double().numpy() + turn.apply((index[i] + 0.5) * cell)
        gaps = []
        poses = reference_fk(robot, q[i])
        for name in ("shoulder", "upper", "fore", "hand"):
            for part in robot.geometry[name].pieces:
                shape_of, rotation, position = coal_piece(part)
                here = np.eye(4)
                here[:3, :3], here[:3, 3] = rotation, position
                back = np.linalg.inv(poses[name] @ here)
                gaps.append(
                    coal_distance(shape_of, cube, back[:3, :3] @ turn.as_matrix(), back[:3, :3] @ at + back[:3, 3])
                )
        truth = min(gaps)
        if abs(truth - margin) < BAND:
            continue
        hits += truth < margin
        clear += truth > margin
        assert (verdict.kind[i] == Kind.WORLD) == (truth < margin), truth
    assert hits > 20 and clear > 20


def test_a_depth_pixel_is_the_robots_within_the_padding_of_a_ball() -> None:
    """Rays that scatter points about a capsule: the label is the distance from its segment, less the radius."""
    camera = Intrinsics.from_fovy(48, 36, 0.6)
    capsule = piece([[0.0, -0.1, 0.9], [0.1, 0.1, 1.0]], radius=0.07)
    filt = SelfFilter(["arm"], {"arm": link("arm", capsule)}, 1, padding=0.01)
    depth = np.random.default_rng(8).uniform(0.7, 1.3, (36, 48)).astype(np.float32)
    at = torch.tensor([[[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]])
    got = filt.label(torch.from_numpy(depth)[None, None], camera, at, at, torch.tensor([0]))[0, 0].numpy().astype(bool)
    focal = 0.5 * 36 / np.tan(0.3)
    u, v = np.meshgrid(np.arange(48) + 0.5 - 24, np.arange(36) + 0.5 - 18)
    points = np.stack([u / focal, v / focal, np.ones_like(u)], axis=-1) * depth[..., None].astype(np.float64)
    start, along = capsule.vertices[0], capsule.vertices[1] - capsule.vertices[0]
    share = np.clip((points - start) @ along / (along @ along), 0, 1)
    off = np.linalg.norm(points - start - share[..., None] * along, axis=-1) - 0.07
    assert got[off <= 0.01 - 1e-5].all() and (off <= 0.0).sum() > 30
    assert not got[off > 0.01 + 2e-5].any() and (off > 0.01).sum() > 200


def test_a_hull_of_a_boxs_corners_is_a_box_whose_depth_is_exact() -> None:
    """As it is written, turned and rounded; 30 mm deep along x, where no other way out is shorter."""
    turned = Pose.from_rpy((0.01, -0.02, 0.03), (0.4, -0.7, 1.1))
    box = box_piece((0.1, 0.12, 0.14))
    found = fit_piece(turned.apply(box.vertices), "box")
    wedge = found.vertices + 1e-6 * np.eye(8, 1) * (found.vertices - found.vertices.mean(axis=0))
    kinds = [int(build_model(rail(box, piece(p.vertices, p.box_pose))).shapes.header[1, 0]) for p in (box, found)]
    assert kinds == [int(BOX)] * 2
    assert int(build_model(rail(box, piece(wedge, found.box_pose))).shapes.header[1, 0]) == int(BRUTE)
    model = build_model(rail(box, box))
    deep = CollisionChecker(model, 1).check(torch.tensor([[0.07]]), world=False, distances=True)
    assert -0.03 - BAND <= float(deep.distance[0]) <= -0.03 + 1e-9 and not bool(deep.bound[0])
    aslant = build_model(rail(box, found))
    rng = np.random.default_rng(9)
    checker, q = CollisionChecker(aslant, 64), rng.uniform(0.12, 0.4, (64, 1)).astype(np.float32)
    for slide, distance in zip(
        q, checker.check(torch.from_numpy(q), world=False, distances=True).distance, strict=True
    ):
        truth = coal_distance(coal_hull(box.vertices), coal_hull(found.vertices), np.eye(3), [slide[0], 0.0, 0.0])
        if truth > 1e-6:
            assert truth - BAND <= float(distance) <= truth + 1e-9


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (replace(piece([[0, 0, 0]], radius=0.1), radius=-0.1), "ball of radius -0.1"),
        (replace(piece([[0, 0, 0]], radius=0.1), radius=float("nan")), "ball of radius nan"),
        (replace(piece([[0, 0, 0]], radius=0.1), radius=0.0), "V >= 4"),
        (replace(piece([[0, 0, 0]], radius=0.1), radius=0.101), "leaves its own box by 1.000 mm"),
        (piece([[0, 0, 0], [1, 0, 0], [0, 1, 0]], radius=0.1), "V 1 or 2"),
        (piece(box_piece((0.1, 0.1, 0.1)).vertices, radius=0.1), "V 1 or 2"),
    ],
    ids=["negative", "nan", "a point", "out of its box", "triangle", "round box"],
)
def test_what_is_no_sphere_capsule_or_hull_is_refused_by_name(broken: ConvexPiece, words: str) -> None:
    robot = rail(box_piece((0.1, 0.1, 0.1)), broken)
    with pytest.raises(CollisionModelError, match=words) as caught:
        build_model(robot)
    assert "'b'" in str(caught.value)


coordinate = st.floats(-0.5, 0.5, allow_subnormal=False)
point = st.tuples(coordinate, coordinate, coordinate)
ball = st.floats(1e-3, 0.3)


@settings(max_examples=150, deadline=None)
@given(st.lists(point, min_size=4, max_size=4), ball, ball, st.floats(-2.0, 2.0, width=32, allow_subnormal=False))
def test_a_distance_of_capsules_is_below_the_segments_and_near_it(ends, one: float, two: float, slide: float) -> None:
    """Segments in any place, ends that coincide included; the truth by a fine search over both, done apart."""
    first, second = np.array(ends[:2], np.float64), np.array(ends[2:], np.float64)
    robot = rail(piece(first, radius=one), piece(second, radius=two))
    checker = CollisionChecker(build_model(robot), 1)
    found = checker.check(torch.tensor([[slide]]), world=False, distances=True)
    truth = segments_apart(first, second + np.array([slide, 0.0, 0.0])) - one - two
    assert float(found.distance[0]) <= truth + 1e-9
    if truth > 0.0:
        assert bool(found.clear[0]) or truth < BAND
        if not bool(found.bound[0]):
            assert float(found.distance[0]) >= truth - BAND


def segments_apart(a: np.ndarray, b: np.ndarray) -> float:
    """Least distance [m] of two segments: the distance of a point of one to the other is convex along it, so a search
    by thirds finds it."""

    def to_other(share: float) -> float:
        here, along = a[0] + share * (a[1] - a[0]), b[1] - b[0]
        length = along @ along
        there = b[0] + (np.clip((here - b[0]) @ along / length, 0.0, 1.0) if length > 0 else 0.0) * along
        return float(np.linalg.norm(here - there))

    low, high = 0.0, 1.0
    for _ in range(120):
        third = (high - low) / 3.0
        if to_other(low + third) < to_other(high - third):
            high -= third
        else:
            low += third
    return min(to_other(0.0), to_other(1.0), to_other(0.5 * (low + high)))
