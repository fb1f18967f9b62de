"""A robot's model files as one specification."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from simulo.description.sources import AttachedFile, ModelFiles
from simulo.errors import ModelSourceError
from simulo.mjspec import read_spec

BESIDE = """
<mujoco><compiler angle="degree"/><worldbody><body name="z" pos="1 0 0"><frame euler="0 20 0">
  <body name="a" euler="0 0 30" pos=".1 .2 .3">
    <frame pos="1 0 0"><frame euler="40 0 0"><geom size=".1" pos="0 1 0"/></frame></frame>
    <geom type="capsule" size=".1" fromto="0 0 0 0 0 1"/>
    <inertial pos="0 0.1 0" mass="1" diaginertia="1 1 1"/>
    <joint name="j" pos="0 0.2 1" axis="1 0 0"/>
    <site name="s" pos="0 0 1"/>
    <body name="b" pos="1 2 3"><joint name="k" pos=".1 0 0"/><geom size=".1"/></body>
  </body>
</frame></body></worldbody>
<equality><connect body1="a" body2="b" anchor="1 1 1"/></equality></mujoco>"""


def test_a_body_moved_onto_its_hinge_is_the_same_machine(tmp_path: Path) -> None:
    """Against MuJoCo's reading of the file as it is: every shape, site and centre of mass, and the accelerations."""
    path = tmp_path / "r.xml"
    path.write_text(BESIDE)
    plain, moved = mujoco.MjModel.from_xml_string(BESIDE), read_spec(ModelFiles(path)).compile()
    assert np.abs(plain.jnt_pos).max() == 1.0
    assert not moved.jnt_pos.any()
    rng = np.random.default_rng(0)
    for _ in range(5):
        there, here = mujoco.MjData(plain), mujoco.MjData(moved)
        there.qpos[:] = here.qpos[:] = rng.uniform(-1, 1, 2)
        there.qvel[:] = here.qvel[:] = rng.uniform(-1, 1, 2)
        mujoco.mj_forward(plain, there)
        mujoco.mj_forward(moved, here)
        for field in ("geom_xpos", "geom_xmat", "site_xpos", "site_xmat", "xipos", "efc_pos"):
            assert np.allclose(getattr(here, field), getattr(there, field), rtol=0, atol=1e-14), field
        assert np.allclose(here.qacc, there.qacc, rtol=1e-9)
        assert np.allclose(here.xanchor, here.xpos[2:])  # the world and "z" carry no joint


ARM = """
<mujoco model="arm"><worldbody><body name="link"><joint name="turn"/><geom size=".1"/>
  <site name="flange" pos="0 0 0.5" quat="0 1 0 0"/></body></worldbody></mujoco>"""
HAND = """
<mujoco model="hand"><option impratio="{impratio}"/><worldbody><body name="palm" pos="0 0 0.1">
  <joint name="turn"/><geom size=".1"/></body></worldbody></mujoco>"""


def arm_and_hand(folder: Path, site: str = "flange", arm: str = ARM) -> ModelFiles:
    (folder / "arm.xml").write_text(arm)
    (folder / "hand.xml").write_text(HAND.format(impratio=10))
    return ModelFiles(folder / "arm.xml", (AttachedFile(folder / "hand.xml", site, "h_"),))


def test_a_part_hangs_on_its_site_under_its_prefix_and_brings_its_options(tmp_path: Path) -> None:
    model = read_spec(arm_and_hand(tmp_path)).compile()
    assert [model.joint(i).name for i in range(model.njnt)] == ["turn", "h_turn"]
    assert model.opt.impratio == 10.0
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    assert np.allclose(data.body("h_palm").xpos, [0, 0, 0.4])  # the site looks down


def test_a_part_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelSourceError, match="'tip'.*it has: flange"):
        read_spec(arm_and_hand(tmp_path, site="tip"))
    with pytest.raises(ModelSourceError, match="'arm' and 'hand' ask for different engine 'impratio'"):
        read_spec(arm_and_hand(tmp_path, arm=ARM.replace("<worldbody>", "<option impratio='5'/><worldbody>")))
