"""Exact support tables: which vertices of a hull can be extreme, looked up by direction.

The directions are split by a cube map: 6 faces of 16 x 16 cells. A cell is the cone over a square, and over that cone
d . (p - q) is linear in the square's two coordinates; so if vertex q beats vertex p at all four corners it does so
everywhere in the cell, and p can be dropped without any loss. Where more than a few vertices are left (round parts,
seen along their axis), the cell is split into 4 x 4 smaller ones, twice at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FACE_CELLS = 16
SPLIT = 4  # a split cell has SPLIT x SPLIT children
_MAX_DEPTH = 2
_FEW = 4  # a cell with no more candidates is not split
# The kernel computes a direction's cell in float32, so a direction on a border may land on either side of it. Cells
# are widened by far more than that rounding (about 1e-7 on a face of width 2), so both sides hold the right vertex.
_BORDER = 1e-5


@dataclass(frozen=True)
class SupportTable:
    """Cells of one hull. The first 6 * FACE_CELLS^2 are the cube map's, face by face (+x -x +y -y +z -z), v, then u.

    count, shape (cells,), int32: candidates of a cell, or 0 where it is split. start, shape (cells,), int32: first
    entry of its candidates, or first cell of its children (v, then u). entries, shape (total,), uint16: vertices.
    """

    count: NDArray[np.int32]
    start: NDArray[np.int32]
    entries: NDArray[np.uint16]


def build_support_table(vertices: NDArray[np.float32]) -> SupportTable:
    """Support table of a hull's vertices [m], shape (V, 3), as float32 as the kernel sees them; V <= 65536."""
    if len(vertices) > 1 << 16:
        raise ValueError(f"a support table holds at most 65536 vertices, got {len(vertices)}")
    exact = np.asarray(vertices, np.float32).astype(np.float64)
    builder = _Builder(exact, [], [], [])
    builder.grow(6 * FACE_CELLS**2)
    width = 2.0 / FACE_CELLS
    everything = np.arange(len(exact))
    for face in range(6):
        for row in range(FACE_CELLS):
            for column in range(FACE_CELLS):
                cell = (face * FACE_CELLS + row) * FACE_CELLS + column
                square = (-1.0 + column * width, -1.0 + row * width, width)
                builder.fill(cell, face, square, everything, 0)
    entries = np.concatenate(builder.entries).astype(np.uint16)
    return SupportTable(np.array(builder.count, np.int32), np.array(builder.start, np.int32), entries)


@dataclass
class _Builder:
    """A table being filled; entries are kept per cell until the end."""

    vertices: NDArray[np.float64]
    count: list[int]
    start: list[int]
    entries: list[NDArray[np.intp]]
    total: int = 0

    def grow(self, cells: int) -> int:
        """Append empty cells and return the first one's number."""
        first = len(self.count)
        self.count += [0] * cells
        self.start += [0] * cells
        return first

    def fill(
        self, cell: int, face: int, square: tuple[float, float, float], among: NDArray[np.intp], depth: int
    ) -> None:
        """Fill a cell; square: lowest u, lowest v and width on the face. among: vertices that can be candidates."""
        kept = among[_undominated(self.vertices[among] @ _corners(face, square).T)]
        if len(kept) > _FEW and depth < _MAX_DEPTH:
            self.start[cell] = self.grow(SPLIT**2)
            u, v, width = square[0], square[1], square[2] / SPLIT
            for child in range(SPLIT**2):
                corner = (u + (child % SPLIT) * width, v + (child // SPLIT) * width, width)
                self.fill(self.start[cell] + child, face, corner, kept, depth + 1)
            return
        self.count[cell], self.start[cell] = len(kept), self.total
        self.entries.append(kept)
        self.total += len(kept)


def _corners(face: int, square: tuple[float, float, float]) -> NDArray[np.float64]:
    """Corner directions, shape (4, 3), of a square of the direction cube, widened by the border."""
    u, v, width = square
    axis, sign = face // 2, 1.0 - 2.0 * (face % 2)
    corners = np.empty((4, 3))
    corners[:, axis] = sign
    corners[:, (axis + 1) % 3] = (u - _BORDER, u + width + _BORDER) * 2
    corners[:, (axis + 2) % 3] = np.repeat((v - _BORDER, v + width + _BORDER), 2)
    return corners


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
