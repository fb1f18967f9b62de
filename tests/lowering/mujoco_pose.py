"""MuJoCo's own answer to where the links are."""

import mujoco
import numpy as np

from simulo.description import RobotDescription


def body_of(model: mujoco.MjModel, description: RobotDescription, link: str) -> int:
    """The root link is the world body's geometry; every other link is the body of its name."""
    return 0 if link == description.root_link else model.body(link).id


def posed(model: mujoco.MjModel, description: RobotDescription, q: np.ndarray) -> mujoco.MjData:
    """Kinematics at joint values q. MuJoCo enforces an equality by forces only, so followers are set from the file's
    own polynomial: first = c0 + c1 * second."""
    data = mujoco.MjData(model)
    for name, value in zip(description.joint_names, q, strict=True):
        data.joint(name).qpos[0] = value
    for index in range(model.neq):
        first, second = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
        c0, c1 = model.eq_data[index, :2]
        leader_is_first = model.joint(first).name in description.joint_names
        if leader_is_first:
            data.qpos[model.jnt_qposadr[second]] = (data.qpos[model.jnt_qposadr[first]] - c0) / c1
        else:
            data.qpos[model.jnt_qposadr[first]] = c0 + c1 * data.qpos[model.jnt_qposadr[second]]
    mujoco.mj_kinematics(model, data)
    return data


def body_pose(data: mujoco.MjData, body: int) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = data.xmat[body].reshape(3, 3), data.xpos[body]
    return pose
