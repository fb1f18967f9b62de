"""Is a distance of two shapes ever above the truth, a contact ever missed, a figure called exact ever far from it?

Pairs are built so that their distance is known without a search (see `placed_shapes`): between two planes and two
points, measured again in double after float32 has rounded the poses, lies an interval of a fraction of a micrometre;
the rare answer inside it is decided by the float64 reference, a contact that was missed by a separating plane too. A
sample of every family is measured by coal, MuJoCo and the float64 reference besides, depths by the hull of all
differences.

Families: apart (10 um to 2 m), touching (0 to 100 um), deep (a point in common, or only their balls in each other),
coincident (their middles at one point); and of all of these: flat (points, segments, squares, slivers), tiny (10 um to
1 mm), huge (10 to 1000 m), far (a payload and a primitive in an environment whose robot stands 100 to 1000 m from its
origin, asked through `CollisionChecker`).

    python benchmarks/shape_pairs.py [--pairs 1000000] [--seed 0] [--json benchmarks/results/shape_pairs.json]

A killed run goes on from its JSON file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp
from far_pairs import far_answers
from numpy.typing import NDArray
from placed_shapes import EACH, Answers, Draw, Kind, draw
from rich.progress import Progress
from sampled_peers import compare

from simulo.collision.kernels.bodies import meets
from simulo.collision.kernels.convex import FAR
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.pool import pack_shapes
from simulo.collision.reference import hull_distance
from simulo.evaluation.contact_truth import Separation, separation
from simulo.files import write_json

KINDS: tuple[Kind, ...] = ("hull", "capsule", "sphere", "box")
PAIRS = list(combinations_with_replacement(KINDS, 2))
FAMILIES = ("apart", "touching", "deep", "flat", "tiny", "huge", "coincident", "far")
BLOCK = 20_000
SAMPLE = 400  # of each family, measured by others too
EXACT_UP_TO = 2.0  # m
MEETING = 1e-9  # m: what the float64 reference calls less is a contact


@wp.kernel(enable_backward=False)
def meets_kernel(
    shapes: Shapes,
    a: wp.array(dtype=wp.int32),
    b: wp.array(dtype=wp.int32),
    rotation: wp.array(dtype=wp.mat33f),
    position: wp.array(dtype=wp.vec3f),
    lower_out: wp.array(dtype=wp.float32),
    exact_out: wp.array(dtype=wp.int32),
    capped_out: wp.array(dtype=wp.int32),
):
    i = wp.tid()
    gap = meets(shapes, a[i], b[i], rotation[i], position[i], FAR, True)
    lower_out[i] = gap.lower
    exact_out[i] = gap.exact
    capped_out[i] = gap.capped


@dataclass(frozen=True)
class Judged:
    """Answers beside the truth, which lies in [low, high] [m]. rotation, position: take b's frame to a's, as float32
    left them."""

    drawn: Draw
    answers: Answers
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rotation: NDArray[np.float64]
    position: NDArray[np.float64]

    def posed(self, i: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The two vertex sets of pair i in a's frame."""
        a, b = (self.drawn.pool[int(index[i])].core for index in (self.drawn.a, self.drawn.b))
        return a, b @ self.rotation[i].T + self.position[i]


def kernel_answers(drawn: Draw, rotation: NDArray[np.float32], position: NDArray[np.float32]) -> Answers:
    shapes = pack_shapes([solid.packed for solid in drawn.pool]).upload("cpu")
    n = len(drawn.a)
    lower = wp.zeros(n, dtype=wp.float32, device="cpu")
    exact, capped = (wp.zeros(n, dtype=wp.int32, device="cpu") for _ in range(2))
    ids = [wp.array(index, dtype=wp.int32, device="cpu") for index in (drawn.a, drawn.b)]
    poses = [wp.array(rotation, dtype=wp.mat33f, device="cpu"), wp.array(position, dtype=wp.vec3f, device="cpu")]
    wp.launch(meets_kernel, n, inputs=[shapes, *ids, *poses], outputs=[lower, exact, capped], device="cpu")
    return Answers(lower.numpy().astype(np.float64), exact.numpy() != 0, capped.numpy())


def judged(
    first: Kind, second: Kind, family: str, count: int, rng: np.random.Generator, each: int = EACH
) -> Iterator[Judged]:
    """`count` pairs of a family, a block at a time, each of new shapes."""
    while count:
        size = min(count, BLOCK)
        count -= size
        if family == "far":
            drawn, answers, rotation, position = far_answers(first, second, size, rng)
        else:
            drawn = draw(first, second, family, size, rng, each)
            turned, put = drawn.rotation.astype(np.float32), drawn.position.astype(np.float32)
            answers = kernel_answers(drawn, turned, put)
            rotation, position = turned.astype(np.float64), put.astype(np.float64)
        yield Judged(drawn, answers, *drawn.between(rotation, position), rotation, position)


def tally(block: Judged) -> dict[str, Any]:
    """What the answers of one block are worth; distances in um."""
    lower, low, high = block.answers.lower, block.low, block.high
    apart, exact = low > 0.0, block.answers.exact & (high <= EXACT_UP_TO)
    above = ~(lower <= high)  # so that NaN is
    missed = np.zeros(len(lower), bool)
    doubtful = (lower > low) & ~above & ~block.drawn.sharing | (lower > 0.0) & ~apart
    for i in np.flatnonzero(doubtful):
        a, b = block.posed(int(i))
        core, radius = hull_distance(a, b), block.drawn.radii[i]
        above[i] |= lower[i] > core - radius
        missed[i] = (
            lower[i] > 0.0 and core <= radius + MEETING and (radius > 0.0 or separation(a, b) is not Separation.PROVEN)
        )
    false = apart & (lower <= 0.0)
    return {
        "pairs": len(lower),
        "apart": int(apart.sum()),
        "hits": int((lower <= 0.0).sum()),
        "above_truth": int(above.sum()),
        "missed_hits": int(missed.sum()),
        "false_hits": int(false.sum()),
        "decided_by_reference": int(doubtful.sum()),
        "exact": int(block.answers.exact.sum()),
        "capped": int(block.answers.capped.sum()),
        "worst_false_hit_um": 1e6 * float(low[false].max(initial=0.0)),
        "worst_exact_below_um": 1e6 * float((high - lower)[exact & ~block.drawn.sharing].max(initial=0.0)),
        "worst_truth_width_um": 1e6 * float((high - low)[~block.drawn.sharing].max(initial=0.0)),
    }


def merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts added, worsts compared."""
    return {key: (max if key.startswith("worst") else sum)(part[key] for part in parts) for key in parts[0]}


def count(
    first: Kind, second: Kind, family: str, pairs: int, seed: int, sample: int = SAMPLE, each: int = EACH
) -> dict[str, Any]:
    """The tally of a family of one pair of kinds, and how a sample of it compares with what others say."""
    rng = np.random.default_rng([seed, KINDS.index(first), KINDS.index(second), FAMILIES.index(family)])
    parts: list[dict[str, Any]] = []
    compared: dict[str, Any] = {}
    for block in judged(first, second, family, pairs, rng, each):
        parts.append(tally(block))
        compared = compared or compare(block, min(sample, len(block.low)))
    return {**merged(parts), "sample": compared}


def run(pairs: int, seed: int, file: Path) -> dict[str, Any]:
    """All pairs of kinds, from where the file's run was killed."""
    asked = {"pairs_per_kind": pairs, "seed": seed}
    kept = json.loads(file.read_text()) if file.exists() else {}
    found = kept.get("found", {}) if all(kept.get(key) == value for key, value in asked.items()) else {}
    with Progress() as bars:
        bar = bars.add_task("pairs of shapes", total=len(PAIRS) * len(FAMILIES))
        for first, second in PAIRS:
            for family in FAMILIES:
                name = f"{first}-{second}"
                if family not in found.setdefault(name, {}):
                    started = time.perf_counter()
                    figures = count(first, second, family, pairs // len(FAMILIES), seed)
                    found[name][family] = {**figures, "seconds": round(time.perf_counter() - started, 1)}
                    write_json(file, {**asked, "versions": versions(), "found": found})
                bars.advance(bar)
    return found


def versions() -> dict[str, str]:
    return {name: version(name) for name in ("simulo-sdk", "warp-lang", "numpy", "scipy", "coal", "mujoco")}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pairs", type=int, default=1_000_000, help="of each pair of kinds, all families together")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--json", type=Path, default=Path("benchmarks/results/shape_pairs.json"))
    given = options.parse_args()
    found = run(given.pairs, given.seed, given.json)
    for name, families in found.items():
        total = merged([{k: v for k, v in f.items() if k not in ("sample", "seconds")} for f in families.values()])
        print(name, json.dumps(total))


if __name__ == "__main__":
    main()
