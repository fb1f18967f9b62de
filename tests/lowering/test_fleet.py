"""Every robot that is committed lowered: its kinematics, its geometry and its rest pose, against other libraries."""

import coal
import mujoco
import numpy as np
import pytest
from scipy.spatial import ConvexHull

from simulo.description import RobotDescription, list_robots, load_description, reference_fk
from simulo.description.load import geometry_path, load_robot_file
from simulo.evaluation.configuration import check_configuration, configuration
from simulo.lowering import link_meshes, lower_robot
from tests.lowering.vendor import mujoco_link_poses, pinocchio_link_poses, posed, vendor_model

# openarm and the drawn gantry have tests of their own.
COMMITTED = [
    name
    for name in list_robots()
    if load_robot_file(name).geometry == "committed" and name not in ("openarm", "gantry")
]
FORMAT = {name: load_robot_file(name).source.format for name in COMMITTED}
MJCF, URDF = ([name for name in COMMITTED if FORMAT[name] == kind] for kind in ("mjcf", "urdf"))


def configurations(description: RobotDescription) -> np.ndarray:
    """The rest pose, each joint alone at both ends and in the middle of its range, and random poses."""
    rest = np.asarray(description.rest_pose)
    lower = np.array([max(joint.lower, -np.pi) for joint in description.joints])
    upper = np.array([min(joint.upper, np.pi) for joint in description.joints])
    alone = np.tile(rest, (3 * len(rest), 1))
    for column in range(len(rest)):
        alone[3 * column : 3 * column + 3, column] = lower[column], 0.5 * (lower[column] + upper[column]), upper[column]
    return np.vstack([rest, alone, np.random.default_rng(7).uniform(lower, upper, (20, len(rest)))])


@pytest.mark.parametrize("name", MJCF)
def test_links_are_where_mujoco_has_them(name: str) -> None:
    description = load_description(name)
    model = vendor_model(description)
    poses = configurations(description)
    ours = reference_fk(description, poses)
    for row, q in enumerate(poses):
        theirs = mujoco_link_poses(model, description, q)
        for link in description.links:
            assert np.abs(ours[link][row] - theirs[link]).max() < 1e-9, (link, q)


@pytest.mark.parametrize("name", URDF)
def test_links_are_where_pinocchio_has_them(name: str) -> None:
    description = load_description(name)
    poses = configurations(description)
    ours = reference_fk(description, poses)
    for row, q in enumerate(poses):
        theirs = pinocchio_link_poses(description, q)
        for link in description.links:
            assert np.abs(ours[link][row] - theirs[link]).max() < 1e-9, (link, q)


def stand_out(description: RobotDescription, link: str, points: np.ndarray) -> float:
    """How far the worst point is outside of the union of the link's pieces [m]: planes by Qhull from the vertices."""
    if len(description.geometry[link].pieces) == 1:  # then the points' own corners tell
        points = points[ConvexHull(points).vertices]
    outside = np.full(len(points), np.inf)
    for piece in description.geometry[link].pieces:
        planes = np.unique(ConvexHull(piece.vertices).equations, axis=0)
        outside = np.minimum(outside, (points @ planes[:, :3].T + planes[:, 3]).max(axis=1))
    return float(outside.max())


def geom_points(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Points on a geom's surface in its own frame: a mesh's vertices, or those of a primitive that stand out most."""
    size, kind = model.geom_size[geom], model.geom_type[geom]
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        start = model.mesh_vertadr[mesh]
        return np.asarray(model.mesh_vert[start : start + model.mesh_vertnum[mesh]], dtype=float)
    corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8).T.astype(float)
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return corners * size
    up = np.array([0.0, 0.0, size[1]])
    turn = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    ring = np.column_stack([np.cos(turn), np.sin(turn), np.zeros(48)]) * size[0]
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        return np.vstack([ring + up, ring - up])
    ball = np.random.default_rng(0).normal(size=(500, 3))
    ball *= size[0] / np.linalg.norm(ball, axis=1, keepdims=True)
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return ball
    assert kind == mujoco.mjtGeom.mjGEOM_CAPSULE, kind
    return np.vstack([ball + up, ball - up])


@pytest.mark.parametrize("name", MJCF)
def test_every_geom_that_mujoco_has_is_inside(name: str) -> None:
    """Collision and visual, placed by MuJoCo from its own float32 copies: nothing of this goes through our reader."""
    description = load_description(name)
    model = vendor_model(description)
    data = posed(model, description, np.asarray(description.rest_pose))
    frames = mujoco_link_poses(model, description, np.asarray(description.rest_pose))
    held: dict[str, list[np.ndarray]] = {}
    for geom in range(model.ngeom):
        link = model.body(int(model.geom_bodyid[geom])).name
        link = link if model.geom_bodyid[geom] else description.root_link
        world = geom_points(model, geom) @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
        local = (world - frames[link][:3, 3]) @ frames[link][:3, :3]
        held.setdefault(link, []).append(local)
    assert set(held) == set(description.geometry)
    for link, points in held.items():
        assert stand_out(description, link, np.vstack(points)) < 2e-7, link  # MuJoCo's vertices are float32


@pytest.mark.parametrize("name", URDF)
def test_every_vertex_of_a_urdf_is_inside(name: str) -> None:
    description = load_description(name)
    meshes = link_meshes(description)
    assert set(meshes) == set(description.geometry)
    for link, mesh in meshes.items():
        assert stand_out(description, link, np.asarray(mesh.vertices)) <= 1e-12, link


@pytest.mark.parametrize("name", COMMITTED)
def test_the_rest_pose_is_clear(name: str) -> None:
    description = load_description(name)
    rest = configuration(description, list(map(float, description.rest_pose)))
    assert check_configuration(description, rest)["clear"]


@pytest.mark.parametrize("name", [name for name in COMMITTED if load_robot_file(name).grippers])
def test_a_hand_is_clear_of_its_robot_over_its_whole_stroke(name: str) -> None:
    description = load_description(name)
    for gripper in description.grippers:
        for opening in np.linspace(gripper.open_position, gripper.closed_position, 9):
            q = configuration(description, list(map(float, description.rest_pose)))
            q[description.joint_names.index(gripper.joint)] = opening
            answer = check_configuration(description, q)
            assert answer["clear"], (gripper.name, opening, answer["parties"])


@pytest.mark.parametrize(
    ("name", "open_mm", "closed_mm"),
    [
        ("franka_panda", 80.0, 0.0),  # the maker's figure
        ("robotiq_2f85", 85.4, 1.8),  # 85 mm by the maker; its silicone pads meet before the end of the stroke
        ("ur5e_2f85", 85.4, 1.8),
        ("robotiq_2f85_urdf", 86.0, 1.5),
        ("so101", 129.7, 3.6),
        ("so100", 139.0, 1.8),
    ],
)
def test_pads_are_as_far_apart_as_the_hand_opens(name: str, open_mm: float, closed_mm: float) -> None:
    """Between the pads at both ends of the stroke, by FK; where they are closed, the grasp frame is between them."""
    description = load_description(name)
    (gripper,) = description.grippers
    for opening, expected in ((gripper.open_position, open_mm), (gripper.closed_position, closed_mm)):
        q = np.array(description.rest_pose)
        q[description.joint_names.index(gripper.joint)] = opening
        poses = reference_fk(description, q)
        first, second = (poses[pad.link] @ [*pad.position, 1.0] for pad in gripper.pad_points)
        assert 1000 * np.linalg.norm(first - second) == pytest.approx(expected, abs=0.1)


def test_the_so100_touches_itself_where_all_its_joints_are_at_zero() -> None:
    """Why its rest pose lifts the upper arm a little: by its own triangles the arm lies on the base."""
    description = load_description("so100")
    meshes = link_meshes(description)

    def gap(lift: float) -> float:
        poses = reference_fk(description, [0.0, lift, 0.0, 0.0, 0.0, 0.0])
        solids = []
        for link in ("base", "upper_arm"):
            solid = coal.BVHModelOBBRSS()
            solid.beginModel(len(meshes[link].faces), len(meshes[link].vertices))
            solid.addVertices(np.asarray(meshes[link].vertices))
            solid.addTriangles(np.asarray(meshes[link].faces, dtype=np.int32))
            solid.endModel()
            solids += [solid, coal.Transform3s(poses[link][:3, :3], poses[link][:3, 3])]
        return coal.distance(*solids, coal.DistanceRequest(), coal.DistanceResult())

    assert gap(0.0) == 0.0
    assert gap(0.05) > 0.004


@pytest.mark.parametrize("name", ["robotiq_2f85", "robotiq_2f85_urdf"])
def test_what_is_committed_is_what_the_lowering_gives(name: str) -> None:
    """Byte for byte, from the package that robot.yaml pins. `simulo lower NAME --check` asks it of any robot."""
    assert geometry_path(name).read_text() == lower_robot(name).text
