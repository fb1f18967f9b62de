"""What a shadow run leaves behind: everything that adjudication needs, one file per episode, written whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulo.errors import SimuloError

FingerModel = Literal["mimic", "swept"]
World = Literal["voxels", "primitives"]


class RecordError(SimuloError, ValueError):
    """A recorded run is missing, incomplete or of another kind than asked for."""


@dataclass(frozen=True)
class JudgeName:
    """One gate of a shadow run. world: "voxels" or "primitives". cell [m]."""

    finger_model: FingerModel
    world: World
    cell: float

    def __str__(self) -> str:
        return f"{self.finger_model}-{self.world}-{1000 * self.cell:g}mm"


@dataclass(frozen=True)
class Refusals:
    """The steps that one gate refused: a structure of arrays of length K, in time order.

    step: int32. a, b: the parties' names; b is `counting.MAP_PARTY` where it is a cell. cell_centre [m], in the
    environment's frame, shape (K, 3), nan where b is no cell. kind: int8, see `simulo.collision.Kind`.
    """

    step: NDArray[np.int32]
    kind: NDArray[np.int8]
    a: NDArray[np.str_]
    b: NDArray[np.str_]
    cell_centre: NDArray[np.float64]


@dataclass(frozen=True)
class EngineContacts:
    """Contacts of robot links and held objects with anything, per policy step and pair the deepest: length K.

    step: int32. a, b: names. distance [m]: the engine's. position [m]: env frame, shape (K, 3). allowed: bool, the
    declared hand with its object, or a held object with what it is declared to stand on.
    """

    step: NDArray[np.int32]
    a: NDArray[np.str_]
    b: NDArray[np.str_]
    distance: NDArray[np.float64]
    position: NDArray[np.float64]
    allowed: NDArray[np.bool_]


@dataclass(frozen=True)
class MapFrames:
    """The occupancy that the gates had. step: int32, shape (F,), first step judged by each frame. bricks: int64, shape
    (F, bx, by, bz), as in `simulo.collision.VoxelGrid`. corner [m]: of the lattice, axis-aligned. cell [m]."""

    step: NDArray[np.int32]
    bricks: NDArray[np.int64]
    corner: NDArray[np.float64]
    cell: float


@dataclass(frozen=True)
class EpisodeRecord:
    """One episode of a shadow run, T steps long.

    commanded [rad or m]: judged targets of the actuated joints, shape (T, num_joints). measured: where they were before
    each step and after the last, (T + 1, num_joints). props: names; present: bool, (P,); prop_poses: at the times of
    `measured`, (T + 1, P, 7). frame_step: int32 (T,), the step whose start the newest depth frame shows. held: per step
    the name of the object in the hand or "", (T,), and held_pose: its pose in the hand's link, (T, 7). hand: that link.
    touchable: per step the object that the hand's contact links may touch, or "", (T,); supports: what the held object
    may stand on, joined by "|", (T,).
    """

    number: int
    seed: int
    hazard: str
    reason: str
    success: bool
    joint_names: tuple[str, ...]
    props: tuple[str, ...]
    present: NDArray[np.bool_]
    commanded: NDArray[np.float32]
    measured: NDArray[np.float32]
    prop_poses: NDArray[np.float32]
    frame_step: NDArray[np.int32]
    held: NDArray[np.str_]
    held_pose: NDArray[np.float32]
    touchable: NDArray[np.str_]
    supports: NDArray[np.str_]
    hand: str
    contacts: EngineContacts
    refusals: Mapping[str, Refusals] = field(default_factory=dict)
    maps: Mapping[str, MapFrames] = field(default_factory=dict)
    failure: str = ""

    @property
    def steps(self) -> int:
        return len(self.commanded)


_PLAIN = ("number", "seed", "hazard", "reason", "success", "joint_names", "props", "hand", "failure")
_ARRAYS = ("present", "commanded", "measured", "prop_poses", "frame_step", "held", "held_pose", "touchable", "supports")


def save_record(record: EpisodeRecord, folder: Path) -> Path:
    """Write one episode as `episode-00012.npz`, whole or not at all."""
    arrays: dict[str, NDArray] = {name: getattr(record, name) for name in _ARRAYS}
    arrays |= {f"contacts/{name}": value for name, value in asdict(record.contacts).items()}
    for judge, refusals in record.refusals.items():
        arrays |= {f"refusals/{judge}/{name}": value for name, value in asdict(refusals).items()}
    for cell, frames in record.maps.items():
        arrays |= {f"maps/{cell}/{name}": np.asarray(value) for name, value in asdict(frames).items()}
    plain = json.dumps({name: getattr(record, name) for name in _PLAIN})
    path = record_path(folder, record.number)
    folder.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    with temporary.open("wb") as file:
        np.savez_compressed(file, plain=np.array(plain), **arrays)  # type: ignore[arg-type]
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    return path


def load_record(folder: Path, number: int) -> EpisodeRecord:
    """Read one episode. Raises RecordError when it is not there or cannot be read."""
    path = record_path(folder, number)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError) as error:
        raise RecordError(f"{path} is no recorded episode: {error}; run the benchmark again with --resume") from error
    plain = json.loads(str(arrays["plain"]))
    plain |= {name: tuple(plain[name]) for name in ("joint_names", "props")}
    groups: dict[str, dict[str, dict[str, NDArray]]] = {"refusals": {}, "maps": {}}
    contacts = {}
    for name, value in arrays.items():
        parts = name.split("/")
        if parts[0] == "contacts":
            contacts[parts[1]] = value
        elif parts[0] in groups:
            groups[parts[0]].setdefault(parts[1], {})[parts[2]] = value
    return EpisodeRecord(
        **plain,
        **{name: arrays[name] for name in _ARRAYS},
        contacts=EngineContacts(**contacts),
        refusals={judge: Refusals(**values) for judge, values in groups["refusals"].items()},
        maps={key: MapFrames(**{**values, "cell": float(values["cell"])}) for key, values in groups["maps"].items()},
    )


def record_path(folder: Path, number: int) -> Path:
    return folder / f"episode-{number:05d}.npz"


def recorded(folder: Path, episodes: int) -> list[int]:
    """Numbers below `episodes` that are recorded already."""
    return [number for number in range(episodes) if record_path(folder, number).is_file()]
