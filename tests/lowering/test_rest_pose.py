"""Rest pose and exemptions of OpenArm by another library's convex distances (coal)."""

from itertools import combinations

import coal
import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull

from simulo.description import RobotDescription, reference_fk
from simulo.evaluation.contact_truth import MeshTruth


def coal_convex(vertices: np.ndarray) -> coal.Convex:
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for vertex in vertices:
        points.append(vertex)
    hull = ConvexHull(vertices)
    for corners, plane in zip(hull.simplices, hull.equations, strict=True):
        a, b, c = vertices[corners]
        outward = np.dot(np.cross(b - a, c - a), plane[:3]) > 0.0
        triangles.append(coal.Triangle(*(int(i) for i in (corners if outward else corners[::-1]))))
    return coal.Convex(points, triangles)


class Hulls:
    def __init__(self, description: RobotDescription) -> None:
        self.shapes = {n: [coal_convex(p.vertices) for p in g.pieces] for n, g in description.geometry.items()}

    def distance(self, poses: dict[str, np.ndarray], a: str, b: str) -> float:
        """Least distance [m] between the links' pieces; negative when they overlap."""
        places = [coal.Transform3s(poses[link][:3, :3], poses[link][:3, 3]) for link in (a, b)]
        request = coal.DistanceRequest()
        return min(
            coal.distance(x, places[0], y, places[1], request, coal.DistanceResult())
            for x in self.shapes[a]
            for y in self.shapes[b]
        )


@pytest.fixture(scope="module")
def hulls(openarm: RobotDescription) -> Hulls:
    return Hulls(openarm)


def checked_pairs(description: RobotDescription) -> list[tuple[str, str]]:
    exempt = {frozenset((p.link_a, p.link_b)) for p in description.disabled_pairs}
    return [pair for pair in combinations(description.geometry, 2) if frozenset(pair) not in exempt]


def random_poses(description: RobotDescription, count: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(20260924)
    lower, upper = (np.array([getattr(joint, side) for joint in description.joints]) for side in ("lower", "upper"))
    return reference_fk(description, generator.uniform(lower, upper, size=(count, len(lower))))


def test_rest_pose_is_clear(openarm: RobotDescription, hulls: Hulls) -> None:
    poses = reference_fk(openarm, openarm.rest_pose)
    distances = {pair: hulls.distance(poses, *pair) for pair in checked_pairs(openarm)}
    assert len(distances) == 187
    nearest = min(distances, key=distances.__getitem__)
    assert distances[nearest] == pytest.approx(0.01197, abs=1e-4), nearest


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_wrists_triangles_never_touch_where_its_pieces_do_not(
    openarm: RobotDescription, hulls: Hulls, meshes: dict[str, trimesh.Trimesh], side: str
) -> None:
    """The hub of the hand turns between two horns, each in the other's hull: 18 contacts of an arm in 1000 poses."""
    pair = (f"openarm_{side}_link5", f"openarm_{side}_ee_base_link")
    assert pair in checked_pairs(openarm)
    truth = MeshTruth({link: meshes[link] for link in pair})
    poses = random_poses(openarm, 1000)
    placed = [{link: poses[link][i] for link in pair} for i in range(1000)]
    touching = np.array([truth.clearance(here, pair) <= 0.0 for here in placed])
    stopped = np.array([hulls.distance(here, *pair) <= 0.0 for here in placed])
    assert touching.sum() == 18
    assert not (touching & ~stopped).any()
    assert (stopped & ~touching).sum() <= 5


def test_no_pair_needs_a_proof(openarm: RobotDescription) -> None:
    """No row by hand, and nothing exempt but neighbours, rigid groups and jaws."""
    reasons = [pair.reason.split(":")[0] for pair in openarm.disabled_pairs]
    assert {reason: reasons.count(reason) for reason in reasons} == {"rigid": 3, "adjacent": 18, "jaws": 2}


@pytest.mark.parametrize("side", ["left", "right"])
def test_finger_and_wrist_pairs_are_checked_and_never_trip(openarm: RobotDescription, hulls: Hulls, side: str) -> None:
    """Retired rows: rigid fingers stay over 15 mm from their own wrist in 500 configurations."""
    poses = random_poses(openarm, 500)
    for wrist in ("link5", "link6"):
        for finger in ("ee_inner_finger", "ee_outer_finger"):
            pair = (f"openarm_{side}_{wrist}", f"openarm_{side}_{finger}")
            assert pair in checked_pairs(openarm)
            assert min(hulls.distance({k: v[i] for k, v in poses.items()}, *pair) for i in range(500)) > 0.015
