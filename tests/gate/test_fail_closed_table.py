"""What must never come out as clear, one row each: inputs that are no numbers, worlds that are none, questions of the
wrong shape, another robot, kernels that did not build.

Environment 1 of three is spoiled, or the question is; what is spoiled is refused, and the other environments' answers
are bit for bit what they were.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import simulo
from simulo.collision import (
    CollisionChecker,
    ConvexShape,
    Kind,
    MapStatus,
    Payload,
    Primitives,
    RawVerdict,
    VoxelGrid,
    build_model,
    build_motion_bounds,
)
from simulo.collision.kernels.verdict import verdict_kernel
from simulo.description import DisabledPair
from simulo.errors import BackendError, CollisionModelError, GateError, SimuloError
from simulo.gate import CollisionGate
from simulo.pose import Pose
from tests.collision.robots import pincer, sliders
from tests.gate.arm import empty_map, openarm, rest
from tests.gate.tasks import JointTargets

ROOT = Path(__file__).parents[2]
MODEL = build_model(pincer())
NAN, INF = float("nan"), float("inf")
LEVEL = torch.tensor([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]).repeat(3, 1)
SPOILED, OTHERS = 1, [0, 2]


def cells() -> torch.Tensor:
    occupied = torch.zeros(3, 8, 8, 8, dtype=torch.bool)
    occupied[:, 3, 4, 5] = True
    return occupied


@dataclass
class Question:
    """Three environments with a map, a ball and a held ball each, all clear, and all that `check` takes."""

    q: torch.Tensor = field(default_factory=lambda: torch.zeros(3, 2, 6))
    base: torch.Tensor = field(default_factory=LEVEL.clone)
    measured: torch.Tensor = field(default_factory=lambda: torch.zeros(3, 2))
    active: torch.Tensor = field(default_factory=lambda: torch.ones(3, 2, dtype=torch.bool))
    status: torch.Tensor = field(default_factory=lambda: torch.zeros(3, dtype=torch.int8))
    widen: torch.Tensor = field(default_factory=lambda: torch.zeros(3))
    start: torch.Tensor = field(default_factory=lambda: torch.zeros(3, 6))
    grid: torch.Tensor = field(default_factory=LEVEL.clone)
    ball: torch.Tensor = field(default_factory=LEVEL.clone)
    held: torch.Tensor = field(default_factory=LEVEL.clone)

    def __post_init__(self) -> None:
        self.grid[:, 2], self.ball[:, 2], self.held[:, 0] = 1.5, 1.0, 0.3

    def ask(self, checker: CollisionChecker) -> RawVerdict:
        grid = VoxelGrid.from_cells(cells(), 0.02, self.grid[:, :3], self.grid[:, 3:])
        checker.set_voxels(grid)
        checker.set_primitives(Primitives.of(["ball"], [ConvexShape.sphere(0.05)], self.ball[:, None]))
        checker.attach(Payload("left", ConvexShape.sphere(0.02), self.held))
        return checker.check(
            self.q, self.base, self.measured, self.active, map_status=self.status, widen=self.widen, start=self.start
        )


@pytest.fixture(scope="module")
def checker() -> CollisionChecker:
    return CollisionChecker(MODEL, 3, 2, motion=build_motion_bounds(MODEL))


def put(name: str, column: Any, value: float | int) -> Callable[[Question], None]:
    """Spoil one number, or several, of environment 1."""

    def act(question: Question) -> None:
        getattr(question, name)[(SPOILED, *column) if isinstance(column, tuple) else (SPOILED, column)] = value

    return act


ALL = slice(None)
NO_NUMBER = {
    f"{name}: {value}": (put(name, column, value), Kind.NON_FINITE)
    for name, column in {
        "q": (0, 2),
        "base": 1,
        "measured": 0,
        "start": 3,
        "grid": 0,
        "ball": 2,
        "held": 1,
    }.items()
    for value in (NAN, INF, -INF)
}
SPOILS: dict[str, tuple[Callable[[Question], None], Kind | None]] = {
    **NO_NUMBER,
    "q: NaN in a later row": (put("q", (1, 5), NAN), Kind.NON_FINITE),
    "q: an angle that float32 has no turn for": (put("q", (0, 0), 3e38), None),
    "base: a turn that is none": (put("base", slice(3, 7), 0.0), Kind.NON_FINITE),
    "base: NaN in the turn": (put("base", 4, NAN), Kind.NON_FINITE),
    "base: so far that sums overflow": (put("base", slice(0, 3), 3e38), None),
    "grid: a turn that is none": (put("grid", slice(3, 7), 0.0), Kind.NON_FINITE),
    "grid: NaN in the turn": (put("grid", 6, NAN), Kind.NON_FINITE),
    "ball: a turn that is none": (put("ball", slice(3, 7), 0.0), Kind.NON_FINITE),
    "ball: infinity in the turn": (put("ball", 3, INF), Kind.NON_FINITE),
    "held: a turn that is none": (put("held", slice(3, 7), 0.0), Kind.NON_FINITE),
    "held: infinity in the turn": (put("held", 5, INF), Kind.NON_FINITE),
    "held: so far that its distance overflows": (put("held", 0, 1e30), None),
    "widen: NaN": (put("widen", (), NAN), Kind.SELF),
    "widen: infinity": (put("widen", (), INF), Kind.SELF),
    "widen: less than nothing": (put("widen", (), -0.001), Kind.SELF),
    "map: none": (put("status", (), int(MapStatus.NONE)), Kind.NO_MAP),
    "map: stale": (put("status", (), int(MapStatus.STALE)), Kind.STALE_MAP),
    "map: a status that there is not": (put("status", (), 7), None),
    "map: a status below them all": (put("status", (), -1), None),
}


@pytest.mark.parametrize("row", SPOILS)
def test_what_is_spoiled_stops_its_environment_and_no_other(checker: CollisionChecker, row: str) -> None:
    act, kind = SPOILS[row]
    good = Question().ask(checker)
    assert good.clear.all(), "or nothing is shown"
    question = Question()
    act(question)
    verdict = question.ask(checker)
    assert not verdict.clear[SPOILED]
    assert kind is None or Kind(int(verdict.kind[SPOILED])) == kind
    assert torch.equal(verdict.block[:, OTHERS], good.block[:, OTHERS])
    assert torch.equal(Question().ask(checker).block, good.block), "and nothing of it is left"


Ask = Callable[[CollisionChecker], Any]
ZEROS, ROWS = torch.zeros(3, 6), torch.zeros(3, 2, 6)


def check(**changes: Any) -> Ask:
    return lambda checker: checker.check(**{"q": ROWS, "start": ZEROS, **changes})


def grid_of(**changes: Any) -> Ask:
    values = {"occupied": cells(), "cell": 0.02, "position": LEVEL[:, :3], "orientation_wxyz": LEVEL[:, 3:], **changes}
    return lambda checker: checker.set_voxels(VoxelGrid.from_cells(**values))


def attach(hand: str = "left", shape: Any = None, pose: torch.Tensor = LEVEL, **changes: Any) -> Ask:
    return lambda checker: checker.attach(Payload(hand, shape or ConvexShape.sphere(0.02), pose, **changes))


def balls(count: int, pose: torch.Tensor, names: tuple[str, ...] | None = None) -> Ask:
    called = names or tuple(f"ball{i}" for i in range(count))
    return lambda checker: checker.set_primitives(Primitives.of(called, [ConvexShape.sphere(0.1)] * count, pose))


MISFITS: dict[str, tuple[Ask, str]] = {
    "q in double": (check(q=ROWS.double()), "q must be a float32 tensor"),
    "q as a list": (check(q=[[0.0] * 6] * 3), "got list"),
    "q of another robot's joints": (check(q=torch.zeros(3, 2, 7)), "columns left_shoulder"),
    "q of fewer environments": (check(q=ROWS[:2]), "2 entries and this checker 3 environments"),
    "q of no environment": (check(q=ROWS[:0]), "K >= 1"),
    "q of more rows than planned": (check(q=torch.zeros(3, 9, 6)), "horizon >= 9"),
    "q on another device": (check(q=torch.zeros(3, 2, 6, device="meta")), "on meta"),
    "ids of another length": (check(env_ids=[0]), "one id per entry"),
    "ids past the last": (check(env_ids=[0, 1, 3]), "outside"),
    "ids below the first": (check(env_ids=[-1, 0, 1]), "outside"),
    "a base of six numbers": (check(base_pose=torch.zeros(3, 6)), "base_pose"),
    "a base in double": (check(base_pose=LEVEL.double()), "base_pose"),
    "a base on another device": (check(base_pose=LEVEL.to("meta")), "meta"),
    "measured fingers without saying which": (check(measured=torch.zeros(3, 2)), "belong together"),
    "measured fingers of one hand": (
        check(measured=torch.zeros(3, 1), measured_active=torch.ones(3, 1, dtype=torch.bool)),
        "measured",
    ),
    "a map status in int64": (check(map_status=torch.zeros(3).long()), "map_status"),
    "a map status of one environment": (check(map_status=torch.zeros(1, dtype=torch.int8)), "map_status"),
    "a width of one environment": (check(widen=torch.zeros(1)), "widen"),
    "ways that begin nowhere": (check(start=None), "start says where the way"),
    "ways of fewer environments": (check(start=ZEROS[:2]), "start"),
    "a link that there is not": (check(links="left_thumb"), "left_thumb"),
    "a hand that there is not": (check(links="gripper:middle"), "middle"),
    "a pair that is not checked": (check(links=("left_jaw", "left_follower")), "does not check"),
    "links by number": (check(links=3), "links must be"),
    "a grid of no cells": (grid_of(occupied=cells()[:, :0]), "VoxelGrid.bricks"),
    "a grid of fewer environments": (
        grid_of(occupied=cells()[:2], position=LEVEL[:2, :3], orientation_wxyz=LEVEL[:2, 3:]),
        "2 environments",
    ),
    "a grid of cells of no size": (grid_of(cell=0.0), "cell must be positive"),
    "a grid of cells of NaN": (grid_of(cell=NAN), "cell must be positive"),
    "a grid with one pose for all": (grid_of(position=LEVEL[:1, :3]), "position"),
    "a grid whose unknown cells are others": (grid_of(unknown=cells()[:, :4]), "unknown"),
    "more primitives than planned": (balls(9, LEVEL[:, None].expand(3, 9, 7).clone()), "max_primitives"),
    "two primitives of one name": (balls(2, LEVEL[:, None].expand(3, 2, 7).clone(), ("a", "a")), "distinct name"),
    "primitives of other environments": (balls(1, LEVEL[:2, None]), "2 environments"),
    "poses of other primitives": (
        lambda checker: checker.move_primitives(LEVEL[:, None].expand(3, 5, 7).clone(), torch.ones(3, 5) > 0),
        "pose",
    ),
    "a payload in a hand that there is not": (attach("middle"), "no gripper 'middle'"),
    "a payload on a link that there is not": (attach(link="left_thumb"), "left_thumb"),
    "a payload that may touch what there is not": (attach(touch_links=("left_sleeve",)), "left_sleeve"),
    "a payload in a slot that there is not": (attach(slot=7), "payload slot 7"),
    "a payload of fewer environments": (attach(pose=LEVEL[:2]), "Payload.pose"),
    "a payload of too many vertices": (
        attach(shape=ConvexShape(np.random.default_rng(0).normal(size=(300, 3)))),
        "256",
    ),
    "a shape of NaN": (lambda _: ConvexShape(np.full((4, 3), NAN)), "must be finite"),
    "a sphere of no size": (lambda _: ConvexShape.sphere(0.0), "sphere radius"),
    "a box of infinite size": (lambda _: ConvexShape.box((INF, 1.0, 1.0)), "three finite"),
    "a margin of NaN": (lambda checker: checker.set_margins(NAN, 0.0), "margins must be finite"),
    "a margin below nothing": (lambda checker: checker.set_margins(0.0, -0.01), "margins must be finite"),
    "a region of fewer environments": (
        lambda checker: checker.set_grasp_region("left", LEVEL[:2], torch.ones(3, 3)),
        "pose",
    ),
}


@pytest.mark.parametrize("row", MISFITS)
def test_what_does_not_fit_is_refused_by_name_and_leaves_nothing(row: str) -> None:
    ask, said = MISFITS[row]
    checker = CollisionChecker(MODEL, 3, 2, motion=build_motion_bounds(MODEL), max_primitives=8)
    before = Question().ask(checker)
    with pytest.raises((CollisionModelError, IndexError), match=said):
        ask(checker)
    after = checker.check(
        ROWS, LEVEL, torch.zeros(3, 2), torch.ones(3, 2, dtype=torch.bool), start=ZEROS, widen=torch.zeros(3)
    )
    assert torch.equal(after.block, before.block)


# --- no checker, no gate -----------------------------------------------------------------------------------------


def another_robot() -> simulo.LearningEnv:
    """A gate whose model has one joint 5 mm off where the simulator's robot has it."""
    robot = openarm()
    first = robot.joints[0]
    moved = replace(
        first, origin=Pose(tuple(np.add(first.origin.position, (0.005, 0, 0))), first.origin.orientation_wxyz)
    )
    gate = CollisionGate(replace(robot, joints=(moved, *robot.joints[1:])), world="none")
    env = simulo.LearningEnv(JointTargets({}), num_envs=1, gate=gate)
    env.reset(seed=0)
    return env


NOTHING_TO_ASK: dict[str, tuple[Callable[[], Any], type[SimuloError], str]] = {
    "no pairs": (
        lambda: build_model(replace(sliders(), disabled_pairs=(DisabledPair("box0", "box1", "all"),))),
        CollisionModelError,
        "no link pair left",
    ),
    "no environments": (lambda: CollisionChecker(MODEL, 0), CollisionModelError, "at least 1"),
    "no rows": (lambda: CollisionChecker(MODEL, 1, 0), CollisionModelError, "at least 1"),
    "a GPU that is not there": (lambda: CollisionChecker(MODEL, 1, device="cuda:7"), BackendError, "cuda:7"),
    "a gate of no world": (lambda: CollisionGate(pincer(), world=None), GateError, "world"),
    "a gate of another finger model": (
        lambda: CollisionGate(pincer(), finger_model="rigid"),
        SimuloError,
        "finger_model",
    ),
    "a gate of a robot that is not the simulator's": (another_robot, GateError, "mm"),
}


@pytest.mark.parametrize("row", NOTHING_TO_ASK)
def test_what_could_not_be_checked_is_not_made(row: str) -> None:
    make, error, said = NOTHING_TO_ASK[row]
    with pytest.raises(error, match=said):
        make()


def test_no_map_and_an_old_map_are_not_clear() -> None:
    gate = CollisionGate(openarm(), device="cpu", max_age=0.5)
    assert gate.check(rest()).kind_name(0) == "no_map"
    gate.set_world(empty_map(), stamp=torch.tensor([-0.6], dtype=torch.float64))
    assert gate.check(rest()).kind_name(0) == "stale_map"
    gate.set_world(empty_map())
    assert gate.check(rest()).kind_name(0) == "clear"


def test_there_are_forty_rows() -> None:
    assert len(SPOILS) + len(MISFITS) + len(NOTHING_TO_ASK) + len(BUILDS) >= 40


# --- kernels that did not build ----------------------------------------------------------------------------------

VERDICT = """
import torch
from simulo.collision import CollisionChecker, build_model
from tests.collision.robots import pincer
q = torch.zeros(2, 6); q[1, 1] = 3.0
print("VERDICT", CollisionChecker(build_model(pincer()), 2).check(q, distances=True).block.tolist())
"""


def verdict_kernel_of(native: str) -> str:
    """Source that puts a kernel of the same parameters, whose whole work is a line of C++, in the verdict's place."""
    signature = inspect.getsource(verdict_kernel.func).split("):")[0] + "):"
    return f"""
import simulo.collision.launches as launches
from simulo.collision.kernels.verdict import *

@wp.func_native({native!r})
def work(x: wp.int32): ...

{signature}
    work(0)

launches.verdict_kernel = verdict_kernel
"""


def run(setup: str, cache: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "ask.py"
    options = f"wp.config.optimization_level = 0\nwp.config.kernel_cache_dir = {str(cache)!r}"
    script.write_text(f"import warp as wp\n{options}\n{setup}\n{VERDICT}")
    return subprocess.run(
        [sys.executable, str(script)], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=500,
    )  # fmt: skip


BUILDS = {
    "a kernel that does not compile": (verdict_kernel_of("this is no C++;"), "cache", "build failed"),
    "a kernel that does nothing": (verdict_kernel_of(""), "cache", "self-test of the collision kernels failed"),
    "a cache that cannot be written": ("", "/proc/simulo", "/proc/simulo"),
}


@pytest.mark.slow
@pytest.mark.parametrize("row", BUILDS)
def test_what_did_not_build_answers_nothing(tmp_path: Path, row: str) -> None:
    setup, cache, said = BUILDS[row]
    result = run(setup, tmp_path / cache, tmp_path)
    assert result.returncode != 0, result.stdout
    assert "VERDICT" not in result.stdout and said in result.stderr
