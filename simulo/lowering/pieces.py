"""One convex piece: hull, sphere or capsule in 26-DOP in oriented box, each holding the one before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from simulo.description.certificate import MAX_VERTICES
from simulo.description.schema import DOP_DIRECTIONS, ConvexPiece
from simulo.lowering.capsules import frame_along
from simulo.lowering.hull import GRID, certified_vertices
from simulo.pose import Pose, matrix_to_wxyz

HEADROOM = 1e-3
"""[m] The box stands this much off the piece on every side, and primitives off what they are fitted around."""

_NORMAL_DIGITS = 3


def fit_piece(
    points: NDArray[np.float64], label: str, max_vertices: int = MAX_VERTICES, inflate: float = 0.0
) -> ConvexPiece:
    """The certified piece of these points [m], shape (P, 3), in their frame."""
    vertices = certified_vertices(points, label, max_vertices, inflate)
    return _certified(vertices, 0.0, box_rotation(vertices))


def ball_piece(vertices: NDArray[np.float64], radius: float) -> ConvexPiece:
    """The certified sphere around one vertex [m], shape (1, 3), or capsule between two; all numbers on the grid."""
    along = vertices[-1] - vertices[0]
    length = float(np.linalg.norm(along))
    return _certified(vertices, radius, frame_along(along / length) if length > 0.0 else np.eye(3))


def _certified(vertices: NDArray[np.float64], radius: float, rotation: NDArray[np.float64]) -> ConvexPiece:
    """The piece with its box turned by `rotation` (box to link)."""
    local = vertices @ rotation
    middle = rotation @ (0.5 * (local.min(axis=0) + local.max(axis=0)))
    pose = Pose(tuple(np.round(middle, 9)), tuple(np.round(matrix_to_wxyz(rotation), 12)))
    inside = pose.inverse().apply(vertices)
    half = np.ceil((np.abs(inside).max(axis=0) + radius + HEADROOM) / 1e-6) * 1e-6
    offsets, ball = inside @ DOP_DIRECTIONS.T, radius * np.linalg.norm(DOP_DIRECTIONS, axis=1)
    low, high = offsets.min(axis=0) - ball, offsets.max(axis=0) + ball
    dop = np.column_stack([np.floor(low / GRID - 1.0) * GRID, np.ceil(high / GRID + 1.0) * GRID])
    x, y, z = (float(value) for value in half.round(6))
    return ConvexPiece(vertices, pose, (x, y, z), dop.round(9) + 0.0, radius)


def box_rotation(vertices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rotation (box to link) of the least-volume box with one face flush with a hull face.

    For each face normal the least rectangle around the projection has a side flush with an edge of its 2D hull
    (rotating calipers). Ties go to the first, so the result depends on nothing but the vertices.
    """
    hull = ConvexHull(vertices)
    normals = hull.equations[:, :3]
    largest = np.take_along_axis(normals, np.abs(normals).argmax(axis=1)[:, None], axis=1)
    normals = normals * np.sign(largest)  # opposite faces give the same box
    _, first = np.unique(normals.round(_NORMAL_DIGITS), axis=0, return_index=True)
    best, best_rotation = np.inf, np.eye(3)
    for normal in normals[first]:
        frame = _flush_frame(vertices, normal / np.linalg.norm(normal))
        volume = float(np.ptp(vertices @ frame, axis=0).prod())
        if volume < best * (1.0 - 1e-9):
            best, best_rotation = volume, frame
    return best_rotation


def _flush_frame(vertices: NDArray[np.float64], normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """The right-handed frame with z along the normal whose rectangle around the projection is least."""
    side = np.eye(3)[np.argmin(np.abs(normal))]
    u = np.cross(normal, side)
    u /= np.linalg.norm(u)
    plane = np.column_stack([u, np.cross(normal, u)])
    flat = vertices @ plane
    outline = flat[ConvexHull(flat).vertices]
    edges = np.roll(outline, -1, axis=0) - outline
    edges = edges / np.linalg.norm(edges, axis=1, keepdims=True)
    along, across = outline @ edges.T, outline @ np.column_stack([-edges[:, 1], edges[:, 0]]).T
    areas = np.ptp(along, axis=0) * np.ptp(across, axis=0)
    x, y = edges[int(np.argmin(areas))]
    first = plane @ np.array([x, y])
    return np.column_stack([first, np.cross(normal, first), normal]).astype(np.float64)
