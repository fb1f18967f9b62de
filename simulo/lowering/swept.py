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
INFLATION = 1e-3
MAX_VERTICES = 320


def swept_piece(
    gripper: Gripper,
    joints: tuple[Joint, ...],
    mimic_joints: tuple[MimicJoint, ...],
    meshes: Mapping[str, trimesh.Trimesh],
) -> ConvexPiece:
    """One hull in the leader's frame of the leader and of its followers at 9 leader values over its limits.

    Grown by 1 mm, which is what the followers may stand out between samples, and reduced outward to 320 vertices.
    """
    leader = next(joint for joint in joints if joint.name == gripper.joint)
    points = [np.asarray(meshes[link].vertices) for link in gripper.jaw_links]
    for mimic in mimic_joints:
        if mimic.mimics == leader.name:
            if mimic.parent != leader.parent:
                raise LoweringError(
                    f"gripper {gripper.name!r}: {mimic.child!r} and {leader.child!r} hang on different links; the swept "
                    "model needs one common parent"
                )
            points.append(_swept_points(leader, mimic, np.asarray(meshes[mimic.child].vertices)))
    return fit_piece(np.concatenate(points), f"swept geometry of gripper {gripper.name!r}", MAX_VERTICES, INFLATION)


def _swept_points(leader: Joint, mimic: MimicJoint, vertices: NDArray[np.float64]) -> NDArray[np.float64]:
    """The follower's vertices in the leader's frame at every sample, shape (SAMPLES * V, 3)."""
    values = np.linspace(leader.lower, leader.upper, SAMPLES)
    leader_poses = leader.origin.matrix @ joint_motion(leader.type, leader.axis, values)
    follower_poses = mimic.origin.matrix @ joint_motion(mimic.type, mimic.axis, mimic.multiplier * values + mimic.offset)
    relative = np.linalg.inv(leader_poses) @ follower_poses
    return (np.einsum("sij,vj->svi", relative[:, :3, :3], vertices) + relative[:, None, :3, 3]).reshape(-1, 3)
