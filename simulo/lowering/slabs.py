"""Cutting a link into slabs at the planes that leave the least total hull volume."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import trimesh
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from simulo.errors import LoweringError
from simulo.lowering.model import triangles_of

SPACING = 0.01
"""[m] Planes are chosen from a grid this wide, aligned with the link frame's origin."""


def split_points(mesh: trimesh.Trimesh, count: int, label: str) -> list[NDArray[np.float64]]:
    """Points of each of `count` slabs of the mesh, cut across its longest link axis.

    Whole triangles are clipped to each slab they reach, so a triangle across a plane lies in the union of the slabs'
    hulls, the seam included.
    """
    if count == 1:
        return [np.asarray(mesh.vertices, dtype=np.float64)]
    axis, planes = cut_planes(mesh, count, label)
    triangles = triangles_of(mesh)
    return [clip_to_slab(triangles, axis, *bounds) for bounds in _intervals(planes)]


def _intervals(planes: Iterable[float]) -> list[tuple[float, float]]:
    return list(pairwise([-np.inf, *planes, np.inf]))


def cut_planes(mesh: trimesh.Trimesh, count: int, label: str) -> tuple[int, list[float]]:
    """The axis that is cut across, and the count - 1 planes of least total hull volume, [m] along it."""
    vertices = np.asarray(mesh.vertices, dtype=np.float64)
    axis = int(np.argmax(np.ptp(vertices, axis=0)))
    low, high = float(vertices[:, axis].min()), float(vertices[:, axis].max())
    planes = SPACING * np.arange(np.floor(low / SPACING) + 1, np.ceil(high / SPACING))
    if len(planes) < count - 1:
        raise LoweringError(f"{label} is {high - low:.3f} m long, too short for {count} slabs on a {SPACING} m grid")
    triangles = triangles_of(mesh)
    cells = [_hull_corners(clip_to_slab(triangles, axis, *bounds)) for bounds in _intervals(planes)]
    volume = _interval_volumes(cells)
    chosen = _least_total(volume, count)
    return axis, [float(planes[index - 1]) for index in chosen]


def clip_to_slab(triangles: NDArray[np.float64], axis: int, low: float, high: float) -> NDArray[np.float64]:
    """Corners, shape (P, 3), of the triangles (T, 3, 3) clipped to low <= coordinate <= high.

    A clipped triangle's corners are its own corners inside the slab and the points where its edges cross a plane.
    One that only touches a plane from the other side belongs there; one that lies in a plane, to the slab that it
    bounds from outside: the one below when it faces up, else the one above.
    """
    bottom, top = triangles[:, :, axis].min(axis=1), triangles[:, :, axis].max(axis=1)
    edges = triangles[:, 1:] - triangles[:, :1]
    faces_up = np.cross(edges[:, 0], edges[:, 1])[:, axis] > 0.0
    lid = (top == bottom) & np.where(faces_up, top == high, top == low)
    touching = triangles[((top > low) & (bottom < high)) | lid]
    corners = touching.reshape(-1, 3)
    inside = corners[(corners[:, axis] >= low) & (corners[:, axis] <= high)]
    starts, ends = corners, np.roll(touching, -1, axis=1).reshape(-1, 3)
    crossings = [_crossings(starts, ends, axis, plane) for plane in (low, high) if np.isfinite(plane)]
    return np.unique(np.concatenate([inside, *crossings]), axis=0)


def _crossings(starts: NDArray[np.float64], ends: NDArray[np.float64], axis: int, plane: float) -> NDArray[np.float64]:
    a, b = starts[:, axis] - plane, ends[:, axis] - plane
    crosses = (a * b) < 0.0
    share = (a[crosses] / (a[crosses] - b[crosses]))[:, None]
    points = starts[crosses] + share * (ends[crosses] - starts[crosses])
    points[:, axis] = plane
    return points


def _hull_corners(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The points that a hull of these and others can need."""
    try:
        return points[ConvexHull(points).vertices]
    except (QhullError, ValueError):  # too few points, or flat: nothing to drop
        return points


def _interval_volumes(cells: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """volume[i, j] [m^3]: of the hull of the points of cells i to j - 1; infinite where that is no slab."""
    volume = np.full((len(cells) + 1, len(cells) + 1), np.inf)
    for first in range(len(cells)):
        corners = np.empty((0, 3))
        for last in range(first + 1, len(cells) + 1):
            corners = np.concatenate([corners, cells[last - 1]])
            try:
                hull = ConvexHull(corners)
            except (QhullError, ValueError):  # too few points, or flat: a wider interval may have a volume
                continue
            volume[first, last] = hull.volume
            corners = corners[hull.vertices]
    return volume


def _least_total(volume: NDArray[np.float64], count: int) -> list[int]:
    """Cut positions (cell indices) that split all cells into `count` runs of least total volume."""
    cells = len(volume) - 1
    best = [volume[0].copy()]
    choice: list[NDArray[np.int64]] = []
    for _ in range(count - 1):
        totals = best[-1][:, None] + volume
        choice.append(np.argmin(totals, axis=0))
        best.append(totals[choice[-1], np.arange(cells + 1)])
    cuts = [cells]
    for chosen in reversed(choice):
        cuts.append(int(chosen[cuts[-1]]))
    return sorted(cuts[1:])
