"""How far two bodies can move relative to each other when the joints move: bounds that hold in every configuration.

The distance of two bodies changes no faster than their nearest points move along the line between them. A joint on
the path between the bodies turns one side of the path against the other, and along that line both points move alike,
so either body's points will do: a joint that turns by dq [rad] changes the distance by at most |dq| times the largest
distance from its axis of the one body's points, or of the other's. The smaller of the two is the pair's lever at that
joint, and the sum over joints bounds the whole.

Levers hold over the joints' ranges, however the joints in between stand: a set of points that is carried over a
turning joint becomes the solid of revolution around its axis, over a sliding one it is drawn along the slide's range.
Sets are convex hulls of points; each step only ever makes them larger. Everything is float64, rounded outward at the
end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from simulo.collision.kernels.shapes import BOX
from simulo.collision.model import CollisionModel
from simulo.errors import CollisionModelError

Points = NDArray[np.float64]

_SPOKES = 32  # of the polygons that stand around circles
_PROFILE = 17  # directions in which a solid of revolution is bounded
# m or rad: how far beyond its range a joint may be, since engines keep limits softly.
OVERRUN = 0.01
# What float32 makes of the model's constants and of sums of a few dozen levers.
_OUTWARD = 1.0 + 1e-5
_USUAL_PAYLOAD = 0.1  # m: the size that decides which side's lever is kept for a payload; either side's holds for all


@dataclass(frozen=True)
class MotionBounds:
    """Levers [m per rad, or m per m of a slide] of one model, float32, never too small.

    pair (P, dof): how much a checked pair's distance can change per unit of each column. body (B, dof): how far any
    point of a body can move in the base frame. origin, ball (L, dof): as `body`, for a ball of radius s around a
    link's origin, origin + s * ball. origin_to, ball_to (L, B, dof): as `pair`, for such a ball and a body.
    low, high (dof,): the values for which all of it holds; slides (dof,) bool: columns that move slides, outside whose
    values nothing does, while levers of joints that turn hold for any. always (P,) [m]: a distance that a pair never
    comes below inside them all; 0 where none is known (see `clearance`).
    """

    pair: NDArray[np.float32]
    body: NDArray[np.float32]
    origin: NDArray[np.float32]
    ball: NDArray[np.float32]
    origin_to: NDArray[np.float32]
    ball_to: NDArray[np.float32]
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    slides: NDArray[np.bool_]
    always: NDArray[np.float32]

    def largest(self, travel: NDArray[np.floating], held: Sequence[tuple[int, float]] = ()) -> float:
        """The largest bound of anything [m] when the columns move by `travel`, shape (..., dof); held: balls around
        links' origins, as link number and radius [m]."""
        balls = [self.origin[link] + np.float32(radius) * self.ball[link] for link, radius in held]
        levers = np.concatenate([self.pair, self.body, np.array(balls).reshape(-1, self.pair.shape[1])])
        return float((np.abs(np.asarray(travel, np.float64)) @ levers.T.astype(np.float64)).max(initial=0.0))


def endless_slides(model: CollisionModel) -> list[str]:
    """Sliding joints without limits, by name: nothing bounds how far what hangs on them moves."""
    columns = [*range(model.num_joints), *(gripper.column for gripper in model.grippers)]
    slides = {columns[e[2]] for e, slide in zip(model.edges.ends, model.edges.slide, strict=True) if slide.any()}
    return [model.joint_names[column] for column in sorted(slides) if not np.isfinite(model.limits[column]).all()]


@lru_cache(maxsize=16)  # every gate of a robot asks for the same
def build_levers(model: CollisionModel) -> MotionBounds:
    """Levers of every checked pair, of every body against the world, and of whatever a link may come to hold.

    Raises CollisionModelError where a slide has no limits: what hangs on it could be anywhere.
    """
    if endless := endless_slides(model):
        raise CollisionModelError(
            f"robot {model.name!r}: the slide {endless[0]!r} has no limits, so nothing bounds how far what hangs on it "
            "moves; give the joint limits, or leave motion_check off"
        )
    tree = _Tree(model)
    bodies, links, dof = model.bodies.body, len(model.link_names), model.num_joints
    clouds = [_body_points(model, b) for b in range(len(bodies))]
    carried = [_Carried(tree, int(bodies[b, 0]), *clouds[b]) for b in range(len(bodies))]
    origins = [_Carried(tree, link, np.zeros((1, 3)), 0.0) for link in range(links)]
    pair = np.zeros((len(model.pair_arrays.pair), dof))
    for row, (a, b, _gate) in zip(pair, model.pair_arrays.pair, strict=True):
        for edge in tree.between(int(bodies[a, 0]), int(bodies[b, 0])):
            tree.add(row, edge, min(carried[a].lever(edge), carried[b].lever(edge)))
    body = np.zeros((len(bodies), dof))
    for row, points in zip(body, carried, strict=True):
        for edge in tree.above(points.link):
            tree.add(row, edge, points.lever(edge))
    origin, ball = np.zeros((links, dof)), np.zeros((links, dof))
    origin_to, ball_to = np.zeros((links, len(bodies), dof)), np.zeros((links, len(bodies), dof))
    for link, point in enumerate(origins):
        for edge in tree.above(link):
            tree.add(origin[link], edge, point.lever(edge))
            tree.add(ball[link], edge, float(edge.turns))
        for b, other in enumerate(carried):
            for edge in tree.between(link, other.link):
                near, far = point.lever(edge), other.lever(edge)
                held = near + _USUAL_PAYLOAD * edge.turns < far
                tree.add(origin_to[link, b], edge, near if held else far)
                tree.add(ball_to[link, b], edge, float(edge.turns and held))
    low, high, slides = tree.allowed()
    return MotionBounds(
        _outward(pair), _outward(body), _outward(origin), _outward(ball), _outward(origin_to), _outward(ball_to),
        low, high, slides, np.zeros(len(pair), np.float32),
    )  # fmt: skip


def _outward(values: NDArray[np.float64]) -> NDArray[np.float32]:
    up = np.nextafter((values * _OUTWARD).astype(np.float32), np.float32(np.inf))
    return np.where(values > 0.0, up, np.float32(0.0))


def _body_points(model: CollisionModel, body: int) -> tuple[Points, float]:
    """A body's vertices in its posed link [m], and the ball around them."""
    shape = model.bodies.body[body, 1]
    half, ball = model.shapes.size[shape, :3].astype(np.float64), float(model.shapes.size[shape, 3])
    if model.shapes.header[shape, 0] == int(BOX):
        local = half * np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    else:
        first = np.append(model.shapes.header[:, 1], len(model.shapes.points))
        local = model.shapes.points[first[shape] : first[shape + 1]].astype(np.float64)
    return local @ model.bodies.rotation[body].astype(np.float64).T + model.bodies.origin[body], ball


@dataclass(frozen=True)
class _Edge:
    """An edge of the tree of posed links. turn, origin: the child's frame in the parent at joint value zero. axis: in
    the child's frame; low, high: of the joint itself. column: -1 for none; rate: joint value per column value."""

    parent: int
    child: int
    turn: Points
    origin: Points
    axis: Points
    turns: bool
    slides: bool
    column: int
    rate: float
    low: float
    high: float

    def lifted(self, points: Points) -> Points:
        """Points fixed to the child, in the parent's frame, wherever the joint stands."""
        return self._freed(points) @ self.turn.T + self.origin

    def lowered(self, points: Points) -> Points:
        """Points fixed to the parent, in the child's frame, wherever the joint stands."""
        return self._freed((points - self.origin) @ self.turn, -1.0)

    def _freed(self, points: Points, sign: float = 1.0) -> Points:
        if self.turns:
            return revolved(points, self.axis)
        if self.slides:
            ends = [points + sign * value * self.axis for value in (self.low, self.high)]
            return np.concatenate(ends)
        return points


def revolved(points: Points, axis: Points) -> Points:
    """Points whose convex hull holds `points`, shape (K, 3), turned by every angle about an axis through the origin."""
    along = points @ axis
    radial = np.linalg.norm(points - along[:, None] * axis, axis=1)
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, _PROFILE)
    cos, sin = np.cos(angle), np.sin(angle)
    cos[[0, -1]] = 0.0
    # The half profile is bounded by lines; neighbouring lines meet in the corners of a polygon around it.
    reach = (radial[:, None] * cos + along[:, None] * sin).max(axis=0)
    step = angle[1] - angle[0]
    rho = (reach[:-1] * sin[1:] - reach[1:] * sin[:-1]) / np.sin(step)
    height = (reach[1:] * cos[:-1] - reach[:-1] * cos[1:]) / np.sin(step)
    rho = np.maximum(rho, 0.0) / np.cos(np.pi / _SPOKES)
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    second = np.cross(axis, first)
    around = 2.0 * np.pi * np.arange(_SPOKES) / _SPOKES
    spokes = np.cos(around)[:, None] * first + np.sin(around)[:, None] * second
    return (rho[:, None, None] * spokes + height[:, None, None] * axis).reshape(-1, 3)


class _Tree:
    """The edges of a model by their child, in float64."""

    def __init__(self, model: CollisionModel) -> None:
        self._dof = model.num_joints
        self._columns = [*range(self._dof), *(gripper.column for gripper in model.grippers)]
        self._limits = model.limits
        self.edges = {int(ends[1]): self._edge(model, e) for e, ends in enumerate(model.edges.ends)}

    def _edge(self, model: CollisionModel, e: int) -> _Edge:
        edges = model.edges
        parent, child, column, _gate = (int(v) for v in edges.ends[e])
        turn = edges.still[e].astype(np.float64) + edges.cos[e].astype(np.float64)
        slide, sine = edges.slide[e].astype(np.float64), turn.T @ edges.sin[e].astype(np.float64)
        slides, turns = bool(slide.any()), bool(edges.sin[e].any())
        axis = turn.T @ slide if slides else np.array([sine[2, 1], sine[0, 2], sine[1, 0]])
        rate, offset = (float(v) for v in edges.relation[e])
        low = high = 0.0
        if slides:
            least, most = self._limits[self._columns[column]]
            low, high = sorted(rate * value + offset for value in (least - OVERRUN, most + OVERRUN))
        return _Edge(
            parent, child, turn, edges.origin[e].astype(np.float64), axis / max(np.linalg.norm(axis), 1e-300),
            turns, slides, column, abs(rate), low, high,
        )  # fmt: skip

    def above(self, link: int) -> list[_Edge]:
        """Edges from a link to the base frame, nearest first."""
        out = []
        while link >= 0:
            out.append(self.edges[link])
            link = self.edges[link].parent
        return out

    def between(self, a: int, b: int) -> list[_Edge]:
        """Edges on the path between two links."""
        first = {edge.child: edge for edge in self.above(a)}
        second = {edge.child: edge for edge in self.above(b)}
        return [edge for child, edge in {**first, **second}.items() if (child in first) != (child in second)]

    def add(self, row: NDArray[np.float64], edge: _Edge, lever: float) -> None:
        """Count an edge's lever for its column; a finger that is posed as measured does not move on the way."""
        if 0 <= edge.column < self._dof:
            row[edge.column] += edge.rate * (lever if edge.turns else float(edge.slides))

    def allowed(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
        """Column values for which the bounds hold, and which columns move slides."""
        low, high = np.array(self._limits, np.float64).reshape(-1, 2).T
        slides = np.zeros(self._dof, np.bool_)
        slides[[edge.column for edge in self.edges.values() if edge.slides and edge.column < self._dof]] = True
        return (low - OVERRUN).astype(np.float32), (high + OVERRUN).astype(np.float32), slides


class _Carried:
    """A set of points with a ball around each, fixed to a link, seen from other links whatever the joints between."""

    def __init__(self, tree: _Tree, link: int, points: Points, ball: float) -> None:
        self.link = link
        self._tree, self._ball = tree, ball
        self._seen = {link: points}

    @cached_property
    def _ancestors(self) -> set[int]:
        return {edge.child for edge in self._tree.above(self.link)}

    def seen_from(self, link: int) -> Points:
        """The points in a link's frame, -1 for the base's."""
        if link not in self._seen:
            if link == -1 or link in self._ancestors:
                below = next(edge for edge in self._tree.above(self.link) if edge.parent == link)
                self._seen[link] = below.lifted(self.seen_from(below.child))
            else:
                edge = self._tree.edges[link]
                self._seen[link] = edge.lowered(self.seen_from(edge.parent))
        return self._seen[link]

    def lever(self, edge: _Edge) -> float:
        """Largest distance [m] of any of the points from an edge's axis."""
        points = self.seen_from(edge.child)
        return float(np.linalg.norm(points - (points @ edge.axis)[:, None] * edge.axis, axis=1).max()) + self._ball
