"""What is likely to be a gripper in a model file: a first guess for robot.yaml, to be looked at by a person."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulo.lowering.model import ModelJoint, RobotModel, link_mesh
from simulo.lowering.placing import model_poses, parents
from simulo.pose import Pose, Vector

FINGER_WORDS = re.compile(r"grip|jaw|finger|claw|pinch|knuckle", re.IGNORECASE)

_SAME_OPENING = 1e-4
"""[m] Fingers that come no closer than this over the joint's range do not grip each other."""

_TIP_SHARE = 0.3
"""The part of a finger, from its tip, in which its pad is looked for."""

_FACING_SHARE = 0.2
"""The part of the tip's vertices, from the side of the other finger, whose middle stands for the pad."""


@dataclass(frozen=True)
class GuessedHand:
    """As the entries of `grippers` in robot.yaml; pads by link, in their links' frames [m]."""

    joint: str
    hand_link: str
    jaw_links: tuple[str, ...]
    follower_links: tuple[str, ...]
    open_position: float
    closed_position: float
    grasp_frame: Pose
    pads: tuple[tuple[str, Vector], tuple[str, Vector]]


def guess_hands(model: RobotModel) -> tuple[list[GuessedHand], list[str]]:
    """Hands, and a sentence for every joint that looks like a finger's and yet makes none."""
    hands, doubts = [], []
    for joint in model.joints:
        followers = [other for other in model.joints if joint.name in _leader(model, other)]
        named = bool(FINGER_WORDS.search(joint.name) or FINGER_WORDS.search(joint.child))
        if joint.name in model.mimics or not (followers or named):
            continue
        guess = _hand(model, joint, followers)
        if guess is None:
            continue
        if isinstance(guess, GuessedHand):
            hands.append(guess)
        else:
            doubts.append(f"{joint.name} looks like a finger's joint, but {guess}")
    return _without_twins(hands, doubts)


def _without_twins(hands: list[GuessedHand], doubts: list[str]) -> tuple[list[GuessedHand], list[str]]:
    """Jaws of one hand that each have a drive make no gripper, which closes by one joint: told, and left out."""
    jaws: dict[str, list[GuessedHand]] = {}
    for hand in hands:
        jaws.setdefault(hand.hand_link, []).append(hand)
    for link, several in jaws.items():
        if len(several) > 1:
            names = " and ".join(hand.joint for hand in several)
            doubts = [
                *doubts,
                f"{names} look like the jaws of {link}, each with a drive of its own; a gripper closes by one joint: "
                "couple them in the model file (<mimic> in URDF, a joint equality in MJCF), then draft it again",
            ]
    return [hand for hand in hands if len(jaws[hand.hand_link]) == 1], doubts


def _leader(model: RobotModel, joint: ModelJoint) -> tuple[str, ...]:
    relation = model.mimics.get(joint.name)
    return () if relation is None else (relation.leader,)


def _hand(model: RobotModel, joint: ModelJoint, followers: list[ModelJoint]) -> GuessedHand | str | None:
    """The hand that a joint closes, or why it closes none; None for a joint that carries others."""
    fingers = (joint.child, *(follower.child for follower in followers))
    above = parents(model)
    beyond = {link for link in model.links if any(finger in _chain(link, above) for finger in fingers)}
    if any(other.name not in model.mimics and other.parent in beyond for other in model.joints):
        return None
    if not (math.isfinite(joint.lower) and math.isfinite(joint.upper) and joint.lower < joint.upper):
        return "it has no range to open and close over"
    bare = [finger for finger in fingers if not model.shapes.get(finger)]
    if bare:
        return f"link {bare[0]} has no geometry"
    hand = next(link for link in _chain(joint.parent, above) if all(link in _chain(f, above) for f in fingers))
    others = _opposite(model, hand, fingers)
    if not others:
        return f"nothing on {hand} is opposite it"
    jaw = _furthest(model, joint, hand, joint.child, fingers)
    tips = [_furthest(model, joint, hand, other, fingers) for other in others]
    return _measured(model, joint, hand, fingers, (jaw, max(tips, key=lambda tip: _closing(model, joint, jaw, tip))))


def _chain(link: str, above: dict[str, str]) -> Iterator[str]:
    """A link and all that carry it, up to the root."""
    while True:
        yield link
        if link not in above:
            return
        link = above[link]


def _opposite(model: RobotModel, hand: str, fingers: tuple[str, ...]) -> list[str]:
    """The fingers on other branches of the hand, or the hand itself, as in a hand of one jaw."""
    above = parents(model)

    def branch(finger: str) -> str:
        return next(link for link in _chain(finger, above) if above.get(link) == hand)

    if len(fingers) == 1:
        return [hand] if model.shapes.get(hand) else []
    return [finger for finger in fingers[1:] if branch(finger) != branch(fingers[0])]


def _closing(model: RobotModel, joint: ModelJoint, jaw: str, other: str) -> float:
    """[m] How much nearer the middles of two fingers come over the joint's range."""
    gaps = []
    for value in (joint.lower, joint.upper):
        poses = model_poses(model, {joint.name: value})
        middles = [_points(model, link, poses).mean(axis=0) for link in (jaw, other)]
        gaps.append(float(np.linalg.norm(middles[1] - middles[0])))
    return abs(gaps[1] - gaps[0])


def _measured(
    model: RobotModel, joint: ModelJoint, hand: str, fingers: tuple[str, ...], tips: tuple[str, str]
) -> GuessedHand | str:
    """Pads and openings from the fingers' own vertices, in the hand's frame. tips: the two fingers that meet."""
    middle = _in_hand(model, joint, 0.5 * (joint.lower + joint.upper), hand)
    clouds = [_points(model, tip, middle) for tip in tips]
    across = clouds[1].mean(axis=0) - clouds[0].mean(axis=0)
    width = float(np.linalg.norm(across))
    if width < _SAME_OPENING or tips[0] == tips[1]:
        return "its fingers lie on one another"
    across = across / width
    reach = 0.5 * (clouds[0].mean(axis=0) + clouds[1].mean(axis=0))
    reach = reach - (reach @ across) * across
    if np.linalg.norm(reach) < _SAME_OPENING:
        reach = np.cross(across, np.eye(3)[int(np.argmin(np.abs(across)))])
    approach = reach / np.linalg.norm(reach)
    pads = [_pad(cloud, approach, sign * across) for cloud, sign in zip(clouds, (1.0, -1.0), strict=True)]
    local = [_local(middle[tip], pad) for tip, pad in zip(tips, pads, strict=True)]
    gaps = []
    for value in (joint.lower, joint.upper):
        poses = _in_hand(model, joint, value, hand)
        ends = [poses[tip][:3, :3] @ point + poses[tip][:3, 3] for tip, point in zip(tips, local, strict=True)]
        gaps.append(float(np.linalg.norm(ends[1] - ends[0])))
    if abs(gaps[1] - gaps[0]) < _SAME_OPENING:
        return "its range neither opens nor closes them"
    opened, closed = (joint.upper, joint.lower) if gaps[1] > gaps[0] else (joint.lower, joint.upper)
    frame = np.eye(4)
    frame[:3, :3] = np.stack([np.cross(across, approach), across, approach], axis=1)
    frame[:3, 3] = 0.5 * (pads[0] + pads[1])
    jaws, followers = (joint.child,), fingers[1:]
    points = ((tips[0], _vector(local[0])), (tips[1], _vector(local[1])))
    return GuessedHand(joint.name, hand, jaws, followers, opened, closed, Pose.from_matrix(frame), points)


def _furthest(model: RobotModel, joint: ModelJoint, hand: str, side: str, fingers: tuple[str, ...]) -> str:
    """Of the fingers on one side of the hand, the one that reaches furthest from it: it carries the tip."""
    if side == hand:
        return hand
    above = parents(model)
    branch = next(link for link in _chain(side, above) if above.get(link) == hand)
    poses = _in_hand(model, joint, 0.5 * (joint.lower + joint.upper), hand)
    same = [finger for finger in fingers if branch in _chain(finger, above)]
    return max(same, key=lambda finger: float(np.linalg.norm(_points(model, finger, poses), axis=1).max()))


def _in_hand(model: RobotModel, joint: ModelJoint, value: float, hand: str) -> dict[str, NDArray[np.float64]]:
    poses = model_poses(model, {joint.name: value})
    inverse = np.linalg.inv(poses[hand])
    return {link: inverse @ pose for link, pose in poses.items()}


def _points(model: RobotModel, link: str, poses: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    vertices = np.asarray(link_mesh(model.shapes[link]).vertices)
    return vertices @ poses[link][:3, :3].T + poses[link][:3, 3]


def _pad(cloud: NDArray[np.float64], approach: NDArray[np.float64], facing: NDArray[np.float64]) -> NDArray[np.float64]:
    """The middle of the tip's vertices on the side of the other finger."""
    along = cloud @ approach
    tip = cloud[along >= along.max() - _TIP_SHARE * np.ptp(along)]
    depth = tip @ facing
    return tip[depth >= depth.max() - _FACING_SHARE * np.ptp(depth)].mean(axis=0)


def _local(pose: NDArray[np.float64], point: NDArray[np.float64]) -> NDArray[np.float64]:
    return pose[:3, :3].T @ (point - pose[:3, 3])


def _vector(point: NDArray[np.float64]) -> Vector:
    x, y, z = (round(float(value), 5) + 0.0 for value in point)
    return x, y, z
