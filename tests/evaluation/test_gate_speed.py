"""The gate's cost: the figures are there, and no Python runs per environment."""

import cProfile
import pstats

import mujoco
import numpy as np
import pytest
import torch

import simulo
from simulo.collision import build_model
from simulo.evaluation.gate_speed import bench_gate
from simulo.evaluation.mujoco_tree import model_positions
from simulo.evaluation.peers import mujoco_model
from simulo.evaluation.task_file import load_task_class


@pytest.mark.parametrize("robot", ["openarm", "ur5e"])
def test_every_figure_is_there_and_positive(robot: str) -> None:
    """Of a robot with a task, and of one without, which has no share of a policy step."""
    figures = bench_gate(robot, envs=2, horizon=2, steps=60, batches=(1, 4), worlds=False)
    assert {"robot", "envs", "horizon", "device", "share_of_step", "stages", "peers", "ratio"} <= set(figures)
    assert {"fk", "self", "world", "payload", "total"} <= set(figures["stages"])
    share = figures["share_of_step"]
    assert share is None if robot == "ur5e" else share > 0.0
    for stage in figures["stages"].values():
        assert 0 < stage["us_per_configuration"]["p50"] <= stage["us_per_configuration"]["p95"]
    assert set(figures["ratio"]) == set(figures["peers"]) >= {"mujoco"}
    assert [row["batch"] for row in figures["batches"]] == [1, 4]
    times = [row["us_per_configuration"]["p50"] for row in (*figures["batches"], *figures["peers"].values())]
    assert min(times) > 0


def test_a_robot_that_there_is_not_is_refused() -> None:
    with pytest.raises(simulo.SimuloError, match="toaster"):
        bench_gate("toaster")


def test_coal_answers_the_same_question() -> None:
    """Whatever pinocchio with coal hits, the checker hits too: the other way round coal misses some (its boolean)."""
    pytest.importorskip("pinocchio")
    from simulo.evaluation.coal_peer import CoalPeer
    from simulo.evaluation.configuration import uniform

    description = simulo.load_description("openarm")
    peer = CoalPeer(description, build_model(description))
    poses = uniform(description, np.random.default_rng(3).random((400, len(description.joints))))
    theirs = [peer.collides(row) for row in peer.positions(poses)]
    ours = (~simulo.CollisionGate("openarm", world="none").check(poses).clear).tolist()
    assert sum(theirs) >= 20
    assert [o for o, t in zip(ours, theirs, strict=True) if t] == [True] * sum(theirs)
    assert sum(ours) - sum(theirs) <= 4


def _calls_in_a_gated_step(num_envs: int) -> int:
    """Function calls, Python's and C's, that `gate.filter` makes in one step."""
    gate = simulo.CollisionGate("openarm", world="primitives")
    env = simulo.LearningEnv(load_task_class("tasks/pick_place.py")(), num_envs=num_envs, gate=gate)
    env.reset(seed=0)
    policy = env.task.scripted_policy()
    for _ in range(3):
        env.step(policy(env))
    profile = cProfile.Profile()
    profile.runcall(gate.filter, env)
    env.close()
    return pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


def test_the_gate_runs_no_python_per_environment() -> None:
    assert _calls_in_a_gated_step(2) == _calls_in_a_gated_step(9)


def test_the_peer_answers_the_same_question() -> None:
    """MuJoCo on the same hulls and pairs: whatever it hits, the checker hits too, and both have the same pairs."""
    description = simulo.load_description("openarm")
    model = build_model(description)
    peer = mujoco_model(description, model)
    data = mujoco.MjData(peer)
    checker = simulo.CollisionGate("openarm", world="none")
    rng = np.random.default_rng(7)
    lower, upper = (np.array([getattr(joint, side) for joint in description.joints]) for side in ("lower", "upper"))
    q = rng.uniform(lower, upper, size=(400, len(lower))).astype(np.float32)
    hits = []
    for row in model_positions(description, peer, q.astype(np.float64)):
        data.qpos = row
        mujoco.mj_kinematics(peer, data)
        mujoco.mj_collision(peer, data)
        hits.append(any(contact.dist < -1e-4 for contact in data.contact))
    clear = checker.check(torch.from_numpy(q)).clear.numpy()
    assert sum(hits) > 10
    assert not np.any(np.array(hits) & clear)
