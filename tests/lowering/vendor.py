"""The fleet's models as other libraries read them, and those libraries' own answer to where the links are."""

import mujoco
import numpy as np
import pinocchio
import pytest

from simulo.description import RobotDescription
from simulo.description.sources import resolve_files
from simulo.errors import ModelSourceError


def vendor_model(description: RobotDescription) -> mujoco.MjModel:
    """The MJCF files as MuJoCo reads them, attached as MuJoCo attaches them; no body is moved onto its hinge."""
    try:
        files = resolve_files(description.source)
    except ModelSourceError as error:  # no package ships it, MENAGERIE_ROOT is not set and there is no network
        pytest.skip(str(error))
    spec = mujoco.MjSpec.from_file(str(files.path))
    for part in files.attached:
        child = mujoco.MjSpec.from_file(str(part.path))
        child.option = spec.option
        spec.attach(child, site=spec.site(part.site), prefix=part.prefix)
    return spec.compile()


def mujoco_link_poses(model: mujoco.MjModel, description: RobotDescription, q: np.ndarray) -> dict[str, np.ndarray]:
    """Link frames in the root link's, by MuJoCo's kinematics. A link's origin is its hinge, wherever its body's is.

    Followers that the file couples take the file's polynomial, those of a linkage the declared relation.
    """
    data = posed(model, description, q)
    poses = {}
    for link in description.links:
        body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, link)
        if body < 0:
            assert link == description.root_link
            body = 0
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = data.xmat[body].reshape(3, 3), data.xpos[body]
        if model.body_jntnum[body] == 1 and model.jnt_type[model.body_jntadr[body]] == mujoco.mjtJoint.mjJNT_HINGE:
            pose[:3, 3] = data.xanchor[model.body_jntadr[body]]
        poses[link] = pose
    return poses


def posed(model: mujoco.MjModel, description: RobotDescription, q: np.ndarray) -> mujoco.MjData:
    data = mujoco.MjData(model)
    if description.floating_base:
        data.qpos[:7] = [0, 0, 0, 1, 0, 0, 0]
    for name, value in zip(description.joint_names, q, strict=True):
        data.joint(name).qpos[0] = value
    for mimic in description.mimic_joints:
        data.joint(mimic.name).qpos[0] = mimic.multiplier * data.joint(mimic.mimics).qpos[0] + mimic.offset
    for name, value in description.held_joints.items():
        data.joint(name).qpos[0] = value
    for index in np.flatnonzero(model.eq_type == mujoco.mjtEq.mjEQ_JOINT):
        first, second = (model.joint(int(side[index])).name for side in (model.eq_obj1id, model.eq_obj2id))
        c0, c1 = model.eq_data[index, :2]
        if first in description.joint_names:
            data.joint(second).qpos[0] = (data.joint(first).qpos[0] - c0) / c1
        else:
            data.joint(first).qpos[0] = c0 + c1 * data.joint(second).qpos[0]
    mujoco.mj_kinematics(model, data)
    return data


def pinocchio_link_poses(description: RobotDescription, q: np.ndarray) -> dict[str, np.ndarray]:
    """Link frames of a URDF in its root's, by Pinocchio; followers take the relation of robot.yaml."""
    model = pinocchio.buildModelFromUrdf(str(resolve_files(description.source).path))
    data = model.createData()
    values = dict(zip(description.joint_names, q, strict=True))
    values |= {m.name: m.multiplier * values[m.mimics] + m.offset for m in description.mimic_joints}
    state = pinocchio.neutral(model)
    for name, value in values.items():
        state[model.joints[model.getJointId(name)].idx_q] = value
    pinocchio.framesForwardKinematics(model, data, state)
    return {link: data.oMf[model.getFrameId(link, pinocchio.BODY)].homogeneous for link in description.links}
