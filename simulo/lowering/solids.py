"""Convex pieces as polyhedra, and points against pieces: a hull is its own polyhedron, a ball has one around it and one
within."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from simulo.description.schema import ConvexPiece
from simulo.lowering.capsules import distance_to_segment
from simulo.lowering.hull import heights
from simulo.lowering.meshes import ellipsoid
from simulo.lowering.sampling import halved

FINEST = 1e-5
"""[m] Parts of triangles are not halved below this."""


def points_around(piece: ConvexPiece) -> NDArray[np.float64]:
    """Points [m], shape (P, 3), whose hull holds the piece and stands off its ball by at most half a percent."""
    return _with_balls(piece, _unit_ball()) if piece.radius else piece.vertices


def points_within(piece: ConvexPiece) -> NDArray[np.float64]:
    """Points [m], shape (P, 3), on a ball's surface or a hull's corners: their hull lies in the piece, half a percent
    of its ball below the surface at most."""
    ball = _unit_ball()
    return _with_balls(piece, ball / np.linalg.norm(ball, axis=1, keepdims=True)) if piece.radius else piece.vertices


def _with_balls(piece: ConvexPiece, unit: NDArray[np.float64]) -> NDArray[np.float64]:
    return (piece.vertices[:, None] + piece.radius * unit).reshape(-1, 3)


@cache
def _unit_ball() -> NDArray[np.float64]:
    """Corners of a polyhedron around the unit ball, shape (P, 3)."""
    return np.asarray(ellipsoid([1.0] * 3).vertices)


def stand_out(points: NDArray[np.float64], piece: ConvexPiece) -> NDArray[np.float64]:
    """How far [m] each of the points (P, 3) stands out of the piece (of a plane of its hull), shape (P,); negative
    inside."""
    if piece.radius:
        return distance_to_segment(points, piece.vertices[[0, -1]]) - piece.radius
    return heights(points, ConvexHull(piece.vertices).equations)


def standing_out(triangles: NDArray[np.float64], pieces: Sequence[ConvexPiece], depth: float) -> NDArray[np.int64]:
    """Which of the triangles (T, 3, 3) lie somewhere less than `depth` [m] deep in every piece.

    A part of a triangle is in a piece where its corners are; one that lies across pieces is halved until each part is
    in one of them. Where neighbours share a depth above 0 that ends; parts under FINEST that are in none count as out.
    """
    number = np.arange(len(triangles))
    out = np.zeros(len(triangles), dtype=bool)
    while len(triangles):
        corners = triangles.reshape(-1, 3)
        inside = np.stack([stand_out(corners, piece).reshape(-1, 3) <= -depth for piece in pieces])
        edges = np.linalg.norm(triangles - np.roll(triangles, -1, axis=1), axis=2)
        somewhere: NDArray[np.bool_] = np.any(inside, axis=0)
        across = ~inside.all(axis=2).any(axis=0)
        out[number[across & (~somewhere.all(axis=1) | (edges.max(axis=1) < FINEST))]] = True
        left = across & ~out[number]
        number, triangles = np.tile(number[left], 2), halved(triangles[left], edges[left].argmax(axis=1))
    return np.flatnonzero(out)
