"""What does one `update` of many grippers cost on one core, beside a Python loop over environments? Prints a table.

Parallel: OpenArm's right hand (a driven finger and its follower, columns of an 18-joint robot) on readings held in
memory; half of the fingers move, half rest on something, and half of the grippers are commanded closed. Surface: half
of the cups are commanded closed, a third of all find something to hold, and one bond in twenty breaks in every tick.
Both in a random order. The loop keeps the same contract with one Python object per environment, on the same readings
as lists. Times are CPU time of one thread, so that a busy machine distorts them little.

use: python benchmarks/gripper_update.py [--envs 16384] [--json FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from simulo.actuators import ParallelGripperActuator, SurfaceGripperActuator
from simulo.commands import CommandMode, JointCommands
from simulo.files import write_json
from simulo.handles import BondLimits
from simulo.robot import Robot

OPEN_AT, POSITION_TOLERANCE, VELOCITY_TOLERANCE = -0.7854, 0.02, 0.1  # rad, rad, rad/s
RETRY_INTERVAL, REARM_TIME = 1.0, 0.1  # s


class Readings:
    """A simulator that only has readings: see `simulo.handles.Articulation`."""

    device = torch.device("cpu")

    def __init__(self, robot: Robot, num_envs: int):
        self.num_envs = num_envs
        self.physics_tick = 0
        self.positions = torch.zeros(num_envs, len(robot.joint_names))
        self.velocities = torch.zeros(num_envs, len(robot.joint_names))
        self.limits = robot.joint_limits[: robot.num_actuated]

    def joint_positions(self) -> Tensor:
        return self.positions.clone()

    def joint_velocities(self) -> Tensor:
        return self.velocities.clone()

    def position_limits(self) -> Tensor:
        return self.limits

    def velocity_limits(self) -> Tensor:
        return torch.full_like(self.limits, torch.inf)

    def check_mode(self, mode: CommandMode, columns: Sequence[int]) -> None: ...

    def write_joint_state(self, positions: Tensor, velocities: Tensor, env_ids: Tensor) -> None: ...

    def write_commands(self, commands: JointCommands) -> None: ...

    def link_poses(self) -> Tensor:
        raise NotImplementedError("an update reads no links")

    def contact_forces(self, prop: str) -> tuple[Tensor, Tensor]:
        raise NotImplementedError("an update reads no contacts")


class Catches:
    """The bonds of a cup whose samples were drawn beforehand: see `simulo.handles.Bonds`."""

    prop_bodies: ClassVar[dict[str, int]] = {}

    def __init__(self, bonded: Tensor, broken: Tensor):
        self.bonded, self.broken = bonded, broken

    def sample(self) -> tuple[Tensor, Tensor]:
        return self.bonded.clone(), self.broken.clone()

    def command(self, wanted: Tensor, barred: Tensor, limits: BondLimits) -> None: ...

    def reset(self, env_ids: Tensor) -> None: ...


class OneHand:
    """The parallel gripper of one environment, as a loop would have it."""

    def __init__(self, closing: bool):
        self.closing, self.closed, self.quiet = closing, False, 0

    def update(self, positions: list[float], speeds: list[float]) -> int:
        settled = all(abs(speed) <= VELOCITY_TOLERANCE for speed in speeds)
        settled = settled and all(abs(position - OPEN_AT) > POSITION_TOLERANCE for position in positions)
        self.quiet = self.quiet + 1 if self.closing and settled else 0
        self.closed = self.closing and (self.closed or self.quiet >= 2)
        return 1 if self.closed else 0 if self.closing else -1


class OneCup:
    """The surface gripper of one environment, as a loop would have it."""

    def __init__(self, closing: bool):
        self.phase, self.searched, self.barred, self.barred_for = (0 if closing else -1), 0.0, -1, 0.0

    def update(self, bonded: int, broken: int, dt: float) -> int:
        self.barred_for = max(0.0, self.barred_for - dt)
        if broken >= 0:
            self.barred, self.barred_for = broken, REARM_TIME
        if self.phase >= 0:
            if bonded >= 0:
                self.phase = 1
            elif broken >= 0 or self.phase == 1:
                self.phase, self.searched = 0, 0.0
            else:
                self.searched += dt
                self.phase = -2 if self.searched >= RETRY_INTERVAL - 1e-9 else 0
        return max(self.phase, -1)


@dataclass(frozen=True)
class Rig:
    """physics advances the readings. tensors and loop then bring every gripper's state up to date, and tell it."""

    physics: Callable[[], None]
    tensors: Callable[[], Tensor]
    loop: Callable[[], list[int]]


def parallel(num_envs: int) -> Rig:
    generator = torch.Generator().manual_seed(0)
    robot = Robot("openarm")
    readings = Readings(robot, num_envs)
    robot.attach(readings, control_dt=0.02)
    gripper = ParallelGripperActuator(
        robot,
        "openarm_right_finger_joint.*",
        open_width=OPEN_AT,
        position_tolerance=POSITION_TOLERANCE,
        velocity_tolerance=VELOCITY_TOLERANCE,
    )
    fingers = robot.find_joints("openarm_right_finger_joint.*")
    readings.positions[:, fingers] = -0.4 * torch.rand(num_envs, 1, generator=generator)
    closing = torch.rand(num_envs, generator=generator) < 0.5
    gripper.set_commands(torch.where(closing, 1.0, -1.0))
    moving = [(torch.rand(num_envs, 1, generator=generator) < 0.5) * 0.3 for _ in range(2)]

    def physics() -> None:
        readings.physics_tick += 1
        readings.velocities[:, fingers] = moving[readings.physics_tick % 2]

    def tensors() -> Tensor:
        gripper.update(0.02)
        return gripper.state

    one_each = [OneHand(close) for close in closing.tolist()]

    def loop() -> list[int]:
        positions, speeds = readings.positions[:, fingers].tolist(), readings.velocities[:, fingers].tolist()
        return [g.update(position, speed) for g, position, speed in zip(one_each, positions, speeds, strict=True)]

    return Rig(physics, tensors, loop)


def surface(num_envs: int) -> Rig:
    generator = torch.Generator().manual_seed(0)
    robot = Robot("openarm")
    gripper = SurfaceGripperActuator(retry_interval=RETRY_INTERVAL, rearm_time=REARM_TIME)
    robot.add_actuator(gripper, attach_to=robot.link_names[-1])
    readings = Readings(robot, num_envs)
    robot.attach(readings, control_dt=0.02)
    nothing, draw = torch.full((num_envs,), -1, dtype=torch.int32), torch.rand(num_envs, generator=generator)
    caught = torch.where(draw < 0.33, 3, nothing)
    samples = []
    for _ in range(7):
        breaks = (torch.rand(num_envs, generator=generator) < 0.05) & (caught >= 0)
        samples.append((torch.where(breaks, nothing, caught), torch.where(breaks, caught, nothing)))
    catches = Catches(*samples[0])
    gripper.attach(catches)
    closing = torch.rand(num_envs, generator=generator) < 0.5
    gripper.set_commands(torch.where(closing, 1.0, -1.0))

    def physics() -> None:
        readings.physics_tick += 1
        catches.bonded, catches.broken = samples[readings.physics_tick % len(samples)]

    def tensors() -> Tensor:
        gripper.update(0.02)
        return gripper.state

    one_each = [OneCup(close) for close in closing.tolist()]

    def loop() -> list[int]:
        bonded, broken = catches.bonded.tolist(), catches.broken.tolist()
        return [cup.update(*sample, 0.02) for cup, *sample in zip(one_each, bonded, broken, strict=True)]

    return Rig(physics, tensors, loop)


def cpu_time_ms(call: Callable[[], object], before: Callable[[], None], rounds: int) -> dict[str, float]:
    """Median and 95th percentile of this thread's CPU time per call, after `before`, which is not counted."""
    times = []
    for _ in range(rounds):
        before()
        start = time.thread_time()
        call()
        times.append(1e3 * (time.thread_time() - start))
    return {"p50": round(float(np.percentile(times, 50)), 3), "p95": round(float(np.percentile(times, 95)), 3)}


GRIPPERS = {"parallel": parallel, "surface": surface}


def measure(num_envs: int) -> dict:
    """Times of every gripper [ms]; first, both ways must tell the same states through twenty ticks."""
    torch.set_num_threads(1)
    results = {}
    for name, make in GRIPPERS.items():
        rig = make(num_envs)
        for _ in range(20):
            rig.physics()
            if rig.tensors().tolist() != rig.loop():
                raise RuntimeError(f"{name}: the tensors and the loop tell different states")
        fast, slow = cpu_time_ms(rig.tensors, rig.physics, 300), cpu_time_ms(rig.loop, rig.physics, 30)
        results[name] = {"update_ms": fast, "python_loop_ms": slow, "ratio": round(slow["p50"] / fast["p50"], 1)}
    return {"benchmark": "gripper-update", "envs": num_envs, "threads": 1, "grippers": results}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, default=16384)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    result = measure(options.envs)
    print(f"{options.envs} environments, one core, CPU ms per tick")
    for name, row in result["grippers"].items():
        fast, slow = row["update_ms"], row["python_loop_ms"]
        print(f"{name:9} update {fast['p50']:.3f} (p95 {fast['p95']:.3f})   loop {slow['p50']:.1f}   x {row['ratio']}")
    if options.json:
        write_json(options.json, result)


if __name__ == "__main__":
    main()
