"""What a task declares before physics exists: props, cameras, the scene that holds them."""

import numpy as np
import pytest
import torch

from simulo.pose import Pose
from simulo.props import Prop
from simulo.robot import Robot
from simulo.scene import Scene
from simulo.sensors import DepthCamera, look_at


@pytest.mark.parametrize(
    "make",
    [
        lambda: Prop.box(size=(0.1, 0.1, 0.0), mass=1.0),
        lambda: Prop.box(size=(0.1, 0.1), mass=1.0),
        lambda: Prop.sphere(-1.0, mass=1.0),
        lambda: Prop.cylinder(0.1, np.nan, mass=1.0),
        lambda: Prop.box(size=(1, 1, 1)),
        lambda: Prop.box(size=(1, 1, 1), mass=0.0),
        lambda: Prop.box(size=(1, 1, 1), mass=1.0, fixed=True),
        lambda: Prop.box(size=(1, 1, 1), mass=1.0, friction=(1.0, -1.0, 0.0)),
        lambda: Prop.box(size=(1, 1, 1), mass=1.0, rgba=(1.0, 0.0, 0.0)),
        lambda: Prop.box(size=(1, 1, 1), mass=1.0, rgba=(1.0, 0.0, np.nan, 1.0)),
        lambda: Prop.hull(np.eye(3), mass=1.0),
        lambda: Prop.hull([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], mass=1.0),
    ],
)
def test_props_that_make_no_sense_are_refused(make):
    with pytest.raises(ValueError):
        make()


def test_a_place_is_a_pose():
    for make in (lambda: Prop.sphere(0.1, mass=1.0, pose=(0, 0, 1)), lambda: Robot("openarm", initial_pose=(0, 0, 1))):
        with pytest.raises(TypeError, match=r"takes a simulo.Pose, got \(0, 0, 1\)"):
            make()


def test_a_prop_cannot_be_read_before_it_is_attached():
    prop = Prop.sphere(0.1, mass=1.0)
    assert not prop.is_attached
    with pytest.raises(RuntimeError, match="not attached"):
        _ = prop.state.pose
    with pytest.raises(RuntimeError, match="not attached"):
        prop.set_pose(Pose())


def test_a_camera_cannot_be_read_before_it_is_attached():
    with pytest.raises(RuntimeError, match="not attached"):
        DepthCamera(Pose()).depth()


@pytest.mark.parametrize("path", ["Cube", "/World", "/World/", "/Cube", "/World//Cube", "/World/Cube/"])
def test_paths_are_below_the_world(path):
    with pytest.raises(ValueError, match="path below /World"):
        Scene().add(Prop.sphere(0.1, mass=1.0), at=path)


def test_names_are_taken_once_and_items_are_added_once():
    scene, prop = Scene(), Prop.sphere(0.1, mass=1.0)
    scene.add(prop, at="/World/A/Ball")
    assert scene.props == {"A/Ball": prop}
    with pytest.raises(ValueError, match="taken"):
        scene.add(Prop.sphere(0.1, mass=1.0), at="/World/A/Ball")
    with pytest.raises(ValueError, match="in a scene already"):
        scene.add(prop, at="/World/Other")


def test_only_fixed_props_are_shared_and_only_items_are_added():
    scene = Scene()
    scene.add(Prop.box(size=(1, 1, 1), fixed=True), at="/World/Table", per_environment=False)
    with pytest.raises(ValueError, match="only a fixed prop"):
        scene.add(Prop.sphere(0.1, mass=1.0), at="/World/Ball", per_environment=False)
    with pytest.raises(TypeError, match="on_start"):
        scene.add(object(), at="/World/Thing")  # type: ignore[arg-type]
    scene.close()
    with pytest.raises(RuntimeError, match="built already"):
        scene.add(Prop.sphere(0.1, mass=1.0), at="/World/Late")


def test_look_at_turns_the_optical_axis_to_the_target_and_keeps_the_image_upright():
    pose = look_at((1.0, 2.0, 3.0), (1.0, 5.0, -1.0))
    forward = np.array([0.0, 3.0, -4.0]) / 5.0
    np.testing.assert_allclose(pose.rotation[:, 2], forward, atol=1e-12)
    assert pose.rotation[2, 1] < 0  # the image's down points down
    np.testing.assert_allclose(pose.rotation[:, 0], [1.0, 0.0, 0.0], atol=1e-12)
    with pytest.raises(ValueError):
        look_at((0, 0, 1), (0, 0, 0))


def test_camera_rays_meet_the_pixel_centres():
    camera = DepthCamera(Pose(), width=4, height=2, fovy=np.pi / 2)
    assert camera.focal_length == pytest.approx(1.0)
    np.testing.assert_allclose(camera.rays[0, 0], [-1.5, -0.5, 1.0])
    np.testing.assert_allclose(camera.rays[1, 3], [1.5, 0.5, 1.0])
    for options in ({"fovy": 0.0}, {"fovy": 60.0}, {"width": 0}, {"rate": 0.0}):
        with pytest.raises(ValueError):
            DepthCamera(Pose(), **options)


def test_a_robot_is_found_by_name_before_it_is_attached_and_read_only_after():
    robot = Robot("openarm")
    right = robot.find_joints("openarm_right_finger_joint.*")
    assert [robot.joint_names[c] for c in right] == ["openarm_right_finger_joint1", "openarm_right_finger_joint2"]
    assert robot.find_joints("openarm_left_joint1") == [0]
    assert len(robot.find_links("openarm_right_.*")) == 10
    for pattern in ("finger", "openarm_right", "", "("):
        with pytest.raises(ValueError):
            robot.find_joints(pattern)
    with pytest.raises(ValueError, match="openarm_left_joint1"):
        robot.find_joints("elbow")
    with pytest.raises(RuntimeError, match="not attached"):
        _ = robot.state
    with pytest.raises(RuntimeError, match="not attached"):
        robot.set_joint_position_target(torch.zeros(16))
    with pytest.raises(ValueError, match="'elbow'"):
        Robot("openarm", initial_joint_positions={"elbow": 0.0})
    with pytest.raises(ValueError, match="outside"):
        Robot("openarm", initial_joint_positions={"openarm_right_joint4": 3.0})
