"""The surface gripper in MuJoCo: what it catches, what it holds, and what breaks it."""

import pytest
import torch

import simulo
from simulo.actuators import GripperState
from simulo.backends import BackendOptions, Capability, build_backend
from simulo.errors import BackendError
from simulo.props import Capsule, Cylinder, Hull, Sphere
from simulo.scene import Scene
from tests.actuators.suction_cell import BLOCK, STAND_TOP, Cell, holding, run, started

G = 9.81


# --- catching --------------------------------------------------------------------------------------------------------


def test_b01_an_object_5_mm_under_the_cup_is_caught_and_follows_a_lift():
    env = started(gap=0.005)
    states = run(env, 100, simulo.GripperCommand.CLOSE, 0.005)
    assert states[-1] == [GripperState.CLOSED]
    assert env.task.gripper.gripped() == ["Block"]
    before = env.task.block.state.pose[0, 2]
    run(env, 50, 0.0, 0.005, 0.055)
    run(env, 25, 0.0, 0.055)
    assert env.task.block.state.pose[0, 2] - before == pytest.approx(0.050, abs=0.001)


class CudaOnlyByName:
    """Stands for a simulator whose surface grippers work on the CPU alone."""

    @staticmethod
    def capabilities_on(device: torch.device) -> frozenset[Capability]:
        return frozenset({Capability.SURFACE_GRIPPERS}) if device.type == "cpu" else frozenset()

    def __init__(self, scene, options):
        raise AssertionError("what cannot be done is refused before anything is built")


class NowhereAtAll(CudaOnlyByName):
    @staticmethod
    def capabilities_on(device: torch.device) -> frozenset[Capability]:
        return frozenset()


@pytest.mark.parametrize(("stub", "remedy"), [("CudaOnlyByName", "device='cpu'"), ("NowhereAtAll", "backend='mujoco'")])
def test_b01_a_backend_without_surface_grippers_fails_at_build(monkeypatch, stub, remedy):
    monkeypatch.setitem(simulo.backends._BACKENDS, "isaaclab", (__name__, stub))
    scene = Scene()
    Cell().build(scene)
    options = BackendOptions(2, 0.002, 10, torch.device("cuda:0"))
    with pytest.raises(BackendError, match=rf"'isaaclab'.*'cuda:0'.*'cup' of robot 'Robot'.*{remedy}"):
        build_backend("isaaclab", scene, options)


def test_it_is_attached_where_it_is():
    """Neither snapped to the lip nor pushed away: 3 mm apart before, and 3 mm apart in the air."""
    env = started(gap=0.003)
    before = env.task.block_in_cup.clone()
    run(env, 2, 1.0, 0.003)
    assert (env.task.block_in_cup - before).norm() < 1e-4
    run(env, 50, 1.0, 0.003, 0.10)
    run(env, 25, 1.0, 0.10)
    assert (env.task.block_in_cup - before).norm() < 5e-4


@pytest.mark.parametrize(("gap", "caught"), [(0.0039, True), (0.0043, False)])
def test_only_a_surface_within_reach_is_caught(gap, caught):
    env = started(gap=gap, max_grip_distance=0.004)
    assert run(env, 20, 1.0, gap)[-1] == [GripperState.CLOSED if caught else GripperState.CLOSING]


def test_clearance_offset_moves_the_lip():
    env = started(gap=0.012, max_grip_distance=0.004, clearance_offset=0.009)
    assert run(env, 2, 1.0, 0.012)[-1] == [GripperState.CLOSED]


@pytest.mark.parametrize("axis", ["-z", "-Z", (0.0, 0.0, -2.0)])
def test_the_axis_by_letter_or_vector(axis):
    assert run(started(gap=0.003, forward_axis=axis), 2, 1.0, 0.003)[-1] == [1]


def test_a_cup_that_looks_the_other_way_finds_nothing():
    assert run(started(gap=0.003, forward_axis="z"), 2, 1.0, 0.003)[-1] == [0]


@pytest.mark.parametrize(
    "shape",
    [
        Sphere(0.025),
        Cylinder(0.02, 0.05),
        Capsule(0.015, 0.02),
        Hull(torch.cartesian_prod(*(torch.tensor([-0.025, 0.025]) for _ in range(3))).double().numpy()),
    ],
    ids=lambda shape: type(shape).__name__,
)
def test_every_shape_of_prop_is_caught(shape):
    env = started(gap=0.003, shape=shape)
    assert run(env, 2, 1.0, 0.003)[-1] == [1]
    run(env, 40, 1.0, 0.003, 0.05)
    assert env.task.block.state.pose[0, 2] > STAND_TOP + 0.06


def test_a_block_beside_the_cup_is_neither_caught_nor_held():
    env = started(gap=0.003, aside=0.035)
    run(env, 5, 1.0, 0.003)
    assert env.task.gripper.gripped() == [None]
    assert not env.task.gripper.held(env.task.block).any()
    before = env.task.block_in_cup.clone()
    run(env, 25, 1.0, 0.003, 0.05)
    assert (env.task.block_in_cup - before).norm() > 0.005, "the block's own motion agrees"


def test_what_is_held_stays_in_the_hand():
    env = holding(gap=0.001)
    assert env.task.gripper.held(env.task.block).all()
    before = env.task.block_in_cup.clone()
    run(env, 25, 0.0, 0.001, 0.10)
    assert (env.task.block_in_cup - before).norm() < 0.005


def test_a_fixed_prop_can_be_gripped():
    env = started(gap=0.003, fixed=True)
    run(env, 2, 1.0, 0.003)
    assert env.task.gripper.gripped() == ["Block"]


# --- the bond under load ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mass", "holds"), [(24.0 / G, True), (26.0 / G, False)])
def test_a_weight_over_the_coaxial_limit_breaks_the_bond(mass, holds):
    env = started(gap=0.002, mass=mass, coaxial_force_limit=25.0)
    run(env, 2, 1.0, 0.002)
    states = run(env, 300, 1.0, 0.002, 0.030)
    lifted = float(env.task.block.state.pose[0, 2]) - (STAND_TOP + BLOCK[2] / 2)
    assert (lifted > 0.015) == holds
    assert ([1] * 300 == [s for (s,) in states]) == holds


def test_the_state_says_so_within_one_update_of_the_break():
    """Truth is the weld in MuJoCo's own data."""
    env = started(gap=0.002, mass=4.0, coaxial_force_limit=25.0)
    run(env, 2, 1.0, 0.002)
    weld = env.backend.model.equality("Robot/bond0").id
    was_bonded = []
    for step in range(60):
        ((state,),) = run(env, 1, 1.0, 0.002 + 0.0005 * step)
        was_bonded.append(bool(env.backend.data[0].eq_active[weld]))
        assert state == (GripperState.CLOSED if was_bonded[-1] else GripperState.CLOSING)
        if not was_bonded[-1]:
            break
    assert was_bonded[0]
    assert not was_bonded[-1]


@pytest.mark.parametrize(("limit", "holds"), [(22.0, True), (17.0, False)])
def test_a_weight_across_the_axis_is_shear(limit, holds):
    """2 kg on a cup that looks sideways: 19.6 N across its axis and hardly any along it."""

    class Sideways(Cell):
        def reset_idx(self, env_ids):
            super().reset_idx(env_ids)
            x = 0.025 + 0.015 + 0.002 + BLOCK[0] / 2
            self.block.set_pose(simulo.Pose((x, 0.0, STAND_TOP + BLOCK[2] / 2)), env_ids)

    tool = simulo.Pose((0.015, 0.0, 0.008))
    task = Sideways(
        gap=-0.025, mass=2.0, forward_axis="x", tool_pose=tool, shear_force_limit=limit, coaxial_force_limit=1000.0
    )
    env = simulo.LearningEnv(task, num_envs=1)
    env.reset(seed=0)
    assert run(env, 2, 1.0, -0.025)[-1] == [1]
    run(env, 100, 1.0, -0.025, -0.005)
    lifted = float(env.task.block.state.pose[0, 2]) - (STAND_TOP + BLOCK[2] / 2)
    assert (lifted > 0.015) == holds


def test_pressing_is_no_load_before_nor_after_the_bond():
    """The lip is 1.5 mm too deep when it catches: its own pressure does not break a bond made for half the weight."""
    env = started(gap=0.0, mass=0.5, coaxial_force_limit=8.0)
    run(env, 20, 0.0, 0.0, -0.0015)
    assert run(env, 2, 1.0, -0.0015)[-1] == [1]
    assert {s for (s,) in run(env, 100, 1.0, -0.0015, 0.05)} == {1}
    assert env.task.block.state.pose[0, 2] > STAND_TOP + BLOCK[2] / 2 + 0.04


def test_a_body_that_broke_off_is_not_caught_again_within_the_rearm_time():
    """A block too heavy to lift stays where it is, within reach: caught, broken off, and caught again 0.1 s later."""
    env = started(gap=0.001, mass=1.0, coaxial_force_limit=4.0, retry_interval=5.0)
    run(env, 2, 1.0, 0.001)
    states = [s for (s,) in run(env, 60, 1.0, 0.001, 0.0025)]
    assert states[0] == 1
    broke = states.index(0)
    again = states.index(1, broke)
    assert again - broke == 6, "five updates of 0.02 s, and caught in the step after them"
    assert again < 60


def test_a_broken_bond_searches_for_the_retry_interval_and_then_gives_up():
    env = started(gap=0.001, mass=4.0, coaxial_force_limit=25.0, retry_interval=0.2)
    run(env, 2, 1.0, 0.001)
    states = [s for (s,) in run(env, 60, 1.0, 0.001, 0.30)]
    broke = states.index(0)
    assert states[broke : broke + 12] == [0] * 10 + [-1] * 2
