"""The robot against cells and primitives: verdicts against the float64 reference and hand-made scenes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from simulo.collision import (
    CollisionChecker,
    CollisionModel,
    ConvexShape,
    Kind,
    MapStatus,
    Primitives,
    build_model,
    pack_bricks,
    unpack_bricks,
)
from simulo.collision.parties import cell_code, cell_indices
from simulo.collision.reference import cell_corners, hull_distance, posed_pieces
from simulo.errors import CollisionModelError
from tests.collision.robots import pincer, sliders
from tests.collision.test_fk import uniform
from tests.collision.worlds import grid, pose, poses

MARGIN = 0.005
TILT = Rotation.from_euler("zyx", (40, 20, -15), degrees=True)


def test_bricks_round_trip_and_pad() -> None:
    cells = torch.from_numpy(np.random.default_rng(0).random((3, 9, 6, 70)) < 0.3)
    bricks = pack_bricks(cells)
    assert bricks.shape == (3, 3, 2, 18)
    assert torch.equal(unpack_bricks(bricks, (9, 6, 70)), cells)
    one = torch.zeros(1, 8, 4, 4, dtype=torch.bool)
    one[0, 5, 2, 3] = True
    assert int(pack_bricks(one)[0, 1, 0, 0]) == 1 << ((1 * 4 + 2) * 4 + 3)
    with pytest.raises(CollisionModelError, match="bool"):
        pack_bricks(cells.to(torch.uint8))


def single_cells(openarm_model, openarm, count: int, cell: float, rotation: Rotation, seed: int):
    """Environments with one occupied cell each, near a random surface vertex of a random moving link."""
    rng = np.random.default_rng(seed)
    q = uniform(openarm, count, seed)
    moving = [n for n in openarm.geometry if n not in openarm_model.static_links]
    shape, centres = (40, 40, 40), []
    cells = np.zeros((count, *shape), bool)
    positions = np.zeros((count, 3))
    for i in range(count):
        pieces = posed_pieces(openarm, q[i])
        vertices = np.concatenate(pieces[str(rng.choice(moving))])
        target = vertices[rng.integers(len(vertices))] + rng.normal(size=3) * rng.choice([0.003, 0.01, 0.03])
        index = rng.integers(0, 40, 3)
        cells[i, *index] = True
        local = (index + 0.5) * cell
        positions[i] = np.float32(target - rotation.apply(local))
        centres.append(positions[i] + rotation.apply(local))
    lattice = grid(cells, cell, (0, 0, 0), rotation)
    lattice = replace(lattice, position=torch.from_numpy(positions.astype(np.float32)))
    return q, lattice, np.array(centres), moving


@pytest.mark.parametrize("cell", [0.01, 0.02, 0.05])
def test_cells_get_the_verdict_of_the_reference(openarm, openarm_model: CollisionModel, cell: float) -> None:
    """Single cells in tilted lattices, thousands of links against them: the same verdict unless within rounding."""
    count = 150
    q, lattice, centres, moving = single_cells(openarm_model, openarm, count, cell, TILT, int(1000 * cell))
    checker = CollisionChecker(openarm_model, count, self_margin=0.0, world_margin=MARGIN)
    checker.set_voxels(lattice)
    alone = checker.check(torch.from_numpy(q), world=False).clear.numpy()
    verdict = checker.check(torch.from_numpy(q))
    full = checker.check(torch.from_numpy(q), distances=True)
    hits = 0
    for i in range(count):
        if not alone[i]:
            continue
        pieces = posed_pieces(openarm, q[i])
        corners = cell_corners(centres[i], cell, TILT.as_matrix())
        near = {n: min(hull_distance(p, corners) for p in pieces[n]) for n in moving if _close(pieces[n], centres[i])}
        truth = min(near.values(), default=np.inf)
        if abs(truth - MARGIN) < 10e-6:
            continue
        hits += truth < MARGIN
        assert (verdict.kind[i] == Kind.WORLD) == (truth < MARGIN), f"{truth=}"
        assert (full.kind[i] == Kind.WORLD) == (truth < MARGIN)
        if verdict.kind[i] == Kind.WORLD:
            name = openarm_model.link_names[int(verdict.party_a[i])]
            assert near[name] <= MARGIN + 10e-6
            assert float(verdict.distance[i]) <= near[name]
    assert hits > count / 10


def _close(pieces, centre) -> bool:
    return min(np.linalg.norm(np.concatenate(pieces) - centre, axis=1)) < 0.25


def test_a_cell_is_a_full_cube_and_the_stop_rule_is_at_most_the_margin() -> None:
    """One box of 0.1 m, one cell of 0.04 m: the gap is measured to the cube's face, edge and corner."""
    model = build_model(sliders(2, spacing=5.0))
    checker = CollisionChecker(model, 4, world_margin=MARGIN)
    cells = np.zeros((4, 4, 4, 4), bool)
    cells[:, 1, 2, 3] = True
    lattice = grid(cells, 0.04, (0.0, 0.0, 0.0))
    centre = np.array([0.06, 0.10, 0.14])
    gaps = np.array([0.0049, 0.0051, 0.0049, 0.0051])
    directions = np.array([(1, 0, 0), (1, 0, 0), (0.6, 0.8, 0.0), (0.6, 0.8, 0.0)])
    faces = np.array([(0.07, 0, 0), (0.07, 0, 0), (0.07, 0.07, 0), (0.07, 0.07, 0)])
    lattice = replace(lattice, position=torch.tensor(faces + gaps[:, None] * directions - centre, dtype=torch.float32))
    checker.set_voxels(lattice)
    verdict = checker.check(torch.zeros(4, 2), distances=True)
    assert verdict.kind.tolist() == [Kind.WORLD, Kind.CLEAR, Kind.WORLD, Kind.CLEAR]
    np.testing.assert_allclose(verdict.distance, gaps, atol=10e-6)
    assert not verdict.bound.any()
    assert cell_indices(int(verdict.party_b[0]), (1, 1, 1)) == (1, 2, 3)
    assert checker.describe(verdict, 0) == "box0 against map cell (1, 2, 3)"


def test_the_lowest_cell_is_named_whatever_lies_nearer() -> None:
    model = build_model(sliders(2, spacing=5.0))
    checker = CollisionChecker(model, 1)
    cells = np.zeros((1, 12, 12, 300), bool)
    cells[0, 4:9, 4:9, 130:170] = True
    checker.set_voxels(grid(cells, 0.01, (-0.06, -0.06, -1.5)))
    verdict = checker.check(torch.zeros(1, 2))
    occupied = [tuple(index) for index in np.argwhere(cells[0])]
    codes = sorted(64 * ((x // 4 * 3 + y // 4) * 75 + z // 4) + (x % 4 * 4 + y % 4) * 4 + z % 4 for x, y, z in occupied)
    lowest = next(c for c in codes if _reaches(cell_indices(-c - 2, (3, 3, 75))))
    assert cell_code(int(verdict.party_b[0])) == lowest


def _reaches(index: tuple[int, int, int]) -> bool:
    """Whether a 1 cm cell of that test comes within 5 mm of the 10 cm cube at the origin."""
    low = np.array(index) * 0.01 + (-0.06, -0.06, -1.5)
    away = np.maximum(0.0, np.maximum(low - 0.05, -0.05 - (low + 0.01)))
    return bool(np.linalg.norm(away) <= MARGIN + 5e-6)


def test_static_links_are_left_out_of_the_world_only() -> None:
    model = build_model(pincer())
    checker = CollisionChecker(model, 1)
    cells = np.zeros((1, 8, 8, 8), bool)
    cells[0, 4, 4, 4] = True
    checker.set_voxels(grid(cells, 0.02, (-0.29, -0.09, -0.09)))  # inside the pedestal
    assert checker.check(torch.zeros(1, 6)).clear.all()
    floating = CollisionChecker(build_model(pincer(), fixed_base=False), 1)
    floating.set_voxels(grid(cells, 0.02, (-0.29, -0.09, -0.09)))
    verdict = floating.check(torch.zeros(1, 6))
    assert verdict.kind[0] == Kind.WORLD and floating.describe(verdict, 0).startswith("pedestal against map cell")


@pytest.mark.parametrize("side", ["left", "right"])
def test_b13_a_question_about_a_gripper_asks_its_follower_too(pincer_model: CollisionModel, side: str) -> None:
    """A 5 mm cube 2 mm inside the follower's tip, the leader clear of it."""
    checker = CollisionChecker(pincer_model, 1)
    y = 0.5 if side == "left" else -0.5
    tip = (0.4 + 0.3 + 0.05 + 0.08, y - 0.005 - 0.03 - 0.005, 0.0)  # follower's end, fingers open by 0.03
    q = torch.zeros(1, 6)
    q[:, [2, 5]] = 0.03
    cube = Primitives.of(["cube"], [ConvexShape.box((0.005,) * 3)], poses(1, (tip[0] + 0.0005, tip[1], 0.0))[:, None])
    checker.set_primitives(cube)
    verdict = checker.check(q, links=f"gripper:{side}")
    assert verdict.kind[0] == Kind.WORLD
    assert checker.describe(verdict, 0) == f"{side}_follower against cube"
    other = "right" if side == "left" else "left"
    assert checker.check(q, links=f"gripper:{other}").clear.all()
    with pytest.raises(CollisionModelError, match="it has: left, right"):
        checker.check(q, links="gripper:middle")


def test_primitives_by_hand(pincer_model: CollisionModel) -> None:
    """Sphere, capsule, box and hull beside the left forearm's end face, gap 6 mm, 4 mm and touching."""
    shapes = [
        ConvexShape.sphere(0.02),
        ConvexShape.capsule(0.02, 0.1),
        ConvexShape.box((0.04,) * 3),
        ConvexShape(ConvexShape.box((0.04,) * 3).vertices),
        ConvexShape.cylinder(0.02, 0.04),
    ]
    names = ["sphere", "capsule", "box", "hull", "cylinder"]
    top = 0.025 + 0.02  # forearm's upper face, and the shapes' reach down from their centres
    reach = [top, top + 0.05, top, top, top]
    checker = CollisionChecker(pincer_model, 3)
    for k, (name, shape) in enumerate(zip(names, shapes, strict=True)):
        at = torch.tensor([pose((0.55, 0.5, reach[k] + gap)) for gap in (0.006, 0.004, 0.0)], dtype=torch.float32)
        checker.set_primitives(Primitives.of([name], [shape], at[:, None]))
        verdict = checker.check(torch.zeros(3, 6), distances=True)
        assert verdict.kind.tolist() == [Kind.CLEAR, Kind.WORLD, Kind.WORLD], name
        np.testing.assert_allclose(verdict.distance, [0.006, 0.004, 0.0], atol=10e-6, err_msg=name)
        assert checker.describe(verdict, 1) == f"left_lower against {name}"


def test_shapes_off_their_centre_are_where_they_were_put(pincer_model: CollisionModel) -> None:
    """A hull given far from its own origin, turned: its frame is the caller's, not its box's."""
    checker = CollisionChecker(pincer_model, 1)
    turn = Rotation.from_euler("x", 90, degrees=True)
    corner = ConvexShape(ConvexShape.box((0.04,) * 3).vertices + np.array([0.3, 0.2, 0.1]))
    centre = turn.apply((0.3, 0.2, 0.1))
    at = np.array([0.55, 0.5, 0.025 + 0.02 + 0.02]) - centre
    checker.set_primitives(Primitives.of(["hull"], [corner], poses(1, at, turn)[:, None]))
    np.testing.assert_allclose(checker.check(torch.zeros(1, 6), distances=True).distance, [0.02], atol=10e-6)


def test_b33_a_primitive_that_is_not_there_does_not_count(pincer_model: CollisionModel) -> None:
    checker = CollisionChecker(pincer_model, 2)
    at = poses(2, (0.55, 0.5, 0.0))[:, None]
    block = Primitives(("block",), (ConvexShape.box((0.04,) * 3),), at, torch.tensor([[True], [False]]))
    checker.set_primitives(block)
    assert checker.check(torch.zeros(2, 6)).clear.tolist() == [False, True]
    checker.move_primitives(at, torch.tensor([[False], [True]]))
    assert checker.check(torch.zeros(2, 6)).clear.tolist() == [True, False]


def test_b48_far_environments_answer_as_near_ones(pincer_model: CollisionModel) -> None:
    """Base and obstacle 100 m and 1000 m from the origin of a shared frame: positions are subtracted first."""
    away = torch.tensor([0.0, 100.0, 1000.0])
    base = torch.zeros(3, 7)
    base[:, 3] = 1.0
    base[:, 0] = away
    at = torch.tensor([pose((0.5, 0.5, 0.0625))] * 3, dtype=torch.float32)
    at[:, 0] += away  # 0.5 and 0.0625 are exact beside 1000 in float32
    checker = CollisionChecker(pincer_model, 3)
    checker.set_primitives(Primitives.of(["ball"], [ConvexShape.sphere(0.015625)], at[:, None]))
    verdict = checker.check(torch.zeros(3, 6), base, distances=True)
    assert (verdict.distance == verdict.distance[0]).all()
    np.testing.assert_allclose(verdict.distance, 0.0625 - 0.015625 - 0.025, atol=10e-6)


def test_moving_everything_together_changes_nothing(openarm, openarm_model: CollisionModel) -> None:
    """A turned and shifted base with its lattice and primitive: the same least distances."""
    q, lattice, _, _ = single_cells(openarm_model, openarm, 40, 0.02, TILT, 3)
    turn, shift = Rotation.from_euler("xyz", (0.3, -0.2, 2.0)), np.array([1.0, -2.0, 0.5])
    checker = CollisionChecker(openarm_model, 40)
    checker.set_voxels(lattice)
    here = checker.check(torch.from_numpy(q), distances=True)
    moved = replace(
        lattice,
        position=torch.from_numpy((turn.apply(lattice.position.numpy()) + shift).astype(np.float32)),
        orientation_wxyz=poses(40, (0, 0, 0), turn * TILT)[:, 3:],
    )
    checker.set_voxels(moved)
    there = checker.check(torch.from_numpy(q), poses(40, shift, turn), distances=True)
    away = ~torch.isclose(here.distance, torch.tensor(MARGIN), atol=1e-5)
    assert torch.equal(here.kind[away], there.kind[away])
    clear = here.clear & there.clear
    np.testing.assert_allclose(here.distance[clear], there.distance[clear], atol=5e-6)


def test_unknown_cells_are_counted_or_solid() -> None:
    model = build_model(sliders(2, spacing=5.0))
    checker = CollisionChecker(model, 2)
    cells = np.zeros((2, 12, 12, 12), bool)
    hidden = cells.copy()
    hidden[1, 4:8, 4:8, 4:8] = True
    lattice = grid(cells, 0.01, (-0.06, -0.06, -0.06), unknown=hidden)
    checker.set_voxels(lattice)
    verdict = checker.check(torch.zeros(2, 2))
    assert verdict.clear.all()
    assert verdict.unknown_cells.tolist() == [0, 64]
    checker.set_voxels(lattice.with_unknown_occupied())
    assert checker.check(torch.zeros(2, 2)).clear.tolist() == [True, False]


def test_stale_or_missing_maps_refuse_unless_the_world_is_not_asked(pincer_model: CollisionModel) -> None:
    checker = CollisionChecker(pincer_model, 3)
    status = torch.tensor([MapStatus.FRESH, MapStatus.STALE, MapStatus.NONE], dtype=torch.int8)
    verdict = checker.check(torch.zeros(3, 6), map_status=status)
    assert verdict.kind.tolist() == [Kind.CLEAR, Kind.STALE_MAP, Kind.NO_MAP]
    assert checker.check(torch.zeros(3, 6), map_status=status, world=False).clear.all()


def test_grasp_region_exempts_the_contact_links_inside_it_only(pincer_model: CollisionModel) -> None:
    checker = CollisionChecker(pincer_model, 2)
    hand, cells = np.array([0.7, 0.5, 0.0]), np.zeros((2, 40, 40, 40), bool)
    origin = hand - 0.2
    for env, point in enumerate(np.array([(0.10, 0.007, 0.0), (0.0, 0.0, 0.0)])):  # in the left jaw; in the palm
        cells[env, *((hand + point - origin) / 0.01).astype(int)] = True
    checker.set_voxels(grid(cells, 0.01, origin))
    q = torch.zeros(2, 6)
    assert checker.check(q).clear.tolist() == [False, False]
    region = poses(2, hand + np.array([0.09, 0.0, 0.0]))
    checker.set_grasp_region("left", region, torch.full((2, 3), 0.3))
    verdict = checker.check(q)
    assert verdict.clear.tolist() == [True, False]
    assert checker.describe(verdict, 1).startswith("left_palm against map cell")
    checker.set_grasp_region("left", region, torch.full((2, 3), 0.01))
    assert checker.check(q).clear.tolist() == [False, False], "the cell's centre must lie in the region"
    checker.clear_grasp_region("left")
    assert checker.check(q).clear.tolist() == [False, False]
    checker.set_grasp_region("right", region, torch.full((2, 3), 0.3))
    assert checker.check(q).clear.tolist() == [False, False], "one hand's region is not the other's"


def test_grasp_region_exempts_primitives_wholly_inside_or_named(pincer_model: CollisionModel) -> None:
    checker = CollisionChecker(pincer_model, 1)
    at = (0.7 + 0.12, 0.5, 0.0)
    checker.set_primitives(Primitives.of(["pin"], [ConvexShape.capsule(0.004, 0.05)], poses(1, at)[:, None]))
    q = torch.zeros(1, 6)
    assert not checker.check(q).clear.any()
    checker.set_grasp_region("left", poses(1, at), torch.tensor([[0.03, 0.03, 0.05]]))
    assert not checker.check(q).clear.any(), "it sticks out of the region"
    checker.set_grasp_region("left", poses(1, at), torch.tensor([[0.03, 0.03, 0.06]]))
    assert checker.check(q).clear.all()
    checker.set_grasp_region("left", poses(1, at), torch.tensor([[0.03, 0.03, 0.01]]), primitive="pin")
    assert checker.check(q).clear.all()
    with pytest.raises(CollisionModelError, match="no primitive 'cup'.*pin"):
        checker.set_grasp_region("left", poses(1, at), torch.full((1, 3), 0.1), primitive="cup")


def test_parts_past_the_maps_edges_are_counted(pincer_model: CollisionModel) -> None:
    """A free map around both arms, the same without the left fingertips, and none of it on the arms at all."""
    checker = CollisionChecker(pincer_model, 1, world_margin=0.0)
    cells = np.zeros((1, 40, 40, 12), bool)  # 5 cm: 2.0 x 2.0 x 0.6 m
    moving = int((pincer_model.bodies.gate == 0).sum()) - len(pincer_model.static_links)
    for x, count in ((-0.5, 0), (-1.181, 2), (9.0, moving)):
        checker.set_voxels(grid(cells, 0.05, (x, -1.0, -0.3)))
        # Stretched, the fingers reach to x = 0.83 m; the right arm is folded back.
        verdict = checker.check(torch.tensor([[0.0, 0.0, 0.0, 0.0, -2.8, 0.0]]))
        assert verdict.clear.all() and int(verdict.outside_map[0]) == count, x


def test_margins_are_wider_where_they_are_asked_to_be_and_nowhere_else() -> None:
    """Boxes 0.1 m wide, 20 mm apart."""
    checker = CollisionChecker(build_model(sliders()), 3)
    q = torch.tensor([[0.88, 0.0]]).repeat(3, 1)
    plain = checker.check(q).block
    verdict = checker.check(q, widen=torch.tensor([0.019, 0.021, 0.0]))
    assert verdict.kind.tolist() == [Kind.CLEAR, Kind.SELF, Kind.CLEAR]
    assert float(verdict.distance[1]) == pytest.approx(0.02, abs=2e-5)
    assert torch.equal(checker.check(q).block, plain), "and only that time"
    broken = checker.check(q, widen=torch.tensor([0.0, torch.nan, -1e-3]))
    assert broken.clear.tolist() == [True, False, False]


@pytest.mark.parametrize("away", [0.0, 100.0, 1000.0])
def test_b48_a_shape_off_its_frames_middle_stays_where_it_is_far_from_the_origin(away: float) -> None:
    checker = CollisionChecker(build_model(sliders()), 3, world_margin=0.0)
    near = torch.tensor(pose((0.0, 0.0, 0.0), Rotation.from_euler("xyz", [0.3, -0.2, 1.1])), dtype=torch.float32)
    w, x, y, z = near[3:].double().tolist()
    turn = Rotation.from_quat([x, y, z, w])
    # Cubes of 5 mm whose own frame is far from them; on the env's lattice of float32 only that frame can lie.
    middles = np.array([[0.0527, 0.0113, 0.0031], [0.0531, -0.0007, 0.0291], [0.0777, 0.0203, -0.0119]])
    cube = np.array(list(itertools.product((-0.0025, 0.0025), repeat=3)))
    shapes = [ConvexShape(turn.inv().apply(middle + cube)) for middle in middles]
    base = torch.tensor([[away, -away, 0.5 * away, 1.0, 0.0, 0.0, 0.0]] * 3)
    at = base[:, None].repeat(1, 3, 1)
    at[..., 3:] = near[3:]
    there = torch.eye(3, dtype=torch.bool)
    checker.set_primitives(Primitives(("a", "b", "c"), tuple(shapes), at, there))
    verdict = checker.check(torch.zeros(3, 2), base, distances=True)
    truth = [np.linalg.norm(np.maximum(np.abs(middle) - 0.05 - 0.0025, 0.0)) for middle in middles]
    found = verdict.distance.double().numpy()
    assert not verdict.bound.any()
    assert (found <= truth).all()
    assert (found >= np.array(truth) - 1e-5).all()
