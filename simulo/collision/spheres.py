"""The first look at pairs: one body's bounding sphere against a block of others at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulo.collision.kernels.types import LANES
from simulo.collision.pairs import PairArrays

NO_PAIR = -3e19  # m: below any reach, and its square is past what float32 holds


@dataclass(frozen=True)
class SphereRows:
    """Asked pairs as `kernels.types.Spheres` has them; rows without a gate lead, `num_plain` of them.

    row (R, 4), pair (R, LANES) int32: -1 where a lane is no pair. reach (R, LANES) [m]: sum of the two radii, or
    NO_PAIR.
    """

    row: NDArray[np.int32]
    pair: NDArray[np.int32]
    reach: NDArray[np.float32]
    num_plain: int


def lanes_of(gates: NDArray[np.int32]) -> NDArray[np.int32]:
    """A lane for every body, shape (B,), such that no block of LANES holds bodies of two gates."""
    lanes, first = np.empty(len(gates), np.int32), 0
    for gate in np.unique(gates):
        members = np.flatnonzero(gates == gate)
        lanes[members] = first + np.arange(len(members))
        first = -(-(first + len(members)) // LANES) * LANES
    return lanes


def num_blocks(lanes: NDArray[np.int32]) -> int:
    return int(lanes.max()) // LANES + 1


def sphere_rows(pairs: PairArrays, lanes: NDArray[np.int32], asked: NDArray[np.int64]) -> SphereRows:
    """Rows of the asked pairs (indices). Each pair is in the row of the body of the later block: those are fewer."""
    rows: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for p in asked:
        first, second, gate = (int(v) for v in pairs.pair[p])
        one, other = sorted((int(lanes[first]), int(lanes[second])), reverse=True)
        rows.setdefault((gate, one, other // LANES), []).append((other % LANES, int(p)))
    keys = sorted(rows)
    pair, reach = np.full((len(keys), LANES), -1, np.int32), np.full((len(keys), LANES), NO_PAIR, np.float32)
    for r, key in enumerate(keys):
        for lane, p in rows[key]:
            pair[r, lane], reach[r, lane] = p, pairs.reach[p]
    heads = [(one, block, gate, len(rows[gate, one, block])) for gate, one, block in keys]
    plain = sum(gate == 0 for gate, _one, _block in keys)
    return SphereRows(np.array(heads, np.int32).reshape(-1, 4), pair, reach, plain)
