"""Convex hulls that are written to 1 nm and still hold every point they were made from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError

from simulo.description.certificate import MAX_VERTICES
from simulo.errors import LoweringError
from simulo.lowering.limits import MAX_HULL_VERTICES
from simulo.lowering.triangles import nearest_on_any

GRID = 1e-9
"""[m] Hull vertices are written on this grid."""

NEGLIGIBLE = 1e-6
"""[m] Corners that stand out by less than this are not worth a vertex."""

SOUND = 1e-9
"""[m] No point of a sound hull lies further outside any of its planes."""

_OUTWARD = 4.0 * GRID
_IN_CACHE = 1 << 16  # numbers at once: five times as fast as 4096 points at once
_BATCH_SHARE = 8


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
    if len(corners) > MAX_HULL_VERTICES:
        raise LoweringError(
            f"{label}: the hull of its meshes has {len(corners)} vertices, over the limit of {MAX_HULL_VERTICES}; "
            "simplify the meshes"
        )
    if inflate > 0.0 or len(corners) > max_vertices:
        corners = _reduced_outward(hull, label, max_vertices, inflate)
    written = _written(corners, label)
    stand_out = outside_by(hull.points, written)
    if stand_out > 0.0 or len(written) > max_vertices or not _is_sound(ConvexHull(written)):
        raise LoweringError(f"{label}: the written hull loses {stand_out * 1e9:.2f} nm of its points; report this mesh")
    return written


def is_whole(points: NDArray[np.float64], thinnest: float) -> bool:
    """Whether the points' hull is sound and nowhere thinner than `thinnest` [m]: hull libraries give defective hulls
    for slivers, with points outside or faces missing."""
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return False
    if not _is_sound(hull):
        return False
    corners, planes = hull.points[hull.vertices], np.unique(hull.equations, axis=0)
    return outside_by(hull.points, corners) <= SOUND and bool(
        np.ptp(corners @ planes[:, :3].T, axis=0).min() >= thinnest
    )


def _is_sound(hull: ConvexHull) -> bool:
    return is_closed(hull.points, hull.simplices, hull.equations)


def is_closed(
    points: NDArray[np.float64], triangles: NDArray[np.integer], planes: NDArray[np.float64], sound: float = SOUND
) -> bool:
    """Whether triangles (T, 3) of points (P, 3) make one closed convex surface with these planes (T, 4): every edge
    has two of them, Euler's count is a sphere's, and no corner is off its own planes or outside another by `sound` [m].
    """
    sides = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    edges, count = np.unique(sides, axis=0, return_counts=True)
    used = np.unique(triangles)
    if (count != 2).any() or len(used) - len(edges) + len(triangles) != 2:
        return False
    off = np.einsum("tik,tk->ti", points[triangles], planes[:, :3]) + planes[:, 3:]
    return float(np.abs(off).max()) <= sound and _furthest_out(points[used], planes) <= sound


def convex_hull(points: NDArray[np.float64], label: str) -> ConvexHull:
    try:
        return ConvexHull(np.asarray(points, dtype=np.float64))
    except (QhullError, ValueError) as error:
        raise LoweringError(f"{label}: its shapes span no volume, so it has no hull; give it a thickness") from error


def outside_by(points: NDArray[np.float64], vertices: NDArray[np.float64]) -> float:
    """How far [m] the worst point stands out of the hull of `vertices`; negative when all are strictly inside."""
    return _furthest_out(points, ConvexHull(vertices).equations)


def _furthest_out(points: NDArray[np.float64], planes: NDArray[np.float64]) -> float:
    return float(heights(points, planes).max())


def heights(points: NDArray[np.float64], planes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each point (P, 3) over the plane (T, 4) that it is furthest above [m], shape (P,)."""
    planes = np.unique(planes, axis=0)
    normals, offsets = np.ascontiguousarray(planes[:, :3].T), planes[:, 3]
    found = np.empty(len(points))
    step = max(1, _IN_CACHE // len(planes))
    for start in range(0, len(points), step):
        here = points[start : start + step] @ normals
        here += offsets
        here.max(axis=1, out=found[start : start + step])
    return found


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

    Starts with 26 fixed directions and cuts the corners that stand out most, a share of the planes at a time, each by
    the plane towards its nearest point on the hull: that is the cut which takes the most of it.
    """
    points = hull.points[hull.vertices]
    centre = points.mean(axis=0)
    normals = _start_normals()
    corners = _intersection(points, normals, inflate, centre, label)
    while True:
        gaps, directions = _worst_corners(hull, corners, len(normals) // _BATCH_SHARE)
        directions = directions[gaps > inflate + NEGLIGIBLE]
        candidate = np.concatenate([normals, directions])
        cut = _intersection(points, candidate, inflate, centre, label)
        while len(cut) > max_vertices and len(candidate) > len(normals):  # fewer of these cuts may still fit
            candidate = candidate[: len(normals) + (len(candidate) - len(normals)) // 2]
            cut = _intersection(points, candidate, inflate, centre, label)
        if len(candidate) == len(normals):
            return corners
        normals, corners = candidate, cut


def _start_normals() -> NDArray[np.float64]:
    grid = np.array(
        [[x, y, z] for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if (x, y, z) != (0, 0, 0)], float
    )
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


def _worst_corners(
    hull: ConvexHull, corners: NDArray[np.float64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The `count` corners furthest from the hull: their distances, (B,), and unit directions from it, (B, 3)."""
    planes = np.unique(hull.equations, axis=0)
    stand_out = (corners @ planes[:, :3].T + planes[:, 3]).max(axis=1)
    worst = corners[np.argsort(-stand_out, kind="stable")[:count]]
    nearest = nearest_on_any(worst, hull.points[hull.simplices])
    offsets = worst - nearest
    gaps = np.linalg.norm(offsets, axis=1)
    return gaps, offsets / np.maximum(gaps, 1e-300)[:, None]
