"""Bodies: the posed links that have geometry, each a convex piece, or a hull and the pieces inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulo.collision.pool import PackedShape, ShapeArrays, pack_shape, pack_shapes
from simulo.collision.shapes import ConvexShape
from simulo.description.schema import ConvexPiece, LinkGeometry

# A link of so few pieces is so many bodies: each has a bounding sphere and box of its own, which tell more than its
# common hull would. More pieces than that are one body, and asked only where their hull is not clear.
_FEW_PIECES = 4
_CORNER_SLOP = 1e-8  # m: a few roundings to 1 nm, turned; the box around them holds them all


@dataclass(frozen=True)
class BodyArrays:
    """Bodies, in posed-link order; fields as in `kernels.types`.

    body (B, 4) int32: posed link, hull's shape, first piece, number of pieces (1: the hull itself). gate (B,).
    link (B,): the robot's link. rotation (B, 3, 3), origin (B, 3) [m]: the hull's frame in the link. piece_*: the
    pieces' shapes and their frames in the hull's.
    """

    body: NDArray[np.int32]
    gate: NDArray[np.int32]
    link: NDArray[np.int32]
    rotation: NDArray[np.float32]
    origin: NDArray[np.float32]
    piece_shape: NDArray[np.int32]
    piece_rotation: NDArray[np.float32]
    piece_origin: NDArray[np.float32]


@dataclass(frozen=True)
class _Placed:
    """A shape of the pool and its frame in the link."""

    shape: int
    rotation: NDArray[np.float64]
    origin: NDArray[np.float64]


@dataclass(frozen=True)
class _Body:
    """A hull and, where it is not the body's only piece, the slice of pieces inside it."""

    hull: _Placed
    first_piece: int
    num_pieces: int


@dataclass
class _Pool:
    """Shapes and pieces as they are collected."""

    shapes: list[PackedShape]
    pieces: list[_Placed]

    def place(self, piece: ConvexPiece) -> _Placed:
        """Pack a piece in the frame of its box, re-centred on its vertices as float32 leaves them."""
        rotation = piece.box_pose.rotation
        local = (np.asarray(piece.vertices, np.float64) - np.asarray(piece.box_pose.position)) @ rotation
        packed = pack_shape(ConvexShape(local, piece.radius, is_box=_is_box(local)))
        self.shapes.append(packed)
        origin = np.asarray(piece.box_pose.position) + rotation @ packed.offset.astype(np.float64)
        return _Placed(len(self.shapes) - 1, rotation, origin)

    def bodies_of(self, geometry: LinkGeometry) -> list[_Body]:
        if len(geometry.pieces) <= _FEW_PIECES:
            return [_Body(self.place(piece), 0, 1) for piece in geometry.pieces]
        hull, first = self.place(geometry.hull), len(self.pieces)
        for piece in geometry.pieces:
            placed = self.place(piece)
            rotation = hull.rotation.T @ placed.rotation
            self.pieces.append(_Placed(placed.shape, rotation, hull.rotation.T @ (placed.origin - hull.origin)))
        return [_Body(hull, first, len(geometry.pieces))]


def _is_box(vertices: NDArray[np.float64]) -> bool:
    """Whether vertices (V, 3), in the frame of their box, are its corners, but for how they are rounded."""
    if len(vertices) != 8:
        return False
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    off = np.minimum(vertices - low, high - vertices)
    return bool(off.max() <= _CORNER_SLOP) and len(np.unique(vertices > 0.5 * (low + high), axis=0)) == 8


def build_bodies(
    links: tuple[str, ...],
    geometry: Mapping[str, LinkGeometry],
    posed_links: NDArray[np.int32],
    posed_gates: NDArray[np.int32],
) -> tuple[BodyArrays, ShapeArrays]:
    """Bodies of every posed link with geometry, and the pool of their shapes (copies share their link's)."""
    pool = _Pool([], [])
    of_link = {i: pool.bodies_of(geometry[name]) for i, name in enumerate(links) if name in geometry}
    rows = [(posed, int(link), body) for posed, link in enumerate(posed_links) for body in of_link.get(int(link), ())]
    # Never empty: a kernel argument of no elements has no address to check in debug mode.
    pieces = pool.pieces or [_Placed(0, np.eye(3), np.zeros(3))]
    heads = [(posed, body.hull.shape, body.first_piece, body.num_pieces) for posed, _link, body in rows]
    return (
        BodyArrays(
            body=np.array(heads, np.int32).reshape(-1, 4),
            gate=np.array([posed_gates[posed] for posed, _link, _body in rows], np.int32),
            link=np.array([link for _posed, link, _body in rows], np.int32),
            rotation=np.array([body.hull.rotation for *_, body in rows], np.float32),
            origin=np.array([body.hull.origin for *_, body in rows], np.float32),
            piece_shape=np.array([p.shape for p in pieces], np.int32),
            piece_rotation=np.array([p.rotation for p in pieces], np.float32),
            piece_origin=np.array([p.origin for p in pieces], np.float32),
        ),
        pack_shapes(pool.shapes),
    )
