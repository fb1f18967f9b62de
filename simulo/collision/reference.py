"""The float64 replay of what the kernels answer, written apart: slow, plain, and the judge in tests and audits.

Distances come from Wolfe's algorithm (1976) for the point of a polytope nearest the origin, here of the difference of
two vertex sets; penetration depths from the facets of that difference's hull. Kinematics are the description's own
`reference_fk`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull

from simulo.description import RobotDescription, reference_fk

Points = NDArray[np.float64]

_GAP = 1e-15  # m^2: stop when the squared norm is within this of its lower bound


@dataclass(frozen=True)
class ReferencePair:
    """Two links and the signed distance [m] of their unions of pieces; negative: the depth of the deepest pieces."""

    link_a: str
    link_b: str
    distance: float


def nearest_of_difference(a: ArrayLike, b: ArrayLike) -> Points:
    """The point of hull(a) - hull(b) nearest the origin, shape (3,); a, b [m], shapes (V, 3), in one frame."""
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)

    def extreme(direction: Points) -> Points:
        return left[np.argmin(left @ direction)] - right[np.argmax(right @ direction)]

    corral = [extreme(left.mean(0) - right.mean(0))]
    weights = np.ones(1)
    nearest = np.full(3, np.inf)
    while True:
        point = weights @ np.array(corral)
        # Every round comes nearer, but for rounding: on slivers it would go round in circles.
        if not point @ point < nearest @ nearest:
            return nearest
        nearest = point
        new = extreme(point)
        if point @ point - point @ new <= _GAP or any(np.array_equal(new, old) for old in corral):
            return point
        corral.append(new)
        weights = np.append(weights, 0.0)
        corral, weights = _shrink(corral, weights)


def _shrink(corral: list[Points], weights: Points) -> tuple[list[Points], Points]:
    """Wolfe's inner loop: move to the nearest point of the corral's flat, dropping points until it lies inside."""
    while True:
        flat = _affine_weights(np.array(corral))
        if (flat > 1e-14).all():
            return corral, flat
        shrinking = flat < weights
        if not shrinking.any():  # a new point that the flat does not need, but for rounding
            kept = flat > 1e-14
            return [p for p, keep in zip(corral, kept, strict=True) if keep], flat[kept] / flat[kept].sum()
        steps = weights[shrinking] / (weights[shrinking] - flat[shrinking])
        weights = weights + min(1.0, float(steps.min())) * (flat - weights)
        kept = weights > 1e-14
        corral, weights = [p for p, keep in zip(corral, kept, strict=True) if keep], weights[kept]


def _affine_weights(points: Points) -> Points:
    """Weights, summing to one, of the point nearest the origin on the flat through `points`, shape (K, 3)."""
    edges = points[1:] - points[0]
    along = np.linalg.lstsq(edges.T, -points[0], rcond=None)[0] if len(edges) else np.empty(0)
    return np.concatenate([[1.0 - along.sum()], along])


def hull_distance(a: ArrayLike, b: ArrayLike) -> float:
    """Distance [m] of two vertex hulls, 0 where they meet."""
    return float(np.linalg.norm(nearest_of_difference(a, b)))


def hull_depth(a: ArrayLike, b: ArrayLike) -> float:
    """Penetration depth [m] of two overlapping hulls: the least translation that separates them, 0 where apart."""
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    difference = (left[:, None] - right[None]).reshape(-1, 3)
    if np.linalg.matrix_rank(difference - difference[0], tol=1e-12) < 3:  # points and segments: a hair's breadth parts
        return 0.0
    offsets = ConvexHull(difference).equations[:, 3]
    return max(0.0, float((-offsets).min()))


def signed_distance(a: ArrayLike, b: ArrayLike) -> float:
    """Distance [m] of two hulls, or minus their penetration depth."""
    apart = hull_distance(a, b)
    return apart if apart > 1e-9 else -hull_depth(a, b)


def cell_corners(centre: ArrayLike, cell: float, rotation: ArrayLike) -> Points:
    """Corners [m], shape (8, 3), of a cube cell of full edge `cell` whose axes are the columns of `rotation`."""
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    return np.asarray(centre) + 0.5 * cell * signs @ np.asarray(rotation).T


def posed_pieces(description: RobotDescription, q: ArrayLike) -> dict[str, list[Points]]:
    """Vertices [m] of every link's pieces in the base frame at one configuration q [rad or m], shape (dof,); what balls
    are around them the description says."""
    poses = reference_fk(description, q)
    return {
        link: [np.asarray(p.vertices) @ poses[link][:3, :3].T + poses[link][:3, 3] for p in geometry.pieces]
        for link, geometry in description.geometry.items()
    }


def self_distances(description: RobotDescription, q: ArrayLike) -> list[ReferencePair]:
    """Every pair that is not disabled, at one configuration."""
    balls = {link: [piece.radius for piece in geometry.pieces] for link, geometry in description.geometry.items()}
    pieces = {
        link: list(zip(placed, balls[link], strict=True)) for link, placed in posed_pieces(description, q).items()
    }
    skipped = {frozenset((p.link_a, p.link_b)) for p in description.disabled_pairs}
    links = [name for name in description.links if name in pieces]
    return [
        ReferencePair(a, b, min(signed_distance(p, r) - x - y for p, x in pieces[a] for r, y in pieces[b]))
        for i, a in enumerate(links)
        for b in links[i + 1 :]
        if frozenset((a, b)) not in skipped
    ]
