"""Cameras, self-filter and map on the OpenArm in MuJoCo; truth is the props' shapes and the links' own triangles."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import simulo
from simulo.errors import PerceptionError
from simulo.gate import CollisionGate
from simulo.perception import DeploySimPerception, GridSpec
from simulo.pose import Pose
from simulo.sensors import DepthCamera, look_at
from tests.gate.arm import openarm, placed, poses, rest
from tests.gate.tasks import JointTargets
from tests.perception.box_scenes import cells_of

CELL = 0.01
AROUND_THE_HAND = GridSpec.around((-0.3, -0.5, 0.0), (0.4, 0.2, 0.5), CELL)
HAND = np.array([0.0, -0.17, 0.22])  # roughly where the right hand hangs at rest


def cameras() -> dict[str, DepthCamera]:
    return {
        "front": DepthCamera(look_at((0.75, -0.35, 0.45), HAND)),
        "side": DepthCamera(look_at((0.25, -0.85, 0.35), HAND)),
    }


def pads(q: np.ndarray) -> np.ndarray:
    """The right hand's pad points, shape (2, 3)."""
    return np.array([(poses(q)[p.link] @ [*p.position, 1.0])[:3] for p in openarm().gripper("right").pad_points])


def lowest(link: str, q: np.ndarray) -> np.ndarray:
    vertices = placed(link, q).vertices
    return vertices[vertices[:, 2].argmin()]


def ball(centre: np.ndarray, radius: float = 0.012) -> simulo.Prop:
    return simulo.Prop.sphere(radius, fixed=True, pose=Pose(tuple(centre)))


def block(centre: np.ndarray) -> simulo.Prop:
    return simulo.Prop.box(size=(0.03, 0.03, 0.08), fixed=True, pose=Pose(tuple(centre)))


def seen(
    props: dict[str, simulo.Prop],
    q: np.ndarray,
    gate: CollisionGate | None = None,
    num_envs: int = 1,
    grid: GridSpec = AROUND_THE_HAND,
):
    env = simulo.LearningEnv(JointTargets(props, cameras()), num_envs=num_envs, gate=gate)
    env.task.robot._initial[:] = torch.tensor(q, dtype=torch.float32)
    perception = DeploySimPerception(env, grid)
    if gate is not None:
        gate.set_world(perception)
    env.reset(seed=0)
    return env, perception


def occupied(perception: DeploySimPerception, env: int = 0) -> np.ndarray:
    """Centres [m] of the occupied cells."""
    return perception.grid.corner.apply((np.argwhere(cells_of(perception.mapper.occupied[env])) + 0.5) * CELL)


@pytest.mark.parametrize("opening", [-0.7854, -0.5, -0.25, -0.03])
def test_b25_the_robot_is_not_in_its_own_map_and_balls_beside_its_fingers_are(opening):
    q = rest(right_finger_joint1=opening)
    between, wide = pads(q).mean(axis=0), np.linalg.norm(np.diff(pads(q), axis=0)) > 0.08
    tip = lowest("openarm_right_ee_outer_finger", q)
    below = tip - (0.0, 0.0, 0.03 + 0.012)
    props = {"Below": ball(below)} | ({"Between": ball(between)} if wide else {})
    env, perception = seen(props, q)
    perception.look()
    cells = occupied(perception)
    for centre in [below, *([between] if wide else [])]:
        assert (np.abs(np.linalg.norm(cells - centre, axis=1) - 0.012) < CELL).sum() >= 3
    balls = np.min([np.abs(np.linalg.norm(cells - c, axis=1) - 0.012) for c in [below, between]], axis=0)
    assert (balls <= np.sqrt(3) / 2 * CELL + 1e-4).all()  # and nothing else is there: no link, no follower
    for _ in range(25):
        env.step(torch.tensor(q, dtype=torch.float32)[None])
        perception.refresh()
    later = occupied(perception)
    balls = np.min([np.abs(np.linalg.norm(later - c, axis=1) - 0.012) for c in [below, between]], axis=0)
    assert len(later) >= 6 and (balls <= np.sqrt(3) / 2 * CELL + 1e-4).all()


def test_b25_a_follower_that_does_not_follow_is_filtered_where_it_is():
    """The fingers' coupling is soft: the filter takes each at its own measured pose."""
    q = rest(right_finger_joint1=-0.6)
    env, perception = seen({}, q)
    articulation = env.task.robot._attached.articulation
    state = env.task.robot.state.joint_positions
    state[:, env.task.robot.find_joints("openarm_right_finger_joint2")] += 0.25
    articulation.write_joint_state(state, torch.zeros_like(state), torch.tensor([0]))
    perception.forget(torch.tensor([0]))
    perception.look()
    assert len(occupied(perception)) == 0


def test_b25_a_missing_link_pose_leaves_its_environment_out_and_its_map_as_it_was(monkeypatch):
    q = rest()
    env, perception = seen({"Below": ball(lowest("openarm_right_ee_outer_finger", q) - (0, 0, 0.05))}, q, num_envs=2)
    perception.look()
    before = perception.mapper.occupied.clone()
    assert before.any()
    full = env.task.robot.state.link_poses
    full[1, 7] = torch.nan
    monkeypatch.setattr(type(env.task.robot.state), "link_poses", property(lambda self: full))
    for _ in range(6):
        env.step(torch.tensor(q, dtype=torch.float32).repeat(2, 1))
    perception.refresh()
    assert perception.skipped == {1: (openarm().links[7],)}
    assert torch.equal(perception.mapper.occupied[1], before[1])
    assert perception.stamp.tolist() == pytest.approx([env.time, 0.0])


def test_frames_come_at_the_cameras_rate():
    env, perception = seen({}, rest())
    perception.look()
    stamps = []
    for _ in range(20):  # 20 ms each: every fifth step has a frame
        env.step(torch.tensor(rest(), dtype=torch.float32)[None])
        perception.refresh()
        perception.refresh()
        stamps.append(float(perception.stamp[0]))
    assert len(set(stamps)) in (4, 5)


def test_a_perception_that_stops_looking_goes_stale_and_the_gate_holds():
    gate = CollisionGate(openarm())
    env, perception = seen({}, rest(), gate)
    perception.refresh = lambda: None
    kinds = []
    for _ in range(35):
        *_, info = env.step(torch.tensor(rest(), dtype=torch.float32)[None])
        kinds.append(info["gate"].kind_name(0))
    assert kinds[:25] == ["clear"] * 25 and kinds[-5:] == ["stale_map"] * 5


def test_b28_unseen_space_is_free_and_counted_or_solid_but_for_the_robots_own_inside():
    """The cameras watch the right hand. Where the left one would go, some cells have never been seen."""
    q = rest()
    elsewhere = rest(left_joint1=0.3)  # swung back, out of the cameras' sight
    everything = GridSpec.around((-0.7, -0.7, -0.1), (0.7, 0.7, 1.1), CELL)
    for policy, kind in (("free", "clear"), ("occupied", "world")):
        gate = CollisionGate(openarm(), unknown=policy)
        _, perception = seen({}, q, gate, grid=everything)
        assert gate.check(q).clear[0]
        verdict = gate.check(elsewhere)
        assert verdict.kind_name(0) == kind
        if policy == "free":
            assert int(verdict.unknown_cells[0]) > 0 and "unseen cells in reach" in verdict.describe(0)
        else:
            assert verdict.parties(0)[0].startswith("openarm_left")
        unseen = perception.grid.corner.apply((np.argwhere(cells_of(perception.unseen_cells()[0])) + 0.5) * CELL)
        assert len(unseen) > 1000
        palm = placed("openarm_right_ee_base_link", q)
        assert np.linalg.norm(unseen - palm.center_mass, axis=1).min() > 0.02


def test_b33_in_simulation_what_the_hand_takes_is_no_obstacle_in_the_same_tick():
    """A block between the open jaws and a neighbour 60 mm beside it: closing stops before the attach and not after."""
    q = rest(right_finger_joint1=-0.6)
    centre = pads(q).mean(axis=0) - (0.0, 0.0, 0.02)
    neighbour = centre + np.array([0.09, 0.0, 0.0])
    gate = CollisionGate(openarm())
    env, perception = seen({"Block": block(centre), "Neighbour": block(neighbour)}, q, gate)
    closing = rest(right_finger_joint1=-0.1)
    assert gate.check(q).clear[0]
    verdict = gate.check(closing)
    assert verdict.kind_name(0) == "world" and "finger" in verdict.parties(0)[0]
    near = np.abs(occupied(perception) - neighbour).max(axis=1) < 0.06
    hand = poses(q)["openarm_right_ee_base_link"]
    there = np.eye(4)
    there[:3, 3] = centre
    gate.attach("right", env.task.props["Block"].shape, Pose.from_matrix(np.linalg.inv(hand) @ there), object="Block")
    assert gate.check(q).clear[0]
    left = occupied(perception)
    assert (np.abs(left - neighbour).max(axis=1) < 0.045).sum() == near.sum() > 5
    assert not (np.abs(left - centre).max(axis=1) < 0.045).any()
    for _ in range(10):  # and no frame brings it back
        env.step(torch.tensor(q, dtype=torch.float32)[None])
    assert not (np.abs(occupied(perception) - centre).max(axis=1) < 0.045).any()
    gate.detach("right")
    assert (np.abs(occupied(perception) - centre).max(axis=1) < 0.045).sum() > 20
    assert gate.check(closing).kind_name(0) == "world"


def test_b33_a_held_thing_that_slips_is_an_obstacle_beside_itself_until_the_gate_is_told():
    """A block that hangs between the open jaws turns by 20 degrees, as between two pads it may."""
    q = rest(right_finger_joint1=-0.6)
    centre = pads(q).mean(axis=0) - (0.0, 0.0, 0.05)
    gate = CollisionGate(openarm())
    env, perception = seen({"Block": block(centre)}, q, gate)
    robot, prop = env.task.robot, env.task.props["Block"]
    turned = Pose(tuple(centre), (np.cos(np.deg2rad(10.0)), 0.0, np.sin(np.deg2rad(10.0)), 0.0))

    def attach_at(pose: Pose) -> None:
        row = robot.state.link_poses[0, robot.link_names.index("openarm_right_ee_base_link")].double().tolist()
        hand = Pose((row[0], row[1], row[2]), (row[3], row[4], row[5], row[6]))
        gate.attach("right", prop.shape, hand.inverse() @ pose, object="Block")

    def cells_there() -> int:
        return int((np.linalg.norm(occupied(perception) - centre, axis=1) < 0.06).sum())

    attach_at(Pose(tuple(centre)))
    prop.set_pose(turned, [0])
    for _ in range(15):
        env.step(torch.tensor(q, dtype=torch.float32)[None])
    assert cells_there(), "the turned corners stand out of the padding"
    assert gate.check(q).kind_name(0) == "payload"
    attach_at(turned)
    assert cells_there() == 0 and gate.check(q).clear[0], "in the same tick"
    for _ in range(15):
        env.step(torch.tensor(q, dtype=torch.float32)[None])
    assert cells_there() == 0
    assert gate._session.payloads.present[0].sum() == 1, "one thing, not two"


def test_scenes_that_cannot_be_perceived_are_refused_by_name():
    env = simulo.LearningEnv(JointTargets({}), num_envs=1)
    grid = GridSpec.around((0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    with pytest.raises(PerceptionError, match=r"add a simulo\.DepthCamera"):
        DeploySimPerception(env, grid)
    mixed = {**cameras(), "Wide": DepthCamera(look_at((1, 0, 1), (0, 0, 0)), width=80)}
    env = simulo.LearningEnv(JointTargets({}, mixed), num_envs=1)
    with pytest.raises(PerceptionError, match="'Wide' has width 80"):
        DeploySimPerception(env, grid)
    with pytest.raises(PerceptionError, match="cameras must be a list of names, got 'front' alone"):
        DeploySimPerception(env, grid, cameras="front")
    with pytest.raises(PerceptionError, match="no depth camera back"):
        DeploySimPerception(env, grid, cameras=["back"])
