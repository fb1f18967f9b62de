"""Kinematics against MuJoCo: of the package's own file, and of the description's tree."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from simulo.collision import CollisionChecker, CollisionModel
from simulo.description import RobotDescription, reference_fk
from simulo.description.sources import resolve_model
from tests.collision.oracle import build_oracle

MICROMETRE = 1e-6


def uniform(description: RobotDescription, count: int, seed: int) -> np.ndarray:
    """Configurations [rad or m] within the limits, shape (count, dof), float32."""
    lower = np.array([max(j.lower, -np.pi) for j in description.joints])
    upper = np.array([min(j.upper, np.pi) for j in description.joints])
    return np.random.default_rng(seed).uniform(lower, upper, (count, len(lower))).astype(np.float32)


def kernel_positions(model: CollisionModel, q: np.ndarray) -> np.ndarray:
    """Link positions [m] in the base frame, shape (count, L, 3)."""
    checker = CollisionChecker(model, len(q))
    checker.check(torch.from_numpy(q), world=False)
    return checker.link_poses().numpy()[:, :, :3, 3].astype(np.float64)


def test_links_are_where_mujoco_puts_them(openarm: RobotDescription, openarm_model: CollisionModel) -> None:
    """1000 poses, every link, the same float32 joint values: within a micrometre."""
    q = uniform(openarm, 1000, 7)
    found, oracle = kernel_positions(openarm_model, q), build_oracle(openarm)
    for row, positions in zip(q, found, strict=True):
        oracle.pose(row.astype(np.float64))
        truth = np.array([oracle.data.body(name).xpos for name in openarm_model.link_names])
        root = oracle.data.body(openarm.root_link).xpos
        assert np.abs(positions - (truth - root)).max() <= MICROMETRE


def test_followers_at_25_openings_in_the_vendors_model(
    openarm: RobotDescription, openarm_model: CollisionModel
) -> None:
    """Both hands' fingers against the vendor's file, whose equality constraint the follower obeys."""
    vendor = mujoco.MjModel.from_xml_path(str(resolve_model(openarm.source)))
    data = mujoco.MjData(vendor)
    q = np.zeros((25, len(openarm.joints)), np.float32)
    for hand in openarm.grippers:
        column = openarm.joint_names.index(hand.joint)
        q[:, column] = np.linspace(hand.closed_position, hand.open_position, 25)
    found = kernel_positions(openarm_model, q)
    index = {name: i for i, name in enumerate(openarm_model.link_names)}
    relation = {m.mimics: m for m in openarm.mimic_joints}
    for row, positions in zip(q, found, strict=True):
        for j, joint in enumerate(openarm.joints):
            data.joint(joint.sim_name).qpos[0] = row[j]
            if joint.name in relation:
                mimic = relation[joint.name]
                data.joint(mimic.sim_name).qpos[0] = mimic.multiplier * float(row[j]) + mimic.offset
        mujoco.mj_kinematics(vendor, data)
        for hand in openarm.grippers:
            base = index[hand.hand_link]
            for link in hand.grasp_contact_links:
                seen = np.linalg.norm(positions[index[link]] - positions[base])
                truth = np.linalg.norm(data.body(link).xpos - data.body(hand.hand_link).xpos)
                assert abs(seen - truth) <= MICROMETRE
                assert seen > 0.0


def test_float64_reference_agrees_with_mujoco(openarm: RobotDescription) -> None:
    oracle = build_oracle(openarm)
    for row in uniform(openarm, 50, 8).astype(np.float64):
        oracle.pose(row)
        poses = reference_fk(openarm, row)
        root = oracle.data.body(openarm.root_link).xpos
        for name in openarm.links:
            np.testing.assert_allclose(poses[name][:3, 3], oracle.data.body(name).xpos - root, atol=1e-9)


def test_hull_vertices_carry_a_tenth_of_the_slack(openarm: RobotDescription, openarm_model: CollisionModel) -> None:
    """The kinematic part of SLACK: float32 poses of the hulls' own frames, at their farthest points."""
    q = uniform(openarm, 200, 9)
    checker = CollisionChecker(openarm_model, len(q))
    checker.check(torch.from_numpy(q), world=False)
    frames = np.moveaxis(checker._launches.poses.hulls.numpy(), 3, 1).astype(np.float64)
    frames = frames.reshape(-1, *frames.shape[2:])
    rotation, position = frames[..., :9].reshape(*frames.shape[:2], 3, 3), frames[..., 9:]
    bodies, shapes = openarm_model.bodies, openarm_model.shapes
    worst = 0.0
    for m, row in enumerate(q.astype(np.float64)):
        poses = reference_fk(openarm, row)
        for b in np.flatnonzero(bodies.gate == 0):
            link = poses[openarm_model.link_names[bodies.link[b]]]
            true_rotation = link[:3, :3] @ bodies.rotation[b].astype(np.float64)
            true_position = link[:3, :3] @ bodies.origin[b].astype(np.float64) + link[:3, 3]
            size = shapes.size[bodies.body[b, 1], :3].astype(np.float64)
            corners = size * np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
            moved = corners @ (rotation[m, b] - true_rotation).T + position[m, b] - true_position
            worst = max(worst, float(np.linalg.norm(moved, axis=1).max()))
    assert worst <= 0.25e-6 * 3  # a box's corner is farther out than its hull
