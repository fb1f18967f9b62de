"""Convex hulls that are written to 1 nm and still hold every point they were made from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError

from simulo.description.certificate import MAX_VERTICES
from simulo.errors import LoweringError

GRID = 1e-9
"""[m] Hull vertices are written on this grid."""

_OUTWARD = 4.0 * GRID
_BATCH = 8


def certified_vertices(
    points: NDArray[np.float64], label: str, max_vertices: int = MAX_VERTICES, inflate: float = 0.0
) -> NDArray[np.float64]:
    """Vertices, shape (V, 3), of a polytope that holds every point and a ball of radius `inflate` [m] about it.

    At most `max_vertices`: a hull with more is replaced by a slightly larger polytope, never by a smaller one.
    Every face stands a few nm outside the points, so rounding to the grid loses none; this is checked, not assumed.
    Raises LoweringError (label names the link) when the points span no volume.
    """
    hull = convex_hull(points, label)
    corners = hull.points[hull.vertices]
    if inflate > 0.0 or len(corners) > max_vertices:
        corners = _reduced_outward(hull, label, max_vertices, inflate)
    written = _written(corners, label)
    stand_out = outside_by(hull.points[hull.vertices], written)
    if stand_out > 0.0 or len(written) > max_vertices:
        raise LoweringError(f"{label}: the written hull loses {stand_out * 1e9:.2f} nm of its points; report this mesh")
    return written


def convex_hull(points: NDArray[np.float64], label: str) -> ConvexHull:
    try:
        return ConvexHull(np.asarray(points, dtype=np.float64))
    except (QhullError, ValueError) as error:
        raise LoweringError(f"{label}: its shapes span no volume, so it has no hull; give it a thickness") from error


def outside_by(points: NDArray[np.float64], vertices: NDArray[np.float64]) -> float:
    """How far [m] the worst point stands out of the hull of `vertices`; negative when all are strictly inside."""
    planes = np.unique(ConvexHull(vertices).equations, axis=0)
    worst = -np.inf
    for start in range(0, len(points), 4096):
        worst = max(worst, float((points[start : start + 4096] @ planes[:, :3].T + planes[:, 3]).max()))
    return worst


def _written(corners: NDArray[np.float64], label: str) -> NDArray[np.float64]:
    """Corners moved away from an inner point until every face has room for the rounding, then rounded.

    Scaling about a point moves a face at distance r from it out by (scale - 1) * r, so the nearest face decides.
    """
    hull = convex_hull(corners, label)
    centre = corners.mean(axis=0)
    nearest = float(-(hull.equations[:, :3] @ centre + hull.equations[:, 3]).max())
    grown = centre + (corners - centre) * (1.0 + _OUTWARD / nearest)
    return np.unique(np.round(grown / GRID) * GRID, axis=0).round(9) + 0.0


def _reduced_outward(hull: ConvexHull, label: str, max_vertices: int, inflate: float) -> NDArray[np.float64]:
    """Corners of an intersection of supporting half-spaces of the (inflated) hull, at most `max_vertices` of them.

    Starts with 26 fixed directions and cuts, a few at a time, the corners that stand out most, each by the plane
    towards its nearest point on the hull: that is the cut which takes the most of it.
    """
    points = hull.points[hull.vertices]
    centre = points.mean(axis=0)
    normals = _start_normals()
    corners = _intersection(points, normals, inflate, centre, label)
    while True:
        gaps, directions = _worst_corners(hull, corners)
        useful = gaps > inflate + 1e-6
        if not useful.any():
            return corners
        candidate = np.concatenate([normals, directions[useful]])
        cut = _intersection(points, candidate, inflate, centre, label)
        if len(cut) > max_vertices:
            return corners
        normals, corners = candidate, cut


def _start_normals() -> NDArray[np.float64]:
    grid = np.array([[x, y, z] for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if (x, y, z) != (0, 0, 0)], float)
    return grid / np.linalg.norm(grid, axis=1, keepdims=True)


def _intersection(
    points: NDArray[np.float64], normals: NDArray[np.float64], inflate: float, centre: NDArray[np.float64], label: str
) -> NDArray[np.float64]:
    offsets = (points @ normals.T).max(axis=0) + inflate
    try:
        region = HalfspaceIntersection(np.column_stack([normals, -offsets]), centre)
    except QhullError as error:
        raise LoweringError(f"{label}: its hull cannot be reduced ({error})") from error
    return np.unique(region.intersections.round(12), axis=0)


def _worst_corners(hull: ConvexHull, corners: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The corners furthest from the hull: their distances, shape (B,), and unit directions from it, shape (B, 3)."""
    stand_out = (corners @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1)
    worst = corners[np.argsort(-stand_out, kind="stable")[: 4 * _BATCH]]
    nearest = nearest_on_triangles(worst, hull.points[hull.simplices])
    offsets = worst - nearest
    gaps = np.linalg.norm(offsets, axis=1)
    order = np.argsort(-gaps, kind="stable")[:_BATCH]
    return gaps[order], offsets[order] / np.maximum(gaps[order], 1e-300)[:, None]


def nearest_on_triangles(points: NDArray[np.float64], triangles: NDArray[np.float64]) -> NDArray[np.float64]:
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
    v = np.choose(inside, [0.0, 1.0, 0.0, _ratio(d1, d1 - d3), 0.0, 1.0 - _ratio(d4 - d3, d4 - d3 + d5 - d6), _ratio(vb, total)])
    w = np.choose(inside, [0.0, 0.0, 1.0, 0.0, _ratio(d2, d2 - d6), _ratio(d4 - d3, d4 - d3 + d5 - d6), _ratio(vc, total)])
    return a + v[:, None] * ab + w[:, None] * ac


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.einsum("ij,ij->i", a, b)


def _ratio(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> NDArray[np.float64]:
    """top / bottom where that is asked for; 0 where a degenerate triangle leaves nothing to divide by."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom != 0.0)
