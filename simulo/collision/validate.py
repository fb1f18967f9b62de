"""What a description must be before its collisions can be checked; everything else is refused here, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from simulo.description.kinematics import all_edges
from simulo.description.schema import ConvexPiece, Joint, LinkGeometry, MimicJoint, RobotDescription
from simulo.errors import CollisionModelError

_JOINT_TYPES = ("revolute", "continuous", "prismatic")
_BOX_SLOP = 1e-6  # m: descriptions are written at 1 nm; a vertex further outside its box is another box's


def refuse_broken(description: RobotDescription) -> None:
    """Raise CollisionModelError unless the description can be checked completely."""
    _refuse_tree(description)
    for edge in (*description.joints, *description.mimic_joints):
        _refuse_edge(description, edge)
    for mimic in description.mimic_joints:
        _refuse_mimic(description, mimic)
    rest = np.asarray(description.rest_pose)
    if rest.shape != (len(description.joints),) or not np.isfinite(rest).all():
        raise _broken(description, f"rest_pose has shape {rest.shape}, must be ({len(description.joints)},) and finite")
    _refuse_names(description)
    for where, geometry in (*description.geometry.items(), *description.swept.items()):
        _refuse_geometry(description, where, geometry)
    bare = {link for g in description.grippers for link in g.grasp_contact_links} - set(description.geometry)
    if bare:
        raise _broken(description, f"gripper links {_list(bare)} have no geometry; nothing would see them hit")


def _broken(description: RobotDescription, what: str) -> CollisionModelError:
    return CollisionModelError(f"robot {description.name!r}: {what}; lower or edit the description again")


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _refuse_tree(description: RobotDescription) -> None:
    links = description.links
    if not links or links[0] != description.root_link:
        raise _broken(description, f"links must start with the root link {description.root_link!r}")
    twice = [name for name, count in Counter(links).items() if count > 1]
    twice += [name for name, count in Counter(description.joint_names).items() if count > 1]
    if twice:
        raise _broken(description, f"{_list(twice)} appear more than once")
    edges = all_edges(description)
    doubled = [name for name, count in Counter(e.child for e in edges).items() if count > 1]
    if doubled:
        raise _broken(description, f"links {_list(doubled)} are the child of more than one edge")
    parent_of = {e.child: e.parent for e in edges}
    if description.root_link in parent_of:
        raise _broken(description, f"the root link {description.root_link!r} is the child of an edge")
    seen: set[str] = {description.root_link}
    for name in links[1:]:
        if name not in parent_of:
            raise _broken(description, f"link {name!r} is reached by no edge")
        if parent_of[name] not in seen:
            raise _broken(description, f"link {name!r} comes before its parent {parent_of[name]!r}, or that is no link")
        seen.add(name)
    unknown = set(parent_of) - seen
    if unknown:
        raise _broken(description, f"edges lead to {_list(unknown)}, which are no links")


def _refuse_edge(description: RobotDescription, edge: Joint | MimicJoint) -> None:
    if edge.type not in _JOINT_TYPES:
        kinds = ", ".join(_JOINT_TYPES)
        raise _broken(description, f"joint {edge.name!r} is of unknown type {edge.type!r} (known: {kinds})")
    axis = np.asarray(edge.axis, dtype=np.float64)
    if axis.shape != (3,) or not np.isfinite(axis).all() or abs(np.linalg.norm(axis) - 1.0) > 1e-6:
        raise _broken(description, f"joint {edge.name!r} needs a finite unit axis of 3 numbers, has {edge.axis!r}")


def _refuse_mimic(description: RobotDescription, mimic: MimicJoint) -> None:
    if mimic.mimics not in description.joint_names:
        raise _broken(
            description,
            f"mimic joint {mimic.name!r} follows {mimic.mimics!r}, which has no command column "
            f"(columns: {', '.join(description.joint_names)})",
        )
    if not np.isfinite(mimic.multiplier) or mimic.multiplier == 0.0:
        raise _broken(
            description, f"mimic joint {mimic.name!r} has multiplier {mimic.multiplier!r}, not a finite ratio"
        )
    if not np.isfinite(mimic.offset):
        raise _broken(description, f"mimic joint {mimic.name!r} has offset {mimic.offset!r}, must be finite")


def _refuse_names(description: RobotDescription) -> None:
    links = set(description.links)
    for pair in description.disabled_pairs:
        unknown = {pair.link_a, pair.link_b} - links
        if unknown:
            raise _broken(description, f"disabled pair ({pair.link_a}, {pair.link_b}) names {_list(unknown)}, no link")
        if not pair.reason:
            raise _broken(description, f"disabled pair ({pair.link_a}, {pair.link_b}) gives no reason")
    for gripper in description.grippers:
        if gripper.joint not in description.joint_names:
            raise _broken(description, f"gripper {gripper.name!r} names joint {gripper.joint!r}, which has no column")
        unknown = {gripper.hand_link, *gripper.grasp_contact_links} - links
        if unknown or not gripper.jaw_links:
            raise _broken(description, f"gripper {gripper.name!r} names {_list(unknown) or 'no jaw'}, no link")
    unknown = (set(description.touch_links) | set(description.geometry)) - links
    unknown |= {g.link for g in description.swept.values()} - links
    if unknown:
        raise _broken(description, f"touch links or geometry name {_list(unknown)}, which are no links")
    unknown = set(description.swept) - {g.name for g in description.grippers}
    if unknown:
        raise _broken(description, f"swept geometry is given for {_list(unknown)}, which are no grippers")


def _refuse_geometry(description: RobotDescription, where: str, geometry: LinkGeometry) -> None:
    if not geometry.pieces:
        raise _broken(description, f"geometry of {where!r} has no pieces")
    for what, piece in (("hull", geometry.hull), *((f"piece {i}", p) for i, p in enumerate(geometry.pieces))):
        _refuse_piece(description, f"{what} of {where!r}", piece)


def _refuse_piece(description: RobotDescription, where: str, piece: ConvexPiece) -> None:
    vertices, half = np.asarray(piece.vertices), np.asarray(piece.box_half)
    if not (np.isfinite(piece.radius) and piece.radius >= 0.0):
        raise _broken(description, f"{where} has a ball of radius {piece.radius!r} m, must be finite and not negative")
    count = "V >= 4" if piece.radius == 0.0 else "V 1 or 2"
    right = len(vertices) >= 4 if piece.radius == 0.0 else len(vertices) in (1, 2)
    if vertices.ndim != 2 or vertices.shape[1] != 3 or not right:
        raise _broken(description, f"{where} has vertices of shape {vertices.shape}, must be (V, 3) with {count}")
    if not np.isfinite(vertices).all():
        raise _broken(description, f"{where} has vertices that are not finite")
    if half.shape != (3,) or not np.isfinite(half).all() or not (half > 0.0).all():
        raise _broken(description, f"{where} has box half edges {piece.box_half!r}, must be 3 finite positive numbers")
    local = (vertices - np.asarray(piece.box_pose.position)) @ piece.box_pose.rotation
    outside = float((np.abs(local) - half).max()) + piece.radius
    if outside > _BOX_SLOP:
        raise _broken(description, f"{where} leaves its own box by {outside * 1e3:.3f} mm")
