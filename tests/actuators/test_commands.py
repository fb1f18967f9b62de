"""What counts as a gripper command (B03, B34, B43), with targets as the witness."""

import math

import numpy as np
import pytest
import torch

from simulo.actuators import GripperCommand, GripperState, ParallelGripperActuator
from tests.sdk.fakes import attached, two_finger_description

OPEN, IDLE, CLOSE = -1, 0, 1
HALF_OPEN = 0.02


def gripper(num_envs: int, **options) -> ParallelGripperActuator:
    robot, _ = attached(two_finger_description(coupled=False), num_envs)
    made = ParallelGripperActuator(robot, "finger.", **options)
    robot.set_joint_position_target([HALF_OPEN, HALF_OPEN], joint_ids=[1, 2])
    return made


def intents(made: ParallelGripperActuator) -> list[int]:
    """What the fingers were told, read off their targets."""
    told = {0.04: OPEN, HALF_OPEN: IDLE, 0.0: CLOSE}
    return [told[round(float(target), 4)] for target in made.robot.joint_position_targets[:, 1]]


@pytest.mark.parametrize(
    ("command", "intent"),
    [
        (-1, OPEN),
        (-0.31, OPEN),
        (-0.3, IDLE),
        (0, IDLE),
        (0.3, IDLE),
        (0.31, CLOSE),
        (1, CLOSE),
        (GripperCommand.OPEN, OPEN),
        (GripperCommand.IDLE, IDLE),
        (GripperCommand.CLOSE, CLOSE),
        (-7.5, OPEN),
        (1e300, CLOSE),
        (10**30, CLOSE),
        (-(10**30), OPEN),
    ],
)
def test_b03_the_table_of_commands_on_every_path(command, intent):
    paths = [lambda g: g.set_command(command), lambda g: g.set_commands([command, command])]
    if abs(command) < 1e3:
        value = float(command)
        for make in (torch.tensor, np.array):
            double, single = (torch.float64, torch.float32) if make is torch.tensor else (np.float64, np.float32)
            for dtype in (double, single):
                paths.append(lambda g, make=make, dtype=dtype: g.set_command(make(value, dtype=dtype)))
                paths.append(lambda g, make=make, dtype=dtype: g.set_commands(make([value, value], dtype=dtype)))
    for path in paths:
        made = gripper(2)
        path(made)
        assert intents(made) == [intent, intent]


@pytest.mark.parametrize("sign", [1, -1])
def test_the_thresholds_themselves_are_idle_in_every_precision(sign):
    value = sign * 0.3
    scalars = [value, np.float64(value), np.float32(value), np.float16(value)]
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        scalars.append(torch.tensor(value, dtype=dtype))
        made = gripper(2)
        made.set_commands(torch.tensor([value, value], dtype=dtype))
        made.set_command(torch.tensor([value], dtype=dtype))
        assert intents(made) == [IDLE, IDLE]
        made.set_commands(torch.tensor([sign, -sign], dtype=dtype))
        assert intents(made) == [sign, -sign]
    for scalar in scalars:
        made = gripper(2)
        made.set_command(scalar)
        made.set_commands([scalar, scalar])
        assert intents(made) == [IDLE, IDLE]
    made = gripper(1)  # a half that its owner made a float is the larger number that half was
    made.set_command(float(torch.tensor(value, dtype=torch.float16)))
    assert intents(made) == [sign]


def test_numpy_numbers_are_compared_as_singles_one_by_one_and_in_an_array():
    single = float(np.float32(0.3))  # as a double, it is above 0.3
    for commands in ([single, -single], [np.float64(single), np.float64(-single)], np.array([single, -single])):
        made = gripper(2)
        made.set_commands(commands)
        assert intents(made) == [IDLE, IDLE]
    made = gripper(3)
    made.set_commands(np.array([1, 0, -1], dtype=np.int16)[::-1])
    assert intents(made) == [OPEN, IDLE, CLOSE]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_unvalidated_commands_that_are_not_finite_become_targets_that_are_not(bad):
    """Never an idle: what stands between the robot and physics is to see them, in those environments alone."""
    values = [1.0, bad, 0.0, -1.0]
    tensor, half = torch.tensor(values), torch.tensor(values, dtype=torch.float16)
    for commands in (values, tensor, half, np.array(values), np.array(values, dtype=np.float32)):
        made = gripper(4)
        made.robot.refuses_bad_commands = False
        made.set_commands([0.0, 1.0, 0.0, 0.0])
        made.set_commands(commands)
        targets = made.robot.joint_position_targets[:, 1:]
        assert torch.isnan(targets[1]).all() and torch.isfinite(targets[[0, 2, 3]]).all()
        assert targets[[0, 2, 3], 0].tolist() == pytest.approx([0.0, HALF_OPEN, 0.04])
        made.robot._bound.articulation.physics_tick += 1
        made.update(0.02)
        assert made.state.tolist() == [0, 0, -1, -1]  # it is still under the close command of before
    made.set_command(bad)
    assert torch.isnan(made.robot.joint_position_targets[:, 1:]).all()


def test_mixed_lists_and_integer_tensors():
    made = gripper(5)
    made.set_commands([GripperCommand.CLOSE, -1, 0.0, np.float32(0.9), torch.tensor(-0.9, dtype=torch.bfloat16)])
    assert intents(made) == [CLOSE, OPEN, IDLE, CLOSE, OPEN]
    for dtype in (torch.int8, torch.int32, torch.int64):
        made = gripper(3)
        made.set_commands(torch.tensor([1, 0, -1], dtype=dtype))
        assert intents(made) == [CLOSE, IDLE, OPEN]


@pytest.mark.parametrize("wrong", [True, False, np.True_, torch.tensor(True), torch.tensor([True]), np.array([True])])
def test_b03_bools_are_refused_naming_the_trap(wrong):
    made = gripper(1)
    with pytest.raises(TypeError, match="True often means open"):
        made.set_command(wrong)
    for commands in ([wrong], torch.tensor([True]), np.array([False])):
        if np.ndim(wrong) == 0 or not isinstance(commands, list):
            with pytest.raises(TypeError, match="True often means open"):
                made.set_commands(commands)
    assert intents(made) == [IDLE]


@pytest.mark.parametrize("wrong", list(GripperState))
def test_a_state_is_no_command(wrong):
    made = gripper(2)
    with pytest.raises(TypeError, match="a state to read"):
        made.set_command(wrong)
    with pytest.raises(TypeError, match="a state to read"):
        made.set_commands([1.0, wrong])
    assert intents(made) == [IDLE, IDLE]


@pytest.mark.parametrize("wrong", ["close", b"\x01", None, 1j, {"close": 1}, object()])
def test_other_things_are_no_commands(wrong):
    made = gripper(1)
    with pytest.raises(TypeError):
        made.set_command(wrong)
    with pytest.raises(TypeError):
        made.set_commands([wrong])
    with pytest.raises(TypeError):
        made.set_commands(wrong)


def test_complex_tensors_are_no_commands():
    made, wrong = gripper(1), torch.tensor(1j)
    for command in (
        lambda: made.set_command(wrong),
        lambda: made.set_commands([wrong]),
        lambda: made.set_commands(wrong[None]),
    ):
        with pytest.raises(TypeError, match="complex"):
            command()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_commands_that_are_not_finite_name_environments_and_change_nothing(bad):
    made = gripper(12)
    values = [1.0] + [bad] * 10 + [1.0]
    for commands in (values, torch.tensor(values), torch.tensor(values, dtype=torch.float16), np.array(values)):
        with pytest.raises(ValueError, match=r"environments \[1, 2, 3, 4, 5, 6, 7, 8\] and 2 more"):
            made.set_commands(commands)
    with pytest.raises(ValueError, match="not finite"):
        made.set_command(bad)
    assert intents(made) == [IDLE] * 12
    made.robot._bound.articulation.physics_tick += 1
    made.update(0.02)
    assert made.state.tolist() == [GripperState.OPEN] * 12


@pytest.mark.parametrize("shape", [(4, 1), (1, 4), (4, 2), (5,), (3,), (), (0,), (4, 1, 1)])
def test_b34_every_shape_but_one_value_per_environment_is_named(shape):
    made = gripper(4)
    for commands in (torch.ones(shape), np.ones(shape)):
        with pytest.raises(ValueError, match=r"shape \(4,\) for 4 environments.*actions\[:, -1\]"):
            made.set_commands(commands)
    assert intents(made) == [IDLE] * 4
    actions = torch.ones(4, 3)
    made.set_commands(actions[:, -1])
    assert intents(made) == [CLOSE] * 4
    assert made.robot.joint_position_targets.shape == (4, 3)


def test_b34_one_environment_is_no_exception():
    made = gripper(1)
    for commands in (torch.ones(5), [1.0] * 5, torch.ones(1, 1), []):
        with pytest.raises(ValueError, match=r"for 1 environments"):
            made.set_commands(commands)
    with pytest.raises(ValueError, match="set_commands"):
        made.set_command(torch.ones(2))
    with pytest.raises(ValueError, match="set_commands"):
        made.set_command([1.0, 1.0])
    with pytest.raises(ValueError):
        made.set_command(torch.ones(0))
    with pytest.raises(ValueError):
        made.set_commands([[1.0]])
    made.set_command(torch.ones(1, 1))
    assert intents(made) == [CLOSE]


def test_b43_strided_views_equal_their_copies_and_are_not_written():
    table = (torch.arange(12.0).view(4, 3) - 6) / 6
    before = table.clone()
    views = [table[:, -1], table[:, 1:][:, 0], table.flip(0)[:, 0], table[:1, 0].expand(4), table.half()[:, 1]]
    for view in views:
        with_view, with_copy = gripper(4), gripper(4)
        with_view.set_commands(view)
        with_copy.set_commands(view.clone().contiguous())
        assert intents(with_view) == intents(with_copy)
    assert torch.equal(table, before)


def test_other_thresholds_decide():
    made = gripper(3, open_threshold=0.0, close_threshold=0.8)
    made.set_commands([-0.1, 0.7, 0.9])
    assert intents(made) == [OPEN, IDLE, CLOSE]
