"""The old finger model, kept for comparison: both fingers over the whole stroke as one hull on the leader."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import trimesh
from numpy.typing import NDArray

from simulo.description.kinematics import joint_motion
from simulo.description.schema import ConvexPiece, Gripper, Joint, MimicJoint
from simulo.errors import LoweringError
from simulo.lowering.pieces import fit_piece

SAMPLES = 9
MAX_VERTICES = 320

MAX_STAND_OUT = 1e-3
"""[m] A follower that may stand out of its samples' hull by more than this needs more samples."""


def swept_piece(
    gripper: Gripper,
    joints: tuple[Joint, ...],
    mimic_joints: tuple[MimicJoint, ...],
    meshes: Mapping[str, trimesh.Trimesh],
) -> ConvexPiece:
    """One hull in the leader's frame of the leader and of its followers at 9 leader values over its limits.

    Grown by what the followers may stand out between samples, so that it holds them over the whole stroke, and
    reduced outward to 320 vertices. Raises LoweringError when that growth would pass 1 mm.
    """
    leader = next(joint for joint in joints if joint.name == gripper.joint)
    points = [np.asarray(meshes[link].vertices) for link in gripper.jaw_links]
    growth = 0.0
    for mimic in mimic_joints:
        if mimic.mimics != leader.name:
            continue
        if mimic.parent != leader.parent:
            raise LoweringError(
                f"gripper {gripper.name!r}: {mimic.child!r} and {leader.child!r} hang on different links; "
                "the swept model needs one common parent"
            )
        vertices = np.asarray(meshes[mimic.child].vertices)
        points.append(_swept_points(leader, mimic, vertices))
        growth = max(growth, stand_out_bound(leader, mimic, float(np.linalg.norm(vertices, axis=1).max())))
    if growth > MAX_STAND_OUT:
        raise LoweringError(
            f"gripper {gripper.name!r}: its fingers may stand {growth * 1e3:.2f} mm out of {SAMPLES} samples' hull; "
            "the swept model allows 1 mm"
        )
    return fit_piece(np.concatenate(points), f"swept geometry of gripper {gripper.name!r}", MAX_VERTICES, growth)


def _swept_points(leader: Joint, mimic: MimicJoint, vertices: NDArray[np.float64]) -> NDArray[np.float64]:
    """The follower's vertices in the leader's frame at every sample, shape (SAMPLES * V, 3)."""
    values = np.linspace(leader.lower, leader.upper, SAMPLES)
    followed = mimic.multiplier * values + mimic.offset
    leader_poses = leader.origin.matrix @ joint_motion(leader.type, leader.axis, values)
    follower_poses = mimic.origin.matrix @ joint_motion(mimic.type, mimic.axis, followed)
    relative = np.linalg.inv(leader_poses) @ follower_poses
    return (np.einsum("sij,vj->svi", relative[:, :3, :3], vertices) + relative[:, None, :3, 3]).reshape(-1, 3)


def stand_out_bound(leader: Joint, mimic: MimicJoint, reach: float) -> float:
    """How far [m] a point within `reach` [m] of the follower's origin may leave the hull of its sampled places.

    A curve stays within h^2 / 8 * max |x''| of the chord over a step h. With y the point in the leader's zero frame,
    x(q) = R(-q) y(q) has |x''| <= |y| + 2 |y'| + |y''| when the leader turns, and |y''| when it slides.
    """
    step = (leader.upper - leader.lower) / (SAMPLES - 1)
    rate = abs(mimic.multiplier)
    slides = mimic.type == "prismatic"
    travel = max(abs(mimic.multiplier * q + mimic.offset) for q in (leader.lower, leader.upper)) if slides else 0.0
    apart = float(np.linalg.norm(np.subtract(mimic.origin.position, leader.origin.position)))
    y, y_first, y_second = apart + reach + travel, rate if slides else rate * reach, 0.0 if slides else rate**2 * reach
    curvature = y_second if leader.type == "prismatic" else y + 2.0 * y_first + y_second
    return step**2 / 8.0 * curvature
