"""Clearance maps: how far two links are apart at least, by the values of the one or two columns between them.

Links with one or two joints between them are near each other in every configuration: they are most of what bounding
spheres and boxes leave over, and most of what is searched. Where they stand depends on two numbers alone, so a grid
over these is made once. The certified distance in the middle of a box of values, less what the pair can move from there
to the box's corners (see `motion`), bounds the distance in all of the box; a box that says too little is cut in half,
down to a cell of the grid (branch and bound on Lipschitz constants: Piyavskii 1972). The check looks a pair's cell up
before it searches, and the motion check learns which pairs never come near each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from simulo.collision.checker import CollisionChecker
from simulo.collision.clearance_maps import ClearanceMaps, code_of
from simulo.collision.model import CollisionModel
from simulo.collision.motion import MotionBounds, build_levers, endless_slides

_MOST_COLUMNS = 2
_MOST_CELLS = 1 << 16  # of a map: 64 KiB
_FINEST = 2e-4  # m: cells that move a pair less than this are not cut any further
_BATCH = 1024
_FIRST = 256  # boxes that are looked at first
_KEPT = 0.5  # the share of the distance in its middle that is enough to know of a box; more costs more boxes
_COARSE = 1 << 12  # boxes; where there are more, it is enough to know of one that the pair is ENOUGH [m] apart
_ENOUGH = 1e-3
_ROUNDING = 1e-6  # m: what float32 joint values may move a pair
# Of a cell's edge: by so much wider are the boxes than the cells, since a value is put into a cell in float32.
_WIDER = 0.01


@lru_cache(maxsize=16)  # every gate of a robot asks for the same
def build_clearance(model: CollisionModel) -> ClearanceMaps:
    """Maps of all pairs of links with so few columns between them, each over the range that levers hold for.

    There is none for a pair whose columns turn without end, nor for any where some slide has no limits.
    """
    maps = ClearanceMaps.none(model)
    if endless_slides(model):
        return maps
    plain = model.pair_arrays.links[: model.pair_arrays.num_plain]
    levers, checker = build_levers(model), CollisionChecker(model, _BATCH, self_margin=0.0)
    for links in np.unique(plain, axis=0):
        rows = np.flatnonzero((plain == links).all(axis=1))
        pair = _Pair.of(model, levers, links, rows)
        if pair is not None:
            maps = maps.with_map(rows, pair.columns, pair.low, pair.edge, pair.map(checker))
    return maps


def build_motion_bounds(model: CollisionModel) -> MotionBounds:
    """Everything that a checker of motion needs to know of a model: levers, and what stays apart by itself.

    Raises CollisionModelError as `build_levers` does.
    """
    return replace(build_levers(model), always=build_clearance(model).least())


@dataclass(frozen=True)
class _Pair:
    """Two links by name, the columns between them, how far each moves the pair [m per rad, or per m of a slide], and
    the grid: its corner, and the edge and number of its cells along each column."""

    links: tuple[str, str]
    columns: NDArray[np.int64]
    lever: NDArray[np.float64]
    low: NDArray[np.float64]
    edge: NDArray[np.float64]
    counts: tuple[int, ...]

    @staticmethod
    def of(model: CollisionModel, levers: MotionBounds, links: NDArray, rows: NDArray) -> _Pair | None:
        """None where too many columns, or none, or endless ones lie between."""
        lever = levers.pair[rows].max(axis=0).astype(np.float64)
        columns = np.flatnonzero(lever)
        low, high = levers.low[columns].astype(np.float64), levers.high[columns].astype(np.float64)
        if not 0 < len(columns) <= _MOST_COLUMNS or not np.isfinite([low, high]).all():
            return None
        counts = np.ones(len(columns), np.int64)
        motion = (high - low) * lever[columns]
        while counts.prod() < _MOST_CELLS and (motion / counts).max() > _FINEST:
            counts[np.argmax(motion / counts)] *= 2
        names = (model.link_names[links[0]], model.link_names[links[1]])
        return _Pair(names, columns, lever[columns], low, (high - low) / counts, tuple(int(count) for count in counts))

    def map(self, checker: CollisionChecker) -> NDArray[np.uint8]:
        """The cells' codes, shape `counts`."""
        cells = np.zeros(self.counts, np.uint8)
        size = self._cut(np.array(self.counts), _FIRST)
        boxes = self._boxes(size)
        known = np.zeros(len(boxes))
        while len(boxes):
            motion = float((0.5 + _WIDER) * (size * self.edge) @ self.lever) + _ROUNDING
            found = self._distances(checker, self.low + (boxes + 0.5 * size) * self.edge)
            known = np.maximum(known, found - motion)
            self._write(cells, boxes, size, known)
            number = int(np.prod(np.array(self.counts) // size))
            wanted = _KEPT * found if number < _COARSE else np.minimum(_KEPT * found, _ENOUGH)
            open_ = (known < wanted) & (found > -motion)  # not where the pair meets all over the box
            if size.max() == 1 or not open_.any():
                break
            smaller = self._cut(size, 2 * number)
            step = size - smaller
            boxes = np.concatenate([boxes[open_], boxes[open_] + np.where(step > 0, smaller, 0)])
            known, size = np.tile(known[open_], 2), smaller
        return cells

    def _cut(self, size: NDArray[np.int64], boxes: int) -> NDArray[np.int64]:
        """Boxes of `size` cells cut across what moves the pair most, until there are so many of them in all."""
        size = size.copy()
        while np.prod(np.array(self.counts) // size) < boxes and size.max() > 1:
            size[np.argmax(np.where(size > 1, size * self.edge * self.lever, -1.0))] //= 2
        return size

    def _boxes(self, size: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first cells of all boxes of a size, shape (K, columns)."""
        axes = [np.arange(0, count, step) for count, step in zip(self.counts, size, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    def _write(self, cells: NDArray[np.uint8], boxes: NDArray, size: NDArray, known: NDArray[np.float64]) -> None:
        """A view with one box per place along the even axes, and its cells along the odd ones."""
        view = cells.reshape([n for count, step in zip(self.counts, size, strict=True) for n in (count // step, step)])
        place = tuple(index for axis in range(len(size)) for index in (boxes[:, axis] // size[axis], slice(None)))
        view[place] = code_of(known).reshape(-1, *[1] * len(size))

    def _distances(self, checker: CollisionChecker, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Certified distances [m] with the columns at `values`, shape (K, columns); the others do not matter."""
        out = []
        for first in range(0, len(values), _BATCH):
            part = torch.tensor(values[first : first + _BATCH], dtype=torch.float32)
            q = torch.zeros(len(part), checker.model.num_joints)
            q[:, self.columns] = part
            ids = range(len(part))
            out.append(checker.check(q, env_ids=ids, links=self.links, world=False, distances=True).distance)
        return torch.cat(out).double().numpy()
