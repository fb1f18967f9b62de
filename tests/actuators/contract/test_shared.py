"""What both grippers have in common, asked of each: a task must not be able to tell them apart by their contract.

What a command asks for is read off the state alone: an open gripper that was told to close is not open, a closing one
that was told to open is open, and an idle command leaves either as it is.
"""

import inspect
import math

import numpy as np
import pytest
import torch

from simulo.actuators import GripperCommand, GripperState, ParallelGripperActuator, SurfaceGripperActuator
from tests.actuators.contract.rigs import RIGS, tick

OPEN, IDLE, CLOSE = -1, 0, 1


@pytest.fixture(params=sorted(RIGS))
def make(request):
    return RIGS[request.param]


def intents(make, give, num_envs: int) -> list[int]:
    """What `give(gripper)` asks of each environment."""
    opened, closing = make(num_envs), make(num_envs)
    closing.gripper.set_command(1.0)
    states = []
    for rig in (opened, closing):
        tick(rig)
        give(rig.gripper)
        states.append(rig.gripper.state.tolist())
    told = {(-1, -1): OPEN, (-1, 0): IDLE, (-1, 1): IDLE, (0, 0): CLOSE, (0, 1): CLOSE}
    return [told[pair] for pair in zip(*states, strict=True)]


def unchanged_by(make, num_envs: int, give, error: type[Exception], match: str) -> None:
    """`give` raises, and neither an open nor a closing gripper is the wiser."""
    opened, closing = make(num_envs), make(num_envs)
    closing.gripper.set_command(1.0)
    for rig in (opened, closing):
        before = tick(rig)
        targets = rig.robot.joint_position_targets.clone()
        with pytest.raises(error, match=match):
            give(rig.gripper)
        assert rig.gripper.state.tolist() == before
        assert torch.equal(rig.robot.joint_position_targets, targets)


def test_both_grippers_have_one_interface():
    shared = ("set_command", "set_commands", "get_state", "is_open", "is_closed", "update", "reset", "held")
    for name in shared:
        one, other = (
            inspect.signature(getattr(kind, name)) for kind in (ParallelGripperActuator, SurfaceGripperActuator)
        )
        assert one == other, name
    for name in ("state", "num_envs"):
        assert all(
            isinstance(inspect.getattr_static(k, name), property)
            for k in (ParallelGripperActuator, SurfaceGripperActuator)
        )
    constructors = [inspect.signature(k).parameters for k in (ParallelGripperActuator, SurfaceGripperActuator)]
    for name in ("open_threshold", "close_threshold", "path", "enabled"):
        assert constructors[0][name] == constructors[1][name]


def test_one_script_serves_both_grippers():
    """The same calls and, with something to close on, the same states."""

    def script(rig) -> list[list[int]]:
        gripper, seen = rig.gripper, [tick(rig)]
        for command in (GripperCommand.CLOSE, IDLE, -0.5, 0.4):
            gripper.set_command(command)
            seen.append(tick(rig, 3))
        gripper.set_commands([GripperCommand.OPEN, 0.3, 1])
        seen.append(tick(rig, 3))
        gripper.reset([2])
        seen.append(gripper.state.tolist())
        seen.append([gripper.is_open(0), gripper.is_closed(1), gripper.is_closed(2)])
        return seen

    parallel, surface = (script(make(3)) for make in RIGS.values())
    assert parallel == surface
    assert parallel[-3:] == [[-1, 1, 1], [-1, 1, -1], [True, True, False]]


# --- commands ---------------------------------------------------------------------------------------------------------


def test_b03_the_table_of_commands(make):
    """Between and on the thresholds is idle, what overshoots [-1, 1] is not clamped, and the polarity is one."""
    commands = [-1, -0.31, -0.3, 0, 0.3, 0.31, 1, -50.0, 1e30, *GripperCommand]
    expected = [OPEN, OPEN, IDLE, IDLE, IDLE, CLOSE, CLOSE, OPEN, CLOSE, OPEN, IDLE, CLOSE]
    count = len(commands)
    assert intents(make, lambda g: g.set_commands(commands), count) == expected
    for dtype in (torch.float64, torch.float32):
        column = torch.tensor([float(c) for c in commands], dtype=dtype)
        assert intents(make, lambda g, column=column: g.set_commands(column), count) == expected
        assert intents(make, lambda g, column=column: g.set_commands(column.numpy()), count) == expected
    for command, intent in zip(commands, expected, strict=True):
        assert intents(make, lambda g, command=command: g.set_command(command), 2) == [intent, intent]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_b03_thresholds_are_idle_in_the_precision_they_come_in(make, dtype):
    column = torch.tensor([0.3, -0.3], dtype=dtype)
    assert intents(make, lambda g: g.set_commands(column), 2) == [IDLE, IDLE]
    assert intents(make, lambda g: g.set_commands(list(column)), 2) == [IDLE, IDLE]
    for scalar in column:
        assert intents(make, lambda g, scalar=scalar: g.set_command(scalar), 1) == [IDLE]


def test_thresholds_may_lie_anywhere_and_numbers_be_of_any_size(make):
    def asked(commands) -> list[int]:
        def give(gripper):
            gripper.open_threshold, gripper.close_threshold = -50.0, 1e5
            gripper.set_commands(commands)

        return intents(make, give, len(commands))

    values = [-51.0, -50.0, 1e5, 1.1e5, 1e300, -1e300]
    expected = [OPEN, IDLE, IDLE, CLOSE, CLOSE, OPEN]
    assert asked(values) == asked(np.array(values)) == asked(torch.tensor(values, dtype=torch.float64)) == expected
    integers = [-51, -50, 100_000, 110_000, 10**400, -(10**400)]
    assert asked(integers) == expected
    assert asked(np.array(integers[:4])) == asked(torch.tensor(integers[:4])) == expected[:4]
    halves = np.array([-51.0, -50.0, 65504.0, 0.0], dtype=np.float16)  # none of which lies above that threshold
    assert asked(halves) == asked(list(halves)) == asked(torch.from_numpy(halves)) == [OPEN, IDLE, IDLE, IDLE]


@pytest.mark.parametrize("wrong", [True, False, np.True_, torch.tensor(False)])
def test_b03_bools_are_refused_naming_the_trap(make, wrong):
    unchanged_by(make, 1, lambda g: g.set_command(wrong), TypeError, "True often means open")
    unchanged_by(make, 2, lambda g: g.set_commands([1.0, wrong]), TypeError, "True often means open")
    unchanged_by(make, 2, lambda g: g.set_commands(torch.tensor([True, False])), TypeError, "True often means open")


@pytest.mark.parametrize("wrong", list(GripperState))
def test_states_are_refused_as_commands(make, wrong):
    unchanged_by(make, 1, lambda g: g.set_command(wrong), TypeError, "a state to read")
    unchanged_by(make, 2, lambda g: g.set_commands([1.0, wrong]), TypeError, "a state to read")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_naming_environments(make, bad):
    values = [1.0, *[bad] * 10, -1.0]
    for commands in (values, torch.tensor(values), torch.tensor(values, dtype=torch.bfloat16), np.array(values)):
        named = r"environments \[1, 2, 3, 4, 5, 6, 7, 8\] and 2 more"
        unchanged_by(make, 12, lambda g, commands=commands: g.set_commands(commands), ValueError, named)
    unchanged_by(make, 2, lambda g: g.set_command(bad), ValueError, r"environments \[0, 1\]")
    named = r"environments \[0, 1, 2, 3, 4, 5, 6, 7\] and 4 more"
    unchanged_by(make, 12, lambda g: g.set_command(torch.tensor(bad)), ValueError, named)


@pytest.mark.parametrize("shape", [(4, 1), (1, 4), (4, 2), (5,), (3,), (0,), ()])
def test_b34_any_other_shape_is_refused_by_name(make, shape):
    for commands in (torch.ones(shape), np.ones(shape)):
        unchanged_by(
            make, 4, lambda g, c=commands: g.set_commands(c), ValueError, r"\(4,\) for 4 env.*actions\[:, -1\]"
        )
    actions = torch.ones(4, 3)
    assert intents(make, lambda g: g.set_commands(actions[:, -1]), 4) == [CLOSE] * 4


def test_b34_one_environment_is_no_exception(make):
    for commands in (torch.ones(5), [1.0] * 5, []):
        unchanged_by(make, 1, lambda g, c=commands: g.set_commands(c), ValueError, "for 1 environments")
    unchanged_by(make, 1, lambda g: g.set_command([1.0, 1.0]), ValueError, "set_commands")


def test_b43_views_equal_their_copies_and_are_not_written(make):
    table = (torch.arange(12.0).view(4, 3) - 6) / 6
    before = table.clone()
    for view in (table[:, -1], table.flip(0)[:, 0], table[:1, 0].expand(4), table.half()[:, 1]):
        copied = view.clone().contiguous()
        with_copy = intents(make, lambda g, copied=copied: g.set_commands(copied), 4)
        assert intents(make, lambda g, view=view: g.set_commands(view), 4) == with_copy
    assert torch.equal(table, before)
    assert intents(make, lambda g: g.set_commands(torch.arange(-2.0, 2.0).view(4, 1)[:, 0]), 4) == [-1, -1, 0, 1]


def test_idle_leaves_an_environment_alone_while_others_are_commanded(make):
    rig = make(4)
    rig.gripper.set_commands([1.0, 1.0, -1.0, 0.0])
    assert tick(rig, 3) == [1, 1, -1, -1]
    targets = rig.robot.joint_position_targets.clone()
    rig.gripper.set_commands([0.0, -1.0, 0.0, 1.0])
    assert torch.equal(rig.robot.joint_position_targets[[0, 2]], targets[[0, 2]])
    assert tick(rig, 3) == [1, -1, -1, 1]


def test_a_disabled_gripper_drops_commands_and_still_tells_its_state(make):
    rig = make(2)
    rig.gripper.set_commands([1.0, 0.0])
    rig.gripper.enabled = False
    rig.gripper.set_commands([-1.0, 1.0])
    assert tick(rig, 3) == [1, -1]
    rig.gripper.enabled = True
    rig.gripper.set_command(-1.0)
    assert rig.gripper.state.tolist() == [-1, -1]


# --- environments -----------------------------------------------------------------------------------------------------


def closed(make, num_envs: int):
    rig = make(num_envs)
    rig.gripper.set_command(1.0)
    assert tick(rig, 3) == [1] * num_envs
    return rig


@pytest.mark.parametrize(
    ("ids", "opened"),
    [
        (None, [0, 1, 2, 3]),
        ([], []),
        ([2], [2]),
        ([2, 2, 0], [0, 2]),
        (range(1, 3), [1, 2]),
        (3, [3]),
        (np.array([0, 3]), [0, 3]),
        (torch.tensor([1], dtype=torch.int32), [1]),
        (torch.tensor([False, True, False, True]), [1, 3]),
        (torch.zeros(4, dtype=torch.bool), []),
    ],
)
def test_b05_b39_a_reset_opens_the_environments_it_names_and_no_other(make, ids, opened):
    rig = closed(make, 4)
    targets = rig.robot.joint_position_targets.clone()
    rig.gripper.reset(ids)
    expected = [-1 if env in opened else 1 for env in range(4)]
    assert rig.gripper.state.tolist() == expected
    assert tick(rig, 3) == expected
    others = [env for env in range(4) if env not in opened]
    assert torch.equal(rig.robot.joint_position_targets[others], targets[others])


@pytest.mark.parametrize("bad", [4, -1, -5])
def test_b39_an_id_outside_is_named_and_nothing_is_reset(make, bad):
    for ids in ([bad], [0, bad], torch.tensor([1, bad]), np.array([bad]), bad):
        rig = closed(make, 4)
        with pytest.raises(IndexError, match=rf"{bad} is outside \[0, 4\).*num_envs=4"):
            rig.gripper.reset(ids)
        assert rig.gripper.state.tolist() == [1] * 4


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        (torch.ones(3, dtype=torch.bool), IndexError),
        (torch.ones(4, dtype=torch.uint8), TypeError),
        (torch.ones(4), TypeError),
        ([0.0], TypeError),
        (True, TypeError),
    ],
)
def test_b39_what_may_be_a_mask_or_not_is_refused(make, ids, error):
    rig = closed(make, 4)
    with pytest.raises(error):
        rig.gripper.reset(ids)
    assert rig.gripper.state.tolist() == [1] * 4


@pytest.mark.parametrize("instance", [2, -1])
def test_b39_one_environment_is_asked_by_its_own_number(make, instance):
    rig = make(2)
    for ask in (rig.gripper.is_open, rig.gripper.is_closed):
        with pytest.raises(IndexError, match=r"\[0, 2\)"):
            ask(instance)


# --- life -------------------------------------------------------------------------------------------------------------


def test_before_attach_a_gripper_drops_commands_and_reads_one_open(make):
    rig = make(3, attached=False)
    gripper = rig.gripper
    gripper.set_command(1.0)
    gripper.set_commands([1.0])
    for commands in ([1.0, 1.0, 1.0], torch.ones(3)):
        with pytest.raises(ValueError, match="not attached yet"):
            gripper.set_commands(commands)
    gripper.update(0.02)
    gripper.reset()
    assert (gripper.num_envs, gripper.get_state(), gripper.is_open()) == (1, [GripperState.OPEN], True)
    rig.attach()
    assert (gripper.num_envs, gripper.get_state(), gripper.state.tolist()) == (3, [GripperState.OPEN], [-1, -1, -1])
    assert tick(rig, 3) == [-1, -1, -1]  # nothing was kept to be played later


def test_one_open_stands_for_all_until_an_update(make):
    rig = make(3)
    rig.gripper.set_command(1.0)
    assert rig.gripper.get_state() == [GripperState.OPEN]
    assert rig.gripper.state.tolist() == [-1, -1, -1]
    rig.gripper.update(0.02)
    assert rig.gripper.get_state() == [GripperState.CLOSING] * 3
    assert rig.gripper.state.dtype == torch.int8


def test_a_state_that_was_read_is_the_readers(make):
    rig = closed(make, 2)
    state = rig.gripper.state
    state[:] = 0
    assert rig.gripper.state.tolist() == [1, 1]
    kept = rig.gripper.state
    rig.gripper.set_command(-1.0)
    assert kept.tolist() == [1, 1]


def test_updates_at_one_physics_time_are_one_sample(make):
    """Two samples close the jaws; and a search of 0.1 s is not over in one step, however often one looks."""
    rig = make(1)
    rig.gripper.set_command(1.0)
    if hasattr(rig, "bonds"):
        rig.bonds.within_reach[:] = -1
    rig.step()
    for _ in range(100):
        rig.gripper.update(0.02)
    assert rig.gripper.state.tolist() == [0]


def test_closed_sticks_over_idle_and_close_commands(make):
    rig = closed(make, 2)
    for command in (IDLE, CLOSE, IDLE, 0.3, CLOSE):
        rig.gripper.set_command(command)
        assert rig.gripper.state.tolist() == [1, 1]
        assert tick(rig, 2) == [1, 1]


def test_a_refused_command_was_never_given(make):
    rig = make(3)
    everyone, first = torch.ones(3, dtype=torch.bool), torch.tensor([True, False, False])
    rig.gripper.set_commands([1.0, 1.0, 0.0])
    rig.robot.accept_commands(everyone)
    assert tick(rig, 3) == [1, 1, -1]
    rig.gripper.set_commands([-1.0, -1.0, 1.0])
    rig.robot.restore_commands(first | torch.tensor([False, False, True]))
    rig.robot.accept_commands(torch.tensor([False, True, False]))
    assert rig.gripper.state.tolist() == [1, -1, -1]
    assert tick(rig, 3) == [1, -1, -1]


def test_a_command_that_is_not_finite_and_not_refused_is_for_the_gate_to_stop(make):
    """Never a quiet idle: it shows in what the robot is about to be told, in that environment alone."""
    rig = make(3)
    rig.robot.refuses_bad_commands = False
    rig.gripper.set_commands([1.0, math.nan, 0.0])
    told = rig.robot.commanded_positions()
    assert torch.isfinite(told[[0, 2]]).all()
    assert not torch.isfinite(told[1]).all()
    rig.robot.restore_commands(torch.tensor([False, True, False]))
    assert torch.isfinite(rig.robot.commanded_positions()).all()
    assert tick(rig, 3) == [1, -1, -1]
