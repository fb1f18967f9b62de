"""Whether the parts of a robot description fit together. Every refusal names file, element and remedy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from simulo.description.certificate import refuse_unproven_geometry
from simulo.description.kinematics import all_edges
from simulo.description.mimics import MimicRelation, flatten_mimics
from simulo.description.schema import Gripper, Joint, MimicJoint, RobotDescription
from simulo.errors import DescriptionError

LIMIT_TOLERANCE = 1e-6
"""[rad or m]: written limits are rounded (0.7854 for pi/4), so an opening may pass its limit by this much."""


def validate(description: RobotDescription, where: str) -> None:
    """Raise DescriptionError at the first part that does not fit. `where`: the folder or file to name."""
    for check in _CHECKS:
        check(description, where)


def _check_names(description: RobotDescription, where: str) -> None:
    joints = [edge.name for edge in (*description.joints, *description.mimic_joints)]
    named = {"links": description.links, "joints": joints, "grippers": [g.name for g in description.grippers]}
    for kind, names in named.items():
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            raise DescriptionError(f"{where}: {kind} name {repeated[0]!r} more than once; names are unique")


def _check_tree(description: RobotDescription, where: str) -> None:
    links = set(description.links)
    if not description.links or description.links[0] != description.root_link:
        raise DescriptionError(f"{where}: links must begin with the root link {description.root_link!r}")
    defined: dict[str, str] = {}
    for edge in all_edges(description):
        label = edge.name if isinstance(edge, Joint | MimicJoint) else f"{edge.parent} -> {edge.child} (fixed)"
        _refuse_unknown((edge.parent, edge.child), links, f"{where}: edge {label!r}", "link")
        if edge.child == description.root_link:
            raise DescriptionError(
                f"{where}: edge {label!r} moves the root link {edge.child!r}; the root has no parent"
            )
        if edge.child in defined:
            raise DescriptionError(
                f"{where}: link {edge.child!r} is defined by two edges, {defined[edge.child]!r} and {label!r}; keep one"
            )
        defined[edge.child] = label
    parents = {edge.child: edge.parent for edge in all_edges(description)}
    reached = {description.root_link}
    for link in description.links[1:]:
        if parents.get(link) not in reached:
            reason = (
                f"its parent {parents[link]!r} is not listed before it" if link in parents else "no edge leads to it"
            )
            raise DescriptionError(f"{where}: link {link!r} is unreachable from {description.root_link!r}: {reason}")
        reached.add(link)


def _check_joints(description: RobotDescription, where: str) -> None:
    for edge in (*description.joints, *description.mimic_joints):
        label = f"{where}: joint {edge.name!r}"
        if edge.type not in ("revolute", "continuous", "prismatic"):
            raise DescriptionError(f"{label} has type {edge.type!r}; a joint is revolute, continuous or prismatic")
        axis = np.asarray(edge.axis, dtype=np.float64)
        if axis.shape != (3,) or not np.isfinite(axis).all() or abs(np.linalg.norm(axis) - 1.0) > 1e-9:
            raise DescriptionError(f"{label} has axis {edge.axis}; an axis is a unit vector")
    for joint in description.joints:
        label = f"{where}: joint {joint.name!r}"
        if math.isnan(joint.lower) or math.isnan(joint.upper) or joint.lower > joint.upper:
            raise DescriptionError(f"{label} has limits [{joint.lower}, {joint.upper}]; lower must not exceed upper")
        if joint.type != "continuous" and not (math.isfinite(joint.lower) and math.isfinite(joint.upper)):
            raise DescriptionError(f"{label} is {joint.type} and needs finite limits")
        if not joint.velocity_limit > 0.0:
            raise DescriptionError(f"{label} has velocity limit {joint.velocity_limit}; it must be above 0")


def _check_mimics(description: RobotDescription, where: str) -> None:
    relations = [MimicRelation(m.name, m.mimics, m.multiplier, m.offset) for m in description.mimic_joints]
    for relation in flatten_mimics(relations, description.joint_names, where).values():
        if relation not in relations:
            raise DescriptionError(
                f"{where}: mimic joint {relation.joint!r} does not name its actuated leader {relation.leader!r}; "
                "chains are flattened when the robot is lowered"
            )


def _check_grippers(description: RobotDescription, where: str) -> None:
    joints = {joint.name: joint for joint in description.joints}
    links = set(description.links)
    for gripper in description.grippers:
        label = f"{where}: gripper {gripper.name!r}"
        _refuse_unknown([gripper.joint], joints, label, "joint")
        _refuse_unknown([gripper.hand_link, *gripper.grasp_contact_links], links, label, "link")
        _check_jaws(description, gripper, label)
        joint = joints[gripper.joint]
        for field, value in (("open_position", gripper.open_position), ("closed_position", gripper.closed_position)):
            if not joint.lower - LIMIT_TOLERANCE <= value <= joint.upper + LIMIT_TOLERANCE:
                raise DescriptionError(
                    f"{label}: {field} {value} is outside {joint.name!r}'s limits [{joint.lower}, {joint.upper}]"
                )
        if gripper.open_position == gripper.closed_position:
            raise DescriptionError(f"{label}: open_position and closed_position are both {gripper.open_position}")
        pads = [point.link for point in gripper.pad_points]
        if pads[0] == pads[1]:
            raise DescriptionError(f"{label}: both pad_points are on {pads[0]!r}; give one on each side of the grasp")
        _refuse_unknown(
            pads, {gripper.hand_link, *gripper.grasp_contact_links}, f"{label}: pad_points", "link of this hand"
        )


def _check_jaws(description: RobotDescription, gripper: Gripper, label: str) -> None:
    """A jaw is moved by the gripper's joint, a follower by a mimic of it; either may ride rigidly on such a link."""
    movers = _movers(description)
    for link in gripper.jaw_links:
        edge = movers.get(link)
        if not isinstance(edge, Joint) or edge.name != gripper.joint:
            raise DescriptionError(
                f"{label}: jaw link {link!r} is not moved by {gripper.joint!r}; list the link that joint moves"
            )
    if not any(edge.child == gripper.jaw_links[0] for edge in description.joints):
        raise DescriptionError(f"{label}: list the link that {gripper.joint!r} itself moves first under jaw_links")
    for link in gripper.follower_links:
        edge = movers.get(link)
        if not isinstance(edge, MimicJoint) or edge.mimics != gripper.joint:
            raise DescriptionError(
                f"{label}: follower link {link!r} is not moved by a mimic of {gripper.joint!r}; "
                "declare one under mimic_joints"
            )
    undeclared = [
        edge.child
        for edge in description.mimic_joints
        if edge.mimics == gripper.joint and edge.child not in gripper.follower_links
    ]
    if undeclared:
        raise DescriptionError(f"{label}: {undeclared[0]!r} follows {gripper.joint!r}; list it under follower_links")
    parents = {edge.child: edge.parent for edge in all_edges(description)}
    for finger in gripper.grasp_contact_links:
        link = finger
        while link != gripper.hand_link:
            if link not in parents:
                raise DescriptionError(
                    f"{label}: finger {finger!r} does not hang on hand_link {gripper.hand_link!r}; name the hand's link"
                )
            link = parents[link]


def _movers(description: RobotDescription) -> dict[str, Joint | MimicJoint]:
    """The joint that moves each link last, by link; what is rigid on another link moves with it."""
    edges = {edge.child: edge for edge in all_edges(description)}
    movers: dict[str, Joint | MimicJoint] = {}
    for link in description.links[1:]:
        edge = edges[link]
        if isinstance(edge, Joint | MimicJoint):
            movers[link] = edge
        elif edge.parent in movers:
            movers[link] = movers[edge.parent]
    return movers


def _check_rest_pose(description: RobotDescription, where: str) -> None:
    rest = np.asarray(description.rest_pose)
    if rest.shape != (len(description.joints),) or not np.isfinite(rest).all():
        raise DescriptionError(
            f"{where}: rest_pose must be {len(description.joints)} finite numbers, got shape {rest.shape}"
        )
    for joint, value in zip(description.joints, rest, strict=True):
        if not joint.lower - LIMIT_TOLERANCE <= value <= joint.upper + LIMIT_TOLERANCE:
            raise DescriptionError(
                f"{where}: rest_pose puts {joint.name!r} at {value}, outside [{joint.lower}, {joint.upper}]; "
                "give it a value under rest_pose"
            )


def _check_pairs(description: RobotDescription, where: str) -> None:
    links = set(description.links)
    seen: set[frozenset[str]] = set()
    for pair in description.exemptions("swept"):
        key, label = frozenset((pair.link_a, pair.link_b)), f"{where}: disabled pair ({pair.link_a}, {pair.link_b})"
        _refuse_unknown((pair.link_a, pair.link_b), links, label, "link")
        if len(key) != 2:
            raise DescriptionError(f"{label} pairs a link with itself")
        if not pair.reason.strip():
            raise DescriptionError(f"{label} has no reason; say why the pair need not be checked")
        if key in seen:
            raise DescriptionError(
                f"{label} is listed twice, perhaps by hand and by the lowering; remove it from robot.yaml"
            )
        seen.add(key)
    _refuse_unknown(description.touch_links, links, f"{where}: touch_links", "link")


def _check_geometry(description: RobotDescription, where: str) -> None:
    _refuse_unknown(description.geometry, set(description.links), f"{where}: geometry", "link")
    _refuse_unknown(description.swept, {g.name for g in description.grippers}, f"{where}: swept", "gripper")
    for gripper in description.grippers:
        if gripper.follower_links and gripper.name not in description.swept:
            raise DescriptionError(
                f"{where}: gripper {gripper.name!r} has followers but no swept geometry; "
                f"run `simulo lower {description.name}`"
            )
        for link in gripper.grasp_contact_links:
            if link not in description.geometry:
                raise DescriptionError(
                    f"{where}: finger {link!r} has no geometry; run `simulo lower {description.name}`"
                )
    for link, geometry in description.geometry.items():
        refuse_unproven_geometry(geometry, f"{where}: geometry of link {link!r}", description.name)
    for name, geometry in description.swept.items():
        refuse_unproven_geometry(geometry, f"{where}: swept geometry of gripper {name!r}", description.name)


def _refuse_unknown(names: Iterable[str], known: Iterable[str], label: str, kind: str) -> None:
    known = list(known)
    for name in names:
        if name not in known:
            raise DescriptionError(
                f"{label} names {name!r}, which is no {kind}; there are: {', '.join(sorted(known)) or 'none'}"
            )


_CHECKS: tuple[Callable[[RobotDescription, str], None], ...] = (
    _check_names,
    _check_tree,
    _check_joints,
    _check_mimics,
    _check_grippers,
    _check_rest_pose,
    _check_pairs,
    _check_geometry,
)
