"""What the world check of a configuration costs on one core, beside coal's octree of the same cells in the same run.

A cube of 2 m round the robot's base, in which shells of boxes stand as cameras see them: no insides. Configurations are
uniform within the joints' limits and clear of the robot itself, so that every one of them is asked of the world. Our
figure is the kinematics and the world's kernels; coal's is one call of pinocchio, whose loop is its own, in C++. Rounds
are interleaved, ratios are medians of the rounds' ratios.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import thread_time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from simulo.collision import CollisionChecker, CollisionModel, VoxelGrid, build_clearance
from simulo.collision.reference import cell_corners, hull_distance, posed_pieces
from simulo.description import RobotDescription
from simulo.evaluation.configuration import uniform
from simulo.evaluation.kernel_speed import ROUNDS, spread

EDGE = 2.0
WORLDS = ((0.02, 14_000), (0.01, 100_000))
"""Cells [m], and how many of the cube's are occupied."""
BATCH = 4096
PEER_POSES = 200
VERDICTS = 10_000
BAND = 10e-6  # m: as near as that to touching, two checkers may differ
FREE = 0.3  # m: nothing stands nearer the middle axis, where the robot does

Report = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Cells:
    """Occupied cells of a cube from (-1, -1, 0) m. occupied: bool, shape (n, n, n). cell [m]: full edge."""

    occupied: NDArray[np.bool_]
    cell: float

    @property
    def centres(self) -> NDArray[np.float64]:
        return (np.argwhere(self.occupied).astype(np.float64) + 0.5) * self.cell - (0.5 * EDGE, 0.5 * EDGE, 0.0)

    def grid(self) -> VoxelGrid:
        """Of one environment."""
        corner, level = torch.tensor([[-0.5 * EDGE, -0.5 * EDGE, 0.0]]), torch.tensor([[1.0, 0.0, 0.0, 0.0]])
        return VoxelGrid.from_cells(torch.from_numpy(self.occupied[None]), self.cell, corner, level)


def furnished(cell: float, count: int, seed: int = 0) -> Cells:
    """Shells of boxes with edges of 5 to 40 cm, one after the other until `count` cells are occupied."""
    n, rng = round(EDGE / cell), np.random.default_rng(seed)
    occupied = np.zeros((n, n, n), bool)
    axis = (np.arange(n) + 0.5) * cell - 0.5 * EDGE
    middle = axis[:, None] ** 2 + axis[None] ** 2 < FREE**2
    while occupied.sum() < count:
        size = np.rint(rng.uniform(0.05, 0.4, 3) / cell).astype(int)
        low = rng.integers(0, n - size)
        before = occupied.copy()
        occupied[tuple(slice(a, a + s) for a, s in zip(low, size, strict=True))] = True
        inner = tuple(slice(a + 1, a + s - 1) for a, s in zip(low, size, strict=True))
        occupied[inner] = before[inner]
        occupied[middle] = False
    surplus = np.argwhere(occupied)[rng.permutation(int(occupied.sum()))[count:]]
    occupied[tuple(surplus.T)] = False
    return Cells(occupied, cell)


def bench_world(
    description: RobotDescription, model: CollisionModel, report: Report = lambda label, done, total: None
) -> list[dict[str, Any]]:
    """One entry per world: {"cell_m", "occupied", "hit", "us_per_configuration", "peers", "ratio", "verdicts"}.

    hit: share of the configurations that touch a cell. verdicts: how many were compared with coal's on the pieces,
    how many differ, and of these how many are farther than 10 um from touching by the float64 reference.
    """
    poses = _clear_of_itself(description, model, VERDICTS)
    return [_one_world(description, model, furnished(*world), poses, report) for world in WORLDS]


def _clear_of_itself(description: RobotDescription, model: CollisionModel, count: int) -> NDArray[np.float32]:
    rng, checker = np.random.default_rng(1), CollisionChecker(model, BATCH)
    kept = np.empty((0, model.num_joints), np.float32)
    while len(kept) < count:
        drawn = uniform(description, rng.random((BATCH, model.num_joints)))
        clear = checker.check(torch.from_numpy(drawn), world=False).clear.numpy()
        kept = np.concatenate([kept, drawn[clear]])
    return kept[:count]


def _one_world(
    description: RobotDescription, model: CollisionModel, cells: Cells, poses: NDArray[np.float32], report: Report
) -> dict[str, Any]:
    checker = CollisionChecker(
        model, 1, BATCH, world_margin=0.0, split_at=sys.maxsize, clearance=build_clearance(model)
    )
    checker.set_voxels(cells.grid())
    refused = ~checker.check(torch.from_numpy(poses), env_ids=[0] * len(poses)).clear.numpy()
    checker.check(torch.from_numpy(poses[None, :BATCH]))
    stages = checker.stages()
    calls: dict[str, Callable[[], float]] = {"ours": _timed(lambda: (stages["fk"](), stages["world"]()), BATCH)}
    verdicts: dict[str, Any] | None = None
    version = ""
    if importlib.util.find_spec("pinocchio") and importlib.util.find_spec("coal"):
        from simulo.evaluation.coal_peer import VERSION, CoalPeer

        version = VERSION
        for name, whole in (("pieces", False), ("one hull a link", True)):
            peer = CoalPeer(description, model, (cells.centres, cells.cell), whole)
            rows = peer.positions(poses)
            calls[f"coal octree, {name}"] = _timed(_asked(peer.collides, rows[:PEER_POSES]), PEER_POSES)
            if not whole:
                theirs = np.array([peer.collides(row) for row in rows])
                verdicts = _compared(description, model, cells, poses, refused, theirs)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for done in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(call())
        report(f"world, {1000 * cells.cell:.0f} mm", done + 1, ROUNDS)
    peers = [name for name in calls if name != "ours"]
    return {
        "cell_m": cells.cell,
        "occupied": int(cells.occupied.sum()),
        "hit": float(refused.mean()),
        "us_per_configuration": spread(times["ours"]),
        "peers": {name: {"version": version, "us_per_configuration": spread(times[name])} for name in peers},
        "ratio": {name: float(np.median(np.array(times[name]) / np.array(times["ours"]))) for name in peers},
        "verdicts": verdicts,
    }


def _compared(
    description: RobotDescription,
    model: CollisionModel,
    cells: Cells,
    poses: NDArray[np.float32],
    refused: NDArray[np.bool_],
    theirs: NDArray[np.bool_],
) -> dict[str, Any]:
    differing = np.flatnonzero(refused != theirs)
    gaps = [_gap(description, model, cells, poses[i]) for i in differing]
    return {
        "poses": len(poses),
        "differ": len(differing),
        "beyond_10_um": sum(
            not gap <= BAND if refused[i] else gap <= 0.0 for i, gap in zip(differing, gaps, strict=True)
        ),
        "coal_missed": sum(gap <= 0.0 for i, gap in zip(differing, gaps, strict=True) if refused[i]),
    }


def _gap(description: RobotDescription, model: CollisionModel, cells: Cells, q: NDArray[np.float32]) -> float:
    """Least distance [m] of any moving piece to any cell, 0 where they touch, by the float64 reference."""
    best, centres = np.inf, cells.centres
    for link, pieces in posed_pieces(description, q.astype(np.float64)).items():
        balls = [piece.radius for piece in description.geometry[link].pieces]
        for piece, ball in zip(pieces, balls, strict=True) if link not in model.static_links else ():
            reach = cells.cell + ball
            for centre in centres[((centres >= piece.min(0) - reach) & (centres <= piece.max(0) + reach)).all(1)]:
                best = min(best, hull_distance(piece, cell_corners(centre, cells.cell, np.eye(3))) - ball)
    return 0.0 if best < 1e-9 else best


def _asked(ask: Callable[[NDArray], Any], rows: NDArray) -> Callable[[], object]:
    return lambda: [ask(row) for row in rows]


def _timed(call: Callable[[], object], count: int) -> Callable[[], float]:
    def timed() -> float:
        start = thread_time()
        call()
        return (thread_time() - start) / count

    return timed
