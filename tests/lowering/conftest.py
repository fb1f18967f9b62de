"""OpenArm as MuJoCo has it, as it is committed, and its own triangles: read once for the whole room."""

import warnings

import mujoco
import pytest
import trimesh

from simulo.description import RobotDescription, load_description
from simulo.description.sources import resolve_model
from simulo.lowering import link_meshes


@pytest.fixture(scope="session")
def openarm() -> RobotDescription:
    return load_description("openarm")


@pytest.fixture(scope="session")
def meshes(openarm: RobotDescription) -> dict[str, trimesh.Trimesh]:
    return link_meshes(openarm)


@pytest.fixture(scope="session")
def mujoco_openarm(openarm: RobotDescription) -> mujoco.MjModel:
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mujoco.MjModel.from_xml_path(str(resolve_model(openarm.source)))
    finally:
        mujoco.set_mju_user_warning(None)
