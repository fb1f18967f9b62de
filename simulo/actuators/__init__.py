"""Grippers: one contract for commands and states, whatever the hand."""

from simulo.actuators.commands import GripperCommand
from simulo.actuators.parallel import ParallelGripperActuator
from simulo.actuators.states import GripperState
from simulo.actuators.surface import SurfaceGripperActuator

__all__ = ["GripperCommand", "GripperState", "ParallelGripperActuator", "SurfaceGripperActuator"]
