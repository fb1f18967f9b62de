"""Stops that a run or a gate's audit has left, one form for both: what was commanded, what was there, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
import trimesh
from numpy.typing import NDArray

from simulo.collision import unpack_bricks
from simulo.collision.raw_verdict import VERDICT_ROWS
from simulo.description import RobotDescription
from simulo.evaluation.counting import MAP_PARTY
from simulo.evaluation.pictures import Surface, placed
from simulo.evaluation.records import EpisodeRecord, FingerModel, RecordError, load_record, recorded
from simulo.evaluation.stop_count import RUN_FILE, StopCountOptions, read_options
from simulo.evaluation.stop_pictures import scene_surfaces
from simulo.evaluation.truth import link_poses, matrix_of
from simulo.gate.audit import StopRecord, shape_of

Array = NDArray[np.float64]
_SOLID, _HELD = (0.55, 0.57, 0.62), (0.85, 0.62, 0.20)


@dataclass(frozen=True)
class Surroundings:
    """Solids, their triangles in the environment's frame; centres [m] of occupied cells in it, shape (K, 3), of edge
    `cell` [m] (0 where the world was no map)."""

    solids: tuple[Surface, ...]
    centres: Array
    cell: float


@dataclass(frozen=True)
class RecordedStop:
    """One refused step. q [rad or m], shape (dof,): what was commanded; where that is no number, what was measured.
    base: the robot's base in the environment, (4, 4). parties: names; a cell, prop or payload among them is no link.
    around: what was there, read when asked for."""

    title: str
    sentence: str
    finger_model: FingerModel
    q: Array
    base: Array
    parties: tuple[str, ...]
    around: Callable[[RobotDescription], Surroundings]


@dataclass(frozen=True)
class RecordedRun:
    """robot: a name of `simulo robots`, or a folder."""

    robot: str
    stops: tuple[RecordedStop, ...]


def read_run(path: Path) -> RecordedRun | None:
    """The stops kept in a folder of `bench stop-count --report`, in an audit's folder, or in one audit record.

    None where the path is neither. Raises RecordError or GateError for one that is damaged or incomplete.
    """
    if (path / RUN_FILE).is_file():
        return _counted(path)
    if path.is_file() and path.suffix == ".npz":
        return _audited([path])
    files = sorted(path.glob("stop-*.npz")) if path.is_dir() else []
    return _audited(files) if files else None


# --- a stop count's run ----------------------------------------------------------------------------------------------


def _counted(folder: Path) -> RecordedRun:
    options = read_options(folder)
    stops = []
    for number in recorded(folder, options.episodes):
        record = load_record(folder, number)
        for judge, refusals in record.refusals.items():
            before: dict[tuple[str, str], int] = {}
            for step, a, b in zip(refusals.step.tolist(), refusals.a.tolist(), refusals.b.tolist(), strict=True):
                if before.get((a, b), -2) != step - 1:  # the first step of an event
                    stops.append(_refused(options, folder, record, judge, step, (a, b)))
                before[a, b] = step
    return RecordedRun(options.robot, tuple(stops))


def _refused(
    options: StopCountOptions, folder: Path, record: EpisodeRecord, judge: str, step: int, parties: tuple[str, str]
) -> RecordedStop:
    names = ["the map" if party == MAP_PARTY else party for party in parties]
    return RecordedStop(
        f"episode {record.number}, step {step}: {judge}",
        f"{names[0]} against {names[1]}",
        "swept" if judge.startswith("swept-") else "mimic",
        record.commanded[step].astype(np.float64),
        np.eye(4),
        parties,
        partial(_counted_scene, options, folder, record.number, judge, step),
    )


def _counted_scene(
    options: StopCountOptions, folder: Path, number: int, judge: str, step: int, description: RobotDescription
) -> Surroundings:
    record = load_record(folder, number)
    poses = link_poses(description, record.commanded[step])
    solids = tuple(scene_surfaces(options, record, step, poses))
    frames = record.maps.get(judge.split("-")[-1])
    if frames is None or "-voxels-" not in judge:
        return Surroundings(solids, np.empty((0, 3)), 0.0)
    bricks = frames.bricks[np.searchsorted(frames.step, step, side="right") - 1]
    corner = np.eye(4)
    corner[:3, 3] = frames.corner
    return Surroundings(solids, _centres(bricks, frames.cell, corner), frames.cell)


# --- an audit --------------------------------------------------------------------------------------------------------


def _audited(files: list[Path]) -> RecordedRun:
    records = [(file, StopRecord.read(file)) for file in files]
    robots = sorted({record.header["robot"] for _, record in records})
    if len(robots) > 1:
        raise RecordError(f"the stops in {files[0].parent} are of several robots, {robots}; view one file at a time")
    stops = []
    for file, record in records:
        header = record.header
        commanded = record.arrays["q"][_offending_row(record)]
        q = np.where(np.isfinite(commanded), commanded, record.arrays["start"]).astype(np.float64)
        stop = RecordedStop(
            f"{file.stem}, {header['time']:.3f} s",
            header["sentence"],
            header["finger_model"],
            q,
            matrix_of(record.arrays["base_pose"].astype(np.float64)),
            tuple(party for party in header["parties"] if party),
            partial(_audited_scene, record, q),
        )
        stops.append(stop)
    return RecordedRun(robots[0], tuple(stops))


def _offending_row(record: StopRecord) -> int:
    """Of the chunk; the first for a refusal that names no row."""
    return max(int(record.arrays["verdict"][VERDICT_ROWS.index("row")]), 0)


def _audited_scene(record: StopRecord, q: Array, description: RobotDescription) -> Surroundings:
    arrays, solids = record.arrays, []
    for k in range(len(record.header["primitives"])):
        if arrays["primitive_valid"][k]:
            pose = matrix_of(arrays["primitive_pose"][k].astype(np.float64))
            solids.append(_placed(record, f"primitive_{k}", pose, _SOLID))
    base = matrix_of(arrays["base_pose"].astype(np.float64))
    links = link_poses(description, q)
    for held in record.header["payloads"]:
        name = f"payload_{held['column']}"
        pose = matrix_of(np.asarray(arrays[f"{name}_pose"], np.float64))
        solids.append(_placed(record, name, base @ links[held["link"]] @ pose, _HELD))
    if "grid_bricks" not in arrays:
        return Surroundings(tuple(solids), np.empty((0, 3)), 0.0)
    corner = matrix_of(np.concatenate([arrays["grid_position"], arrays["grid_orientation_wxyz"]]).astype(np.float64))
    cell = float(arrays["grid_cell"])
    return Surroundings(tuple(solids), _centres(arrays["grid_bricks"], cell, corner), cell)


def _placed(record: StopRecord, name: str, pose: Array, colour: tuple[float, float, float]) -> Surface:
    shape = shape_of(record, name)
    ball = shape.radius * np.asarray(trimesh.creation.icosphere(subdivisions=2).vertices) if shape.radius else 0.0
    points = np.concatenate([vertex + ball for vertex in shape.vertices[:, None]])
    return Surface(placed(np.asarray(trimesh.convex.convex_hull(points).triangles), pose), colour)


def _centres(bricks: NDArray[np.int64], cell: float, pose_env_corner: Array) -> Array:
    """Centres [m] of the occupied cells in the environment's frame, shape (K, 3)."""
    x, y, z = (4 * count for count in bricks.shape)
    occupied = unpack_bricks(torch.from_numpy(np.array(bricks))[None], (x, y, z))[0].numpy()
    local = (np.argwhere(occupied) + 0.5) * cell
    return local @ pose_env_corner[:3, :3].T + pose_env_corner[:3, 3]
