"""Grippers of the fleet in simulation: driven by the one actuator that their file has, wherever that is."""

import mujoco
import numpy as np
import pytest
import torch

import simulo
from simulo.backends.mujoco.drives import Column, drives_of
from simulo.description import RobotDescription, load_description
from simulo.errors import BackendError, ModelSourceError
from simulo.lowering import lower_robot
from tests.backends.test_drives import Yard, steps, yard
from tests.lowering.vendor import vendor_model


def in_simulation(name: str, **settings) -> tuple[simulo.LearningEnv, simulo.Robot]:
    robot = simulo.Robot(name, **settings)
    try:
        return yard(robot), robot
    except ModelSourceError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("name", "targets", "reached", "tolerance"),
    [
        ("franka_panda", (0.04, 0.01, 0.0), (0.04, 0.01, 0.0), 1e-4),
        ("ur5e_2f85", (0.8, 0.4, 0.0), (0.782, 0.402, 0.003), 2e-3),  # its pads meet before 0.8
        ("robotiq_2f85", (0.8, 0.4, 0.0), (0.782, 0.402, 0.003), 2e-3),
        ("robotiq_2f85_urdf", (0.8, 0.4, 0.0), (0.8, 0.4, 0.0), 1e-3),
        ("so101", (1.7, 0.5, 0.0), (1.7, 0.5, 0.0), 1e-3),
        ("so100", (1.9, 0.5, 0.0), (1.9, 0.5, 0.0), 1e-3),
    ],
)
def test_a_gripper_reaches_its_widths_by_the_actuator_that_it_has(name, targets, reached, tolerance) -> None:
    env, robot = in_simulation(name)
    (gripper,) = robot.description.grippers
    column = robot.joint_names.index(gripper.joint)
    if robot.description.source.format == "mjcf":
        assert env.backend.model.nu == vendor_model(robot.description).nu  # no second drive on a coupled joint
    else:
        assert env.backend.model.nu == robot.num_actuated
    for target, expected in zip(targets, reached, strict=True):
        robot.set_joint_position_target([target], joint_ids=[column])
        steps(env, 75)
        positions = robot.state.joint_positions[0]
        assert float(positions[column]) == pytest.approx(expected, abs=tolerance)
        for place, mimic in enumerate(robot.description.mimic_joints, start=robot.num_actuated):
            followed = mimic.multiplier * float(positions[column]) + mimic.offset
            assert float(positions[place]) == pytest.approx(followed, abs=0.008), mimic.name


def test_a_tendons_control_range_clamps_in_the_joints_units() -> None:
    """The Panda's actuator takes 0 to 255 for 0 to 0.04 m; what is commanded beyond is not judged as if it were."""
    env, robot = in_simulation("franka_panda")
    column = robot.joint_names.index("finger_joint1")
    robot.set_joint_position_target([0.06], joint_ids=[column])
    assert float(robot.commanded_positions()[0, column]) == pytest.approx(0.04, abs=1e-6)
    steps(env, 75)
    assert float(robot.state.joint_positions[0, column]) == pytest.approx(0.04, abs=1e-4)
    robot.set_joint_position_target([0.02], joint_ids=[column])
    steps(env, 1)
    assert env.backend.data[0].ctrl[7] == pytest.approx(127.5, abs=0.01)


def test_a_tendon_that_pulls_on_another_joint_too_is_refused() -> None:
    model = vendor_model(simulo.load_description("franka_panda"))
    leader, follower = (model.joint(name).id for name in ("finger_joint1", "finger_joint2"))
    coupled = drives_of(model, [Column("finger_joint1", leader, {follower: (1.0, 0.0)})])
    assert coupled.scale[0] * 0.04 == pytest.approx(255.0)
    with pytest.raises(BackendError, match="'finger_joint1' also pulls on 'finger_joint2'.*mimic"):
        drives_of(model, [Column("finger_joint1", leader, {})])


def test_a_held_joint_starts_every_episode_where_it_is_held() -> None:
    env, robot = in_simulation("robotiq_2f85")
    data = env.backend.data[0]
    coupler = data.joint("Crane0/right_coupler_joint")
    coupler.qpos[0] = -0.5
    robot.set_joint_positions([0.3])
    assert coupler.qpos[0] == 0.0


@pytest.mark.parametrize("name", ["h1", "g1"])
def test_a_floating_base_starts_at_the_base_pose_and_carries_the_gate(name: str) -> None:
    """Nothing bears its weight, so that it falls as any body does; the gate takes the pose that is measured."""
    pose = simulo.Pose((0.3, 0.0, 2.0), (0.9238795, 0.0, 0.0, 0.3826834))
    robot = simulo.Robot(name, initial_pose=pose)
    env = yard(robot)
    assert torch.allclose(robot.state.link_poses[0, 0], torch.tensor([*pose.position, *pose.orientation_wxyz]))
    assert env.backend.model.nu == robot.num_actuated
    gate = simulo.CollisionGate(name, world="none", on_stop="report")
    falling = simulo.LearningEnv(Yard(simulo.Robot(name, initial_pose=pose)), num_envs=1, gate=gate)
    falling.reset(seed=0)
    steps(falling, 10)
    fallen = 2.0 - float(falling.scene.robots["Crane0"].state.link_poses[0, 0, 2])
    assert 0.15 < fallen < 0.5 * 9.81 * (10 * falling.dt) ** 2 + 0.03
    falling.reset(seed=1)
    assert float(falling.scene.robots["Crane0"].state.link_poses[0, 0, 2]) == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["ur5e_2f85", "robotiq_2f85_urdf", "so100"])
def test_the_gate_finds_the_robot_that_is_simulated(name: str) -> None:
    """At start-up it compares every link with the simulator, within 1 mm; here on a base that is moved and turned."""
    pose = simulo.Pose((0.1, 0.2, 0.3), (0.9238795, 0.0, 0.0, 0.3826834))
    _, robot = in_simulation(name, initial_pose=pose)
    gate = simulo.CollisionGate(name, world="none")
    env = simulo.LearningEnv(Yard(simulo.Robot(name, initial_pose=pose)), num_envs=2, gate=gate)
    env.reset(seed=0)
    info = env.step(torch.zeros(2, 1))[-1]
    assert info["gate"].clear.all()
    assert robot.link_names == load_description(name).links


URDF = """
<robot name="r"><link name="base"/><link name="arm">{mass}<collision><geometry><box size="0.1 0.1 0.4"/></geometry>
</collision></link><link name="tip"><inertial><mass value="0.25"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0"
ixz="0" iyz="0"/></inertial><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.5"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="10" velocity="1"/></joint>
<joint name="follow" type="revolute"><parent link="arm"/><child link="tip"/><origin xyz="0 0 0.5"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="10" velocity="1"/><mimic joint="turn" multiplier="-0.5" offset="0.1"/></joint>
</robot>"""
MASS = '<inertial><mass value="1.5"/><inertia ixx="1e-2" iyy="1e-2" izz="1e-2" ixy="0" ixz="0" iyz="0"/></inertial>'
YAML = """
name: r
source: {package: none, version: "0", path: r/r.urdf, licence: none, format: urdf}
root_link: base
joints: [{name: turn, role: arm}]
mimic_joints: [{name: follow, mimics: turn, multiplier: -0.5, offset: 0.1}]
"""


def urdf_robot(folder, mass: str = MASS, fitted: str = "") -> RobotDescription:
    (folder / "r").mkdir()
    (folder / "r" / "r.urdf").write_text(URDF.format(mass=mass))
    (folder / "r" / "robot.yaml").write_text(YAML + fitted)
    return lower_robot(folder / "r").description


def test_a_urdf_is_simulated_with_its_masses_couplings_and_a_servo_per_column(tmp_path, monkeypatch) -> None:
    """The tip follows by -0.5 q + 0.1 while the arm swings; gravity compensation off, the arm's weight is felt."""
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    robot = simulo.Robot(urdf_robot(tmp_path), gravity_compensation=False)
    env = yard(robot)
    model = env.backend.model
    assert model.nu == 1
    assert model.body("Crane0/arm").mass[0] == 1.5
    assert model.body("Crane0/tip").mass[0] == 0.25
    robot.set_joint_position_target([1.0], joint_ids=[0])
    steps(env, 100)
    turn, follow = robot.state.joint_positions[0].tolist()
    assert turn == pytest.approx(1.0, abs=0.05)
    assert turn > 1.0  # it leans over and its servo is not infinitely stiff
    assert follow == pytest.approx(-0.5 * turn + 0.1, abs=0.005)
    assert model.actuator_gaintype[0] == mujoco.mjtGain.mjGAIN_FIXED


def test_a_urdf_collides_with_the_primitives_that_stand_for_its_links(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    description = urdf_robot(tmp_path, fitted="fitted_links: {arm: capsule}")
    model = yard(simulo.Robot(description)).backend.model
    shapes = {model.body(model.geom_bodyid[g]).name: g for g in range(model.ngeom)}
    arm, tip = shapes["Crane0/arm"], shapes["Crane0/tip"]
    assert model.geom_type[arm] == mujoco.mjtGeom.mjGEOM_CAPSULE and model.geom_type[tip] == mujoco.mjtGeom.mjGEOM_MESH
    (piece,) = description.geometry["arm"].pieces
    assert model.geom_size[arm, :2] == pytest.approx(
        [piece.radius, 0.5 * np.linalg.norm(piece.vertices[1] - piece.vertices[0])]
    )
    assert model.body("Crane0/arm").mass[0] == 1.5, "shapes weigh nothing"


def test_a_urdf_link_that_moves_without_a_mass_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    robot = simulo.Robot(urdf_robot(tmp_path, mass=""))
    with pytest.raises(BackendError, match="'arm' moves and has no mass.*<inertial>"):
        yard(robot)
