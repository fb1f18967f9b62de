"""Float64 forward kinematics in NumPy: the readable truth that the batched kernel is measured against."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulo.description.schema import FixedAttachment, Joint, MimicJoint, RobotDescription

Edge = Joint | MimicJoint | FixedAttachment


def edges_from_root(description: RobotDescription) -> Iterator[Edge]:
    """Every edge once, a parent's before its children's, in the order of `description.links`."""
    by_child: dict[str, Edge] = {edge.child: edge for edge in all_edges(description)}
    for link in description.links:
        if link != description.root_link:
            yield by_child[link]


def all_edges(description: RobotDescription) -> tuple[Edge, ...]:
    return (*description.joints, *description.mimic_joints, *description.fixed_attachments)


def reference_fk(description: RobotDescription, q: ArrayLike) -> dict[str, NDArray[np.float64]]:
    """Pose of every link in the robot base frame (the root link's).

    q [rad or m], shape (..., num_joints), in `description.joints` order; followers take their mimic relation.
    Returns link name -> homogeneous transform, shape (..., 4, 4).
    """
    values = np.asarray(q, dtype=np.float64)
    if values.shape[-1:] != (len(description.joints),):
        raise ValueError(
            f"q must have shape (..., {len(description.joints)}) for robot {description.name!r}, got {values.shape}"
        )
    column = {joint.name: index for index, joint in enumerate(description.joints)}
    poses = {description.root_link: np.broadcast_to(np.eye(4), (*values.shape[:-1], 4, 4))}
    for edge in edges_from_root(description):
        pose = poses[edge.parent] @ edge.origin.matrix
        if isinstance(edge, Joint):
            pose = pose @ joint_motion(edge.type, edge.axis, values[..., column[edge.name]])
        elif isinstance(edge, MimicJoint):
            follower = edge.multiplier * values[..., column[edge.mimics]] + edge.offset
            pose = pose @ joint_motion(edge.type, edge.axis, follower)
        poses[edge.child] = pose
    return poses


def joint_motion(joint_type: str, axis: ArrayLike, value: ArrayLike) -> NDArray[np.float64]:
    """Transform of the child link away from its zero pose: value [rad or m], shape (...); result (..., 4, 4)."""
    amount = np.asarray(value, dtype=np.float64)
    direction = np.asarray(axis, dtype=np.float64)
    out = np.zeros((*amount.shape, 4, 4))
    out[..., range(4), range(4)] = 1.0
    if joint_type == "prismatic":
        out[..., :3, 3] = amount[..., None] * direction
        return out
    x, y, z = direction
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sine, cosine = np.sin(amount)[..., None, None], np.cos(amount)[..., None, None]
    out[..., :3, :3] = np.eye(3) + sine * cross + (1.0 - cosine) * (cross @ cross)  # Rodrigues
    return out
