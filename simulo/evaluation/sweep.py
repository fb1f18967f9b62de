"""Contact sweeps: the checker's verdict on seeded poses against what really touches.

A stop is false where no contact is: on hulls where a separating plane is proven, on meshes where the triangles stay
apart and no part lies inside another's. Contacts, missed contacts and false stops are counted per pair and pose.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from simulo.collision import CollisionChecker, CollisionModel, build_model
from simulo.description import RobotDescription, load_description
from simulo.errors import SimuloError
from simulo.evaluation.configuration import check_configuration, uniform
from simulo.evaluation.contact_truth import HullTruth, MeshTruth, Pair
from simulo.evaluation.meshes import true_meshes
from simulo.files import write_json

Truth = Literal["hull", "mesh"]
Progress = Callable[[str, int, int], None]

BLOCK = 4096
SEED = 20260924


class SweepError(SimuloError, ValueError):
    """A sweep is asked of what it cannot be asked of."""


@dataclass
class Counts:
    """What a sweep has found so far; per pair by "a|b". false_clearance_mm: real distances at false stops (mesh truth).

    disputed: verdicts of the checker and MuJoCo that differed, and that a separating plane decided.
    """

    poses: int = 0
    contacts: int = 0
    missed: int = 0
    false_stops: int = 0
    refused: int = 0
    slop_only: int = 0
    disputed: int = 0
    seconds: float = 0.0
    contacts_by_pair: Counter[str] = field(default_factory=Counter)
    missed_by_pair: Counter[str] = field(default_factory=Counter)
    false_by_pair: Counter[str] = field(default_factory=Counter)
    false_clearance_mm: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Sweep:
    """A finished sweep: its counts and the JSON of `simulo sweep`."""

    counts: Counts
    figures: dict[str, Any]


def sweep(
    robot: str,
    poses: int = 3000,
    seed: int = SEED,
    truth: Truth = "hull",
    state: Path | None = None,
    progress: Progress = lambda label, done, total: None,
) -> Sweep:
    """Check `poses` uniform in-limit configurations of a robot against truth.

    truth "hull": MuJoCo on the very pieces that are checked, disputes decided by a separating plane in double. "mesh":
    the links' own triangles, asked only where the links' hulls touch (their meshes lie inside). state: a file that a
    killed sweep goes on from; it belongs to one robot, seed and truth. progress: called with a label, the poses done
    and all. Raises SweepError for a state of something else.
    """
    if poses < 1:
        raise SweepError(f"a sweep needs at least one pose, got {poses}")
    description = load_description(robot)
    model = build_model(description)
    identity = {"digest": model.digest, "seed": seed, "truth": truth}
    counts = _resumed(state, identity)
    if counts.poses > poses:
        raise SweepError(f"{state} holds {counts.poses} poses already, more than the {poses} asked for; remove it")
    judge = HullJudge(description, model) if truth == "hull" else MeshJudge(description, model)
    checker = CollisionChecker(model, BLOCK)
    stream = np.random.default_rng(seed)
    stream.random((counts.poses, len(description.joints)))  # what the sweep had when it was killed
    while counts.poses < poses:
        started = time.perf_counter()
        _count_block(description, checker, judge, stream, counts, poses, progress)
        counts.seconds += time.perf_counter() - started
        if state is not None:
            write_json(state, {**identity, "counts": vars(counts)})
    return Sweep(counts, _figures(description, model, counts, seed, truth))


def measured(
    description: RobotDescription,
    poses: int,
    seed: int = SEED,
    progress: Progress = lambda label, done, total: None,
) -> Counts:
    """Counts against mesh truth of a description that need not be on disk, as `sweep` makes them."""
    model = build_model(description)
    judge, checker = MeshJudge(description, model), CollisionChecker(model, min(BLOCK, poses))
    counts, stream = Counts(), np.random.default_rng(seed)
    while counts.poses < poses:
        _count_block(description, checker, judge, stream, counts, poses, progress)
    return counts


def _count_block(
    description: RobotDescription,
    checker: CollisionChecker,
    judge: HullJudge | MeshJudge,
    stream: np.random.Generator,
    counts: Counts,
    poses: int,
    progress: Progress,
) -> None:
    """Count the next BLOCK poses of the stream, or as many as are left of `poses`."""
    done, name = counts.poses, description.name
    q = uniform(description, stream.random((min(BLOCK, poses - done), len(description.joints))))
    refused = ~_verdicts(checker, q)
    tripped = _tripped_pairs(checker, q, refused)
    judge.count(q, refused, tripped, counts, lambda row: progress(name, done + row, poses))
    counts.poses += len(q)
    progress(name, counts.poses, poses)


def _figures(
    description: RobotDescription, model: CollisionModel, counts: Counts, seed: int, truth: Truth
) -> dict[str, Any]:
    rest = check_configuration(description, np.asarray(description.rest_pose, np.float32))
    return {
        "robot": description.name,
        "poses": counts.poses,
        "seed": seed,
        "truth": truth,
        "contacts": counts.contacts,
        "missed": counts.missed,
        "false_stops": counts.false_stops,
        "refused": counts.refused,
        "slop_only": counts.slop_only,
        "rest": {"clear": rest["clear"], "min_distance_mm": rest["distance_mm"], "pair": rest["parties"]},
        "pairs_checked": len(model.pairs),
        "pairs_exempt": len(model.exempt),
        "seconds": round(counts.seconds, 1),
        "disputed": counts.disputed,
        "false_by_pair": dict(counts.false_by_pair.most_common()),
        "missed_by_pair": dict(counts.missed_by_pair.most_common()),
    }


def _verdicts(checker: CollisionChecker, q: NDArray[np.float32]) -> NDArray[np.bool_]:
    ids = range(len(q))
    return checker.check(torch.from_numpy(q), env_ids=ids, world=False).clear.numpy()


def _tripped_pairs(checker: CollisionChecker, q: NDArray[np.float32], refused: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which pairs trip, shape (K, num_pairs). A pose that is not refused trips none."""
    pairs = checker.model.pairs
    out = np.zeros((len(q), len(pairs)), dtype=bool)
    asked = torch.from_numpy(q[refused])
    if len(asked):
        ids = range(len(asked))
        for k, pair in enumerate(pairs):
            out[refused, k] = ~checker.check(asked, env_ids=ids, links=pair, world=False).clear.numpy()
    return out


class HullJudge:
    """Judges by MuJoCo on the pieces that are checked."""

    def __init__(self, description: RobotDescription, model: CollisionModel):
        pieces = {link: [piece.vertices for piece in g.pieces] for link, g in description.geometry.items()}
        self._truth = HullTruth(description, pieces, model.pairs)

    def count(
        self,
        q: NDArray[np.float32],
        refused: NDArray[np.bool_],
        tripped: NDArray[np.bool_],
        counts: Counts,
        step: Callable[[int], None],
    ) -> None:
        touching = self._truth.touching(q, step)
        for row, k in np.argwhere(touching != tripped):
            counts.disputed += 1
            touching[row, k] = not self._truth.apart(q[row], self._truth.pairs[k])
        _tally(self._truth.pairs, refused, tripped, touching, counts)


class MeshJudge:
    """Judges by the links' triangles, wherever their hulls touch or a pair trips."""

    def __init__(self, description: RobotDescription, model: CollisionModel):
        hulls = {link: [geometry.hull.vertices] for link, geometry in description.geometry.items()}
        self._near = HullTruth(description, hulls, model.pairs)
        self._truth = MeshTruth(description, true_meshes(description))

    def count(
        self,
        q: NDArray[np.float32],
        refused: NDArray[np.bool_],
        tripped: NDArray[np.bool_],
        counts: Counts,
        step: Callable[[int], None],
    ) -> None:
        pairs = self._near.pairs
        asked = self._near.touching(q) | tripped
        touching = np.zeros_like(asked)
        for row in np.flatnonzero(asked.any(axis=1)):
            columns = np.flatnonzero(asked[row])
            touching[row, columns] = self._truth.touching(q[row], [pairs[k] for k in columns])
            for k in columns[tripped[row, columns] & ~touching[row, columns]]:
                counts.false_clearance_mm.append(round(1000.0 * self._truth.distance(q[row], pairs[k]), 3))
            step(int(row))
        _tally(pairs, refused, tripped, touching, counts)


def _tally(
    pairs: tuple[Pair, ...],
    refused: NDArray[np.bool_],
    tripped: NDArray[np.bool_],
    touching: NDArray[np.bool_],
    counts: Counts,
) -> None:
    names = np.array(["|".join(pair) for pair in pairs])
    missed, false = touching & ~tripped, tripped & ~touching
    counts.contacts += int(touching.sum())
    counts.missed += int(missed.sum())
    counts.false_stops += int(false.sum())
    counts.refused += int(refused.sum())
    counts.slop_only += int((refused & ~touching.any(axis=1)).sum())
    for cells, by_pair in (
        (touching, counts.contacts_by_pair),
        (missed, counts.missed_by_pair),
        (false, counts.false_by_pair),
    ):
        totals = cells.sum(axis=0)
        by_pair.update({str(names[k]): int(totals[k]) for k in np.flatnonzero(totals)})


def _resumed(state: Path | None, identity: dict[str, Any]) -> Counts:
    if state is None or not state.exists():
        return Counts()
    try:
        kept = json.loads(state.read_text(encoding="utf-8"))
        found = {key: kept[key] for key in identity}
        numbers = kept["counts"]
    except (ValueError, KeyError, TypeError) as error:
        raise SweepError(f"{state} is not the state of a sweep: {error!r}; remove it") from error
    if found != identity:
        raise SweepError(f"{state} is of another sweep ({found}, asked for {identity}); name another file or remove it")
    counts = Counts(**numbers)
    for name in ("contacts_by_pair", "missed_by_pair", "false_by_pair"):
        setattr(counts, name, Counter(numbers[name]))
    return counts
