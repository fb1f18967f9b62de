"""Pairs that stay apart wherever their joints stand: found once, so that the motion check need not look at them.

Links with one or two joints between them are near each other in every configuration, and are most of what bounding
spheres leave over. For such a pair the joints' whole range is cut into boxes; the certified distance in a box's middle,
less its motion bound to the box's corners, bounds the box, and boxes that bound too little are cut in half.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from simulo.collision.checker import CollisionChecker
from simulo.collision.model import CollisionModel
from simulo.collision.motion import MotionBounds, build_levers

_MOST_COLUMNS = 2
_MOST_BOXES = 4096
_BATCH = 1024
_KEPT = 0.5  # the share of the least distance found that has to be proven; more costs more boxes
_ROUNDING = 1e-6  # m: what float32 joint values may move a pair
_LEAST = 5e-4  # m: pairs that come nearer are not worth proving


def build_motion_bounds(model: CollisionModel) -> MotionBounds:
    """Everything that a checker of motion needs to know of a model: levers, and what stays apart by itself."""
    levers = build_levers(model)
    arrays = model.pair_arrays
    always = np.zeros(len(arrays.pair), np.float32)
    checker = CollisionChecker(model, _BATCH, self_margin=0.0)
    for links in np.unique(arrays.links[: arrays.num_plain], axis=0):
        rows = np.flatnonzero((arrays.links[: arrays.num_plain] == links).all(axis=1))
        lever = levers.pair[rows].max(axis=0).astype(np.float64)
        if 0 < np.count_nonzero(lever) <= _MOST_COLUMNS:
            always[rows] = _least_distance(model, levers, checker, links, lever)
    return replace(levers, always=always)


def _least_distance(
    model: CollisionModel, levers: MotionBounds, checker: CollisionChecker, links: NDArray, lever: NDArray
) -> float:
    """A certified lower bound of a pair's distance over its joints' range [m], 0 where none is found."""
    columns = np.flatnonzero(lever)
    low, high = levers.low[columns].astype(np.float64), levers.high[columns].astype(np.float64)
    if not np.isfinite([low, high]).all():
        return 0.0
    names = (model.link_names[links[0]], model.link_names[links[1]])
    middles, halves = 0.5 * (low + high)[None], 0.5 * (high - low)[None]
    kept, least = np.inf, np.inf
    while len(middles):
        found = _distances(checker, names, columns, middles)
        least = min(least, float(found.min()))
        bound = found - halves @ lever[columns]
        proven = bound >= _KEPT * least
        if least < _LEAST or len(middles) > _MOST_BOXES:
            return 0.0
        kept = min([kept, *bound[proven]])
        middles, halves = _cut(middles[~proven], halves[~proven], lever[columns])
    return float(kept) - _ROUNDING


def _cut(middles: NDArray, halves: NDArray, lever: NDArray) -> tuple[NDArray, NDArray]:
    """Boxes in two halves, across the column that moves the pair most."""
    across = np.eye(len(lever))[np.argmax(halves * lever, axis=1)]
    smaller = halves * (1.0 - 0.5 * across)
    shift = across * smaller
    return np.concatenate([middles - shift, middles + shift]), np.concatenate([smaller, smaller])


def _distances(checker: CollisionChecker, links: tuple[str, str], columns: NDArray, values: NDArray) -> NDArray:
    """Certified distances of two links [m], some columns at `values`, shape (K, columns); the others do not matter."""
    out = []
    for first in range(0, len(values), _BATCH):
        part = values[first : first + _BATCH]
        q = torch.zeros(_BATCH, checker.model.num_joints)
        q[: len(part), columns] = torch.tensor(part, dtype=torch.float32)
        out.append(checker.check(q, links=links, world=False, distances=True).distance[: len(part)].double().numpy())
    return np.concatenate(out)
