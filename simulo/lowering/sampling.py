"""Points spread over triangles, the same every time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def on_triangles(triangles: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """Points on triangles (T, 3, 3), so many that each point of them has one within `spacing` [m].

    Triangles are halved across their longest edge, so slivers, of which CAD is full, take few points.
    """
    found = [triangles.reshape(-1, 3)]
    while len(triangles):
        edges = np.linalg.norm(triangles - np.roll(triangles, -1, axis=1), axis=2)
        large = edges.max(axis=1) > spacing
        triangles = halved(triangles[large], edges[large].argmax(axis=1))
        found.append(triangles[: len(triangles) // 2, 1])
    return np.concatenate(found)


def halved(triangles: NDArray[np.float64], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Triangles (T, 3, 3) cut in two across one edge each, 0 .. 2, shape (2 T, 3, 3): all first halves, then the
    second ones. A first half's second corner, and a second one's first, is the middle of the edge."""
    turned = np.take_along_axis(triangles, ((edges[:, None] + np.arange(3)) % 3)[:, :, None], axis=1)
    a, b, c = turned[:, 0], turned[:, 1], turned[:, 2]
    middle = 0.5 * (a + b)
    return np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])


def thinned(points: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """One of the points for each cube of a grid `spacing` [m] wide that holds any."""
    cells = np.round(points / spacing).astype(np.int64)
    cells -= cells.min(axis=0)
    size = cells.max(axis=0) + 1
    _, first = np.unique((cells[:, 0] * size[1] + cells[:, 1]) * size[2] + cells[:, 2], return_index=True)
    return points[np.sort(first)]


def hemisphere(count: int) -> NDArray[np.float64]:
    """Unit vectors spread over half a sphere, shape (count, 3): a Fibonacci spiral."""
    return _spiral(count, 0.0)


def sphere(count: int) -> NDArray[np.float64]:
    """Unit vectors spread over the sphere, shape (count, 3): a Fibonacci spiral."""
    return _spiral(count, -1.0)


def _spiral(count: int, lowest: float) -> NDArray[np.float64]:
    share = (np.arange(count) + 0.5) / count
    height = 1.0 - (1.0 - lowest) * share
    angle = np.pi * (1.0 + np.sqrt(5.0)) * (np.arange(count) + 0.5)
    ring = np.sqrt(1.0 - height**2)
    return np.column_stack([ring * np.cos(angle), ring * np.sin(angle), height])
