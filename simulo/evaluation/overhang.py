"""How far the checked finger geometry stands off the real fingers: what it invents.

At an opening, the overhang is the largest distance from a point of the checked surface to the nearest triangle of the
real fingers. It is found by branch and bound over the surface: on a facet, the distance to the fingers is at most the
distance to any one of their triangles, and that one is convex, so its largest value stands at a corner. Facets whose
bound is below what has already been found are dropped, the others are cut in four.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import trimesh
import warp as wp
from numpy.typing import NDArray

from simulo.description import Gripper, LinkGeometry, RobotDescription, load_description, reference_fk
from simulo.errors import CollisionModelError
from simulo.evaluation.exposed import Union
from simulo.evaluation.nearest_kernels import nearest_face
from simulo.lowering import link_meshes
from simulo.lowering.triangles import nearest_on_each

RESOLUTION = 1e-4
"""[m] The proven bound is at most this far above the largest sampled distance."""

_REACH = 10.0
_MAX_ROUNDS = 20


@dataclass(frozen=True)
class Overhang:
    """Overhang [m] over the openings: the largest, the mean of each opening's largest, and a bound proven for all."""

    largest: float
    mean: float
    upper_bound: float


def bench_overhang(
    robot: str = "openarm",
    openings: int = 49,
    progress: Callable[[str, int, int], None] = lambda label, done, total: None,
) -> dict[str, Any]:
    """Overhang of every finger model of a robot, worst gripper, as the JSON of `simulo bench overhang` [mm].

    openings: values of each gripper's joint, equally spaced over its limits. progress: called with a label, the
    steps done and all steps. Raises CollisionModelError when the robot has no gripper with a follower finger.
    """
    if openings < 2:
        raise CollisionModelError(f"openings is {openings}; the two ends of the stroke need at least 2")
    description = load_description(robot)
    grippers = [gripper for gripper in description.grippers if gripper.follower_links]
    if not grippers:
        raise CollisionModelError(
            f"robot {robot!r} has no gripper with a follower finger, so its finger models do not differ"
        )
    meshes = link_meshes(description)
    real = {link: RealSurface(meshes[link]) for gripper in grippers for link in gripper.grasp_contact_links}
    names = _finger_models(description, grippers)
    models: dict[str, Any] = {}
    for index, name in enumerate(names):
        found = []
        for arm, gripper in enumerate(grippers):
            progress(f"{name}, {gripper.name}", index * len(grippers) + arm, len(names) * len(grippers))
            found.append(
                overhang_of(description, gripper, checked_geometry(description, gripper, name), real, openings)
            )
        models[name] = {
            "max_mm": round(max(o.largest for o in found) * 1e3, 3),
            "mean_mm": round(max(o.mean for o in found) * 1e3, 3),
            "upper_bound_mm": round(max(o.upper_bound for o in found) * 1e3 + 5e-4, 3),
        }
    return {"robot": description.name, "openings": openings, "models": models}


def _finger_models(description: RobotDescription, grippers: list[Gripper]) -> tuple[str, ...]:
    """The models that differ: fingers are decomposed only where a finger has more than one piece."""
    fingers = [description.geometry[link] for gripper in grippers for link in gripper.grasp_contact_links]
    decomposed = any(len(geometry.pieces) > 1 for geometry in fingers)
    return ("swept", "mimic", "decomposed") if decomposed else ("swept", "mimic")


def checked_geometry(description: RobotDescription, gripper: Gripper, finger_model: str) -> dict[str, LinkGeometry]:
    """The geometry that stands for the fingers, by the link it is posed with.

    swept: both fingers over the whole stroke, on the leader. mimic: each finger's own hull. decomposed: the pieces of
    each finger, as the description gives them.
    """
    if finger_model == "swept":
        return {gripper.jaw_links[0]: description.swept[gripper.name]}
    fingers = {link: description.geometry[link] for link in gripper.grasp_contact_links}
    if finger_model == "decomposed":
        return fingers
    return {link: LinkGeometry(link, (geometry.hull,), geometry.hull) for link, geometry in fingers.items()}


def overhang_of(
    description: RobotDescription,
    gripper: Gripper,
    checked: dict[str, LinkGeometry],
    real: dict[str, RealSurface],
    openings: int,
) -> Overhang:
    """Overhang of the checked geometry over equally spaced values of the gripper's joint. real: by finger link."""
    column = description.joint_names.index(gripper.joint)
    joint = description.joints[column]
    unions = {link: Union(geometry) for link, geometry in checked.items()}
    largest, bounds = [], []
    for value in np.linspace(joint.lower, joint.upper, openings):
        q = np.array(description.rest_pose)
        q[column] = value
        poses = reference_fk(description, q)
        found, bound = 0.0, 0.0
        for link, union in unions.items():
            fingers = [(real[name], _inverse(poses[name]) @ poses[link]) for name in gripper.grasp_contact_links]
            found, proven = largest_distance(union.facets, fingers, union, found)
            bound = max(bound, proven)
        largest.append(found)
        bounds.append(bound)
    return Overhang(float(np.max(largest)), float(np.mean(largest)), float(np.max(bounds)))


class RealSurface:
    """A link's own triangles, searchable for the nearest one."""

    def __init__(self, mesh: trimesh.Trimesh) -> None:
        self.triangles: NDArray[np.float64] = np.asarray(mesh.vertices, dtype=np.float64)[np.asarray(mesh.faces)]
        vertices = wp.array(np.asarray(mesh.vertices, dtype=np.float32), dtype=wp.vec3, device="cpu")
        indices = wp.array(np.asarray(mesh.faces, dtype=np.int32).reshape(-1), dtype=wp.int32, device="cpu")
        self._mesh = wp.Mesh(points=vertices, indices=indices)

    def nearest_triangles(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """A triangle near each point, shape (P, 3, 3); the nearest one up to the float32 rounding of the search.

        A distance to it can therefore only be too large, never too small.
        """
        faces = wp.full(len(points), -1, dtype=wp.int32, device="cpu")
        queries = wp.array(points.astype(np.float32), dtype=wp.vec3, device="cpu")
        wp.launch(nearest_face, dim=len(points), inputs=[self._mesh.id, queries, _REACH], outputs=[faces], device="cpu")
        chosen = np.asarray(faces.numpy(), dtype=np.int64)
        if (chosen < 0).any():
            raise CollisionModelError(f"a checked point lies more than {_REACH} m from every finger triangle")
        return self.triangles[chosen]


def largest_distance(
    surface: NDArray[np.float64],
    fingers: list[tuple[RealSurface, NDArray[np.float64]]],
    union: Union | None = None,
    found: float = 0.0,
) -> tuple[float, float]:
    """Largest distance [m] from the surface (T, 3, 3) to the nearest finger, as sampled and as proven.

    fingers: each real surface with the transform from the surface's frame into its own. union: the pieces whose facets
    the surface is; what lies inside another piece does not count. found: what is known to be reached already.
    """
    facets = surface
    owners = np.zeros(len(surface), dtype=np.int64) if union is None else union.owners
    proven, bounds = found, np.zeros(0)
    for _ in range(_MAX_ROUNDS):
        distances, bounds = _sampled_and_bounded(facets, fingers)
        if union is not None:
            rows = np.flatnonzero(bounds > found + RESOLUTION)
            covered, hidden = union.covered(facets[rows], owners[rows])
            distances[rows[hidden]] = 0.0
            bounds[rows[covered]] = 0.0
        found = max(found, float(distances.max()))
        open_facets = bounds > found + RESOLUTION
        proven = max(proven, float(bounds[~open_facets].max(initial=0.0)))
        if not open_facets.any():
            return found, max(found, proven)
        facets, owners = _quartered(facets[open_facets]), np.tile(owners[open_facets], 4)
    return found, max(proven, float(bounds.max(initial=0.0)))


def _sampled_and_bounded(
    facets: NDArray[np.float64], fingers: list[tuple[RealSurface, NDArray[np.float64]]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per facet: the distance of its centroid to the fingers, and a bound on the distance of all its points, (F,)."""
    distances, bounds = np.full(len(facets), np.inf), np.full(len(facets), np.inf)
    for finger, pose_finger_surface in fingers:
        local = _moved(facets, pose_finger_surface)
        centroids = local.mean(axis=1)
        near = finger.nearest_triangles(centroids)
        distance = np.linalg.norm(nearest_on_each(centroids, near) - centroids, axis=1)
        corners = [np.linalg.norm(nearest_on_each(local[:, i], near) - local[:, i], axis=1) for i in range(3)]
        radius = np.linalg.norm(local - centroids[:, None], axis=2).max(axis=1)
        bound = np.minimum(np.max(corners, axis=0), distance + radius)
        distances, bounds = np.minimum(distances, distance), np.minimum(bounds, bound)
    return distances, bounds


def _moved(triangles: NDArray[np.float64], pose: NDArray[np.float64]) -> NDArray[np.float64]:
    return triangles @ pose[:3, :3].T + pose[:3, 3]


def _inverse(pose: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.linalg.inv(pose).astype(np.float64)


def _quartered(facets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each triangle as its four halves-of-edges triangles, shape (4 F, 3, 3): all first parts, then all second."""
    a, b, c = facets[:, 0], facets[:, 1], facets[:, 2]
    ab, bc, ca = 0.5 * (a + b), 0.5 * (b + c), 0.5 * (c + a)
    parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.concatenate([np.stack(part, axis=1) for part in parts])
