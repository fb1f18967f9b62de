"""Judges of a sweep: which of the checked pairs really touch, found apart from the checker.

On hulls: MuJoCo, and a separating plane where it and the checker differ. On meshes: triangles that cross, or a part
that lies inside a closed part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulo.collision import CollisionModel
from simulo.description import RobotDescription, reference_fk
from simulo.evaluation.contact_truth import HullTruth, MeshTruth, Separation
from simulo.evaluation.meshes import true_meshes


@dataclass(frozen=True)
class Judged:
    """What is true of some poses, by pose and pair: arrays of shape (K, num_pairs).

    unjudged: nothing is known, since the linear program failed; not touching. disputed: how many verdicts of the
    checker and MuJoCo differed. clearance_mm: the real distances at stops where nothing touches (on meshes).
    """

    touching: NDArray[np.bool_]
    unjudged: NDArray[np.bool_]
    disputed: int = 0
    clearance_mm: tuple[float, ...] = ()


Judge = Callable[[NDArray[np.float32], NDArray[np.bool_], Callable[[int], None]], Judged]
"""From configurations (K, dof), which pairs trip (K, num_pairs), and a call to make with the poses done so far."""


def judge_by_hulls(description: RobotDescription, model: CollisionModel) -> Judge:
    """MuJoCo on the pieces that are checked."""
    pieces = {link: geometry.pieces for link, geometry in description.geometry.items()}
    truth = HullTruth(description, pieces, model.pairs)

    def judge(q: NDArray[np.float32], tripped: NDArray[np.bool_], step: Callable[[int], None]) -> Judged:
        touching = truth.touching(q, step)
        unjudged = np.zeros_like(touching)
        disputes = np.argwhere(touching != tripped)
        for row, k in disputes:
            answer = truth.separation(q[row], truth.pairs[k])
            touching[row, k] = answer is Separation.NONE
            unjudged[row, k] = answer is Separation.UNJUDGED
        return Judged(touching, unjudged, disputed=len(disputes))

    return judge


def judge_by_meshes(description: RobotDescription, model: CollisionModel) -> Judge:
    """The links' own triangles, asked where the links' hulls touch or a pair trips: elsewhere they cannot touch."""
    hulls = {link: [geometry.hull] for link, geometry in description.geometry.items()}
    near = HullTruth(description, hulls, model.pairs)
    truth = MeshTruth(true_meshes(description))

    def judge(q: NDArray[np.float32], tripped: NDArray[np.bool_], step: Callable[[int], None]) -> Judged:
        asked = near.touching(q) | tripped
        touching = np.zeros_like(asked)
        clearances = []
        poses = reference_fk(description, q.astype(np.float64))
        for row in np.flatnonzero(asked.any(axis=1)):
            here = {link: pose[row] for link, pose in poses.items()}
            for k in np.flatnonzero(asked[row]):
                clearance = truth.clearance(here, near.pairs[k])
                touching[row, k] = clearance <= 0.0
                if tripped[row, k] and clearance > 0.0:
                    clearances.append(round(1000.0 * clearance, 3))
            step(int(row))
        return Judged(touching, np.zeros_like(touching), clearance_mm=tuple(clearances))

    return judge
