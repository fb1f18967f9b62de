"""The part of the enclosure proof that needs no mesh: piece in DOP in box, and pieces in the hull around them all.

That the meshes lie in the pieces is proven when a robot is lowered, and again by `simulo lower --check`.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from simulo.description.schema import DOP_DIRECTIONS, ConvexPiece, LinkGeometry
from simulo.errors import DescriptionError

MAX_VERTICES = 1024
"""Most vertices a hull may carry."""

ROUNDING = 1e-12
"""[m] Float64 error of the tests below; the written numbers keep a whole nanometre in hand."""


def refuse_unproven_geometry(geometry: LinkGeometry, label: str, robot: str) -> None:
    """Raise DescriptionError unless every piece is well formed and the nesting holds."""
    remedy = f"run `simulo lower {robot}`"
    if not geometry.pieces:
        raise DescriptionError(f"{label} has no pieces; {remedy}")
    for index, piece in enumerate(geometry.pieces):
        _refuse_bad_piece(piece, f"{label}, piece {index}", remedy)
    if geometry.hull is geometry.pieces[0] and len(geometry.pieces) == 1:
        return
    _refuse_bad_piece(geometry.hull, f"{label}, link hull", remedy)
    if geometry.hull.kind != "hull":
        raise DescriptionError(f"{label}: a {geometry.hull.kind} is no hull of several pieces; {remedy}")
    planes = _planes(geometry.hull.vertices, f"{label}, link hull", remedy)
    for index, piece in enumerate(geometry.pieces):
        outside = float((piece.vertices @ planes[:, :3].T + planes[:, 3]).max()) + piece.radius
        if outside > ROUNDING:
            raise DescriptionError(
                f"{label}: piece {index} stands {outside * 1e9:.1f} nm out of the link's hull; {remedy}"
            )


def _refuse_bad_piece(piece: ConvexPiece, label: str, remedy: str) -> None:
    vertices, dop, half = np.asarray(piece.vertices), np.asarray(piece.dop), np.asarray(piece.box_half)
    if not (np.isfinite(piece.radius) and piece.radius >= 0.0):
        raise DescriptionError(f"{label}: the radius must be finite and not negative, got {piece.radius}; {remedy}")
    least, most, what = (4, MAX_VERTICES, "a hull's") if piece.radius == 0.0 else (1, 2, "with a ball,")
    if vertices.ndim != 2 or vertices.shape[1] != 3 or not least <= len(vertices) <= most:
        raise DescriptionError(
            f"{label}: {what} vertices must have shape ({least}..{most}, 3), got {vertices.shape}; {remedy}"
        )
    if dop.shape != (len(DOP_DIRECTIONS), 2):
        raise DescriptionError(f"{label}: dop must have shape ({len(DOP_DIRECTIONS)}, 2), got {dop.shape}; {remedy}")
    if half.shape != (3,) or not (np.isfinite(vertices).all() and np.isfinite(dop).all() and np.isfinite(half).all()):
        raise DescriptionError(f"{label}: every number must be finite and the box must have 3 half extents; {remedy}")
    offsets = piece.box_pose.inverse().apply(vertices) @ DOP_DIRECTIONS.T
    ball = piece.radius * np.linalg.norm(DOP_DIRECTIONS, axis=1)
    worst = float(np.maximum(dop[:, 0] - (offsets - ball), offsets + ball - dop[:, 1]).max())
    if worst > ROUNDING:
        raise DescriptionError(f"{label}: the {piece.kind} stands {worst * 1e3:.6f} mm out of its 26-DOP; {remedy}")
    if (dop[:3, 0] < -half).any() or (dop[:3, 1] > half).any():
        raise DescriptionError(f"{label}: the 26-DOP stands out of its box; {remedy}")
    if piece.kind == "hull":
        _planes(vertices, label, remedy)
    elif len(vertices) == 2 and np.array_equal(vertices[0], vertices[1]):
        raise DescriptionError(f"{label}: both ends of the capsule are one point; that is a sphere; {remedy}")


def _planes(vertices: np.ndarray, label: str, remedy: str) -> np.ndarray:
    try:
        return ConvexHull(vertices).equations
    except QhullError as error:
        raise DescriptionError(f"{label}: the vertices span no volume; {remedy}") from error
