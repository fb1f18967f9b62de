"""MuJoCo on the same hulls, a truth of kinematics and verdicts; coal for distances; an LP for disputes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import coal
import mujoco
import numpy as np
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

from simulo.description import ConvexPiece, FixedAttachment, RobotDescription


@dataclass(frozen=True)
class Oracle:
    """A MuJoCo model of a description: its links as bodies, its pieces as mesh geoms, its checked pairs as pairs."""

    description: RobotDescription
    model: mujoco.MjModel
    data: mujoco.MjData

    def pose(self, q) -> None:
        """Move to q [rad or m], shape (dof,), followers included, and update bodies and contacts."""
        columns = {name: float(v) for name, v in zip(self.description.joint_names, q, strict=True)}
        for edge in self.description.joints:
            self.data.joint(edge.name).qpos[0] = columns[edge.name]
        for mimic in self.description.mimic_joints:
            self.data.joint(mimic.name).qpos[0] = mimic.multiplier * columns[mimic.mimics] + mimic.offset
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        mujoco.mj_collision(self.model, self.data)

    def contacts(self) -> dict[tuple[str, str], float]:
        """Touching link pairs and the least signed distance [m] MuJoCo gives them."""
        found: dict[tuple[str, str], float] = {}
        for contact in self.data.contact[: self.data.ncon]:
            names = tuple(sorted(self.model.body(self.model.geom_bodyid[g]).name for g in contact.geom))
            found[names] = min(float(contact.dist), found.get(names, np.inf))
        return found


def build_oracle(description: RobotDescription) -> Oracle:
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    bodies = {description.root_link: spec.worldbody.add_body(name=description.root_link)}
    edges = (*description.joints, *description.fixed_attachments, *description.mimic_joints)
    by_child = {edge.child: edge for edge in edges}
    for name in description.links[1:]:
        edge = by_child[name]
        body = bodies[edge.parent].add_body(
            name=name, pos=list(edge.origin.position), quat=list(edge.origin.orientation_wxyz)
        )
        bodies[name] = body
        if not isinstance(edge, FixedAttachment):
            slide = edge.type == "prismatic"
            kind = mujoco.mjtJoint.mjJNT_SLIDE if slide else mujoco.mjtJoint.mjJNT_HINGE
            body.add_joint(name=edge.name, type=kind, axis=list(edge.axis))
    for name, geometry in description.geometry.items():
        for i, piece in enumerate(geometry.pieces):
            if piece.radius:
                _add_ball(bodies[name], f"{name}:{i}", np.asarray(piece.vertices, np.float64), piece.radius)
                continue
            mesh = spec.add_mesh(name=f"{name}:{i}")
            mesh.uservert = np.asarray(piece.vertices, np.float64).ravel().tolist()
            bodies[name].add_geom(
                name=f"{name}:{i}", type=mujoco.mjtGeom.mjGEOM_MESH, meshname=f"{name}:{i}", contype=0, conaffinity=0
            )
    for name in description.links:
        bodies[name].mass, bodies[name].inertia, bodies[name].explicitinertial = 1.0, [1.0, 1.0, 1.0], True
    _add_pairs(spec, description)
    spec.option.disableflags |= (
        mujoco.mjtDisableBit.mjDSBL_MULTICCD if hasattr(mujoco.mjtDisableBit, "mjDSBL_MULTICCD") else 0
    )
    model = spec.compile()
    return Oracle(description, model, mujoco.MjData(model))


def _add_ball(body: mujoco.MjsBody, name: str, vertices: np.ndarray, radius: float) -> None:
    """A sphere around one vertex or a capsule between two, its frame worked out here."""
    along = vertices[-1] - vertices[0]
    half, middle = 0.5 * np.linalg.norm(along), 0.5 * (vertices[0] + vertices[-1])
    turn = Rotation.align_vectors([along], [[0.0, 0.0, 1.0]])[0] if half else Rotation.identity()
    x, y, z, w = turn.as_quat()
    kind = mujoco.mjtGeom.mjGEOM_CAPSULE if half else mujoco.mjtGeom.mjGEOM_SPHERE
    body.add_geom(
        name=name, type=kind, size=[radius, half, 0.0], pos=middle, quat=[w, x, y, z], contype=0, conaffinity=0
    )


def _add_pairs(spec: mujoco.MjSpec, description: RobotDescription) -> None:
    disabled = {frozenset((p.link_a, p.link_b)) for p in description.disabled_pairs}
    for a, b in combinations([n for n in description.links if n in description.geometry], 2):
        if frozenset((a, b)) in disabled:
            continue
        for i in range(len(description.geometry[a].pieces)):
            for j in range(len(description.geometry[b].pieces)):
                spec.add_pair(geomname1=f"{a}:{i}", geomname2=f"{b}:{j}", margin=0.0, gap=0.0)


def separated(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether a plane strictly separates two vertex sets [m], shapes (V, 3), by linear programming in double.

    Maximises the gap g with n.a >= c + g, n.b <= c - g and |n_i| <= 1.
    """
    left = np.hstack([-a, np.ones((len(a), 1)), np.ones((len(a), 1))])
    right = np.hstack([b, -np.ones((len(b), 1)), np.ones((len(b), 1))])
    result = linprog(
        [0, 0, 0, 0, -1], A_ub=np.vstack([left, right]), b_ub=np.zeros(len(a) + len(b)),
        bounds=[(-1, 1)] * 3 + [(None, None)] * 2, method="highs",
    )  # fmt: skip
    assert result.status == 0, result.message
    return -result.fun > 1e-9


def coal_hull(vertices) -> coal.Convex:
    points = coal.StdVec_Vec3s()
    for vertex in np.asarray(vertices, np.float64):
        points.append(vertex)
    return coal.Convex.convexHull(points, True, "Qt")


def coal_piece(piece: ConvexPiece) -> tuple[coal.CollisionGeometry, np.ndarray, np.ndarray]:
    """A piece as coal's own shape, with the rotation and position [m] of its frame in the link."""
    vertices = np.asarray(piece.vertices, np.float64)
    along, middle = vertices[-1] - vertices[0], 0.5 * (vertices[0] + vertices[-1])
    if not piece.radius:
        return coal_hull(vertices), np.eye(3), np.zeros(3)
    if len(vertices) == 1:
        return coal.Sphere(piece.radius), np.eye(3), middle
    turn = Rotation.align_vectors([along], [[0.0, 0.0, 1.0]])[0].as_matrix()
    return coal.Capsule(piece.radius, float(np.linalg.norm(along))), turn, middle


def coal_distance(a: coal.CollisionGeometry, b: coal.CollisionGeometry, rotation, position) -> float:
    """Distance [m] of a at the origin and b placed by rotation, position; 0 or less where they meet."""
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance, request.gjk_max_iterations = 1e-9, 1000
    return coal.distance(
        a,
        coal.Transform3s(),
        b,
        coal.Transform3s(np.asarray(rotation, float), np.asarray(position, float)),
        request,
        result,
    )
