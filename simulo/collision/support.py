"""Exact support tables: which vertices of a hull can be extreme, looked up by direction.

The directions are split by a cube map: 6 faces of 16 x 16 cells. A cell is the cone over a square, and over that cone
d . (p - q) is linear in the square's two coordinates; so if vertex q beats vertex p at all four corners it does so
everywhere in the cell, and p can be dropped without any loss. Where more than a few vertices are left (round parts,
seen along their axis), the cell is split into 4 x 4 smaller ones, twice at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FACE_CELLS = 16
_COARSE_CELLS = 4
SPLIT = 4  # a split cell has SPLIT x SPLIT children
_MAX_DEPTH = 2
_FEW = 4  # a cell with no more candidates is not split
# The kernel computes a direction's cell in float32, so a direction on a border may land on either side of it. Cells
# are widened by far more than that rounding (about 1e-7 on a face of width 2), so both sides hold the right vertex.
_BORDER = 1e-5
_ROWS = 256  # cells compared at a time


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
    return _table_of(np.ascontiguousarray(vertices, np.float32).tobytes())


@lru_cache(maxsize=256)  # every gate and self-filter of a robot asks for the same hulls
def _table_of(vertices: bytes) -> SupportTable:
    exact = np.frombuffer(vertices, np.float32).reshape(-1, 3).astype(np.float64)
    # What wins nowhere in a coarse cell wins nowhere in its parts: the whole hull is compared in a few cells only.
    coarse, squares = _cube_map(_COARSE_CELLS), _cube_map(FACE_CELLS)
    everything = np.broadcast_to(np.arange(len(exact)), (len(coarse), len(exact)))
    face, u, v, _ = squares.T
    row, column = ((along + 1.0) * (_COARSE_CELLS / 2) // 1 for along in (v, u))
    parent = ((face * _COARSE_CELLS + row) * _COARSE_CELLS + column).astype(int)
    among = _narrowed(exact, coarse, everything)[parent]
    counts, starts, entries = [], [], []
    cells = entry = 0
    for depth in range(_MAX_DEPTH + 1):
        kept = _narrowed(exact, squares, among)
        found = (kept >= 0).sum(1)
        split = (found > _FEW) & (depth < _MAX_DEPTH)
        count = np.where(split, 0, found)
        # Children follow every cell of this level, in the order of their parents.
        children = cells + len(squares) + (np.cumsum(split) - split) * SPLIT**2
        starts.append(np.where(split, children, entry + np.cumsum(count) - count))
        counts.append(count)
        whole = kept[~split]
        entries.append(whole[whole >= 0])
        cells, entry = cells + len(squares), entry + int(count.sum())
        squares, among = _children(squares[split]), np.repeat(kept[split], SPLIT**2, axis=0)
    return _shared(np.concatenate(counts), np.concatenate(starts), np.concatenate(entries))


def _shared(counts: NDArray[np.intp], starts: NDArray[np.intp], entries: NDArray[np.intp]) -> SupportTable:
    """The table with every list of candidates there once: most cells have the same few as others, and a search that
    asks a dozen hulls has their tables in a core's cache if they are small."""
    starts, kept, size = starts.copy(), [], 0
    for count in np.unique(counts[counts > 0]):
        cells = np.flatnonzero(counts == count)
        lists, which = np.unique(entries[starts[cells, None] + np.arange(count)], axis=0, return_inverse=True)
        starts[cells] = size + which.ravel() * count
        kept.append(lists.ravel())
        size += lists.size
    return SupportTable(counts.astype(np.int32), starts.astype(np.int32), np.concatenate(kept).astype(np.uint16))


def _cube_map(cells: int) -> NDArray[np.float64]:
    """Squares of a cube map, shape (6 * cells^2, 4): face, lowest u, lowest v, width."""
    width = 2.0 / cells
    low = np.arange(cells) * width - 1.0
    face, v, u = np.meshgrid(np.arange(6.0), low, low, indexing="ij")
    return np.stack([face.ravel(), u.ravel(), v.ravel(), np.full(face.size, width)], axis=1)


def _children(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """SPLIT x SPLIT squares for each, v, then u: shape (len(squares) * SPLIT^2, 4)."""
    face, u, v, width = np.repeat(squares, SPLIT**2, axis=0).T
    child = np.tile(np.arange(SPLIT**2), len(squares))
    width = width / SPLIT
    return np.stack([face, u + (child % SPLIT) * width, v + (child // SPLIT) * width, width], axis=1)


def _corners(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Corner directions, shape (cells, 4, 3), of squares of the direction cube, widened by the border."""
    face, u, v, width = squares.T
    axis, rows = (face // 2).astype(int), np.arange(len(squares))
    corners = np.empty((len(squares), 4, 3))
    for corner in range(4):
        corners[rows, corner, axis] = 1.0 - 2.0 * (face % 2)
        corners[rows, corner, (axis + 1) % 3] = u + width + _BORDER if corner % 2 else u - _BORDER
        corners[rows, corner, (axis + 2) % 3] = v + width + _BORDER if corner // 2 else v - _BORDER
    return corners


def _narrowed(vertices: NDArray[np.float64], squares: NDArray[np.float64], among: NDArray[np.intp]) -> NDArray[np.intp]:
    """Each cell's undominated candidates: vertex numbers in ascending order, shape (cells, K), padded with -1."""
    size = (among >= 0).sum(1)
    ranked = np.argsort(-size, kind="stable")  # cells of like size together: the padding costs little
    out = np.full(among.shape, -1)
    for first in range(0, len(ranked), _ROWS):
        rows = ranked[first : first + _ROWS]
        kept = _undominated(vertices, squares[rows], among[rows, : size[rows[0]]])
        out[rows, : kept.shape[1]] = kept
    return out[:, : (out >= 0).sum(1).max(initial=0)]


def _undominated(
    vertices: NDArray[np.float64], squares: NDArray[np.float64], among: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Of each cell's candidates those that no other matches or beats at every corner; of equal ones the first."""
    values = np.einsum("nkd,ncd->nck", vertices[among], _corners(squares))
    values = np.where(among[:, None] >= 0, values, -np.inf)
    place = np.arange(among.shape[1])
    # One pass against the best of the middle and of each corner leaves a handful for the quadratic test.
    kept = among >= 0
    for best in (values.sum(1).argmax(1), *values.argmax(2).T):
        rival = np.take_along_axis(values, best[:, None, None], axis=2)
        equal = (rival == values).all(1)
        kept &= ~((rival >= values).all(1) & (~equal | (best[:, None] < place)))
    order = _packing(kept)
    left = np.where(np.take_along_axis(kept, order, 1), np.take_along_axis(among, order, 1), -1)
    last = _against_each_other(left, np.take_along_axis(values, order[:, None], 2))
    return np.take_along_axis(last, _packing(last >= 0), 1)


def _packing(kept: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Columns, row by row, that bring what is kept to the left in its order; as many as the fullest row keeps."""
    return np.argsort(~kept, axis=1, kind="stable")[:, : kept.sum(1).max(initial=0)]


def _against_each_other(among: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.intp]:
    """As `_undominated`, every candidate against every other; values: shape (cells, 4, K)."""
    beats = np.ones((len(among), among.shape[1], among.shape[1]), bool)  # beats[n, i, j]: i matches or beats j
    for corner in range(4):
        beats &= values[:, corner, :, None] >= values[:, corner, None, :]
    equal = beats & beats.transpose(0, 2, 1)
    earlier = np.tri(among.shape[1], k=-1, dtype=bool).T  # earlier[i, j]: i comes before j
    beaten = (beats & (~equal | earlier)).any(1)
    return np.where(beaten, -1, among)
