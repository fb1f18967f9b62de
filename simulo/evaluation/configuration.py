"""One robot, one configuration: is it clear of itself, and by how much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from simulo.collision import CollisionChecker, Kind, build_model
from simulo.collision.model import FingerModel
from simulo.collision.parties import NOBODY
from simulo.description import RobotDescription, list_robots, load_description
from simulo.description.files import SourceEntry
from simulo.description.load import load_robot_file
from simulo.errors import NotLoweredError, SimuloError


class ConfigurationError(SimuloError, ValueError):
    """A configuration does not fit the robot."""


def configuration(description: RobotDescription, values: Sequence[float]) -> np.ndarray:
    """`values` [rad or m] as float32, one per actuated joint in `description.joints` order. Limits are not applied."""
    names = description.joint_names
    if len(values) != len(names):
        raise ConfigurationError(
            f"robot {description.name!r} takes {len(names)} joint values, got {len(values)}; in this order: "
            f"{', '.join(names)}"
        )
    return np.asarray(values, dtype=np.float32)


def outside_limits(description: RobotDescription, q: NDArray[np.float32]) -> list[str]:
    """What to say of the joints whose values lie outside their limits, by more than float32 rounds."""
    return [
        f"{joint.name} = {float(value):g} is outside its limits, {joint.lower:g} to {joint.upper:g}"
        for joint, value in zip(description.joints, q, strict=True)
        if not np.float32(joint.lower) <= value <= np.float32(joint.upper) and np.isfinite(value)
    ]


def uniform(description: RobotDescription, unit: NDArray[np.float64]) -> NDArray[np.float32]:
    """In-limit configurations from numbers in [0, 1), shape (K, dof); joints without limits over one turn."""
    lower = np.array([-math.pi if math.isinf(joint.lower) else joint.lower for joint in description.joints])
    upper = np.array([math.pi if math.isinf(joint.upper) else joint.upper for joint in description.joints])
    return np.clip(lower + (upper - lower) * unit, lower, upper).astype(np.float32)


def check_configuration(
    description: RobotDescription, q: np.ndarray, finger_model: FingerModel = "mimic", self_margin: float = 0.0
) -> dict[str, Any]:
    """Self check of one configuration, shape (num_joints,): the JSON of `simulo check`.

    `distance_mm` is the least distance (signed) of any checked pair, None where nothing was measured; `bound` says that
    it is a lower bound only. `parties` are the pair's links, None where the kind names nobody.
    """
    return judged(CollisionChecker(build_model(description, finger_model), num_envs=1, self_margin=self_margin), q)


def judged(checker: CollisionChecker, q: np.ndarray) -> dict[str, Any]:
    """`check_configuration` by a checker of one environment."""
    verdict = checker.check(torch.from_numpy(q).reshape(1, 1, -1), world=False, distances=True)
    distance = float(verdict.distance[0])
    codes = (int(verdict.party_a[0]), int(verdict.party_b[0]))
    return {
        "clear": bool(verdict.clear[0]),
        "kind": Kind(int(verdict.kind[0])).name.lower(),
        "parties": [None if code == NOBODY else checker.parties.name(code) for code in codes],
        "distance_mm": 1000.0 * distance if math.isfinite(distance) else None,
        "bound": bool(verdict.bound[0]),
    }


def robot_facts(name: str) -> dict[str, Any]:
    """One row of `simulo robots`. What only geometry tells is None of a robot that is not lowered yet."""
    robot = load_robot_file(name)
    facts: dict[str, Any] = {"name": robot.name, "source": _sources(robot.source), "licence": _licences(robot.source)}
    try:
        description = load_description(name)
    except NotLoweredError:
        counts = {"joints": len(robot.joints), "mimic_joints": len(robot.mimic_joints)}
        return {**facts, "links": None, **counts, "pairs_checked": None, "rest_clear": None}
    model = build_model(description)
    return {
        **facts,
        "links": len(description.links),
        "joints": len(description.joints),
        "mimic_joints": len(description.mimic_joints),
        "pairs_checked": len(model.pairs),
        "rest_clear": judged(CollisionChecker(model, num_envs=1), np.asarray(description.rest_pose, np.float32))[
            "clear"
        ],
    }


def _sources(source: SourceEntry) -> str:
    """Package, version and file, of every file of the model."""
    named = f"{source.package} {source.version}, {source.path}" if source.package else source.path
    return "; ".join([named, *(_sources(part.source) for part in source.attached or ())])


def _licences(source: SourceEntry) -> str:
    licences = [source.licence, *(_licences(part.source) for part in source.attached or ())]
    return " AND ".join(dict.fromkeys(licences))


def all_robot_facts() -> list[dict[str, Any]]:
    return [robot_facts(name) for name in list_robots()]
