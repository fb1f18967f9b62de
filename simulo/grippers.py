"""Presets: the arguments that fit a `ParallelGripperActuator` to the hands of the robots that travel with simulo."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from simulo.description import RobotDescription, load_description
from simulo.errors import DescriptionError
from simulo.names import match_names

Unit = Literal["m", "rad"]

_TOLERANCES: dict[Unit, tuple[float, float]] = {"m": (0.002, 0.01), "rad": (0.02, 0.1)}
_ARGUMENTS = ("finger_joints", "open_width", "closed_width", "position_tolerance", "velocity_tolerance")


@dataclass(frozen=True)
class _Hand:
    """robot: its name. gripper: its name in the description. finger_joints: what opens and closes, as a pattern."""

    robot: str
    gripper: str
    finger_joints: str


_HANDS = {
    "franka_hand": _Hand("franka_panda", "hand", "finger_joint.*"),
    "openarm": _Hand("openarm", "right", "openarm_right_finger_joint.*"),
    "openarm_left": _Hand("openarm", "left", "openarm_left_finger_joint.*"),
    "robotiq_2f85": _Hand("ur5e_2f85", "hand", ".*_driver_joint"),
    "robotiq_2f85_urdf": _Hand("robotiq_2f85_urdf", "hand", "finger_joint|right_outer_knuckle_joint"),
    "so101": _Hand("so101", "hand", "gripper"),
}


@dataclass(frozen=True)
class GripperPreset:
    """One hand of one robot: `ParallelGripperActuator(robot=robot, **preset)` takes what it needs out of it.

    name: the preset's. robot: of `simulo.list_robots()`. hand: the gripper in that robot's description. joint: the one
    that is driven; followers: coupled to it, and read as well. finger_joints: the pattern that names them all. unit: of
    the widths and tolerances, "rad" for jaws that turn; velocity_tolerance is in unit per second.
    """

    name: str
    robot: str
    hand: str
    joint: str
    followers: tuple[str, ...]
    unit: Unit
    finger_joints: str
    open_width: float
    closed_width: float
    position_tolerance: float
    velocity_tolerance: float

    def keys(self) -> tuple[str, ...]:
        """Arguments of `ParallelGripperActuator`: this is what `**preset` asks for."""
        return _ARGUMENTS

    def __getitem__(self, argument: str) -> Any:
        if argument not in _ARGUMENTS:
            raise KeyError(f"{argument!r} is no argument that a preset gives; it gives {', '.join(_ARGUMENTS)}")
        return getattr(self, argument)


def preset(name: str) -> GripperPreset:
    """The preset of that name; joints and widths are the robot's own. Raises DescriptionError, listing the names."""
    if name not in _HANDS:
        guess = get_close_matches(str(name), _HANDS, n=1)
        hint = f"did you mean {guess[0]!r}? " if guess else ""
        raise DescriptionError(f"no gripper preset {name!r}: {hint}there are {', '.join(list_presets())}")
    hand = _HANDS[name]
    return _of(name, hand, load_description(hand.robot))


def list_presets() -> list[str]:
    """Names that `preset` knows, sorted."""
    return sorted(_HANDS)


def presets_of(robot: str, gripper: str) -> list[str]:
    """Names of the presets for one hand of one robot, sorted."""
    return sorted(name for name, hand in _HANDS.items() if (hand.robot, hand.gripper) == (robot, gripper))


def _of(name: str, hand: _Hand, description: RobotDescription) -> GripperPreset:
    gripper = description.gripper(hand.gripper)
    leader = description.joints[description.joint_names.index(gripper.joint)]
    unit: Unit = "m" if leader.type == "prismatic" else "rad"
    names = (*description.joint_names, *(joint.name for joint in description.mimic_joints))
    matched = match_names(hand.finger_joints, names, f"robot {hand.robot!r}", "joint")
    position_tolerance, velocity_tolerance = _TOLERANCES[unit]
    return GripperPreset(
        name=name,
        robot=hand.robot,
        hand=gripper.name,
        joint=gripper.joint,
        followers=tuple(names[column] for column in matched if names[column] != gripper.joint),
        unit=unit,
        finger_joints=hand.finger_joints,
        open_width=gripper.open_position,
        closed_width=gripper.closed_position,
        position_tolerance=position_tolerance,
        velocity_tolerance=velocity_tolerance,
    )
