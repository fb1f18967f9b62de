"""Real distances, by a library and on the links' own triangles: what a gate's stops are judged by."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import coal  # pyright: ignore[reportMissingImports] - installed where only the interpreter looks
import numpy as np
from numpy.typing import NDArray

from simulo.description import RobotDescription, reference_fk
from simulo.evaluation.meshes import true_meshes
from simulo.pose import wxyz_to_matrix
from simulo.props import Box, Capsule, Cylinder, Hull, Shape, Sphere

Array = NDArray[np.float64]

# A unit cube's corners and the triangles of its faces.
_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_FACES = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4],
     [1, 5, 7], [1, 7, 3]]
)  # fmt: skip

_POINT = coal.Sphere(1e-9)


class Truth:
    """Distances [m] between a robot's real links and the solids of a scene; 0 where they overlap.

    props: the shapes of the scene, by name. Poses are homogeneous transforms in one common frame, shape (4, 4).
    """

    def __init__(self, description: RobotDescription, props: Mapping[str, Shape]):
        self.description = description
        self.shapes = dict(props)
        self._meshes = true_meshes(description)
        self._links: dict[str, coal.CollisionGeometry] = {}
        self._props = {name: solid(shape) for name, shape in props.items()}

    def has(self, party: str) -> bool:
        """Whether a party has a real surface to measure."""
        return party in self._meshes or party in self._props

    def distance(self, a: str, pose_a: Array, b: str, pose_b: Array) -> float:
        """Between two parties, each a link or a prop."""
        return distance_between(self._geometry(a), pose_a, self._geometry(b), pose_b)

    def point_distance(self, party: str, pose: Array, point: Array) -> float:
        """From a point, shape (3,), to a party."""
        place = np.eye(4)
        place[:3, 3] = point
        return distance_between(self._geometry(party), pose, _POINT, place)

    def to_cells(self, party: str, pose: Array, centres: Array, cell: float, reach: float) -> float:
        """From a party to occupied cells, axis-aligned cubes of edge `cell` at `centres`, shape (K, 3), in the frame of
        `pose`. Infinite where they are all farther than `reach`."""
        near = centres[self._near(party, pose, centres, reach + cell)]
        if not len(near):
            return np.inf
        distance = distance_between(self._geometry(party), pose, bvh_of(*_cubes(near, cell)), np.eye(4))
        return distance if distance <= reach else np.inf

    def _near(self, party: str, pose: Array, points: Array, reach: float) -> NDArray[np.bool_]:
        """Which points are within `reach` of the party's bounding box, along the party's own axes."""
        geometry = self._geometry(party)
        geometry.computeLocalAABB()
        box = geometry.aabb_local
        local = (points - pose[:3, 3]) @ pose[:3, :3]
        inside = (local > np.asarray(box.min_) - reach) & (local < np.asarray(box.max_) + reach)
        return np.all(inside, axis=1)

    def _geometry(self, party: str) -> coal.CollisionGeometry:
        if party in self._props:
            return self._props[party]
        if party not in self._links:
            mesh = self._meshes[party]
            self._links[party] = bvh_of(np.asarray(mesh.vertices), np.asarray(mesh.faces))
        return self._links[party]

    @cached_property
    def links(self) -> tuple[str, ...]:
        """Links with a real surface."""
        return tuple(link for link in self.description.links if link in self._meshes)


def link_poses(description: RobotDescription, q: Array) -> dict[str, Array]:
    """Pose of every link, shape (4, 4), for one configuration of the actuated joints, shape (num_joints,)."""
    return reference_fk(description, np.asarray(q, dtype=np.float64))


def matrix_of(pose: Array) -> Array:
    """Homogeneous transform of position and wxyz, shape (7,)."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = wxyz_to_matrix(pose[3:] / np.linalg.norm(pose[3:])), pose[:3]
    return out


def distance_between(a: coal.CollisionGeometry, pose_a: Array, b: coal.CollisionGeometry, pose_b: Array) -> float:
    """Distance [m] of two geometries at homogeneous transforms in one frame; 0 where they overlap."""
    found = coal.distance(a, _place(pose_a), b, _place(pose_b), coal.DistanceRequest(), coal.DistanceResult())
    return max(0.0, float(found))


def cross(a: coal.BVHModelOBBRSS, pose_a: Array, b: coal.BVHModelOBBRSS, pose_b: Array) -> bool:
    """Whether some triangles are found to cross: a quick yes. A no is for `distance_between` to give."""
    found = coal.CollisionResult()
    coal.collide(a, _place(pose_a), b, _place(pose_b), coal.CollisionRequest(), found)
    return bool(found.isCollision())


def _place(pose: Array) -> coal.Transform3s:
    return coal.Transform3s(np.ascontiguousarray(pose[:3, :3]), np.ascontiguousarray(pose[:3, 3]))


def solid(shape: Shape) -> coal.CollisionGeometry:
    """A prop's shape for the library."""
    match shape:
        case Box(size):
            return coal.Box(*size)
        case Sphere(radius):
            return coal.Sphere(radius)
        case Cylinder(radius, height):
            return coal.Cylinder(radius, height)
        case Capsule(radius, length):
            return coal.Capsule(radius, length)
        case Hull(vertices):
            points = coal.StdVec_Vec3s()
            for vertex in vertices:
                points.append(np.asarray(vertex, dtype=np.float64))
            return coal.Convex.convexHull(points, True, "Qt")


def bvh_of(vertices: Array, faces: NDArray) -> coal.BVHModelOBBRSS:
    """Triangles for the library: vertices [m], shape (V, 3), faces, shape (F, 3)."""
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(faces), len(vertices))
    model.addVertices(np.ascontiguousarray(vertices, dtype=np.float64))
    model.addTriangles(np.ascontiguousarray(faces, dtype=np.int64))
    model.endModel()
    return model


def _cubes(centres: Array, edge: float) -> tuple[Array, NDArray[np.int64]]:
    vertices = (centres[:, None, :] + edge * _CORNERS).reshape(-1, 3)
    faces = (_FACES[None] + 8 * np.arange(len(centres))[:, None, None]).reshape(-1, 3)
    return vertices, faces
