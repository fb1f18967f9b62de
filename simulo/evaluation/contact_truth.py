"""Which link pairs really touch: MuJoCo on convex pieces, and the links' own triangles where a mesh is the question."""

# MuJoCo's bindings are a compiled module without stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product

import mujoco
import numpy as np
import trimesh
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from simulo.collision.reference import nearest_of_difference
from simulo.description import ConvexPiece, RobotDescription, reference_fk
from simulo.evaluation.mujoco_tree import kinematic_tree, model_positions
from simulo.evaluation.truth import bvh_of, cross, distance_between
from simulo.mjspec import add_piece

Array = NDArray[np.float64]
Pair = tuple[str, str]


_ROUNDING = 1e-12
"""[m] What the heights of placed vertices may be wrong by, a metre or so from the origin."""


class Separation(Enum):
    """Whether a plane lies between two solids. UNJUDGED: what was asked for one ended without an answer."""

    PROVEN = "proven"
    NONE = "none"
    UNJUDGED = "unjudged"


class HullTruth:
    """MuJoCo's verdict on convex pieces: one body per link, one geom per piece, one pair of geoms per pair of pieces.

    pieces: of each link. pairs: the link pairs that are asked.
    """

    def __init__(
        self, description: RobotDescription, pieces: Mapping[str, Sequence[ConvexPiece]], pairs: Sequence[Pair]
    ):
        self.pairs = tuple(pairs)
        self._pieces = pieces
        self._description = description
        spec, bodies = kinematic_tree(description)
        for link in pieces:
            for k, piece in enumerate(pieces[link]):
                add_piece(spec, bodies[link], f"{link}:{k}", piece, contype=0, conaffinity=0)
        for a, b in self.pairs:
            for i, j in product(range(len(pieces[a])), range(len(pieces[b]))):
                spec.add_pair(geomname1=f"{a}:{i}", geomname2=f"{b}:{j}", margin=0.0, gap=0.0)
        self._model = spec.compile()
        self._data = mujoco.MjData(self._model)
        self._pair_of_geoms = self._numbered_geoms()

    def touching(self, q: ArrayLike, step: Callable[[int], None] = lambda done: None) -> NDArray[np.bool_]:
        """Where pairs touch, shape (K, num_pairs), at configurations q [rad or m], shape (K, dof). step: called with
        how many are done."""
        model, data = self._model, self._data
        places = model_positions(self._description, model, q)
        out = np.zeros((len(places), len(self.pairs)), dtype=bool)
        for row, place in enumerate(places):
            data.qpos[:] = place
            mujoco.mj_kinematics(model, data)
            mujoco.mj_collision(model, data)
            if data.ncon:
                touch = data.contact.dist[: data.ncon] <= 0.0
                geoms = data.contact.geom[: data.ncon][touch]
                out[row, self._pair_of_geoms[geoms[:, 0], geoms[:, 1]]] = True
            if row % 1000 == 0:
                step(row)
        return out

    def separation(self, q: ArrayLike, pair: Pair) -> Separation:
        """Whether a plane is proven, in double, to separate every two pieces of a pair at one configuration."""
        poses = reference_fk(self._description, np.asarray(q, np.float64))
        placed = [
            [(p.vertices @ poses[link][:3, :3].T + poses[link][:3, 3], p.radius) for p in self._pieces[link]]
            for link in pair
        ]
        found = {_between(a, b, ball_a + ball_b) for (a, ball_a), (b, ball_b) in product(*placed)}
        return next((answer for answer in (Separation.NONE, Separation.UNJUDGED) if answer in found), Separation.PROVEN)

    def _numbered_geoms(self) -> NDArray[np.int64]:
        """Number of the link pair of two geoms, shape (ngeom, ngeom)."""
        numbers = {frozenset(pair): k for k, pair in enumerate(self.pairs)}
        link_of = [self._model.geom(g).name.rsplit(":", 1)[0] for g in range(self._model.ngeom)]
        return np.array([[numbers.get(frozenset((a, b)), 0) for b in link_of] for a in link_of], dtype=np.int64)


def _between(a: Array, b: Array, balls: float) -> Separation:
    return ball_separation(a, b, balls) if balls else separation(a, b)


def ball_separation(a: Array, b: Array, balls: float) -> Separation:
    """Whether two vertex sets [m], shapes (V, 3), are further apart than `balls` [m], the sum of the balls they carry.

    Wolfe's nearest point of the difference is asked for, and proves nothing: the vertices' own heights along it, or its
    own length, do. A distance between these two, which rounding alone leaves, is unjudged.
    """
    nearest = nearest_of_difference(a, b)
    length = float(np.linalg.norm(nearest))
    if length <= balls:
        return Separation.NONE
    gap = float(((a - b[0]) @ nearest).min() - ((b - b[0]) @ nearest).max()) / length
    return Separation.PROVEN if gap > balls + _ROUNDING else Separation.UNJUDGED


def separation(a: Array, b: Array) -> Separation:
    """Whether a plane strictly separates two vertex sets [m], shapes (V, 3), by linear programming in double.

    Maximises the gap g with n a >= c + g, n b <= c - g and |n_i| <= 1, about their middle. The program's tolerances
    prove nothing: the vertices' own heights along its normal do.
    """
    middle = 0.5 * (a.mean(axis=0) + b.mean(axis=0))
    left = np.hstack([-(a - middle), np.ones((len(a), 2))])
    right = np.hstack([b - middle, -np.ones((len(b), 1)), np.ones((len(b), 1))])
    result = linprog(
        [0.0, 0.0, 0.0, 0.0, -1.0],
        A_ub=np.vstack([left, right]),
        b_ub=np.zeros(len(a) + len(b)),
        bounds=[(-1.0, 1.0)] * 3 + [(None, None)] * 2,
        method="highs",
    )
    if result.status != 0:
        return Separation.UNJUDGED
    normal = result.x[:3]
    gap = ((a - middle) @ normal).min() - ((b - middle) @ normal).max()
    return Separation.PROVEN if gap > _ROUNDING * np.linalg.norm(normal) else Separation.NONE


@dataclass(frozen=True)
class _Part:
    """A part of a link's mesh, in the link frame [m]: triangles (T, 3, 3), its box, and one of its own points."""

    triangles: Array
    low: Array
    high: Array
    point: Array


class MeshTruth:
    """Contact of the links' own triangles, and of a part that lies inside another link's closed part.

    Written apart from the lowering, whose pieces it judges.

    meshes: each link's triangles in its frame [m].
    """

    def __init__(self, meshes: Mapping[str, trimesh.Trimesh]):
        once = {link: _once(mesh) for link, mesh in meshes.items()}
        self._surfaces = {link: bvh_of(np.asarray(m.vertices), np.asarray(m.faces)) for link, m in once.items()}
        self._parts = {link: _parts(mesh) for link, mesh in once.items()}

    def clearance(self, poses: Mapping[str, Array], pair: Pair) -> float:
        """Least distance [m] of a pair's surfaces, with the links at these poses (4, 4); 0 where the links touch."""
        a, b = pair
        places = self._surfaces[a], poses[a], self._surfaces[b], poses[b]
        if cross(*places):
            return 0.0
        distance = distance_between(*places)
        to_b: Array = np.linalg.inv(poses[b]).astype(np.float64) @ poses[a]
        inside = self._inside(a, b, to_b) or self._inside(b, a, np.linalg.inv(to_b).astype(np.float64))
        return 0.0 if inside else distance

    def _inside(self, a: str, b: str, a_to_b: Array) -> bool:
        """Whether a part of a lies in a closed part of b. Surfaces that do not cross: one point says it for a part."""
        points = np.array([part.point for part in self._parts[a][0]]) @ a_to_b[:3, :3].T + a_to_b[:3, 3]
        for part in self._parts[b][1]:
            near = np.all((points > part.low) & (points < part.high), axis=1)
            if any(_winding(point, part.triangles) > 0.5 for point in points[near]):
                return True
        return False


def _parts(mesh: trimesh.Trimesh) -> tuple[list[_Part], list[_Part]]:
    """The connected parts of a mesh, and those of them that are closed."""
    everything, closed = [], []
    for part in mesh.split(only_watertight=False, repair=False):
        triangles = np.asarray(part.triangles, np.float64)
        flat = triangles.reshape(-1, 3)
        found = _Part(triangles, flat.min(axis=0), flat.max(axis=0), flat[0])
        everything.append(found)
        if part.is_watertight:
            closed.append(found)
    return everything, closed


def _once(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    """Every triangle once: what is drawn and collides as well comes twice, and then no edge joins just two of them."""
    merged = trimesh.Trimesh(np.asarray(mesh.vertices), np.asarray(mesh.faces), process=True)
    a, b, c = merged.faces.T
    merged.update_faces(merged.unique_faces() & (a != b) & (b != c) & (c != a))
    return merged


def _winding(point: Array, triangles: Array) -> float:
    """How often a closed surface winds round a point, sign dropped (van Oosterom and Strackee 1983, solid angles)."""
    a, b, c = (triangles[:, k] - point for k in range(3))
    la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c))
    dots = la * lb * lc + (a * b).sum(1) * lc + (b * c).sum(1) * la + (c * a).sum(1) * lb
    return abs(float(np.arctan2(volume, dots).sum())) / (2.0 * np.pi)
