"""Bodies: the posed links that have geometry, each a hull and the pieces inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulo.collision.pool import PackedShape, ShapeArrays, pack_shape, pack_shapes
from simulo.collision.shapes import ConvexShape
from simulo.description.schema import ConvexPiece, LinkGeometry


@dataclass(frozen=True)
class BodyArrays:
    """Bodies, in posed-link order; fields as in `kernels.types.Robot`.

    body (B, 4) int32: posed link, hull's shape, first piece, number of pieces. gate (B,). link (B,): the robot's link.
    rotation (B, 3, 3), origin (B, 3) [m]: the hull's frame in the link. piece_*: the pieces' shapes and their frames
    in the hull's.
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
    """A packed shape and its frame in the link, the rotation as the float32 values that the kernel will use."""

    shape: PackedShape
    rotation: NDArray[np.float64]
    origin: NDArray[np.float64]


def build_bodies(
    links: tuple[str, ...],
    geometry: Mapping[str, LinkGeometry],
    posed_links: NDArray[np.int32],
    posed_gates: NDArray[np.int32],
) -> tuple[BodyArrays, ShapeArrays]:
    """Bodies of every posed link with geometry, and the pool of their shapes (copies share their link's)."""
    shapes: list[PackedShape] = []
    pieces: list[tuple[int, NDArray, NDArray]] = []
    heads: dict[int, tuple[int, int, int, _Placed]] = {}
    for number, name in enumerate(links):
        if name not in geometry:
            continue
        hull = _place(geometry[name].hull)
        shapes.append(hull.shape)
        hull_shape, first = len(shapes) - 1, len(pieces)
        inner = geometry[name].pieces
        for piece in inner:
            placed = hull if len(inner) == 1 else _place(piece)
            if len(inner) > 1:
                shapes.append(placed.shape)
            pieces.append((len(shapes) - 1, hull.rotation.T @ placed.rotation, hull.rotation.T @ (placed.origin - hull.origin)))
        heads[number] = (hull_shape, first, len(inner), hull)
    with_body = [(posed, int(link)) for posed, link in enumerate(posed_links) if int(link) in heads]
    return (
        BodyArrays(
            body=np.array([(posed, *heads[link][:3]) for posed, link in with_body], np.int32).reshape(-1, 4),
            gate=np.array([posed_gates[posed] for posed, _ in with_body], np.int32),
            link=np.array([link for _, link in with_body], np.int32),
            rotation=np.array([heads[link][3].rotation for _, link in with_body], np.float32),
            origin=np.array([heads[link][3].origin for _, link in with_body], np.float32),
            piece_shape=np.array([p[0] for p in pieces], np.int32),
            piece_rotation=np.array([p[1] for p in pieces], np.float32),
            piece_origin=np.array([p[2] for p in pieces], np.float32),
        ),
        pack_shapes(shapes),
    )


def _place(piece: ConvexPiece) -> _Placed:
    """Pack a piece in the frame of its box, re-centred on its vertices as float32 leaves them."""
    rotation = piece.box_pose.rotation
    local = (np.asarray(piece.vertices, np.float64) - np.asarray(piece.box_pose.position)) @ rotation
    packed = pack_shape(ConvexShape(local))
    origin = np.asarray(piece.box_pose.position) + rotation @ packed.offset.astype(np.float64)
    return _Placed(packed, rotation, origin)
