"""Hulls, boxes and DOPs hold what they are made of, whatever it is."""

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from simulo.description import DOP_DIRECTIONS
from simulo.errors import LoweringError
from simulo.lowering.hull import certified_vertices, outside_by
from simulo.lowering.pieces import fit_piece
from simulo.lowering.slabs import cut_planes, split_points
from simulo.lowering.triangles import nearest_on_each


def cloud(seed: int, count: int, stretch: tuple[float, float, float] = (0.1, 0.1, 0.1)) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 3)) * stretch


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(4, 300),
    stretch=st.tuples(*[st.floats(1e-3, 1.0)] * 3),
    shift=st.tuples(*[st.floats(-2.0, 2.0)] * 3),
)
def test_written_hull_holds_every_point(seed: int, count: int, stretch: tuple, shift: tuple) -> None:
    points = cloud(seed, count, stretch) + shift
    vertices = certified_vertices(points, "cloud")
    planes = ConvexHull(vertices).equations
    assert (points @ planes[:, :3].T + planes[:, 3]).max() <= 0.0
    np.testing.assert_array_equal(vertices, np.round(vertices, 9))


def test_exact_hull_is_not_grown_beyond_nanometres() -> None:
    points = cloud(1, 500)
    assert outside_by(certified_vertices(points, "cloud"), points) < 1e-7


@pytest.mark.parametrize("most", [64, 320])
def test_reduced_hull_is_larger_never_smaller(most: int) -> None:
    points = trimesh.creation.icosphere(subdivisions=4, radius=0.1).vertices  # 2562 vertices, all on the hull
    vertices = certified_vertices(np.asarray(points), "ball", max_vertices=most)
    assert len(vertices) <= most
    assert outside_by(np.asarray(points), vertices) <= 0.0
    assert np.linalg.norm(vertices, axis=1).max() < (0.114 if most == 64 else 0.103)


def test_inflated_hull_holds_a_ball_about_every_point() -> None:
    points = cloud(2, 60)
    vertices = certified_vertices(points, "cloud", inflate=0.005)
    directions = cloud(3, 2000)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    support = (vertices @ directions.T).max(axis=0) - (points @ directions.T).max(axis=0)
    assert support.min() >= 0.005


def test_a_flat_set_has_no_hull() -> None:
    with pytest.raises(LoweringError, match="tray: its shapes span no volume"):
        certified_vertices(cloud(4, 50, (1.0, 1.0, 0.0)), "tray")


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), turn=st.tuples(*[st.floats(-3.0, 3.0)] * 3))
def test_hull_lies_in_dop_lies_in_box(seed: int, turn: tuple) -> None:
    rotation = trimesh.transformations.euler_matrix(*turn)[:3, :3]
    piece = fit_piece(cloud(seed, 80, (0.3, 0.1, 0.05)) @ rotation.T, "cloud")
    local = (piece.vertices - piece.box_pose.position) @ piece.box_pose.rotation
    offsets = local @ DOP_DIRECTIONS.T
    assert (offsets >= piece.dop[:, 0]).all() and (offsets <= piece.dop[:, 1]).all()
    assert (np.abs(piece.dop[:3]) <= np.array(piece.box_half)[:, None]).all()


def test_box_of_a_turned_box_is_that_box() -> None:
    """Minimum volume: 60 x 40 x 20 mm, whichever way it lies, plus 1 mm of headroom on every side."""
    rotation = trimesh.transformations.euler_matrix(0.3, -0.8, 1.1)[:3, :3]
    corners = np.asarray(trimesh.creation.box(extents=[0.06, 0.04, 0.02]).vertices) @ rotation.T
    piece = fit_piece(corners, "brick")
    assert sorted(piece.box_half) == pytest.approx([0.011, 0.021, 0.031], abs=2e-6)


def dumbbell() -> trimesh.Trimesh:
    """A 0.2 x 0.2 x 0.1 m slab, a 0.02 m column and another slab, 0.5 m long in all; planes at 0.1 and 0.4."""
    parts = [((0.2, 0.2, 0.1), 0.05), ((0.02, 0.02, 0.3), 0.25), ((0.2, 0.2, 0.1), 0.45)]
    meshes = [
        trimesh.creation.box(extents=e, transform=trimesh.transformations.translation_matrix((0, 0, z)))
        for e, z in parts
    ]
    return trimesh.util.concatenate(meshes)


def test_slabs_are_cut_where_the_volume_is_least() -> None:
    axis, planes = cut_planes(dumbbell(), 3, "dumbbell")
    assert axis == 2
    assert planes == pytest.approx([0.1, 0.4])
    volumes = [ConvexHull(points).volume for points in split_points(dumbbell(), 3, "dumbbell")]
    assert volumes == pytest.approx([0.004, 0.02 * 0.02 * 0.3, 0.004], rel=1e-9)


def test_a_triangle_across_a_plane_is_in_the_union_of_the_slabs() -> None:
    """Points on long triangles of a prism, everywhere including the seam, lie in one slab or the other."""
    prism = trimesh.creation.cylinder(radius=0.05, height=0.4, sections=7)
    hulls = [ConvexHull(points).equations for points in split_points(prism, 2, "prism")]
    points, _ = trimesh.sample.sample_surface(prism, 5000, seed=0)
    inside = [(points @ planes[:, :3].T + planes[:, 3]).max(axis=1) <= 1e-9 for planes in hulls]
    assert np.logical_or(*inside).all()


def test_too_many_slabs_are_refused() -> None:
    with pytest.raises(LoweringError, match="too short for 9 slabs"):
        split_points(trimesh.creation.box(extents=[0.05, 0.02, 0.02]), 9, "stub")


def test_nearest_point_on_a_triangle_in_every_region() -> None:
    """Against trimesh, with points around a triangle over each corner, each edge and the face."""
    triangle = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    points = cloud(5, 2000, (1.5, 1.5, 1.0))
    triangles = np.broadcast_to(triangle, (len(points), 3, 3))
    theirs = trimesh.triangles.closest_point(triangles, points)
    np.testing.assert_allclose(nearest_on_each(points, triangles), theirs, atol=1e-12)
    corners = {tuple(p) for p in nearest_on_each(points, triangles).round(12)} & {tuple(c) for c in triangle}
    assert len(corners) == 3
