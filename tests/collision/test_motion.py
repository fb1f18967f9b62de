"""The way between configurations: levers that bound, and verdicts against many samples of the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from simulo.collision import (
    CollisionChecker,
    CollisionModel,
    ConvexShape,
    Kind,
    Payload,
    Primitives,
    VoxelGrid,
    build_clearance,
    build_model,
    build_motion_bounds,
)
from simulo.collision.reference import hull_distance, posed_pieces
from simulo.description import RobotDescription, reference_fk
from simulo.errors import CollisionModelError
from tests.collision.robots import pincer, sliders
from tests.collision.worlds import poses

SAMPLES = 129


def limits_of(robot: RobotDescription) -> list[tuple[float, float]]:
    return [(joint.lower, joint.upper) for joint in robot.joints]


def moving_checker(robot: RobotDescription, num_envs: int, **options) -> CollisionChecker:
    model = build_model(robot)
    maps = build_clearance(model)
    return CollisionChecker(model, num_envs, motion=build_motion_bounds(model), clearance=maps, **options)


def draw(robot: RobotDescription, count: int, rng: np.random.Generator) -> np.ndarray:
    low, high = np.array(limits_of(robot)).T
    return rng.uniform(low, high, (count, len(low)))


def vertices_of(robot: RobotDescription, model: CollisionModel, body: int) -> np.ndarray:
    """Of the pieces that a body stands for: all of its link, or one of a few that are bodies each, in their order."""
    bodies = np.flatnonzero((model.bodies.link == model.bodies.link[body]) & (model.bodies.gate == 0))
    pieces = robot.geometry[model.link_names[model.bodies.link[body]]].pieces
    mine = pieces if len(bodies) == 1 else [pieces[int(np.flatnonzero(bodies == body)[0])]]
    return np.concatenate([piece.vertices for piece in mine])


@pytest.mark.parametrize("name", ["pincer", "openarm"])
def test_no_point_of_a_body_moves_faster_than_its_lever(name: str, openarm: RobotDescription) -> None:
    """Every vertex of every piece, by central differences of the float64 kinematics."""
    robot = pincer() if name == "pincer" else openarm
    model = build_model(robot)
    bounds, rng, step = build_motion_bounds(model), np.random.default_rng(1), 1e-5
    plain = [b for b in range(len(model.bodies.body)) if model.bodies.gate[b] == 0]
    tightest = np.full(bounds.body.shape, np.inf)
    for q in draw(robot, 100 if name == "pincer" else 25, rng):
        for column in range(len(q)):
            ends = [reference_fk(robot, q + sign * step * np.eye(len(q))[column]) for sign in (-1.0, 1.0)]
            for b in plain:
                link = model.link_names[model.bodies.link[b]]
                points = vertices_of(robot, model, b)
                before, after = (points @ pose[link][:3, :3].T + pose[link][:3, 3] for pose in ends)
                speed = np.linalg.norm(after - before, axis=1).max() / (2.0 * step)
                assert speed <= bounds.body[b, column] + 1e-6
                if speed > 1e-3:
                    tightest[b, column] = min(tightest[b, column], bounds.body[b, column] / speed)
    assert np.median(tightest[np.isfinite(tightest)]) < 1.2, "and not much more than the fastest of them"


def test_the_pincers_levers_are_those_of_its_stretched_arm() -> None:
    """Shoulder to fingertip: 0.40 + 0.30 + 0.05 + 0.08 m along the arm, and 5 + 40 + 10 mm (and a slide's overrun)
    across; the finger itself slides 1 m per m; the follower mirrors it."""
    model = build_model(pincer())
    bounds = build_motion_bounds(model)
    column = {name: i for i, name in enumerate(model.joint_names)}
    body = {model.link_names[link]: b for b, link in enumerate(model.bodies.link) if model.bodies.gate[b] == 0}
    reach = np.hypot(0.83, np.hypot(0.055 + 0.01, 0.0))
    for finger in ("left_jaw", "left_follower"):
        lever = bounds.body[body[finger]]
        assert reach <= lever[column["left_shoulder"]] < 1.03 * reach
        assert lever[column["left_finger"]] == pytest.approx(1.0, rel=1e-4) and lever[column["left_finger"]] >= 1.0
        assert not lever[column["right_shoulder"]] and not lever[column["right_finger"]]
    assert not bounds.body[body["pedestal"]].any()
    assert [column[c] for c in ("left_finger", "right_finger")] == np.flatnonzero(bounds.slides).tolist()
    assert bounds.high[column["left_finger"]] == pytest.approx(0.05)


@pytest.mark.parametrize("size", [0.02, 0.3])
def test_no_pairs_distance_changes_faster_than_its_levers(size: float) -> None:
    """Distances of whole links in float64 (Wolfe's algorithm), between two random configurations."""
    robot, rng = pincer(), np.random.default_rng(2)
    model = build_model(robot)
    bounds = build_motion_bounds(model)
    plain = range(model.pair_arrays.num_plain)
    sharp = 0.0
    for q in draw(robot, 25, rng):
        low, high = np.array(limits_of(robot)).T
        other = np.clip(q + rng.uniform(-size, size, len(q)), low, high)
        here, there = posed_pieces(robot, q), posed_pieces(robot, other)
        for p in plain:
            a, b = (model.link_names[i] for i in model.pair_arrays.links[p])
            change = abs(hull_distance(here[a][0], here[b][0]) - hull_distance(there[a][0], there[b][0]))
            most = float(bounds.pair[p].astype(np.float64) @ np.abs(other - q))
            assert change <= most + 1e-9, (a, b)
            sharp = max(sharp, change / most if most else 0.0)
    assert sharp > 0.7, "a bound that no pair comes near would say little"


def test_a_held_ball_moves_no_faster_than_its_levers() -> None:
    robot, rng, radius = pincer(), np.random.default_rng(3), 0.12
    model = build_model(robot)
    bounds = build_motion_bounds(model)
    hand = model.link_index("left_palm")
    for q in draw(robot, 60, rng):
        low, high = np.array(limits_of(robot)).T
        other = np.clip(q + rng.uniform(-0.2, 0.2, len(q)), low, high)
        change, local = np.abs(other - q), rng.normal(size=3)
        local *= radius / np.linalg.norm(local)
        here, there = (reference_fk(robot, v)["left_palm"] for v in (q, other))
        moved = np.linalg.norm((here[:3, :3] - there[:3, :3]) @ local + here[:3, 3] - there[:3, 3])
        assert moved <= (bounds.origin[hand] + radius * bounds.ball[hand]) @ change + 1e-9
        before, after = posed_pieces(robot, q), posed_pieces(robot, other)
        at = [pose[:3, :3] @ local + pose[:3, 3] for pose in (here, there)]
        for b in np.flatnonzero(model.bodies.gate == 0):
            link = model.link_names[model.bodies.link[b]]
            gaps = [hull_distance(p[link][0], x[None]) for p, x in zip((before, after), at, strict=True)]
            most = (bounds.origin_to[hand, b] + radius * bounds.ball_to[hand, b]) @ change
            assert abs(gaps[0] - gaps[1]) <= most + 1e-9, link


def test_boxes_that_change_places_meet_on_the_way() -> None:
    """0.1 m boxes 1 m apart on one rail: clear at both ends, in one place between."""
    checker, plain = moving_checker(sliders(), 2), CollisionChecker(build_model(sliders()), 2)
    there = torch.tensor([[2.0, 0.0], [0.85, 0.0]])
    assert plain.check(there).clear.all()
    verdict = checker.check(there, start=torch.zeros(2, 2))
    assert verdict.kind.tolist() == [Kind.SELF, Kind.CLEAR]
    assert checker.describe(verdict, 0) == "box0 against box1"
    # They touch from x = 0.9 on, 0.45 of the way.
    assert float(verdict.between[0]) == pytest.approx(0.45, abs=1e-3)
    assert -1e-3 < float(verdict.distance[0]) <= 1e-6 and bool(verdict.bound[0]) and int(verdict.row[0]) == 0
    assert float(verdict.between[1]) == 0.0


def test_rows_are_ways_from_one_another_and_the_first_from_the_start() -> None:
    checker = moving_checker(sliders(), 3, horizon=3)
    stay = [[0.0, 0.0]] * 3
    crossing = [[0.0, 0.0], [0.0, 0.0], [2.0, 0.0]]
    q = torch.tensor([stay, crossing, [[2.0, 0.0]] * 3])
    verdict = checker.check(q, start=torch.zeros(3, 2))
    assert verdict.clear.tolist() == [True, False, False]
    assert verdict.row.tolist() == [-1, 2, 0]
    assert checker.check(q, start=torch.tensor([[0.0, 0.0], [0.0, 0.0], [2.0, 0.0]])).row.tolist() == [-1, 2, -1]


def test_a_row_that_is_refused_is_so_for_itself() -> None:
    checker, plain = moving_checker(sliders(), 1), CollisionChecker(build_model(sliders()), 1)
    q = torch.tensor([[0.95, 0.0]])
    verdict = checker.check(q, start=torch.zeros(1, 2))
    assert torch.equal(verdict.block[:8], plain.check(q).block[:8]) and float(verdict.between[0]) == 0.0


@pytest.mark.parametrize("name", ["pincer", "openarm"])
def test_nothing_that_samples_of_the_way_meet_is_called_clear(name: str, openarm: RobotDescription) -> None:
    robot, count, rng = (pincer() if name == "pincer" else openarm), 400, np.random.default_rng(4)
    model = build_model(robot)
    plain = CollisionChecker(model, SAMPLES)
    low, high = np.array(limits_of(robot)).T
    start = draw(robot, 4 * count, rng)
    end = np.clip(start + rng.uniform(-2.5, 2.5, start.shape), low, high)
    ends = [torch.tensor(v, dtype=torch.float32) for v in (start, end)]
    wide = CollisionChecker(model, len(start))
    kept = (wide.check(ends[0]).clear & wide.check(ends[1]).clear).nonzero().flatten()[:count]
    here, there = (v[kept] for v in ends)
    bounds, maps = build_motion_bounds(model), build_clearance(model)
    checker = CollisionChecker(model, len(kept), motion=bounds, clearance=maps)
    verdict = checker.check(there, start=here)
    share = torch.linspace(0.0, 1.0, SAMPLES)[:, None]
    met = torch.tensor([not plain.check(a + share * (b - a)).clear.all() for a, b in zip(here, there, strict=True)])
    assert not (verdict.clear & met).any()
    assert met.sum() > 3, "ways that pass through something"
    assert (~verdict.clear & ~met).sum() <= 0.01 * len(kept), "and what is refused is nearly always met"
    alone = CollisionChecker(model, 1, motion=bounds, clearance=maps)
    for i in (0, len(kept) - 1, *(~verdict.clear).nonzero().flatten()[:3].tolist()):
        assert torch.equal(alone.check(there[i : i + 1], start=here[i : i + 1]).block[:, 0], verdict.block[:, i])


def fist(angle: float) -> torch.Tensor:
    """The pincer with its left arm swung out by an angle [rad], its right arm folded away."""
    return torch.tensor([[angle, 0.0, 0.0, -2.8, 0.0, 0.0]])


def test_the_world_stops_a_way_that_passes_through_it() -> None:
    """The left arm is swung over an obstacle at 45 degrees; a region or another place of it lets it pass."""
    checker = moving_checker(pincer(), 1)
    plain = CollisionChecker(build_model(pincer()), 1)
    place = (0.6 * np.cos(0.8), 0.5 + 0.6 * np.sin(0.8), 0.0)
    ball = Primitives.of(("ball",), (ConvexShape.sphere(0.02),), poses(1, place)[:, None])
    level = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    cells = torch.zeros(1, 4, 4, 4, dtype=torch.bool)
    cells[0, 1, 1, 1] = True
    corner = torch.tensor([place], dtype=torch.float32) - 0.03
    grid = VoxelGrid.from_cells(cells, 0.02, corner, level)
    for kind in ("primitive", "cell"):
        for each in (checker, plain):
            each.set_primitives(Primitives.of((), (), torch.zeros(1, 0, 7)))
            each.clear_voxels()
            each.set_primitives(ball) if kind == "primitive" else each.set_voxels(grid)
        assert plain.check(fist(0.0)).clear.all() and plain.check(fist(1.6)).clear.all()
        assert plain.check(fist(0.8)).kind[0] == Kind.WORLD
        verdict = checker.check(fist(1.6), start=fist(0.0))
        assert verdict.kind[0] == Kind.WORLD and 0.3 < float(verdict.between[0]) < 0.5, kind
        assert checker.check(fist(1.6), start=fist(0.0), world=False).clear.all()
        assert checker.check(fist(1.6), start=fist(1.5)).clear.all()


def test_what_a_hand_holds_is_seen_on_the_way() -> None:
    """A bar from the left hand sweeps a ball, and the folded right arm, that the arm itself passes clear of."""
    robot = pincer()
    checker, plain = moving_checker(robot, 1), CollisionChecker(build_model(robot), 1)
    place = (1.1 * np.cos(0.8), 0.5 + 1.1 * np.sin(0.8), 0.0)
    bar = Payload("left", ConvexShape.box((0.3, 0.02, 0.02)), poses(1, (0.3, 0.0, 0.0)))
    ball = Primitives.of(("ball",), (ConvexShape.sphere(0.02),), poses(1, place)[:, None])
    for each in (checker, plain):
        each.set_primitives(ball)
        each.attach(bar)
    assert plain.check(fist(0.0)).clear.all() and plain.check(fist(1.6)).clear.all()
    verdict = checker.check(fist(1.6), start=fist(0.0))
    assert verdict.kind[0] == Kind.PAYLOAD and 0.3 < float(verdict.between[0]) < 0.5
    assert checker.describe(verdict, 0) == "payload 0 of gripper left against ball"
    checker.detach("left")
    assert checker.check(fist(1.6), start=fist(0.0)).clear.all()


def test_a_payload_at_rest_sees_the_other_arm_come_by() -> None:
    """The left hand stands still with a ball held far out; only the right arm moves, through it."""
    robot = pincer()
    checker, plain = moving_checker(robot, 1), CollisionChecker(build_model(robot), 1)
    place = (0.6 * np.cos(0.4) - 0.7, 0.6 * np.sin(0.4) - 1.0, 0.0)
    here, half_way, there = (torch.tensor([[0.0, 0.0, 0.0, angle, 0.0, 0.0]]) for angle in (-0.2, 0.4, 1.0))
    for each in (checker, plain):
        each.attach(Payload("left", ConvexShape.sphere(0.02), poses(1, place)))
    assert plain.check(here).clear.all() and plain.check(there).clear.all()
    assert plain.check(half_way).kind[0] == Kind.PAYLOAD
    verdict = checker.check(there, start=here)
    assert verdict.kind[0] == Kind.PAYLOAD and 0.3 < float(verdict.between[0]) < 0.5
    assert checker.describe(verdict, 0).startswith("payload 0 of gripper left against right_")
    assert checker.check(here, start=here).clear.all()


@pytest.mark.parametrize("where", ["start", "target"])
def test_a_way_that_is_no_number_stops_its_environment_alone(where: str) -> None:
    checker = moving_checker(sliders(), 3)
    start, q = torch.zeros(3, 2), torch.full((3, 2), 0.01)
    good = checker.check(q, start=start).block
    (start if where == "start" else q)[1, 0] = torch.nan
    verdict = checker.check(q, start=start)
    assert verdict.kind.tolist() == [Kind.CLEAR, Kind.NON_FINITE, Kind.CLEAR]
    assert torch.equal(verdict.block[:, [0, 2]], good[:, [0, 2]])


def test_slides_beyond_their_limits_are_not_vouched_for() -> None:
    """What hangs on a slide moves as far as its limits allow, and 10 mm: bounds hold no further."""
    checker = moving_checker(pincer(), 1)
    open_wide = torch.tensor([[0.0, 0.0, 0.045, 0.0, 0.0, 0.0]])
    assert checker.check(open_wide, start=torch.zeros(1, 6)).clear.all()
    open_wide[0, 2] = 0.06
    assert checker.check(open_wide, start=torch.zeros(1, 6)).kind[0] == Kind.NOT_EVALUATED
    assert checker.check(torch.zeros(1, 6), start=open_wide).kind[0] == Kind.NOT_EVALUATED


def test_what_cannot_be_bounded_or_is_left_out_is_refused_by_name() -> None:
    robot = sliders()
    model = build_model(robot)
    endless = replace(robot, joints=(replace(robot.joints[0], upper=np.inf), robot.joints[1]))
    with pytest.raises(CollisionModelError, match="slide 'slide0' has no limits"):
        build_motion_bounds(build_model(endless))
    with pytest.raises(CollisionModelError, match="start says where the way to the first row begins"):
        moving_checker(robot, 1).check(torch.zeros(1, 2))
    with pytest.raises(CollisionModelError, match="pass both or neither"):
        CollisionChecker(model, 1).check(torch.zeros(1, 2), start=torch.zeros(1, 2))


@pytest.mark.parametrize("name", ["pincer", "openarm"])
def test_pairs_that_are_always_clear_are_never_nearer_than_that(name: str, openarm: RobotDescription) -> None:
    """Against MuJoCo's distances on the same hulls, at the ranges' ends and between; the proofs reach somewhere."""
    robot = pincer() if name == "pincer" else openarm
    model = build_model(robot)
    bounds, rng = build_motion_bounds(model), np.random.default_rng(5)
    proven = np.flatnonzero(bounds.always[: model.pair_arrays.num_plain])
    assert len(proven) >= (4 if name == "pincer" else 10)
    low, high = np.array(limits_of(robot)).T
    nearest = np.full(len(bounds.always), np.inf)
    for _ in range(60):
        share = rng.choice([0.0, 1.0, rng.uniform()], len(low))
        pieces = posed_pieces(robot, low + share * (high - low))
        for p in proven:
            a, b = (model.link_names[i] for i in model.pair_arrays.links[p])
            nearest[p] = min(nearest[p], *(hull_distance(x, y) for x in pieces[a] for y in pieces[b]))
    assert (nearest[proven] >= bounds.always[proven]).all()
    far = proven[nearest[proven] > 0.005]
    assert (bounds.always[far] > 0.2 * nearest[far]).all() and len(far) > 0.7 * len(proven)


def test_a_proof_over_the_ranges_says_nothing_outside_of_them() -> None:
    """Box 0 may come within 0.5 m of box 1; a way that leads it out of its range and through the other is no such."""
    robot = sliders()
    ranges = [(-0.4, 0.4), (0.0, 0.0)]
    short = tuple(replace(j, lower=lo, upper=hi) for j, (lo, hi) in zip(robot.joints, ranges, strict=True))
    robot = replace(robot, joints=short)
    model = build_model(robot)
    assert build_motion_bounds(model).always[0] > 0.2
    checker = CollisionChecker(model, 1, motion=build_motion_bounds(model))
    assert checker.check(torch.tensor([[0.4, 0.0]]), start=torch.zeros(1, 2)).clear.all()
    beyond = torch.tensor([[2.0, 0.0]])
    assert CollisionChecker(model, 1).check(beyond).clear.all()
    assert not checker.check(beyond, start=torch.zeros(1, 2)).clear.any()
