"""A surface gripper: a suction cup or magnet on a link, which holds what it touches by a bond of the simulator's."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from simulo.actuators.commands import NOT_FINITE
from simulo.actuators.gripper import Gripper
from simulo.actuators.suction import BondSample, SuctionLatch, barred_body, held_body, states_of, wanted
from simulo.handles import BondLimits, Bonds, Cup
from simulo.indexing import EnvIds, resolve_env_ids
from simulo.pose import Pose, checked_pose
from simulo.props import Prop
from simulo.robot import Robot


class SurfaceGripperActuator(Gripper):
    """Catches the body in front of its cup and holds it where it is, until told to open or pulled too hard.

    Add it to the scene in `build`: `robot.add_actuator(gripper, attach_to=link)`, or `scene.add(gripper, at=...)` with
    a path below the link. What resets the scene or the robot resets it. `update` must be called by the task, once per
    step.

    A close searches: CLOSING, and CLOSED once a body was caught, which it stays over idle commands. A search that
    lasts retry_interval gives up: OPEN, and a close does nothing until another command came in between, so that a
    policy which says +1 at every step does not arm it again. A bond that breaks under load is CLOSING, and searches
    again for retry_interval. An open lets go at once.

    max_grip_distance [m]: how far from the cup, along forward_axis, a surface may be to be caught.
    coaxial_force_limit, shear_force_limit [N]: a bond breaks above either, by its mean force over 10 ms; coaxial is
    what pulls along the axis, shear what acts across it; infinite for a bond that never breaks. retry_interval [s].
    rearm_time [s]: a body that broke off is not caught again within it. forward_axis: "x", "y" or "z", with a minus
    for the other way, or a vector, in the tool's frame. clearance_offset [m]: the cup's lip is this far along the axis
    from the tool's origin. tool_pose: the tool's frame in the link. The tool's place is fixed at build.
    """

    def __init__(
        self,
        max_grip_distance: float = 0.01,
        coaxial_force_limit: float = 60.0,
        shear_force_limit: float = 30.0,
        retry_interval: float = 1.0,
        rearm_time: float = 0.1,
        forward_axis: str | Sequence[float] = "z",
        clearance_offset: float = 0.0,
        open_threshold: float = -0.3,
        close_threshold: float = 0.3,
        path: str | None = None,
        enabled: bool = True,
        tool_pose: Pose | None = None,
    ):
        super().__init__(open_threshold, close_threshold, path, enabled)
        for name, value, bound in (
            ("max_grip_distance", max_grip_distance, math.inf),
            ("coaxial_force_limit", coaxial_force_limit, None),
            ("shear_force_limit", shear_force_limit, None),
            ("retry_interval", retry_interval, None),
            ("rearm_time", rearm_time, math.inf),
            ("clearance_offset", clearance_offset, math.inf),
        ):
            if not value >= 0.0 or value == bound:
                raise ValueError(f"{name} must be a {'finite ' if bound else ''}number >= 0, got {value!r}")
        self.max_grip_distance = max_grip_distance
        self.coaxial_force_limit = coaxial_force_limit
        self.shear_force_limit = shear_force_limit
        self.retry_interval = retry_interval
        self.rearm_time = rearm_time
        self.forward_axis = forward_axis
        self.clearance_offset = clearance_offset
        self.tool_pose = checked_pose(tool_pose, "SurfaceGripperActuator(tool_pose=...)")
        self._axis = _unit_axis(forward_axis)
        self._mount: tuple[Robot, str] | None = None
        self._bonds: Bonds | None = None
        self._latch = SuctionLatch(1, torch.device("cpu"))
        self._sampled_tick = -1

    # --- life --------------------------------------------------------------------------------------------------------

    def mount(self, robot: Robot, link: str) -> None:
        """Called by `Robot.add_actuator`."""
        if self._mount is not None:
            owner, other = self._mount
            raise ValueError(f"this surface gripper hangs on {other!r} of robot {owner.description.name!r} already")
        self._mount = (robot, link)

    def attach(self, bonds: Bonds) -> None:
        """Called once by the backend that has built the scene."""
        robot = self.robot
        self._bonds = bonds
        self._latch = SuctionLatch(robot.num_envs, robot.device)
        robot.add_latch(self)

    @property
    def robot(self) -> Robot:
        """The one that carries it. Raises RuntimeError until it was added to one."""
        if self._mount is None:
            raise RuntimeError(
                "this surface gripper is on no robot yet: call robot.add_actuator(gripper, attach_to=link)"
            )
        return self._mount[0]

    def cup(self) -> Cup:
        """Its lip in the frame of the link that carries it. Raises RuntimeError until it was added to one."""
        if self._mount is None:
            raise RuntimeError(
                "this surface gripper is on no link yet: call robot.add_actuator(gripper, attach_to=link)"
            )
        axis = self.tool_pose.rotation @ self._axis
        origin = self.tool_pose.apply(self.clearance_offset * self._axis)
        return Cup(self._mount[1], tuple(origin.tolist()), tuple(axis.tolist()))

    # --- commands ----------------------------------------------------------------------------------------------------

    def reset(self, env_ids: EnvIds | None = None) -> None:
        """Let go and forget the commands of these environments. None means all, empty means none."""
        ids = resolve_env_ids(env_ids, self.num_envs, self._latch.device)
        if self._bonds is not None and ids.numel():
            self._latch.clear(ids)
            self._bonds.reset(ids)

    def flush(self) -> None:
        """Hand over what was commanded. Robots do it with their own targets, once per step."""
        if self._bonds is not None:
            state = self._latch.state
            limits = BondLimits(self.max_grip_distance, self.coaxial_force_limit, self.shear_force_limit)
            self._bonds.command(wanted(state), barred_body(state), limits)

    # --- state -------------------------------------------------------------------------------------------------------

    def update(self, dt: float) -> None:
        """Take one sample of the bonds, dt [s] after the last one. Calls at one physics time count once."""
        if not (math.isfinite(dt) and dt >= 0.0):
            raise ValueError(f"update(dt) takes the time since the last update, a number >= 0 in seconds; got {dt!r}")
        if self._bonds is None:
            return
        if self._sampled_tick != self.robot.physics_tick:
            self._sampled_tick = self.robot.physics_tick
            sample = BondSample(*self._bonds.sample())
            self._latch.observe(sample, dt, self.retry_interval, self.rearm_time)
        self._updated = True

    def held(self, prop: Prop) -> Tensor:
        """Where the prop is bonded to the cup, bool, shape (num_envs,)."""
        bodies = self._attached("held").prop_bodies
        if prop.name not in bodies:
            raise ValueError(f"the scene has no prop {prop.name!r}; it has {sorted(bodies)}")
        return self._held_bodies() == bodies[prop.name]

    def gripped(self) -> list[str | None]:
        """The name of the prop that each environment holds, None where it holds none; waits for the device."""
        names = {body: name for name, body in self._attached("gripped").prop_bodies.items()}
        return [names.get(body) for body in self._held_bodies().tolist()]

    # --- a gate refusing what was commanded: see handles.CommandLatch -------------------------------------------------

    def accept(self, envs: Tensor | None) -> None:
        self._latch.accept(envs)

    def restore(self, envs: Tensor) -> None:
        self._latch.restore(envs)

    # --- private -----------------------------------------------------------------------------------------------------

    @property
    def _attached_robot(self) -> Robot | None:
        return None if self._bonds is None else self.robot

    def _apply(self, intent: Tensor) -> None:
        if not self.enabled or self._bonds is None:
            return
        intent = intent.to(self.robot.device)
        if not self.robot.refuses_bad_commands:
            bad = intent == NOT_FINITE
            self.robot.spoil_commands(bad)  # it drives no joint whose target could say so
            intent = intent.masked_fill(bad, 0)
        self._latch.command(intent)

    def _states(self) -> Tensor:
        return states_of(self._latch.state)

    def _held_bodies(self) -> Tensor:
        return held_body(self._latch.state)

    def _attached(self, what: str) -> Bonds:
        if self._bonds is None:
            raise RuntimeError(
                f"{what}: this surface gripper is not attached to a simulation yet; ask in on_start or later"
            )
        return self._bonds


def _unit_axis(axis: str | Sequence[float]) -> np.ndarray:
    """A direction of the tool's frame, by letter or as a vector, shape (3,)."""
    if isinstance(axis, str):
        letter = axis.lower().lstrip("+-")
        if letter not in ("x", "y", "z") or len(axis) > 2:
            raise ValueError(
                f"forward_axis={axis!r} must be 'x', 'y' or 'z', with a minus for the other way, or a vector"
            )
        return (-1.0 if axis.startswith("-") else 1.0) * np.eye(3)["xyz".index(letter)]
    vector = np.asarray(axis, dtype=np.float64)
    norm = float(np.linalg.norm(vector)) if vector.shape == (3,) else math.nan
    if not (math.isfinite(norm) and norm > 1e-9):
        raise ValueError(f"forward_axis={axis!r} must be three finite numbers that are not all zero, or a letter")
    return vector / norm
