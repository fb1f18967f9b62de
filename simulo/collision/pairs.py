"""Which bodies are checked against which, and why the others are not."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulo.collision.bodies import BodyArrays
from simulo.collision.pool import ShapeArrays
from simulo.description.schema import DisabledPair, RobotDescription
from simulo.errors import CollisionModelError


@dataclass(frozen=True)
class PairArrays:
    """pair (P, 3) int32: body a, body b, gate; the robot's own pairs first, then those of measured copies; of these the
    largest links' first, which meet most often, and all bodies of two links one after the other. reach (P,) [m]: sum of
    the bounding spheres' radii. links (P, 2): the pair's links. num_plain: how many pairs have no measured copy in
    them."""

    pair: NDArray[np.int32]
    reach: NDArray[np.float32]
    links: NDArray[np.int32]
    num_plain: int


def build_pairs(
    description: RobotDescription,
    finger_model: Literal["mimic", "swept"],
    links: tuple[str, ...],
    bodies: BodyArrays,
    shapes: ShapeArrays,
) -> tuple[PairArrays, tuple[tuple[str, str], ...], tuple[DisabledPair, ...]]:
    """The checked pairs as arrays and by name, and the exempt ones with their reasons."""
    number = {name: i for i, name in enumerate(links)}
    exempt = tuple(p for p in description.exemptions(finger_model) if p.link_a in number and p.link_b in number)
    skipped = {frozenset((number[p.link_a], number[p.link_b])) for p in exempt}
    rows = []
    for a, b in combinations(range(len(bodies.body)), 2):
        link_a, link_b = int(bodies.link[a]), int(bodies.link[b])
        if link_a == link_b or frozenset((link_a, link_b)) in skipped or _mixes_fingers(bodies, a, b):
            continue
        first, second = (a, b) if link_a < link_b else (b, a)
        rows.append((int(bodies.gate[a] | bodies.gate[b]), min(link_a, link_b), max(link_a, link_b), first, second))
    reach = shapes.reach[bodies.body[:, 1]].astype(np.float64)
    largest: dict[tuple[int, int], float] = {}
    for _gate, link_a, link_b, first, second in rows:
        largest[link_a, link_b] = max(largest.get((link_a, link_b), 0.0), float(reach[first] + reach[second]))
    rows.sort(key=lambda row: (row[0] != 0, -largest[row[1:3]], row[1:3], row[0], row[3:]))
    plain = [row for row in rows if row[0] == 0]
    if not plain:
        raise CollisionModelError(
            f"robot {description.name!r} has no link pair left to check: {len(exempt)} are disabled; "
            "a check that asks nothing would call every pose clear"
        )
    sums = [reach[row[3]] + reach[row[4]] for row in rows]
    return (
        PairArrays(
            pair=np.array([(row[3], row[4], row[0]) for row in rows], np.int32),
            reach=np.nextafter(np.array(sums, np.float32), np.float32(np.inf)),
            links=np.array([row[1:3] for row in rows], np.int32),
            num_plain=len(plain),
        ),
        tuple(dict.fromkeys((links[row[1]], links[row[2]]) for row in plain)),
        exempt,
    )


def _mixes_fingers(bodies: BodyArrays, a: int, b: int) -> bool:
    """One hand's commanded finger against the same hand's measured finger: two places of one hand at once."""
    hand_a, hand_b = int(bodies.gate[a]), int(bodies.gate[b])
    if hand_a == hand_b:
        return False
    copied = {int(link) for link, gate in zip(bodies.link, bodies.gate, strict=True) if gate == (hand_a or hand_b)}
    if hand_a and hand_b:
        return False
    return int(bodies.link[a]) in copied and int(bodies.link[b]) in copied
