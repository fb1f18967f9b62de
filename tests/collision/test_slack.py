"""SLACK, the whole of it: kinematics and distances in float32 against both in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from simulo.collision import CollisionChecker, build_model
from simulo.collision.reference import hull_distance, posed_pieces
from simulo.description import load_description
from simulo.evaluation.configuration import uniform
from tests.collision.hulls import SLACK_M

N = 250


@pytest.mark.parametrize("name", ["openarm", "ur5e", "h1", "franka_panda"])
def test_a_tenth_of_the_slack_is_used(name: str) -> None:
    """Least distances of whole robots: all but a tenth of SLACK is left between a bound and the truth."""
    robot = load_description(name)
    model = build_model(robot)
    q = uniform(robot, np.random.default_rng(11).random((N, model.num_joints))).astype(np.float32)
    verdict = CollisionChecker(model, N).check(torch.from_numpy(q), world=False, distances=True)
    left = []
    for i in np.flatnonzero((verdict.clear & ~verdict.bound).numpy()):
        a, b = (model.link_names[int(party[i])] for party in (verdict.party_a, verdict.party_b))
        pieces = posed_pieces(robot, q[i].astype(np.float64))
        truth = min(hull_distance(x, y) for x in pieces[a] for y in pieces[b])
        left.append(truth - float(verdict.distance[i]))
    assert len(left) > 0.5 * N
    assert min(left) >= 0.9 * SLACK_M
