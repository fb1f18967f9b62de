"""Random sequences for the surface gripper, each environment against a plain model of its contract.

See test_sequences.py. Physics is a stand-in (rigs.FakeBonds) that catches what is wanted and breaks what a test
overloads; the model is told the samples that the gripper was given, and nothing of how they came about.
"""

import numpy as np
import pytest
import torch

from tests.actuators.contract.rigs import BLOCK, NOTHING, SurfaceRig
from tests.actuators.contract.suction_model import Cup

BATCHES, ENVS, EVENTS = 20, 500, 60
LID = 8
NAMES = {NOTHING: None, BLOCK: "Block", LID: "Lid"}
COMMANDS = np.array([-1.0, -0.31, -0.3, 0.0, 0.0, 0.3, 0.31, 1.0, 1.0, 7.5])
KINDS = ("tick", "unseen step", "look again", "command", "one command", "bad command", "reset", "gate", "drop")
WEIGHTS = (0.45, 0.07, 0.03, 0.16, 0.03, 0.03, 0.06, 0.12, 0.05)


class Batch:
    """A cup over many environments, and one plain cup for each."""

    def __init__(self, num_envs: int, retry: int, rearm: int):
        self.rig = SurfaceRig(num_envs, retry_interval=1e-3 * retry, rearm_time=1e-3 * rearm)
        self.gripper, self.bonds = self.rig.gripper, self.rig.bonds
        self.bonds.prop_bodies = {"Block": BLOCK, "Lid": LID}
        self.cups = [Cup(retry, rearm) for _ in range(num_envs)]
        self.unseen = False
        self.gripper.update(0.0)

    def step(self, rng: np.random.Generator) -> None:
        """One physics step, in which things come and go before the cups and some bonds break."""
        count = len(self.cups)
        self.bonds.within_reach = torch.from_numpy(rng.choice([NOTHING, BLOCK, LID], count).astype(np.int32))
        self.rig.step(torch.from_numpy(rng.random(count) < 0.2))
        self.unseen = True
        assert self.bonds.wanted.tolist() == [cup.wants for cup in self.cups]
        assert self.bonds.barred.tolist() == [cup.avoids for cup in self.cups]

    def look(self, dt: int) -> None:
        """An update; at a physics time that was looked at already, it tells nothing new and no time has passed."""
        bonded, broken = self.bonds.bonded.tolist(), self.bonds.broken.tolist()
        self.gripper.update(1e-3 * dt)
        if self.unseen:
            for cup, *sample in zip(self.cups, bonded, broken, strict=True):
                cup.sample(*sample, dt)
        self.unseen = False

    def compare(self) -> None:
        assert self.gripper.state.tolist() == [cup.state for cup in self.cups]
        assert self.gripper.gripped() == [NAMES[cup.holds] for cup in self.cups]


def happen(batch: Batch, kind: str, rng: np.random.Generator) -> None:
    """One event, drawn anew for every environment of the batch."""
    count, gripper = len(batch.cups), batch.gripper
    values = rng.choice(COMMANDS, count)
    if kind == "tick":
        batch.step(rng)
        batch.look(int(rng.choice([10, 20, 40])))
    elif kind == "unseen step":
        batch.step(rng)
    elif kind == "look again":
        batch.look(20)
    elif kind == "command":
        gripper.set_commands(torch.from_numpy(values))
        for cup, value in zip(batch.cups, values.tolist(), strict=True):
            cup.command(value)
    elif kind == "one command":
        gripper.set_command(float(values[0]))
        for cup in batch.cups:
            cup.command(values[0])
    elif kind == "bad command":
        values[rng.integers(count)] = rng.choice([np.nan, np.inf, -np.inf])
        with pytest.raises(ValueError, match="not finite"):
            gripper.set_commands(torch.from_numpy(values))
    elif kind == "drop":
        gripper.enabled = False
        gripper.set_commands(torch.from_numpy(values))
        gripper.enabled = True
    elif kind == "reset":
        envs = rng.integers(0, count, rng.integers(0, count // 4 + 2)).tolist()
        gripper.reset(envs)
        for env in set(envs):
            batch.cups[env].reset()
    else:
        refused = rng.random(count) < rng.choice([0.0, 0.3, 1.0])
        batch.rig.robot.restore_commands(torch.from_numpy(refused))
        batch.rig.robot.accept_commands(torch.from_numpy(~refused))
        for cup, no in zip(batch.cups, refused.tolist(), strict=True):
            cup.refuse() if no else cup.agree()


def test_ten_thousand_sequences_match_the_model():
    seen = {"open": 0, "searching": 0, "holding": 0, "gave up": 0}
    for seed in range(BATCHES):
        rng = np.random.default_rng(seed)
        batch = Batch(ENVS, retry=int(rng.choice([60, 100])), rearm=int(rng.choice([0, 30, 60])))
        for kind in rng.choice(KINDS, EVENTS, p=WEIGHTS):
            happen(batch, kind, rng)
            batch.compare()
        for cup in batch.cups:
            seen[cup.memory.phase] += 1
    assert min(seen.values()) > 0.02 * BATCHES * ENVS  # the sequences go everywhere
