"""Which parts of convex pieces' facets lie inside other pieces, and so are no surface of their union.

A ball is taken as a polyhedron around it, which stands off it by at most half a percent of its radius.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from simulo.description import LinkGeometry
from simulo.lowering.solids import points_around

Array = NDArray[np.float64]

_AT_ONCE = 4096  # facets that are held against all planes of a piece at once: up to some 300 MB


class Union:
    """The pieces of a link. facets [m], shape (F, 3, 3), in the link frame; owners, shape (F,): each one's piece."""

    def __init__(self, geometry: LinkGeometry):
        self._hulls = [ConvexHull(points_around(piece)) for piece in geometry.pieces]
        self._planes = [np.unique(hull.equations, axis=0) for hull in self._hulls]
        self.facets: Array = np.concatenate([hull.points[hull.simplices] for hull in self._hulls])
        self.owners = np.repeat(np.arange(len(self._hulls)), [len(hull.simplices) for hull in self._hulls])

    def covered(self, facets: Array, owners: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which facets lie inside one other piece, and which facets' centroids lie inside any other: both (F,)."""
        whole, centroid = np.zeros(len(facets), dtype=bool), np.zeros(len(facets), dtype=bool)
        points = np.concatenate([facets, facets.mean(axis=1, keepdims=True)], axis=1)
        for piece, (hull, planes) in enumerate(zip(self._hulls, self._planes, strict=True)):
            low, high = points.min(axis=1), points.max(axis=1)
            near = np.all((low < hull.max_bound) & (high > hull.min_bound), axis=1)
            rows = np.flatnonzero(near & (owners != piece))
            for first in range(0, len(rows), _AT_ONCE):
                some = rows[first : first + _AT_ONCE]
                inside = (points[some] @ planes[:, :3].T + planes[:, 3]).max(axis=2) <= 0.0
                whole[some] |= np.all(inside[:, :3], axis=1)
                centroid[some] |= inside[:, 3]
        return whole, centroid
