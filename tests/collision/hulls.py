"""Random hulls, and the kernel's distance of placed pairs of them, for tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from simulo.collision.kernels.bodies import meets
from simulo.collision.kernels.convex import FAR, SLACK
from simulo.collision.kernels.shapes import Shapes, support
from simulo.collision.pool import pack_shape, pack_shapes
from simulo.collision.shapes import ConvexShape

SLACK_M = float(SLACK)


def random_hull(rng: np.random.Generator, count: int, size=(0.02, 0.15)) -> np.ndarray:
    """Vertices [m] on a random ellipsoid, centred off the origin."""
    points = rng.normal(size=(count, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points * rng.uniform(*size, 3) + rng.uniform(-0.02, 0.02, 3)


@wp.kernel(enable_backward=False)
def _meets_kernel(
    shapes: Shapes,
    a: wp.array(dtype=wp.int32),
    b: wp.array(dtype=wp.int32),
    rotation: wp.array(dtype=wp.mat33f),
    position: wp.array(dtype=wp.vec3f),
    above: wp.float32,
    lower_out: wp.array(dtype=wp.float32),
    exact_out: wp.array(dtype=wp.int32),
    capped_out: wp.array(dtype=wp.int32),
):
    i = wp.tid()
    gap = meets(shapes, a[i], b[i], rotation[i], position[i], above, True)
    lower_out[i] = gap.lower
    exact_out[i] = gap.exact
    capped_out[i] = gap.capped


@wp.kernel(enable_backward=False)
def _support_kernel(shapes: Shapes, shape: wp.int32, d: wp.array(dtype=wp.vec3f), point_out: wp.array(dtype=wp.vec3f)):
    i = wp.tid()
    point_out[i] = support(shapes, shape, d[i])


@dataclass(frozen=True)
class Gaps:
    """Kernel answers: certified lower bound [m], whether it is exact, and whether a search was capped."""

    lower: np.ndarray
    exact: np.ndarray
    capped: np.ndarray


class HullPool:
    """Shapes on the device. `offset[i]` is where shape i's packed frame lies in its own."""

    def __init__(self, shapes: list[ConvexShape], table: bool = True) -> None:
        packed = [pack_shape(shape, table) for shape in shapes]
        self.offset = np.array([p.offset for p in packed], np.float64)
        self.packed = packed
        self._shapes = pack_shapes(packed).upload("cpu")

    def vertices(self, i: int, shape: ConvexShape) -> np.ndarray:
        """The vertices as the kernel has them, in the packed frame."""
        return (shape.vertices - self.offset[i]).astype(np.float32).astype(np.float64)

    def gaps(self, a, b, rotation, position, above: float = float(FAR)) -> Gaps:
        """Gaps of pairs; rotation, position place the packed frame of b in that of a, rounded to float32."""
        n = len(a)
        lower, exact, capped = wp.zeros(n, dtype=wp.float32), wp.zeros(n, dtype=wp.int32), wp.zeros(n, dtype=wp.int32)
        wp.launch(
            _meets_kernel,
            n,
            inputs=[
                self._shapes,
                wp.array(np.asarray(a), dtype=wp.int32),
                wp.array(np.asarray(b), dtype=wp.int32),
                wp.array(np.asarray(rotation, np.float32), dtype=wp.mat33f),
                wp.array(np.asarray(position, np.float32), dtype=wp.vec3f),
                above,
            ],
            outputs=[lower, exact, capped],
            device="cpu",
        )
        return Gaps(lower.numpy().astype(np.float64), exact.numpy() != 0, capped.numpy())

    def supports(self, i: int, directions) -> np.ndarray:
        d = wp.array(np.asarray(directions, np.float32), dtype=wp.vec3f)
        out = wp.zeros(len(d), dtype=wp.vec3f)
        wp.launch(_support_kernel, len(d), inputs=[self._shapes, i, d], outputs=[out], device="cpu")
        return out.numpy().astype(np.float64)
