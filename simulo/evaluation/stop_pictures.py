"""Pictures of recorded stops: the real scene, and over it the geometry that the gate checked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import trimesh
from numpy.typing import NDArray

from simulo.description import RobotDescription, load_description
from simulo.evaluation.meshes import true_meshes
from simulo.evaluation.pictures import Surface, View, box_triangles, placed, png, render
from simulo.evaluation.records import EpisodeRecord, JudgeName, load_record
from simulo.evaluation.stop_count import StopCount, StopCountOptions, scene_props
from simulo.evaluation.truth import link_poses, matrix_of
from simulo.lowering.solids import points_around
from simulo.props import Box, Capsule, Cylinder, Hull, Prop, Shape, Sphere
from simulo.sensors import look_at

Array = NDArray[np.float64]
_CHECKED, _CELL = (0.86, 0.16, 0.14), (0.98, 0.80, 0.10)
_ROBOT, _FINGERS = (0.62, 0.64, 0.68), (0.36, 0.40, 0.47)


def picture_of_stop(result: StopCount, judge: JudgeName, number: int, step: int) -> bytes:
    """PNG of one refused step of one episode, seen from beside the stopped link."""
    record = load_record(result.folder, number)
    description = load_description(result.options.robot)
    refusals = record.refusals[str(judge)]
    row = int(np.flatnonzero(refusals.step == step)[0])
    poses = link_poses(description, record.commanded[step])
    stopped = [str(refusals.a[row]), str(refusals.b[row])]
    overlay = [
        Surface(placed(checked_triangles(description, link, judge.finger_model), poses[link]), _CHECKED)
        for link in stopped
        if link in description.geometry
    ]
    centre = refusals.cell_centre[row]
    solids = _robot(description, poses) + scene_surfaces(result.options, record, step, poses)
    if np.isfinite(centre).all():
        place = np.eye(4)
        place[:3, 3] = centre
        solids.append(Surface(box_triangles(3 * [judge.cell], place), _CELL))
    focus = _middle(description, poses, record.hand, stopped, judge.finger_model)
    eye = focus + np.array([0.42, -0.46, 0.20])
    view = View(look_at(eye, focus), np.deg2rad(38.0), 1000, 760)
    return png(_halved(render(solids, overlay, view)))


def _middle(
    description: RobotDescription, poses: dict[str, Array], hand: str, stopped: list[str], finger_model: str
) -> Array:
    """Middle of the stopped link [m], shape (3,); of two, the one that comes later in the robot's tree."""
    link = max((link for link in stopped if link in description.links), key=description.links.index, default=hand)
    return placed(checked_triangles(description, link, finger_model), poses[link]).reshape(-1, 3).mean(axis=0)


def checked_triangles(description: RobotDescription, link: str, finger_model: str) -> Array:
    """Triangles, shape (F, 3, 3), of what a gate checks of a link, in the link frame."""
    geometry = description.geometry[link]
    for gripper in description.grippers:
        if finger_model == "swept" and link in gripper.jaw_links:
            geometry = description.swept[gripper.name]
    return np.concatenate([_hull_triangles(points_around(piece)) for piece in geometry.pieces])


def _hull_triangles(vertices: Array) -> Array:
    return np.asarray(trimesh.convex.convex_hull(vertices).triangles)


def _robot(description: RobotDescription, poses: dict[str, Array]) -> list[Surface]:
    fingers = {link for gripper in description.grippers for link in gripper.grasp_contact_links}
    return [
        Surface(placed(np.asarray(mesh.triangles), poses[link]), _FINGERS if link in fingers else _ROBOT)
        for link, mesh in true_meshes(description).items()
    ]


def scene_surfaces(
    options: StopCountOptions, record: EpisodeRecord, step: int, poses: Mapping[str, Array]
) -> list[Surface]:
    """What stood about at one step of an episode, and what was held. poses: the robot's links' at that step."""
    props = _props(options.task, options.neighbours)
    held = str(record.held[step])
    out = []
    for index, name in enumerate(record.props):
        if not record.present[index]:
            continue
        pose = matrix_of(record.prop_poses[step, index].astype(np.float64))
        if name == held:
            pose = poses[record.hand] @ matrix_of(record.held_pose[step].astype(np.float64))
        out.append(Surface(placed(_shape_triangles(props[name].shape), pose), props[name].rgba[:3]))
    return out


@lru_cache(maxsize=4)
def _props(task: str, neighbours: str) -> dict[str, Prop]:
    return scene_props(task, neighbours)


def _shape_triangles(shape: Shape) -> Array:
    match shape:
        case Box(size):
            return box_triangles(size, np.eye(4))
        case Sphere(radius):
            mesh = trimesh.creation.icosphere(radius=radius)
        case Cylinder(radius, height):
            mesh = trimesh.creation.cylinder(radius=radius, height=height, sections=48)
        case Capsule(radius, length):
            mesh = trimesh.creation.capsule(height=length, radius=radius)
            mesh.apply_translation([0.0, 0.0, -mesh.bounds.mean(axis=0)[2]])
        case Hull(vertices):
            return _hull_triangles(vertices)
    return np.asarray(mesh.triangles)


def _halved(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Half the size, each pixel the mean of four: edges without steps."""
    height, width = image.shape[0] // 2, image.shape[1] // 2
    blocks = image[: 2 * height, : 2 * width].reshape(height, 2, width, 2, 3).astype(np.float64)
    return blocks.mean(axis=(1, 3)).astype(np.uint8)
