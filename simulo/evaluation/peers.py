"""MuJoCo on the same hulls and pairs as the gate: is one configuration clear of itself."""

# MuJoCo's bindings have no stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import mujoco
import numpy as np

from simulo.collision import CollisionModel
from simulo.description import RobotDescription
from simulo.description.kinematics import edges_from_root
from simulo.description.schema import FixedAttachment, MimicJoint


def mujoco_model(description: RobotDescription, model: CollisionModel) -> mujoco.MjModel:
    """The description's links with their certified hulls as geoms; only the pairs that `model` checks may collide."""
    spec = mujoco.MjSpec()
    bodies = {description.root_link: spec.worldbody.add_body(name=description.root_link)}
    for edge in edges_from_root(description):
        placed = {"pos": edge.origin.position, "quat": edge.origin.orientation_wxyz}
        bodies[edge.child] = bodies[edge.parent].add_body(name=edge.child, **placed)
        if not isinstance(edge, FixedAttachment):
            kind = mujoco.mjtJoint.mjJNT_SLIDE if edge.type == "prismatic" else mujoco.mjtJoint.mjJNT_HINGE
            bodies[edge.child].add_joint(name=edge.name, type=kind, axis=edge.axis)
    for link, geometry in description.geometry.items():
        for index, piece in enumerate(geometry.pieces):
            name = f"{link}_{index}"
            spec.add_mesh(name=name, uservert=np.asarray(piece.vertices, np.float32).ravel())
            bodies[link].add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name, mass=0.1)
    checked = {frozenset(pair) for pair in model.pairs}
    names = list(bodies)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            if frozenset((first, second)) not in checked:
                spec.add_exclude(bodyname1=first, bodyname2=second)
    return spec.compile()


def mujoco_positions(description: RobotDescription, robot: mujoco.MjModel, q: np.ndarray) -> np.ndarray:
    """Joint values, shape (M, num_joints), as the model's qpos, followers included."""
    columns = dict(zip(description.joint_names, q.T, strict=True))
    for edge in edges_from_root(description):
        if isinstance(edge, MimicJoint):
            columns[edge.name] = edge.multiplier * columns[edge.mimics] + edge.offset
    return np.column_stack([columns[robot.joint(index).name] for index in range(robot.njnt)])
