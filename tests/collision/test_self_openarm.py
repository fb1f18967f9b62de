"""The self check on OpenArm against MuJoCo on the same hulls: no contact missed, false stops counted."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from simulo.collision import CollisionChecker, CollisionModel, Kind
from simulo.collision.reference import self_distances
from simulo.description import RobotDescription
from tests.collision.oracle import build_oracle
from tests.collision.test_fk import uniform

SEED = 20260924
RESOLUTION = 4e-6
"""[m] So near, float32 does not tell clear from touching."""


def compare(description: RobotDescription, model: CollisionModel, poses: int) -> tuple[int, int, int]:
    """Contacts, missed and false stops over seeded poses. A stop within RESOLUTION of contact, in double, is no false
    one: the wrists, mostly millimetres apart, are that near in 1 of 5000 poses."""
    q = uniform(description, poses, SEED)
    checker, oracle = CollisionChecker(model, 500), build_oracle(description)
    contacts = missed = false = 0
    for first in range(0, poses, 500):
        verdict = checker.check(torch.from_numpy(q[first : first + 500]), world=False)
        clear = verdict.clear.numpy()
        for i, row in enumerate(q[first : first + 500].astype(np.float64)):
            oracle.pose(row)
            touching = bool(oracle.contacts())
            contacts += touching
            if touching == (not clear[i]):
                continue
            if touching:
                missed += 1
                continue
            a, b = (model.link_names[int(p[i])] for p in (verdict.party_a, verdict.party_b))
            false += all(
                pair.distance > RESOLUTION
                for pair in self_distances(description, row)
                if {a, b} == {pair.link_a, pair.link_b}
            )
    return contacts, missed, false


def test_no_contact_is_missed(openarm: RobotDescription, openarm_model: CollisionModel) -> None:
    contacts, missed, false = compare(openarm, openarm_model, 1000)
    assert contacts > 30, "the sample must hold contacts"
    assert missed == 0
    assert false == 0


@pytest.mark.slow
def test_no_contact_is_missed_in_many_poses(
    openarm: RobotDescription, openarm_model: CollisionModel, record_property
) -> None:
    """SIMULO_TEST_POSES sets how many (10,000 by default)."""
    poses = int(os.environ.get("SIMULO_TEST_POSES", "10000"))
    contacts, missed, false = compare(openarm, openarm_model, poses)
    print(f"{poses} poses, seed {SEED}: {contacts} contacts, {missed} missed, {false} false stops")
    record_property("contacts", contacts)
    assert missed == 0
    assert false <= poses // 3000


def test_rest_pose_is_clear_and_its_least_distance_is_right(
    openarm: RobotDescription, openarm_model: CollisionModel
) -> None:
    q = torch.tensor(openarm.rest_pose, dtype=torch.float32)[None]
    checker = CollisionChecker(openarm_model, 1)
    verdict = checker.check(q, world=False, distances=True)
    truth = min(self_distances(openarm, q[0].numpy()), key=lambda pair: pair.distance)
    assert verdict.kind[0] == Kind.CLEAR and not verdict.bound[0]
    assert truth.distance - 10e-6 <= float(verdict.distance[0]) <= truth.distance
    assert {openarm_model.link_names[int(verdict.party_a[0])], openarm_model.link_names[int(verdict.party_b[0])]} == {
        truth.link_a,
        truth.link_b,
    }


def test_least_distances_against_the_reference(openarm: RobotDescription, openarm_model: CollisionModel) -> None:
    q = uniform(openarm, 4, 11)
    checker = CollisionChecker(openarm_model, 4)
    verdict = checker.check(torch.from_numpy(q), world=False, distances=True)
    quick = checker.check(torch.from_numpy(q), world=False)
    for i in range(4):
        truth = min(pair.distance for pair in self_distances(openarm, q[i]))
        if verdict.clear[i]:
            assert truth - 10e-6 <= float(verdict.distance[i]) <= truth
            assert 0.0 < float(quick.distance[i]) <= truth, "stopping early still certifies a bound above the margin"
        else:
            assert truth <= 10e-6


def test_early_stop_and_least_distance_agree_on_every_verdict(
    openarm: RobotDescription, openarm_model: CollisionModel
) -> None:
    q = torch.from_numpy(uniform(openarm, 1000, 12))
    checker = CollisionChecker(openarm_model, 1000)
    quick, full = checker.check(q, world=False), checker.check(q, world=False, distances=True)
    assert torch.equal(quick.kind, full.kind)
    refused = ~quick.clear
    assert refused.any()
    assert torch.equal(quick.party_a[refused], full.party_a[refused])
    assert torch.equal(quick.party_b[refused], full.party_b[refused])
    assert (quick.distance[quick.clear] <= full.distance[quick.clear] + 10e-6).all()
    assert (full.gjk_capped == 0).all()


def test_margin_widens_the_refusal(openarm: RobotDescription, openarm_model: CollisionModel) -> None:
    q = torch.from_numpy(uniform(openarm, 500, 13))
    checker = CollisionChecker(openarm_model, 500)
    distances = checker.check(q, world=False, distances=True).distance
    checker.set_margins(0.02, 0.005)
    verdict = checker.check(q, world=False)
    assert torch.equal(verdict.clear, distances > 0.02)
