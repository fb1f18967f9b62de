"""Real distances, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from simulo.description import load_description
from simulo.evaluation.clearance import distance_to
from simulo.evaluation.meshes import true_meshes
from simulo.evaluation.truth import Truth, distance_between, link_poses, matrix_of, solid
from simulo.pose import Pose
from simulo.props import Box, Capsule, Cylinder, Hull, Sphere

SHAPES = {
    "box": Box((0.04, 0.06, 0.1)),
    "sphere": Sphere(0.03),
    "cylinder": Cylinder(0.02, 0.1),
    "capsule": Capsule(0.02, 0.06),
}
FINGER = "openarm_right_ee_inner_finger"


@pytest.fixture(scope="module")
def truth():
    return Truth(load_description("openarm"), SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_distance_of_a_link_is_that_of_its_nearest_vertex_seen_from_far(truth, name):
    """From far away the nearest point of a mesh to a convex shape is near a vertex: closed forms bound it."""
    pose = Pose((0.25, -0.3, 0.2), (0.8, 0.1, -0.4, 0.3))
    at = link_poses(truth.description, np.zeros(16))[FINGER]
    vertices = np.asarray(true_meshes(truth.description)[FINGER].vertices) @ at[:3, :3].T + at[:3, 3]
    nearest = distance_to(SHAPES[name], pose, vertices).min()
    found = truth.distance(FINGER, at, name, matrix_of(np.array([*pose.position, *pose.orientation_wxyz])))
    assert found <= nearest + 1e-6  # the library closes its search at 1e-6
    assert found == pytest.approx(nearest, abs=1e-4)


def test_overlap_is_zero_and_order_does_not_matter(truth):
    at = link_poses(truth.description, np.zeros(16))[FINGER]
    inside = at.copy()
    inside[:3, 3] = np.asarray(true_meshes(truth.description)[FINGER].vertices)[0] @ at[:3, :3].T + at[:3, 3]
    assert truth.distance(FINGER, at, "box", inside) == 0.0
    apart = np.eye(4)
    apart[:3, 3] = (0.3, -0.3, 0.2)
    assert truth.distance(FINGER, at, "box", apart) == pytest.approx(truth.distance("box", apart, FINGER, at), abs=1e-9)


def test_a_hull_of_a_box_s_corners_is_as_far_as_the_box():
    box = Box((0.04, 0.06, 0.1))
    corners = [(x, y, z) for x in (-0.02, 0.02) for y in (-0.03, 0.03) for z in (-0.05, 0.05)]
    pose = np.eye(4)
    pose[:3, 3] = (0.1, 0.02, 0.0)
    distances = [distance_between(solid(shape), np.eye(4), solid(Sphere(0.01)), pose) for shape in (box, Hull(corners))]
    assert distances == pytest.approx([0.07, 0.07], abs=1e-6)


def test_cells_are_full_cubes(truth):
    """A box of 40 mm centred on the origin against one cell centred 50 mm along x: 50 - 20 - 5 = 25 mm."""
    pose = np.eye(4)
    assert truth.to_cells("box", pose, np.array([[0.05, 0.0, 0.0]]), 0.01, 0.05) == pytest.approx(0.025, abs=1e-9)
    assert truth.to_cells("box", pose, np.array([[0.05, 0.0, 0.0]]), 0.01, 0.02) == np.inf
    assert truth.to_cells("box", pose, np.empty((0, 3)), 0.01, 0.02) == np.inf


@pytest.mark.parametrize(
    ("shape", "point", "distance"),
    [
        (Box((0.2, 0.4, 0.6)), (0.4, 0.6, 0.0), 0.5),  # 0.3 and 0.4 beyond two faces
        (Box((0.2, 0.4, 0.6)), (0.05, 0.0, 0.0), -0.05),
        (Cylinder(0.1, 0.4), (0.4, 0.0, 0.6), 0.5),
        (Cylinder(0.1, 0.4), (0.0, 0.0, 0.15), -0.05),
        (Capsule(0.1, 0.4), (0.3, 0.0, 0.6), 0.4),
        (Capsule(0.1, 0.4), (0.3, 0.0, 0.1), 0.2),
        (Sphere(0.1), (0.0, 0.3, 0.4), 0.4),
    ],
)
def test_distance_to_a_solid_by_hand(shape, point, distance):
    turn = Pose((1.0, -2.0, 3.0), (0.5, 0.5, -0.5, 0.5))
    assert distance_to(shape, turn, turn.apply([point])) == pytest.approx([distance], abs=1e-12)
