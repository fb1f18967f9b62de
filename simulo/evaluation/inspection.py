"""What a robot is made of, as figures: links, joints, followers, grippers and where it all came from."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np

from simulo.description import Gripper, Joint, MimicJoint, RobotDescription, reference_fk
from simulo.description.kinematics import all_edges
from simulo.grippers import presets_of


def inspect_robot(description: RobotDescription) -> dict[str, Any]:
    """The JSON of `simulo inspect`. Joint values are in `unit`, "rad" or "m"; null is no limit."""
    return {
        "name": description.name,
        "source": asdict(description.source),
        "digest": description.digest,
        "root_link": description.root_link,
        "floating_base": description.floating_base,
        "links": _links(description),
        "joints": [_joint(description, joint) for joint in description.joints],
        "mimic_joints": [_mimic(description, joint) for joint in description.mimic_joints],
        "held_joints": dict(description.held_joints),
        "grippers": [_gripper(description, gripper) for gripper in description.grippers],
        "pairs_exempt": len(description.disabled_pairs),
    }


def open_and_closed_aperture(description: RobotDescription, gripper: Gripper) -> tuple[float, float]:
    """Distance of the two pad points [m] with the gripper's joint at its open and at its closed position."""
    q = np.tile(np.array(description.rest_pose), (2, 1))
    q[:, description.joint_names.index(gripper.joint)] = gripper.open_position, gripper.closed_position
    poses = reference_fk(description, q)
    first, second = (poses[pad.link] @ [*pad.position, 1.0] for pad in gripper.pad_points)
    opened, closed = np.linalg.norm(first - second, axis=1)
    return float(opened), float(closed)


def _links(description: RobotDescription) -> list[dict[str, Any]]:
    edges = {edge.child: edge for edge in all_edges(description)}
    rows = []
    for link in description.links:
        edge, geometry = edges.get(link), description.geometry.get(link)
        rows.append(
            {
                "name": link,
                "parent": edge.parent if edge else None,
                "joint": edge.name if isinstance(edge, Joint | MimicJoint) else None,
                "pieces": len(geometry.pieces) if geometry else 0,
                "vertices": sum(len(piece.vertices) for piece in geometry.pieces) if geometry else 0,
                "shapes": dict(Counter(piece.kind for piece in geometry.pieces)) if geometry else {},
            }
        )
    return rows


def unit_of(joint: Joint | MimicJoint) -> str:
    return "m" if joint.type == "prismatic" else "rad"


def _joint(description: RobotDescription, joint: Joint) -> dict[str, Any]:
    return {
        "name": joint.name,
        "type": joint.type,
        "role": joint.role,
        "parent": joint.parent,
        "child": joint.child,
        "unit": unit_of(joint),
        "lower": _finite(joint.lower),
        "upper": _finite(joint.upper),
        "velocity_limit": _finite(joint.velocity_limit),
        "rest": float(description.rest_pose[description.joint_names.index(joint.name)]),
    }


def _mimic(description: RobotDescription, joint: MimicJoint) -> dict[str, Any]:
    leader = description.joints[description.joint_names.index(joint.mimics)]
    ends = sorted(joint.multiplier * end + joint.offset for end in (leader.lower, leader.upper))
    return {
        "name": joint.name,
        "type": joint.type,
        "parent": joint.parent,
        "child": joint.child,
        "unit": unit_of(joint),
        "mimics": joint.mimics,
        "multiplier": joint.multiplier,
        "offset": joint.offset,
        "lower": _finite(ends[0]),
        "upper": _finite(ends[1]),
    }


def _gripper(description: RobotDescription, gripper: Gripper) -> dict[str, Any]:
    opened, closed = open_and_closed_aperture(description, gripper)
    return {
        "name": gripper.name,
        "joint": gripper.joint,
        "unit": unit_of(description.joints[description.joint_names.index(gripper.joint)]),
        "open_position": gripper.open_position,
        "closed_position": gripper.closed_position,
        "open_aperture_mm": 1000.0 * opened,
        "closed_aperture_mm": 1000.0 * closed,
        "hand_link": gripper.hand_link,
        "jaw_links": list(gripper.jaw_links),
        "follower_links": list(gripper.follower_links),
        "pad_points": [{"link": pad.link, "position_m": list(pad.position)} for pad in gripper.pad_points],
        "presets": presets_of(description.name, gripper.name),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
