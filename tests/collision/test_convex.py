"""Certified distances against coal, hand values and properties that must hold whatever the shapes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from simulo.collision.reference import hull_depth, hull_distance, signed_distance
from simulo.collision.shapes import ConvexShape
from tests.collision.hulls import SLACK_M, HullPool, random_hull
from tests.collision.oracle import coal_distance, coal_hull, separated

EXACT_M = 10e-6  # what `bound=False` promises


def random_pairs(rng: np.random.Generator, hulls: int, pairs: int, far: float):
    shapes = [ConvexShape(random_hull(rng, int(n))) for n in rng.choice([5, 12, 30, 60, 200], hulls)]
    shapes += [ConvexShape.box(rng.uniform(0.01, 0.2, 3)) for _ in range(3)]
    pool = HullPool(shapes)
    a, b = rng.integers(0, len(shapes), (2, pairs))
    rotation = Rotation.random(pairs, random_state=int(rng.integers(1 << 30))).as_matrix().astype(np.float32)
    directions = rng.normal(size=(pairs, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    position = (directions * rng.uniform(0.0, far, (pairs, 1))).astype(np.float32)
    return shapes, pool, a, b, rotation, position


def test_random_hulls_against_coal() -> None:
    """Never above the truth; what is called exact is within 10 um below it; overlap and separation told apart."""
    rng = np.random.default_rng(2)
    shapes, pool, a, b, rotation, position = random_pairs(rng, 30, 4000, 0.5)
    gaps = pool.gaps(a, b, rotation, position)
    solids = [coal_hull(pool.vertices(i, shape)) for i, shape in enumerate(shapes)]
    truth = np.array([coal_distance(solids[a[i]], solids[b[i]], rotation[i], position[i]) for i in range(len(a))])
    apart = truth > 1e-6
    assert 0.3 < apart.mean() < 0.95, "both kinds of pair must be in the sample"
    assert (gaps.lower[apart] <= truth[apart]).all()
    assert (gaps.lower[~apart] <= 0.0).all()
    assert gaps.exact[apart].mean() > 0.999
    error = (truth - gaps.lower)[apart & gaps.exact]
    assert error.max() <= EXACT_M
    assert (gaps.capped == 0).all()


def test_slack_covers_the_arithmetic() -> None:
    """Without SLACK the float32 bound would exceed the double distance by at most a tenth of it."""
    rng = np.random.default_rng(3)
    shapes, pool, a, b, rotation, position = random_pairs(rng, 20, 600, 1.5)
    gaps = pool.gaps(a, b, rotation, position)
    worst = -np.inf
    for i in range(len(a)):
        left, right = pool.vertices(a[i], shapes[a[i]]), pool.vertices(b[i], shapes[b[i]])
        truth = hull_distance(left, right @ rotation[i].astype(float).T + position[i])
        if truth > 1e-5:
            worst = max(worst, gaps.lower[i] + SLACK_M - truth)
    assert worst <= 0.1 * SLACK_M


def test_bound_only_search_is_a_bound() -> None:
    """Asked only whether a pair is farther than 5 mm, the answer is a bound of the distance and decides rightly."""
    rng = np.random.default_rng(4)
    _, pool, a, b, rotation, position = random_pairs(rng, 20, 3000, 0.4)
    full, quick = pool.gaps(a, b, rotation, position), pool.gaps(a, b, rotation, position, above=0.005)
    assert (quick.lower <= full.lower + 2 * EXACT_M).all()
    np.testing.assert_array_equal(quick.lower > 0.005, full.lower > 0.005)
    assert (quick.exact & (quick.lower > 0.005)).sum() < full.exact.sum(), "some searches must have stopped early"


def test_b45_separated_hulls_are_never_at_zero() -> None:
    rng = np.random.default_rng(45)
    shapes, gap, position = [], rng.uniform(1e-4, 0.2, 3000), np.zeros((3000, 3), np.float32)
    for i in range(3000):
        left, right = random_hull(rng, int(rng.integers(12, 61))), random_hull(rng, int(rng.integers(12, 61)))
        n = rng.normal(size=3)
        n /= np.linalg.norm(n)
        shapes += [ConvexShape(left), ConvexShape(right)]
        position[i] = n * ((left @ n).max() - (right @ n).min() + gap[i])
    pool = HullPool(shapes, table=False)  # six thousand tables would take a minute; the search is the same
    position += (pool.offset[1::2] - pool.offset[0::2]).astype(np.float32)
    index = np.arange(3000)
    gaps = pool.gaps(2 * index, 2 * index + 1, np.tile(np.eye(3), (3000, 1, 1)), position)
    assert (gaps.lower >= gap - 1e-5).all()
    assert (gaps.lower != 0.0).all()
    assert (gaps.capped == 0).all()


def test_b47_touching_boxes_flip_once() -> None:
    rng = np.random.default_rng(47)
    pool = HullPool([ConvexShape.box((0.1, 0.2, 0.3)), ConvexShape.box((0.2, 0.1, 0.1))])
    for rotation in Rotation.random(20, random_state=47).as_matrix():
        steps, face = np.linspace(-1e-4, 1e-4, 41), rng.integers(3)
        corners = ConvexShape.box((0.2, 0.1, 0.1)).vertices @ rotation.T
        # The corner that comes first meets the middle of the face.
        position = np.tile(-corners[np.argmin(corners[:, face])], (41, 1))
        position[:, face] += (0.05, 0.1, 0.15)[face] + steps
        gaps = pool.gaps(np.zeros(41), np.ones(41), np.tile(rotation, (41, 1, 1)), position)
        clear = gaps.lower > 0.0
        assert (np.diff(clear.astype(int)) != 0).sum() == 1
        assert not clear[steps <= 0.0].any(), "touching is a hit"
        assert clear[steps > 1e-5].all()


@pytest.mark.parametrize("size", [0.002, 0.1, 2.0])
def test_b47_coincident_cubes_are_as_deep_as_their_edge(size: float) -> None:
    pool = HullPool([ConvexShape.box((size,) * 3)])
    rotation = np.array([np.eye(3), Rotation.from_euler("z", 90, degrees=True).as_matrix()])
    gaps = pool.gaps([0, 0], [0, 0], rotation, np.zeros((2, 3)))
    assert np.isfinite(gaps.lower).all()
    np.testing.assert_allclose(gaps.lower, -size, atol=1e-5 + 1e-6 * size)


def test_b47_one_hull_twice() -> None:
    pool = HullPool([ConvexShape(random_hull(np.random.default_rng(0), 60))])
    gaps = pool.gaps([0], [0], [np.eye(3)], np.zeros((1, 3)))
    assert np.isfinite(gaps.lower[0]) and gaps.lower[0] < 0.0 and not gaps.exact[0]


def test_b48_small_shapes_are_not_missed() -> None:
    ball, centre = ConvexShape.sphere(0.01), np.array([0.019576, -1.03115, 0.398155])
    pool = HullPool([ball, ConvexShape.box((0.005,) * 3)])
    cubes = np.array([(0.0275, -1.0275, z) for z in (0.3925, 0.3975, 0.4025)])
    gaps = pool.gaps([0] * 3, [1] * 3, np.tile(np.eye(3), (3, 1, 1)), cubes - centre)
    np.testing.assert_allclose(-1e3 * gaps.lower, [3.621, 4.455, 4.157], atol=0.02)
    assert gaps.exact.all()


def test_b49_depth_is_along_a_face() -> None:
    pool = HullPool([ConvexShape.box((1.0,) * 3), ConvexShape.box((0.1,) * 3)])
    gaps = pool.gaps([0, 0], [1, 1], np.tile(np.eye(3), (2, 1, 1)), [(0.4, 0.4, 0.4), (0.0, 0.0, 0.0)])
    np.testing.assert_allclose(gaps.lower, [-0.15, -0.55], atol=2e-5)
    assert gaps.exact.all()


def test_depth_of_boxes_is_exact_and_of_hulls_a_bound() -> None:
    rng = np.random.default_rng(5)
    shapes = [ConvexShape.box((0.1, 0.2, 0.05)), ConvexShape.box((0.08, 0.04, 0.3)), ConvexShape(random_hull(rng, 30))]
    pool = HullPool(shapes)
    rotation = Rotation.random(60, random_state=5).as_matrix().astype(np.float32)
    position = rng.uniform(-0.05, 0.05, (60, 3)).astype(np.float32)
    for b in (1, 2):
        gaps = pool.gaps([0] * 60, [b] * 60, rotation, position)
        corners = shapes[0].vertices
        for i in np.flatnonzero(gaps.lower < -1e-4):
            other = pool.vertices(b, shapes[b]) @ rotation[i].astype(float).T + position[i]
            depth = hull_depth(corners, other)
            assert -gaps.lower[i] >= depth - 1e-6, "a depth may be overstated, never understated"
            if gaps.exact[i]:
                assert -gaps.lower[i] <= depth + EXACT_M
        assert gaps.exact[gaps.lower < -1e-4].all() == (b == 1)


def test_capsules_and_spheres_by_hand() -> None:
    pool = HullPool([ConvexShape.capsule(0.02, 0.1), ConvexShape.sphere(0.03)])
    positions = [(0.1, 0.0, 0.0), (0.0, 0.0, 0.2), (0.05, 0.0, 0.05), (0.0, 0.0, 0.0), (0.03, 0.0, 0.0)]
    gaps = pool.gaps([0] * 5, [1] * 5, np.tile(np.eye(3), (5, 1, 1)), positions)
    np.testing.assert_allclose(gaps.lower[[0, 1, 2, 4]], [0.05, 0.1, 0.0, -0.02], atol=EXACT_M)
    assert gaps.exact[[0, 1, 2, 4]].all()
    assert gaps.lower[3] <= -0.05 and np.isfinite(gaps.lower[3])


FLAT = {
    "point": [(0.0, 0.0, 0.0)],
    "segment": [(-0.1, 0.0, 0.0), (0.1, 0.0, 0.0)],
    "collinear": [(-0.1, 0.0, 0.0), (0.0, 0.0, 0.0), (0.1, 0.0, 0.0)],
    "triangle": [(0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.0, 0.1, 0.0)],
    "square": [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.1, 0.1)],
    "sliver": [(0.0, 0.0, 0.0), (0.2, 0.0, 0.0), (0.1, 1e-7, 0.0), (0.1, 0.0, 1e-7)],
    "tiny": [(1e-5 * x, 1e-5 * y, 1e-5 * z) for x in (0, 1) for y in (0, 1) for z in (0, 1)],
}


@pytest.mark.parametrize("first", FLAT)
@pytest.mark.parametrize("second", FLAT)
def test_degenerate_shapes_against_the_reference(first: str, second: str) -> None:
    """Coincident, touching, crossing and separated degenerate shapes: bounds that bound, and no NaN."""
    shapes = [ConvexShape(np.array(FLAT[first])), ConvexShape(np.array(FLAT[second]))]
    pool = HullPool(shapes)
    rng = np.random.default_rng(6)
    rotation = np.concatenate([np.tile(np.eye(3), (12, 1, 1)), Rotation.random(28, random_state=6).as_matrix()])
    position = np.concatenate([np.zeros((2, 3)), 0.1 * np.eye(3), 1e-6 * np.eye(3), np.eye(3), np.ones((1, 3)),
                               rng.uniform(-0.2, 0.2, (28, 3))])  # fmt: skip
    rotation, position = rotation.astype(np.float32), position.astype(np.float32)
    gaps = pool.gaps([0] * 40, [1] * 40, rotation, position)
    assert np.isfinite(gaps.lower).all()
    for i in range(40):
        left = pool.vertices(0, shapes[0])
        right = pool.vertices(1, shapes[1]) @ rotation[i].astype(float).T + position[i]
        truth = hull_distance(left, right)
        assert gaps.lower[i] <= truth + 1e-12
        if gaps.exact[i] and gaps.lower[i] > 0:
            assert truth - gaps.lower[i] <= EXACT_M
        if truth > 2e-5:
            assert gaps.lower[i] > 0.0, "what is clearly apart must be seen to be"


coordinates = st.floats(-0.3, 0.3, allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), position=st.tuples(coordinates, coordinates, coordinates))
def test_distance_is_symmetric_and_follows_rigid_motion(seed: int, position: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(seed)
    left, right = random_hull(rng, 20), random_hull(rng, 20)
    rotation = Rotation.random(random_state=seed).as_matrix()
    turn = Rotation.random(random_state=seed + 1).as_matrix()
    pool = HullPool([ConvexShape(left), ConvexShape(right), ConvexShape(left @ turn.T)])
    at = np.asarray(position)
    gaps = pool.gaps([0, 1, 2], [1, 0, 1], [rotation, rotation.T, turn @ rotation], [at, -rotation.T @ at, turn @ at])
    truth = signed_distance(left - pool.offset[0], (right - pool.offset[1]) @ rotation.T + at)
    moved = at + turn.T @ pool.offset[2] - pool.offset[0]
    if truth > 1e-4:
        np.testing.assert_allclose(gaps.lower[:2], truth, atol=EXACT_M)
    else:
        assert (gaps.lower[:2] <= max(truth, 0.0) + 1e-6).all()
    again = signed_distance(left - pool.offset[0], (right - pool.offset[1]) @ rotation.T + moved)
    if again > 1e-4:
        assert abs(gaps.lower[2] - again) <= EXACT_M


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_verdicts_agree_with_a_separating_plane(seed: int) -> None:
    """Clear only where linear programming finds a plane; a hit without a plane farther than 10 um off."""
    rng = np.random.default_rng(seed)
    left, right = random_hull(rng, 12), random_hull(rng, 12)
    rotation = Rotation.random(random_state=seed).as_matrix().astype(np.float32)
    position = rng.uniform(-0.15, 0.15, 3).astype(np.float32)
    shapes = [ConvexShape(left), ConvexShape(right)]
    pool = HullPool(shapes)
    gap = pool.gaps([0], [1], [rotation], [position])
    a = pool.vertices(0, shapes[0])
    b = pool.vertices(1, shapes[1]) @ rotation.astype(float).T + position
    if gap.lower[0] > 0.0:
        assert separated(a, b)
    else:
        assert hull_distance(a, b) <= EXACT_M
