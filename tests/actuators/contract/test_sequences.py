"""Random sequences of commands, readings, resets and refusals, each environment against a plain model of the contract.

An environment is a sequence, so that thousands of them run at once: events come in one order for a batch, with
different values for every environment in it.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simulo.actuators import ParallelGripperActuator
from tests.actuators.contract.model import Hand, Settings
from tests.sdk.fakes import attached, two_finger_description

BATCHES, ENVS, EVENTS = 20, 500, 60
COMMANDS = np.array([-1.0, -0.31, -0.3, 0.0, 0.0, 0.3, 0.31, 1.0, 7.5])
POSITIONS = np.array([0.04, 0.0385, 0.038, 0.03, 0.02, 0.0, -0.001, np.nan])
SPEEDS = np.array([0.0, 0.0, 0.004, -0.01, 0.01, 0.012, -0.02, 0.3, np.nan])
KINDS = ("look", "look again", "command", "one command", "bad command", "reset", "new episode", "gate", "drop")
WEIGHTS = (0.4, 0.05, 0.2, 0.03, 0.03, 0.05, 0.05, 0.15, 0.04)


class Batch:
    """A gripper over many environments, and one plain hand for each; every event goes to both."""

    def __init__(self, num_envs: int, chosen: Settings):
        self.robot, self.articulation = attached(two_finger_description(coupled=False), num_envs)
        self.gripper = ParallelGripperActuator(
            self.robot,
            "finger.",
            open_width=chosen.open_at,
            closed_width=chosen.closed_at,
            position_tolerance=chosen.position_tolerance,
            velocity_tolerance=chosen.velocity_tolerance,
            settle_updates=chosen.settle_updates,
        )
        self.gripper.update(0.02)
        self.hands = [Hand(chosen, target=0.0) for _ in range(num_envs)]

    def look(self, positions: np.ndarray, speeds: np.ndarray) -> None:
        self.articulation.positions[:, 1:] = torch.from_numpy(positions.astype(np.float32))
        self.articulation.velocities[:, 1:] = torch.from_numpy(speeds.astype(np.float32))
        self.articulation.physics_tick += 1
        self.look_again()
        for hand, position, speed in zip(self.hands, positions.tolist(), speeds.tolist(), strict=True):
            hand.look(list(zip(position, speed, strict=True)))

    def look_again(self) -> None:
        self.gripper.update(0.02)

    def command(self, values: np.ndarray) -> None:
        self.gripper.set_commands(torch.from_numpy(values))
        for hand, value in zip(self.hands, values.tolist(), strict=True):
            hand.command(value)

    def one_command(self, value: float) -> None:
        self.gripper.set_command(value)
        for hand in self.hands:
            hand.command(value)

    def bad_command(self, values: np.ndarray) -> None:
        with pytest.raises(ValueError, match="not finite"):
            self.gripper.set_commands(torch.from_numpy(values))

    def drop(self, values: np.ndarray) -> None:
        self.gripper.enabled = False
        self.gripper.set_commands(torch.from_numpy(values))
        self.gripper.enabled = True

    def reset(self, envs: list[int]) -> None:
        self.gripper.reset(envs)
        for env in set(envs):
            self.hands[env].reset()

    def new_episode(self, envs: list[int]) -> None:
        """As an environment begins one: the robot first, then the task resets the gripper."""
        self.robot.reset(envs)
        for env in set(envs):
            self.hands[env].new_episode(start=0.0)
        self.reset(envs)

    def gate(self, refused: np.ndarray) -> None:
        mask = torch.from_numpy(refused)
        self.robot.restore_commands(mask)
        self.robot.accept_commands(~mask)
        measured = self.articulation.positions[:, 1].tolist()
        for hand, no, position in zip(self.hands, refused.tolist(), measured, strict=True):
            hand.refuse(position) if no else hand.agree()

    def compare(self) -> None:
        assert self.gripper.state.tolist() == [hand.memory.state for hand in self.hands]
        targets = torch.tensor([hand.target for hand in self.hands])
        assert torch.equal(self.robot.joint_position_targets[:, 1].nan_to_num(9.0), targets.nan_to_num(9.0))


def happen(batch: Batch, kind: str, rng: np.random.Generator) -> None:
    """One event, drawn anew for every environment of the batch."""
    count = len(batch.hands)
    if kind == "look":
        both = rng.random((count, 1)) < 0.6  # often both fingers alike, or nothing would ever settle
        positions, speeds = rng.choice(POSITIONS, (count, 2)), rng.choice(SPEEDS, (count, 2))
        batch.look(np.where(both, positions[:, :1], positions), np.where(both, speeds[:, :1], speeds))
    elif kind == "look again":
        batch.look_again()
    elif kind == "command":
        batch.command(rng.choice(COMMANDS, count))
    elif kind == "one command":
        batch.one_command(float(rng.choice(COMMANDS)))
    elif kind in ("bad command", "drop"):
        values = rng.choice(COMMANDS, count)
        if kind == "bad command":
            values[rng.integers(count)] = rng.choice([np.nan, np.inf, -np.inf])
        (batch.bad_command if kind == "bad command" else batch.drop)(values)
    elif kind in ("reset", "new episode"):
        envs = rng.integers(0, count, rng.integers(0, count // 4 + 2)).tolist()
        (batch.reset if kind == "reset" else batch.new_episode)(envs)
    else:
        batch.gate(rng.random(count) < rng.choice([0.0, 0.3, 1.0]))


def test_ten_thousand_sequences_match_the_model():
    closed = 0
    for seed in range(BATCHES):
        rng = np.random.default_rng(seed)
        batch = Batch(ENVS, Settings(settle_updates=int(rng.choice([1, 2, 2, 2, 3]))))
        for kind in rng.choice(KINDS, EVENTS, p=WEIGHTS):
            happen(batch, kind, rng)
            batch.compare()
            closed += sum(hand.memory.has_closed for hand in batch.hands)
    assert closed > 0.05 * BATCHES * ENVS * EVENTS  # the sequences go where there is something to tell


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32 - 1)), min_size=5, max_size=30))
def test_a_sequence_that_differs_is_made_small(events):
    """The same with an order that a tool can shorten, so that what fails is easy to read."""
    batch = Batch(2, Settings())
    for kind, seed in events:
        happen(batch, kind, np.random.default_rng(seed))
        batch.compare()
