"""Shapes that arrive after construction (payloads, primitives, the cell), in slots planned for them."""

from __future__ import annotations

import numpy as np
import torch
import warp as wp

from simulo.collision.kernels.shapes import BRUTE, Shapes
from simulo.collision.pool import PackedShape, ShapeArrays, pack_shape
from simulo.collision.shapes import ConvexShape
from simulo.errors import CollisionModelError

MAX_VERTICES = 256  # of one payload or primitive; every support tries them all


class ShapeLibrary:
    """The pool on the device: the robot's shapes, then `slots` places of MAX_VERTICES points each."""

    def __init__(self, robot_shapes: ShapeArrays, slots: int, device: str) -> None:
        self._first = len(robot_shapes.reach)
        self._first_point = len(robot_shapes.points)
        self._slots = slots
        self.shapes: Shapes = robot_shapes.upload(device, slots, slots * MAX_VERTICES)
        self._header = wp.to_torch(self.shapes.header)
        self._size = wp.to_torch(self.shapes.size)
        self._reach = wp.to_torch(self.shapes.reach)
        self._points = wp.to_torch(self.shapes.points)

    def shape_index(self, slot: int) -> int:
        """The pool index of a slot's shape."""
        assert 0 <= slot < self._slots
        return self._first + slot

    def refuse(self, shape: ConvexShape, what: str) -> None:
        """CollisionModelError, naming `what`, for a shape that no slot can hold."""
        if len(shape.vertices) > MAX_VERTICES:
            raise CollisionModelError(
                f"{what} has {len(shape.vertices)} vertices, at most {MAX_VERTICES} fit; pass fewer that hold it "
                "(ConvexShape.cylinder circumscribes a round one with 48)"
            )

    def put(self, slot: int, shape: ConvexShape, what: str) -> PackedShape:
        """Place a shape in a slot, in the stead of what was there. Returns it packed: poses must add its offset."""
        self.refuse(shape, what)
        packed = pack_shape(shape, table=False)
        index, first = self.shape_index(slot), self._first_point + slot * MAX_VERTICES
        self._header[index] = torch.tensor([packed.kind, first, len(packed.points), 0], dtype=torch.int32)
        self._size[index] = torch.from_numpy(packed.size)
        self._reach[index] = float(packed.reach)
        if packed.kind == int(BRUTE):
            self._points[first : first + len(packed.points)] = torch.from_numpy(np.ascontiguousarray(packed.points))
        return packed
