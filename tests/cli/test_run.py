"""`simulo run`: the figures, and that they do not depend on how many environments run at once."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

KEYS = {
    "task", "robot", "gripper", "backend", "envs", "episodes", "success_rate", "success_wilson95", "policy_steps",
    "stops", "max_tracking_error_mm", "seconds",
}  # fmt: skip

TASK = """
import torch, simulo

class Swing(simulo.Task):
    observation_dim = action_dim = 16
    episode_length_s = 0.5
    map_box = ((0.1, -0.4, 0.0), (0.5, 0.4, 0.5))

    def build(self, scene):
        self.robot = simulo.Robot(asset="openarm")
        scene.add(self.robot, at="/World/Robot")
        table = simulo.Pose(position=(0.42, 0.0, 0.15))
        scene.add(simulo.Prop.box(size=(0.5, 1.0, 0.3), fixed=True, pose=table), at="/World/Table")

    def apply_actions(self, actions):
        self.robot.set_joint_position_target(actions)

    def get_observations(self):
        return self.robot.state.joint_positions[:, :16]

    def reset_idx(self, env_ids):
        self.swings = [self.env.episode_seed(i)[0] % 2 == 1 for i in range(self.env.num_envs)]

    def succeeded(self, reason):
        return reason == "time_limit"

    def scripted_policy(self):
        def policy(env):
            actions = torch.zeros(env.num_envs, 16)
            swing = torch.tensor(self.swings) & (env.episode_steps >= 5)
            actions[swing, env.task.robot.find_joints("openarm_right_joint1")[0]] = 0.24
            return actions
        return policy
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "swing.py"
    path.write_text(TASK)
    return path


@pytest.mark.parametrize("envs", ["1", "3"])
def test_odd_episodes_swing_into_the_table(simulo: Callable, task: Path, tmp_path: Path, envs: str) -> None:
    file = tmp_path / "run.json"
    run = simulo("run", str(task), "--envs", envs, "--episodes", "4", "--world", "primitives", "--json", str(file))
    assert run.code == 0, run.err
    figures = json.loads(file.read_text())
    assert set(figures) == KEYS
    assert (figures["episodes"], figures["stops"], figures["success_rate"]) == (4, 2, 0.5)
    assert figures["policy_steps"] == 2 * 25 + 2 * 6  # the swing comes in the sixth step and ends its episode
    assert figures["success_wilson95"] == pytest.approx([0.150, 0.850], abs=1e-3)  # Newcombe 1998, by hand
    assert 0.0 < figures["max_tracking_error_mm"] < 30.0


def test_held_instead_of_ended(simulo: Callable, task: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    arguments = ("--episodes", "2", "--world", "primitives", "--on-stop", "hold", "--json", str(file))
    assert simulo("run", str(task), *arguments).code == 0
    figures = json.loads(file.read_text())
    assert (figures["episodes"], figures["stops"], figures["policy_steps"]) == (2, 1, 50)


def test_without_a_gate_nothing_is_judged(simulo: Callable, task: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    assert simulo("run", str(task), "--episodes", "1", "--no-gate", "--json", str(file)).code == 0
    assert json.loads(file.read_text())["stops"] is None


def test_the_gripper_asked_for_is_the_one_reported(simulo: Callable, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    arguments = ("--gripper", "openarm", "--episodes", "1", "--steps", "3", "--no-gate", "--json", str(file))
    assert simulo("run", "tasks/lift.py", *arguments).code == 0
    figures = json.loads(file.read_text())
    assert set(figures) == KEYS
    assert (figures["robot"], figures["gripper"], figures["stops"]) == ("openarm", "openarm", None)


POLICY = """
import torch

def make_policy(env):
    return lambda observations: torch.zeros(env.num_envs, 16)

def swing(env):
    joint = env.task.robot.find_joints("openarm_right_joint1")[0]
    def policy(observations):  # it moves on once it sees that it stands
        assert observations.shape == (env.num_envs, 16)
        actions = torch.zeros(env.num_envs, 16)
        actions[:, joint] = torch.where(env.episode_steps >= 5, 0.24, 0.0)
        return actions
    return policy

def nothing(env):
    return None
"""


@pytest.mark.parametrize(("name", "stops"), [("", 0), (":make_policy", 0), (":swing", 2)])
def test_a_policy_of_ones_own(simulo: Callable, task: Path, tmp_path: Path, name: str, stops: int) -> None:
    """The task's script swings the arm of every other episode into the table; these swing none, or all."""
    file = tmp_path / "mine.py"
    file.write_text(POLICY)
    arguments = ("--policy", f"{file}{name}", "--episodes", "2", "--world", "primitives")
    run = simulo("run", str(task), *arguments, "--json", str(tmp_path / "run.json"))
    assert run.code == 0, run.err
    assert json.loads((tmp_path / "run.json").read_text())["stops"] == stops


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("elsewhere.py:swing", "no Python file 'elsewhere.py'"),
        ("random", "no Python file 'random'; give 'scripted' or FILE.py:NAME"),
        ("mine.py:jump", "mine.py defines no function 'jump'"),
        ("mine.py:nothing", "nothing(env) returned NoneType"),
    ],
)
def test_a_policy_that_is_none_is_refused_by_name(
    simulo: Callable, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, said: str
) -> None:
    (tmp_path / "mine.py").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    run = simulo("run", str(task), "--policy", policy, "--episodes", "1", "--no-gate")
    assert run.code == 2 and said in run.err


def test_a_robot_without_geometry_runs_without_a_gate(simulo: Callable, task: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.py"
    loaded = """dataclasses.replace(simulo.load_description("openarm"), geometry={})"""
    bare.write_text("import dataclasses" + TASK.replace('asset="openarm"', f"asset={loaded}"))
    file = tmp_path / "run.json"
    assert simulo("run", str(bare), "--episodes", "1", "--world", "primitives", "--json", str(file)).code == 0
    assert json.loads(file.read_text())["stops"] is None
    run = simulo("run", str(bare), "--episodes", "1", "--gate", "--world", "primitives")
    assert run.code == 2, "asked for, a gate that cannot vouch is refused"


def test_a_step_limit_before_the_first_end_gives_no_rate(simulo: Callable, task: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    arguments = ("--episodes", "2", "--steps", "3", "--world", "none", "--json", str(file))
    run = simulo("run", str(task), *arguments)
    assert run.code == 0
    assert "success n/a" in run.out
    figures = json.loads(file.read_text())
    assert (figures["episodes"], figures["success_rate"], figures["success_wilson95"]) == (0, None, None)
    assert figures["policy_steps"] == 6


def test_wrong_use(simulo: Callable, task: Path, tmp_path: Path) -> None:
    no_policy = tmp_path / "quiet.py"
    no_policy.write_text(TASK.replace("scripted_policy", "policy"))
    no_box = tmp_path / "boxless.py"
    no_box.write_text(TASK.replace("map_box", "box"))
    for arguments, message in [
        (("juggle.py",), "no task file 'juggle.py'"),
        ((str(no_policy),), "has no scripted_policy()"),
        ((str(no_box),), "has no map_box"),
        ((str(task), "--backend", "dreams"), "'dreams'"),
        ((str(task), "--gripper", "openarm"), "takes no gripper; leave out --gripper openarm"),
        (("tasks/lift.py", "--gripper", "opnarm"), "did you mean 'openarm'?"),
        (("tasks/lift.py", "--robot", "openarm"), "takes no robot"),
        ((str(task), "--device", "tpu"), "'tpu'"),
    ]:
        run = simulo("run", *arguments)
        assert (run.code, message in run.err, "Traceback" in run.err) == (2, True, False), run.err
