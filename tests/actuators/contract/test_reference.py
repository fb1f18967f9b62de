"""The published contract of the parallel gripper, sentence by sentence: what each says, and the test that holds it.

Sentences are retold in our own words, in the order of the document. The tests here use a simulator whose readings the
test dictates, as do those in test_reference_life.py; those about physics are in test_reference_physics.py, those about
both grippers in test_shared.py, and others stand in the files that they belong to.

Opening
- it sends position targets to finger joints: test_its_commands_are_what_one_would_write_by_hand
- both actuators take the same commands and tell the same states: test_both_grippers_have_one_interface
- a task is written once for either, but for the line that makes it: test_one_script_serves_both_grippers,
  test_one_task_lifts_with_jaws_and_with_a_cup
- it spares the task the widths: test_its_commands_are_what_one_would_write_by_hand

Command interface
- under the open threshold, open; over the close threshold, close; between and on them, stay as commanded:
  test_b03_the_table_of_commands_on_every_path, test_the_thresholds_themselves_are_idle_in_every_precision,
  test_idle_never_rewrites_targets_also_when_others_are_commanded
- a name or a number: test_b03_the_table_of_commands_on_every_path
- one for all, or one each, a tensor's column as it is: test_one_command_reaches_every_environment,
  test_b43_strided_views_equal_their_copies_and_are_not_written

State interface
- one state per environment: test_every_environment_has_a_state_of_its_own
- told from the fingers alone: test_the_state_is_told_from_finger_joints_alone
- CLOSING until CLOSED, while the last command that was not idle is a close: test_closing_lasts_until_closed
- CLOSED: all speeds at most the tolerance, all fingers farther from open than the tolerance, two updates running:
  test_b04_a_stall_is_two_quiet_samples_in_a_row, test_on_the_tolerance_a_speed_is_rest_and_a_distance_is_not_travel
- stopping counts, not arriving: test_what_stops_short_of_closed_is_closed
- OPEN otherwise: test_open_is_everything_else

Three details
- every finger, not the mean: test_every_finger_must_leave_open_and_stop_not_their_average
- two updates, for a swing stops as it turns: test_a_swinging_finger_is_not_closed_as_it_turns
- CLOSED stays until opened or reset: test_closed_sticks_through_wobble_and_idle_until_opened_or_reset,
  test_a_wobble_that_flips_a_state_without_memory_flips_nothing

What CLOSED does not mean
- nothing held, something in the way, and a block are all CLOSED: test_air_an_obstacle_and_a_block_all_stop_the_fingers
- whoever wants to know looks at the object: test_air_an_obstacle_and_a_block_all_stop_the_fingers

No OPENING
- there is no such state: test_there_are_three_states
- OPEN at once, fingers still travelling; only closing waits for them: test_open_is_told_before_the_fingers_arrive

Example
- it runs: test_the_published_task_runs

Backend mapping
- nothing is added to the simulation: test_it_adds_nothing_to_the_simulation
- it is two joints of the robot, and writes through the robot's own targets:
  test_its_commands_are_what_one_would_write_by_hand

Consequences
- it is added to no scene and no robot, and both say so: test_it_is_refused_by_a_scene_and_by_a_robot
- it is made in on_start, or lies idle until then: test_before_attach_commands_are_dropped_and_the_state_is_one_open
- commands wait for the flush before physics: test_commands_wait_for_the_flush
- nothing else should drive the fingers: test_another_writer_has_the_last_word_until_the_next_command

Attributes
- all there, as they were given: test_the_constructor_is_the_published_one, test_arguments_are_attributes
- a new pattern counts from the next command or update:
  test_a_bad_pattern_raises_at_first_use_and_a_new_one_is_resolved_again

Note
- assigned values count from the next use, and are not checked again: test_assigned_values_count_from_the_next_use,
  test_assigned_values_are_not_checked_again
- before attach, commands are dropped for good, and the state is one OPEN where robot.state raises:
  test_before_attach_commands_are_dropped_and_the_state_is_one_open, test_before_attach_the_robots_state_raises
- the scripted example closes, waits and lifts: test_the_published_script_lifts_the_block

set_command
- reaches every environment: test_one_command_reaches_every_environment
- more than one value is a ValueError that names the other method, a GripperState a TypeError:
  test_b34_one_environment_is_no_exception, test_a_state_is_no_command

set_commands
- names and numbers mix, tensors pass: test_mixed_lists_and_integer_tensors
- any wrong count is a ValueError, with one environment and before attach too: test_b34_one_environment_is_no_exception,
  test_b34_every_shape_but_one_value_per_environment_is_named,
  test_before_attach_commands_are_dropped_and_the_state_is_one_open
- a GripperState among them is a TypeError: test_a_state_is_no_command

get_state
- -1, 0, 1 as above: test_there_are_three_states
- one OPEN until the first update, then one each: test_one_open_stands_for_all_until_the_first_update

is_open, is_closed
- of one environment, the first by default: test_is_open_and_is_closed_ask_one_environment
- open is not being under a close command, at once: test_open_is_told_before_the_fingers_arrive
- closed is stopped away from open: test_what_stops_short_of_closed_is_closed

update
- the time step is taken and not used: test_the_time_step_changes_nothing

reset
- clears the memory and drives the fingers open: test_reset_opens_the_fingers_and_forgets
- ids as a tensor or a list, or None for all: test_reset_takes_a_tensor_a_list_or_none
- no reset of the scene reaches it: test_resetting_the_scene_does_not_reach_it
- without ids it opens everything, with them one: test_one_reset_among_2048_held_blocks_drops_one
"""

import itertools
import math
import re
from pathlib import Path

import pytest
import torch

from simulo.actuators import GripperCommand, GripperState
from tests.actuators.contract.rigs import Jaws
from tests.sdk.fakes import attached, two_finger_description

CLOSE, OPEN, IDLE = GripperCommand.CLOSE, GripperCommand.OPEN, GripperCommand.IDLE


def test_the_list_above_names_tests_that_exist() -> None:
    listed = set(re.findall(r"\btest_\w+\b(?!\.py)", __doc__))
    folder = Path(__file__).parents[1]
    written = {
        name for file in folder.rglob("test_*.py") for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)
    }
    assert listed - written == set()
    assert len(listed) > 40


# --- opening, command interface ---------------------------------------------------------------------------------------


def test_its_commands_are_what_one_would_write_by_hand():
    by_hand, _ = attached(two_finger_description(coupled=False), 2)
    by_hand.set_joint_position_target([0.04, 0.04], joint_ids=by_hand.find_joints("finger.*"))
    made = Jaws(2)
    made.gripper.set_command(OPEN)
    assert torch.equal(made.robot.joint_position_targets, by_hand.joint_position_targets)
    by_hand.set_joint_position_target([0.0, 0.0], joint_ids=by_hand.find_joints("finger.*"))
    made.gripper.set_command(CLOSE)
    assert torch.equal(made.robot.joint_position_targets, by_hand.joint_position_targets)


def test_one_command_reaches_every_environment():
    made = Jaws(3)
    made.gripper.set_command(OPEN)
    assert made.targets == [[0.04, 0.04]] * 3
    made.gripper.set_command(0.9)
    assert made.targets == [[0.0, 0.0]] * 3
    made.gripper.set_commands([OPEN, IDLE, -0.5])
    assert made.targets == [[0.04, 0.04], [0.0, 0.0], [0.04, 0.04]]


# --- state interface --------------------------------------------------------------------------------------------------


def test_there_are_three_states():
    assert {state.name: int(state) for state in GripperState} == {"OPEN": -1, "CLOSING": 0, "CLOSED": 1}
    assert {command.name: float(command) for command in GripperCommand} == {"OPEN": -1.0, "IDLE": 0.0, "CLOSE": 1.0}


def test_every_environment_has_a_state_of_its_own():
    made = Jaws(3)
    made.gripper.set_commands([CLOSE, CLOSE, OPEN])
    for _ in range(2):
        made.sample(0.02, [[0.0, 0.0], [0.05, 0.05], [0.0, 0.0]])
    assert made.gripper.get_state() == [GripperState.CLOSED, GripperState.CLOSING, GripperState.OPEN]
    assert all(isinstance(state, GripperState) for state in made.gripper.get_state())


def test_the_state_is_told_from_finger_joints_alone():
    """The lift may race and contacts cannot even be read here; the answer is the same."""
    calm, racing = Jaws(), Jaws()
    racing.articulation.velocities[:, 0] = 5.0
    for made in (calm, racing):
        made.gripper.set_command(CLOSE)
    readings = [(0.03, 0.05), (0.02, 0.0), (0.02, 0.0)]
    assert [calm.sample(*reading) for reading in readings] == [racing.sample(*reading) for reading in readings]


def test_closing_lasts_until_closed():
    made = Jaws()
    made.gripper.set_command(CLOSE)
    assert made.sample(0.03, 0.05) == [GripperState.CLOSING]
    made.gripper.set_command(IDLE)
    assert made.sample(0.02, 0.05) == [GripperState.CLOSING]
    assert made.sample(0.02, 0.0) == [GripperState.CLOSING]
    made.gripper.set_command(CLOSE)
    assert made.sample(0.02, 0.0) == [GripperState.CLOSED]


def test_on_the_tolerance_a_speed_is_rest_and_a_distance_is_not_travel():
    at_rest = Jaws(velocity_tolerance=0.0078125, position_tolerance=0.0078125, open_width=0.03125)  # exact in binary
    at_rest.gripper.set_command(CLOSE)
    assert [at_rest.sample(0.015625, [0.0078125, -0.0078125])[0] for _ in range(2)] == [0, 1]
    for speed in (math.nextafter(0.0078125, 1.0) + 1e-8, -0.00782):
        moving = Jaws(velocity_tolerance=0.0078125)
        moving.gripper.set_command(CLOSE)
        assert [moving.sample(0.02, [0.0, speed])[0] for _ in range(3)] == [0, 0, 0]
    near = Jaws(position_tolerance=0.0078125, open_width=0.03125)
    near.gripper.set_command(CLOSE)
    assert [near.sample(0.0234375, 0.0)[0] for _ in range(3)] == [0, 0, 0]
    assert [near.sample(0.0390625, 0.0)[0] for _ in range(3)] == [0, 0, 0]  # pushed open by as much
    assert [near.sample(0.0234374, 0.0)[0] for _ in range(2)] == [0, 1]


@pytest.mark.parametrize("width", [0.03, 0.015, 0.0, -0.001])
def test_what_stops_short_of_closed_is_closed(width):
    made = Jaws()
    made.gripper.set_command(CLOSE)
    assert [made.sample(width, 0.0)[0] for _ in range(2)] == [0, 1]
    assert made.gripper.is_closed()


def test_open_is_everything_else():
    """Fingers that rest half-way under no close command: never commanded, idle, opened, idle after it."""
    made = Jaws()
    states = [made.sample(0.02, 0.0)[0] for _ in range(3)]
    for command in (IDLE, OPEN, IDLE):
        made.gripper.set_command(command)
        states += [made.sample(0.02, 0.0)[0] for _ in range(3)]
    assert states == [GripperState.OPEN] * 12


# --- three details ----------------------------------------------------------------------------------------------------


def test_a_swinging_finger_is_not_closed_as_it_turns():
    """A damped swing about 20 mm, sampled at its turning points as well: a test of one sample would fire at them."""
    period, decay = 0.1, 3.0  # s, 1/s
    made = Jaws()
    made.gripper.set_command(CLOSE)
    one_sample, states, speeds = [], [], []
    for k in range(200):
        phase, envelope = 2 * math.pi * k / 10, 0.01 * math.exp(-decay * k * 0.01)
        speed = -envelope * (2 * math.pi / period) * math.sin(phase) - decay * envelope * math.cos(phase)
        states.append(made.sample(0.02 + envelope * math.cos(phase), speed)[0])
        speeds.append(abs(speed))
        one_sample.append(abs(speed) <= 0.01)
    first_crossing, closed = one_sample.index(True), states.index(1)
    assert max(speeds[first_crossing:]) > 0.05  # far from at rest where one sample has it closed
    assert closed == next(k for k in range(1, 200) if one_sample[k] and one_sample[k - 1])
    assert max(speeds[closed:]) < 0.04
    assert states == [0] * closed + [1] * (200 - closed)


def test_a_wobble_that_flips_a_state_without_memory_flips_nothing():
    """A held thing that shifts for a second: 13 changes where each pair of samples is asked anew, and none here."""
    quiet, shift = [0.0, 0.0, 0.0, 0.0], [0.02, 0.02, 0.02, 0.02]
    speeds = [0.0] * 2 + (shift + quiet) * 6 + shift
    made = Jaws()
    made.gripper.set_command(CLOSE)
    states = [made.sample(0.02, speed)[0] for speed in speeds]
    without = [int(all(abs(s) <= 0.01 for s in speeds[max(0, k - 1) : k + 1])) for k in range(1, len(speeds))]
    assert sum(a != b for a, b in itertools.pairwise(without)) == 13
    assert states == [0] + [1] * (len(speeds) - 1)


# --- opening ----------------------------------------------------------------------------------------------------------


def test_open_is_told_before_the_fingers_arrive():
    made = Jaws(2)
    made.gripper.set_command(CLOSE)
    for _ in range(2):
        made.sample(0.0, 0.0)
    made.gripper.set_commands([OPEN, IDLE])
    assert (made.gripper.is_open(0), made.gripper.is_open(1)) == (True, False)
    for position in (0.005, 0.015, 0.025):  # on the way, at speed
        assert made.sample([[position, position], [0.0, 0.0]], [[0.2, 0.2], [0.0, 0.0]]) == [-1, 1]
    assert not made.gripper.is_closed(0)
