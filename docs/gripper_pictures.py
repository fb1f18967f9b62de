"""Draw the pictures of docs/grippers.md: the states of both grippers, and a recorded grasp with what is told of it.

use: python docs/gripper_pictures.py
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch
from numpy.typing import NDArray

import simulo
from simulo.description import reference_fk
from simulo.grippers import preset

IMAGES = Path(__file__).parent / "images"
INK, GREY, OPEN, CLOSING, CLOSED, EARLY = "#22272e", "#8b949e", "#8ecae6", "#e9c46a", "#2a9d8f", "#d1495b"
CUBE = 0.04  # m
LOOP = 5  # physics steps per update of the slower loop: 10 ms


@dataclass(frozen=True)
class Recording:
    """A grasp, one row per physics step: time [s], speed of the closing fingers [m/s], and three grippers' states."""

    time: NDArray[np.float64]
    speed: NDArray[np.float64]
    tolerance: float
    states: dict[str, NDArray[np.int64]]


class GraspCube:
    """Franka's hand closes on a cube; grippers that look at the fingers at different rates command the same."""

    simulation: simulo.Simulation

    def __init__(self) -> None:
        self.hand = preset("franka_hand")
        self.rows: list[tuple[float, ...]] = []

    def build(self, scene: simulo.Scene) -> None:
        self.robot = simulo.Robot(self.hand.robot, initial_joint_positions={self.hand.joint: self.hand.open_width})
        scene.add(self.robot, at="/World/Robot")
        description = self.robot.description
        gripper = description.gripper(self.hand.hand)
        grasp = reference_fk(description, description.rest_pose)[gripper.hand_link] @ gripper.grasp_frame.matrix
        x, y, z = grasp[:3, 3].tolist()
        cube = simulo.Prop.box((CUBE, CUBE, CUBE), mass=0.1, pose=simulo.Pose((x, y, z)))
        scene.add(cube, at="/World/Cube")
        stand = simulo.Prop.box((0.05, 0.05, 0.02), fixed=True, pose=simulo.Pose((x, y, z - CUBE / 2 - 0.01)))
        scene.add(stand, at="/World/Stand")

    def on_start(self) -> None:
        self.fingers = self.robot.find_joints(self.hand.finger_joints)
        self.one_sample = simulo.ParallelGripperActuator(self.robot, **self.hand, settle_updates=1)
        self.ours = simulo.ParallelGripperActuator(self.robot, **self.hand)
        self.every_step = simulo.ParallelGripperActuator(self.robot, **self.hand)
        self.patient = simulo.ParallelGripperActuator(self.robot, **self.hand, settle_updates=10)

    def on_step(self) -> None:
        grippers = (self.one_sample, self.ours, self.every_step, self.patient)
        for gripper in grippers:
            gripper.set_command(simulo.GripperCommand.CLOSE)
            if gripper in (self.every_step, self.patient) or self.simulation.step_count % LOOP == 0:
                gripper.update(self.simulation.dt)
        speed = float(self.robot.state.joint_velocities[0, self.fingers].mean())
        self.rows.append((self.simulation.time, speed, *(int(gripper.get_state()[0]) for gripper in grippers)))


def record() -> Recording:
    """Half a second of the grasp at MuJoCo's 2 ms."""
    script = GraspCube()
    simulo.Simulation(script).run(0.5)
    time, speed, *states = np.array(script.rows).T
    named = zip(("one sample", "two samples", "two, each step", "ten, each step"), states, strict=True)
    return Recording(time, speed, script.hand.velocity_tolerance, {name: s.astype(int) for name, s in named})


def draw_grasp(grasp: Recording) -> None:
    figure, panels = plt.subplots(2, 1, figsize=(10, 6.4), sharex=True, sharey=True)
    top, bottom = panels
    top.set_title("Updates every 10 ms: one sample fires as the fingers turn, two in a row wait until they rest")
    bottom.set_title(
        "Updates every 2 ms: now two samples fit into the turn as well, so that more of them are asked for"
    )
    looks = np.arange(0, len(grasp.time), LOOP)
    for panel, seen in ((top, looks), (bottom, np.arange(len(grasp.time)))):
        panel.axhspan(-1e3 * grasp.tolerance, 1e3 * grasp.tolerance, color=CLOSED, alpha=0.18, lw=0)
        panel.plot(1e3 * grasp.time, 1e3 * grasp.speed, color=GREY, lw=1.2)
        panel.plot(1e3 * grasp.time[seen], 1e3 * grasp.speed[seen], "o", color=INK, ms=4 if panel is top else 2.5)
        panel.set_ylabel("finger speed [mm/s]")
        panel.spines[["top", "right"]].set_visible(False)
        panel.title.set_fontsize(11)
    _mark(top, grasp, "one sample", EARLY, "a one-sample test says CLOSED\nwhile the fingers bounce back", -70)
    _mark(top, grasp, "two samples", CLOSED, "simulo says CLOSED", -120)
    _mark(bottom, grasp, "two, each step", EARLY, "two samples say CLOSED, 2 ms apart", -70)
    _mark(bottom, grasp, "ten, each step", CLOSED, "settle_updates=10 says CLOSED", -120)
    top.text(62, 0, "within velocity_tolerance", va="center", fontsize=9, color=INK)
    top.set_xlim(60, 295)
    top.set_ylim(-265, 45)
    bottom.set_xlabel("time since the close command [ms]")
    figure.tight_layout()
    _save(figure, "gripper_settling.png")


def _mark(panel: Axes, grasp: Recording, name: str, colour: str, text: str, height: float) -> None:
    """Where a gripper first told CLOSED."""
    first = 1e3 * grasp.time[int(np.argmax(grasp.states[name] == int(simulo.GripperState.CLOSED)))]
    panel.axvline(first, color=colour, lw=1.6)
    panel.text(first + 2, height, f"{text}\n({first:.0f} ms)", color=colour, fontsize=9, va="center")


PLACES = {"OPEN": (0.0, 0.0), "CLOSING": (4.4, 0.0), "CLOSED": (8.8, 0.0)}
COLOURS = {"OPEN": OPEN, "CLOSING": CLOSING, "CLOSED": CLOSED}


def draw_states() -> None:
    figure, (parallel, surface) = plt.subplots(2, 1, figsize=(9.5, 6.8))
    _states(parallel, "ParallelGripperActuator")
    _arrow(parallel, "OPEN", "CLOSING", -0.15, "close command")
    _arrow(parallel, "CLOSING", "CLOSED", -0.15, "every finger stopped, away from\nopen, on two updates in a row")
    _arrow(parallel, "CLOSING", "OPEN", -0.15, "open command or reset")
    _arrow(parallel, "CLOSED", "OPEN", -0.42, "open command or reset, and nothing else")
    _states(surface, "SurfaceGripperActuator")
    _arrow(surface, "OPEN", "CLOSING", -0.15, "a new close command")
    _arrow(surface, "CLOSING", "CLOSED", -0.15, "a body is caught")
    _arrow(surface, "CLOSED", "CLOSING", -0.15, "the bond breaks")
    _arrow(surface, "CLOSING", "OPEN", -0.15, "open command, reset, or\nretry_interval is over")
    _arrow(surface, "CLOSED", "OPEN", -0.42, "open command or reset")
    figure.tight_layout()
    _save(figure, "gripper_states.png")


def _states(panel: Axes, title: str) -> None:
    panel.set_title(title, color=INK, fontsize=12, family="monospace")
    for name, (x, y) in PLACES.items():
        panel.add_patch(Circle((x, y), 0.62, facecolor=COLOURS[name], edgecolor=INK, lw=1.4, zorder=2))
        value = int(simulo.GripperState[name])
        panel.text(
            x, y, f"{name}\n{value:+d}" if value else f"{name}\n0", ha="center", va="center", fontsize=10, zorder=3
        )
    panel.set_xlim(-0.9, 9.7)
    panel.set_ylim(-2.3, 1.2)
    panel.set_aspect("equal")
    panel.axis("off")


def _arrow(panel: Axes, start: str, end: str, bend: float, text: str) -> None:
    (x0, y0), (x1, y1) = PLACES[start], PLACES[end]
    style = {"arrowstyle": "-|>", "mutation_scale": 16, "color": INK, "lw": 1.3, "shrinkA": 39, "shrinkB": 39}
    panel.add_patch(FancyArrowPatch((x0, y0), (x1, y1), connectionstyle=f"arc3,rad={bend}", **style))
    # the middle of the arc: matplotlib bends it by `rad` times the distance, to the right of the way
    middle = np.array([(x0 + x1) / 2 + bend * (y1 - y0) / 2, (y0 + y1) / 2 - bend * (x1 - x0) / 2])
    above = middle[1] >= 0
    panel.text(
        middle[0], middle[1] + (0.1 if above else -0.1), text, ha="center", va="bottom" if above else "top", fontsize=9
    )


def _save(figure, name: str) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / name, dpi=110, facecolor="white", metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    draw_states()
    draw_grasp(record())
