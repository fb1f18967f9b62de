"""The peers and truths of a robot of spheres and capsules: geoms of their own kinds, and contacts where they belong."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from simulo.collision import CollisionChecker, build_model
from simulo.collision.reference import self_distances
from simulo.description import reference_fk
from simulo.evaluation import contact_truth
from simulo.evaluation.contact_truth import HullTruth, Separation, ball_separation
from simulo.evaluation.exposed import Union
from simulo.evaluation.peers import mujoco_model
from tests.collision.oracle import coal_distance, coal_piece
from tests.collision.robots import ball_arm, link, piece
from tests.collision.worlds import grid


def configurations(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-3.0, 3.0, (count, 4))


def test_mujocos_geoms_are_the_pieces_themselves() -> None:
    """Types, radii and end points of the compiled geoms, in the links' frames."""
    robot = ball_arm()
    compiled = mujoco_model(robot, build_model(robot))
    kinds = mujoco.mjtGeom
    expected = {
        "base_0": kinds.mjGEOM_MESH, "shoulder_0": kinds.mjGEOM_SPHERE, "upper_0": kinds.mjGEOM_CAPSULE,
        "fore_0": kinds.mjGEOM_CAPSULE, "fore_1": kinds.mjGEOM_CAPSULE, "hand_0": kinds.mjGEOM_MESH,
    }  # fmt: skip
    assert {compiled.geom(g).name: compiled.geom_type[g] for g in range(compiled.ngeom)} == expected
    for name, kind in expected.items():
        owner, index = name.rsplit("_", 1)
        part, geom = robot.geometry[owner].pieces[int(index)], compiled.geom(name)
        if kind == kinds.mjGEOM_MESH:
            continue
        assert geom.size[0] == pytest.approx(part.radius)
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, geom.quat)
        axis = turn.reshape(3, 3)[:, 2] * (geom.size[1] if kind == kinds.mjGEOM_CAPSULE else 0.0)
        ends = np.stack([geom.pos - axis, geom.pos + axis])
        given = part.vertices[[0, -1]]
        assert min(np.abs(ends - given).max(), np.abs(ends - given[::-1]).max()) < 1e-9


def test_the_sweeps_truth_is_the_float64_references_outside_of_rounding() -> None:
    robot, q = ball_arm(), configurations(300, 1)
    pairs = build_model(robot).pairs
    truth = HullTruth(robot, {name: g.pieces for name, g in robot.geometry.items()}, pairs)
    touching = truth.touching(q)
    assert 50 < touching.sum() < touching.size - 50
    for row, here in enumerate(q):
        distances = {(r.link_a, r.link_b): r.distance for r in self_distances(robot, here)}
        for k, pair in enumerate(pairs):
            distance = distances.get(pair, distances.get(pair[::-1]))
            assert distance is not None
            if abs(distance) > 1e-5:
                assert touching[row, k] == (distance < 0.0), (pair, distance)
                proven = truth.separation(here, pair)
                assert proven is (Separation.PROVEN if distance > 0.0 else Separation.NONE)


def test_balls_are_apart_where_their_points_are_further_than_their_radii(monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment along z and a point 0.3 m from it, and far from the origin."""
    segment, point = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]]), np.array([[0.3, 0.0, 0.2]])
    for far in (np.zeros(3), np.array([40.0, -30.0, 5.0])):
        assert ball_separation(segment + far, point + far, 0.3 - 1e-9) is Separation.PROVEN
        assert ball_separation(segment + far, point + far, 0.3 + 1e-9) is Separation.NONE
    assert ball_separation(segment, segment + np.array([0.0, 0.0, 0.5]), 1e-3) is Separation.NONE
    monkeypatch.setattr(contact_truth, "nearest_of_difference", lambda a, b: np.array([5.0, 0.0, 0.0]))
    assert ball_separation(segment, point, 0.4) is Separation.UNJUDGED, "no plane bears that length out"


def test_pinocchio_and_coal_ask_the_same_balls() -> None:
    pytest.importorskip("pinocchio")
    from simulo.evaluation.coal_peer import CoalPeer

    robot, q = ball_arm(), configurations(200, 2)
    model = build_model(robot)
    peer = CoalPeer(robot, model)
    for row, position in zip(q, peer.positions(q), strict=True):
        poses = reference_fk(robot, row)
        least = np.inf
        for a, b in model.pairs:
            for first in robot.geometry[a].pieces:
                for second in robot.geometry[b].pieces:
                    placed = []
                    for name, part in ((a, first), (b, second)):
                        shape, turn, at = coal_piece(part)
                        frame = np.eye(4)
                        frame[:3, :3], frame[:3, 3] = turn, at
                        placed.append((shape, poses[name] @ frame))
                    between = np.linalg.inv(placed[0][1]) @ placed[1][1]
                    least = min(least, coal_distance(placed[0][0], placed[1][0], between[:3, :3], between[:3, 3]))
        if abs(least) > 1e-5:
            assert peer.collides(position) == (least < 0.0), least


def test_coals_octree_and_the_check_agree_on_cells_against_balls() -> None:
    """Two in a thousand of the cells of a cube of 2 m about the arm, 5 cm each."""
    pytest.importorskip("pinocchio")
    from simulo.evaluation.coal_peer import CoalPeer

    robot, rng = ball_arm(), np.random.default_rng(5)
    model, corner, cell = build_model(robot), np.full(3, -1.0), 0.05
    cells = rng.random((40, 40, 40)) < 0.002
    peer = CoalPeer(robot, model, ((np.argwhere(cells) + 0.5) * cell + corner, cell))
    q = configurations(300, 6).astype(np.float32)
    checker = CollisionChecker(model, len(q), self_margin=0.0, world_margin=0.0)
    checker.set_voxels(grid(np.repeat(cells[None], len(q), axis=0), cell, corner))
    alone = checker.check(torch.from_numpy(q), world=False).clear.numpy()
    refused = ~checker.check(torch.from_numpy(q)).clear.numpy()
    hits = np.array([peer.collides(position) for position in peer.positions(q)])
    assert 30 < (hits & alone).sum() < alone.sum() - 30
    assert not (hits & alone & ~refused).any(), "missed"
    assert (refused & alone & ~hits).sum() <= 1, "nearer than the slack of 2.5 um at most"


def test_pictures_show_a_polyhedron_around_the_balls() -> None:
    """A capsule of 40 mm: every facet outside of it, and none half a percent of its radius away."""
    ends = np.array([[0.0, 0.0, 0.0], [0.1, 0.1, 0.0]])
    union = Union(link("rod", piece(ends, radius=0.04)))
    middles = union.facets.mean(axis=1)
    along = ends[1] - ends[0]
    share = np.clip((np.concatenate([middles, union.facets.reshape(-1, 3)]) - ends[0]) @ along / (along @ along), 0, 1)
    points = np.concatenate([middles, union.facets.reshape(-1, 3)])
    off = np.linalg.norm(points - ends[0] - share[:, None] * along, axis=1) - 0.04
    assert off.min() > -1e-9 and off.max() < 0.005 * 0.04
    inner = Union(link("rod", piece(ends, radius=0.04), piece([[0.0, 0.0, 0.0]], radius=0.02)))
    whole, _ = inner.covered(inner.facets, inner.owners)
    assert whole[inner.owners == 1].all() and not whole[inner.owners == 0].any()
