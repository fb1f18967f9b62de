"""The pairs of links that the self check leaves out, every row with its reason."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from simulo.description.kinematics import reference_fk
from simulo.description.schema import DisabledPair, RobotDescription
from simulo.lowering.overlap import always_overlaps


def exempt_pairs(description: RobotDescription) -> list[DisabledPair]:
    """Rows for every pair of links with geometry that need not be checked, in the order of `description.links`.

    Rigid: no joint moves one against the other. Adjacent: one joint, mimic or not, joins them. Jaws: the fingers
    of one hand, which one coordinate relates and which are made to meet. Always overlapping: proven over the
    whole joint range on the hulls. Rows declared in robot.yaml are not repeated.
    """
    reasons = _structural_reasons(description)
    declared = {frozenset((pair.link_a, pair.link_b)) for pair in description.disabled_pairs}
    solid = [link for link in description.links if link in description.geometry]
    near = _touching_at_rest(description, solid)
    rows = []
    for pair in combinations(solid, 2):
        key = frozenset(pair)
        reason = reasons.get(key)
        if reason is None and key not in declared and key in near and always_overlaps(description, *pair):
            round_too = any(piece.radius for link in pair for piece in description.geometry[link].pieces)
            what = "primitives" if round_too else "hulls"
            reason = f"always overlapping: proven on the {what} over the whole range of the joints between"
        if reason is not None:
            rows.append(DisabledPair(*pair, reason))
    return rows


def _structural_reasons(description: RobotDescription) -> dict[frozenset[str], str]:
    reasons: dict[frozenset[str], str] = {}
    leaders = {joint.name: joint.child for joint in description.joints}
    for gripper in description.grippers:
        for pair in combinations(gripper.grasp_contact_links, 2):
            reasons[frozenset(pair)] = f"jaws: fingers of hand {gripper.name!r}, all moved by {gripper.joint}"
    for mimic in description.mimic_joints:
        reasons[frozenset((mimic.child, leaders[mimic.mimics]))] = f"jaws: {mimic.name} follows {mimic.mimics}"
    for edge in (*description.joints, *description.mimic_joints):
        reasons[frozenset((edge.parent, edge.child))] = f"adjacent: joined by {edge.name}"
    for pair in combinations(description.links, 2):
        if _rigid_root(description, pair[0]) == _rigid_root(description, pair[1]):
            reasons[frozenset(pair)] = "rigid: no moving joint between"
    return reasons


def _rigid_root(description: RobotDescription, link: str) -> str:
    """The link nearest the root that `link` is rigidly attached to."""
    fixed = {edge.child: edge.parent for edge in description.fixed_attachments}
    while link in fixed:
        link = fixed[link]
    return link


def _touching_at_rest(description: RobotDescription, solid: list[str]) -> set[frozenset[str]]:
    """Pairs whose bounding boxes meet at the rest pose; any other pair is clear there, so not always overlapping."""
    poses = reference_fk(description, description.rest_pose)
    corners = {}
    for link in solid:
        hull = description.geometry[link].hull
        vertices = hull.vertices @ poses[link][:3, :3].T + poses[link][:3, 3]
        corners[link] = vertices.min(axis=0) - hull.radius, vertices.max(axis=0) + hull.radius
    return {
        frozenset((a, b))
        for a, b in combinations(solid, 2)
        if np.all(corners[a][0] <= corners[b][1]) and np.all(corners[b][0] <= corners[a][1])
    }
