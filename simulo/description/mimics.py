"""Mimic relations between joints, with chains flattened onto the actuated leader."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from simulo.errors import DescriptionError


@dataclass(frozen=True)
class MimicRelation:
    """joint = multiplier * leader + offset, [rad or m]."""

    joint: str
    leader: str
    multiplier: float
    offset: float

    def __str__(self) -> str:
        return f"{self.multiplier} * {self.leader} + {self.offset}"

    @staticmethod
    def from_physx(joint: str, leader: str, gearing: float, offset: float, *, revolute: bool) -> MimicRelation:
        """A PhysX mimic joint: joint + gearing * leader + offset = 0, its offset in degrees where the joint turns."""
        return MimicRelation(joint, leader, -gearing, -(math.radians(offset) if revolute else offset))

    def to_physx(self, *, revolute: bool) -> tuple[float, float]:
        """(gearing, offset) of the PhysX mimic joint that holds this relation; offset in degrees where it turns."""
        return -self.multiplier, -(math.degrees(self.offset) if revolute else self.offset)


def flatten_mimics(
    relations: Iterable[MimicRelation], actuated: Collection[str], where: str
) -> dict[str, MimicRelation]:
    """Every relation expressed by its actuated leader, by joint name.

    Refused by name: a zero or non-finite multiplier, a non-finite offset, a joint that follows itself (straight or
    round a cycle), a leader that is neither actuated nor a follower, a joint that is both actuated and a follower.
    """
    declared: dict[str, MimicRelation] = {}
    for relation in relations:
        _refuse_bad_relation(relation, actuated, declared, where)
        declared[relation.joint] = relation
    return {joint: _flattened(joint, declared, actuated, where) for joint in declared}


def _refuse_bad_relation(
    relation: MimicRelation, actuated: Collection[str], declared: Collection[str], where: str
) -> None:
    label = f"{where}: mimic joint {relation.joint!r} (mimics {relation.leader!r})"
    if not math.isfinite(relation.multiplier) or relation.multiplier == 0.0:
        raise DescriptionError(
            f"{label} has multiplier {relation.multiplier}, which couples nothing; give one other than 0"
        )
    if not math.isfinite(relation.offset):
        raise DescriptionError(f"{label} has offset {relation.offset}; give a finite offset")
    if relation.joint in actuated:
        raise DescriptionError(
            f"{label} is also an actuated joint; list it under joints or under mimic_joints, not both"
        )
    if relation.joint in declared:
        raise DescriptionError(f"{label} is declared twice; keep one of the two relations")


def _flattened(joint: str, declared: dict[str, MimicRelation], actuated: Collection[str], where: str) -> MimicRelation:
    multiplier, offset, leader, path = 1.0, 0.0, joint, [joint]
    while leader not in actuated:
        if leader not in declared:
            known = ", ".join(actuated) or "none"
            raise DescriptionError(
                f"{where}: mimic joint {path[-2]!r} mimics {leader!r}, which is not an actuated joint or another "
                f"mimic joint; the actuated joints are: {known}"
            )
        step = declared[leader]
        multiplier, offset = multiplier * step.multiplier, multiplier * step.offset + offset
        leader = step.leader
        if leader in path:
            cycle = " -> ".join([*path, leader])
            raise DescriptionError(
                f"{where}: mimic joints follow each other in a circle ({cycle}); name an actuated leader"
            )
        path.append(leader)
    return MimicRelation(joint, leader, multiplier, offset)
