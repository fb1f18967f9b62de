"""Convex shapes: vertices swept by a ball.

A sphere is one vertex with a ball, a capsule two, a box eight without, a hull its vertices; so one distance routine
serves them all.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulo.errors import CollisionModelError


@dataclass(frozen=True)
class ConvexShape:
    """The convex hull of `vertices`, grown by `radius`.

    vertices [m], shape (V, 3), in the shape's frame. radius [m], >= 0. is_box: the vertices are the eight corners of
    a box with its faces along the shape's axes and its centre at `centre`.
    """

    vertices: NDArray[np.float64]
    radius: float = 0.0
    is_box: bool = False

    def __post_init__(self) -> None:
        vertices = np.array(self.vertices, dtype=np.float64)
        if vertices.ndim != 2 or vertices.shape[1] != 3 or len(vertices) == 0:
            raise CollisionModelError(f"a convex shape needs vertices (V, 3) with V >= 1, got {vertices.shape}")
        if not np.isfinite(vertices).all():
            raise CollisionModelError("a convex shape's vertices must be finite [m]; found NaN or infinity")
        if not (np.isfinite(self.radius) and self.radius >= 0.0):
            raise CollisionModelError(f"a convex shape's ball radius must be finite and >= 0 m, got {self.radius!r}")
        vertices.setflags(write=False)
        object.__setattr__(self, "vertices", vertices)

    @staticmethod
    def sphere(radius: float) -> ConvexShape:
        return ConvexShape(np.zeros((1, 3)), _positive(radius, "sphere radius"))

    @staticmethod
    def capsule(radius: float, length: float) -> ConvexShape:
        """Capsule along z; length [m] is between the centres of its two caps."""
        half = 0.5 * _positive(length, "capsule length")
        return ConvexShape(np.array([[0.0, 0.0, -half], [0.0, 0.0, half]]), _positive(radius, "capsule radius"))

    @staticmethod
    def box(size: ArrayLike) -> ConvexShape:
        """Box centred at the origin; size [m] holds its full edges, shape (3,)."""
        edges = np.asarray(size, dtype=np.float64)
        if edges.shape != (3,) or not (np.isfinite(edges).all() and (edges > 0.0).all()):
            raise CollisionModelError(f"a box needs three finite positive full edges in metres, got {size!r}")
        corners = np.array(list(itertools.product((-0.5, 0.5), repeat=3))) * edges
        return ConvexShape(corners, 0.0, is_box=True)

    @staticmethod
    def cylinder(radius: float, length: float, sides: int = 24) -> ConvexShape:
        """Cylinder along z, full `length` [m], inside a prism that overhangs it by r (1 / cos(pi / sides) - 1)."""
        outer = _positive(radius, "cylinder radius") / np.cos(np.pi / sides)
        half = 0.5 * _positive(length, "cylinder length")
        angles = 2.0 * np.pi * np.arange(sides) / sides
        ring = np.stack([outer * np.cos(angles), outer * np.sin(angles)], axis=1)
        bottom = np.column_stack([ring, np.full(sides, -half)])
        return ConvexShape(np.concatenate([bottom, bottom * (1.0, 1.0, -1.0)]))

    @property
    def centre(self) -> NDArray[np.float64]:
        """Middle of the axis-aligned bounding box in the shape's frame [m], shape (3,)."""
        return 0.5 * (self.vertices.min(0) + self.vertices.max(0))

    @property
    def half(self) -> NDArray[np.float64]:
        """Half edges of that bounding box, without the ball [m], shape (3,)."""
        return 0.5 * (self.vertices.max(0) - self.vertices.min(0))


def _positive(value: float, what: str) -> float:
    if not (np.isfinite(value) and value > 0.0):
        raise CollisionModelError(f"a {what} must be finite and positive in metres, got {value!r}")
    return float(value)
