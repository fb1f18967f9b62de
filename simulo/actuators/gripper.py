"""What all grippers share: how they are commanded, and how their states are told."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from numpy.typing import NDArray
from torch import Tensor

from simulo.actuators.commands import Command, CommandRule, decode_each, decode_one
from simulo.actuators.states import GripperState
from simulo.robot import Robot


class Gripper(ABC):
    """One command and one state per environment.

    A command below open_threshold opens, above close_threshold closes, and any other is idle. path: a label for
    reports. enabled: False drops commands. Until its robot is attached a gripper counts one environment, drops
    commands, and reads OPEN. Attributes are read anew on each use, but only checked when it is constructed.
    """

    def __init__(self, open_threshold: float, close_threshold: float, path: str | None, enabled: bool):
        if not (math.isfinite(open_threshold) and math.isfinite(close_threshold) and open_threshold < close_threshold):
            raise ValueError(
                f"open_threshold must be below close_threshold, got {open_threshold} and {close_threshold}"
            )
        self.open_threshold = open_threshold
        self.close_threshold = close_threshold
        self.path = path
        self.enabled = enabled
        self._updated = False

    # --- what each kind of gripper says of itself --------------------------------------------------------------------

    @property
    @abstractmethod
    def _attached_robot(self) -> Robot | None:
        """The robot it works on, once a simulator has built it."""

    @abstractmethod
    def _apply(self, intent: Tensor) -> None:
        """Take decoded commands in, int8 (num_envs,), on the CPU or where they came from."""

    @abstractmethod
    def _states(self) -> Tensor:
        """`GripperState` values, int8, shape (num_envs,), as they are known."""

    @abstractmethod
    def update(self, dt: float) -> None:
        """Take one sample, dt [s] after the last one. Calls at one physics time count once."""

    @property
    def num_envs(self) -> int:
        """1 until the robot is attached."""
        robot = self._attached_robot
        return 1 if robot is None else robot.num_envs

    # --- commands ----------------------------------------------------------------------------------------------------

    def set_command(self, command: Command | Tensor) -> None:
        """One command for every environment: a GripperCommand, a number, or a tensor of one value.

        Raises ValueError for more values than one or one that is not finite, TypeError for a bool or a GripperState.
        In an environment that does not validate actions, NaN becomes targets that are not finite instead.
        """
        intent = decode_one(command, self.num_envs, self._rule)
        self._apply(torch.full((self.num_envs,), intent, dtype=torch.int8))

    def set_commands(self, commands: Sequence[Command] | Tensor | NDArray) -> None:
        """One command per environment: a list of GripperCommand and numbers, or a tensor of shape (num_envs,).

        Raises ValueError for another count or shape and for values that are not finite, naming environments, TypeError
        for a bool or a GripperState; nothing is changed then.
        """
        note = " (the robot is not attached yet, which counts as one)" if self._attached_robot is None else ""
        self._apply(decode_each(commands, self.num_envs, note, self._rule))

    @property
    def _rule(self) -> CommandRule:
        robot = self._attached_robot
        refuses = robot is None or robot.refuses_bad_commands
        return CommandRule(self.open_threshold, self.close_threshold, refuses)

    # --- state -------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> Tensor:
        """`GripperState` values, int8, shape (num_envs,), on the robot's device; OPEN before the first update."""
        states = self._states()
        return states if self._updated else torch.full_like(states, GripperState.OPEN)

    def get_state(self) -> list[GripperState]:
        """One state per environment; a single OPEN before the first update, when nothing has been read."""
        if not self._updated:
            return [GripperState.OPEN]
        return [GripperState(value) for value in self.state.tolist()]

    def is_open(self, instance: int = 0) -> bool:
        """Whether one environment is not under a close command, be the gripper still on its way or not."""
        return self._state_of(instance) is GripperState.OPEN

    def is_closed(self, instance: int = 0) -> bool:
        """Whether one environment is CLOSED: what that says, the class does."""
        return self._state_of(instance) is GripperState.CLOSED

    def _state_of(self, instance: int) -> GripperState:
        if not 0 <= instance < self.num_envs:
            raise IndexError(f"environment {instance} is outside [0, {self.num_envs})")
        return GripperState(int(self.state[instance]))
