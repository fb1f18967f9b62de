"""The support table loses nothing: against trying every vertex in double, cell borders included."""

from __future__ import annotations

import numpy as np
import pytest

from simulo.collision.shapes import ConvexShape
from tests.collision.hulls import HullPool, random_hull


def border_directions(rng: np.random.Generator) -> np.ndarray:
    """Directions on and one float32 step beside the borders of the finest cells, and the cube's edges and corners."""
    grid = np.linspace(-1.0, 1.0, 257)
    steps = np.concatenate([grid, np.nextafter(np.float32(grid), 2.0), np.nextafter(np.float32(grid), -2.0)])
    u, v = (
        rng.choice(steps, 20000),
        np.where(rng.random(20000) < 0.5, rng.choice(steps, 20000), rng.uniform(-1, 1, 20000)),
    )
    d = np.stack([np.where(rng.random(20000) < 0.5, 1.0, -1.0), u, v], axis=1)
    return np.array([np.roll(row, rng.integers(3)) for row in d])


def rim(sides: int) -> np.ndarray:
    """A cylinder along z: at its axis every rim vertex is extreme."""
    a = 2 * np.pi * np.arange(sides) / sides
    ring = np.stack([0.05 * np.cos(a), 0.05 * np.sin(a)], axis=1)
    return np.concatenate([np.c_[ring, np.full(sides, z)] for z in (-0.1, 0.1)])


SHAPES = {
    "30": lambda rng: random_hull(rng, 30),
    "320": lambda rng: random_hull(rng, 320),
    "1000": lambda rng: random_hull(rng, 1000),
    "cylinder": lambda rng: rim(180),
    "needle": lambda rng: random_hull(rng, 40) * (100.0, 0.01, 0.01),
    "plate": lambda rng: np.c_[rng.normal(size=(50, 2)), np.zeros(50)],
    "repeated": lambda rng: np.repeat(random_hull(rng, 12), 3, axis=0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_table_finds_an_extreme_vertex(name: str) -> None:
    rng = np.random.default_rng(1)
    shape = ConvexShape(SHAPES[name](rng))
    pool = HullPool([shape])
    vertices = pool.vertices(0, shape)
    assert len(pool.packed[0].cells) > 0, "the table must be what is tested"
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    directions = np.concatenate([rng.normal(size=(40000, 3)), border_directions(rng), axes]).astype(np.float32)
    found = pool.supports(0, directions)
    d = directions.astype(np.float64)
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    loss = (d @ vertices.T).max(1) - (d * found).sum(1)
    # Float32 dot products may prefer a vertex that is lower by rounding: 2e-7 of the hull's size.
    assert loss.max() <= 2e-7 * np.abs(vertices).max()
    assert loss.min() >= -1e-12, "found points must be vertices"


def test_supports_of_boxes_spheres_and_the_zero_direction() -> None:
    pool = HullPool(
        [
            ConvexShape.box((0.2, 0.4, 0.6)),
            ConvexShape.sphere(0.1),
            ConvexShape(random_hull(np.random.default_rng(0), 30)),
        ]
    )
    np.testing.assert_allclose(pool.supports(0, [(1.0, -2.0, 0.5)]), [(0.1, -0.2, 0.3)], atol=1e-7)
    np.testing.assert_array_equal(pool.supports(1, [(1.0, 2.0, 3.0)]), [(0.0, 0.0, 0.0)])
    assert np.isfinite(pool.supports(2, [(0.0, 0.0, 0.0)])).all()
