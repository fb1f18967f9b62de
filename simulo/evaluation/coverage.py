"""Is every vertex and every triangle of a link inside what is checked in its place? Planes by Qhull, and distances from
points and segments, apart from the certificate that is written with the geometry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import trimesh
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from simulo.description import ConvexPiece, LinkGeometry

Array = NDArray[np.float64]

TOLERANCE = 1e-8
"""[m] Geometry is written at 1 nm; what stands out by less than this is rounding."""

_CHUNK = 4096
_FINEST = 1e-6
"""[m] A part of a triangle that is smaller, and still in no one piece, counts as outside."""

Holds = Callable[[Array], NDArray[np.bool_]]
"""From points (P, 3), which lie in a piece."""


def coverage(meshes: Mapping[str, trimesh.Trimesh], geometry: Mapping[str, LinkGeometry]) -> dict[str, int]:
    """How many vertices and triangles of all links there are, and how many lie outside the link's pieces."""
    totals = {"vertices": 0, "vertices_outside": 0, "triangles": 0, "triangles_outside": 0}
    for link, mesh in meshes.items():
        pieces = geometry[link].pieces
        holds = [_holds(piece) for piece in pieces]
        vertices, faces = np.asarray(mesh.vertices, np.float64), np.asarray(mesh.faces)
        inside = np.stack([of_one(vertices) for of_one in holds])
        whole = inside[:, faces].all(axis=2).any(axis=0)
        across = vertices[faces[~whole]]
        if all(piece.kind == "hull" for piece in pieces):
            planes = [_planes(piece.vertices) for piece in pieces]
            outside = sum(stands_out(triangle, planes) for triangle in across)
        else:
            outside = len(standing_out(across, holds))
        totals["vertices"] += len(vertices)
        totals["vertices_outside"] += int((~inside.any(axis=0)).sum())
        totals["triangles"] += len(faces)
        totals["triangles_outside"] += outside
    return totals


def standing_out(triangles: Array, holds: Sequence[Holds]) -> set[int]:
    """Which of the triangles (T, 3, 3) lie outside the pieces somewhere: halved until each part is in one of them."""
    number = np.arange(len(triangles))
    outside: set[int] = set()
    while len(triangles):
        inside = np.stack([of_one(triangles.reshape(-1, 3)).reshape(-1, 3) for of_one in holds])
        edges = np.linalg.norm(triangles - np.roll(triangles, -1, axis=1), axis=2)
        whole = inside.all(axis=2).any(axis=0)
        somewhere: NDArray[np.bool_] = np.any(inside, axis=0)
        out = ~somewhere.all(axis=1) | (~whole & (edges.max(axis=1) < _FINEST))
        outside |= set(number[out].tolist())
        left = ~whole & ~np.isin(number, list(outside))
        number, longest = np.tile(number[left], 2), edges[left].argmax(axis=1)
        turned = np.take_along_axis(triangles[left], ((longest[:, None] + np.arange(3)) % 3)[:, :, None], axis=1)
        a, b, c = turned[:, 0], turned[:, 1], turned[:, 2]
        middle = 0.5 * (a + b)
        triangles = np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])
    return outside


def stands_out(polygon: Array, pieces: Sequence[Array]) -> bool:
    """Whether some of a convex polygon, corners (P, 3), lies outside every piece; each by its planes, shape (F, 4)."""
    left = [polygon]
    for planes in pieces:
        left = [part for rest in left for part in _without(rest, planes)]
    return bool(left)


def _holds(piece: ConvexPiece) -> Holds:
    if piece.kind == "hull":
        planes = _planes(piece.vertices)
        return lambda points: _inside(points, planes)
    start, along = piece.vertices[0], piece.vertices[-1] - piece.vertices[0]
    length = max(float(along @ along), 1e-300)  # of a sphere: any share of nothing will do

    def holds(points: Array) -> NDArray[np.bool_]:
        share = np.clip((points - start) @ along / length, 0.0, 1.0)
        return np.linalg.norm(points - start - share[:, None] * along, axis=1) <= piece.radius + TOLERANCE

    return holds


def _planes(vertices: Array) -> Array:
    """Planes n x + d <= 0 of a hull, TOLERANCE outward."""
    planes = np.unique(ConvexHull(vertices).equations, axis=0)
    planes[:, 3] -= TOLERANCE
    return planes


def _inside(points: Array, planes: Array) -> NDArray[np.bool_]:
    parts = [points[start : start + _CHUNK] for start in range(0, len(points), _CHUNK)]
    return np.concatenate([(part @ planes[:, :3].T + planes[:, 3]).max(axis=1) <= 0.0 for part in parts])


def _without(polygon: Array, planes: Array) -> list[Array]:
    """The convex parts of a polygon that lie outside a convex piece."""
    heights = polygon @ planes[:, :3].T + planes[:, 3]
    if (heights.min(axis=0) >= 0.0).any():
        return [polygon]
    outside = []
    for plane in planes[heights.max(axis=0) > 0.0]:
        above, polygon = _split(polygon, plane)
        if len(above):
            outside.append(above)
        if not len(polygon):
            break
    return outside


def _split(polygon: Array, plane: Array) -> tuple[Array, Array]:
    """A convex polygon's parts above and below a plane; empty where there is none."""
    heights = polygon @ plane[:3] + plane[3]
    if (heights <= 0.0).all():
        return np.empty((0, 3)), polygon
    if (heights > 0.0).all():
        return polygon, np.empty((0, 3))
    above, below = [], []
    for here, there, height, next_height in zip(
        polygon, np.roll(polygon, -1, axis=0), heights, np.roll(heights, -1), strict=True
    ):
        (above if height > 0.0 else below).append(here)
        if (height > 0.0) != (next_height > 0.0):
            crossing = here + height / (height - next_height) * (there - here)
            above.append(crossing)
            below.append(crossing)
    return np.array(above), np.array(below)
