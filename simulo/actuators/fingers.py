"""Which joints a gripper drives, which it reads, and where open and closed are for each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulo.description import Gripper, RobotDescription, reference_fk
from simulo.description.kinematics import all_edges
from simulo.robot import Robot

Width = float | Mapping[str, float]


@dataclass(frozen=True)
class Fingers:
    """columns: every matched finger, the driven ones first. num_driven: how many of them take commands.

    index: the columns as a tensor on the robot's device.
    """

    columns: tuple[int, ...]
    num_driven: int
    index: Tensor = field(compare=False)

    @property
    def driven(self) -> tuple[int, ...]:
        return self.columns[: self.num_driven]

    def of(self, readings: Tensor) -> Tensor:
        """These fingers' columns of readings (num_envs, num_joints); shape (num_envs, fingers)."""
        return readings.T.index_select(0, self.index).T  # finger by finger in memory: quick to reduce over fingers


def find_fingers(robot: Robot, pattern: str) -> Fingers:
    """Resolve a pattern. Coupled fingers are driven through their leader alone, and all of them are read.

    Raises ValueError when nothing matches, or a follower matches without its leader.
    """
    columns = robot.find_joints(pattern)
    driven = [column for column in columns if column < robot.num_actuated]
    followers = [column for column in columns if column >= robot.num_actuated]
    for column in followers:
        leader = robot.coupling.leader[column - robot.num_actuated]
        if leader not in driven:
            raise ValueError(
                f"finger_joints={pattern!r} matches {robot.joint_names[column]!r}, which only follows "
                f"{robot.joint_names[leader]!r}; name {robot.joint_names[leader]!r}, with or without its followers"
            )
    columns = (*driven, *followers)
    return Fingers(columns, len(driven), torch.tensor(columns, device=robot.device))


def finger_positions(robot: Robot, fingers: Fingers, width: Width, what: str) -> Tensor:
    """The position [m or rad] that `width` means for each finger, shape (fingers,), followers by their relation.

    Raises ValueError for a mapping that leaves a driven finger out, names a joint that is no finger, or contradicts a
    follower's relation.
    """
    names = [robot.joint_names[column] for column in fingers.columns]
    if not isinstance(width, Mapping):
        leaders = dict.fromkeys(fingers.driven, float(width))
    else:
        unknown = sorted(set(width) - set(names))
        missing = [name for name in names[: fingers.num_driven] if name not in width]
        if unknown or missing:
            raise ValueError(f"{what} must give each driven finger its own: missing {missing}, no finger {unknown}")
        leaders = {column: float(width[robot.joint_names[column]]) for column in fingers.driven}
    positions = torch.zeros(robot.num_actuated, dtype=torch.float64)
    for column, value in leaders.items():
        positions[column] = value
    everything = robot.coupling.extend(positions.to(torch.float32))
    if isinstance(width, Mapping):
        for column, name in zip(fingers.columns, names, strict=True):
            if name in width and not math.isclose(width[name], float(everything[column]), abs_tol=1e-5):
                raise ValueError(
                    f"{what} of {name!r} is {width[name]}, its leader makes it {float(everything[column]):.6g}"
                )
    return everything[list(fingers.columns)]


def check_within_limits(robot: Robot, fingers: Fingers, positions: Tensor, tolerance: float, what: str) -> None:
    """Raise ValueError for a width that a finger cannot reach: it would be clamped, to closed where it means open."""
    limits = robot.joint_limits[list(fingers.columns)]
    for column, position, (low, high) in zip(fingers.columns, positions.tolist(), limits.tolist(), strict=True):
        if not low - tolerance - 1e-6 <= position <= high + tolerance + 1e-6:
            raise ValueError(
                f"{what} puts joint {robot.joint_names[column]!r} at {position:.6g}, outside [{low:.6g}, {high:.6g}]"
            )


@dataclass(frozen=True)
class Hand:
    """What the description says of the hand that some fingers are. sides: link indices, one list per pad point."""

    gripper: Gripper
    sides: tuple[list[int], list[int]]


def find_hand(robot: Robot, fingers: Fingers) -> Hand:
    """The description's hand that these fingers are. Raises ValueError unless there is exactly one."""
    names = {robot.joint_names[column] for column in fingers.columns}
    found = [gripper for gripper in robot.description.grippers if gripper.joint in names]
    if len(found) != 1:
        raise ValueError(
            f"fingers {sorted(names)} belong to {len(found)} grippers of the description "
            f"({[gripper.name for gripper in robot.description.grippers]}); one is needed to know their links and pads"
        )
    first, second = ([robot.link_names.index(link) for link in side] for side in sides(robot.description, found[0]))
    return Hand(found[0], (first, second))


def sides(description: RobotDescription, gripper: Gripper) -> tuple[list[str], list[str]]:
    """The links of the two sides of a hand, one list per pad point: what presses on an object from there.

    A grasping link is on the side whose pad hangs on the same branch below the hand or, for the other branches of a
    linkage, on that of the nearer pad when open. A jaw that is fixed to the hand is the hand link itself.
    """
    parents = {edge.child: edge.parent for edge in all_edges(description)}

    def branch(link: str) -> str:
        while link != gripper.hand_link and parents[link] != gripper.hand_link:
            link = parents[link]
        return link

    pads = [pad.link for pad in gripper.pad_points]
    branches, places = [branch(pad) for pad in pads], _open_places(description, gripper)
    found: tuple[list[str], list[str]] = ([], [])
    for link in (*pads, *(link for link in gripper.grasp_contact_links if link not in pads)):
        if branch(link) in branches:
            side = branches.index(branch(link))
        else:
            side = int(np.argmin([np.linalg.norm(places[branch(link)] - places[pad]) for pad in pads]))
        found[side].append(link)
    return found


def _open_places(description: RobotDescription, gripper: Gripper) -> dict[str, NDArray[np.float64]]:
    """Where the links' origins are [m], the hand open."""
    q = np.array(description.rest_pose)
    q[description.joint_names.index(gripper.joint)] = gripper.open_position
    return {link: pose[:3, 3] for link, pose in reference_fk(description, q).items()}
