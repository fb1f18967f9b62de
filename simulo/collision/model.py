"""`build_model`: a robot description as the arrays that the collision kernels read, refused unless all of it fits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulo.collision.bodies import BodyArrays, build_bodies
from simulo.collision.kinematics import EdgeArrays, build_edges
from simulo.collision.pairs import PairArrays, build_pairs
from simulo.collision.pool import ShapeArrays
from simulo.collision.validate import refuse_broken
from simulo.description.kinematics import all_edges
from simulo.description.schema import DisabledPair, Gripper, LinkGeometry, RobotDescription
from simulo.errors import CollisionModelError

FingerModel = Literal["mimic", "swept"]


@dataclass(frozen=True)
class GripperModel:
    """A hand as the check sees it: the column of its joint, its hand link, the links that touch what it grasps, and
    the links that the joint moves (which get measured copies)."""

    name: str
    column: int
    hand_link: str
    contact_links: tuple[str, ...]
    moving_links: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class CollisionModel:
    """Constants of one robot's collision check. Immutable and on the host; `CollisionChecker` uploads it once. Models
    of the same content are equal.

    link_names: parents before children; a link's number here is its party code. joint_names: command columns.
    limits [rad or m]: lower and upper of each column.
    pairs: the checked link pairs, the largest links first. exempt: the others and why. static_links: link -> why it is
    not checked against the world. posed_links: link number of every posed link, the robot's own first, then the
    measured copies.
    digest: the description's, with the finger model.
    """

    name: str
    finger_model: FingerModel
    digest: str
    link_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    limits: tuple[tuple[float, float], ...]
    grippers: tuple[GripperModel, ...]
    pairs: tuple[tuple[str, str], ...]
    exempt: tuple[DisabledPair, ...]
    static_links: Mapping[str, str]
    touch_links: tuple[str, ...]
    posed_links: NDArray[np.int32]
    edges: EdgeArrays
    bodies: BodyArrays
    pair_arrays: PairArrays
    shapes: ShapeArrays

    @property
    def num_joints(self) -> int:
        return len(self.joint_names)

    @cached_property
    def content_digest(self) -> str:
        """SHA-256 over everything that a check reads of a model: names, arrays, and the description's own digest."""
        digest = hashlib.sha256(repr((self.digest, self.link_names, self.joint_names, self.limits)).encode())
        for group in (self.edges, self.bodies, self.pair_arrays, self.shapes):
            for field in fields(group):
                digest.update(np.ascontiguousarray(getattr(group, field.name)).tobytes())
        for gripper in self.grippers:
            digest.update(repr(gripper).encode())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CollisionModel) and self.content_digest == other.content_digest

    def __hash__(self) -> int:
        return hash(self.content_digest)

    def gripper_index(self, name: str) -> int:
        for index, gripper in enumerate(self.grippers):
            if gripper.name == name:
                return index
        known = ", ".join(g.name for g in self.grippers) or "none"
        raise CollisionModelError(f"robot {self.name!r} has no gripper {name!r}; it has: {known}")

    def link_index(self, name: str) -> int:
        if name not in self.link_names:
            raise CollisionModelError(f"robot {self.name!r} has no link {name!r}; it has: {', '.join(self.link_names)}")
        return self.link_names.index(name)


def _touching(gripper: Gripper) -> tuple[str, ...]:
    """What closes on an object: every jaw and follower and, where a jaw is fixed to the hand, the hand itself."""
    fixed_jaws = [pad.link for pad in gripper.pad_points if pad.link == gripper.hand_link]
    return (*gripper.grasp_contact_links, *fixed_jaws)


def build_model(
    description: RobotDescription, finger_model: FingerModel = "mimic", *, fixed_base: bool | None = None
) -> CollisionModel:
    """Collision model of a robot.

    finger_model "mimic" checks every finger's own geometry; "swept" drops the followers and gives each leader the old
    hull of both fingers over the whole stroke. fixed_base: whether the root link stands still in its environment, the
    description's own word when left out; if it does, links that no joint moves are left out of the world check (reason
    "static"), not out of the self check.
    Raises CollisionModelError when the description cannot be checked completely.
    """
    if finger_model not in ("mimic", "swept"):
        raise CollisionModelError(f"finger_model must be 'mimic' or 'swept', got {finger_model!r}")
    refuse_broken(description)
    links, geometry = _checked_links(description, finger_model)
    grippers = tuple(
        GripperModel(
            name=g.name,
            column=description.joint_names.index(g.joint),
            hand_link=g.hand_link,
            contact_links=tuple(n for n in _touching(g) if n in links),
            moving_links=_moved_by(description, links, g.joint),
        )
        for g in description.grippers
    )
    edges, posed_links, posed_gates = build_edges(description, links, grippers)
    bodies, shapes = build_bodies(links, geometry, posed_links, posed_gates)
    pair_arrays, pairs, exempt = build_pairs(description, finger_model, links, bodies, shapes)
    static = {}
    if fixed_base or (fixed_base is None and not description.floating_base):
        moving = {link for joint in description.joints for link in _moved_by(description, links, joint.name)}
        static = {link: "static: no joint between it and the fixed base" for link in links if link not in moving}
    return CollisionModel(
        name=description.name,
        finger_model=finger_model,
        digest=f"{description.digest}:{finger_model}",
        link_names=links,
        joint_names=description.joint_names,
        limits=tuple((joint.lower, joint.upper) for joint in description.joints),
        grippers=grippers,
        pairs=pairs,
        exempt=exempt,
        static_links=static,
        touch_links=description.touch_links,
        posed_links=posed_links,
        edges=edges,
        bodies=bodies,
        pair_arrays=pair_arrays,
        shapes=shapes,
    )


def _checked_links(
    description: RobotDescription, finger_model: FingerModel
) -> tuple[tuple[str, ...], Mapping[str, LinkGeometry]]:
    """The links that are checked, in order, and their geometry under the finger model."""
    if finger_model == "mimic":
        return description.links, description.geometry
    dropped = {link for g in description.grippers for link in g.follower_links}
    geometry = {name: value for name, value in description.geometry.items() if name not in dropped}
    for gripper in description.grippers:
        if gripper.name not in description.swept:
            raise CollisionModelError(
                f"robot {description.name!r}: gripper {gripper.name!r} has no swept geometry for finger_model='swept'; "
                f"lower the robot again with `simulo lower {description.name}`"
            )
        swept = description.swept[gripper.name]
        geometry[swept.link] = swept
    return tuple(name for name in description.links if name not in dropped), geometry


def _moved_by(description: RobotDescription, links: tuple[str, ...], joint: str) -> tuple[str, ...]:
    """The links that a joint moves: its child's, its mimics' children's, and all that hangs on them."""
    moved = {e.child for e in description.joints if e.name == joint}
    moved |= {e.child for e in description.mimic_joints if e.mimics == joint}
    edges = all_edges(description)
    for _ in description.links:  # as many rounds as the longest chain could need
        moved |= {edge.child for edge in edges if edge.parent in moved}
    return tuple(name for name in links if name in moved)
