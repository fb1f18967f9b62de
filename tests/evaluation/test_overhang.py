"""Overhang of the finger models: figures against solids with known answers, then OpenArm's."""

import numpy as np
import pytest
import trimesh

from simulo.description import LinkGeometry, RobotDescription, load_description, reference_fk
from simulo.description.schema import ConvexPiece
from simulo.errors import CollisionModelError
from simulo.evaluation.exposed import Union
from simulo.evaluation.overhang import (
    RESOLUTION,
    RealSurface,
    bench_overhang,
    checked_geometry,
    farthest,
    overhang_of,
    stands_off,
)
from simulo.lowering import link_meshes
from simulo.lowering.pieces import fit_piece


@pytest.fixture(scope="module")
def openarm() -> RobotDescription:
    return load_description("openarm")


@pytest.fixture(scope="module")
def real(openarm: RobotDescription) -> dict[str, RealSurface]:
    meshes = link_meshes(openarm)
    return {link: RealSurface(meshes[link]) for gripper in openarm.grippers for link in gripper.grasp_contact_links}


def surface(mesh: trimesh.Trimesh) -> np.ndarray:
    return np.asarray(mesh.triangles)


def test_a_box_around_a_ball() -> None:
    """A cube of side 2 about a unit ball: the corners stand sqrt(3) - 1 off."""
    ball = trimesh.creation.icosphere(subdivisions=5)
    found = farthest(surface(trimesh.creation.box(extents=[2, 2, 2])), [(RealSurface(ball), np.eye(4))])
    assert found.distance == pytest.approx(np.sqrt(3) - 1, abs=2e-3)
    assert np.abs(found.point) == pytest.approx(np.ones(3), abs=2e-3)
    assert found.distance <= found.bound <= found.distance + RESOLUTION


def test_the_largest_distance_in_the_middle_of_a_facet() -> None:
    """A lid over two plates 0.4 m apart: worst along the line midway, 0.2 m from either, where no corner is."""
    plates = [trimesh.creation.box(bounds=[[x, 0, -0.1], [x + 0.1, 1, 0]]) for x in (-0.3, 0.2)]
    lid = np.array([[[-0.2, 0, 0], [0.2, 0, 0], [0.2, 1, 0]], [[-0.2, 0, 0], [0.2, 1, 0], [-0.2, 1, 0]]], dtype=float)
    found = farthest(lid, [(RealSurface(plate), np.eye(4)) for plate in plates])
    assert found.distance == pytest.approx(0.2, abs=RESOLUTION) and found.point[0] == pytest.approx(0.0, abs=2e-4)
    assert 0.2 <= found.bound <= 0.2 + 2 * RESOLUTION


def test_faces_inside_other_pieces_are_no_surface() -> None:
    """A bar of 0.1 x 0.1 x 0.4 m in two halves: the cut is 50 mm from the bar's surface, and nothing stands off it.
    A third piece on one end stands 20 mm off."""
    mesh = trimesh.creation.box(extents=[0.1, 0.1, 0.4])
    bar = RealSurface(mesh)

    def piece(low: float, high: float) -> ConvexPiece:
        box = trimesh.creation.box(bounds=[[-0.05, -0.05, low], [0.05, 0.05, high]])
        return fit_piece(np.asarray(box.vertices), "half")

    halves = piece(-0.2, 0.03), piece(0.03, 0.2)
    for pieces, expected in ((halves, 0.0), ((*halves, piece(0.15, 0.22)), 0.02)):
        geometry = LinkGeometry("bar", pieces, piece(-0.2, 0.22))
        union = Union(geometry)
        assert expected <= stands_off(geometry, mesh, 1e-3) <= expected + 1.01e-3
        found = farthest(union.facets, [(bar, np.eye(4))], union)
        assert found.distance == pytest.approx(expected, abs=2 * RESOLUTION)
        assert found.distance <= found.bound <= found.distance + 2 * RESOLUTION
        assert farthest(union.facets, [(bar, np.eye(4))]).distance == pytest.approx(0.05, abs=1e-3)


def test_bound_bounds_brute_force(openarm: RobotDescription, real: dict[str, RealSurface]) -> None:
    """Half open: points of each finger's hull, their distances to every triangle of both fingers by trimesh."""
    gripper = openarm.gripper("right")
    column = openarm.joint_names.index(gripper.joint)
    q = np.array(openarm.rest_pose)
    q[column] = 0.5 * (openarm.joints[column].lower + openarm.joints[column].upper)
    poses = reference_fk(openarm, q)
    triangles = np.concatenate(
        [real[link].triangles @ poses[link][:3, :3].T + poses[link][:3, 3] for link in gripper.grasp_contact_links]
    )
    overhang = overhang_of(openarm, gripper, checked_geometry(openarm, gripper, "mimic"), real, 3)
    for link in gripper.grasp_contact_links:
        hull = trimesh.convex.convex_hull(openarm.geometry[link].hull.vertices).apply_transform(poses[link])
        for point in trimesh.sample.sample_surface(hull, 60, seed=1)[0]:
            nearest = trimesh.triangles.closest_point(triangles, np.broadcast_to(point, (len(triangles), 3)))
            assert np.linalg.norm(nearest - point, axis=1).min() <= overhang.upper_bound


def test_nearest_triangles_are_the_nearest(openarm: RobotDescription, real: dict[str, RealSurface]) -> None:
    finger = real["openarm_left_ee_inner_finger"]
    points = np.random.default_rng(3).uniform(-0.1, 0.1, size=(60, 3))
    found = trimesh.triangles.closest_point(finger.nearest_triangles(points), points)
    for point, ours in zip(points, found, strict=True):
        every = trimesh.triangles.closest_point(finger.triangles, np.broadcast_to(point, (len(finger.triangles), 3)))
        assert np.linalg.norm(ours - point) == pytest.approx(np.linalg.norm(every - point, axis=1).min(), abs=1e-6)


@pytest.mark.parametrize("model", ["swept", "mimic", "decomposed"])
def test_what_openings_share_changes_nothing(
    openarm: RobotDescription, real: dict[str, RealSurface], model: str
) -> None:
    """Each opening searched by itself, from nothing."""
    gripper = openarm.gripper("left")
    joint = openarm.joints[openarm.joint_names.index(gripper.joint)]
    checked = checked_geometry(openarm, gripper, model)
    largest = []
    for value in np.linspace(joint.lower, joint.upper, 4):
        q = np.array(openarm.rest_pose)
        q[openarm.joint_names.index(gripper.joint)] = value
        poses = reference_fk(openarm, q)
        per_link = []
        for link, geometry in checked.items():
            fingers = [(real[n], np.linalg.inv(poses[n]) @ poses[link]) for n in gripper.grasp_contact_links]
            union = Union(geometry)
            per_link.append(farthest(union.facets, fingers, union).distance)
        largest.append(max(per_link))
    overhang = overhang_of(openarm, gripper, checked, real, 4)
    assert overhang.largest == pytest.approx(max(largest), abs=RESOLUTION)
    assert overhang.mean == pytest.approx(np.mean(largest), abs=RESOLUTION)


@pytest.mark.parametrize("side", ["left", "right"])
def test_swept_fingers_stand_84_mm_off(openarm: RobotDescription, real: dict[str, RealSurface], side: str) -> None:
    gripper = openarm.gripper(side)
    overhang = overhang_of(openarm, gripper, checked_geometry(openarm, gripper, "swept"), real, 49)
    assert overhang.largest == pytest.approx(0.084, abs=0.001)
    assert overhang.mean == pytest.approx(0.067, abs=0.001)
    assert overhang.largest <= overhang.upper_bound <= overhang.largest + 1.1 * RESOLUTION


@pytest.mark.parametrize("side", ["left", "right"])
def test_mimic_fingers_stand_19_mm_off(openarm: RobotDescription, real: dict[str, RealSurface], side: str) -> None:
    """Rigid fingers: the same at every opening, so five say what 49 do."""
    gripper = openarm.gripper(side)
    overhang = overhang_of(openarm, gripper, checked_geometry(openarm, gripper, "mimic"), real, 5)
    assert overhang.largest <= 0.0187
    assert overhang.mean == pytest.approx(overhang.largest, abs=2 * RESOLUTION)
    assert overhang.upper_bound <= 0.020


@pytest.mark.parametrize("side", ["left", "right"])
def test_decomposed_fingers_stand_less_than_4_mm_off(
    openarm: RobotDescription, real: dict[str, RealSurface], side: str
) -> None:
    """The bound holds for every point of the surface, so the 4 mm are proven, not sampled."""
    gripper = openarm.gripper(side)
    overhang = overhang_of(openarm, gripper, checked_geometry(openarm, gripper, "decomposed"), real, 3)
    assert 0.0 < overhang.largest <= overhang.upper_bound <= 0.004


def test_figures_have_the_published_form() -> None:
    steps = []
    figures = bench_overhang("openarm", 2, lambda label, done, total: steps.append((done, total)))
    assert figures.keys() == {"robot", "openings", "models"}
    assert (figures["robot"], figures["openings"]) == ("openarm", 2)
    assert figures["models"].keys() == {"swept", "mimic", "decomposed"}
    for model in figures["models"].values():
        assert model.keys() == {"max_mm", "mean_mm", "upper_bound_mm"}
        assert model["mean_mm"] <= model["max_mm"] <= model["upper_bound_mm"]
    assert sorted(steps) == [(done, 12) for done in range(1, 13)], "2 openings of 3 models on 2 arms"


def test_one_opening_is_refused() -> None:
    with pytest.raises(CollisionModelError, match="openings is 1"):
        bench_overhang("openarm", 1)
