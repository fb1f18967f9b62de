"""How far a robot's real surface stays from a shape along a joint path, measured on points of its meshes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulo.description import RobotDescription, reference_fk
from simulo.evaluation.meshes import true_meshes
from simulo.pose import Pose
from simulo.props import Box, Capsule, Cylinder, Hull, Shape, Sphere

Array = NDArray[np.float64]
Solid = tuple[Pose, Shape]


@dataclass(frozen=True)
class RobotSurface:
    """Points spread evenly over the triangles of each link, in the link frame [m], shape (P, 3) each."""

    description: RobotDescription
    points: Mapping[str, Array]

    @staticmethod
    def of(description: RobotDescription, links: Sequence[str], points_per_link: int = 400) -> RobotSurface:
        """Sample the collision and visual meshes of these links. The same points every time."""
        meshes = true_meshes(description)
        points = {}
        for link in links:
            triangles = np.asarray(meshes[link].triangles, dtype=np.float64)
            points[link] = _spread(triangles, points_per_link, np.random.default_rng(0))
        return RobotSurface(description, points)

    def along(self, path: Array, links: Sequence[str]) -> Array:
        """Where the points of some links are in the robot's base frame [m] over a joint path, shape (T, num_joints):
        all of them, shape (K, 3)."""
        poses = reference_fk(self.description, path)
        placed = []
        for link in links:
            pose = poses[link]
            placed.append(
                (self.points[link] @ np.swapaxes(pose[:, :3, :3], -1, -2) + pose[:, None, :3, 3]).reshape(-1, 3)
            )
        return np.concatenate(placed)


def distance_to(shape: Shape, pose: Pose, points: ArrayLike) -> Array:
    """Signed distance [m] of points, shape (K, 3), from a solid at `pose`: negative inside. Exact for every shape that
    has a closed form; ValueError for a hull, which has none."""
    local = (np.asarray(points, dtype=np.float64) - np.asarray(pose.position)) @ pose.rotation
    match shape:
        case Sphere(radius):
            return np.linalg.norm(local, axis=1) - radius
        case Capsule(radius, length):
            axis = np.abs(local[:, 2]) - 0.5 * length
            return np.hypot(np.hypot(local[:, 0], local[:, 1]), np.maximum(axis, 0.0)) - radius
        case Box(size):
            return _outside(np.abs(local) - 0.5 * np.asarray(size))
        case Cylinder(radius, height):
            radial = np.hypot(local[:, 0], local[:, 1]) - radius
            return _outside(np.stack([radial, np.abs(local[:, 2]) - 0.5 * height], axis=1))
        case Hull():
            raise ValueError("the distance to a hull has no closed form; give a box, cylinder, capsule or sphere")


def least_distance(solids: Sequence[Solid], points: Array) -> float:
    """The smallest distance [m] of points, shape (K, 3), from solids. Points over 0.2 m from a solid along
    an axis are dismissed unmeasured, and the answer is infinite when all are."""
    least = np.inf
    for pose, shape in solids:
        near = points[(np.abs(points - np.array(pose.position)) < 0.2).all(axis=1)]
        least = min(least, float(distance_to(shape, pose, near).min(initial=np.inf)))
    return least


def extent(shape: Shape) -> tuple[float, float, float]:
    """Full edges of a shape's own bounding box [m]."""
    match shape:
        case Box(size):
            return size
        case Sphere(radius):
            return 2.0 * radius, 2.0 * radius, 2.0 * radius
        case Cylinder(radius, height):
            return 2.0 * radius, 2.0 * radius, height
        case Capsule(radius, length):
            return 2.0 * radius, 2.0 * radius, length + 2.0 * radius
        case Hull(vertices):
            return tuple(float(edge) for edge in np.ptp(vertices, axis=0))  # type: ignore[return-value]


def _outside(excess: Array) -> Array:
    """Distance from how far a point is beyond each pair of faces, shape (K, n): negative excess is inside."""
    return np.linalg.norm(np.maximum(excess, 0.0), axis=1) + np.minimum(excess.max(axis=1), 0.0)


def _spread(triangles: Array, count: int, rng: np.random.Generator) -> Array:
    """Points over triangles, shape (F, 3, 3), as many on each as its area asks for."""
    edges = triangles[:, 1:] - triangles[:, :1]
    areas = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
    chosen = rng.choice(len(triangles), size=count, p=areas / areas.sum())
    u, v = rng.random((2, count))
    fold = u + v > 1.0
    u, v = np.where(fold, 1.0 - u, u)[:, None], np.where(fold, 1.0 - v, v)[:, None]
    return triangles[chosen, 0] + u * edges[chosen, 0] + v * edges[chosen, 1]
