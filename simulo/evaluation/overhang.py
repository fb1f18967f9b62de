"""How far the checked finger geometry stands off the real fingers: what it invents.

At an opening, the overhang is the largest distance from a point of the checked surface to the nearest triangle of the
real fingers. It is found by branch and bound over the surface: on a facet, the distance to the fingers is at most the
distance to any one of their triangles, and that one is convex, so its largest value stands at a corner. Facets whose
bound is below what has already been found are dropped, the others are cut in four.

A finger does not move against its own geometry: what is proven of the two holds at every opening, and most openings
need nothing else. The others start from the worst points of the openings before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, product
from typing import Any

import numpy as np
import trimesh
import warp as wp
from numpy.typing import NDArray

from simulo.description import Gripper, LinkGeometry, RobotDescription, load_description, reference_fk
from simulo.errors import CollisionModelError
from simulo.evaluation.exposed import Union
from simulo.evaluation.meshes import true_meshes
from simulo.evaluation.nearest_kernels import nearest_face
from simulo.lowering.triangles import nearest_on_each

RESOLUTION = 1e-4
"""[m] The proven bound is at most this far above the largest sampled distance."""

_REACH = 10.0
_MAX_ROUNDS = 20
_THREADS = 2
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Farthest:
    """A point of a surface far from the real fingers, shape (3,), its distance, and a bound proven for every point [m].

    Together: distance <= the largest distance there is <= bound.
    """

    point: NDArray[np.float64]
    distance: float
    bound: float


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
    meshes = true_meshes(description)
    real = {link: RealSurface(meshes[link]) for gripper in grippers for link in gripper.grasp_contact_links}
    names = _finger_models(description, grippers)
    asked = list(product(names, grippers))
    steps = count(1)

    def measured(model_and_gripper: tuple[str, Gripper]) -> Overhang:
        name, gripper = model_and_gripper
        checked = checked_geometry(description, gripper, name)
        return overhang_of(
            description, gripper, checked, real, openings, lambda: progress(name, next(steps), openings * len(asked))
        )

    with ThreadPoolExecutor(_THREADS) as threads:  # the search for near triangles leaves Python's lock alone
        found = dict(zip(asked, threads.map(measured, asked), strict=True))
    models: dict[str, Any] = {}
    for name in names:
        both = [found[name, gripper] for gripper in grippers]
        models[name] = {
            "max_mm": round(max(o.largest for o in both) * 1e3, 3),
            "mean_mm": round(max(o.mean for o in both) * 1e3, 3),
            "upper_bound_mm": round(max(o.upper_bound for o in both) * 1e3 + 5e-4, 3),
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
    checked: Mapping[str, LinkGeometry],
    real: Mapping[str, RealSurface],
    openings: int,
    step: Callable[[], None] = lambda: None,
) -> Overhang:
    """Overhang of the checked geometry over equally spaced values of the gripper's joint. real: by finger link. step:
    called after each opening."""
    column = description.joint_names.index(gripper.joint)
    joint = description.joints[column]
    unions = {link: Union(geometry) for link, geometry in checked.items()}
    # Its own finger alone: more fingers can only be nearer, so the bound holds at every opening.
    alone = {link: farthest(union.facets, [(real[link], np.eye(4))], union) for link, union in unions.items()}
    worst = dict(alone)
    largest, bounds = [], []
    for value in np.linspace(joint.lower, joint.upper, openings):
        q = np.array(description.rest_pose)
        q[column] = value
        poses = reference_fk(description, q)
        found, bound = 0.0, 0.0
        for link, union in unions.items():
            fingers = [(real[name], _inverse(poses[name]) @ poses[link]) for name in gripper.grasp_contact_links]
            known = _seen_from(np.stack([alone[link].point, worst[link].point]), alone[link].bound, fingers)
            found = max(found, known.distance)
            if known.bound > found + RESOLUTION + _ROUNDING:
                known = farthest(union.facets, fingers, union, found)
                worst[link] = known if known.distance > found else worst[link]
            found, bound = max(found, known.distance), max(bound, known.bound)
        largest.append(found)
        bounds.append(bound)
        step()
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


Fingers = Sequence[tuple[RealSurface, NDArray[np.float64]]]
"""Real surfaces, each with the transform from a checked surface's frame into its own."""


def stands_off(geometry: LinkGeometry, mesh: trimesh.Trimesh, resolution: float) -> float:
    """How far the pieces of a link stand off its own triangles at most [m], within a resolution [m]."""
    union = Union(geometry)
    return farthest(union.facets, [(RealSurface(mesh), np.eye(4))], union, resolution=resolution).bound


def farthest(
    surface: NDArray[np.float64],
    fingers: Fingers,
    union: Union | None = None,
    found: float = 0.0,
    resolution: float = RESOLUTION,
) -> Farthest:
    """The point of the surface (T, 3, 3) that is farthest from the nearest finger, within a resolution [m].

    fingers: each real surface with the transform from the surface's frame into its own. union: the pieces whose facets
    the surface is; what lies inside another piece does not count. found: a distance [m] that is known to be reached:
    where no point is farther, the answer's distance is the found one and its point any.
    """
    facets = surface
    owners = np.zeros(len(surface), dtype=np.int64) if union is None else union.owners
    point, proven, bounds = surface[0, 0], found, np.zeros(0)
    for _ in range(_MAX_ROUNDS):
        distances, bounds = _sampled_and_bounded(facets, fingers)
        if union is not None:
            rows = np.flatnonzero(bounds > found + resolution)
            covered, hidden = union.covered(facets[rows], owners[rows])
            distances[rows[hidden]] = 0.0
            bounds[rows[covered]] = 0.0
        best = int(distances.argmax())
        if distances[best] > found:
            found, point = float(distances[best]), facets[best].mean(axis=0)
        open_facets = bounds > found + resolution
        proven = max(proven, float(bounds[~open_facets].max(initial=0.0)))
        if not open_facets.any():
            return Farthest(point, found, max(found, proven))
        facets, owners = _quartered(facets[open_facets]), np.tile(owners[open_facets], 4)
    return Farthest(point, found, max(found, proven, float(bounds.max(initial=0.0))))


def _seen_from(points: NDArray[np.float64], bound: float, fingers: Fingers) -> Farthest:
    """The farthest from the fingers of some points of a surface, shape (P, 3), with the bound that holds for all."""
    distances, _ = _sampled_and_bounded(np.repeat(points[:, None], 3, axis=1), fingers)
    best = int(distances.argmax())
    return Farthest(points[best], float(distances[best]), bound)


def _sampled_and_bounded(
    facets: NDArray[np.float64], fingers: Fingers
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
