"""The self-filter against distances from coal, on hulls placed by hand."""

from __future__ import annotations

import coal
import numpy as np
import pytest
import torch

from simulo.collision.shapes import ConvexShape
from simulo.description.schema import DOP_DIRECTIONS, ConvexPiece, LinkGeometry
from simulo.perception import Intrinsics, PerceptionError, SelfFilter
from simulo.pose import Pose
from tests.perception.box_scenes import look, rays

CAMERA = Intrinsics.from_fovy(160, 120, 0.35)
EYE = look((0.9, 0.2, 0.6), (0.0, 0.0, 0.1))
ALL = torch.tensor([0])


def hull_vertices(seed: int, count: int = 40) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 3)) * (0.06, 0.04, 0.1)


def geometry(link: str, vertices: np.ndarray) -> LinkGeometry:
    dop = np.stack([(vertices @ DOP_DIRECTIONS.T).min(0), (vertices @ DOP_DIRECTIONS.T).max(0)], axis=1)
    half = np.abs(vertices).max(0)
    piece = ConvexPiece(vertices, Pose(), (float(half[0]), float(half[1]), float(half[2])), dop)
    return LinkGeometry(link, (piece,), piece)


def distances(points: np.ndarray, vertices: np.ndarray, pose: Pose) -> np.ndarray:
    """Distance [m] of each point to the hull of the vertices, zero inside, from coal in float64."""
    bvh = coal.BVHModelOBBRSS()
    bvh.beginModel(0, len(vertices))
    for vertex in vertices:
        bvh.addVertex(vertex)
    bvh.endModel()
    bvh.buildConvexHull(True, "Qt")
    hull, ball = bvh.convex, coal.Sphere(1e-9)
    where = coal.Transform3s(pose.rotation, np.asarray(pose.position))
    request, out = coal.DistanceRequest(), []
    for point in points:
        result = coal.DistanceResult()
        coal.distance(hull, where, ball, coal.Transform3s(np.eye(3), point), request, result)
        out.append(max(result.min_distance, 0.0))
    return np.array(out)


def as_row(*poses: Pose) -> torch.Tensor:
    return torch.tensor([[[*p.position, *p.orientation_wxyz] for p in poses]], dtype=torch.float32)


def random_depth(seed: int) -> tuple[torch.Tensor, np.ndarray]:
    """Depths that scatter points around the origin, and those points."""
    depth = np.random.default_rng(seed).uniform(0.6, 1.5, (CAMERA.height, CAMERA.width)).astype(np.float32)
    points = np.asarray(EYE.position) + depth[..., None].astype(np.float64) * rays(EYE, CAMERA)
    return torch.tensor(depth)[None, None], points


@pytest.mark.parametrize("padding", [0.002, 0.01, 0.03])
def test_labels_are_distances_to_the_hull_within_the_padding(padding):
    vertices = hull_vertices(1)
    pose = Pose.from_rpy((0.02, 0.05, 0.1), (0.4, -1.0, 2.0))
    filt = SelfFilter(["base", "arm"], {"arm": geometry("arm", vertices)}, 1, padding)
    depth, points = random_depth(2)
    got = filt.label(depth, CAMERA, as_row(EYE), as_row(Pose(), pose), ALL)[0, 0].numpy().astype(bool)
    near = np.linalg.norm(points - np.asarray(pose.position), axis=-1) < 0.5
    truth = np.full(points.shape[:2], np.inf)
    truth[near] = distances(points[near], vertices, pose)
    assert got[truth <= padding - 1e-5].all() and (truth <= padding - 1e-5).sum() > 50
    assert not got[truth > padding + 2e-5].any()


def test_two_links_each_at_its_own_pose():
    left, right = Pose((0.0, 0.15, 0.1)), Pose.from_rpy((0.0, -0.15, 0.1), (0.0, 0.5, 0.0))
    a, b = hull_vertices(3), hull_vertices(4)
    filt = SelfFilter(["a", "b"], {"a": geometry("a", a), "b": geometry("b", b)}, 1, 0.005)
    depth, points = random_depth(5)
    got = filt.label(depth, CAMERA, as_row(EYE), as_row(left, right), ALL)[0, 0].numpy().astype(bool)
    near = np.linalg.norm(points, axis=-1) < 0.7
    truth = np.full(points.shape[:2], np.inf)
    truth[near] = np.minimum(distances(points[near], a, left), distances(points[near], b, right))
    decided = np.abs(truth - 0.005) > 2e-5
    assert (got == (truth <= 0.005))[decided].all() and got.sum() > 50


def test_what_a_hand_holds_belongs_to_the_robot_until_released():
    pose = Pose.from_rpy((0.0, 0.0, 0.1), (0.3, 0.0, 0.0))
    grip = Pose.from_rpy((0.0, 0.0, 0.05), (0.0, 0.7, 0.0))
    cylinder = ConvexShape.cylinder(0.05, 0.12)
    filt = SelfFilter(["hand"], {"hand": geometry("hand", np.eye(3) * 1e-3)}, 2, 0.01)
    both = torch.tensor([0, 1])
    filt.hold(1, cylinder, "hand", as_row(grip)[0], torch.tensor([1]))
    depth, points = random_depth(6)
    args = (depth.repeat(2, 1, 1, 1), CAMERA, as_row(EYE).repeat(2, 1, 1), as_row(pose).repeat(2, 1, 1), both)
    got = filt.label(*args)[:, 0].numpy().astype(bool)
    local = (grip.inverse() @ pose.inverse()).apply(points.reshape(-1, 3)).reshape(points.shape)
    outside = np.stack([np.hypot(local[..., 0], local[..., 1]) - 0.05, np.abs(local[..., 2]) - 0.06], -1)
    truth = np.linalg.norm(np.maximum(outside, 0.0), axis=-1)
    assert got[1][truth <= 0.0099].all() and not got[1][truth > 0.0106].any()  # the prism overhangs by 0.43 mm
    assert got[1].sum() > 100 and got[0].sum() < 20
    filt.release(1, both)
    assert (filt.label(*args)[1, 0].numpy() == got[0]).all()


def test_pixels_without_a_point_are_not_robot():
    filt = SelfFilter(["arm"], {"arm": geometry("arm", hull_vertices(1))}, 1, 10.0)
    depth = torch.tensor([np.inf, np.nan, 0.0, -0.5, 1.0]).repeat(CAMERA.height, CAMERA.width // 5)[None, None]
    got = filt.label(depth, CAMERA, as_row(EYE), as_row(Pose()), ALL)
    assert torch.equal(got[0, 0, 0, :5], torch.tensor([0, 0, 0, 0, 1], dtype=torch.uint8))


def test_b25_a_missing_link_pose_is_refused_by_name():
    filt = SelfFilter(["base", "arm"], {"arm": geometry("arm", hull_vertices(1))}, 3)
    depth, _ = random_depth(1)
    poses = as_row(Pose(), Pose()).repeat(2, 1, 1)
    poses[1, 1, 5] = np.nan
    assert filt.missing_links(poses) == {1: ("arm",)}
    with pytest.raises(PerceptionError, match="environment 2: no pose for arm"):
        filt.label(depth.repeat(2, 1, 1, 1), CAMERA, as_row(EYE).repeat(2, 1, 1), poses, torch.tensor([0, 2]))
