"""Where a model file's links are, before there is a description: float64 forward kinematics on `RobotModel`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from simulo.description.kinematics import joint_motion
from simulo.lowering.model import ModelJoint, RobotModel


def model_poses(model: RobotModel, values: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    """Pose of every link in the root link's frame, shape (4, 4), by name.

    values [rad or m], by joint: those of actuated joints, 0 where none is given; followers take their relation.
    """
    edges = {edge.child: edge for edge in (*model.joints, *model.attachments)}
    poses = {model.links[0]: np.eye(4)}
    for link in model.links[1:]:
        edge = edges[link]
        pose = poses[edge.parent] @ edge.origin.matrix
        if isinstance(edge, ModelJoint):
            pose = pose @ joint_motion(edge.type, edge.axis, joint_value(model, edge.name, values))
        poses[link] = pose
    return poses


def joint_value(model: RobotModel, joint: str, values: Mapping[str, float]) -> float:
    relation = model.mimics.get(joint)
    if relation is None:
        return values.get(joint, 0.0)
    return relation.multiplier * values.get(relation.leader, 0.0) + relation.offset


def parents(model: RobotModel) -> dict[str, str]:
    """Each link's parent link, but for the root's."""
    return {edge.child: edge.parent for edge in (*model.joints, *model.attachments)}
