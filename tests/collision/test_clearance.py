"""Clearance maps: never above the distance in a float64 reference, and no verdict is another with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from simulo.collision import (
    ClearanceMaps,
    CollisionChecker,
    CollisionModel,
    Kind,
    build_clearance,
    build_model,
)
from simulo.collision.reference import hull_distance, posed_pieces
from simulo.description import RobotDescription, load_description
from simulo.errors import CollisionModelError
from simulo.evaluation.configuration import uniform
from tests.collision.robots import ball_arm, pincer, sliders

ROBOTS = {"pincer": pincer, "balls": ball_arm}
N = 4096


def described(name: str) -> RobotDescription:
    return ROBOTS[name]() if name in ROBOTS else load_description(name)


def cells_of(maps: ClearanceMaps, pair: int) -> np.ndarray:
    first, along, across, _columns = maps.head[pair]
    return maps.cells[first : first + along * across].reshape(along, across)


def closest_to_call(codes: np.ndarray, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Cells that promise something: those with the least to promise, and some of all."""
    known = np.argwhere(codes > 0)
    order = np.argsort(codes[codes > 0], kind="stable")
    return [tuple(known[k]) for k in (*order[:6], *rng.choice(len(known), 3))] if len(known) else []


@pytest.mark.parametrize("name", ["pincer", "balls", "openarm", "franka_panda", "g1"])
def test_no_map_says_more_than_the_distance(name: str) -> None:
    """In corners of cells, where a box's bound is closest to the truth; whatever the other columns are."""
    robot = described(name)
    model = build_model(robot)
    maps, rng = build_clearance(model), np.random.default_rng(3)
    low, high = np.array([(max(j.lower, -3.0), min(j.upper, 3.0)) for j in robot.joints]).T
    mapped = np.flatnonzero(maps.head[:, 0] >= 0)
    asked = 0
    for pair in mapped[np.unique(maps.head[mapped, 0], return_index=True)[1]]:
        names = [model.link_names[i] for i in model.pair_arrays.links[pair]]
        columns = [maps.head[pair, 3] & 0xFFFF, maps.head[pair, 3] >> 16]
        for cell in closest_to_call(cells_of(maps, pair), rng):
            promised = 1e-5 * float(cells_of(maps, pair)[cell]) ** 2
            q = rng.uniform(low, high)
            for axis, column in enumerate(columns[: 1 + (columns[0] != columns[1])]):
                corner, per_unit = maps.place[pair, 2 * axis : 2 * axis + 2].astype(np.float64)
                q[column] = corner + (cell[axis] + rng.choice([0.0, 1.0])) / per_unit
            pieces = posed_pieces(robot, q)
            truth = min(hull_distance(a, b) for a in pieces[names[0]] for b in pieces[names[1]])
            assert promised <= truth, (names, q)
            asked += 1
    assert asked >= {"pincer": 9, "balls": 9}.get(name, 60)


@pytest.mark.parametrize("margin", [0.0, 0.004, 0.03])
@pytest.mark.parametrize("name", ["balls", "openarm", "franka_panda", "h1"])
def test_the_same_verdicts_with_maps_and_without(name: str, margin: float) -> None:
    """Within the joints' limits and beyond, and where a number is none."""
    robot = described(name)
    model = build_model(robot)
    plain = CollisionChecker(model, N, self_margin=margin)
    mapped = CollisionChecker(model, N, self_margin=margin, clearance=build_clearance(model))
    q = torch.from_numpy(uniform(robot, np.random.default_rng(7).random((N, len(robot.joints)))))
    q[::5] *= 1.7
    q[3, 1] = torch.nan
    a, b = (checker.check(q, world=False) for checker in (plain, mapped))
    assert torch.equal(a.block[:4], b.block[:4]) and not a.clear.all()
    assert a.clear.any() or margin > 0.0
    assert torch.equal(a.distance[~a.clear], b.distance[~a.clear])
    assert (b.distance[b.clear] > margin).all(), "what is called clear carries a bound above the margin"
    least = [checker.check(q[:200], env_ids=range(200), world=False, distances=True) for checker in (plain, mapped)]
    assert torch.equal(least[0].block, least[1].block), "least distances do not depend on maps"


def test_maps_settle_most_of_what_spheres_and_boxes_leave(openarm_model: CollisionModel, openarm) -> None:
    """Pairs of which the check would know by a map alone, of all pairs that it would have to search."""
    maps = build_clearance(openarm_model)
    checker = CollisionChecker(openarm_model, N)
    q = uniform(openarm, np.random.default_rng(8).random((N, len(openarm.joints))))
    checker.check(torch.from_numpy(q), world=False)
    words = checker._launches.near.pairs.numpy()
    bits = (words[:, :, None, :] >> np.arange(32)[:, None]) & 1
    left = bits.transpose(0, 3, 1, 2).reshape(-1, 32 * words.shape[1])[:N]
    searched = settled = 0
    for pair in np.flatnonzero(left.any(axis=0)):
        rows = np.flatnonzero(left[:, pair])
        searched += len(rows)
        if maps.head[pair, 0] >= 0:
            columns = [maps.head[pair, 3] & 0xFFFF, maps.head[pair, 3] >> 16]
            cell = np.floor((q[rows][:, columns] - maps.place[pair, [0, 2]]) * maps.place[pair, [1, 3]]).astype(int)
            settled += (cells_of(maps, int(pair))[cell[:, 0], cell[:, 1]] > 0).sum()
    assert settled > 0.7 * searched


def test_what_a_map_says_is_what_the_check_goes_by() -> None:
    """So it must not be another model's: one that promises everything everywhere hides contact."""
    robot = load_description("franka_panda")
    model = build_model(robot)
    maps = build_clearance(model)
    lying = replace(maps, cells=np.full_like(maps.cells, 255))
    q = torch.from_numpy(uniform(robot, np.random.default_rng(9).random((N, len(robot.joints)))))
    honest, deceived = (
        CollisionChecker(model, N, clearance=some).check(q, world=False).clear for some in (maps, lying)
    )
    assert (deceived & ~honest).any() and not (honest & ~deceived).any()
    with pytest.raises(CollisionModelError, match="maps are of another model .* build_clearance"):
        CollisionChecker(build_model(robot, "swept"), 1, clearance=maps)


def test_nothing_is_promised_where_nothing_bounds_the_motion() -> None:
    robot = sliders()
    endless = replace(robot, joints=(replace(robot.joints[0], upper=np.inf), robot.joints[1]))
    model = build_model(endless)
    maps = build_clearance(model)
    assert (maps.head[:, 0] < 0).all() and not len(maps.cells) and (maps.least() == 0.0).all()
    q = torch.zeros(1, model.num_joints)
    assert CollisionChecker(model, 1, clearance=maps).check(q, world=False).kind[0] == Kind.CLEAR


def test_equal_models_share_their_maps() -> None:
    assert build_clearance(build_model(pincer())) is build_clearance(build_model(pincer()))
    assert build_model(pincer()) != build_model(sliders())
