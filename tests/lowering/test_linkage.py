"""The 2F-85's fingers: five-bar linkages whose declared relations are held to what MuJoCo solves."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from scipy.spatial import ConvexHull

from simulo.description import RobotDescription, load_description, reference_fk
from simulo.description.files import parse_collision_file
from simulo.description.load import geometry_path, read_text
from simulo.description.sources import resolve_files
from simulo.errors import LoweringError
from simulo.lowering import link_meshes
from simulo.lowering.linkage import MAX_STRAY, hold_joints, linkage_stray
from simulo.lowering.mjcf import read_mjcf
from tests.lowering.vendor import vendor_model


@pytest.fixture(scope="module")
def hand() -> RobotDescription:
    return load_description("robotiq_2f85")


def test_the_pads_are_where_mujoco_settles_them(hand: RobotDescription) -> None:
    """The file as it is, driven by its own actuator without gravity; both corners of each pad's face, at 9 controls."""
    model = vendor_model(hand)
    model.opt.gravity[:] = 0.0
    data = mujoco.MjData(model)
    worst = travel = 0.0
    for control in np.linspace(0, 255, 9):
        data.ctrl[0] = control
        mujoco.mj_step(model, data, 1000)
        opening = float(data.joint("right_driver_joint").qpos[0])
        poses = reference_fk(hand, [opening])
        for link in ("right_pad", "left_pad"):
            for corner in ([0.011, -0.0066, 0.0], [-0.011, -0.0066, 0.0375]):
                there = data.body(link).xmat.reshape(3, 3) @ corner + data.body(link).xpos
                worst = max(worst, float(np.linalg.norm((poses[link] @ [*corner, 1.0])[:3] - there)))
        travel = max(travel, opening)
    assert travel > 0.77
    assert worst < 0.0005


@pytest.mark.parametrize("name", ["robotiq_2f85", "ur5e_2f85"])
def test_what_was_measured_is_written_down(name: str) -> None:
    path = geometry_path(name)
    stray = parse_collision_file(read_text(path), path, name).linkage_stray
    assert stray is not None
    assert 0.0 < stray["hand"] < MAX_STRAY


def test_a_relation_that_is_a_millimetre_off_is_refused_with_link_and_opening(hand: RobotDescription) -> None:
    files = resolve_files(hand.source)
    model, meshes = read_mjcf(files, hand.root_link, hand.joint_names), link_meshes(hand)
    wrong = replace(
        hand,
        mimic_joints=tuple(
            replace(mimic, multiplier=-0.9) if mimic.name == "left_follower_joint" else mimic
            for mimic in hand.mimic_joints
        ),
    )
    assert linkage_stray(files, model, hand, meshes)["hand"] < MAX_STRAY
    with pytest.raises(LoweringError, match=r"right_driver_joint = 0\.7.*'left_.*' .* mm from where.*multiplier"):
        linkage_stray(files, model, wrong, meshes)


def test_only_what_a_loop_holds_is_held(hand: RobotDescription) -> None:
    model = read_mjcf(resolve_files(hand.source), hand.root_link, hand.joint_names)
    held = hold_joints(model, {"right_coupler_joint": 0.1}, "robot.yaml")
    assert "right_coupler_joint" not in [joint.name for joint in held.joints]
    (edge,) = [edge for edge in held.attachments if edge.child == "right_coupler"]
    assert edge.parent == "right_driver"
    assert edge.origin.matrix[2, 1] == pytest.approx(np.sin(0.1))  # turned about x
    loose = replace(model, linkage=frozenset())
    with pytest.raises(LoweringError, match="'right_coupler_joint'.*nothing holds it; list it under joints"):
        hold_joints(loose, {"right_coupler_joint": 0.0}, "robot.yaml")


def test_links_pinned_together_are_in_the_loop(hand: RobotDescription) -> None:
    model = read_mjcf(resolve_files(hand.source), hand.root_link, hand.joint_names)
    joints = ("driver", "coupler", "spring_link", "follower")
    assert model.linkage == {f"{side}_{joint}_joint" for side in ("left", "right") for joint in joints}
    assert set(model.mimics) == {"left_driver_joint"}  # the file couples the drivers alone


def test_the_swept_hull_holds_every_finger_at_any_opening(hand: RobotDescription) -> None:
    """Chains of followers in the leader's frame at 150 openings, most of them between the samples it was made from."""
    meshes = link_meshes(hand)
    planes = ConvexHull(hand.swept["hand"].hull.vertices).equations
    (gripper,) = hand.grippers
    poses = reference_fk(hand, np.linspace(0.0, 0.8, 150)[:, None])
    for link in gripper.grasp_contact_links:
        corners = np.asarray(meshes[link].vertices)
        corners = corners[ConvexHull(corners).vertices]
        relative = np.linalg.inv(poses["right_driver"]) @ poses[link]
        points = (np.einsum("sij,vj->svi", relative[:, :3, :3], corners) + relative[:, None, :3, 3]).reshape(-1, 3)
        assert (points @ planes[:, :3].T + planes[:, 3]).max() < 1e-9, link
