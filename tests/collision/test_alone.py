"""One configuration alone goes through the first stages in another way than one of many; what is found is the same, to
the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from simulo.collision import CollisionChecker, CollisionModel, Kind, build_model
from tests.collision.robots import box_piece, describe, joint, link, sliders
from tests.collision.test_fk import uniform

MANY = 16


def found(checker: CollisionChecker, one: int) -> list[NDArray]:
    """Everything that the first stages say of a configuration, but for the frames of hands' measured copies."""
    poses, near, model = checker._launches.poses, checker._launches.near, checker.model
    links, hulls, pairs = (array.numpy()[0, ..., one] for array in (poses.links, poses.hulls, near.pairs))
    numbers = [array.numpy()[one] for array in (poses.finite, near.num, near.asked, near.lower)]
    return [links[: len(model.link_names)], hulls[model.bodies.gate == 0], pairs, *numbers]


def tree(count: int) -> CollisionModel:
    """Boxes around a base, each on a joint of its own, that meet where their joints are alike."""
    names = ["base", *(f"box{i}" for i in range(count))]
    joints = [
        joint(f"joint{i}", "base", f"box{i}", (0.0, 0.0, 0.05 * i), kind="revolute" if i % 3 else "prismatic")
        for i in range(count)
    ]
    geometry = [link(name, box_piece((0.4, 0.1, 0.1), (0.3, 0.0, 0.0))) for name in names[1:]]
    return build_model(describe("tree", names, joints, geometry=geometry))


def assert_alone_as_among_many(model: CollisionModel, q: torch.Tensor, **options: Any) -> torch.Tensor:
    """The verdicts, shape (rows, MANY)."""
    many, alone = CollisionChecker(model, MANY), CollisionChecker(model, 1)
    together = many.check(q, world=False, **options).block
    for i in range(MANY):
        mine: dict[str, Any] = {k: v[i : i + 1] if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        assert torch.equal(alone.check(q[i : i + 1], world=False, **mine).block[:, 0], together[:, i])
        for a, b in zip(found(alone, 0), found(many, i), strict=True):
            assert np.array_equal(a, b, equal_nan=a.dtype == np.float32), i
    assert alone._launches.poses.hulls.shape[3] == 1 and many._launches.poses.hulls.shape[3] == MANY
    return together


@pytest.mark.parametrize("distances", [False, True])
@pytest.mark.parametrize("links", [None, "gripper:right"])
def test_of_a_robot(openarm_model: CollisionModel, openarm, distances: bool, links: str | None) -> None:
    q = torch.from_numpy(uniform(openarm, MANY, 4))
    assert_alone_as_among_many(openarm_model, q, distances=distances, links=links)


@pytest.mark.parametrize("links", [None, "gripper:left"])
def test_with_hands_posed_at_measured_values_too(openarm_model: CollisionModel, openarm, links: str | None) -> None:
    """Every combination of hands, so that pairs with each gate are asked and are not."""
    q = torch.from_numpy(uniform(openarm, MANY, 5))
    active = torch.tensor([[i & 1, i >> 1 & 1] for i in range(MANY)], dtype=torch.bool)
    measured = torch.tensor([[0.1, -0.2]]).repeat(MANY, 1)
    assert_alone_as_among_many(openarm_model, q, measured=measured, measured_active=active, links=links)


def test_of_more_bodies_than_a_word_has_bits() -> None:
    model = tree(70)
    q = torch.from_numpy(np.random.default_rng(6).uniform(-3.0, 3.0, (MANY, 70)).astype(np.float32))
    kinds = assert_alone_as_among_many(model, q)[0]
    assert (kinds == int(Kind.SELF)).all(), "seventy boxes that turn about one axis meet somewhere"


def test_where_something_is_no_number_or_becomes_none() -> None:
    """A joint that is none; slides so far out that squares, differences and sums are none."""
    model = build_model(sliders(5))
    values = [0.0, np.nan, np.inf, 3.0e38, -3.0e38, 1.0e20, 0.95, 2001.0]
    rows = [[values[(i + 3 * j) % len(values)] for j in range(5)] for i in range(MANY)]
    assert_alone_as_among_many(model, torch.tensor(rows, dtype=torch.float32))


def test_angles_that_are_left_to_the_library() -> None:
    model = tree(20)
    q = torch.from_numpy(np.random.default_rng(7).uniform(-1e6, 1e6, (MANY, 20)).astype(np.float32))
    q[:, ::3] = 0.0  # slides
    assert_alone_as_among_many(model, q)
