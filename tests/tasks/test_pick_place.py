"""The pick-and-place task: its geometry measured on the robot's meshes, its motion by where the object ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import simulo
from simulo.description import load_description, reference_fk
from simulo.evaluation import tabletop
from simulo.evaluation.clearance import extent
from simulo.evaluation.meshes import true_meshes
from simulo.evaluation.scripted import ArmPath, PolicyNoise, pointing_down
from simulo.evaluation.task_file import load_task_module
from simulo.evaluation.truth import Truth, link_poses, matrix_of
from simulo.gate import CollisionGate

module = load_task_module("tasks/pick_place.py")
ENVS = 4


@pytest.fixture(scope="module")
def env():
    environment = simulo.LearningEnv(module.PickPlaceTask(), num_envs=ENVS)
    environment.reset(seed=0)
    yield environment
    environment.close()


def episodes(env, seeds, task=None):
    return [(task or env.task).planner.draw("none", np.random.default_rng([seed, 0])) for seed in seeds]


def test_objects_are_as_small_as_the_old_finger_model_is_wrong():
    for shape in tabletop.OBJECTS.values():
        width, depth, height = extent(shape)
        assert max(width, depth) <= 0.040
        assert 0.080 <= height <= 0.120
        assert height - tabletop.BELOW_TOP > 0.040, "the closed tips stay at least 40 mm above the table"


def test_the_open_jaws_straddle_the_object_with_room():
    """At most 40 mm of finger beside the object, the jaw gap there measured on the meshes."""
    description = load_description("openarm")
    q = np.zeros(16)
    q[-1] = -0.7854
    poses = reference_fk(description, q)
    hand = np.linalg.inv(poses["openarm_right_ee_base_link"])
    inner, outer = (
        np.asarray(true_meshes(description)[link].vertices) @ (hand @ poses[link])[:3, :3].T
        + (hand @ poses[link])[:3, 3]
        for link in tabletop.FINGERS
    )
    tips = min(inner[:, 2].min(), outer[:, 2].min())
    straddle = tabletop.TOP_IN_HAND - tips
    assert 0.005 < straddle <= 0.040
    beside = [finger[finger[:, 2] < tabletop.TOP_IN_HAND] for finger in (inner, outer)]
    gap = beside[0][:, 1].min() - beside[1][:, 1].max()
    assert 0.130 < gap < 0.140
    assert (gap - 0.040) / 2 > 0.045


@pytest.mark.parametrize("neighbours", ["wide", "tight"])
def test_neighbours_stand_where_asked(env, neighbours):
    """From the open fingers on their way to the object, by the library, on the links' own triangles."""
    low, high = tabletop.GAPS[neighbours]
    truth = Truth(env.task.robot.description, tabletop.NEIGHBOURS)
    quiet = PolicyNoise(0.0, 0.0, 0.0)
    for seed in range(3):
        still = replace(env.task.planner, gap=(low, high), noise=quiet)
        episode = still.draw("none", np.random.default_rng([seed, 0]))
        near = [k for k, phase in enumerate(episode.phases) if phase in ("transit", "descend")]
        path = still.whole_arm(episode.actions[near, :7].astype(np.float64))[::6]
        for standing in episode.neighbours:
            at = matrix_of(np.array([*standing.pose.position, *standing.pose.orientation_wxyz]))
            closest = min(
                truth.distance(link, link_poses(truth.description, q)[link], standing.name, at)
                for q in path
                for link in tabletop.FINGERS
            )
            assert low - 0.001 < closest < high + 0.003, standing.name
            assert np.abs(np.array(standing.pose.position[:2]) - tabletop.BIN_CENTRE).max() > tabletop.BIN_INSIDE / 2


def test_hazards_are_exactly_the_asked_share_and_all_of_them_occur():
    task = module.PickPlaceTask(hazards=0.25)
    kinds = [task._hazard_in(seed, 0) for seed in range(40)]
    assert sum(kind != "none" for kind in kinds) == 10
    assert set(kinds) == {"none", *tabletop.HAZARDS}
    assert {module.PickPlaceTask(hazards=0.0)._hazard_in(seed, 0) for seed in range(40)} == {"none"}


def test_an_episode_is_the_same_alone_and_in_a_batch(env):
    env.reset(seed=0)
    drawn = [env.task.episodes[i] for i in range(ENVS)]
    alone = episodes(env, range(ENVS))
    for one, other in zip(drawn, alone, strict=True):
        assert one.target == other.target
        assert one.neighbours == other.neighbours
        np.testing.assert_array_equal(one.actions, other.actions)


def test_bad_settings_are_refused_by_name():
    with pytest.raises(ValueError, match=r"neighbours must be one of wide, medium, tight, got 'far'"):
        module.PickPlaceTask(neighbours="far")
    with pytest.raises(ValueError, match="hazards is a fraction"):
        module.PickPlaceTask(hazards=1.5)
    with pytest.raises(ValueError, match=r"clearance of medium neighbours is between 0 and 0.045 m, got 0.045"):
        module.PickPlaceTask(neighbours="medium", clearance=0.045)


def test_a_clearance_takes_the_place_of_the_neighbours_own_least_distance():
    assert module.PickPlaceTask(neighbours="medium").gap == (0.025, 0.045)
    assert module.PickPlaceTask(neighbours="medium", clearance=0.030).gap == (0.030, 0.045)


def test_paths_reach_their_poses_inside_the_limits():
    """The joint path's hand against the float64 reference kinematics."""
    description = load_description("openarm")
    arm = ArmPath.to_grasp(description, "right")
    positions = np.linspace([0.26, -0.10, 0.46], [0.23, -0.36, 0.64], 60)
    wanted = pointing_down(positions, np.linspace(2.2, 1.4, 60))
    q, error = arm.solve(wanted, tabletop.POSTURE)
    assert error.max() < 1e-4
    joints = np.zeros((60, 16))
    joints[:, list(arm.columns)] = q
    hand = reference_fk(description, joints)["openarm_right_ee_base_link"]
    tip = hand[:, :3, 3] + hand[:, :3, :3] @ np.array(description.gripper("right").grasp_frame.position)
    np.testing.assert_allclose(tip, positions, atol=1e-4)
    assert (q >= arm.limits[:, 0]).all()
    assert (q <= arm.limits[:, 1]).all()
    assert np.abs(np.diff(q, axis=0)).max() < 0.1, "neighbouring poses get neighbouring answers"


def test_policy_noise_has_the_spread_and_memory_it_claims():
    noise = PolicyNoise().sample(200_000, 0.02, np.random.default_rng(0))
    position, rotation = noise[:, :3], np.rad2deg(noise[:, 3:])
    assert position.std(axis=0) * 1000 == pytest.approx(np.full(3, np.hypot(3.0, 1.0)), rel=0.03)
    assert rotation.std(axis=0) == pytest.approx(np.full(3, 2.0), rel=0.03)
    lagged = (rotation[:-10] * rotation[10:]).mean() / (rotation**2).mean()
    assert lagged == pytest.approx(np.exp(-1.0), abs=0.03), "0.2 s is the correlation time"
    assert not noise[0].any()


def test_the_gate_knows_where_in_the_hand_the_object_is_however_it_moves_there():
    """A capsule that turns by 15 degrees between the fingertips after the hand has closed."""
    gate = CollisionGate("openarm", "report", world="primitives")
    task = module.PickPlaceTask("medium", clearance=0.03)
    env = simulo.LearningEnv(task, num_envs=1, gate=gate)
    env.reset(seed=26)
    policy, shown = task.scripted_policy(), []
    hand = task.robot.link_names.index("openarm_right_ee_base_link")
    corners = np.array([[x, y, z, 1.0] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners[:, :3] *= 0.5 * np.array(extent(tabletop.OBJECTS[task.episodes[0].target.name]))
    for _ in range(200):
        env.step(policy(env))
        if bool(task.holding[0]):
            ((held, _),) = gate._session.payloads.in_env(0)
            at = np.linalg.inv(matrix_of(task.robot.state.link_poses[0, hand].double().numpy()))
            seen = corners @ (at @ matrix_of(task.object_pose[0].double().numpy())).T
            shown.append((seen, corners @ matrix_of(held.pose_in_link.numpy()).T))
    env.close()
    seen, told = (np.array(each)[..., :3] for each in zip(*shown, strict=True))
    assert len(seen) > 50
    assert np.linalg.norm(seen - seen[0], axis=-1).max() > 0.010, "it did move"
    assert np.linalg.norm(seen - told, axis=-1).max() < 0.010, "the cameras' own padding hides what one step brings"
    assert np.linalg.norm(seen - told, axis=-1).max(axis=1)[20:].max() < module.SLIP + 0.0005, "once at rest"
