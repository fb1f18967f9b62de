"""The MuJoCo backend against MuJoCo itself."""

import os

import mujoco
import numpy as np
import pytest
import torch

import simulo
from simulo.backends.mujoco.worlds import Worlds
from simulo.description import load_description
from simulo.description.sources import resolve_model
from simulo.errors import BackendError
from simulo.pose import wxyz_to_matrix
from tests.sdk.grasping import GraspTask, run


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Where MuJoCo may write the log of what these tests provoke."""
    monkeypatch.chdir(tmp_path)


class Stand(simulo.Task):
    """OpenArm alone; actions are the targets of all its actuated joints."""

    observation_dim, action_dim = 36, 16

    def __init__(self, **robot_options):
        self.robot_options = robot_options

    def build(self, scene):
        self.robot = simulo.Robot("openarm", **self.robot_options)
        scene.add(self.robot, at="/World/Robot")

    def apply_actions(self, actions):
        self.robot.set_joint_position_target(actions)

    def get_observations(self):
        return torch.cat([self.robot.state.joint_positions, self.robot.state.joint_velocities], dim=1)


def within_limits(rng: np.random.Generator, robot: simulo.Robot, rows: int, share: float = 0.9) -> torch.Tensor:
    limits = robot.joint_limits[: robot.num_actuated].numpy()
    middle, half = limits.mean(axis=1), share * 0.5 * (limits[:, 1] - limits[:, 0])
    return torch.tensor(middle + half * rng.uniform(-1, 1, (rows, robot.num_actuated)), dtype=torch.float32)


def packaged_model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_path(str(resolve_model(load_description("openarm").source)))


def test_the_scene_asks_the_engine_for_what_the_robots_file_asks():
    options = simulo.LearningEnv(Stand()).backend.model.opt
    packaged = packaged_model().opt
    assert options.cone == packaged.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    assert options.impratio == packaged.impratio == 10
    assert options.integrator == packaged.integrator
    assert options.timestep == 0.002


def test_the_scene_holds_the_packaged_robot_unchanged():
    ours, packaged = simulo.LearningEnv(Stand(gravity_compensation=False)).backend.model, packaged_model()
    for name in ("nq", "nv", "nu", "ngeom", "neq", "nmesh"):
        assert getattr(ours, name) == getattr(packaged, name)
    for field in ("geom_friction", "geom_solref", "geom_condim", "geom_priority", "geom_contype", "geom_conaffinity"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(packaged, field))
    for field in ("dof_damping", "dof_armature", "dof_frictionloss", "jnt_range", "eq_solref", "eq_data"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(packaged, field))
    for field in ("actuator_gainprm", "actuator_biasprm", "actuator_ctrlrange", "actuator_forcerange"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(packaged, field))
    moving = packaged.body_weldid != 0
    for field in ("body_mass", "body_inertia"):
        ours_by_name = [
            getattr(ours.body(f"Robot/{packaged.body(b).name}"), field.removeprefix("body_"))
            for b in np.flatnonzero(moving)
        ]
        np.testing.assert_array_equal(np.squeeze(ours_by_name), getattr(packaged, field)[moving])


def test_links_are_bodies_by_their_own_names_the_torso_too():
    env = simulo.LearningEnv(Stand())
    assert set(env.task.robot.link_names) | {"world"} == set(env.backend.body_names)
    torso = env.backend.body_names.index("openarm_body_link0")
    assert env.backend.model.body_geomnum[torso] == 2


def test_link_poses_are_the_packaged_models_moved_by_the_base():
    base = simulo.Pose((0.4, -0.3, 0.2), (0.8, 0.0, 0.0, 0.6))
    env = simulo.LearningEnv(Stand(initial_pose=base), num_envs=3)
    env.reset(seed=0)
    robot = env.task.robot
    q = within_limits(np.random.default_rng(0), robot, 3)
    robot.set_joint_positions(q)
    model = packaged_model()
    data = mujoco.MjData(model)
    poses = robot.state.link_poses.numpy()
    for env_id in range(3):
        for joint, value in zip(robot.joint_names, robot.state.joint_positions[env_id].tolist(), strict=True):
            data.joint(joint).qpos = value
        mujoco.mj_kinematics(model, data)
        for index, link in enumerate(robot.link_names):
            body = data.body("world" if link == "openarm_body_link0" else link)
            np.testing.assert_allclose(poses[env_id, index, :3], base.apply(body.xpos), atol=1e-6)
            rotation = wxyz_to_matrix(poses[env_id, index, 3:].astype(float))
            np.testing.assert_allclose(rotation, base.rotation @ body.xmat.reshape(3, 3), atol=1e-6)


def test_gravity_compensation_holds_the_arms_where_they_are_told():
    arms_forward = {"openarm_right_joint1": 1.2, "openarm_left_joint1": -1.2, "openarm_right_joint4": 0.8}

    def sag(**options) -> float:
        env = simulo.LearningEnv(Stand(initial_joint_positions=arms_forward, **options))
        env.reset(seed=0)
        commanded = env.task.robot.state.link_poses[0, :, :3].clone()
        target = env.task.robot.joint_position_targets[:, :16].clone()
        for _ in range(100):
            env.step(target)
        return float((env.task.robot.state.link_poses[0, :, :3] - commanded).norm(dim=1).max())

    assert sag() < 0.001
    assert sag(gravity_compensation=False) > 0.010  # so the test can tell


def test_what_is_commanded_is_what_the_engine_makes_of_the_targets():
    env = simulo.LearningEnv(Stand(), num_envs=2)
    env.reset(seed=0)
    targets = torch.full((2, 16), 9.0)
    targets[1] = -9.0
    env.step(targets)
    model = env.backend.model
    commanded = env.task.robot.commanded_positions()
    for env_id in range(2):
        clamped = np.clip(env.backend.data[env_id].ctrl, *model.actuator_ctrlrange.T)
        by_joint = {model.joint(model.actuator_trnid[a, 0]).name: clamped[a] for a in range(model.nu)}
        for column, joint in enumerate(env.task.robot.joint_names[:16]):
            assert float(commanded[env_id, column]) == pytest.approx(by_joint[f"Robot/{joint}"], abs=1e-6)


def trajectory(num_envs: int, envs: list[int], seed: int, threads: int) -> torch.Tensor:
    """States of some environments over a grasp with random motion, shape (len(envs), steps, ...)."""
    env = simulo.LearningEnv(GraspTask(), num_envs=num_envs)
    worlds = env.backend._worlds
    worlds._threads = min(threads, num_envs)
    env.reset(seed=seed)
    rngs = [np.random.default_rng(seed + i) for i in range(num_envs)]
    states = []
    for step in range(70):
        actions = torch.tensor([[1.0 if step > 5 else 0.0, 0.1 * rng.random()] for rng in rngs])
        if step == 40:
            env.reset(env_ids=range(num_envs))
        env.step(actions)
        state = torch.cat([env.task.robot.state.joint_positions, env.task.block.state.pose], dim=1)
        states.append(state[envs])
    env.close()
    return torch.stack(states, dim=1)


def test_an_episode_is_bitwise_the_same_in_any_batch_on_any_number_of_threads():
    batch = trajectory(num_envs=3, envs=[0, 2], seed=4, threads=2)
    assert torch.equal(batch, trajectory(num_envs=3, envs=[0, 2], seed=4, threads=1))
    assert torch.equal(batch[1:], trajectory(num_envs=1, envs=[0], seed=6, threads=1))
    assert not torch.equal(batch[0], batch[1])


def test_an_episode_after_another_is_bitwise_the_same_as_in_a_fresh_environment():
    """The solver's warm start is part of what a reset must forget."""
    used, fresh = (simulo.LearningEnv(GraspTask()) for _ in range(2))
    used.reset(seed=1)
    run(used, 40, 1.0)
    for env in (used, fresh):
        env.reset(seed=2)
        run(env, 40, 1.0)
    assert torch.equal(used.task.robot.state.joint_positions, fresh.task.robot.state.joint_positions)
    assert torch.equal(used.task.block.state.pose, fresh.task.block.state.pose)


def test_watching_contacts_changes_nothing_and_sees_every_physics_step():
    watched, plain = (simulo.LearningEnv(GraspTask(), num_envs=2) for _ in range(2))
    with pytest.raises(BackendError, match="watch_contacts"):
        watched.backend.contacts()
    watched.backend.watch_contacts = True
    for env in (watched, plain):
        env.reset(seed=0)
        run(env, 30, 1.0)
    assert torch.equal(watched.task.robot.state.joint_positions, plain.task.robot.state.joint_positions)
    contacts = watched.backend.contacts()
    assert set(contacts.env.tolist()) == {0, 1}
    assert set(contacts.substep.tolist()) == set(range(10))
    names = np.array(contacts.body_names)
    fingers = {"openarm_right_ee_inner_finger", "openarm_right_ee_outer_finger"}
    on_block = (names[contacts.body_a] == "Block") | (names[contacts.body_b] == "Block")
    assert fingers <= set(names[contacts.body_a][on_block]) | set(names[contacts.body_b][on_block])
    last = (contacts.env == 1) & (contacts.substep == 9)
    data = watched.backend.data[1]
    assert last.sum() == data.ncon
    for row, contact in zip(np.flatnonzero(last), range(data.ncon), strict=True):
        force = np.zeros(6)
        mujoco.mj_contactForce(watched.backend.model, data, contact, force)
        assert contacts.normal_force[row] == pytest.approx(force[0])
        np.testing.assert_array_equal(contacts.position[row], data.contact[contact].pos)
        np.testing.assert_array_equal(contacts.normal[row], data.contact[contact].frame[:3])
        assert contacts.distance[row] == data.contact[contact].dist


def test_contact_forces_balance_the_weight_of_what_is_held():
    env = simulo.LearningEnv(GraspTask(), num_envs=1)
    env.reset(seed=0)
    run(env, 60, 1.0)
    run(env, 50, 0.0, lift=0.05)
    pressure, force = env.task.robot.contact_forces("Block")
    assert pressure.sum() > 1.0
    # Normals alone: friction carries the weight, and what is left across the pinch cancels.
    assert force.sum(dim=1).norm() < 0.3 * pressure.sum()
    with pytest.raises(BackendError, match="Block"):
        env.task.robot.contact_forces("Cube")


class Resting(simulo.Task):
    """A ball, a box and a hull on a fixed table."""

    observation_dim, action_dim = 7, 1

    def build(self, scene):
        table = simulo.Prop.box(size=(1.0, 1.0, 0.2), fixed=True, pose=simulo.Pose((0.0, 0.0, 0.1)))
        scene.add(table, at="/World/Table")
        self.box = simulo.Prop.box(size=(0.04, 0.06, 0.08), mass=0.2, pose=simulo.Pose((0.2, 0.0, 0.25)))
        scene.add(self.box, at="/World/Box")
        corners = [[x, y, z] for x in (-0.03, 0.03) for y in (-0.02, 0.02) for z in (-0.05, 0.05)]
        self.hull = simulo.Prop.hull(corners, mass=0.2, pose=simulo.Pose((-0.2, 0.0, 0.26)))
        scene.add(self.hull, at="/World/Hull")
        self.table = table

    def apply_actions(self, actions): ...

    def get_observations(self):
        return self.box.state.pose


def test_props_come_to_rest_where_their_full_edges_put_them():
    env = simulo.LearningEnv(Resting(), num_envs=2)
    env.reset()
    for _ in range(50):
        env.step(torch.zeros(2, 1))
    assert torch.allclose(env.task.box.state.pose[:, 2], torch.tensor(0.24), atol=1e-3)
    assert torch.allclose(env.task.hull.state.pose[:, 2], torch.tensor(0.25), atol=1e-3)
    assert env.task.box.state.velocity.abs().max() < 1e-3
    assert env.backend.model.body("Box").mass == pytest.approx(0.2)


def test_a_fixed_prop_has_a_place_per_environment():
    env = simulo.LearningEnv(Resting(), num_envs=2)
    env.reset()
    env.task.table.set_pose(simulo.Pose((0.0, 0.0, 0.0)), env_ids=[1])
    for _ in range(50):
        env.step(torch.zeros(2, 1))
    assert torch.allclose(env.task.box.state.pose[:, 2], torch.tensor([0.24, 0.14]), atol=1e-3)
    env.reset()
    assert torch.allclose(env.task.table.state.pose[:, 2], torch.tensor(0.1))
    pose, present = env.scene.primitives()[1].pose, env.scene.primitives()[1].present
    assert torch.equal(pose, env.task.box.state.pose)
    assert present.all()


def test_reading_what_was_written_needs_no_step_and_changes_no_motion():
    read, unread = (simulo.LearningEnv(GraspTask(), num_envs=1) for _ in range(2))
    for env in (read, unread):
        env.reset(seed=0)
        run(env, 30, 1.0)
        env.task.robot.set_joint_positions(env.task.ready)
        if env is read:
            poses = env.task.robot.state.link_poses
            env.task.robot.contact_forces("Block")
            env.backend.data[0].ncon  # noqa: B018
        run(env, 30, 1.0)
    fresh = simulo.LearningEnv(GraspTask(), num_envs=1)
    fresh.reset(seed=0)
    assert torch.equal(poses, fresh.task.robot.state.link_poses)
    assert torch.equal(read.task.robot.state.joint_positions, unread.task.robot.state.joint_positions)
    assert torch.equal(read.task.block.state.pose, unread.task.block.state.pose)


def test_a_parked_prop_is_gone_until_it_is_placed_again():
    env = simulo.LearningEnv(Resting(), num_envs=2)
    env.reset()
    env.task.box.park(env_ids=[0])
    for _ in range(100):
        env.step(torch.zeros(2, 1))
    assert env.task.box.state.present.tolist() == [False, True]
    assert env.task.box.state.pose[0, 2] < -50
    assert env.task.box.state.velocity[0].abs().max() < 1e-6  # weightless, so it is there after any time
    env.task.box.set_pose(simulo.Pose((0.2, 0.0, 0.26)), env_ids=[0])
    for _ in range(50):
        env.step(torch.zeros(2, 1))
    assert env.task.box.state.present.all()
    assert torch.allclose(env.task.box.state.pose[:, 2], torch.tensor(0.24), atol=1e-3)
    env.task.box.park()
    env.reset()
    assert env.task.box.state.present.all()


def test_angular_velocity_is_of_the_environments_frame():
    env = simulo.LearningEnv(Resting(), num_envs=1)
    env.reset()
    quarter = simulo.Pose(
        (0.0, 0.0, 5.0), (0.70710678, 0.70710678, 0.0, 0.0)
    )  # about x: the body's z is minus the world's y
    env.task.box.set_pose(quarter)
    address = env.backend.model.joint("Box").dofadr[0]
    env.backend.data[0].qvel[address + 5] = 2.0  # about the body's own z
    env.step(torch.zeros(1, 1))
    assert torch.allclose(env.task.box.state.velocity[0, 3:], torch.tensor([0.0, -2.0, 0.0]), atol=0.05)


@pytest.mark.parametrize("bad", [[0.0] * 6, [0.0] * 7, [0, 0, 0, 1, 0, 0, float("nan")], [[0, 0, 0, 1, 0, 0, 0]] * 3])
def test_poses_that_make_no_sense_are_refused(bad):
    env = simulo.LearningEnv(Resting(), num_envs=2)
    before = env.task.box.state.pose
    with pytest.raises(ValueError):
        env.task.box.set_pose(bad)
    assert torch.equal(env.task.box.state.pose, before)


def test_velocity_targets_move_position_servos_at_that_velocity():
    env = simulo.LearningEnv(Stand())
    env.reset(seed=0)
    robot = env.task.robot
    column = robot.find_joints("openarm_right_joint3")
    reached = []
    for _ in range(50):
        robot.set_joint_velocity_target([0.5], joint_ids=column)
        predicted = robot.commanded_positions()[0, column]
        robot.flush()
        env.backend.step(10)
        reached.append((float(robot.state.joint_velocities[0, column]), float(predicted)))
    settled = torch.tensor(reached[25:])
    assert torch.allclose(settled[:, 0], torch.tensor(0.5), atol=0.1)
    assert torch.allclose(torch.diff(settled[:, 1]), torch.tensor(0.5 * env.dt), atol=0.003)
    for _ in range(200):
        robot.set_joint_velocity_target([0.5], joint_ids=column)
        robot.flush()
        env.backend.step(10)
    assert float(robot.state.joint_positions[0, column]) == pytest.approx(1.5708, abs=0.02)  # and stops at the limit


def test_efforts_on_position_servos_are_refused_by_name():
    env = simulo.LearningEnv(Stand())
    env.reset(seed=0)
    with pytest.raises(
        BackendError, match=r"'openarm_right_joint3' takes no effort target.*position servo.*needs a motor"
    ):
        env.task.robot.set_joint_effort_target([1.0], joint_ids=env.task.robot.find_joints("openarm_right_joint3"))


def test_failed_physics_ends_that_environment_alone():
    env = simulo.LearningEnv(Resting(), num_envs=3)
    env.reset()
    env.backend.data[1].qvel[:] = 1e30
    *_, info = env.step(torch.zeros(3, 1))
    assert info["stop"] == {1: "physics_failed"}


def test_a_gpu_is_refused_by_name_even_where_there_is_one(monkeypatch):
    from simulo.backends import BackendOptions
    from simulo.backends.mujoco import MujocoBackend
    from simulo.scene import Scene

    with pytest.raises(BackendError, match="computes on the CPU"):
        MujocoBackend(Scene(), BackendOptions(1, 0.002, 1, torch.device("cuda:0")))


def test_building_leaves_no_log_file_and_no_warning(tmp_path, recwarn):
    simulo.LearningEnv(Stand(), physics_dt=0.001)
    assert os.listdir(tmp_path) == []
    assert [str(w.message) for w in recwarn] == []


def test_an_error_in_one_world_reaches_the_caller_after_all_threads_are_done():
    worlds = Worlds(simulo.LearningEnv(Resting()).backend.model, 4)
    visited = []

    def work(env: int) -> None:
        visited.append(env)
        if env == 3:
            raise ArithmeticError("world 3")

    with pytest.raises(ArithmeticError, match="world 3"):
        worlds.for_each(range(4), work)
    assert sorted(visited) == [0, 1, 2, 3]
