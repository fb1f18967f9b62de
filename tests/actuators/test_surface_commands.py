"""The surface gripper in MuJoCo under its commands: giving up, opening, resets, where it may hang, and many at once."""

import pytest
import torch

import simulo
from simulo.actuators import GripperState
from tests.actuators.suction_cell import BLOCK, STAND_TOP, Cell, holding, run, started

G = 9.81


# --- giving up, opening, resetting -----------------------------------------------------------------------------------


def test_a_gripper_that_gave_up_stays_open_under_a_steady_close_until_another_command():
    env = started(gap=0.05, retry_interval=0.5)
    states = [s for (s,) in run(env, 100, 1.0, 0.05)]
    assert states == [0] * 24 + [-1] * 76
    assert {s for (s,) in run(env, 30, 1.0, 0.05, 0.002)} == {-1}, "with the block in reach, too"
    assert run(env, 1, 0.0, 0.002) == [[-1]]
    assert run(env, 2, 1.0, 0.002)[-1] == [1]


def test_an_open_lets_go_at_once():
    env = holding()
    run(env, 25, 1.0, 0.005, 0.05)
    run(env, 25, 1.0, 0.05)
    env.task.gripper.set_command(-1.0)
    assert env.task.gripper.get_state() == [GripperState.OPEN]
    assert env.task.gripper.gripped() == [None]
    height = float(env.task.block.state.pose[0, 2])
    run(env, 3, -1.0, 0.05)
    fallen = height - float(env.task.block.state.pose[0, 2])
    assert fallen == pytest.approx(0.5 * G * 0.06**2, abs=0.002), "in free fall from the first step on"


def test_b05_a_reset_of_one_environment_drops_one_block():
    env = holding(num_envs=4)
    run(env, 50, 0.0, 0.005, 0.05)
    heights = env.task.block.state.pose[:, 2].clone()
    env.task.gripper.reset([2])
    env.task.gripper.reset([])
    assert env.task.gripper.state.tolist() == [1, 1, -1, 1]
    for _ in range(50):
        env.scene.flush()
        env.backend.step(10)
        env.task.gripper.update(env.dt)
    fallen = heights - env.task.block.state.pose[:, 2]
    assert fallen[[0, 1, 3]].abs().max() < 0.001
    assert fallen[2] > 0.03
    assert env.task.gripper.held(env.task.block).tolist() == [True, True, False, True]


@pytest.mark.parametrize("reset", ["environment", "scene", "robot"])
def test_whatever_resets_the_scene_resets_the_gripper(reset):
    env = holding(num_envs=2)
    run(env, 10, 0.0, 0.005, 0.02)
    {"environment": env, "scene": env.scene, "robot": env.task.robot}[reset].reset(env_ids=[1])
    assert env.task.gripper.state.tolist() == [1, -1]
    assert env.task.gripper.gripped() == ["Block", None]
    run(env, 2, [0.0, 0.0], 0.02)
    assert env.task.gripper.gripped() == ["Block", None]
    weld = env.backend.model.equality("Robot/bond0").id
    assert [bool(data.eq_active[weld]) for data in env.backend.data] == [True, False]


def test_after_a_reset_the_next_episode_catches_anew():
    env = holding(num_envs=2)
    run(env, 10, 1.0, 0.005, 0.05)
    env.reset(seed=1)
    assert env.task.gripper.state.tolist() == [-1, -1]
    assert run(env, 2, 1.0, 0.005)[-1] == [1, 1]


@pytest.mark.parametrize("how", ["park", "set_pose", "set_joint_positions"])
def test_what_is_put_elsewhere_is_let_go(how):
    env = holding(num_envs=2)
    run(env, 25, 1.0, 0.005, 0.05)
    run(env, 10, 1.0, 0.05)
    if how == "park":
        env.task.block.park([0])
    elif how == "set_pose":
        env.task.block.set_pose(simulo.Pose((0.3, 0.3, 0.5)), [0])
    else:
        env.task.robot.set_joint_positions(env.task.joints(torch.tensor([0.1])), [0])
        env.task.robot.set_joint_positions(env.task.joints(torch.tensor([0.05])), [0])
    cup = env.task.robot.state.link_poses[0].clone()
    assert run(env, 1, 1.0, 0.05) == [[0, 1]]
    assert env.task.gripper.gripped() == [None, "Block"]
    assert (env.task.robot.state.link_poses[0] - cup).abs().max() < 0.002, "it does not pull the robot along"


# --- commands: the cases that hold for both grippers ---------------------------------------------------------------


def test_b03_polarity_and_thresholds():
    env = started(gap=0.05)
    gripper = env.task.gripper
    for command, closes in [(-1, 0), (-0.31, 0), (-0.3, None), (0, None), (0.3, None), (0.31, 1), (1, 1)]:
        for before in (-1.0, 1.0):
            gripper.reset()
            gripper.set_command(before)
            gripper.set_command(command)
            expected = before > 0 if closes is None else bool(closes)
            env.scene.flush()
            env.backend.step(1)
            gripper.update(0.002)
            assert gripper.state.tolist() == [0 if expected else -1], (command, before)
    for flag in (True, False):
        with pytest.raises(TypeError, match="bool"):
            gripper.set_command(flag)
    with pytest.raises(TypeError, match="GripperState"):
        gripper.set_command(GripperState.CLOSED)


def test_b34_only_one_command_per_environment_is_taken():
    env = started(num_envs=4, gap=0.05)
    gripper, actions = env.task.gripper, torch.ones(4, 2)
    gripper.set_commands(actions[:, -1])
    assert gripper.state.shape == (4,)
    for bad in (actions[:, -1:], actions[:, -1][None], actions, torch.ones(5)):
        with pytest.raises(ValueError, match=r"\(4,\)"):
            gripper.set_commands(bad)
    with pytest.raises(ValueError, match="5"):
        started(gap=0.05).task.gripper.set_commands([1.0] * 5)


def test_b39_bad_environment_ids_are_named_and_nothing_is_reset():
    env = holding(num_envs=4)
    gripper = env.task.gripper
    for bad in ([4], [-1], [-5]):
        with pytest.raises(IndexError, match=rf"{bad[0]}.*4"):
            gripper.reset(bad)
    with pytest.raises(TypeError):
        gripper.reset(torch.tensor([1, 0, 0, 0], dtype=torch.uint8))
    for bad in (4, -1):
        with pytest.raises(IndexError):
            gripper.is_closed(bad)
    assert gripper.state.tolist() == [1] * 4
    gripper.reset(torch.tensor([1, 1, 3]))
    assert gripper.state.tolist() == [1, -1, 1, -1]
    gripper.reset(range(1))
    assert gripper.state.tolist() == [-1, -1, 1, -1]
    gripper.reset(torch.tensor([False, False, True, False]))
    assert gripper.state.tolist() == [-1] * 4


def test_b43_a_column_of_the_actions_is_read_as_it_is_and_never_written():
    env = started(num_envs=4, gap=0.003)
    actions = torch.tensor([[9.0, 1.0], [9.0, -1.0], [9.0, 1.0], [9.0, 0.0]])
    for commands in (actions[:, 1], actions.flip(0)[:, 1], actions.to(torch.bfloat16)[:, 1]):
        env.reset()
        given = commands.clone()
        env.task.gripper.set_commands(commands)
        env.scene.flush()
        env.backend.step(10)
        env.task.gripper.update(env.dt)
        assert env.task.gripper.state.tolist() == [1 if c > 0 else -1 for c in given.tolist()]
        assert torch.equal(commands, given)
    env.reset()
    env.task.gripper.set_commands(torch.ones(1).expand(4))
    env.scene.flush()
    env.backend.step(10)
    env.task.gripper.update(env.dt)
    assert env.task.gripper.state.tolist() == [1] * 4


def test_a_refused_open_never_reaches_physics():
    env = holding(num_envs=2)
    run(env, 25, 1.0, 0.005, 0.05)
    everywhere, second = torch.tensor([True, True]), torch.tensor([False, True])
    env.task.robot.accept_commands(everywhere)
    env.task.gripper.set_command(-1.0)
    env.task.robot.restore_commands(second)
    env.scene.flush()
    env.backend.step(10)
    env.task.gripper.update(env.dt)
    assert env.task.gripper.state.tolist() == [-1, 1]
    assert env.task.gripper.gripped() == [None, "Block"]


def test_a_command_that_is_not_finite_stops_its_environment_at_the_gate():
    gate = simulo.CollisionGate("gantry", on_stop="terminate", world="none")
    env = started(num_envs=3, gap=0.003, gate=gate, validate_actions=False)
    actions = torch.tensor([[0.003, 1.0], [0.003, torch.nan], [0.003, 1.0]])
    *_, info = env.step(actions)
    assert list(info["stop"]) == [1]
    *_, info = env.step(torch.tensor([[0.003, 1.0]] * 3))
    assert info["stop"] == {}
    assert env.task.gripper.state.tolist() == [1, 1, 1]
    env = started(gap=0.003)
    with pytest.raises(ValueError, match="not finite"):
        env.task.gripper.set_command(float("nan"))
    ungated = started(num_envs=3, gap=0.003, validate_actions=False)
    with pytest.raises(ValueError, match=r"surface gripper's command in environment 1 is not finite"):
        ungated.step(actions)


def test_a_disabled_gripper_drops_commands_and_still_tells_its_state():
    env = holding()
    env.task.gripper.enabled = False
    run(env, 2, -1.0, 0.005)
    assert env.task.gripper.state.tolist() == [1]


# --- where it may hang -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/World/Robot/nose/Cup", r"'nose'.*no rigid body.*'cup'"),
        ("/World/Robot/Cup", "a whole robot"),
        ("/World/Block/Cup", r"'/World/Block'.*no link of a robot"),
        ("/World/Nothing/Cup", r"'/World/Nothing'.*no link of a robot"),
        ("/World/Cup", "no link of a robot"),
    ],
)
def test_an_anchor_that_is_no_rigid_body_of_a_robot_is_refused_by_name(path, reason):
    class Wrong(Cell):
        def build(self, scene):
            super().build(scene)
            scene.add(simulo.SurfaceGripperActuator(), at=path)

    with pytest.raises(ValueError, match=reason):
        simulo.LearningEnv(Wrong())


def test_add_actuator_takes_surface_grippers_on_links_before_the_scene_is_built():
    robot = simulo.Robot("gantry")
    gripper = simulo.SurfaceGripperActuator()
    with pytest.raises(ValueError, match=r"'nose'.*'head'"):
        robot.add_actuator(gripper, attach_to="nose")
    parallel = simulo.ParallelGripperActuator(robot, "plunger", open_width=0.0, closed_width=0.03)
    with pytest.raises(TypeError, match="on_start"):
        robot.add_actuator(parallel, attach_to="head")  # type: ignore[arg-type]
    robot.add_actuator(gripper, attach_to="head")
    with pytest.raises(ValueError, match="already"):
        robot.add_actuator(gripper, attach_to="cup")
    env = started()
    with pytest.raises(RuntimeError, match="built already"):
        env.task.robot.add_actuator(simulo.SurfaceGripperActuator(), attach_to="cup")


def test_before_the_scene_is_built_it_is_one_open_gripper_that_drops_commands():
    gripper = simulo.SurfaceGripperActuator()
    gripper.set_command(1.0)
    gripper.set_commands([1.0])
    with pytest.raises(ValueError, match="not attached yet"):
        gripper.set_commands([1.0, 1.0])
    gripper.update(0.02)
    gripper.reset()
    assert gripper.get_state() == [GripperState.OPEN]
    assert gripper.is_open()
    with pytest.raises(RuntimeError, match="not attached"):
        gripper.gripped()
    env = simulo.LearningEnv(Cell(), num_envs=3)
    assert env.task.gripper.get_state() == [GripperState.OPEN]
    assert env.task.gripper.state.tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_grip_distance", -0.01),
        ("max_grip_distance", float("inf")),
        ("coaxial_force_limit", float("nan")),
        ("shear_force_limit", -1.0),
        ("retry_interval", float("nan")),
        ("rearm_time", float("inf")),
        ("clearance_offset", -0.1),
        ("forward_axis", "w"),
        ("forward_axis", (0.0, 0.0, 0.0)),
        ("open_threshold", 0.5),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_name(option, value):
    with pytest.raises(ValueError, match=option):
        simulo.SurfaceGripperActuator(**{option: value})


def test_two_cups_on_one_head_hold_two_blocks():
    class Twins(Cell):
        def build(self, scene):
            super().build(scene)
            self.second = simulo.SurfaceGripperActuator(forward_axis="-z", tool_pose=simulo.Pose((0.0, 0.08, -0.05)))
            self.robot.add_actuator(self.second, attach_to="head")
            self.other = simulo.Prop.box(BLOCK, mass=0.5, pose=simulo.Pose((0.025, 0.08, STAND_TOP + BLOCK[2] / 2)))
            scene.add(self.other, at="/World/Other")

        def apply_actions(self, actions):
            super().apply_actions(actions)
            self.second.set_commands(actions[:, 1])

        def on_post_physics_step(self):
            super().on_post_physics_step()
            self.second.update(self.env.dt)

    env = simulo.LearningEnv(Twins(gap=0.003), num_envs=2)
    env.reset(seed=0)
    run(env, 2, 1.0, 0.003)
    run(env, 50, 1.0, 0.003, 0.05)
    assert env.task.gripper.gripped() == ["Block", "Block"]
    assert env.task.second.gripped() == ["Other", "Other"]
    assert (env.task.other.state.pose[:, 2] > STAND_TOP + 0.06).all()
    env.task.second.reset([0])
    run(env, 5, [0.0, 0.0], 0.05)
    assert env.task.second.gripped() == [None, "Other"]
    assert env.task.gripper.gripped() == ["Block", "Block"]


class Script:
    """A scripted pick: close, wait for the state to say so, lift."""

    simulation: simulo.Simulation

    def __init__(self):
        self.cell = Cell(gap=0.003)
        self.height = 0.003

    def build(self, scene):
        self.cell.build(scene)

    def on_start(self):
        cell = self.cell
        cell.block.set_pose(simulo.Pose((0.025, 0.0, STAND_TOP + BLOCK[2] / 2)))
        cell.robot.set_joint_positions(cell.joints(torch.full((1,), self.height)))

    def on_step(self):
        self.cell.gripper.set_command(simulo.GripperCommand.CLOSE)
        self.cell.gripper.update(self.simulation.dt)
        if self.cell.gripper.is_closed():
            self.height = min(self.height + 0.1 * self.simulation.dt, 0.053)
        self.cell.robot.set_joint_position_target(self.cell.joints(torch.tensor([self.height])))


@pytest.mark.parametrize("physics_dt", [0.0005, 0.002, 0.004])
def test_a_scripted_loop_at_any_physics_step(physics_dt):
    script = Script()
    simulation = simulo.Simulation(script, physics_dt=physics_dt)
    simulation.run(1.0)
    assert script.cell.gripper.gripped() == ["Block"]
    risen = float(script.cell.block.state.pose[0, 2]) - (STAND_TOP + BLOCK[2] / 2)
    assert risen == pytest.approx(0.050, abs=0.001)


# --- environments apart ----------------------------------------------------------------------------------------------


def trajectory(num_envs: int, lanes: int, monkeypatch, only: int | None = None) -> torch.Tensor:
    """Block poses of every step of environments that hold, drop and break at different times, (steps, N, 7)."""
    monkeypatch.setattr("simulo.backends.mujoco.worlds._cores", lambda: lanes)
    task = Cell(gap=0.002, mass=2.0, coaxial_force_limit=22.0)
    env = simulo.LearningEnv(task, num_envs=1 if only is not None else num_envs)
    env.reset(seed=0)
    mine = slice(None) if only is None else slice(only, only + 1)
    poses = []
    for step in range(60):
        lift = torch.arange(num_envs) * 0.0004 * max(step - 3, 0)
        command = torch.where(torch.arange(num_envs) == step // 10, -1.0, 1.0)
        env.step(torch.stack([0.002 + lift, command], dim=1)[mine])
        poses.append(env.task.block.state.pose)
    env.close()
    return torch.stack(poses)


def test_an_outcome_is_the_same_whichever_thread_steps_it_and_whatever_runs_beside_it(monkeypatch):
    together = trajectory(6, 4, monkeypatch)
    assert torch.equal(together, trajectory(6, 1, monkeypatch))
    assert torch.equal(together, trajectory(6, 4, monkeypatch)), "and again"
    for env in range(6):
        assert torch.equal(together[:, env : env + 1], trajectory(6, 1, monkeypatch, only=env))
    assert len({tuple(pose) for pose in together[-1].tolist()}) > 3, "they are not all the same"


def test_a_scene_without_surface_grippers_has_one_model_for_all_threads():
    class Bare(simulo.Task):
        observation_dim = action_dim = 5

        def build(self, scene):
            self.robot = simulo.Robot("gantry")
            scene.add(self.robot, at="/World/Robot")

    worlds = simulo.LearningEnv(Bare(), num_envs=3).backend._worlds
    assert all(model is worlds.model for model in worlds._models)


def test_the_held_block_and_its_cup_do_not_collide_and_do_again_once_apart():
    env = started(gap=0.0)
    run(env, 20, 0.0, 0.0, -0.001)

    def touching() -> bool:
        model, data = env.backend.model, env.backend.data[0]
        pair = {model.body("Robot/cup").id, model.body("Block").id}
        return any(set(model.geom_bodyid[c.geom].tolist()) == pair for c in data.contact)

    assert touching()
    run(env, 3, 1.0, -0.001)
    assert not touching()
    run(env, 3, -1.0, -0.001)
    assert touching()


def test_a_held_block_still_meets_everything_else():
    """The cup presses it 3 mm too deep: it stays above the stand, and on the cup."""
    env = holding(gap=0.003)
    run(env, 25, 1.0, 0.003, 0.02)
    run(env, 25, 1.0, 0.02, 0.0)
    assert env.task.block.state.pose[0, 2] - BLOCK[2] / 2 > STAND_TOP - 0.0015
    assert env.task.gripper.gripped() == ["Block"], "pushing is no pull"


def test_updates_at_one_physics_time_are_one_sample_and_time_is_a_time():
    env = started(gap=0.05, retry_interval=0.1)
    run(env, 2, 1.0, 0.05)
    for _ in range(20):
        env.task.gripper.update(env.dt)
    assert env.task.gripper.state.tolist() == [0]
    for bad in (-0.02, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="seconds"):
            env.task.gripper.update(bad)
