"""Which configurations does coal's yes-or-no question miss?

Uniform in-limit configurations; wherever MuJoCo has a checked pair touching, coal is asked whether any two of the very
same pieces collide, by default and with its cached guess. What it denies although no plane separates the pieces is
written down: robot, pair, configuration, and how the question was put.

    python benchmarks/coal_misses.py [ROBOT...] [--poses 100000] [--json FILE]
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import coal
import numpy as np
from rich.progress import track

from simulo.collision import build_model
from simulo.description import load_description, reference_fk
from simulo.evaluation.configuration import uniform
from simulo.evaluation.contact_truth import HullTruth, Separation
from simulo.evaluation.sweep import SEED
from simulo.evaluation.truth import solid
from simulo.files import write_json
from simulo.props import Hull

ROBOTS = ("ur5e", "franka_panda", "so101")
BLOCK = 2000


def misses(robot: str, poses: int) -> dict[str, Any]:
    """The robot's contacts, and those of them that coal denies."""
    description = load_description(robot)
    model = build_model(description)
    pieces = {link: [piece.vertices for piece in g.pieces] for link, g in description.geometry.items()}
    truth = HullTruth(description, pieces, model.pairs)
    hulls = {link: [solid(Hull(vertices)) for vertices in several] for link, several in pieces.items()}
    stream = np.random.default_rng(SEED)
    contacts, found = 0, []
    for start in track(range(0, poses, BLOCK), robot):
        q = uniform(description, stream.random((min(BLOCK, poses - start), len(description.joints))))
        places = reference_fk(description, q.astype(np.float64))
        for row, k in np.argwhere(truth.touching(q)):
            contacts += 1
            a, b = pair = truth.pairs[k]
            where = (_place(places[a][row]), _place(places[b][row]))
            denied = [how for how, request in _REQUESTS.items() if not _collide(hulls[a], hulls[b], where, request)]
            if denied and truth.separation(q[row], pair) is Separation.NONE:
                found.append({"robot": robot, "pair": list(pair), "q": q[row].tolist(), "denied": denied})
    return {"robot": robot, "digest": description.digest, "contacts": contacts, "missed": found}


_REQUESTS = {"default": coal.CollisionRequest(), "cached guess": coal.CollisionRequest()}
_REQUESTS["cached guess"].gjk_initial_guess = coal.GJKInitialGuess.CachedGuess


def _place(pose: np.ndarray) -> coal.Transform3s:
    return coal.Transform3s(np.ascontiguousarray(pose[:3, :3]), np.ascontiguousarray(pose[:3, 3]))


def _collide(ours: list, theirs: list, where: tuple, request: coal.CollisionRequest) -> bool:
    for a, b in product(ours, theirs):
        result = coal.CollisionResult()
        if coal.collide(a, where[0], b, where[1], request, result):
            return True
    return False


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("robots", nargs="*", default=ROBOTS)
    options.add_argument("--poses", type=int, default=100_000)
    options.add_argument("--json", type=Path, default=Path("benchmarks/results/coal_misses.json"))
    given = options.parse_args()
    found = [misses(robot, given.poses) for robot in given.robots]
    write_json(given.json, {"coal": coal.__version__, "poses": given.poses, "seed": SEED, "robots": found})
    for row in found:
        print(f"{row['robot']}: {len(row['missed'])} of {row['contacts']} contacts denied by coal")


if __name__ == "__main__":
    main()
