"""Proof that two links overlap at every configuration, on the pieces that are checked.

Sampling never proves it: a pair is exempt only when a cover of the whole joint range by boxes has been certified box
by box. At a box's centre, a ball of radius r about a point p lies in both hulls; while p's two copies, one riding on
each link, are less than 2 r apart, the two balls still meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from simulo.description.kinematics import all_edges, reference_fk
from simulo.description.schema import FixedAttachment, Joint, LinkGeometry, RobotDescription
from simulo.lowering.solids import points_within

MAX_COLUMNS = 3
"""Pairs that more joints than this lie between are not tried: no robot link overlaps another over such a range."""

MAX_BOXES = 4096
SLACK = 1e-6
"""[m] Covers the rounding of kinematics and linear programme, many times over."""


@dataclass(frozen=True)
class _MovingEdge:
    """A joint between the two links: column and coefficient of its value, type, and its frame's link."""

    column: int
    coefficient: float
    type: str
    parent: str
    origin: NDArray[np.float64]
    axis: NDArray[np.float64]


def always_overlaps(description: RobotDescription, link_a: str, link_b: str) -> bool:
    """Whether the two links' geometry is proven to overlap over the whole range of the joints between them."""
    edges = _edges_between(description, link_a, link_b)
    columns = sorted({edge.column for edge in edges})
    if not 1 <= len(columns) <= MAX_COLUMNS:
        return False
    lower = np.array([description.joints[column].lower for column in columns])
    upper = np.array([description.joints[column].upper for column in columns])
    lower, upper = np.where(np.isinf(lower), -np.pi, lower), np.where(np.isinf(upper), np.pi, upper)  # one whole turn
    geometry = description.geometry[link_a], description.geometry[link_b]
    planes = [_planes(geometry[0]), _planes(geometry[1])]
    boxes = [(lower, upper)]
    corners = [np.where(mask, lower, upper) for mask in product((True, False), repeat=len(columns))]
    for corner in corners:  # where a pair that comes clear most likely does: a cheap way out
        _, radius = _motion_and_ball(description, (link_a, link_b), planes, edges, columns, corner, corner)
        if radius <= SLACK:
            return False
    for _ in range(MAX_BOXES):
        if not boxes:
            return True
        low, high = boxes.pop()
        motions, radius = _motion_and_ball(description, (link_a, link_b), planes, edges, columns, low, high)
        if radius <= SLACK:
            return False
        if motions.sum() + SLACK <= 2.0 * radius:
            continue
        split = int(np.argmax(motions))
        middle = 0.5 * (low[split] + high[split])
        boxes += [_with(low, high, split, upper=middle), _with(low, high, split, lower=middle)]
    return False


def _with(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    index: int,
    lower: float | None = None,
    upper: float | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    low, high = low.copy(), high.copy()
    if lower is not None:
        low[index] = lower
    if upper is not None:
        high[index] = upper
    return low, high


def _edges_between(description: RobotDescription, link_a: str, link_b: str) -> list[_MovingEdge]:
    """Moving edges on the tree path from one link to the other."""
    parents = {edge.child: edge for edge in all_edges(description)}
    paths = []
    for link in (link_a, link_b):
        path = []
        while link != description.root_link:
            path.append(parents[link])
            link = parents[link].parent
        paths.append(path)
    columns = {joint.name: index for index, joint in enumerate(description.joints)}
    edges = []
    for edge in {id(edge): edge for path in paths for edge in path}.values():
        shared = all(any(edge is other for other in path) for path in paths)
        if shared or isinstance(edge, FixedAttachment):
            continue
        actuated = isinstance(edge, Joint)
        edges.append(
            _MovingEdge(
                column=columns[edge.name if actuated else edge.mimics],
                coefficient=1.0 if actuated else abs(edge.multiplier),
                type=edge.type,
                parent=edge.parent,
                origin=edge.origin.matrix,
                axis=np.asarray(edge.axis),
            )
        )
    return edges


def _motion_and_ball(
    description: RobotDescription,
    links: tuple[str, str],
    planes: list[list[NDArray[np.float64]]],
    edges: list[_MovingEdge],
    columns: list[int],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float]:
    """Bound on the two copies' distance per column over the box, shape (C,) [m], and the radius of the common ball.

    Moving one joint after the other from the centre to any configuration of the box, each turns the copy about its
    own axis, at the distance from it that it has in the centre configuration.
    """
    q = np.array(description.rest_pose)
    q[columns] = 0.5 * (low + high)
    poses = reference_fk(description, q)
    point, radius = _common_ball(
        [_moved(p, poses[links[0]]) for p in planes[0]], [_moved(p, poses[links[1]]) for p in planes[1]]
    )
    motions = np.zeros(len(columns))
    for edge in edges:
        lever = 1.0
        if edge.type != "prismatic":
            frame = poses[edge.parent] @ edge.origin
            offset = point - frame[:3, 3]
            lever = float(np.linalg.norm(np.cross(frame[:3, :3] @ edge.axis, offset)))
        index = columns.index(edge.column)
        motions[index] += edge.coefficient * 0.5 * (high[index] - low[index]) * lever
    return motions, radius


def _planes(geometry: LinkGeometry) -> list[NDArray[np.float64]]:
    """Face planes (n, d) with n x + d <= 0 inside, shape (F, 4), of each piece, or of a polyhedron within its ball."""
    return [np.unique(ConvexHull(points_within(piece)).equations.round(12), axis=0) for piece in geometry.pieces]


def _moved(planes: NDArray[np.float64], pose: NDArray[np.float64]) -> NDArray[np.float64]:
    normals = planes[:, :3] @ pose[:3, :3].T
    return np.column_stack([normals, planes[:, 3] - normals @ pose[:3, 3]])


def _common_ball(
    pieces_a: list[NDArray[np.float64]], pieces_b: list[NDArray[np.float64]]
) -> tuple[NDArray[np.float64], float]:
    """Centre and radius of the largest ball in a piece of each link; radius <= 0 when no two pieces overlap."""
    best, best_radius = np.zeros(3), -1.0
    for piece_a in pieces_a:
        for piece_b in pieces_b:
            rows = np.concatenate([piece_a, piece_b])
            result = linprog(
                [0.0, 0.0, 0.0, -1.0],
                A_ub=np.column_stack([rows[:, :3], np.ones(len(rows))]),
                b_ub=-rows[:, 3],
                bounds=[(None, None)] * 3 + [(-1.0, None)],
            )
            if result.success and result.x[3] > best_radius:
                best, best_radius = result.x[:3], float(result.x[3])
    return best, best_radius
