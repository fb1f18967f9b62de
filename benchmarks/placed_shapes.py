"""Pairs of convex shapes whose signed distance is known without a search, for `shape_pairs.py`.

A direction, a point of a that is extreme along it and a point of b that is extreme against it are drawn; b is turned
until the directions agree and put where the two points are the wanted distance apart. The planes through the points
then keep the shapes that far apart and the points are that far from each other, whatever the features are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from simulo.collision import ConvexShape
from simulo.collision.pool import PackedShape, pack_shape

Kind = Literal["hull", "capsule", "sphere", "box"]
Array = NDArray[np.float64]
Rng = np.random.Generator

EACH = 12
"""Shapes of either kind in a pool."""
SIZES = {"tiny": (1e-5, 1e-3), "huge": (10.0, 1000.0)}
"""[m] Largest half edges, about. Every other family has those of a robot's links and of what stands round them."""
LINKS = (0.02, 0.3)
APART, TOUCHING, SUNK, SHARING = range(4)
"""How a pair lies: 10 um to 2 m apart, 0 to 100 um, only its balls in each other, or with a point in common."""
SHARES = {"apart": (1, 0, 0, 0), "touching": (0, 1, 0, 0), "deep": (0, 0, 0.5, 0.5), "coincident": (0, 0, 0, 1)}
MIXED = (0.4, 0.2, 0.1, 0.3)
QUARTERS = np.array([np.eye(3), [[0, -1, 0], [1, 0, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, -1], [0, 1, 0]]])
FLAT = (
    [(0, 0, 0)],
    [(-0.1, 0, 0), (0.1, 0, 0)],
    [(-0.1, 0, 0), (0, 0, 0), (0.1, 0, 0)],
    [(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0)],
    [(x, y, 0) for x in (-0.1, 0.1) for y in (-0.1, 0.1)],
    [(0, 0, 0), (0.2, 0, 0), (0.1, 1e-7, 0), (0.1, 0, 1e-7)],
)


@dataclass(frozen=True)
class Solid:
    """core [m], shape (V, 3): the vertices as the kernel has them. radius [m]: of the ball that sweeps them."""

    shape: ConvexShape
    packed: PackedShape
    core: Array
    radius: float


@dataclass(frozen=True)
class Answers:
    """lower (K,) [m]: certified bounds of signed distances. exact (K,): called exact. capped (K,): searches that ran
    out of iterations."""

    lower: Array
    exact: NDArray[np.bool_]
    capped: NDArray[np.int32]


@dataclass(frozen=True)
class Draw:
    """Pairs before their poses are rounded. a, b (K,): solids of the pool. sharing (K,): whether the two points of the
    pair are one, so that it is a hit. normal (K, 3): from a to b, in a's frame. on_a, on_b (K, 3): the two points, each
    in its solid's frame. rotation, position: take b's frame to a's."""

    pool: list[Solid]
    a: NDArray[np.int64]
    b: NDArray[np.int64]
    sharing: NDArray[np.bool_]
    normal: Array
    on_a: Array
    on_b: Array
    rotation: Array
    position: Array

    def between(self, rotation: NDArray, position: NDArray) -> tuple[Array, Array]:
        """Bounds [m] of the signed distances at the poses that rounding left: of two planes, and of two points. How
        deep a pair is that shares a point is not known: below it is minus infinity."""
        rotation, position = np.asarray(rotation, np.float64), np.asarray(position, np.float64)
        radius = self.radii
        turned = np.einsum("nji,nj->ni", rotation, self.normal)
        far = _of_solids(self.pool, self.b, lambda core, rows: (turned[rows] @ core.T).min(1))
        near = _of_solids(self.pool, self.a, lambda core, rows: (self.normal[rows] @ core.T).max(1))
        planes = far + np.einsum("ni,ni->n", position, self.normal) - near - radius
        points = np.einsum("nij,nj->ni", rotation, self.on_b) + position - self.on_a
        return np.where(self.sharing, -np.inf, planes), np.linalg.norm(points, axis=1) - radius

    @property
    def radii(self) -> Array:
        """Sum of the two ball radii of each pair [m]."""
        each = np.array([solid.radius for solid in self.pool])
        return each[self.a] + each[self.b]


def draw(first: Kind, second: Kind, family: str, count: int, rng: Rng, each: int = EACH) -> Draw:
    """Pairs of a family, of `each` shapes of either kind."""
    pool = [solid(kind, family, rng) for kind in (first, second) for _ in range(each)]
    a, b = rng.integers(0, each, count), each + rng.integers(0, each, count)
    if family == "coincident" and first == second:
        b = a
    radii = np.array([s.radius for s in pool])
    radii = radii[a] + radii[b]
    how = rng.choice(4, count, p=SHARES.get(family, MIXED))
    sharing = (how == SHARING) | ((how == SUNK) & (radii == 0.0))
    normal = _of_solids(pool, a, lambda core, rows: directions(core, len(rows), rng))
    against = _of_solids(pool, b, lambda core, rows: directions(core, len(rows), rng))
    rotation = _turning(against, -normal, rng)
    if family == "coincident":
        plain = rng.random(count) < 0.5
        rotation[plain] = QUARTERS[rng.integers(0, len(QUARTERS), plain.sum())]

    def point(along: Array) -> Callable[[Array, NDArray], Array]:
        def of(core: Array, rows: NDArray) -> Array:
            common = _inside(core, len(rows), family == "coincident", rng)
            return np.where(sharing[rows, None], common, _extreme(core, along[rows], rng))

        return of

    on_a, on_b = _of_solids(pool, a, point(normal)), _of_solids(pool, b, point(against))
    gap = np.where(sharing, 0.0, radii + _distances(how, radii, rng))
    position = on_a + gap[:, None] * normal - np.einsum("nij,nj->ni", rotation.astype(np.float32), on_b)
    return Draw(pool, a, b, sharing, normal, on_a, on_b, rotation, position)


def _distances(how: NDArray[np.int64], radii: Array, rng: Rng) -> Array:
    """Wanted signed distances [m], a quarter of the touching ones 0."""
    count = len(how)
    apart = np.exp(rng.uniform(np.log(1e-5), np.log(2.0), count))
    touching = np.exp(rng.uniform(np.log(1e-9), np.log(1e-4), count)) * (rng.random(count) < 0.75)
    return np.select([how == APART, how == TOUCHING], [apart, touching], -radii * rng.random(count))


def _inside(core: Array, count: int, middle: bool, rng: Rng) -> Array:
    """Points of the core, shape (count, 3): any, or its middle."""
    weights = np.ones((count, len(core))) if middle else rng.exponential(size=(count, len(core)))
    return weights @ core / weights.sum(1, keepdims=True)


# --- shapes ------------------------------------------------------------------------------------------------------


def solid(kind: Kind, family: str, rng: Rng) -> Solid:
    lowest, highest = SIZES.get(family, LINKS)
    size = float(np.exp(rng.uniform(np.log(lowest), np.log(highest))))
    flat = family == "flat"
    thin = 1e-6 if flat else size
    if kind == "sphere":
        shape = ConvexShape.sphere(float(np.float32(thin * rng.uniform(0.2, 1.0))))
    elif kind == "capsule":
        shape = ConvexShape.capsule(float(np.float32(thin * rng.uniform(0.1, 0.5))), size * rng.uniform(0.2, 2.0))
    elif kind == "box":
        edges = size * rng.uniform(0.1, 2.0, 3)
        edges[: rng.integers(1, 3) if flat else 0] = thin
        shape = ConvexShape.box(rng.permutation(edges))
    else:
        shape = ConvexShape(_cloud(size, flat, rng))
    packed = pack_shape(shape)
    core = packed.points.astype(np.float64)
    if shape.is_box:
        core = np.array(list(itertools.product((-1.0, 1.0), repeat=3))) * packed.size[:3].astype(np.float64)
    return Solid(ConvexShape(core, shape.radius, shape.is_box), packed, core, float(packed.size[3]))


def _cloud(size: float, flat: bool, rng: Rng) -> Array:
    turn = _turning(_units(1, rng), _units(1, rng), rng)[0]
    if flat:
        return np.array(FLAT[rng.integers(len(FLAT))], np.float64) @ turn.T
    points = _units(int(rng.choice([4, 6, 12, 30, 60, 200])), rng) * size * rng.uniform(0.2, 1.0, 3)
    return points @ turn.T


# --- directions and the points that are extreme along them -----------------------------------------------------


def directions(core: Array, count: int, rng: Rng) -> Array:
    """Unit directions, shape (count, 3): any, and those along which an edge or a face is extreme."""
    edges, faces = _normals(core, rng)
    which = rng.integers(0, 3, count)
    out = _units(count, rng)
    for number, special in ((1, edges), (2, faces)):
        chosen = which == number
        out[chosen] = special[rng.integers(0, len(special), chosen.sum())]
    return out


def _normals(core: Array, rng: Rng) -> tuple[Array, Array]:
    """Directions along which edges and faces are extreme; of flat shapes, those that there are."""
    centred = core - core.mean(0)
    _, spread, axes = np.linalg.svd(centred)
    rank = int((spread > 1e-5 * spread[0]).sum()) if spread.size and spread[0] > 0.0 else 0
    if rank < 2:
        around = _units(200, rng)
        if rank == 1:
            around -= np.outer(around @ axes[0], axes[0])
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        return around, around
    if rank == 2:
        sides = ConvexHull(centred @ axes[:2].T).equations[:, :2] @ axes[:2]
        tilt = rng.uniform(-1.5, 1.5, (200, 1))
        edges = np.cos(tilt) * sides[rng.integers(0, len(sides), 200)] + np.sin(tilt) * axes[2]
        return edges, np.concatenate([axes[2:], -axes[2:]])
    hull = ConvexHull(centred)
    faces = hull.equations[:, :3]
    one = np.repeat(np.arange(len(faces)), 3)
    share = rng.uniform(0.0, 1.0, (len(one), 1))
    edges = share * faces[one] + (1.0 - share) * faces[hull.neighbors.ravel()]
    return edges / np.linalg.norm(edges, axis=1, keepdims=True), faces


def _extreme(core: Array, along: Array, rng: Rng) -> Array:
    """A point of the core's feature that is extreme along each direction, shape (K, 3): inside it or on its border."""
    values = along @ core.T
    feature = values >= values.max(1, keepdims=True) - 1e-10 * np.abs(core).max()
    some = feature & (rng.random(values.shape) < 0.7)
    some = np.where(some.any(1, keepdims=True), some, feature)
    weights = some * (rng.exponential(size=values.shape) + 1e-3)
    return weights @ core / weights.sum(1, keepdims=True)


def _units(count: int, rng: Rng) -> Array:
    out = rng.normal(size=(count, 3))
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def _turning(start: Array, end: Array, rng: Rng) -> Array:
    """Rotations, shape (K, 3, 3), that take the units `start` to `end`, with any spin about them."""
    spin = rng.uniform(0.0, 2.0 * np.pi, len(start))
    one, zero = np.ones(len(start)), np.zeros(len(start))
    c, s = np.cos(spin), np.sin(spin)
    middle = np.stack([one, zero, zero, zero, c, -s, zero, s, c], axis=1).reshape(-1, 3, 3)
    return _frames(end) @ middle @ _frames(start).transpose(0, 2, 1)


def _frames(first: Array) -> Array:
    """Right-handed frames whose first column is given."""
    helper = np.eye(3)[np.abs(first).argmin(1)]
    second = np.cross(first, helper)
    second /= np.linalg.norm(second, axis=1, keepdims=True)
    return np.stack([first, second, np.cross(first, second)], axis=2)


def _of_solids(pool: list[Solid], which: NDArray, answer: Callable[[Array, NDArray], Array]) -> Array:
    """answer(core, rows) of each solid's rows, put back in order."""
    parts, order = [], []
    for index in np.unique(which):
        rows = np.flatnonzero(which == index)
        parts.append(answer(pool[index].core, rows))
        order.append(rows)
    out = np.concatenate(parts)
    out[np.concatenate(order)] = out.copy()
    return out
