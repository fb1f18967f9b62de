"""Edges of the kinematic tree as arrays, with a second, measured copy of every gripper's moving links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simulo.description.kinematics import all_edges
from simulo.description.schema import FixedAttachment, Joint, MimicJoint, RobotDescription
from simulo.pose import Pose

Edge = Joint | FixedAttachment | MimicJoint


class MovingHand(Protocol):
    """What the measured copies need to know of a gripper."""

    @property
    def column(self) -> int: ...
    @property
    def moving_links(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class EdgeArrays:
    """Edges, parents first; fields as in `kernels.types.Robot`.

    ends (E, 4) int32: parent posed link (-1: the base frame), child posed link, column of [q | measured] or -1, gate.
    relation (E, 2): multiplier and offset. still, cos, sin (E, 3, 3). origin, slide (E, 3).
    """

    ends: NDArray[np.int32]
    relation: NDArray[np.float32]
    still: NDArray[np.float32]
    cos: NDArray[np.float32]
    sin: NDArray[np.float32]
    origin: NDArray[np.float32]
    slide: NDArray[np.float32]


def build_edges(
    description: RobotDescription, links: tuple[str, ...], grippers: Sequence[MovingHand]
) -> tuple[EdgeArrays, NDArray[np.int32], NDArray[np.int32]]:
    """Edges of the checked links and of the measured copies.

    Returns the edges, and per posed link the link it is a copy of (its own number for the robot's links) and its gate.
    A copy repeats the edge of its link with the gripper's column replaced by the measured one.
    """
    columns = {name: i for i, name in enumerate(description.joint_names)}
    edge_of = {edge.child: edge for edge in all_edges(description)}
    number = {name: i for i, name in enumerate(links)}
    rows: list[tuple[int, int, int, int, Edge]] = [
        (-1, number[description.root_link], -1, 0, FixedAttachment("", description.root_link, Pose()))
    ]
    for name in links[1:]:
        edge = edge_of[name]
        rows.append((number[edge.parent], number[name], _column(edge, columns), 0, edge))
    posed, gates = list(range(len(links))), [0] * len(links)
    for g, gripper in enumerate(grippers):
        copies: dict[str, int] = {}
        for name in gripper.moving_links:
            edge = edge_of[name]
            column = _column(edge, columns)
            copies[name] = len(posed)
            posed.append(number[name])
            gates.append(1 << g)
            measured = len(columns) + g if column == gripper.column else column
            rows.append((copies.get(edge.parent, number[edge.parent]), copies[name], measured, 1 << g, edge))
    return _as_arrays(rows), np.array(posed, np.int32), np.array(gates, np.int32)


def _column(edge: Edge, columns: dict[str, int]) -> int:
    if isinstance(edge, FixedAttachment):
        return -1
    return columns[edge.mimics if isinstance(edge, MimicJoint) else edge.name]


def _as_arrays(rows: Sequence[tuple[int, int, int, int, Edge]]) -> EdgeArrays:
    parts = [_motion(edge) for *_ends, edge in rows]
    relation = [(e.multiplier, e.offset) if isinstance(e, MimicJoint) else (1.0, 0.0) for *_ends, e in rows]
    return EdgeArrays(
        ends=np.array([row[:4] for row in rows], np.int32),
        relation=np.array(relation, np.float32),
        still=np.array([p[0] for p in parts], np.float32),
        cos=np.array([p[1] for p in parts], np.float32),
        sin=np.array([p[2] for p in parts], np.float32),
        origin=np.array([p[3] for p in parts], np.float32),
        slide=np.array([p[4] for p in parts], np.float32),
    )


def _motion(edge: Edge) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
    """still, cos, sin (3, 3) and origin, slide (3,) of an edge: Rodrigues' formula, the origin's rotation in front."""
    turn, origin, zero = edge.origin.rotation, np.asarray(edge.origin.position), np.zeros((3, 3))
    if isinstance(edge, FixedAttachment):
        return turn, zero, zero, origin, np.zeros(3)
    axis = np.asarray(edge.axis) / np.linalg.norm(edge.axis)
    if edge.type == "prismatic":
        return turn, zero, zero, origin, turn @ axis
    along = np.outer(axis, axis)
    cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return turn @ along, turn @ (np.eye(3) - along), turn @ cross, origin, np.zeros(3)
