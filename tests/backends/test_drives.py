"""Targets on every kind of actuator a model file may give a joint, and two robots in one scene."""

import mujoco
import pytest
import torch

import simulo
from simulo.errors import BackendError
from tests.backends.cranes import crane


class Yard(simulo.Task):
    """Cranes at their places; the test commands them itself."""

    observation_dim, action_dim = 1, 1

    def __init__(self, *robots: simulo.Robot):
        self.robots = robots

    def build(self, scene):
        for number, robot in enumerate(self.robots):
            scene.add(robot, at=f"/World/Crane{number}")

    def apply_actions(self, actions): ...

    def get_observations(self):
        return torch.zeros(self.env.num_envs, 1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    return tmp_path / "crane"


def yard(*robots: simulo.Robot, num_envs: int = 1) -> simulo.LearningEnv:
    env = simulo.LearningEnv(Yard(*robots), num_envs=num_envs)
    env.reset(seed=0)
    return env


def steps(env: simulo.LearningEnv, count: int) -> None:
    for _ in range(count):
        env.step(torch.zeros(env.num_envs, 1))


def test_each_drive_takes_its_own_targets(folder):
    robot = simulo.Robot(crane(folder))
    env = yard(robot, num_envs=2)
    robot.set_joint_position_target([0.5], joint_ids=[0])
    robot.set_joint_velocity_target([[0.5], [-0.5]], joint_ids=[1])
    steps(env, 100)
    assert torch.allclose(robot.state.joint_positions[:, 0], torch.tensor(0.5), atol=0.01)
    assert torch.allclose(robot.state.joint_velocities[:, 1], torch.tensor([0.5, -0.5]), atol=0.02)
    robot.set_joint_effort_target([[0.05], [0.0]], joint_ids=[2])
    robot.set_joint_velocity_target([0.0], joint_ids=[1])
    steps(env, 1)
    actuator = env.backend.model.actuator("Crane0/slide_drive").id
    assert env.backend.data[0].actuator_force[actuator] == pytest.approx(0.05)
    assert env.backend.data[1].actuator_force[actuator] == 0.0
    assert torch.equal(robot.commanded_positions()[:, 2], robot.state.joint_positions[:, 2])


@pytest.mark.parametrize(
    ("setter", "joint", "drive"),
    [
        ("set_joint_position_target", 1, "velocity servo"),
        ("set_joint_position_target", 2, "motor"),
        ("set_joint_velocity_target", 2, "motor"),
        ("set_joint_effort_target", 0, "position servo"),
        ("set_joint_effort_target", 1, "velocity servo"),
    ],
)
def test_a_target_that_a_drive_cannot_follow_is_refused_by_name(folder, setter, joint, drive):
    robot = simulo.Robot(crane(folder))
    yard(robot)
    with pytest.raises(BackendError, match=rf"{robot.joint_names[joint]!r} takes no .* target.*a {drive}"):
        getattr(robot, setter)([0.1], joint_ids=[joint])


def test_gears_and_control_ranges_are_part_of_the_clamp(folder):
    plain, geared = simulo.Robot(crane(folder)), simulo.Robot(crane(folder, cone="pyramidal", gear=2.0))
    for robot, reach in ((plain, 0.8), (geared, 0.4)):
        env = yard(robot)
        robot.set_joint_position_target([0.95], joint_ids=[0])
        assert float(robot.commanded_positions()[0, 0]) == pytest.approx(reach)
        steps(env, 150)
        assert float(robot.state.joint_positions[0, 0]) == pytest.approx(reach, abs=0.02)


def test_the_base_body_of_the_file_stands_at_the_base_pose(folder):
    robot = simulo.Robot(crane(folder), initial_pose=simulo.Pose((1.0, 2.0, 0.0), (0.0, 0.0, 0.0, 1.0)))
    env = yard(robot)
    assert torch.allclose(robot.state.link_poses[0, 0, :3], torch.tensor([1.0, 2.0, 0.1]))
    assert torch.allclose(robot.state.link_poses[0, 3, :3], torch.tensor([0.8, 2.0, 0.4]), atol=1e-6)
    assert env.backend.body_names == ("world", "base", "column", "boom", "claw")


def test_two_robots_share_a_scene_under_their_own_names(folder):
    first = simulo.Robot(crane(folder))
    second = simulo.Robot(crane(folder), initial_pose=simulo.Pose((2.0, 0.0, 0.0)))
    env = yard(first, second)
    first.set_joint_position_target([0.6], joint_ids=[0])
    second.set_joint_position_target([0.2], joint_ids=[0])
    steps(env, 100)
    assert float(first.state.joint_positions[0, 0]) == pytest.approx(0.6, abs=0.01)
    assert float(second.state.joint_positions[0, 0]) == pytest.approx(0.2, abs=0.01)
    assert float(second.state.link_poses[0, 1, 0]) == pytest.approx(2.0)
    assert "Crane1/claw" in env.backend.body_names
    assert env.backend.model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST


def test_robots_that_ask_for_different_engines_are_refused(folder):
    with pytest.raises(BackendError, match="'Crane0' and 'Crane1' ask for different engine 'impratio'"):
        yard(simulo.Robot(crane(folder)), simulo.Robot(crane(folder, impratio=5.0)))
    easy = yard(simulo.Robot(crane(folder, cone="pyramidal", impratio=1.0)), simulo.Robot(crane(folder)))
    assert easy.backend.model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC  # the first asked for nothing


def test_a_model_that_is_not_what_was_described_is_refused(folder):
    description = crane(folder)
    path = folder / "elliptic10.xml"
    path.write_text(path.read_text().replace('"boom"', '"jib"'))
    with pytest.raises(BackendError, match="'Crane0/boom'.*lower the robot again"):
        yard(simulo.Robot(description))
    crane(folder)
    path.write_text(path.read_text().replace('<motor name="slide_drive" joint="slide" ctrlrange="-2 2"/>', ""))
    with pytest.raises(BackendError, match="'slide' must have exactly one actuator"):
        yard(simulo.Robot(description))


def test_a_refused_velocity_stops_where_the_accepted_one_led_and_does_not_run_on(folder):
    """Held again and again, an accepted velocity would carry the joint on through what the gate refuses."""
    robot = simulo.Robot(crane(folder))
    env = yard(robot, num_envs=2)
    everyone = torch.ones(2, dtype=torch.bool)
    robot.set_joint_velocity_target([[0.5], [0.5]], joint_ids=[0])
    robot.set_joint_velocity_target([[0.5], [0.5]], joint_ids=[1])
    for _ in range(20):
        robot.accept_commands(everyone)
        led_to = robot.commanded_positions()[:, 0].clone()
        steps(env, 1)
    turned = robot.state.joint_positions[0, 1].clone()
    for _ in range(30):
        robot.set_joint_velocity_target([[0.5], [0.5]], joint_ids=[0])
        robot.set_joint_velocity_target([[0.5], [0.5]], joint_ids=[1])
        robot.restore_commands(torch.tensor([True, False]))
        steps(env, 1)
    assert float(robot.state.joint_positions[0, 0]) == pytest.approx(float(led_to[0]), abs=2e-3)
    assert abs(float(robot.state.joint_velocities[0, 1])) < 0.01
    assert float(robot.state.joint_positions[0, 1] - turned) < 0.02
    assert float(robot.state.joint_positions[1, 0]) > float(led_to[1]) + 0.2


def test_only_a_position_servos_control_range_clamps_positions(folder):
    """The range of a velocity servo is one of velocities, that of a motor one of efforts."""
    robot = simulo.Robot(crane(folder))
    path = folder / "elliptic10.xml"
    path.write_text(path.read_text().replace('kv="5"', 'kv="5" ctrlrange="-0.4 0.4"').replace('"-2 2"', '"-0.01 0.01"'))
    env = yard(robot)
    robot.set_joint_positions([0.0, 2.0, 0.05])
    robot.set_joint_velocity_target([10.0], joint_ids=[1])
    robot.set_joint_effort_target([0.0], joint_ids=[2])
    commanded = robot.commanded_positions()[0]
    assert commanded[1] == pytest.approx(2.0 + 0.4 * env.dt)
    assert commanded[2] == pytest.approx(0.05)
    steps(env, 100)
    assert float(robot.state.joint_velocities[0, 1]) == pytest.approx(0.4, abs=0.01)


def test_a_servo_that_integrates_its_control_takes_no_position_target(folder):
    """Its gains read like a position servo's, but its control is a velocity."""
    robot = simulo.Robot(crane(folder))
    path = folder / "elliptic10.xml"
    servo = '<position name="lift_drive" joint="lift" kp="500" kv="40" ctrlrange="0 0.8" gear="1.0"/>'
    assert servo in path.read_text()
    integrator = '<intvelocity name="lift_drive" joint="lift" kp="500" actrange="0 0.8"/>'
    path.write_text(path.read_text().replace(servo, integrator))
    yard(robot)
    with pytest.raises(BackendError, match="'lift' takes no position target.*an actuator of another kind"):
        robot.set_joint_position_target([0.1], joint_ids=[0])


def test_a_geared_motor_gives_its_joint_the_effort_that_was_asked_for(folder):
    """Its control is divided by gear and gain: MuJoCo multiplies by both."""
    robot = simulo.Robot(crane(folder))
    path = folder / "elliptic10.xml"
    motor = '<motor name="slide_drive" joint="slide" ctrlrange="-2 2"/>'
    geared = '<general name="slide_drive" joint="slide" gear="20" gainprm="0.5"/>'
    assert motor in path.read_text()
    path.write_text(path.read_text().replace(motor, geared))
    env = yard(robot)
    robot.set_joint_effort_target([0.05], joint_ids=[2])
    steps(env, 1)
    data = env.backend.data[0]
    assert data.joint("Crane0/slide").qfrc_actuator[0] == pytest.approx(0.05)


def test_a_servo_whose_control_has_another_unit_goes_where_it_is_told(folder):
    """force = 5 * control + 20 - 500 * length, and the length is twice the position."""
    robot = simulo.Robot(crane(folder))
    path = folder / "elliptic10.xml"
    servo = '<position name="lift_drive" joint="lift" kp="500" kv="40" ctrlrange="0 0.8" gear="1.0"/>'
    rescaled = (
        '<general name="lift_drive" joint="lift" gear="2" gainprm="5" biastype="affine" biasprm="20 -500 -40" '
        'ctrlrange="0 120"/>'
    )
    assert servo in path.read_text()
    path.write_text(path.read_text().replace(servo, rescaled))
    env = yard(robot)
    robot.set_joint_position_target([0.3], joint_ids=[0])
    steps(env, 150)
    assert float(robot.state.joint_positions[0, 0]) == pytest.approx(0.3, abs=1e-3)
    robot.set_joint_position_target([2.0], joint_ids=[0])
    assert float(robot.commanded_positions()[0, 0]) == pytest.approx((5 * 120 + 20) / 500 / 2)
