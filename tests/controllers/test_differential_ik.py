"""Differential IK against MuJoCo's kinematics and Jacobians."""

import contextlib

import mujoco
import numpy as np
import pytest
import torch

import simulo
from simulo.controllers.chain import chain_to
from simulo.controllers.differential_ik import DifferentialIKController, rotation_vector
from simulo.description import load_description
from simulo.description.sources import resolve_model
from simulo.pose import matrix_to_wxyz, wxyz_to_matrix
from tests.sdk.fakes import attached, two_finger_description

ELBOW = {"openarm_right_joint1": 0.3, "openarm_right_joint3": -0.5, "openarm_right_joint4": 1.5}
HAND = "openarm_right_ee_base_link"


class Arm(simulo.Task):
    """OpenArm; its right arm is moved by the controller under test."""

    observation_dim, action_dim = 18, 1

    def __init__(self, base=None, **options):
        self.base = simulo.Pose.identity() if base is None else base
        self.options = {"end_effector": "gripper:right", "joints": "openarm_right_joint.*"} | options

    def build(self, scene):
        self.robot = simulo.Robot("openarm", initial_pose=self.base, initial_joint_positions=ELBOW)
        scene.add(self.robot, at="/World/Robot")

    def on_start(self, env):
        self.ik = DifferentialIKController(self.robot, **self.options)

    def apply_actions(self, actions): ...

    def get_observations(self):
        return self.robot.state.joint_positions


def started(num_envs=1, **options) -> simulo.LearningEnv:
    env = simulo.LearningEnv(Arm(**options), num_envs=num_envs)
    env.reset(seed=0)
    return env


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> mujoco.MjModel:
    with contextlib.chdir(tmp_path_factory.mktemp("log")):  # the engine logs what it thinks of the packaged file
        return mujoco.MjModel.from_xml_path(str(resolve_model(load_description("openarm").source)))


def engine_pose(
    engine: mujoco.MjModel, robot: simulo.Robot, q: torch.Tensor
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Grasp frame's position and rotation at actuated joints q, and the Jacobian there, from MuJoCo."""
    data = mujoco.MjData(engine)
    for joint, value in zip(robot.joint_names, q.tolist(), strict=False):
        data.joint(joint).qpos = value
    mujoco.mj_kinematics(engine, data)
    mujoco.mj_comPos(engine, data)
    frame = robot.description.gripper("right").grasp_frame
    rotation = data.body(HAND).xmat.reshape(3, 3)
    point = data.body(HAND).xpos + rotation @ np.array(frame.position)
    linear, angular = np.zeros((3, engine.nv)), np.zeros((3, engine.nv))
    mujoco.mj_jac(engine, data, linear, angular, point, engine.body(HAND).id)
    return point, rotation @ frame.rotation, np.concatenate([linear, angular])


def test_pose_and_jacobian_are_the_engines(engine):
    description = load_description("openarm")
    robot = simulo.Robot("openarm")
    gripper = description.gripper("right")
    chain = chain_to(description, gripper.hand_link, gripper.grasp_frame, torch.device("cpu"))
    limits = robot.joint_limits[:16].numpy()
    q = np.random.default_rng(0).uniform(limits[:, 0], limits[:, 1], (100, 16))
    rotation, position, jacobian = chain.pose_and_jacobian(torch.tensor(q)[:, list(chain.columns)])
    dofs = [engine.joint(robot.joint_names[column]).dofadr[0] for column in chain.columns]
    for row in range(len(q)):
        point, turn, columns = engine_pose(engine, robot, torch.tensor(q[row]))
        np.testing.assert_allclose(position[row], point, atol=1e-9)
        np.testing.assert_allclose(rotation[row], turn, atol=1e-9)
        np.testing.assert_allclose(jacobian[row], columns[:, dofs], atol=1e-9)


def test_a_prismatic_chain_slides():
    chain = chain_to(two_finger_description(coupled=False), "right", simulo.Pose((0.0, 0.0, 0.1)), torch.device("cpu"))
    _, position, jacobian = chain.pose_and_jacobian(torch.tensor([[0.5, 0.02]], dtype=torch.float64))
    assert position.tolist() == [[0.0, -0.02, 0.6]]
    assert jacobian[0, :3].T.tolist() == [[0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]
    assert jacobian[0, 3:].abs().max() == 0


BASES = [
    simulo.Pose(),
    simulo.Pose((0.5, -0.2, 0.3), (0.6, 0.0, 0.0, 0.8)),
    simulo.Pose((0, 0, 1), (0.7, 0.1, 0.7, 0.1)),
]


@pytest.mark.parametrize("base", BASES)
def test_the_hand_goes_to_poses_of_the_base_frame_wherever_the_base_is(base):
    env = started(num_envs=2, base=base)
    task = env.task
    goals = torch.tensor([[0.30, -0.20, 0.35], [0.28, -0.18, 0.40]])
    down = (0.0, 0.70710678, 0.70710678, 0.0)
    residual = task.ik.move_to(goals, down)
    assert residual.position.max() < 1e-5
    assert residual.rotation.max() < 1e-4
    for _ in range(150):
        env.step(torch.zeros(2, 1))
    hand = task.robot.state.link_poses[:, task.robot.link_names.index(HAND)].double().numpy()
    frame = task.robot.description.gripper("right").grasp_frame
    for env_id in range(2):
        reached = simulo.Pose(tuple(hand[env_id, :3]), tuple(hand[env_id, 3:])) @ frame
        wanted = base @ simulo.Pose(tuple(goals[env_id].tolist()), down)
        np.testing.assert_allclose(reached.position, wanted.position, atol=1e-3)
        np.testing.assert_allclose(reached.rotation, wanted.rotation, atol=5e-3)
    position, rotation = task.ik.pose()
    np.testing.assert_allclose(position, goals, atol=1e-3)
    np.testing.assert_allclose(rotation[0], wxyz_to_matrix(np.array(down)), atol=5e-3)


def test_the_residual_is_the_truth_and_limits_are_kept(engine):
    env = started(num_envs=16)
    robot, ik = env.task.robot, env.task.ik
    rng = np.random.default_rng(1)
    goals = torch.tensor(rng.uniform([-0.6, -1.0, -0.2], [0.9, 0.6, 1.6], (16, 3)))  # many out of reach
    quaternions = torch.tensor(rng.normal(size=(16, 4)))
    residual = ik.move_to(goals, quaternions)
    targets = robot.joint_position_targets[:, :16]
    limits = robot.joint_limits[:16]
    assert (targets >= limits[:, 0] - 1e-6).all()
    assert (targets <= limits[:, 1] + 1e-6).all()
    assert (residual.position > 0.01).sum() > 4
    for row in range(16):
        point, turn, _ = engine_pose(engine, robot, targets[row])
        assert float(residual.position[row]) == pytest.approx(np.linalg.norm(point - goals[row].numpy()), abs=1e-6)
        wanted = wxyz_to_matrix((quaternions[row] / quaternions[row].norm()).numpy())
        angle = 2 * np.arccos(min(1.0, abs(matrix_to_wxyz(wanted @ turn.T)[0])))
        assert float(residual.rotation[row]) == pytest.approx(angle, abs=1e-5)


def test_reachable_goals_nearby_are_reached():
    env = started(num_envs=64)
    robot, ik = env.task.robot, env.task.ik
    rng = np.random.default_rng(2)
    limits = robot.joint_limits[:16].double().numpy()
    goal_q = limits.mean(axis=1) + 0.4 * (limits[:, 1] - limits[:, 0]) * rng.uniform(-1, 1, (64, 16))
    start = np.clip(goal_q + rng.normal(0.0, 0.1, goal_q.shape), limits[:, 0], limits[:, 1])
    robot.set_joint_positions(torch.tensor(goal_q))
    position, rotation = ik.pose()
    robot.set_joint_positions(torch.tensor(start))
    before = robot.joint_position_targets.clone()
    residual = ik.move_to(position, torch.tensor(np.array([matrix_to_wxyz(r.numpy()) for r in rotation])))
    assert (residual.position < 1e-4).float().mean() > 0.95
    moved = (robot.joint_position_targets != before).any(dim=0)
    assert [robot.joint_names[c] for c in moved.nonzero().flatten()] == [f"openarm_right_joint{k}" for k in range(1, 8)]


def test_an_environment_gets_the_same_targets_alone_or_in_a_batch():
    batch, lone = started(num_envs=7), started(num_envs=1)
    rng = np.random.default_rng(3)
    goals = torch.tensor([0.30, -0.20, 0.40]) + torch.tensor(rng.uniform(-0.05, 0.05, (7, 3)))
    down = torch.tensor([0.0, 0.70710678, 0.70710678, 0.0])
    batch.task.ik.move_to(goals, down)
    for row in range(7):
        lone.task.robot.reset()
        lone.task.ik.move_to(goals[row], down)
        assert torch.equal(lone.task.robot.joint_position_targets[0], batch.task.robot.joint_position_targets[row])


def test_only_the_named_environments_and_joints_move():
    env = started(num_envs=3, joints="openarm_right_joint[1-4]", command_type="position", iterations=50)
    before = env.task.robot.joint_position_targets.clone()
    residual = env.task.ik.move_to((0.25, -0.2, 0.3), env_ids=[1])
    assert residual.position.shape == (1,)
    changed = env.task.robot.joint_position_targets != before
    assert changed.any(dim=1).tolist() == [False, True, False]
    assert {env.task.robot.joint_names[c] for c in changed[1].nonzero().flatten()} <= {
        f"openarm_right_joint{k}" for k in range(1, 5)
    }
    assert residual.position.max() < 1e-4
    assert residual.rotation.max() == 0
    env.task.ik.move_to((0.25, -0.2, 0.3), env_ids=[])
    assert env.task.robot.joint_position_targets[0].equal(before[0])


def test_a_goal_that_is_not_finite_concerns_its_environment_alone():
    env, plain = started(num_envs=2), started(num_envs=2)
    goals = torch.tensor([[0.3, -0.2, 0.4], [0.3, float("nan"), 0.4]])
    down = (0.0, 0.70710678, 0.70710678, 0.0)
    env.task.ik.move_to(goals, down)
    plain.task.ik.move_to(goals[0], down)
    arm = env.task.robot.find_joints("openarm_right_joint.*")
    targets = env.task.robot.joint_position_targets
    assert targets[1, arm].isnan().all()
    assert torch.equal(targets[0], plain.task.robot.joint_position_targets[0])
    with pytest.raises(ValueError, match="environment 1 is not finite"):
        env.step(torch.zeros(2, 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"end_effector": "openarm_right_ee_outer_finger"}, "mimic joint 'openarm_right_finger_joint2'"),
        ({"end_effector": "openarm_right_base_link"}, "no joint"),
        ({"end_effector": "palm"}, "no link 'palm'"),
        ({"end_effector": "gripper:middle"}, "gripper:left"),
        ({"joints": "openarm_left_joint1"}, "do not move the end effector"),
        ({"joints": []}, "do not move the end effector"),
        ({"joints": "elbow"}, "openarm_left_joint1"),
        ({"ik_method": "pinv"}, "'dls'"),
        ({"command_type": "twist"}, "'pose' or 'position'"),
        ({"iterations": 0}, "iterations"),
    ],
)
def test_what_cannot_be_controlled_is_refused_by_name(options, message):
    robot, _ = attached("openarm", 1)
    arguments = {"end_effector": "gripper:right", "joints": "openarm_right_joint.*"} | options
    with pytest.raises(ValueError, match=message):
        DifferentialIKController(robot, **arguments)


def test_goals_of_another_shape_are_refused():
    robot, _ = attached("openarm", 4)
    ik = DifferentialIKController(robot, "gripper:right", "openarm_right_joint.*")
    for position, orientation in (
        (torch.zeros(4), (1, 0, 0, 0)),
        (torch.zeros(3, 3), (1, 0, 0, 0)),
        (torch.zeros(4, 3), torch.ones(4)[:3]),
        (torch.zeros(3), None),
    ):
        with pytest.raises(ValueError):
            ik.move_to(position, orientation)


def test_rotation_vectors_at_every_angle():
    rng = np.random.default_rng(4)
    axes = rng.normal(size=(40, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    angles = np.array([0.0, 1e-9, 1e-6, 1e-3, 1.0, 3.0, np.pi - 1e-4, np.pi - 1e-7, np.pi] * 5)[:40]
    for axis, angle in zip(axes, angles, strict=True):
        quaternion = np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])
        vector = rotation_vector(torch.tensor(wxyz_to_matrix(quaternion))[None])[0].numpy()
        if angle > np.pi - 1e-6:  # a half turn is the same both ways round
            vector = vector * np.sign(vector @ axis)
        np.testing.assert_allclose(vector, axis * angle, atol=1e-6)
