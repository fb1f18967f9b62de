"""A description's kinematics as a MuJoCo model, to hang shapes on: for a second verdict, and for its speed."""

# MuJoCo's bindings are a compiled module without stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulo.description import FixedAttachment, RobotDescription
from simulo.description.kinematics import edges_from_root


def kinematic_tree(description: RobotDescription) -> tuple[mujoco.MjSpec, dict[str, mujoco.MjsBody]]:
    """A body for each link, by its name, with a mass of no meaning, and a joint for each moving edge."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    bodies = {description.root_link: spec.worldbody.add_body(name=description.root_link)}
    for edge in edges_from_root(description):
        body = bodies[edge.parent].add_body(
            name=edge.child, pos=edge.origin.position, quat=edge.origin.orientation_wxyz
        )
        bodies[edge.child] = body
        if not isinstance(edge, FixedAttachment):
            kind = mujoco.mjtJoint.mjJNT_SLIDE if edge.type == "prismatic" else mujoco.mjtJoint.mjJNT_HINGE
            body.add_joint(name=edge.name, type=kind, axis=edge.axis)
    for body in bodies.values():
        body.mass, body.inertia, body.explicitinertial = 1.0, [1.0, 1.0, 1.0], True
    return spec, bodies


def model_positions(description: RobotDescription, model: mujoco.MjModel, q: ArrayLike) -> NDArray[np.float64]:
    """The compiled tree's qpos, shape (K, nq), at configurations q [rad or m], shape (K, num_joints)."""
    columns = dict(zip(description.joint_names, np.asarray(q, np.float64).T, strict=True))
    for mimic in description.mimic_joints:
        columns[mimic.name] = mimic.multiplier * columns[mimic.mimics] + mimic.offset
    return np.column_stack([columns[model.joint(index).name] for index in range(model.njnt)])
