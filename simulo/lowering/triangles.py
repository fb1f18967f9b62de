"""Nearest points on triangles, in float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def nearest_on_any(points: NDArray[np.float64], triangles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest point on a set of triangles (T, 3, 3), for each of the points (P, 3); brute force, float64."""
    out = np.empty_like(points)
    for index, point in enumerate(points):
        candidates = nearest_on_each(np.broadcast_to(point, (len(triangles), 3)), triangles)
        out[index] = candidates[np.argmin(((candidates - point) ** 2).sum(axis=1))]
    return out


def nearest_on_each(points: NDArray[np.float64], triangles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest point on triangle i to point i, shapes (N, 3, 3) and (N, 3) (Ericson 2005, section 5.1.5)."""
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    ab, ac = b - a, c - a
    d1, d2 = _dot(ab, points - a), _dot(ac, points - a)
    d3, d4 = _dot(ab, points - b), _dot(ac, points - b)
    d5, d6 = _dot(ab, points - c), _dot(ac, points - c)
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    inside = np.select(
        [
            (d1 <= 0) & (d2 <= 0),
            (d3 >= 0) & (d4 <= d3),
            (d6 >= 0) & (d5 <= d6),
            (vc <= 0) & (d1 >= 0) & (d3 <= 0),
            (vb <= 0) & (d2 >= 0) & (d6 <= 0),
            (va <= 0) & (d4 - d3 >= 0) & (d5 - d6 >= 0),
        ],
        range(6),
        default=6,
    )
    total = va + vb + vc
    v = _choose(
        inside, [0.0, 1.0, 0.0, _ratio(d1, d1 - d3), 0.0, 1.0 - _ratio(d4 - d3, d4 - d3 + d5 - d6), _ratio(vb, total)]
    )
    w = _choose(
        inside, [0.0, 0.0, 1.0, 0.0, _ratio(d2, d2 - d6), _ratio(d4 - d3, d4 - d3 + d5 - d6), _ratio(vc, total)]
    )
    return a + v[:, None] * ab + w[:, None] * ac


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.einsum("ij,ij->i", a, b)


def _ratio(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> NDArray[np.float64]:
    """top / bottom where that is asked for; 0 where a degenerate triangle leaves nothing to divide by."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom != 0.0)


def _choose(index: NDArray[np.int64], choices: list[float | NDArray[np.float64]]) -> NDArray[np.float64]:
    """choices[index[i]][i] for every i."""
    return np.select([index == i for i in range(len(choices))], choices)
