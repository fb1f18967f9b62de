"""Contact sweeps: the checker's verdict on seeded poses against what really touches.

A stop is false where no contact is: on hulls where a separating plane is proven, on meshes where the triangles stay
apart and no part lies inside another's. Contacts, missed contacts and false stops are counted per pair and pose.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import warp
from numpy.typing import NDArray

from simulo.collision import CollisionChecker, build_clearance, build_model
from simulo.description import LinkGeometry, RobotDescription, load_description
from simulo.errors import SimuloError
from simulo.evaluation.configuration import check_configuration, uniform
from simulo.evaluation.coverage import coverage
from simulo.evaluation.judges import Judged, judge_by_hulls, judge_by_meshes
from simulo.evaluation.meshes import true_meshes
from simulo.files import write_json

Truth = Literal["hull", "mesh"]
Progress = Callable[[str, int, int], None]

BLOCK = 2048
SEED = 20260924

JUDGES = {"hull": judge_by_hulls, "mesh": judge_by_meshes}


class SweepError(SimuloError, ValueError):
    """A sweep is asked of what it cannot be asked of."""


@dataclass
class Counts:
    """What a sweep has found so far; per pair by "a|b". false_clearance_mm: real distances at false stops (mesh truth).

    disputed: verdicts of the checker and MuJoCo that differed, and that a separating plane was asked about. unjudged:
    those of them for which the linear program gave no answer; they are in no other count.
    """

    poses: int = 0
    contacts: int = 0
    missed: int = 0
    false_stops: int = 0
    unjudged: int = 0
    refused: int = 0
    slop_only: int = 0
    disputed: int = 0
    seconds: float = 0.0
    contacts_by_pair: Counter[str] = field(default_factory=Counter)
    missed_by_pair: Counter[str] = field(default_factory=Counter)
    false_by_pair: Counter[str] = field(default_factory=Counter)
    false_clearance_mm: list[float] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))


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
    *,
    one_hull: bool = False,
    jobs: int = 1,
) -> Sweep:
    """Check `poses` uniform in-limit configurations of a robot against truth.

    truth "hull": MuJoCo on the very pieces that are checked, disputes decided by a separating plane in double. "mesh":
    the links' own triangles, asked only where the links' hulls touch (their meshes lie inside). state: a file that a
    killed sweep goes on from; it belongs to one robot, geometry, seed and truth. progress: called with a label, the
    poses done and all. one_hull: check each link's own hull instead of its pieces. jobs: processes that share the
    poses; the figures are the same for any number of them. Raises SweepError for a state of something else.
    """
    if poses < 1:
        raise SweepError(f"a sweep needs at least one pose, got {poses}")
    description = _described(robot, one_hull)
    digest = build_model(description).digest
    identity = {"digest": digest, "seed": seed, "truth": truth, "one_hull": one_hull}
    counts = _resumed(state, identity)
    if counts.poses > poses:
        raise SweepError(f"{state} holds {counts.poses} poses already, more than the {poses} asked for; remove it")
    blocks = _blocks(description, seed, counts.poses, poses)
    if jobs > 1:
        counted = _by_workers(robot, one_hull, truth, jobs, blocks)
    else:
        counted = _counted(
            description, truth, blocks, lambda row: progress(description.name, counts.poses + row, poses)
        )
    started = time.perf_counter() - counts.seconds
    for block in counted:
        counts.add(block)
        counts.seconds = time.perf_counter() - started
        progress(description.name, counts.poses, poses)
        if state is not None:
            write_json(state, {**identity, "counts": vars(counts)})
    figures = {**_figures(description, counts), "seed": seed, "truth": truth, "one_hull": one_hull}
    if truth == "mesh":
        figures["outside"] = coverage(true_meshes(description), description.geometry)
    return Sweep(counts, figures)


@dataclass(frozen=True)
class JudgedPoses:
    """Poses that the triangles were asked about once, to count on any geometry inside the same hulls.

    q [rad or m], shape (K, dof); touching: by pose and pair of `pairs`, shape (K, num_pairs).
    """

    q: NDArray[np.float32]
    pairs: tuple[tuple[str, str], ...]
    touching: NDArray[np.bool_]

    def counts(self, description: RobotDescription) -> Counts:
        """Counts of the description whose poses these are, in hulls or in pieces of them."""
        model = build_model(description)
        checker = CollisionChecker(model, len(self.q), clearance=build_clearance(model))
        refused = ~_verdicts(checker, self.q)
        tripped = tripped_pairs(checker, self.q, refused)
        return _tally(self.pairs, refused, tripped, Judged(self.touching, np.zeros_like(self.touching)))


def judged_poses(
    description: RobotDescription,
    poses: int,
    seed: int = SEED,
    progress: Progress = lambda label, done, total: None,
) -> JudgedPoses:
    """Mesh truth of the first `poses` configurations of a seed's stream, wherever the links' own hulls touch."""
    q = np.concatenate(list(_blocks(description, seed, 0, poses)))
    model = build_model(replace(description, geometry=one_hull_each(description)))
    judge, nothing = judge_by_meshes(description, model), np.zeros((poses, len(model.pairs)), dtype=bool)
    judged = judge(q, nothing, lambda row: progress(f"triangles of {description.name}", row, poses))
    return JudgedPoses(q, model.pairs, judged.touching)


def one_hull_each(description: RobotDescription, but: Collection[str] = ()) -> dict[str, LinkGeometry]:
    """The geometry with each link's own hull in the place of its pieces; `but` links keep theirs."""
    return {
        link: geometry if link in but else LinkGeometry(link, (geometry.hull,), geometry.hull)
        for link, geometry in description.geometry.items()
    }


def _described(robot: str, one_hull: bool) -> RobotDescription:
    description = load_description(robot)
    return replace(description, geometry=one_hull_each(description)) if one_hull else description


def _blocks(description: RobotDescription, seed: int, done: int, poses: int) -> Iterator[NDArray[np.float32]]:
    """Configurations done..poses of a seed's stream, shapes (BLOCK or what is left, dof)."""
    stream, width = np.random.default_rng(seed), len(description.joints)
    stream.random((done, width))
    for start in range(done, poses, BLOCK):
        yield uniform(description, stream.random((min(BLOCK, poses - start), width)))


Count = Callable[[NDArray[np.float32], Callable[[int], None]], Counts]


def _counter(description: RobotDescription, truth: Truth) -> Count:
    """What counts a block of configurations, shape (K, dof), K <= BLOCK, and calls with the poses that are done."""
    model = build_model(description)
    judge = JUDGES[truth](description, model)
    checker = CollisionChecker(model, BLOCK, clearance=build_clearance(model))

    def count(q: NDArray[np.float32], step: Callable[[int], None]) -> Counts:
        refused = ~_verdicts(checker, q)
        tripped = tripped_pairs(checker, q, refused)
        return _tally(model.pairs, refused, tripped, judge(q, tripped, step))

    return count


def _counted(
    description: RobotDescription, truth: Truth, blocks: Iterable[NDArray[np.float32]], step: Callable[[int], None]
) -> Iterator[Counts]:
    count = _counter(description, truth)
    return (count(q, step) for q in blocks)


def _by_workers(
    robot: str, one_hull: bool, truth: Truth, jobs: int, blocks: Iterable[NDArray[np.float32]]
) -> Iterator[Counts]:
    """The counts of each block, in order, by processes of their own."""
    loudness = {name: getattr(warp.config, name) for name in ("quiet", "log_level") if hasattr(warp.config, name)}
    with ProcessPoolExecutor(jobs, get_context("spawn"), _start_worker, (loudness, robot, one_hull, truth)) as pool:
        yield from pool.map(_count_in_worker, blocks)


_worker: list[Count] = []
"""What counts in a worker process, made once."""


def _start_worker(loudness: dict[str, Any], robot: str, one_hull: bool, truth: Truth) -> None:
    for name, value in loudness.items():
        setattr(warp.config, name, value)
    _worker.append(_counter(_described(robot, one_hull), truth))


def _count_in_worker(q: NDArray[np.float32]) -> Counts:
    return _worker[0](q, lambda row: None)


def _figures(description: RobotDescription, counts: Counts) -> dict[str, Any]:
    model = build_model(description)
    rest = check_configuration(description, np.asarray(description.rest_pose, np.float32))
    return {
        "robot": description.name,
        "digest": description.digest,
        "poses": counts.poses,
        "contacts": counts.contacts,
        "missed": counts.missed,
        "false_stops": counts.false_stops,
        "unjudged": counts.unjudged,
        "refused": counts.refused,
        "slop_only": counts.slop_only,
        "rest": {"clear": rest["clear"], "min_distance_mm": rest["distance_mm"], "pair": rest["parties"]},
        "links": len(description.geometry),
        "pieces": sum(len(geometry.pieces) for geometry in description.geometry.values()),
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


def tripped_pairs(checker: CollisionChecker, q: NDArray[np.float32], refused: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which pairs trip, shape (K, num_pairs). A pose that is not refused trips none."""
    pairs = checker.model.pairs
    out = np.zeros((len(q), len(pairs)), dtype=bool)
    asked = torch.from_numpy(q[refused])
    if len(asked):
        ids = range(len(asked))
        for k, pair in enumerate(pairs):
            out[refused, k] = ~checker.check(asked, env_ids=ids, links=pair, world=False).clear.numpy()
    return out


def _tally(
    pairs: tuple[tuple[str, str], ...], refused: NDArray[np.bool_], tripped: NDArray[np.bool_], judged: Judged
) -> Counts:
    """Counts of a block: verdicts of poses (K,) and pairs (K, num_pairs) against what is true."""
    touching, unjudged = judged.touching, judged.unjudged
    missed, false = touching & ~tripped, tripped & ~touching & ~unjudged
    return Counts(
        poses=len(refused),
        contacts=int(touching.sum()),
        missed=int(missed.sum()),
        false_stops=int(false.sum()),
        unjudged=int(unjudged.sum()),
        refused=int(refused.sum()),
        slop_only=int((refused & ~(touching | unjudged).any(axis=1)).sum()),
        disputed=judged.disputed,
        contacts_by_pair=_by_pair(pairs, touching),
        missed_by_pair=_by_pair(pairs, missed),
        false_by_pair=_by_pair(pairs, false),
        false_clearance_mm=list(judged.clearance_mm),
    )


def _by_pair(pairs: tuple[tuple[str, str], ...], cells: NDArray[np.bool_]) -> Counter[str]:
    totals = cells.sum(axis=0)
    return Counter({"|".join(pairs[k]): int(totals[k]) for k in np.flatnonzero(totals)})


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
