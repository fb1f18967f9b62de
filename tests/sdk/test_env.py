"""LearningEnv: the order of a step, what it refuses, and how episodes end and begin."""

import pytest
import torch

import simulo
from simulo.env import GateDecision, LearningEnv
from simulo.errors import BackendError


class Balls(simulo.Task):
    """Balls in free fall; the log keeps the order in which the environment calls."""

    observation_dim, action_dim = 3, 2

    def __init__(self):
        self.log: list[str] = []
        self.ends: torch.Tensor | None = None
        self.seen: list[torch.Tensor] = []

    def build(self, scene):
        self.ball = simulo.Prop.sphere(0.05, mass=1.0, pose=simulo.Pose((0.0, 0.0, 1.0)))
        scene.add(self.ball, at="/World/Ball")

    def on_start(self, env):
        self.log.append("on_start")

    def on_pre_physics_step(self):
        self.log.append("pre")

    def apply_actions(self, actions):
        self.seen.append(actions)
        self.log.append("apply")

    def on_post_physics_step(self):
        self.log.append(f"post z={float(self.ball.state.pose[0, 2]):.4f}")

    def get_dones(self):
        self.log.append("dones")
        nobody = torch.zeros(self.env.num_envs, dtype=torch.bool)
        return {"dropped": nobody if self.ends is None else self.ends}, nobody

    def get_rewards(self):
        self.log.append("rewards")
        return torch.arange(self.env.num_envs)

    def get_observations(self):
        self.log.append("observations")
        return self.ball.state.pose[:, :3]

    def reset_idx(self, env_ids):
        self.log.append(f"reset {env_ids.tolist()}")
        heights = torch.tensor([1.0 + self.env.rng(int(i)).random() for i in env_ids])
        pose = torch.zeros(len(env_ids), 7)
        pose[:, 2], pose[:, 3] = heights, 1.0
        self.ball.set_pose(pose, env_ids)


class SpyGate:
    """Logs into the task's log, and ends the environments it is told to."""

    def __init__(self, terminate=()):
        self.terminate = terminate

    def bind(self, env):
        self.env = env
        env.task.log.append("gate bind")

    def filter(self, env):
        env.task.log.append("gate")
        ended = torch.zeros(env.num_envs, dtype=torch.bool)
        ended[list(self.terminate)] = True
        return GateDecision("a verdict", ended)

    def reset(self, env_ids):
        self.env.task.log.append(f"gate reset {env_ids.tolist()}")

    def check_reset(self, env, env_ids):
        env.task.log.append(f"gate check {env_ids.tolist()}")

    def describe(self, env_id):
        return f"stopped {env_id}"


def make(num_envs=2, **options) -> LearningEnv:
    return LearningEnv(Balls(), num_envs=num_envs, **options)


def test_the_order_of_a_step():
    env = make(gate=SpyGate())
    env.reset(seed=0)
    assert env.task.log == [
        "gate bind",
        "on_start",
        "gate reset [0, 1]",
        "reset [0, 1]",
        "gate check [0, 1]",
        "observations",
    ]
    env.task.log.clear()
    height = float(env.task.ball.state.pose[0, 2])
    *_, info = env.step(torch.zeros(2, 2))
    fallen = height - 9.81 * 0.002**2 * (10 * 11) / 2  # semi-implicit Euler, ten steps of 2 ms
    assert env.task.log == ["pre", "apply", "gate", f"post z={fallen:.4f}", "dones", "rewards", "observations"]
    assert info["gate"] == "a verdict"
    assert info["stop"] == {}
    assert env.dt == pytest.approx(0.02)
    assert env.time == pytest.approx(0.02)


def test_b40_an_ended_environment_keeps_its_last_observation_and_starts_anew_in_the_same_step():
    env = make(num_envs=3)
    lone = make(num_envs=3)  # the same seeds, never ended: what the others must look like
    env.reset(seed=0)
    lone.reset(seed=0)
    for step in range(4, 8):
        env.task.ends = torch.tensor([False, step == 5, False])
        observations, rewards, terminated, truncated, info = env.step(torch.zeros(3, 2))
        undisturbed, *_ = lone.step(torch.zeros(3, 2))
        assert torch.equal(observations[[0, 2]], undisturbed[[0, 2]])
        assert rewards.tolist() == [0.0, 1.0, 2.0]
        assert not truncated.any()
        if step == 5:
            assert terminated.tolist() == [False, True, False]
            assert info["stop"] == {1: "dropped"}
            assert torch.equal(info["final_obs"], undisturbed)
            assert not torch.equal(observations[1], undisturbed[1])  # the first observation of the new episode
            assert torch.equal(observations[1], env.task.ball.state.pose[1, :3])
            assert env.episode_steps.tolist() == [2, 0, 2]
        else:
            assert not terminated.any()
            assert info["stop"] == {}
            assert "final_obs" not in info
    assert env.autoreset_mode == "same_step"


def test_the_gate_ends_episodes_with_its_own_words():
    env = make(gate=SpyGate(terminate=[1]))
    env.reset(seed=0)
    env.task.ends = torch.tensor([True, True])
    _, _, terminated, _, info = env.step(torch.zeros(2, 2))
    assert terminated.all()
    assert info["stop"] == {0: "dropped", 1: "gate: stopped 1"}


def test_the_time_limit_truncates_by_itself():
    env = make()
    env.task.episode_length_s = 0.06
    env.reset(seed=0)
    for last in (False, False, True, False):
        _, _, terminated, truncated, info = env.step(torch.zeros(2, 2))
        assert not terminated.any()
        assert truncated.tolist() == [last, last]
        assert info["stop"] == ({0: "time_limit", 1: "time_limit"} if last else {})


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_actions_that_are_not_finite_name_environments_and_apply_nothing(bad):
    env = make(num_envs=12)
    env.reset(seed=0)
    env.task.log.clear()
    actions = torch.zeros(12, 2)
    actions[1:11, 1] = bad
    before = env.task.ball.state.pose
    with pytest.raises(ValueError, match=r"environments \[1, 2, 3, 4, 5, 6, 7, 8\] and 2 more; nothing was applied"):
        env.step(actions)
    assert env.task.log == []
    assert torch.equal(env.task.ball.state.pose, before)
    assert env.step_count == 0


@pytest.mark.parametrize("shape", [(2, 3), (2, 1), (2,), (1, 2), (2, 2, 1), (4,)])
def test_b34_actions_of_another_shape_are_named(shape):
    env = make()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"\(num_envs, action_dim\) = \(2, 2\), got"):
        env.step(torch.zeros(shape))
    assert env.step_count == 0


@pytest.mark.parametrize("actions", [[[True, False]] * 2, torch.ones(2, 2, dtype=torch.bool), [["a", "b"]] * 2, None])
def test_b03_actions_that_are_no_numbers_are_refused(actions):
    """A True would arrive at a gripper as 1.0 and close it, where its author may have meant open."""
    env = make()
    env.reset(seed=0)
    with pytest.raises(TypeError, match="actions must be integers or floats"):
        env.step(actions)
    assert env.step_count == 0


def test_b43_the_task_gets_a_copy_of_strided_actions():
    env = make()
    env.reset(seed=0)
    table = torch.arange(8.0).view(2, 4)
    for view in (table[:, ::2], table[:, 2:], table.flip(1)[:, :2], table[:, :1].expand(2, 2)):
        env.step(view)
        assert torch.equal(env.task.seen[-1], view)
        env.task.seen[-1].fill_(-1.0)
    assert torch.equal(table, torch.arange(8.0).view(2, 4))
    env.step(table[:, :2].tolist())
    assert torch.equal(env.task.seen[-1], table[:, :2])


def test_an_episode_is_the_same_alone_or_in_any_batch():
    batch, lone = make(num_envs=5), make(num_envs=1)
    in_batch, _ = batch.reset(seed=3)
    alone, _ = lone.reset(seed=7)
    assert torch.equal(in_batch[4], alone[0])
    for step in range(30):
        batch.task.ends = torch.tensor([step % 3 == 0, True, step % 7 == 0, False, step == 12])
        lone.task.ends = torch.tensor([step == 12])
        in_batch, *_ = batch.step(torch.zeros(5, 2))
        alone, *_ = lone.step(torch.zeros(1, 2))
        assert torch.equal(in_batch[4], alone[0])


def test_reset_of_some_environments_leaves_the_others_alone():
    env = make(num_envs=3)
    env.reset(seed=0)
    env.step(torch.zeros(3, 2))
    before = env.task.ball.state.pose
    velocities = env.task.ball.state.velocity
    env.reset(env_ids=[1])
    assert torch.equal(env.task.ball.state.pose[[0, 2]], before[[0, 2]])
    assert torch.equal(env.task.ball.state.velocity[[0, 2]], velocities[[0, 2]])
    assert env.task.ball.state.velocity[1].abs().max() == 0
    env.reset(env_ids=[])
    assert env.episode_steps.tolist() == [1, 0, 1]
    with pytest.raises(IndexError, match="num_envs=3"):
        env.reset(env_ids=[3])


def test_step_before_reset_and_nonsense_at_construction_are_refused():
    with pytest.raises(RuntimeError, match="reset"):
        make().step(torch.zeros(2, 2))
    with pytest.raises(TypeError, match=r"an instance: Balls\(\)"):
        LearningEnv(Balls)
    with pytest.raises(RuntimeError, match="all environments"):
        make().reset(env_ids=[1])
    for options in (
        {"num_envs": 0},
        {"physics_dt": 0.0},
        {"physics_dt": float("nan")},
        {"physics_steps_per_action": 0},
        {"num_envs": 1.5},
        {"num_envs": True},
        {"num_envs": "4"},
    ):
        with pytest.raises(ValueError, match=next(iter(options))):
            make(**options)
    for options in ({"num_envs": 0}, {"physics_dt": float("nan")}):
        with pytest.raises(ValueError, match=next(iter(options))):
            simulo.Simulation(Drop(), **options)
    with pytest.raises(BackendError, match="mujoco"):
        make(backend="bullet")


class Endless(Balls):
    episode_length_s = float("nan")


class WithoutActions(simulo.Task):
    observation_dim = 3


def test_a_task_without_widths_or_with_no_time_is_refused_before_anything_is_built():
    with pytest.raises(ValueError, match="WithoutActions.action_dim must be an int.*None"):
        LearningEnv(WithoutActions())
    with pytest.raises(ValueError, match="Endless.episode_length_s.*nan"):
        LearningEnv(Endless())


@pytest.mark.parametrize("env_id", [2, -1])
def test_b39_streams_are_those_of_environments_that_exist(env_id):
    env = make()
    env.reset(seed=0)
    for ask in (env.rng, env.episode_seed, lambda i: env.assign_seed(i, 5)):
        with pytest.raises(IndexError, match=rf"id {env_id} is outside \[0, 2\) \(num_envs=2\)"):
            ask(env_id)
    assert [env.episode_seed(i) for i in range(2)] == [(0, 0), (1, 0)]


@pytest.mark.parametrize("name", ["gate", "physics_failed", "time_limit", "truncated"])
def test_a_task_cannot_end_episodes_under_the_environments_own_names(name):
    """Its flags would stand in for the gate's, and an episode that the gate ends would go on."""
    env = make(gate=SpyGate(terminate=[0]))
    env.reset(seed=0)
    env.task.get_dones = lambda: ({name: torch.zeros(2, dtype=torch.bool)}, torch.zeros(2, dtype=torch.bool))
    with pytest.raises(ValueError, match=rf"get_dones\(\) uses \['{name}'\]"):
        env.step(torch.zeros(2, 2))


class Misshapen(Balls):
    def get_observations(self):
        return self.ball.state.pose


class MisshapenRewards(Balls):
    def get_rewards(self):
        return torch.zeros(self.env.num_envs, 1)


def test_what_a_task_returns_is_checked():
    with pytest.raises(ValueError, match=r"Misshapen.get_observations\(\).*\(2, 3\), got \(2, 7\)"):
        LearningEnv(Misshapen(), num_envs=2).reset()
    env = LearningEnv(MisshapenRewards(), num_envs=2)
    env.reset()
    with pytest.raises(ValueError, match="get_rewards"):
        env.step(torch.zeros(2, 2))
    env = make()
    env.reset()
    env.task.ends = torch.zeros(2, 2, dtype=torch.bool)
    with pytest.raises(ValueError, match="dropped"):
        env.step(torch.zeros(2, 2))


class Drop:
    """A script: drops a ball and remembers what it saw."""

    def __init__(self):
        self.heights: list[float] = []

    def build(self, scene):
        self.ball = simulo.Prop.sphere(0.05, mass=1.0, pose=simulo.Pose((0.0, 0.0, 1.0)))
        scene.add(self.ball, at="/World/Ball")

    def on_start(self):
        self.dt = self.simulation.dt

    def on_step(self):
        self.heights.append(float(self.ball.state.pose[0, 2]))


def test_a_simulation_runs_a_script_once_per_physics_step():
    script = Drop()
    simulation = simulo.Simulation(script, physics_dt=0.001)
    simulation.run(0.1)
    assert script.dt == 0.001
    assert simulation.time == pytest.approx(0.1)
    assert len(script.heights) == 100
    assert script.heights[0] == pytest.approx(1.0)
    assert float(script.ball.state.pose[0, 2]) == pytest.approx(1.0 - 9.81 * 0.001**2 * 100 * 101 / 2, abs=1e-6)
    simulation.close()
