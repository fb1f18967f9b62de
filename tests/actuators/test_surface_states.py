"""The surface gripper's state machine alone: hand-made commands and samples, and what must come of them."""

import itertools

import pytest
import torch

from simulo.actuators.suction import (
    GAVE_UP,
    HOLDING,
    NO_BODY,
    OPEN,
    SEEKING,
    BondSample,
    SuctionLatch,
    barred_body,
    held_body,
    states_of,
    wanted,
)

DT, RETRY, REARM = 0.02, 0.1, 0.06
BOX, LID = 3, 4


class Machine:
    """One environment: `command` with -1, 0 or 1, then `sample` what physics is said to have done."""

    def __init__(self):
        self.latch = SuctionLatch(1, torch.device("cpu"))

    def command(self, intent: int) -> int:
        self.latch.command(torch.tensor([intent], dtype=torch.int8))
        return self.phase

    def sample(self, bonded: int = NO_BODY, broken: int = NO_BODY, dt: float = DT) -> int:
        bodies = (torch.tensor([body], dtype=torch.int32) for body in (bonded, broken))
        self.latch.observe(BondSample(*bodies), dt, RETRY, REARM)
        return self.phase

    @property
    def phase(self) -> int:
        return int(self.latch.state.phase)

    @property
    def held(self) -> int:
        return int(held_body(self.latch.state))

    @property
    def barred(self) -> int:
        return int(barred_body(self.latch.state))


def test_a_close_seeks_until_something_is_caught_and_keeps_it_over_idle():
    machine = Machine()
    assert [machine.command(1), machine.sample(), machine.sample(BOX)] == [SEEKING, SEEKING, HOLDING]
    assert machine.held == BOX
    assert [(machine.command(0), machine.sample(BOX)) for _ in range(100)] == [(HOLDING, HOLDING)] * 100
    assert machine.command(-1) == OPEN
    assert machine.held == NO_BODY
    assert machine.sample(BOX) == OPEN, "physics has not let go yet"


def test_an_idle_gripper_that_was_never_closed_stays_open_and_wants_nothing():
    machine = Machine()
    assert [machine.command(0), machine.sample(), machine.sample(BOX)] == [OPEN] * 3
    assert not wanted(machine.latch.state).any()


def test_a_search_gives_up_after_its_interval_and_a_steady_close_does_not_arm_it_again():
    machine = Machine()
    machine.command(1)
    assert [machine.sample() for _ in range(5)] == [SEEKING] * 4 + [GAVE_UP]
    assert states_of(machine.latch.state).tolist() == [OPEN]
    assert [(machine.command(1), machine.sample()) for _ in range(500)] == [(GAVE_UP, GAVE_UP)] * 500
    assert machine.sample(BOX) == GAVE_UP


@pytest.mark.parametrize("between", [0, -1])
def test_a_command_that_is_no_close_arms_a_gripper_that_gave_up(between):
    machine = Machine()
    machine.command(1)
    for _ in range(5):
        machine.sample()
    assert machine.command(between) == OPEN
    assert machine.command(1) == SEEKING
    assert [machine.sample() for _ in range(5)] == [SEEKING] * 4 + [GAVE_UP], "a whole interval again"


def test_repeating_the_close_or_idling_prolongs_no_search_and_opening_begins_a_new_one():
    machine = Machine()
    commands = [1, 0, 1, 0, 1]
    assert [(machine.command(c), machine.sample())[1] for c in commands] == [SEEKING] * 4 + [GAVE_UP]
    machine = Machine()
    machine.command(1)
    for _ in range(4):
        machine.sample()
    machine.command(-1)
    machine.command(1)
    assert [machine.sample() for _ in range(5)] == [SEEKING] * 4 + [GAVE_UP]


def test_what_is_caught_as_the_time_runs_out_is_held():
    machine = Machine()
    machine.command(1)
    assert [machine.sample() for _ in range(4)] == [SEEKING] * 4
    assert machine.sample(BOX) == HOLDING


def test_a_broken_bond_is_closing_again_and_its_body_barred_for_the_rearm_time():
    machine = Machine()
    machine.command(1)
    machine.sample(BOX)
    for _ in range(50):
        machine.sample(BOX)
    assert machine.sample(broken=BOX) == SEEKING
    assert machine.barred == BOX
    assert [(machine.sample(), machine.barred) for _ in range(3)] == [
        (SEEKING, BOX),
        (SEEKING, BOX),
        (SEEKING, NO_BODY),
    ]
    assert [machine.sample() for _ in range(2)] == [SEEKING, GAVE_UP], "a whole interval from the break on"


def test_times_are_kept_in_double_precision():
    """A tenth of a second in fifty steps of 2 ms: barred up to the last and no longer."""
    machine = Machine()
    machine.command(1)
    machine.sample(BOX)
    bodies = (torch.tensor([NO_BODY], dtype=torch.int32), torch.tensor([BOX], dtype=torch.int32))
    machine.latch.observe(BondSample(*bodies), 0.002, 10.0, 0.1)
    barred = []
    for _ in range(50):
        nothing = torch.tensor([NO_BODY], dtype=torch.int32)
        machine.latch.observe(BondSample(nothing, nothing), 0.002, 10.0, 0.1)
        barred.append(machine.barred)
    assert barred == [BOX] * 49 + [NO_BODY]


def test_a_bond_that_came_and_went_between_two_samples_is_barred_too():
    machine = Machine()
    machine.command(1)
    machine.sample()
    assert machine.sample(broken=LID) == SEEKING
    assert machine.barred == LID
    assert [machine.sample() for _ in range(5)] == [SEEKING] * 4 + [GAVE_UP]


def test_a_bar_outlives_open_and_close():
    machine = Machine()
    machine.command(1)
    machine.sample(BOX)
    machine.sample(broken=BOX)
    machine.command(-1)
    machine.command(1)
    assert machine.barred == BOX


def test_a_refused_command_was_never_given_whatever_was_sampled_since():
    machine = Machine()
    everywhere = torch.tensor([True])
    machine.command(1)
    machine.latch.accept(everywhere)
    machine.sample(BOX)
    assert machine.command(-1) == OPEN
    machine.sample(BOX)
    machine.latch.restore(everywhere)
    assert (machine.phase, machine.held) == (HOLDING, BOX)
    machine.command(-1)
    machine.sample(broken=BOX)
    machine.latch.restore(everywhere)
    assert (machine.phase, machine.held, machine.barred) == (SEEKING, NO_BODY, BOX)


def test_a_refused_close_leaves_a_gripper_that_gave_up_as_it_was():
    machine = Machine()
    everywhere = torch.tensor([True])
    machine.command(1)
    machine.latch.accept(everywhere)
    for _ in range(5):
        machine.sample()
    machine.command(0)
    assert machine.command(1) == SEEKING
    machine.latch.restore(everywhere)
    assert machine.phase == GAVE_UP


def test_environments_do_not_see_each_other():
    """Every pair of histories side by side gives what each gives alone."""
    histories = [(1, BOX), (1, NO_BODY), (0, BOX), (-1, BOX)]
    for pair in itertools.product(histories, repeat=2):
        latch = SuctionLatch(2, torch.device("cpu"))
        latch.command(torch.tensor([intent for intent, _ in pair], dtype=torch.int8))
        bodies = torch.tensor([body for _, body in pair], dtype=torch.int32)
        latch.observe(BondSample(bodies, torch.full_like(bodies, NO_BODY)), DT, RETRY, REARM)
        alone = []
        for intent, body in pair:
            machine = Machine()
            machine.command(intent)
            alone.append(machine.sample(body))
        assert latch.state.phase.tolist() == alone


def test_clearing_some_environments_leaves_the_others():
    latch = SuctionLatch(3, torch.device("cpu"))
    latch.command(torch.ones(3, dtype=torch.int8))
    bodies = torch.full((3,), BOX, dtype=torch.int32)
    latch.observe(BondSample(bodies, torch.full_like(bodies, NO_BODY)), DT, RETRY, REARM)
    latch.clear(torch.tensor([1]))
    assert latch.state.phase.tolist() == [HOLDING, OPEN, HOLDING]
    assert held_body(latch.state).tolist() == [BOX, NO_BODY, BOX]
    assert bodies.tolist() == [BOX] * 3, "a sample belongs to whoever took it"
    latch.clear(torch.zeros(0, dtype=torch.int64))
    assert latch.state.phase.tolist() == [HOLDING, OPEN, HOLDING]


def test_one_reset_among_2048_held_objects_drops_one():
    latch = SuctionLatch(2048, torch.device("cpu"))
    latch.command(torch.ones(2048, dtype=torch.int8))
    bodies = torch.full((2048,), BOX, dtype=torch.int32)
    latch.observe(BondSample(bodies, torch.full_like(bodies, NO_BODY)), DT, RETRY, REARM)
    latch.clear(torch.tensor([777]))
    assert (held_body(latch.state) == NO_BODY).nonzero().flatten().tolist() == [777]
    assert (~wanted(latch.state)).nonzero().flatten().tolist() == [777]
