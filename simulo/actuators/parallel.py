"""A parallel gripper: fingers that a robot has already, driven open and closed by one command."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral

import torch
from torch import Tensor

from simulo.actuators.commands import NOT_FINITE
from simulo.actuators.fingers import (
    Fingers,
    Hand,
    Width,
    check_within_limits,
    find_fingers,
    find_hand,
    finger_positions,
)
from simulo.actuators.gripper import Gripper
from simulo.actuators.states import DONE, GripperLatch, settled
from simulo.indexing import EnvIds, resolve_env_ids
from simulo.props import Prop
from simulo.robot import Robot
from simulo.rotations import rotate

_HOLDING_FORCE = 0.1  # N, on each side
_OPPOSING = -0.5  # cosine between the sides' mean normals


class ParallelGripperActuator(Gripper):
    """Drives a robot's finger joints to `open_width` or `closed_width`, and tells OPEN, CLOSING and CLOSED apart.

    A command below open_threshold opens, above close_threshold closes, and any other leaves the targets alone. CLOSED
    says that every finger stopped away from open under a close command, on `settle_updates` updates in a row; it sticks
    until an open command or a reset. It does not say that something is held: ask `held`.

    Build it in `on_start` from the robot; it is not added to the scene. Until the robot is attached it counts one
    environment, drops commands, and reads OPEN. `update` must be called by the task, once per step.

    finger_joints: exact name or regex. open_width, closed_width: joint positions [m, or rad for revolute jaws], one for
    all driven fingers or a mapping from joint name; a follower's comes from its leader. position_tolerance [m or rad],
    velocity_tolerance [m/s or rad/s]: see `settled`. path: a label for reports. enabled: False drops commands.
    Widths, thresholds, tolerances and finger_joints are read anew on each use, but only checked here.
    """

    progress_when_closed = DONE

    def __init__(
        self,
        robot: Robot,
        finger_joints: str,
        open_width: Width = 0.04,
        closed_width: Width = 0.0,
        open_threshold: float = -0.3,
        close_threshold: float = 0.3,
        position_tolerance: float = 0.002,
        velocity_tolerance: float = 0.01,
        path: str | None = None,
        enabled: bool = True,
        settle_updates: int = 2,
    ):
        if not isinstance(finger_joints, str) or not finger_joints:
            raise ValueError(f"finger_joints must be a joint name or a regex, got {finger_joints!r}")
        super().__init__(open_threshold, close_threshold, path, enabled)
        _check_numbers(position_tolerance, velocity_tolerance, settle_updates)
        _check_widths(open_width, closed_width, position_tolerance)
        self.robot = robot
        self.finger_joints = finger_joints
        self.open_width = open_width
        self.closed_width = closed_width
        self.position_tolerance = position_tolerance
        self.velocity_tolerance = velocity_tolerance
        self.settle_updates = settle_updates
        self._latch = GripperLatch(1, torch.device("cpu"))
        self._connected = False
        self._sampled_tick = -1
        self._resolved: dict[str, Fingers] = {}
        self._hands: dict[Fingers, Hand] = {}
        self._worked_out: dict[str, tuple[tuple, Tensor]] = {}

    # --- commands ----------------------------------------------------------------------------------------------------

    def reset(self, env_ids: EnvIds | None = None) -> None:
        """Forget the commands of these environments and drive their fingers open. None means all, empty means none."""
        ids = resolve_env_ids(env_ids, self.num_envs)
        if not self._connect() or ids.numel() == 0:
            return
        ids = ids.to(self.robot.device)
        opened = self._positions(self.open_width, "open_width")
        self._latch.clear(ids, self.robot.has_accepted_commands[ids])
        if self.enabled:
            self._drive(ids, opened)

    # --- state -------------------------------------------------------------------------------------------------------

    def update(self, dt: float) -> None:
        """Take one sample of the fingers. Calls at one physics time count once; dt [s] is not needed here."""
        if not self._connect():
            return
        fingers = self._fingers
        if self._sampled_tick != self.robot.physics_tick:
            self._sampled_tick = self.robot.physics_tick
            state = self.robot.state
            now_settled = settled(
                fingers.of(state.joint_positions),
                fingers.of(state.joint_velocities),
                self._positions(self.open_width, "open_width"),
                self.position_tolerance,
                self.velocity_tolerance,
            )
            self._latch.observe(now_settled, self.settle_updates)
        self._updated = True

    @property
    def aperture(self) -> Tensor:
        """Distance between the two pad points [m], shape (num_envs,)."""
        first, second = (self._point(pad.link, pad.position) for pad in self._hand.gripper.pad_points)
        return (first - second).norm(dim=1)

    def held(self, prop: Prop) -> Tensor:
        """Where both sides of the hand press on the prop, from opposing directions; bool, shape (num_envs,).

        A side presses when the normal forces of its links on the prop sum to 0.1 N; the sides oppose when their mean
        normals are more than 120 degrees apart. It says how the hand presses now: a light pinch of a corner is held,
        and may swing or slip out once it is lifted.
        """
        pressure, force = self.robot.contact_forces(prop.name)
        first, second = self._hand.sides
        pressed = (pressure[:, first].sum(dim=1) >= _HOLDING_FORCE) & (pressure[:, second].sum(dim=1) >= _HOLDING_FORCE)
        normals = [torch.nn.functional.normalize(force[:, side].sum(dim=1), dim=1) for side in (first, second)]
        return pressed & ((normals[0] * normals[1]).sum(dim=1) < _OPPOSING)

    @property
    def progress(self) -> Tensor:
        """For a gate's kernels: int32 (num_envs,), live, `progress_when_closed` or more where `state` is CLOSED."""
        return self._latch.progress

    # --- a gate refusing what was commanded: see handles.CommandLatch -------------------------------------------------

    def accept(self, envs: Tensor | None) -> None:
        self._latch.accept(envs)

    def restore(self, envs: Tensor) -> None:
        self._latch.restore(envs)

    # --- private -----------------------------------------------------------------------------------------------------

    @property
    def _attached_robot(self) -> Robot | None:
        return self.robot if self.robot.is_attached else None

    def _states(self) -> Tensor:
        self._connect()
        return self._latch.states()

    def _apply(self, intent: Tensor) -> None:
        if not self.enabled or not self._connect():
            return
        intent = intent.to(self.robot.device)
        opened = self._positions(self.open_width, "open_width")
        closed = self._positions(self.closed_width, "closed_width")
        places = torch.stack([opened, opened, closed, torch.full_like(opened, torch.nan)])  # for -1, 0, +1, NOT_FINITE
        self._latch.command(intent * (intent != NOT_FINITE))
        commanded = intent.nonzero().flatten()
        self._drive(commanded, places[intent[commanded].long() + 1])

    def _drive(self, env_ids: Tensor, positions: Tensor) -> None:
        """positions: of all fingers, shape (fingers,) or (M, fingers); only the driven ones are commanded."""
        if env_ids.numel():
            fingers = self._fingers
            self.robot.set_joint_position_target(positions[..., : fingers.num_driven], fingers.driven, env_ids)

    def _connect(self) -> bool:
        """Whether the robot is attached; the first time it is, size the memory and join the robot's latches."""
        if not self._connected and self.robot.is_attached:
            self._latch = GripperLatch(self.robot.num_envs, self.robot.device)
            self.robot.add_latch(self)
            self._connected = True
        return self._connected

    @property
    def _fingers(self) -> Fingers:
        if self.finger_joints not in self._resolved:
            fingers = find_fingers(self.robot, self.finger_joints)
            for what, width in (("open_width", self.open_width), ("closed_width", self.closed_width)):
                positions = finger_positions(self.robot, fingers, width, what)
                check_within_limits(self.robot, fingers, positions, self.position_tolerance, what)
            self._resolved = {self.finger_joints: fingers}
        return self._resolved[self.finger_joints]

    def _positions(self, width: Width, what: str) -> Tensor:
        """What a width means for each finger, shape (fingers,); worked out again only when something was assigned."""
        fingers = self._fingers
        key = (fingers, tuple(sorted(width.items())) if isinstance(width, Mapping) else width)
        if self._worked_out.get(what, ((), torch.empty(0)))[0] != key:
            positions = finger_positions(self.robot, fingers, width, what).to(self.robot.device)
            self._worked_out[what] = (key, positions)
        return self._worked_out[what][1]

    @property
    def _hand(self) -> Hand:
        fingers = self._fingers
        if fingers not in self._hands:
            self._hands = {fingers: find_hand(self.robot, fingers)}
        return self._hands[fingers]

    def _point(self, link: str, position: Sequence[float]) -> Tensor:
        """A point of a link [m] in the environment's frame, shape (num_envs, 3)."""
        poses = self.robot.state.link_poses[:, self.robot.link_names.index(link)]
        offset = torch.tensor(position, device=poses.device, dtype=poses.dtype).expand(len(poses), 3)
        return poses[:, :3] + rotate(poses[:, 3:], offset)


def _check_numbers(position_tolerance: float, velocity_tolerance: float, settle_updates: int) -> None:
    for name, value in (("position_tolerance", position_tolerance), ("velocity_tolerance", velocity_tolerance)):
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a finite number >= 0, got {value}")
    if not isinstance(settle_updates, Integral) or isinstance(settle_updates, bool) or settle_updates < 1:
        raise ValueError(f"settle_updates must be a whole number of at least 1, got {settle_updates!r}")


def _check_widths(open_width: Width, closed_width: Width, position_tolerance: float) -> None:
    for name, width in (("open_width", open_width), ("closed_width", closed_width)):
        values = width.values() if isinstance(width, Mapping) else [width]
        if not values or not all(math.isfinite(value) for value in values):
            raise ValueError(f"{name} must be finite, got {width}")
    joints = set(open_width) if isinstance(open_width, Mapping) else set()
    joints |= set(closed_width) if isinstance(closed_width, Mapping) else set()
    for joint in joints or {""}:
        opened = open_width.get(joint, math.nan) if isinstance(open_width, Mapping) else open_width
        closed = closed_width.get(joint, math.nan) if isinstance(closed_width, Mapping) else closed_width
        if abs(opened - closed) <= position_tolerance:
            raise ValueError(
                f"open_width {opened} and closed_width {closed} are within position_tolerance {position_tolerance}"
                f"{f' for {joint!r}' if joint else ''}: a closed gripper could not be told from an open one"
            )
