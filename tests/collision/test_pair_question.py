"""Asking of one pair: together the pairs say what the whole check says, and each says it of itself alone."""

from __future__ import annotations

import pytest
import torch

from simulo.collision import CollisionChecker, CollisionModel, Kind
from simulo.collision.reference import self_distances
from simulo.description import RobotDescription
from simulo.errors import CollisionModelError
from tests.collision.test_fk import uniform


def test_the_pairs_together_are_the_whole_check(openarm: RobotDescription, openarm_model: CollisionModel) -> None:
    q = torch.from_numpy(uniform(openarm, 300, 21))
    checker = CollisionChecker(openarm_model, 300)
    whole = checker.check(q, world=False)
    each = torch.stack([~checker.check(q, links=pair, world=False).clear for pair in openarm_model.pairs], dim=1)
    assert torch.equal(each.any(dim=1), ~whole.clear)
    assert each.sum() > each.any(dim=1).sum(), "some pose trips two pairs, so a pair hides no other"
    for entry in (~whole.clear).nonzero().flatten().tolist():
        first = openarm_model.pairs[int(each[entry].int().argmax())]
        assert first == tuple(openarm_model.link_names[int(p[entry])] for p in (whole.party_a, whole.party_b))


def test_one_pair_has_its_own_distance(openarm: RobotDescription, openarm_model: CollisionModel) -> None:
    q = uniform(openarm, 1, 22)
    checker = CollisionChecker(openarm_model, 1)
    for truth in self_distances(openarm, q[0])[::20]:
        pair = truth.link_a, truth.link_b
        verdict = checker.check(torch.from_numpy(q), links=pair, world=False, distances=True)
        assert truth.distance - 10e-6 <= float(verdict.distance[0]) <= truth.distance, pair
        assert verdict.kind[0] == (Kind.CLEAR if truth.distance > 0 else Kind.SELF)


def test_a_pair_that_is_not_checked_is_refused(openarm_model: CollisionModel) -> None:
    row = openarm_model.exempt[0]
    with pytest.raises(CollisionModelError, match=f"{row.link_a}.*{row.link_b}"):
        CollisionChecker(openarm_model, 1).check(torch.zeros(1, 16), links=(row.link_a, row.link_b))
