"""What one self-check of a configuration costs on one core, by batch size, beside other checkers in the same run.

Configurations are uniform within the joints' limits, the same for everybody. Times are this thread's CPU time, and
rounds are interleaved, so that whatever else the machine does falls on all alike; ratios are medians of the rounds'.
"""

# MuJoCo's bindings have no stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import thread_time
from typing import Any

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray

from simulo.collision import CollisionChecker, CollisionModel, build_clearance
from simulo.description import RobotDescription
from simulo.evaluation.configuration import uniform
from simulo.evaluation.mujoco_tree import model_positions
from simulo.evaluation.peers import mujoco_model

BATCHES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
COMPARED = 16384
"""The batch that peers are compared with."""
ALONE = 4096
"""How many configurations a batch of one is timed on, one after the other."""
ROUNDS = 9
PEER_POSES = 200
DISTANCE_POSES = 100

Report = Callable[[str, int, int], None]


def bench_kernel(
    description: RobotDescription, model: CollisionModel, batches: Sequence[int] = BATCHES, report: Report | None = None
) -> dict[str, Any]:
    """{"batches": [{"batch", "us_per_configuration"}], "peers": {name: {"version", "us_per_configuration"}}, "ratio"}.

    batches: kinematics and the self check up to the first hit; of a batch of one the mean of ALONE. A peer named "...
    distances" measures every pair, and its ratio is to our least distance over all pairs.
    """
    poses = uniform(description, np.random.default_rng(0).random((max(ALONE, *batches), model.num_joints)))
    ours = {
        batch: _self_check(model, poses[:batch]) if batch > 1 else _alone(model, poses[:ALONE]) for batch in batches
    }
    peers = _peers(description, model, poses[:PEER_POSES])
    distances = _distances(model, poses[:DISTANCE_POSES])
    times: dict[Any, list[float]] = {key: [] for key in (*ours, *peers, "distances")}
    for done in range(ROUNDS):
        for key, (_version, call) in peers.items():
            times[key].append(call())
        times["distances"].append(distances())
        for batch, call in ours.items():
            times[batch].append(call())
        if report is not None:
            report("self check", done + 1, ROUNDS)
    compared = COMPARED if COMPARED in batches else max(batches)
    against = {key: times["distances" if key.endswith("distances") else compared] for key in peers}
    return {
        "pairs": len(model.pairs),
        "batches": [{"batch": batch, "us_per_configuration": spread(times[batch])} for batch in batches],
        "distances": {"us_per_configuration": spread(times["distances"])},
        "peers": {
            key: {"version": version, "us_per_configuration": spread(times[key])}
            for key, (version, _call) in peers.items()
        },
        "ratio": {key: float(np.median(np.array(times[key]) / np.array(against[key]))) for key in peers},
    }


def plot_batches(figures: dict[str, Any], path: Path) -> None:
    """Cost of a self check against batch size, the peers as lines across, as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sizes = [row["batch"] for row in figures["batches"]]
    costs = [row["us_per_configuration"]["p50"] for row in figures["batches"]]
    picture, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    axes.loglog(sizes, costs, "o-", label="simulo, first hit")
    for name, peer in figures["peers"].items():
        if not name.endswith("distances"):
            axes.axhline(peer["us_per_configuration"]["p50"], linestyle="--", linewidth=1, color="0.5")
            axes.annotate(f"{name} {peer['version']}", (sizes[0], peer["us_per_configuration"]["p50"]), va="bottom")
    axes.set(xlabel="configurations per check", ylabel="microseconds per configuration, one core")
    axes.set_title(f"{figures['robot']}: self check, {figures['pairs']} link pairs")
    axes.legend()
    picture.savefig(path, dpi=120)
    plt.close(picture)


def spread(seconds: list[float]) -> dict[str, float]:
    """Median and 95th percentile in us."""
    return {"p50": float(1e6 * np.percentile(seconds, 50)), "p95": float(1e6 * np.percentile(seconds, 95))}


def _self_check(model: CollisionModel, poses: NDArray[np.float32]) -> Callable[[], float]:
    """Seconds per configuration of the recorded self check, on one thread."""
    checker = CollisionChecker(model, len(poses), split_at=sys.maxsize, clearance=build_clearance(model))
    checker.check(torch.from_numpy(poses.copy()), world=False)
    check, _q = checker.self_check()
    repeats = max(1, 256 // len(poses))

    def call() -> float:
        start = thread_time()
        for _ in range(repeats):
            check()
        return (thread_time() - start) / (repeats * len(poses))

    return call


def _alone(model: CollisionModel, poses: NDArray[np.float32]) -> Callable[[], float]:
    """Seconds per configuration of the recorded self check of one, each time another, net of putting it there; a first
    round, for the caches, is not timed."""
    checker = CollisionChecker(model, 1, clearance=build_clearance(model))
    checker.check(torch.from_numpy(poses[:1].copy()), world=False)
    check, q = checker.self_check()
    row = q.numpy()[0]

    def call() -> float:
        for pose in poses:
            row[:] = pose
            check()
        start = thread_time()
        for pose in poses:
            row[:] = pose
            check()
        middle = thread_time()
        for pose in poses:
            row[:] = pose
        return (2.0 * middle - start - thread_time()) / len(poses)

    return call


def _distances(model: CollisionModel, poses: NDArray[np.float32]) -> Callable[[], float]:
    checker = CollisionChecker(model, len(poses), split_at=sys.maxsize, clearance=build_clearance(model))
    q = torch.from_numpy(poses.copy())

    def call() -> float:
        start = thread_time()
        checker.check(q, world=False, distances=True)
        return (thread_time() - start) / len(poses)

    return call


def _peers(
    description: RobotDescription, model: CollisionModel, poses: NDArray[np.float32]
) -> dict[str, tuple[str, Callable[[], float]]]:
    """Version, and seconds per configuration, of every peer that is installed."""
    peers = {"mujoco": (mujoco.__version__, _mujoco(description, model, poses))}
    if importlib.util.find_spec("pinocchio") and importlib.util.find_spec("coal"):
        from simulo.evaluation.coal_peer import VERSION, CoalPeer

        peer = CoalPeer(description, model)
        rows = peer.positions(poses)
        peers["pinocchio with coal"] = (VERSION, _one_by_one(peer.collides, rows))
        unsorted = CoalPeer(description, model, link_order=True)
        peers["pinocchio with coal, pairs in the links' order"] = (VERSION, _one_by_one(unsorted.collides, rows))
        peers["pinocchio with coal, distances"] = (VERSION, _one_by_one(peer.distances, rows[:DISTANCE_POSES]))
    return peers


def _one_by_one(ask: Callable[[NDArray], Any], rows: NDArray) -> Callable[[], float]:
    def call() -> float:
        start = thread_time()
        for row in rows:
            ask(row)
        return (thread_time() - start) / len(rows)

    return call


def _mujoco(description: RobotDescription, model: CollisionModel, poses: NDArray[np.float32]) -> Callable[[], float]:
    """MuJoCo's kinematics and collision, net of what the calls from Python cost with a model of nothing."""
    robot, nothing = mujoco_model(description, model), mujoco.MjModel.from_xml_string("<mujoco/>")
    data, no_data = mujoco.MjData(robot), mujoco.MjData(nothing)
    rows = model_positions(description, robot, poses.astype(np.float64))
    qpos, no_qpos, empty = data.qpos, no_data.qpos, np.zeros(0)

    def call() -> float:
        start = thread_time()
        for row in rows:
            qpos[:] = row
            mujoco.mj_kinematics(robot, data)
            mujoco.mj_collision(robot, data)
        middle = thread_time()
        for _ in rows:
            no_qpos[:] = empty
            mujoco.mj_kinematics(nothing, no_data)
            mujoco.mj_collision(nothing, no_data)
        return (2.0 * middle - start - thread_time()) / len(rows)

    return call
