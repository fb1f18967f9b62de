"""The occupancy map against boxes whose depth and distances are computed in float64 NumPy."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simulo.perception import Evidence, GridSpec, Intrinsics, OccupancyMapper, PerceptionError, SelfFilter
from simulo.pose import Pose
from tests.perception.box_scenes import CAMERA, Box, cells_of, depth_of, frame, look, rays, surface_distance

TABLE = Box((0.45, 0.0, 0.125), (0.6, 1.0, 0.25))
BLOCK = Box((0.35, 0.05, 0.275), (0.05, 0.05, 0.05))
GRID = GridSpec.around((0.0, -0.4, 0.2), (0.8, 0.4, 0.6))
CAMERAS = [look((1.1, 0.5, 0.8), (0.35, 0.0, 0.25)), look((-0.1, -0.6, 0.9), (0.35, 0.0, 0.25))]
NOW = torch.zeros(1)


def mapper(num_envs: int = 1, views: int = 2, grid: GridSpec = GRID) -> OccupancyMapper:
    return OccupancyMapper(num_envs, grid, CAMERA, views)


def centers(cells: np.ndarray, grid: GridSpec = GRID) -> np.ndarray:
    return grid.corner.apply((np.argwhere(cells) + 0.5) * grid.cell)


def cell_at(point: tuple[float, float, float], grid: GridSpec = GRID) -> tuple[int, int, int]:
    x, y, z = np.floor(grid.corner.inverse().apply(point) / grid.cell).astype(int)
    return int(x), int(y), int(z)


def test_occupied_cells_are_exactly_those_that_hold_a_measured_point():
    boxes = [TABLE, BLOCK]
    depth, poses = frame(boxes, CAMERAS)
    m = mapper()
    for _ in range(2):
        m.integrate(depth, poses, NOW)
    expected = np.zeros([4 * n for n in GRID.bricks], dtype=bool)
    for pose in CAMERAS:
        d = depth_of(boxes, pose)
        hit = np.isfinite(d)
        points = np.asarray(pose.position) + d[hit][:, None] * rays(pose)[hit]
        index = np.floor((points - np.asarray(GRID.corner.position)) / GRID.cell).astype(int)
        inside = ((index >= 0) & (index < expected.shape)).all(1)
        # A point within float32 rounding of a cell face may fall on either side: the table's top lies on one.
        expected[tuple(index[inside].T)] = True
    got = cells_of(m.occupied[0])
    assert got.sum() > 1000
    shared = (got & expected).sum()
    assert (surface_distance(centers(got), boxes) <= np.sqrt(3) / 2 * GRID.cell + 1e-5).all()
    on_face = np.abs(centers(got | expected)[:, 2] - TABLE.high[2]) < 0.51 * GRID.cell
    assert shared >= expected.sum() - on_face.sum()


def test_one_hit_does_not_occupy_and_two_do():
    depth, poses = frame([TABLE], CAMERAS)
    m = mapper()
    m.integrate(depth, poses, NOW)
    assert not m.occupied.any()
    m.integrate(depth, poses, NOW)
    assert cells_of(m.occupied[0]).sum() > 1000


@pytest.mark.parametrize("background", ["table", "nothing behind it"])
def test_b26_a_removed_block_is_cleared_within_the_declared_frames(background):
    rest = [TABLE] if background == "table" else []
    with_block, poses = frame([*rest, BLOCK], CAMERAS)
    without, _ = frame(rest, CAMERAS)
    m = mapper()
    for _ in range(30):
        m.integrate(with_block, poses, NOW)
    assert cells_of(m.occupied[0])[cell_at((0.37, 0.05, 0.299))]
    frames = m.evidence.frames_to_clear
    assert frames <= 10
    for _ in range(frames):
        m.integrate(without, poses, NOW)
    left = centers(cells_of(m.occupied[0]))
    if background == "table":
        assert len(left) and (surface_distance(left, rest) <= np.sqrt(3) * GRID.cell).all()
    else:
        assert len(left) == 0


def test_b28_unseen_cells_are_unknown_until_a_ray_reaches_them():
    depth, poses = frame([TABLE, BLOCK], CAMERAS)
    m = mapper()
    assert cells_of(m.unknown[0]).all()
    m.integrate(depth, poses, NOW)
    unknown = cells_of(m.unknown[0])
    assert unknown[cell_at((0.45, 0.0, 0.225))]  # inside the table
    assert not unknown[cell_at((0.30, -0.1, 0.30))]  # free air above it
    assert not m.occupied.any()


def test_b28_one_random_hit_a_frame_never_occupies():
    rng = np.random.default_rng(7)
    clean, poses = frame([TABLE], CAMERAS)
    m = mapper()
    for _ in range(3):
        m.integrate(clean, poses, NOW)
    before = m.occupied.clone()
    for _ in range(30):
        noisy = clean.clone()
        view, row, column = rng.integers([2, CAMERA.height, CAMERA.width])
        noisy[0, view, row, column] *= float(rng.uniform(0.3, 0.95))
        m.integrate(noisy, poses, NOW)
        assert torch.equal(m.occupied, before)


def test_b28_a_real_2_cm_object_is_there_by_its_second_frame():
    clean, poses = frame([TABLE], CAMERAS)
    cube = Box((0.35, 0.0, 0.38), (0.02, 0.02, 0.02))
    seen, _ = frame([TABLE, cube], CAMERAS)
    m = mapper()
    for _ in range(30):
        m.integrate(clean, poses, NOW)
    for _ in range(2):
        m.integrate(seen, poses, NOW)
    near = surface_distance(centers(cells_of(m.occupied[0])), [cube]) <= GRID.cell
    assert near.sum() >= 4


def test_hits_win_over_misses_so_a_thin_rod_is_not_erased():
    rod = Box((0.35, 0.0, 0.4), (0.004, 0.3, 0.004))
    depth, poses = frame([TABLE, rod], CAMERAS)
    m = mapper()
    for _ in range(2):
        m.integrate(depth, poses, NOW)
    first = cells_of(m.occupied[0])
    for _ in range(30):
        m.integrate(depth, poses, NOW)
    assert (cells_of(m.occupied[0]) == first).all()
    along = centers(first)
    assert (surface_distance(along, [rod]) < GRID.cell).sum() > 25


def test_a_ray_that_ends_on_the_robot_clears_up_to_there_and_hits_nothing():
    robot = Box((0.35, 0.0, 0.45), (0.1, 0.1, 0.1))
    depth, poses = frame([TABLE, robot], CAMERAS)
    alone, _ = frame([TABLE], CAMERAS)
    on_robot = (depth < alone - 1e-4).to(torch.uint8)
    assert on_robot.sum() > 100
    m = mapper()
    for _ in range(5):
        m.integrate(depth, poses, NOW, on_robot=on_robot)
    cells = cells_of(m.occupied[0])
    assert (surface_distance(centers(cells), [TABLE]) < GRID.cell).all()
    ahead = np.asarray(robot.centre) + 0.15 * (np.asarray(CAMERAS[0].position) - robot.centre)
    assert not cells_of(m.unknown[0])[cell_at(tuple(ahead))]
    assert cells_of(m.unknown[0])[cell_at(robot.centre)]


@pytest.mark.parametrize("nothing", [np.nan, 0.0, -1.0])
def test_an_invalid_pixel_neither_hits_nor_clears(nothing):
    depth, poses = frame([TABLE], CAMERAS)
    m = mapper()
    m.integrate(torch.full_like(depth, nothing), poses, NOW)
    assert cells_of(m.unknown[0]).all() and not m.occupied.any()


def test_environments_do_not_mix_and_subsets_leave_the_others_alone():
    scenes = [[TABLE], [TABLE, BLOCK], [BLOCK]]
    frames = [frame(scene, CAMERAS) for scene in scenes]
    batch = mapper(3)
    depth = torch.cat([f[0] for f in frames])
    poses = torch.cat([f[1] for f in frames])
    order = torch.tensor([2, 0, 1])
    for _ in range(3):
        batch.integrate(depth[order], poses[order], torch.arange(3.0), env_ids=order)
    for env, (image, camera_poses) in enumerate(frames):
        alone = mapper()
        for _ in range(3):
            alone.integrate(image, camera_poses, NOW)
        assert torch.equal(batch.occupied[env], alone.occupied[0])
        assert torch.equal(batch.unknown[env], alone.unknown[0])
    kept = batch.occupied.clone()
    batch.integrate(depth[:1], poses[:1], NOW + 9.0, env_ids=torch.tensor([1]))
    assert torch.equal(batch.occupied[[0, 2]], kept[[0, 2]])
    assert batch.stamp.tolist() == [1.0, 9.0, 0.0]
    batch.reset(torch.tensor([1]))
    assert torch.isinf(batch.age(torch.full((3,), 10.0))).tolist() == [False, True, False]
    assert cells_of(batch.unknown[1]).all() and torch.equal(batch.occupied[[0, 2]], kept[[0, 2]])


def test_a_turned_lattice_maps_the_same_surfaces():
    grid = GridSpec(Pose.from_rpy((0.3, -0.45, 0.15), (0.1, -0.2, 0.6)), (60, 60, 60))
    depth, poses = frame([TABLE, BLOCK], CAMERAS)
    m = mapper(grid=grid)
    for _ in range(2):
        m.integrate(depth, poses, NOW)
    cells = cells_of(m.occupied[0])
    assert cells.sum() > 500
    assert (surface_distance(centers(cells, grid), [TABLE, BLOCK]) <= np.sqrt(3) / 2 * grid.cell + 1e-5).all()


@settings(max_examples=25, deadline=None)
@given(
    angle=st.floats(0.0, 6.28), height=st.floats(0.35, 1.2), distance=st.floats(0.4, 1.2), y=st.floats(-0.2, 0.2),
    edge=st.floats(0.02, 0.2),
)  # fmt: skip
def test_from_anywhere_every_occupied_cell_touches_a_surface_and_every_hit_cell_stays(angle, height, distance, y, edge):
    box = Box((0.4, y, 0.25 + 0.5 * edge), (edge, edge, edge))
    eye = (0.4 + distance * np.cos(angle), distance * np.sin(angle), height)
    depth, poses = frame([TABLE, box], [look(eye, (0.4, 0.0, 0.3))])
    m = mapper(views=1)
    for _ in range(2):
        m.integrate(depth, poses, NOW)
    cells = cells_of(m.occupied[0])
    assert (surface_distance(centers(cells), [TABLE, box]) <= np.sqrt(3) / 2 * GRID.cell + 1e-5).all()
    for _ in range(3):
        m.integrate(depth, poses, NOW)
    assert (cells_of(m.occupied[0]) == cells).all()


def test_bad_frames_are_refused_and_change_nothing():
    depth, poses = frame([TABLE], CAMERAS)
    m = mapper()
    with pytest.raises(PerceptionError, match=r"depth has shape \(1, 1, 120, 160\)"):
        m.integrate(depth[:, :1], poses, NOW)
    with pytest.raises(PerceptionError, match="camera_poses has shape"):
        m.integrate(depth, poses[:, :1], NOW)
    poses[0, 1, 3] = np.nan
    with pytest.raises(PerceptionError, match="camera 1 of environment 0 is not finite"):
        m.integrate(depth, poses, NOW)
    assert cells_of(m.unknown[0]).all() and torch.isinf(m.stamp).all()


@pytest.mark.parametrize(
    ("settings_", "message"),
    [({"hit": 5}, "single hit"), ({"hit": 2}, "two hits"), ({"ceiling": 30}, "frames"), ({"miss": 0}, "miss > 0")],
)
def test_evidence_that_breaks_a_promise_is_refused(settings_, message):
    with pytest.raises(PerceptionError, match=message):
        Evidence(**settings_)


BOX = ((0.0, 0.0, 0.0), (0.2, 0.2, 0.2))
LENS = Intrinsics.from_fovy(16, 12, 0.8)
MISUSED = {
    "evidence in halves": (lambda: Evidence(hit=3.5), "whole units"),
    "evidence as text": (lambda: Evidence(hit="3"), "whole units"),
    "a range that is no number": (
        lambda: OccupancyMapper(1, GridSpec.around(*BOX), LENS, 1, max_range=nan),
        "max_range",
    ),
    "no range": (lambda: OccupancyMapper(1, GridSpec.around(*BOX), LENS, 1, max_range=-1.0), "max_range"),
    "a range as text": (lambda: OccupancyMapper(1, GridSpec.around(*BOX), LENS, 1, max_range="far"), "max_range"),
    "no environments": (lambda: OccupancyMapper(0, GridSpec.around(*BOX), LENS, 1), "an environment and a view"),
    "no place": (lambda: OccupancyMapper(1, None, LENS, 1), "GridSpec"),
    "cells without size": (lambda: GridSpec.around(*BOX, cell=0.0), "finite cell > 0 m"),
    "cells as text": (lambda: GridSpec.around(*BOX, cell="small"), "finite cell > 0 m"),
    "a box inside out": (lambda: GridSpec.around(BOX[1], BOX[0]), "a low and a high corner"),
    "a box without end": (lambda: GridSpec.around(BOX[0], (1.0, inf, 1.0)), "a low and a high corner"),
    "a flat box": (lambda: GridSpec.around((0.0, 0.0), (1.0, 1.0)), "a low and a high corner"),
    "half a cell": (lambda: GridSpec(Pose(), (1.5, 2, 3)), "three cell counts"),
    "no cells": (lambda: GridSpec(Pose(), (0, 2, 3)), "three cell counts"),
    "padding that is no number": (lambda: SelfFilter((), {}, 1, padding=nan), "padding"),
    "padding as text": (lambda: SelfFilter((), {}, 1, padding="thick"), "padding"),
}


@pytest.mark.parametrize("misuse", MISUSED)
def test_what_would_map_nothing_or_nowhere_is_refused_by_name(misuse):
    make, said = MISUSED[misuse]
    with pytest.raises(PerceptionError, match=said):
        make()
