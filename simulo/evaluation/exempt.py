"""What the pairs that the self check leaves out would show: how often their links touch, and how often they would trip.

Two links that a joint joins, or that nothing moves against each other, need no check. Of every other row the links'
own triangles say what it leaves out: always touching is what a row is for, sometimes touching is contact unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from simulo.collision import CollisionChecker, build_model
from simulo.description import DisabledPair, RobotDescription, load_description
from simulo.evaluation.configuration import uniform
from simulo.evaluation.judges import judge_by_meshes
from simulo.evaluation.sweep import BLOCK, SEED, tripped_pairs

STRUCTURAL = ("adjacent", "rigid")
"""Rules whose rows need no review: the first word of their reasons."""

Progress = Callable[[str, int, int], None]


def review_exempt(
    robot: str, poses: int = 1000, seed: int = SEED, progress: Progress = lambda label, done, total: None
) -> dict[str, Any]:
    """The JSON of `simulo exempt`: every reviewed row with the seeded configurations in which its links touch, and in
    which what is checked of them would trip."""
    description = load_description(robot)
    rows = [row for row in description.disabled_pairs if rule_of(row) not in STRUCTURAL]
    figures = {
        "robot": description.name,
        "digest": description.digest,
        "truth": "exempt",
        "one_hull": False,
        "poses": poses,
        "seed": seed,
        "structural": len(description.disabled_pairs) - len(rows),
    }
    if not rows:
        return {**figures, "rows": []}
    model = build_model(_only(description, rows))
    q = uniform(description, np.random.default_rng(seed).random((poses, len(description.joints))))
    tripped = np.zeros((poses, len(model.pairs)), dtype=bool)
    checker = CollisionChecker(model, min(BLOCK, poses))
    for start in range(0, poses, BLOCK):
        block = slice(start, start + BLOCK)
        tripped[block] = tripped_pairs(checker, q[block], np.ones(len(q[block]), dtype=bool))
    judge = judge_by_meshes(description, model)
    judged = judge(q, tripped, lambda row: progress(f"exempt pairs of {description.name}", row, poses))
    reasons = {frozenset((row.link_a, row.link_b)): row for row in rows}
    found = zip(model.pairs, judged.touching.sum(axis=0), tripped.sum(axis=0), strict=True)
    by_pair = {frozenset(pair): (int(touching), int(trips)) for pair, touching, trips in found}
    return {**figures, "rows": [_row(reasons[key], poses, *by_pair[key]) for key in reasons]}


def rule_of(row: DisabledPair) -> str:
    """What a row is left out by: the first words of a generated reason; "declared" for one that is written by hand or
    taken from a file."""
    rule = row.reason.split(":")[0]
    return rule if rule in (*STRUCTURAL, "jaws", "always overlapping") else "declared"


def _row(row: DisabledPair, poses: int, touching: int, trips: int) -> dict[str, Any]:
    word = "needed" if touching == poses else "hides" if touching else "clear"
    return {
        "links": [row.link_a, row.link_b],
        "rule": rule_of(row),
        "reason": row.reason,
        "touching": touching,
        "tripped": trips,
        "says": word,
    }


def _only(description: RobotDescription, rows: list[DisabledPair]) -> RobotDescription:
    """The robot with these pairs checked and all others left out."""
    asked = {frozenset((row.link_a, row.link_b)) for row in rows}
    others = [pair for pair in combinations(description.geometry, 2) if frozenset(pair) not in asked]
    return replace(description, disabled_pairs=tuple(DisabledPair(*pair, "not reviewed") for pair in others))
