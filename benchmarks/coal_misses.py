"""Which contacts does coal's yes-or-no question miss, and does simulo find them?

Robots as published comparisons take them: one hull a link, all pairs but neighbours. Uniform in-limit configurations;
wherever MuJoCo has two hulls touching, pinocchio's `computeCollisions` is asked about that pair, as it comes (each
search of a pair starts where its last one ended) and with every search started afresh. What it denies is written down,
robot, pair and configuration, when a linear program in double finds a ball that lies in both hulls, together with the
ball's radius. Those configurations are a regression set: a test asks simulo about each.

    python benchmarks/coal_misses.py [ROBOT...] [--poses 1000000] [--json FILE]
"""

# MuJoCo's bindings have no stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from simulo.collision import CollisionModel, build_model
from simulo.description import RobotDescription, load_description, reference_fk
from simulo.evaluation.coal_peer import VERSION, CoalPeer
from simulo.evaluation.configuration import uniform
from simulo.evaluation.mujoco_tree import model_positions
from simulo.evaluation.peers import mujoco_model
from simulo.evaluation.plain import plain
from simulo.evaluation.sweep import SEED
from simulo.files import write_json

ROBOTS = ("franka_panda", "ur5e")
BLOCK = 2000


def misses(robot: str, poses: int, seed: int = SEED) -> dict[str, Any]:
    """The robot's contacts, and those of them that coal denies."""
    description = plain(load_description(robot))
    model = build_model(description)
    pairs = sorted(model.pairs, key=lambda pair: sorted(model.link_index(name) for name in pair))
    truth = MujocoTruth(description, model, pairs)
    peers = {
        "as it comes": CoalPeer(description, model, link_order=True),
        "started afresh": CoalPeer(description, model, link_order=True, warm=False),
    }
    stream = np.random.default_rng(seed)
    contacts, denied = 0, dict.fromkeys(peers, 0)
    found: dict[tuple[int, str, str], dict[str, Any]] = {}
    for start in track(range(0, poses, BLOCK), robot):
        q = uniform(description, stream.random((min(BLOCK, poses - start), len(description.joints))))
        touching = truth.touching(q)
        contacts += int(touching.sum())
        for how, peer in peers.items():
            met = np.array([peer.meetings(position) for position in peer.positions(q)])
            for row, k in np.argwhere(touching & ~met):
                if (radius := shared_ball(description, q[row], pairs[k])) > 0.0:
                    denied[how] += 1
                    fresh = {"pair": list(pairs[k]), "q": q[row].tolist(), "ball_mm": 1000.0 * radius, "denied": []}
                    found.setdefault((start + int(row), *pairs[k]), fresh)["denied"].append(how)
    rows = list(found.values())
    return {"robot": robot, "digest": description.digest, "contacts": contacts, "missed": denied, "poses": rows}


class MujocoTruth:
    """Which of the pairs touch, as MuJoCo has it, each link one hull."""

    def __init__(self, description: RobotDescription, model: CollisionModel, pairs: list[tuple[str, str]]) -> None:
        self._description, self._model = description, mujoco_model(description, model)
        self._model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_FILTERPARENT  # the pairs say what is left out
        self._data = mujoco.MjData(self._model)
        numbers = {frozenset(pair): k for k, pair in enumerate(pairs)}
        bodies = [self._model.body(body).name for body in self._model.geom_bodyid]
        self._pair = np.array([[numbers.get(frozenset((a, b)), len(pairs)) for b in bodies] for a in bodies])

    def touching(self, q: NDArray) -> NDArray[np.bool_]:
        """Shape (K, pairs), at configurations of shape (K, dof)."""
        out = np.zeros((len(q), int(self._pair.max()) + 1), dtype=bool)
        for row, place in enumerate(model_positions(self._description, self._model, q)):
            self._data.qpos[:] = place
            mujoco.mj_kinematics(self._model, self._data)
            mujoco.mj_collision(self._model, self._data)
            contacts = self._data.contact
            first, second = contacts.geom[contacts.dist <= 0.0].T
            out[row, self._pair[first, second]] = True
        return out[:, :-1]


def shared_ball(description: RobotDescription, q: NDArray, pair: tuple[str, str]) -> float:
    """Radius [m] of the largest ball in both links' hulls, negative where there is none: it proves that they meet, and
    that they are at least its diameter deep in each other."""
    poses = reference_fk(description, q.astype(np.float64))
    planes = []
    for link in pair:
        vertices = np.asarray(description.geometry[link].hull.vertices, np.float64)
        planes.append(ConvexHull(vertices @ poses[link][:3, :3].T + poses[link][:3, 3]).equations)
    normals, offsets = np.split(np.concatenate(planes), [3], axis=1)
    inside = np.hstack([normals, np.ones_like(offsets)])
    result = linprog([0.0, 0.0, 0.0, -1.0], A_ub=inside, b_ub=-offsets[:, 0], bounds=[(None, None)] * 4, method="highs")
    if result.status != 0:
        raise RuntimeError(f"{pair} at {q.tolist()}: the linear program ended with: {result.message}")
    return -float((normals @ result.x[:3] + offsets[:, 0]).max())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("robots", nargs="*", default=ROBOTS)
    options.add_argument("--poses", type=int, default=1_000_000)
    options.add_argument("--json", type=Path, default=Path("benchmarks/results/coal_misses.json"))
    given = options.parse_args()
    robots = [misses(robot, given.poses) for robot in given.robots]
    versions = {"coal": VERSION, "mujoco": version("mujoco")}
    write_json(given.json, {"versions": versions, "poses": given.poses, "seed": SEED, "robots": robots})
    for row in robots:
        print(f"{row['robot']}: of {row['contacts']} contacts coal denied {row['missed']}")


if __name__ == "__main__":
    main()
