"""How a joint's commands become the controls of the actuator that a model file gives it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import mujoco
import numpy as np
from numpy.typing import NDArray

from simulo.errors import BackendError
from simulo.mjspec import actuators_on, actuators_through_tendons, tendon_joints


class Drive(Enum):
    """What kind of actuator the model file gives a joint."""

    POSITION_SERVO = "a position servo"
    VELOCITY_SERVO = "a velocity servo"
    MOTOR = "a motor"
    OTHER = "an actuator of another kind"


@dataclass(frozen=True)
class Column:
    """An actuated joint. joint: its id. followers: joint id to (multiplier, offset) of its mimic relation on it."""

    name: str
    joint: int
    followers: dict[int, tuple[float, float]]


@dataclass(frozen=True)
class Drives:
    """The actuators of the actuated joints; arrays in column order.

    actuators: ids. kinds: what each takes. control = scale * command + offset, the command a position [rad or m], a
    velocity [rad/s or m/s] or an effort [N m or N] as the kind asks. lead: what a position servo's control must be
    ahead [per rad/s or m/s] for its damping to act on the velocity error instead of the velocity.
    """

    actuators: NDArray[np.int64]
    kinds: tuple[Drive, ...]
    scale: NDArray[np.float64]
    offset: NDArray[np.float64]
    lead: NDArray[np.float64]


def drives_of(model: mujoco.MjModel, columns: list[Column]) -> Drives:
    """Find each column's actuator, on the joint itself or on a fixed tendon over it and its followers.

    An actuator's force is gain * control + b0 + b1 * length + b2 * rate, and its length runs as slope * q + shift
    along the coupling: a servo rests where the force is zero. Raises BackendError for a joint that has no actuator or
    several.
    """
    rows = [_drive(model, column) for column in columns]
    return Drives(
        actuators=np.array([row[0] for row in rows], dtype=np.int64),
        kinds=tuple(row[1] for row in rows),
        scale=np.array([row[2] for row in rows]),
        offset=np.array([row[3] for row in rows]),
        lead=np.array([row[4] for row in rows]),
    )


def _drive(model: mujoco.MjModel, column: Column) -> tuple[int, Drive, float, float, float]:
    direct, through = actuators_on(model, column.joint), actuators_through_tendons(model, column.joint)
    if len(direct) + len(through) != 1:
        raise BackendError(
            f"joint {column.name!r} must have exactly one actuator in its MuJoCo model, its own or that of a tendon "
            f"over it and its followers; it has {len(direct) + len(through)}"
        )
    actuator = (direct + through)[0]
    slope, shift = (1.0, 0.0) if direct else _along_tendon(model, int(model.actuator_trnid[actuator, 0]), column)
    gear = float(model.actuator_gear[actuator, 0])
    return actuator, *_law(model, actuator, gear * slope, gear * shift)


def _along_tendon(model: mujoco.MjModel, tendon: int, column: Column) -> tuple[float, float]:
    """The tendon's length as slope * q + shift of the column's position q."""
    relations = {column.joint: (1.0, 0.0), **column.followers}
    slope = shift = 0.0
    for joint, coefficient in tendon_joints(model, tendon).items():
        if joint not in relations:
            raise BackendError(
                f"the tendon that drives joint {column.name!r} also pulls on {model.joint(joint).name!r}, which does "
                f"not follow it; declare that joint as a mimic of {column.name!r}"
            )
        multiplier, offset = relations[joint]
        slope, shift = slope + coefficient * multiplier, shift + coefficient * offset
    if slope == 0.0:
        raise BackendError(f"the tendon that drives joint {column.name!r} does not change its length with it")
    return slope, shift


def _law(model: mujoco.MjModel, actuator: int, slope: float, shift: float) -> tuple[Drive, float, float, float]:
    """Kind, scale, offset and lead of an actuator whose length is slope * q + shift."""
    kind = drive_of(model, actuator)
    gain = float(model.actuator_gainprm[actuator, 0])
    b0, b1, b2 = (float(b) for b in model.actuator_biasprm[actuator, :3])
    if kind is Drive.POSITION_SERVO:
        return kind, -b1 * slope / gain, (-b0 - b1 * shift) / gain, -b2 * slope / gain
    if kind is Drive.VELOCITY_SERVO:
        return kind, -b2 * slope / gain, -b0 / gain, 0.0
    if kind is Drive.MOTOR:
        return kind, 1.0 / (gain * slope), 0.0, 0.0
    return kind, 1.0, 0.0, 0.0


# An actuator with any other dynamics (an integrator, a muscle) takes its control for something else than its target.
_FOLLOWS_ITS_CONTROL = tuple(
    map(int, (mujoco.mjtDyn.mjDYN_NONE, mujoco.mjtDyn.mjDYN_FILTER, mujoco.mjtDyn.mjDYN_FILTEREXACT))
)


def drive_of(model: mujoco.MjModel, actuator: int) -> Drive:
    """Read an actuator's kind off its gain and bias, as the engine will use them.

    A position servo pulls back by its bias alone; where that differs from its gain, its control has another unit.
    """
    gain, bias = model.actuator_gainprm[actuator, 0], model.actuator_biasprm[actuator]
    if model.actuator_gaintype[actuator] != mujoco.mjtGain.mjGAIN_FIXED or gain == 0.0:
        return Drive.OTHER
    if int(model.actuator_dyntype[actuator]) not in _FOLLOWS_ITS_CONTROL:
        return Drive.OTHER
    if model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_NONE:
        return Drive.MOTOR
    if model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE and gain > 0:
        if bias[1] < 0:
            return Drive.POSITION_SERVO
        if bias[1] == 0 and np.isclose(bias[2], -gain):
            return Drive.VELOCITY_SERVO
    return Drive.OTHER
