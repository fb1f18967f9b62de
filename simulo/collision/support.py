"""Exact support tables: which vertices of a hull can be extreme, looked up by direction.

The directions are split by a cube map: 6 faces of 8 x 8 cells. A cell is the cone over a square, and over that cone
d . (p - q) is linear in the square's two coordinates; so if vertex q beats vertex p at all four corners it does so
everywhere in the cell, and p can be dropped without any loss. What is left is 2 to 3 vertices per cell on real links.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FACE_CELLS = 8
NUM_CELLS = 6 * FACE_CELLS * FACE_CELLS
# The kernel computes a direction's cell in float32, so a direction on a border may land on either side of it. Cells
# are widened by far more than that rounding (about 1e-7 on a face of width 2), so both sides hold the right vertex.
_BORDER = 1e-5


@dataclass(frozen=True)
class SupportTable:
    """Per cell, the vertices that can be extreme for some direction in it.

    points [m], shape (total, 3), float32: the cells' candidates one after the other.
    start, count: shape (NUM_CELLS,), int32: each cell's slice of `points`.
    """

    points: NDArray[np.float32]
    start: NDArray[np.int32]
    count: NDArray[np.int32]


def build_support_table(vertices: NDArray) -> SupportTable:
    """Support table of a hull's vertices [m], shape (V, 3), rounded to float32 first as the kernel sees them."""
    rounded = np.asarray(vertices, dtype=np.float32)
    exact = rounded.astype(np.float64)
    points, start, count = [], np.zeros(NUM_CELLS, np.int32), np.zeros(NUM_CELLS, np.int32)
    total = 0
    for cell, corners in enumerate(_cell_corners()):
        kept = _undominated(exact @ corners.T)
        points.append(rounded[kept])
        start[cell], count[cell] = total, len(kept)
        total += len(kept)
    return SupportTable(np.concatenate(points), start, count)


def _cell_corners() -> NDArray[np.float64]:
    """Corner directions of every cell, shape (NUM_CELLS, 4, 3); order: face (+x -x +y -y +z -z), then v, then u."""
    edges = np.linspace(-1.0, 1.0, FACE_CELLS + 1)
    corners = np.empty((6, FACE_CELLS, FACE_CELLS, 4, 3))
    for face in range(6):
        axis, sign = face // 2, 1.0 - 2.0 * (face % 2)
        for row in range(FACE_CELLS):
            for column in range(FACE_CELLS):
                us = (edges[column] - _BORDER, edges[column + 1] + _BORDER)
                vs = (edges[row] - _BORDER, edges[row + 1] + _BORDER)
                for k, (u, v) in enumerate((u, v) for v in vs for u in us):
                    corners[face, row, column, k, axis] = sign
                    corners[face, row, column, k, (axis + 1) % 3] = u
                    corners[face, row, column, k, (axis + 2) % 3] = v
    return corners.reshape(NUM_CELLS, 4, 3)


def _undominated(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows of values, shape (V, 4), that no other row matches or beats in every column; of equal rows the first."""
    kept = np.arange(len(values))
    # One pass against the best row of the middle and of each corner leaves a handful for the quadratic test.
    for row in {int(np.argmax(values.sum(1))), *(int(i) for i in values.argmax(0))}:
        beaten = (values[row] >= values[kept]).all(1) & (kept != row)
        equal = (values[kept] == values[row]).all(1)
        kept = kept[~(beaten & ~(equal & (kept < row)))]
    beats = (values[kept][:, None, :] >= values[kept][None, :, :]).all(2)
    equal = beats & beats.T
    first = np.tri(len(kept), k=-1, dtype=bool)  # first[i, j]: j comes before i
    dominated = (beats.T & ~equal) | (equal & first)
    return kept[~dominated.any(1)]
