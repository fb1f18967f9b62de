"""What `clearance` finds out, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulo.collision.kernels.types import CLEARANCE_UNIT
from simulo.collision.model import CollisionModel


def code_of(clearance: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Bounds [m] as cells hold them, rounded down: the root, so that small ones are told apart more finely."""
    return np.clip(np.floor(np.sqrt(np.maximum(clearance, 0.0) / float(CLEARANCE_UNIT))), 0, 255).astype(np.uint8)


@dataclass(frozen=True)
class ClearanceMaps:
    """Grids over the columns between two links. All bodies of two links share one map.

    model: the content digest of the model they hold for.
    head (P, 4) int32: first cell, or -1 for a pair without a map; the map's number of cells along its first column and
    its second; and both columns as first + second * 2^16. place (P, 4) float32: per column, the corner of the grid
    [rad or m], and cells per unit of the column. A map of one column has one cell along the second.
    cells (C,) uint8: codes of lower bounds of the distance (see `code_of`), row by row along the first column.
    """

    model: str
    head: NDArray[np.int32]
    place: NDArray[np.float32]
    cells: NDArray[np.uint8]

    @staticmethod
    def none(model: CollisionModel) -> ClearanceMaps:
        """No map for any pair."""
        pairs = len(model.pair_arrays.pair)
        head = np.zeros((pairs, 4), np.int32)
        head[:, 0] = -1
        return ClearanceMaps(model.content_digest, head, np.zeros((pairs, 4), np.float32), np.zeros(0, np.uint8))

    def with_map(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64], low: NDArray, edge: NDArray, cells: NDArray[np.uint8]
    ) -> ClearanceMaps:
        """With a map for these pairs. low [rad or m], edge: the grid's corner and its cells' edges, one per column."""
        head, place = self.head.copy(), self.place.copy()
        counts = (*cells.shape, 1)[:2]
        head[rows] = (len(self.cells), *counts, columns[0] | columns[-1] << 16)
        place[rows, : 2 * len(columns)] = np.stack([low, 1.0 / edge], axis=1).ravel()
        return ClearanceMaps(self.model, head, place, np.concatenate([self.cells, cells.ravel()]))

    def least(self) -> NDArray[np.float32]:
        """What each pair never comes below [m], shape (P,), 0 where nothing is known."""
        out = np.zeros(len(self.head), np.float32)
        for pair in np.flatnonzero(self.head[:, 0] >= 0):
            first, along, across = self.head[pair, :3]
            out[pair] = CLEARANCE_UNIT * float(self.cells[first : first + along * across].min()) ** 2
        return out
