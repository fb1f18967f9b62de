"""Cutting triangles by a plane, so that the parts on both sides together are the triangles that were cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ON_PLANE = 1e-9
"""[m] A vertex this near to a plane lies on it, and belongs to both sides."""


@dataclass(frozen=True)
class Surface:
    """Triangles with shared vertices: vertices [m], shape (V, 3); faces, shape (T, 3), each turning outward."""

    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]

    @property
    def edges(self) -> NDArray[np.int64]:
        """Every edge once, shape (E, 2), the lower vertex first."""
        sides = np.sort(self.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        return np.unique(sides, axis=0)


@dataclass(frozen=True)
class Plane:
    """The points x with normal . x = offset [m]; below it is normal . x <= offset. normal: unit."""

    normal: NDArray[np.float64]
    offset: float

    def heights(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Signed distances [m] of points (P, 3) from the plane, exactly 0 on it."""
        heights = points @ self.normal - self.offset
        heights[np.abs(heights) < ON_PLANE] = 0.0
        return heights


def crossings(
    starts: NDArray[np.float64], ends: NDArray[np.float64], below: NDArray[np.float64], above: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Where segments (S, 3) to (S, 3) with end heights of opposite sign (S,) meet the plane."""
    share = (below / (below - above))[:, None]
    return starts + share * (ends - starts)


def sides(surface: Surface, edges: NDArray[np.int64], plane: Plane) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points of the two parts' hulls, below and above: vertices on that side, and where the edges cross."""
    heights = plane.heights(surface.vertices)
    a, b = heights[edges[:, 0]], heights[edges[:, 1]]
    crossed = edges[a * b < 0.0]
    seam = crossings(
        surface.vertices[crossed[:, 0]], surface.vertices[crossed[:, 1]], heights[crossed[:, 0]], heights[crossed[:, 1]]
    )
    return (
        np.concatenate([surface.vertices[heights <= 0.0], seam]),
        np.concatenate([surface.vertices[heights >= 0.0], seam]),
    )


def cut(surface: Surface, plane: Plane) -> tuple[Surface, Surface]:
    """The triangles below and above the plane. One across it becomes three, which share the points on its edges.

    A triangle that lies in the plane belongs to the side that it bounds from outside.
    """
    heights = plane.heights(surface.vertices)
    of_faces = heights[surface.faces]
    low, high = of_faces.max(axis=1) <= 0.0, of_faces.min(axis=1) >= 0.0
    flat = low & high
    corners = surface.vertices[surface.faces[flat]]
    up = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) @ plane.normal > 0.0
    low[flat], high[flat] = up, ~up
    across = ~low & ~high
    vertices, (tips, bases) = _halved(surface, heights, surface.faces[across])
    tip_below = heights[tips[:, 0]] < 0.0
    below = np.concatenate([surface.faces[low], tips[tip_below], bases[np.repeat(~tip_below, 2)]])
    above = np.concatenate([surface.faces[high], tips[~tip_below], bases[np.repeat(tip_below, 2)]])
    return _compact(vertices, below), _compact(vertices, above)


def _halved(
    surface: Surface, heights: NDArray[np.float64], faces: NDArray[np.int64]
) -> tuple[NDArray[np.float64], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Vertices with the crossings appended, and of each face its tip (X, 3) and the two parts of its base (2 X, 3).

    The tip is at the corner that is alone on its side; a corner on the plane counts to the other two.
    """
    signs = np.sign(heights[faces])
    alone = np.where((signs < 0).sum(axis=1) == 1, (signs < 0).argmax(axis=1), (signs > 0).argmax(axis=1))
    faces = np.take_along_axis(faces, (alone[:, None] + np.arange(3)) % 3, axis=1)
    cut_edges = np.concatenate([faces[:, [0, 1]], faces[:, [0, 2]]])
    edges, number = np.unique(np.sort(cut_edges, axis=1), axis=0, return_inverse=True)
    a, b = edges[:, 0], edges[:, 1]
    points = crossings(surface.vertices[a], surface.vertices[b], heights[a], heights[b])
    ab, ac = (len(surface.vertices) + number.reshape(2, -1)).astype(np.int64)
    tips = np.column_stack([faces[:, 0], ab, ac])
    bases = np.stack([np.column_stack([ab, faces[:, 1], faces[:, 2]]), np.column_stack([ab, faces[:, 2], ac])], axis=1)
    return np.concatenate([surface.vertices, points]), (tips, bases.reshape(-1, 3))


def _compact(vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> Surface:
    """Only the vertices that the faces use."""
    used, renumbered = np.unique(faces, return_inverse=True)
    return Surface(vertices[used], renumbered.reshape(-1, 3).astype(np.int64))
