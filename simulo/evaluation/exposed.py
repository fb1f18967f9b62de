"""The surface of a union of convex pieces: what is left of their facets when those inside other pieces are dropped."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from simulo.description import LinkGeometry

Array = NDArray[np.float64]

RESOLUTION = 1e-4
"""[m] A facet that reaches into another piece is cut down to parts this long before it is kept."""


def exposed_facets(geometry: LinkGeometry) -> Array:
    """Facets (F, 3, 3) [m] in the link frame that hold the whole surface of the union of a link's pieces.

    Only facets inside another piece are left out, so none of the surface is lost; of what is kept no point is deeper
    inside the union than RESOLUTION.
    """
    hulls = [ConvexHull(piece.vertices) for piece in geometry.pieces]
    kept = []
    for hull in hulls:
        facets = hull.points[hull.simplices]
        for other in hulls:
            if other is not hull:
                facets = _outside(facets, other)
        kept.append(facets)
    return np.concatenate(kept)


def quartered(facets: Array) -> Array:
    """Each triangle as its four halves-of-edges triangles, shape (4 F, 3, 3)."""
    a, b, c = facets[:, 0], facets[:, 1], facets[:, 2]
    ab, bc, ca = 0.5 * (a + b), 0.5 * (b + c), 0.5 * (c + a)
    parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.concatenate([np.stack(part, axis=1) for part in parts])


def _outside(facets: Array, hull: ConvexHull) -> Array:
    """The facets without those inside the hull; one that is partly inside is quartered, part by part."""
    planes = np.unique(hull.equations, axis=0)
    kept = []
    while len(facets):
        low, high = facets.min(axis=1), facets.max(axis=1)
        apart = np.any((low > hull.max_bound) | (high < hull.min_bound), axis=1)
        kept.append(facets[apart])
        facets = facets[~apart]
        heights = facets @ planes[:, :3].T + planes[:, 3]
        inside = (heights <= 0.0).all(axis=(1, 2))
        clear = (heights >= 0.0).all(axis=1).any(axis=1)  # all of the facet is outside one plane
        small = np.linalg.norm(facets - np.roll(facets, 1, axis=1), axis=2).max(axis=1) <= RESOLUTION
        kept.append(facets[~inside & (clear | small)])
        facets = quartered(facets[~inside & ~clear & ~small])
    return np.concatenate(kept)
