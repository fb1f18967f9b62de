"""Random sequences against a plain-Python model of the contract, written apart from the tensors."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simulo.actuators import ParallelGripperActuator
from tests.sdk.fakes import attached, two_finger_description

OPEN_AT, CLOSED_AT = 0.04, 0.0
POSITION_TOLERANCE, VELOCITY_TOLERANCE = 0.002, 0.01


class Hand:
    """One environment, in words."""

    def __init__(self):
        self.told_to_close = False
        self.still_for = 0
        self.has_closed = False
        self.target = OPEN_AT
        self.before = (False, 0, False)
        self.command_waits = False

    def command(self, value: float):
        value = np.float32(value)
        if not (value < np.float32(-0.3) or value > np.float32(0.3)):
            return
        if not self.command_waits:
            self.before = (self.told_to_close, self.still_for, self.has_closed)
            self.command_waits = True
        if value < np.float32(-0.3):
            self.told_to_close, self.still_for, self.has_closed = False, 0, False
            self.target = OPEN_AT
        else:
            self.told_to_close = True
            self.target = CLOSED_AT

    def look(self, fingers: list[tuple[float, float]]):
        present = self.looked((self.told_to_close, self.still_for, self.has_closed), fingers)
        self.told_to_close, self.still_for, self.has_closed = present
        self.before = self.looked(self.before, fingers)  # a command that a gate refuses later never moved the fingers

    def looked(self, memory: tuple[bool, int, bool], fingers: list[tuple[float, float]]) -> tuple[bool, int, bool]:
        told_to_close, still_for, has_closed = memory
        if not told_to_close:
            return told_to_close, 0, has_closed
        far = all(abs(np.float32(position) - np.float32(OPEN_AT)) > POSITION_TOLERANCE for position, _ in fingers)
        still = all(abs(np.float32(speed)) <= np.float32(VELOCITY_TOLERANCE) for _, speed in fingers)
        still_for = still_for + 1 if far and still else 0
        return told_to_close, still_for, has_closed or still_for >= 2

    def reset(self):
        self.told_to_close, self.still_for, self.has_closed = False, 0, False
        self.target = OPEN_AT
        self.command_waits = False

    def refuse(self, measured: float, last_accepted: float | None):
        if self.command_waits:
            self.told_to_close, self.still_for, self.has_closed = self.before
            self.command_waits = False
        self.target = measured if last_accepted is None else last_accepted

    @property
    def state(self) -> int:
        if self.has_closed:
            return 1
        return 0 if self.told_to_close else -1


values = st.sampled_from([-1.0, -0.31, -0.3, 0.0, 0.3, 0.31, 1.0])
fingers = st.tuples(st.sampled_from([0.04, 0.039, 0.02, 0.0]), st.sampled_from([0.0, 0.009, 0.012, -0.02]))
step = st.one_of(
    st.tuples(st.just("command"), st.lists(values, min_size=3, max_size=3)),
    st.tuples(st.just("look"), st.lists(st.lists(fingers, min_size=2, max_size=2), min_size=3, max_size=3)),
    st.tuples(st.just("reset"), st.lists(st.integers(0, 2), max_size=3)),
    st.tuples(st.just("gate"), st.lists(st.booleans(), min_size=3, max_size=3)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(step, min_size=5, max_size=40))
def test_any_sequence_matches_the_model(steps):
    robot, articulation = attached(two_finger_description(coupled=False), 3)
    gripper = ParallelGripperActuator(robot, "finger.")
    hands = [Hand() for _ in range(3)]
    accepted: list[float | None] = [None] * 3
    gripper.reset()
    gripper.update(0.02)
    for kind, given_values in steps:
        if kind == "command":
            gripper.set_commands(given_values)
            for hand, value in zip(hands, given_values, strict=True):
                hand.command(value)
        elif kind == "look":
            readings = torch.tensor(given_values)
            articulation.positions[:, 1:], articulation.velocities[:, 1:] = readings[..., 0], readings[..., 1]
            articulation.physics_tick += 1
            gripper.update(0.02)
            for hand, seen in zip(hands, given_values, strict=True):
                hand.look(seen)
        elif kind == "reset":
            gripper.reset(given_values)
            for env in set(given_values):
                hands[env].reset()
        else:
            refused = torch.tensor(given_values)
            robot.restore_commands(refused)
            robot.accept_commands(~refused)
            for env, hand in enumerate(hands):
                if given_values[env]:
                    hand.refuse(float(articulation.positions[env, 1]), accepted[env])
                else:
                    hand.command_waits = False
                    accepted[env] = hand.target
        assert gripper.state.tolist() == [hand.state for hand in hands]
        assert torch.allclose(robot.joint_position_targets[:, 1], torch.tensor([hand.target for hand in hands]))
