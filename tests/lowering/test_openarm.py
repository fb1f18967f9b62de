"""The committed OpenArm against its own meshes and against MuJoCo."""

from itertools import pairwise

import mujoco
import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull

from simulo.description import LinkGeometry, RobotDescription, reference_fk
from tests.lowering.mujoco_pose import body_of, body_pose, posed

ENCLOSURE_TOLERANCE = 1e-9  # [m] the vertices are written on a 1 nm grid
FLOAT32_TOLERANCE = 1e-7  # [m] MuJoCo keeps mesh vertices in float32
SLAB_PLANES = (0.05, 0.22, 0.61)  # [m] where the torso's four slabs meet


def outside_by(points: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Distance by which each point violates the worst face plane of the hull of `vertices`."""
    planes = np.unique(ConvexHull(vertices).equations, axis=0)
    parts = [
        (part @ planes[:, :3].T + planes[:, 3]).max(axis=1) for part in np.array_split(points, len(points) // 4096 + 1)
    ]
    return np.concatenate(parts)


def outside_union(points: np.ndarray, geometry: LinkGeometry) -> np.ndarray:
    return np.min([outside_by(points, piece.vertices) for piece in geometry.pieces], axis=0)


def test_every_link_has_geometry(openarm: RobotDescription, mujoco_openarm: mujoco.MjModel) -> None:
    assert set(openarm.geometry) == set(openarm.links)
    names = {mujoco_openarm.body(i).name for i in range(1, mujoco_openarm.nbody)}
    assert names == set(openarm.links) - {openarm.root_link}


def test_no_vertex_of_any_mesh_is_outside(openarm: RobotDescription, meshes: dict[str, trimesh.Trimesh]) -> None:
    outside = {
        link: int((outside_union(np.asarray(m.vertices), openarm.geometry[link]) > ENCLOSURE_TOLERANCE).sum())
        for link, m in meshes.items()
    }
    assert outside == dict.fromkeys(openarm.links, 0)


def test_no_triangle_of_a_one_piece_link_is_outside(
    openarm: RobotDescription, meshes: dict[str, trimesh.Trimesh]
) -> None:
    """A triangle lies in a convex set with its corners: asked of the corners triangle by triangle."""
    for link, mesh in meshes.items():
        if len(openarm.geometry[link].pieces) == 1:
            stand_out = outside_by(np.asarray(mesh.triangles).reshape(-1, 3), openarm.geometry[link].pieces[0].vertices)
            assert (stand_out <= ENCLOSURE_TOLERANCE).all(), link


def test_no_triangle_of_the_torso_is_outside_its_slabs(
    openarm: RobotDescription, meshes: dict[str, trimesh.Trimesh]
) -> None:
    """Cut at the slab planes by another library; every part must lie in its slab, so seams are held."""
    torso, geometry = meshes[openarm.root_link], openarm.geometry[openarm.root_link]
    assert len(geometry.pieces) == len(SLAB_PLANES) + 1
    cut_area = 0.0
    for piece, (low, high) in zip(geometry.pieces, pairwise([-1.0, *SLAB_PLANES, 1.0]), strict=True):
        part = torso.slice_plane((0, 0, low), (0, 0, 1)).slice_plane((0, 0, high), (0, 0, -1))
        cut_area += part.area
        assert outside_by(np.asarray(part.triangles).reshape(-1, 3), piece.vertices).max() <= ENCLOSURE_TOLERANCE
    assert cut_area == pytest.approx(torso.area, rel=1e-9)  # nothing was lost on the way


def test_mujocos_own_geoms_are_inside(openarm: RobotDescription, mujoco_openarm: mujoco.MjModel) -> None:
    """Every geom of the compiled model, collision and visual, placed by MuJoCo: does not go through our reader."""
    model = mujoco_openarm
    data = posed(model, openarm, openarm.rest_pose)
    seen = 0
    for link, geometry in openarm.geometry.items():
        body = body_of(model, openarm, link)
        to_link = np.linalg.inv(body_pose(data, body))
        for geom in range(model.body_geomadr[body], model.body_geomadr[body] + model.body_geomnum[body]):
            mesh = model.geom_dataid[geom]
            first = model.mesh_vertadr[mesh]
            vertices = model.mesh_vert[first : first + model.mesh_vertnum[mesh]].astype(np.float64)
            world = vertices @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
            local = world @ to_link[:3, :3].T + to_link[:3, 3]
            assert outside_union(local, geometry).max() <= FLOAT32_TOLERANCE, model.geom(geom).name
            seen += 1
    assert seen == model.ngeom == 96


def test_hulls_are_tight(openarm: RobotDescription, meshes: dict[str, trimesh.Trimesh]) -> None:
    """Exact where a link has one piece: no hull vertex stands further than 1 um from the mesh's own hull."""
    for link, mesh in meshes.items():
        for piece in openarm.geometry[link].pieces[: 1 if len(openarm.geometry[link].pieces) == 1 else 0]:
            assert outside_by(piece.vertices, np.asarray(mesh.vertices)).max() <= 1e-6, link


def test_torso_slabs_leave_the_column_free(openarm: RobotDescription) -> None:
    """Least-volume cuts: 7.0 litres in all, where the torso's one hull holds 25.2."""
    geometry = openarm.geometry[openarm.root_link]
    litres = [ConvexHull(piece.vertices).volume * 1e3 for piece in geometry.pieces]
    assert ConvexHull(geometry.hull.vertices).volume * 1e3 == pytest.approx(25.2, abs=0.1)
    assert sum(litres) == pytest.approx(7.0, abs=0.1)
    tops = [piece.vertices[:, 2].max() for piece in geometry.pieces]
    assert tops[:3] == pytest.approx(SLAB_PLANES, abs=1e-6)


def test_kinematics_agree_with_mujoco(openarm: RobotDescription, mujoco_openarm: mujoco.MjModel) -> None:
    generator = np.random.default_rng(20260924)
    lower, upper = (np.array([getattr(joint, side) for joint in openarm.joints]) for side in ("lower", "upper"))
    qs = generator.uniform(lower, upper, size=(200, len(lower)))
    ours = reference_fk(openarm, qs)
    for index, q in enumerate(qs):
        data = posed(mujoco_openarm, openarm, q)
        for link in openarm.links:
            theirs = body_pose(data, body_of(mujoco_openarm, openarm, link))
            np.testing.assert_allclose(ours[link][index], theirs, rtol=0.0, atol=1e-9, err_msg=link)


def test_limits_are_the_files(openarm: RobotDescription, mujoco_openarm: mujoco.MjModel) -> None:
    for joint in openarm.joints:
        assert (joint.lower, joint.upper) == tuple(mujoco_openarm.joint(joint.sim_name).range)


@pytest.mark.parametrize("side", ["left", "right"])
def test_followers_stand_where_mujoco_puts_them(
    openarm: RobotDescription, mujoco_openarm: mujoco.MjModel, meshes: dict[str, trimesh.Trimesh], side: str
) -> None:
    """Every vertex of the follower's mesh at 25 openings: within 1 um, and not by standing still."""
    gripper = openarm.gripper(side)
    follower = gripper.follower_links[0]
    vertices = np.asarray(meshes[follower].vertices)
    column = openarm.joint_names.index(gripper.joint)
    places = []
    for value in np.linspace(gripper.closed_position, gripper.open_position, 25):
        q = np.array(openarm.rest_pose)
        q[column] = value
        ours = reference_fk(openarm, q)[follower]
        theirs = body_pose(posed(mujoco_openarm, openarm, q), mujoco_openarm.body(follower).id)
        ours, theirs = (vertices @ pose[:3, :3].T + pose[:3, 3] for pose in (ours, theirs))
        assert np.linalg.norm(ours - theirs, axis=1).max() <= 1e-6
        places.append(ours)
    assert np.linalg.norm(places[-1] - places[0], axis=1).max() > 0.05


@pytest.mark.parametrize("side", ["left", "right"])
def test_swept_hull_holds_both_fingers_over_the_whole_stroke(
    openarm: RobotDescription, mujoco_openarm: mujoco.MjModel, meshes: dict[str, trimesh.Trimesh], side: str
) -> None:
    """Between the nine samples too: 101 openings, placed by MuJoCo, seen from the leader."""
    gripper = openarm.gripper(side)
    leader, follower = gripper.jaw_links[0], gripper.follower_links[0]
    hull = openarm.swept[side]
    assert hull.link == leader
    assert len(hull.pieces[0].vertices) <= 320
    column = openarm.joint_names.index(gripper.joint)
    assert outside_by(np.asarray(meshes[leader].vertices), hull.hull.vertices).max() <= ENCLOSURE_TOLERANCE
    corners = np.asarray(meshes[follower].vertices)[ConvexHull(meshes[follower].vertices).vertices]
    for value in np.linspace(gripper.closed_position, gripper.open_position, 101):
        q = np.array(openarm.rest_pose)
        q[column] = value
        data = posed(mujoco_openarm, openarm, q)
        poses = [body_pose(data, mujoco_openarm.body(link).id) for link in (leader, follower)]
        relative = np.linalg.inv(poses[0]) @ poses[1]
        assert (
            outside_by(corners @ relative[:3, :3].T + relative[:3, 3], hull.hull.vertices).max() <= ENCLOSURE_TOLERANCE
        )


@pytest.mark.parametrize("side", ["left", "right"])
def test_pads_meet_when_closed_and_open_146_mm(openarm: RobotDescription, side: str) -> None:
    """By hand: pads 18 mm inside hinges 36 mm apart touch at 0; at 45 degrees each turns 96 mm of finger outwards."""
    gripper = openarm.gripper(side)
    column = openarm.joint_names.index(gripper.joint)
    apertures = []
    for value in (gripper.closed_position, gripper.open_position):
        q = np.array(openarm.rest_pose)
        q[column] = value
        poses = reference_fk(openarm, q)
        places = [poses[p.link][:3, :3] @ p.position + poses[p.link][:3, 3] for p in gripper.pad_points]
        apertures.append(float(np.linalg.norm(places[1] - places[0])))
    by_hand = 2 * (0.018 + (0.096 - 0.018) * np.sin(np.pi / 4))
    assert apertures == pytest.approx([0.0, by_hand], abs=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
def test_grasp_frame_points_out_of_the_hand(openarm: RobotDescription, side: str) -> None:
    """At rest the hand hangs down: the approach is straight down and its origin lies between the fingertips."""
    gripper = openarm.gripper(side)
    poses = reference_fk(openarm, openarm.rest_pose)
    frame = poses[gripper.hand_link] @ gripper.grasp_frame.matrix
    assert frame[:3, 2] == pytest.approx([0.0, 0.0, -1.0], abs=1e-12)
    pads = [poses[p.link][:3, :3] @ p.position + poses[p.link][:3, 3] for p in gripper.pad_points]
    assert np.linalg.norm(frame[:3, 3] - np.mean(pads, axis=0)) < 0.005
