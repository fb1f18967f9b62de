"""The record of a stop: all that the verdict was made from, in one file, so that anybody can make it again.

A file is a NumPy .npz: "header" is JSON text, everything else an array of one environment's inputs.
"""

from __future__ import annotations

import io
import json
import platform
import zlib
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simulo.collision import ConvexShape, Primitives, VoxelGrid
from simulo.errors import GateError
from simulo.files import write_bytes
from simulo.gate.session import Session
from simulo.gate.settings import GateSettings
from simulo.gate.verdict import Verdict

FORMAT = 1
PACKAGES = ("simulo-sdk", "numpy", "torch", "warp-lang")


@dataclass(frozen=True)
class StopRecord:
    """header: plain data. arrays: named inputs, see `take_record`."""

    header: dict[str, Any]
    arrays: dict[str, NDArray]

    def write(self, path: Path) -> Path:
        """Whole or not at all."""
        text = np.frombuffer(json.dumps(self.header, allow_nan=False).encode(), np.uint8)
        file, everything = io.BytesIO(), dict[str, Any](header=text, **self.arrays)
        np.savez_compressed(file, **everything)
        return write_bytes(path, file.getvalue())

    @staticmethod
    def read(path: str | Path) -> StopRecord:
        """Raises GateError, naming the file, for what is no record of a stop."""
        if Path(path).exists() and not is_zipfile(path):  # NumPy would take it for a pickle
            raise GateError(f"{str(path)!r} is not the record of a stop, or only the beginning of one")
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(arrays.pop("header").tobytes())
            known = isinstance(header, dict) and header.get("format") == FORMAT
        except FileNotFoundError:
            raise GateError(f"there is no file {str(path)!r}") from None
        except (OSError, ValueError, KeyError, EOFError, AttributeError, BadZipFile, zlib.error) as error:
            raise GateError(f"{str(path)!r} is not the record of a stop, or is damaged: {error}") from error
        if not known:
            raise GateError(f"{str(path)!r} is not the record of a stop in format {FORMAT}, the one this version reads")
        return StopRecord(header, arrays)


def versions() -> dict[str, str]:
    """What the answer may depend on to the last bit."""
    found = {name: version(name) for name in PACKAGES}
    return {**found, "python": platform.python_version(), "machine": platform.machine()}


def take_record(session: Session, settings: GateSettings, verdict: Verdict, q: Tensor, i: int) -> StopRecord:
    """The record of entry i of the verdict on q, (K, dof) or (K, rows, dof), before anything else is done.

    Arrays: q (rows, dof), base_pose (7,), start (dof,) as measured, measured and active (hands,), map_status, margins
    (2,) and how much they were widened; of the world grid_* or primitive_*; payload_* of what the hands hold; region_*
    of what is allowed.
    """
    env = int(verdict.env_ids[i])
    seen = session.sensed()
    arrays = {
        "q": _host(q[i].reshape(-1, q.shape[-1])),
        "base_pose": _host(session.body.base_pose()[env]),
        "start": _host(seen.start[env]),
        "measured": _host(seen.measured[env]),
        "active": _host(seen.active[env]),
        "map_status": _host(session.map_status[env]),
        "margins": np.array(settings.margins),
        "widened": _host(verdict.widened[env]),
        "verdict": _host(verdict.raw.block[:, i]),
    }
    recorder = _WorldRecorder(env)
    session.world.load(recorder)  # type: ignore[arg-type]  # it has what a world calls
    arrays |= recorder.arrays
    names = list(session.world.objects)
    for k, shape in enumerate(session.world.objects.values()):
        arrays |= _shape_arrays(f"primitive_{k}", shape)
    payloads = []
    for held, column in session.payloads.in_env(env):
        arrays |= _shape_arrays(f"payload_{column}", held.shape)
        arrays[f"payload_{column}_pose"] = held.pose_in_link.numpy()
        hand, slot = divmod(column, session.payloads.slots_per_hand)
        payloads.append(
            {
                "column": column,
                "hand": session.model.grippers[hand].name,
                "slot": slot,
                "link": held.link,
                "object": held.object,
                "touch_links": list(held.touch_links),
                "one_with": [
                    divmod(other, session.payloads.slots_per_hand) for other in session.payloads.partners(env, column)
                ],
            }
        )
    for name, values in session.checker.regions(env).items():
        arrays[f"region_{name}"] = _host(values)
    header = {
        "format": FORMAT,
        "robot": session.model.name,
        "model": session.model.content_digest,
        "finger_model": session.model.finger_model,
        "settings": {name: _plain(value) for name, value in asdict(settings).items()},
        "versions": versions(),
        "environment": env,
        "time": session.body.time,
        "world": session.world.kind,
        "primitives": names,
        "payloads": payloads,
        "kind": verdict.kind_name(i),
        "parties": list(verdict.parties(i)),
        "sentence": verdict.describe(i),
    }
    return StopRecord(header, arrays)


class Audit:
    """Writes one file per stop: where an environment is refused that was not a step ago, or for another reason."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._open: dict[int, tuple[int, ...]] = {}
        self._number = 0

    def note(self, session: Session, settings: GateSettings, verdict: Verdict, q: Tensor) -> list[Path]:
        """Record what has newly stopped; returns the files."""
        refused = (~verdict.clear).nonzero().flatten().tolist()
        now = {i: tuple(int(v[i]) for v in (verdict.kind, verdict.party_a, verdict.party_b)) for i in refused}
        new = [i for i, reason in now.items() if self._open.get(i) != reason]
        self._open = now
        return [self._write(take_record(session, settings, verdict, q, i)) for i in new]

    def forget(self, env_ids: Tensor) -> None:
        """Episodes have ended: whatever stops next there is another stop."""
        for env in env_ids.tolist():
            self._open.pop(env, None)

    def _write(self, record: StopRecord) -> Path:
        while True:
            name = f"stop-{self._number:06d}-env{record.header['environment']}-{record.header['kind']}.npz"
            self._number += 1
            if not any(self._directory.glob(f"{name[:11]}-*.npz")):
                return record.write(self._directory / name)


class _WorldRecorder:
    """Stands in for a checker that a world is loaded into, and keeps one environment's part of what it is handed."""

    def __init__(self, env: int) -> None:
        self._env = env
        self.arrays: dict[str, NDArray] = {}

    def set_voxels(self, grid: VoxelGrid) -> None:
        self.arrays = {
            "grid_bricks": _host(grid.bricks[self._env]),
            "grid_cell": np.array(grid.cell),
            "grid_closed": np.array(grid.closed),
            "grid_position": _host(grid.position[self._env]),
            "grid_orientation_wxyz": _host(grid.orientation_wxyz[self._env]),
        }
        if grid.has_unknown:
            self.arrays["grid_unknown"] = _host(grid.unknown[self._env])

    def set_primitives(self, primitives: Primitives) -> None:
        self.move_primitives(primitives.pose, primitives.valid)

    def move_primitives(self, pose: Tensor, valid: Tensor) -> None:
        self.arrays = {"primitive_pose": _host(pose[self._env]), "primitive_valid": _host(valid[self._env])}


def shape_of(record: StopRecord, name: str) -> ConvexShape:
    return ConvexShape(
        record.arrays[f"{name}_vertices"], float(record.arrays[f"{name}_radius"]), bool(record.arrays[f"{name}_is_box"])
    )


def _shape_arrays(name: str, shape: ConvexShape) -> dict[str, NDArray]:
    return {
        f"{name}_vertices": np.array(shape.vertices),
        f"{name}_radius": np.array(shape.radius),
        f"{name}_is_box": np.array(shape.is_box),
    }


def _host(values: Tensor) -> NDArray:
    return values.detach().cpu().numpy().copy()


def _plain(value: Any) -> Any:
    """JSON has no infinity."""
    return repr(value) if isinstance(value, float) and not np.isfinite(value) else value
