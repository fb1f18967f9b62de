"""The old finger model, kept for comparison: both fingers over the whole stroke as one hull on the leader."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import trimesh

from simulo.description.kinematics import Edge, all_edges, reference_fk
from simulo.description.schema import ConvexPiece, Gripper, Joint, MimicJoint, RobotDescription
from simulo.errors import LoweringError
from simulo.lowering.pieces import fit_piece

SAMPLES = (9, 17, 33, 65)
"""Leader values over its limits: as few as keep the fingers' stand-out between them within MAX_STAND_OUT."""

MAX_VERTICES = 320

MAX_STAND_OUT = 1e-3
"""[m] A follower that may stand out of its samples' hull by more than this needs more samples."""


def swept_piece(gripper: Gripper, description: RobotDescription, meshes: Mapping[str, trimesh.Trimesh]) -> ConvexPiece:
    """One hull in the leader's frame of the jaws and of the followers at 9 leader values over its limits, or more.

    Grown by what the fingers may stand out between samples, so that it holds them over the whole stroke, and reduced
    outward to 320 vertices. Raises LoweringError when no number of samples keeps that growth within 1 mm.
    """
    edges = {edge.child: edge for edge in all_edges(description)}
    leader = next(joint for joint in description.joints if joint.name == gripper.joint)
    fingers = [link for link in gripper.grasp_contact_links if link in meshes]
    bound = max(
        _curvature(leader, _chain(link, leader, edges), float(np.linalg.norm(meshes[link].vertices, axis=1).max()))
        for link in fingers
    )
    stand_outs = {count: ((leader.upper - leader.lower) / (count - 1)) ** 2 / 8.0 * bound for count in SAMPLES}
    samples = next((count for count, stand_out in stand_outs.items() if stand_out <= MAX_STAND_OUT), SAMPLES[-1])
    growth = stand_outs[samples]
    if growth > MAX_STAND_OUT:
        raise LoweringError(
            f"gripper {gripper.name!r}: its fingers may stand {growth * 1e3:.2f} mm out of {samples} samples' hull; "
            "the swept model allows 1 mm"
        )
    q = np.tile(np.asarray(description.rest_pose), (samples, 1))
    q[:, description.joint_names.index(leader.name)] = np.linspace(leader.lower, leader.upper, samples)
    poses = reference_fk(description, q)
    to_leader = np.linalg.inv(poses[leader.child])
    points = []
    for link in fingers:
        relative = to_leader @ poses[link]
        vertices = np.asarray(meshes[link].vertices)
        moved = np.einsum("sij,vj->svi", relative[:, :3, :3], vertices) + relative[:, None, :3, 3]
        points.append(vertices if link == leader.child else moved.reshape(-1, 3))
    return fit_piece(np.concatenate(points), f"swept geometry of gripper {gripper.name!r}", MAX_VERTICES, growth)


def _chain(link: str, leader: Joint, edges: Mapping[str, Edge]) -> list[Edge]:
    """The edges out to the link from the leader's child, or else from what the leader hangs on."""
    chain: list[Edge] = []
    while link not in (leader.child, leader.parent):
        if link not in edges:
            raise LoweringError(
                f"finger {chain[0].child!r} does not hang on {leader.parent!r}, as {leader.child!r} does; the swept "
                "model needs one common parent"
            )
        chain.append(edges[link])
        link = edges[link].parent
    return chain[::-1]


def _curvature(leader: Joint, chain: list[Edge], reach: float) -> float:
    """Bound on |x''| [m per unit squared of the leader], x a point of the chain's last link in the leader's frame.

    A curve stays within h^2 / 8 * max |x''| of the chord over a step h. With y the point in the frame that the leader
    hangs on, every joint out to it turns or slides at its rate: |y'| is at most the sum of rate * lever (of the rate
    where it slides), |y''| the sum over pairs of both rates times the inner joint's lever. A leader that turns gives
    |x''| <= |y - its origin| + 2 |y'| + |y''|, one that slides |y''|.
    """
    if not chain or chain[0].parent == leader.child:
        return 0.0  # rigid on the leader
    lever, joints = reach, []
    for edge in reversed(chain):
        if isinstance(edge, MimicJoint):
            slides = edge.type == "prismatic"
            joints.append((abs(edge.multiplier), 1.0 if slides else lever, slides))
            if slides:
                lever += max(abs(edge.multiplier * q + edge.offset) for q in (leader.lower, leader.upper))
        apart = np.subtract(edge.origin.position, leader.origin.position if edge is chain[0] else 0.0)
        lever += float(np.linalg.norm(apart))
    first = sum(rate * arm for rate, arm, _ in joints)
    second = 0.0
    for i, (rate, arm, slides) in enumerate(joints):  # from the link inwards, so the second of a pair is the outer one
        for k, (other_rate, _, other_slides) in enumerate(joints[i:], start=i):
            if not (slides and other_slides):
                second += rate * other_rate * arm * (1.0 if k == i else 2.0)
    return second if leader.type == "prismatic" else lever + 2.0 * first + second
