"""What lies inside the closed shapes of a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


@dataclass(frozen=True)
class Matter:
    """A mesh of one or more shapes: vertices [m], shape (V, 3), and faces, shape (T, 3)."""

    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]

    @cached_property
    def _shape_of_face(self) -> NDArray[np.int64]:
        ends = np.concatenate([self.faces[:, [0, 1]], self.faces[:, [1, 2]]])
        size = (len(self.vertices), len(self.vertices))
        graph = coo_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), size)
        return connected_components(graph, directed=False)[1][self.faces[:, 0]].astype(np.int64)

    def holding(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Those of the points (P, 3) that lie inside a shape.

        Inside is where the shape fills more than half of all directions around the point (its generalised winding
        number is above one half, Jacobson et al. 2013): exact for a closed shape, a fair guess for one with holes.
        """
        inside = [bool((self._winding(point) > 0.5).any()) for point in points]
        return points[np.array(inside, dtype=bool)]

    def _winding(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """How often each shape winds around a point: solid angles of its triangles (van Oosterom, Strackee 1983)."""
        a, b, c = np.moveaxis(self.vertices[self.faces] - point, 1, 0)
        la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
        volume = np.einsum("ij,ij->i", a, np.cross(b, c))
        dots = [np.einsum("ij,ij->i", first, second) for first, second in ((a, b), (b, c), (c, a))]
        angle = 2.0 * np.arctan2(volume, la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb)
        return np.abs(np.bincount(self._shape_of_face, angle)) / (4.0 * np.pi)
