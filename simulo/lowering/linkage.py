"""Linkages: joints that no actuator and no coupling of the file moves, but a loop that a connection closes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import mujoco
import numpy as np
import trimesh
from numpy.typing import NDArray

from simulo.description import Gripper, RobotDescription, reference_fk
from simulo.description.kinematics import joint_motion
from simulo.description.sources import ModelFiles
from simulo.errors import LoweringError
from simulo.lowering.model import ModelAttachment, RobotModel
from simulo.mjspec import actuators_on, actuators_through_tendons, read_spec
from simulo.pose import Pose

MAX_STRAY = 1e-3
"""[m] How far a link of a linkage may be from where the declared relations put it."""

STOPS = 21
"""Openings at which a linkage is compared, evenly over its actuator's control range."""

SETTLING = 2.0
"""[s] Simulated time that a linkage is given at each."""

_RESOLUTION = 1e-5


def hold_joints(model: RobotModel, held: Mapping[str, float], where: str) -> RobotModel:
    """The model with the held joints as rigid edges at their values [rad or m].

    Raises LoweringError for one that is not part of a linkage: it could move.
    """
    for name in held:
        if model.joint(name).name not in model.linkage:
            raise LoweringError(
                f"{where}: held_joints names {name!r}, which is in no loop that a connection of {model.path} closes: "
                "nothing holds it; list it under joints"
            )
    fixed = [
        ModelAttachment(
            joint.parent,
            joint.child,
            Pose.from_matrix(joint.origin.matrix @ joint_motion(joint.type, joint.axis, held[joint.name])),
        )
        for joint in model.joints
        if joint.name in held
    ]
    return replace(
        model,
        joints=tuple(joint for joint in model.joints if joint.name not in held),
        attachments=(*model.attachments, *fixed),
    )


def linkage_stray(
    files: ModelFiles, model: RobotModel, description: RobotDescription, meshes: Mapping[str, trimesh.Trimesh]
) -> dict[str, float]:
    """Per gripper with a linkage: how far [m] any of its fingers' vertices is from where the description puts it.

    The file's own actuator drives the fingers through their stroke, without gravity, and MuJoCo settles the linkage.
    Rounded up to 0.01 mm. Raises LoweringError above MAX_STRAY, naming the link and the opening.
    """
    passive = {joint.name for joint in description.mimic_joints} | set(description.held_joints)
    if not passive & model.linkage:
        return {}
    spec = read_spec(files)
    spec.option.gravity = np.zeros(3)
    engine = spec.compile()
    strays = {}
    for gripper in description.grippers:
        worst, link, opening = _worst_stray(engine, description, gripper, meshes)
        if worst > MAX_STRAY:
            raise LoweringError(
                f"{files.path}: gripper {gripper.name!r} at {gripper.joint} = {opening:.3f} has link {link!r} "
                f"{worst * 1e3:.2f} mm from where the declared mimic and held joints put it (at most "
                f"{MAX_STRAY * 1e3:g} mm); correct multiplier and offset of the joints between it and "
                f"{gripper.hand_link!r}"
            )
        strays[gripper.name] = round(math.ceil(worst / _RESOLUTION) * _RESOLUTION, 5)
    return strays


def _worst_stray(
    engine: mujoco.MjModel, description: RobotDescription, gripper: Gripper, meshes: Mapping[str, trimesh.Trimesh]
) -> tuple[float, str, float]:
    data = mujoco.MjData(engine)
    actuator = _actuator_of(engine, gripper.joint)
    column = description.joint_names.index(gripper.joint)
    worst = (0.0, "", 0.0)
    low, high = engine.actuator_ctrlrange[actuator]
    for control in np.linspace(low, high, STOPS):
        data.ctrl[actuator] = control
        mujoco.mj_step(engine, data, round(SETTLING / engine.opt.timestep))
        q = np.zeros(len(description.joints))
        q[column] = data.joint(gripper.joint).qpos[0]
        described = reference_fk(description, q)
        for link in gripper.grasp_contact_links:
            vertices = np.asarray(meshes[link].vertices) if link in meshes else np.zeros((1, 3))
            here = _relative(_body_pose(data, gripper.hand_link), _body_pose(data, link))
            there = _relative(described[gripper.hand_link], described[link])
            moved = vertices @ (here - there)[:3, :3].T + (here - there)[:3, 3]
            worst = max(worst, (float(np.linalg.norm(moved, axis=1).max()), link, float(q[column])))
    return worst


def _actuator_of(engine: mujoco.MjModel, joint: str) -> int:
    """The actuator on a joint, or on a fixed tendon over it."""
    identity = engine.joint(joint).id
    found = actuators_on(engine, identity) + actuators_through_tendons(engine, identity)
    if not found:
        raise LoweringError(f"no actuator of the model moves {joint!r}, so its linkage cannot be measured")
    return found[0]


def _body_pose(data: mujoco.MjData, body: str) -> NDArray[np.float64]:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = data.body(body).xmat.reshape(3, 3), data.body(body).xpos
    return pose


def _relative(base: NDArray[np.float64], pose: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.linalg.inv(base) @ pose
