"""Packing convex shapes into the arrays that the kernels read.

A shape is packed in a frame whose origin is the centre of its bounding box; `PackedShape.offset` says where that
frame's origin lies in the shape's own frame (the axes are the same).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import NDArray

from simulo.collision.kernels.shapes import BOX, BRUTE, COUNT_BITS, COUNT_MASK, TABLE, Shapes
from simulo.collision.shapes import ConvexShape
from simulo.collision.support import build_support_table

# Up to here trying every vertex is as fast as the table's look-up.
_MAX_BRUTE = 8


@dataclass(frozen=True)
class PackedShape:
    """One shape, ready for the device.

    offset [m], shape (3,), float32: origin of the packed frame in the shape's frame. size: half edges and ball [m].
    reach [m]: bounding sphere at the packed origin. points [m], shape (P, 3). cells, entries: of its support table,
    empty without one.
    """

    kind: int
    offset: NDArray[np.float32]
    size: NDArray[np.float32]
    reach: np.float32
    points: NDArray[np.float32]
    cells: NDArray[np.uint32]
    entries: NDArray[np.uint16]


def pack_shape(shape: ConvexShape, table: bool = True) -> PackedShape:
    """Pack one shape; table=False tries every vertex whatever their number (no table to build)."""
    offset = shape.centre.astype(np.float32)
    vertices = (shape.vertices - offset.astype(np.float64)).astype(np.float32)
    half = np.abs(vertices).max(0)
    size = np.append(half, np.float32(shape.radius)).astype(np.float32)
    furthest = np.linalg.norm(vertices.astype(np.float64), axis=1).max() + shape.radius
    reach = np.nextafter(np.float32(furthest), np.float32(np.inf))
    no_table = (np.empty(0, np.uint32), np.empty(0, np.uint16))
    if shape.is_box:
        return PackedShape(int(BOX), offset, size, reach, np.empty((0, 3), np.float32), *no_table)
    if len(vertices) <= _MAX_BRUTE or not table:
        return PackedShape(int(BRUTE), offset, size, reach, vertices, *no_table)
    entries = build_support_table(vertices)
    if max(entries.count.max(), 0) > int(COUNT_MASK) or len(entries.entries) >= 1 << (32 - int(COUNT_BITS)):
        return PackedShape(int(BRUTE), offset, size, reach, vertices, *no_table)
    cells = (entries.start.astype(np.uint32) << np.uint32(COUNT_BITS)) | entries.count.astype(np.uint32)
    return PackedShape(int(TABLE), offset, size, reach, vertices, cells, entries.entries)


@dataclass(frozen=True)
class ShapeArrays:
    """Shapes as the arrays of `kernels.shapes.Shapes`, on the host."""

    header: NDArray[np.int32]
    size: NDArray[np.float32]
    reach: NDArray[np.float32]
    points: NDArray[np.float32]
    cells: NDArray[np.uint32]
    entries: NDArray[np.uint16]

    def upload(self, device: str, spare_shapes: int = 0, spare_points: int = 0) -> Shapes:
        """The arrays on a device, with room after the last shape and the last point for shapes that come later."""
        out = Shapes()
        out.header = wp.array(_grown(self.header, spare_shapes), dtype=wp.vec4i, device=device)
        out.size = wp.array(_grown(self.size, spare_shapes), dtype=wp.vec4f, device=device)
        out.reach = wp.array(_grown(self.reach, spare_shapes), dtype=wp.float32, device=device)
        out.points = wp.array(_grown(self.points, spare_points), dtype=wp.vec3f, device=device)
        out.cells = wp.array(self.cells, dtype=wp.uint32, device=device)
        out.entries = wp.array(self.entries, dtype=wp.uint16, device=device)
        return out


def pack_shapes(shapes: Sequence[PackedShape]) -> ShapeArrays:
    """Lay packed shapes out one after the other; shape i of the arrays is shapes[i]."""
    first_point = np.cumsum([0, *(len(s.points) for s in shapes)])
    first_cell = np.cumsum([0, *(len(s.cells) for s in shapes)])
    first_entry = np.cumsum([0, *(len(s.entries) for s in shapes)])
    header = [
        [s.kind, first_point[i], first_entry[i] if len(s.entries) else len(s.points), first_cell[i]]
        for i, s in enumerate(shapes)
    ]
    return ShapeArrays(
        header=np.array(header, np.int32).reshape(-1, 4),
        size=np.array([s.size for s in shapes], np.float32).reshape(-1, 4),
        reach=np.array([s.reach for s in shapes], np.float32),
        points=np.concatenate([np.empty((0, 3), np.float32), *(s.points for s in shapes)]),
        # Never empty: a kernel argument of no elements has no address to check in debug mode.
        cells=np.concatenate([*(s.cells for s in shapes), np.zeros(1, np.uint32)]),
        entries=np.concatenate([*(s.entries for s in shapes), np.zeros(1, np.uint16)]),
    )


def _grown(values: NDArray, rows: int) -> NDArray:
    return np.concatenate([values, np.zeros((rows, *values.shape[1:]), values.dtype)])
