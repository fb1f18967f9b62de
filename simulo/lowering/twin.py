"""A twin: another model of the same robot, whose CAD is folded in where its frames coincide with this one's.

A robot often comes as a URDF and as an MJCF, drawn at different times; a simulator may run the one while the other is
lowered. Covering both is safe, but only where a link of the one is where its namesake is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import trimesh

from simulo.errors import LoweringError
from simulo.lowering.model import ModelJoint, RobotModel, Shape
from simulo.lowering.placing import model_poses

MAX_OFFSET = 1e-3
"""[m] How far any vertex may be from where the robot's own frame puts it, for its link's frame to coincide."""

_CONFIGURATIONS, _SEED = 25, 20260924


def fold_twin(
    model: RobotModel, twin: RobotModel, names: Mapping[str, str], where: str
) -> tuple[RobotModel, dict[str, float]]:
    """The model with the twin's meshes added to each link whose frame coincides, and each link's largest offset [m].

    names: the twin's link by this model's, where they differ. The offset is taken over seeded configurations that both
    models' joints allow, relative to the first link that both have, and over the link's vertices, so that a turned
    frame counts by what it moves. Only meshes are CAD: a twin's primitives are its simulator's contact proxies.
    Raises LoweringError for names that a model lacks.
    """
    pairs = _pairs(model, twin, names, where)
    if not pairs:
        raise LoweringError(f"{where}: the twin {twin.path} has no link of this robot; name them under twin.links")
    offsets = _offsets(model, twin, pairs)
    shapes = dict(model.shapes)
    for link, name in pairs.items():
        cad = _cad(twin, name)
        if offsets[link] <= MAX_OFFSET and cad:
            shapes[link] = (*shapes.get(link, ()), *(replace(shape, label=f"twin's {shape.label}") for shape in cad))
    return replace(model, shapes=shapes), offsets


def _pairs(model: RobotModel, twin: RobotModel, names: Mapping[str, str], where: str) -> dict[str, str]:
    for link, name in names.items():
        for known, found, file in ((model.links, link, model.path), (twin.links, name, twin.path)):
            if found not in known:
                raise LoweringError(
                    f"{where}: twin.links names {found!r}, which is no link of {file}; links: {', '.join(known)}"
                )
    return {link: names.get(link, link) for link in model.links if names.get(link, link) in twin.links}


def _cad(twin: RobotModel, link: str) -> tuple[Shape, ...]:
    return tuple(shape for shape in twin.shapes.get(link, ()) if shape.cad)


def _offsets(model: RobotModel, twin: RobotModel, pairs: Mapping[str, str]) -> dict[str, float]:
    base = next(iter(pairs))
    clouds = {link: _cloud(model.shapes.get(link, ()), _cad(twin, name)) for link, name in pairs.items()}
    offsets = dict.fromkeys(pairs, 0.0)
    for values, twin_values in _configurations(model, twin, pairs):
        ours, theirs = model_poses(model, values), model_poses(twin, twin_values)
        for link, name in pairs.items():
            apart = np.linalg.solve(ours[base], ours[link]) - np.linalg.solve(theirs[pairs[base]], theirs[name])
            moved = clouds[link] @ apart[:3, :3].T + apart[:3, 3]
            offsets[link] = max(offsets[link], float(np.linalg.norm(moved, axis=1).max()))
    return offsets


def _cloud(*shapes: tuple[Shape, ...]) -> np.ndarray:
    """The corners of everything on a link, and its origin."""
    meshes: list[trimesh.Trimesh] = [shape.mesh for group in shapes for shape in group]
    boxes = [trimesh.bounds.corners(mesh.bounds) for mesh in meshes]
    return np.concatenate([np.zeros((1, 3)), *boxes])


def _configurations(model: RobotModel, twin: RobotModel, pairs: Mapping[str, str]):
    """Joint values of both models, the same for joints that move the same link; zero first, then seeded."""
    theirs = {joint.child: joint for joint in twin.joints}
    shared: list[tuple[ModelJoint, ModelJoint]] = [
        (joint, theirs[pairs[joint.child]])
        for joint in model.joints
        if joint.name not in model.mimics and pairs.get(joint.child) in theirs
    ]
    draws = np.random.default_rng(_SEED)
    for index in range(_CONFIGURATIONS):
        values, twin_values = {}, {}
        for ours, other in shared:
            lower = max(ours.lower, other.lower, -np.pi)
            upper = max(lower, min(ours.upper, other.upper, np.pi))
            value = float(draws.uniform(lower, upper)) if index else float(np.clip(0.0, lower, upper))
            values[ours.name] = value
            follows = twin.mimics.get(other.name)  # the twin may lead the other finger
            if follows is None:
                twin_values[other.name] = value
            else:
                twin_values[follows.leader] = (value - follows.offset) / follows.multiplier
        yield values, twin_values
