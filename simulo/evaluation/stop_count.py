"""Deploy-sim stop counts: how often each finger model stops the robot, and whether it catches what is real."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from simulo.description import RobotDescription, load_description, reference_fk
from simulo.env import LearningEnv
from simulo.evaluation.adjudication import Adjudicator
from simulo.evaluation.counting import Contact, JudgedEpisode, summary, wilson95
from simulo.evaluation.panel import JudgePanel
from simulo.evaluation.records import (
    EpisodeRecord,
    FingerModel,
    JudgeName,
    RecordError,
    World,
    load_record,
    recorded,
    save_record,
)
from simulo.evaluation.shadow import Progress, ShadowRun, map_key
from simulo.evaluation.task_file import load_task_class
from simulo.evaluation.truth import Truth
from simulo.files import write_json
from simulo.gate import CollisionGate
from simulo.perception import DeploySimPerception, GridSpec
from simulo.props import Prop
from simulo.scene import Scene

RUN_FILE = "run.json"
_PACKAGES = ("simulo-sdk", "mujoco", "warp-lang", "torch", "numpy", "coal", "openarm-mujoco")


@dataclass(frozen=True)
class StopCountOptions:
    """What is run. cells [m], margin [m]. clearance [m]: from the open fingers to the nearest neighbour, None for what
    `neighbours` means by itself. success_episodes: hazard-free ones of the second run, in which stops end an
    episode; 0 for none. envs: how many run at once; it changes no figure."""

    robot: str = "openarm"
    task: str = "tasks/pick_place.py"
    episodes: int = 40
    seed: int = 0
    finger_models: tuple[FingerModel, ...] = ("mimic", "swept")
    hazards: float = 0.25
    neighbours: str = "wide"
    cells: tuple[float, ...] = (0.01,)
    worlds: tuple[World, ...] = ("voxels",)
    backend: str = "mujoco"
    success_episodes: int = 20
    margin: float = 0.005
    envs: int = 8
    clearance: float | None = None

    @property
    def judges(self) -> tuple[JudgeName, ...]:
        """Every gate of the shadow run. The exact world has no cells, and one gate does for all of them."""
        return tuple(
            JudgeName(model, world, cell)
            for model in self.finger_models
            for world in self.worlds
            for cell in (self.cells if world == "voxels" else (min(self.cells),))
        )


@dataclass(frozen=True)
class StopCount:
    """A finished benchmark. figures: one JSON document per world and cell. judged: episodes per gate."""

    options: StopCountOptions
    figures: tuple[dict[str, Any], ...]
    judged: dict[JudgeName, tuple[JudgedEpisode, ...]]
    folder: Path


def bench_stop_count(
    options: StopCountOptions,
    folder: Path | None = None,
    resume: bool = False,
    progress: Progress = lambda label, done, total: None,
) -> StopCount:
    """Run, adjudicate and count. The run is kept in `folder`; without one it is forgotten.

    resume: go on with what a killed run left in `folder`. Raises RecordError when that run had other options, or when
    `folder` holds a run and resume is not asked for.
    """
    if folder is None:
        with TemporaryDirectory(prefix="simulo-") as temporary:
            return bench_stop_count(options, Path(temporary), False, progress)
    _open_run(options, folder, resume)
    _shadow(options, folder, progress)
    for model in options.finger_models:
        _success(options, model, folder, progress)
    return replay_stop_count(folder, progress)


def replay_stop_count(folder: Path, progress: Progress = lambda label, done, total: None) -> StopCount:
    """Adjudicate and count a recorded run again. Raises RecordError when `folder` holds none, or not all of it."""
    options = read_options(folder)
    description = load_description(options.robot)
    props = scene_props(options.task, options.neighbours)
    truth = Truth(description, {name: prop.shape for name, prop in props.items()})
    missing = sorted(set(range(options.episodes)) - set(recorded(folder, options.episodes)))
    if missing:
        raise RecordError(f"{folder} lacks episodes {missing[:8]}; finish the run with --resume")
    judged: dict[JudgeName, list[JudgedEpisode]] = {judge: [] for judge in options.judges}
    tracking = 0.0
    for number in range(options.episodes):
        record = load_record(folder, number)
        adjudicator = Adjudicator(truth, options.margin, 1.0 / _DT)
        contacts: tuple[Contact, ...] = () if record.failure else adjudicator.contacts(record)
        tracking = max(tracking, tracking_error(description, record))
        for judge in options.judges:
            cells = map_key(judge.cell) if judge.world == "voxels" else ""
            judged[judge].append(adjudicator.judge(record, judge, cells, contacts))
        progress("adjudicating", number + 1, options.episodes)
    figures = tuple(
        _figures(options, world, cell, judged, folder, tracking) for world, cell in _worlds_and_cells(options)
    )
    write_json(folder / "stop-count.json", list(figures))
    return StopCount(options, figures, {judge: tuple(episodes) for judge, episodes in judged.items()}, folder)


# --- the two runs ----------------------------------------------------------------------------------------------------

_PHYSICS_DT, _STEPS = 0.002, 10
_DT = _PHYSICS_DT * _STEPS


def _shadow(options: StopCountOptions, folder: Path, progress: Progress) -> None:
    """Record the episodes that are not recorded yet."""
    missing = sorted(set(range(options.episodes)) - set(recorded(folder, options.episodes)))
    progress("shadow run", options.episodes - len(missing), options.episodes)
    if not missing:
        return
    task = _make_task(options, options.hazards)
    gates = {
        judge: CollisionGate(options.robot, "report", 0.0, options.margin, judge.world, judge.finger_model)
        for judge in options.judges
    }
    panel = JudgePanel(gates, *task.map_box)
    env = LearningEnv(task, min(options.envs, len(missing)), options.backend, _PHYSICS_DT, _STEPS, gate=panel)
    try:
        shapes = {name: prop.shape for name, prop in env.scene.props.items()}
        run = ShadowRun(env, panel, task, Truth(panel.robot.description, shapes))
        for batch, upcoming in _batches(missing, env.num_envs):
            before = options.episodes - len(missing) + missing.index(batch[0])
            records = run.run(
                batch, options.seed, upcoming, lambda done, b=before: progress("shadow run", b + done, options.episodes)
            )
            for record in records:
                save_record(record, folder)
    finally:
        env.close()


def _success(options: StopCountOptions, model: FingerModel, folder: Path, progress: Progress) -> None:
    """Run hazard-free episodes in which a stop ends the episode, and keep why each ended."""
    path = folder / f"success-{model}.json"
    ended: dict[int, str] = {int(k): v for k, v in json.loads(path.read_text()).items()} if path.is_file() else {}
    missing = [number for number in range(options.success_episodes) if number not in ended]
    label = f"success run, {model}"
    progress(label, len(ended), options.success_episodes)
    if not missing:
        return
    task = _make_task(options, 0.0)
    gate = CollisionGate(
        options.robot, "terminate", world_margin=options.margin, world=options.worlds[0], finger_model=model
    )
    env = LearningEnv(task, min(options.envs, len(missing)), options.backend, _PHYSICS_DT, _STEPS, gate=gate)
    try:
        if options.worlds[0] == "voxels":
            low, high = task.map_box
            gate.set_world(DeploySimPerception(env, GridSpec.around(low, high, min(options.cells))))
        policy = task.scripted_policy()
        for batch, upcoming in _batches(missing, env.num_envs):
            ended |= _run_to_end(env, policy, batch, upcoming, options.seed)
            write_json(path, {str(number): reason for number, reason in sorted(ended.items())})
            progress(label, len(ended), options.success_episodes)
    finally:
        env.close()


def _run_to_end(
    env: LearningEnv, policy: Callable, numbers: Sequence[int], upcoming: Sequence[int], seed: int
) -> dict[int, str]:
    """Run these episodes, one per environment. Returns why each ended."""
    spare = [numbers[-1]] * (env.num_envs - len(numbers))
    env.reset(seed=[seed + number for number in (*numbers, *spare)])
    for i, number in enumerate(upcoming):
        env.assign_seed(i, seed + number)
    ended: dict[int, str] = {}
    while len(ended) < len(numbers):
        *_, info = env.step(policy(env))
        for i, reason in info["stop"].items():
            if i < len(numbers):
                ended.setdefault(numbers[i], reason)
    return ended


def _batches(numbers: list[int], size: int) -> Iterator[tuple[list[int], list[int]]]:
    """Batches of at most `size`, each with the one that follows."""
    for first in range(0, len(numbers), size):
        yield numbers[first : first + size], numbers[first + size : first + 2 * size]


# --- figures ---------------------------------------------------------------------------------------------------------


def _worlds_and_cells(options: StopCountOptions) -> list[tuple[World, float]]:
    return list(dict.fromkeys((judge.world, judge.cell) for judge in options.judges))


def _figures(
    options: StopCountOptions,
    world: World,
    cell: float,
    judged: dict[JudgeName, list[JudgedEpisode]],
    folder: Path,
    tracking: float,
) -> dict[str, Any]:
    """The JSON document of one world at one cell size."""
    results = []
    for model in options.finger_models:
        episodes = judged[JudgeName(model, world, cell)]
        clean = [episode for episode in episodes if episode.hazard == "none"]
        hazard = [episode for episode in episodes if episode.hazard != "none"]
        row = {"finger_model": model, **summary(episodes, 1.0 / _DT)}
        row |= _success_figures(options, model, folder)
        row |= {"clean": summary(clean, 1.0 / _DT), "hazard": summary(hazard, 1.0 / _DT)}
        results.append(row)
    return {
        "benchmark": "stop-count",
        "robot": options.robot,
        "task": options.task,
        "backend": options.backend,
        "device": "cpu",
        "seed": options.seed,
        "episodes": options.episodes,
        "hazards": options.hazards,
        "neighbours": options.neighbours,
        "clearance_m": options.clearance,
        "cell_m": cell,
        "world": world,
        "margin_m": options.margin,
        "mode": "shadow",
        "max_tracking_error_mm": round(1000.0 * tracking, 3),
        "versions": versions(),
        "results": results,
    }


def _success_figures(options: StopCountOptions, model: FingerModel, folder: Path) -> dict[str, Any]:
    """The success of the second run; a shadow run's own says nothing of a gate."""
    path = folder / f"success-{model}.json"
    reasons = json.loads(path.read_text()) if path.is_file() else {}
    task = load_task_class(options.task)
    succeeded = sum(task.succeeded(reason) for reason in reasons.values())  # type: ignore[attr-defined]
    rate = succeeded / len(reasons) if reasons else None
    return {
        "success_rate": rate,
        "success_wilson95": wilson95(succeeded, len(reasons)),
        "success_episodes": len(reasons),
    }


def tracking_error(description: RobotDescription, record: EpisodeRecord) -> float:
    """The largest distance [m] of a link's origin from where it was commanded, at the end of the step."""
    commanded = reference_fk(description, record.commanded.astype(np.float64))
    measured = reference_fk(description, record.measured[1:].astype(np.float64))
    gaps = (np.linalg.norm(commanded[k][:, :3, 3] - measured[k][:, :3, 3], axis=1).max() for k in description.links)
    return float(max(gaps))


def versions() -> dict[str, str]:
    """Of what the figures depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


# --- the run's folder ------------------------------------------------------------------------------------------------


def _open_run(options: StopCountOptions, folder: Path, resume: bool) -> None:
    file = folder / RUN_FILE
    if not file.is_file():
        write_json(file, asdict(options))
        return
    if not resume:
        raise RecordError(f"{folder} holds a run already; go on with it by --resume, or name another folder")
    found = read_options(folder)
    if found != replace(options, envs=found.envs):
        raise RecordError(f"{folder} holds a run of other options ({found}); name another folder")


def read_options(folder: Path) -> StopCountOptions:
    """What a kept run was asked to do. Raises RecordError when `folder` holds none."""
    file = folder / RUN_FILE
    try:
        values: dict[str, Any] = json.loads(file.read_text())
        options: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        return StopCountOptions(**options)
    except (OSError, ValueError, TypeError) as error:
        raise RecordError(f"{folder} holds no recorded run: {error}") from error


# --- the task --------------------------------------------------------------------------------------------------------


def _make_task(options: StopCountOptions, hazards: float) -> Any:
    """The task, told what its episodes are to hold. Raises RecordError when it cannot be told, or scripts no policy."""
    task_class: Any = load_task_class(options.task)
    needed = [
        name for name in ("map_box", "scripted_policy", "hazard_of", "succeeded") if not hasattr(task_class, name)
    ]
    if needed:
        raise RecordError(
            f"{options.task} cannot be benchmarked: its task lacks {', '.join(needed)} (see evaluation.shadow)"
        )
    asked = {} if options.clearance is None else {"clearance": options.clearance}
    try:
        return task_class(neighbours=options.neighbours, hazards=hazards, cell=min(options.cells), **asked)
    except ValueError as error:
        raise RecordError(f"{options.task}: {error}") from error


def scene_props(task: str, neighbours: str) -> dict[str, Prop]:
    """The props that a task declares, without a simulator."""
    scene = Scene()
    load_task_class(task)(neighbours=neighbours).build(scene)  # type: ignore[call-arg]
    return dict(scene.props)
