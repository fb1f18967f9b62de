"""Primitives around a link: one capsule, one box, chains of two and three capsules, and the rules that choose.

Every candidate holds every vertex and triangle of the link with HEADROOM to spare. Its protrusion in a direction is
how much further it reaches than the link's hull: h_P(u) - h_hull(u), with h the support function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from simulo.description.files import FitChoice
from simulo.lowering.capsules import FittedCapsule, distance_to_segment, fit_capsule
from simulo.lowering.clip import Plane, Surface, cut
from simulo.lowering.hull import GRID
from simulo.lowering.pieces import HEADROOM, box_rotation
from simulo.lowering.sampling import sphere

Kind = Literal["capsule", "chain of 2", "chain of 3", "box"]
Rule = Literal["A", "M", "B", "M1"]

RULES: dict[Rule, str] = {
    "A": "least volume",
    "M": "least mean protrusion, ties within 3 % to the cheaper kind",
    "B": "least of the largest protrusions",
    "M1": "as M, without chains",
}

TIE = 1.03
_DIRECTIONS = 1024
_VOLUME_POINTS = 1 << 14


@dataclass(frozen=True)
class Solid:
    """Vertices [m], shape (V, 3), swept by a ball [m]: two with a ball are a capsule, eight without are a box."""

    vertices: NDArray[np.float64]
    radius: float


@dataclass(frozen=True)
class Candidate:
    """One way to cover a link. volume [m^3] of the union; volume_ratio: over the link's hull's; protrusions [m]."""

    kind: Kind
    solids: tuple[Solid, ...]
    volume: float
    volume_ratio: float
    largest_protrusion: float
    mean_protrusion: float


def candidates(vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> tuple[Candidate, ...]:
    """The four candidates of a link's mesh (vertices (V, 3) [m], faces (T, 3)), the cheapest to check first."""
    hull = ConvexHull(vertices)
    whole = fit_capsule(vertices)
    surface = Surface(vertices, faces)
    covers: dict[Kind, tuple[Solid, ...]] = {
        "capsule": (_capsule(whole, vertices),),
        "chain of 2": _chain(surface, whole, 2),
        "chain of 3": _chain(surface, whole, 3),
        "box": (_box(hull),),
    }
    return tuple(_measured(kind, solids, hull) for kind, solids in covers.items())


def choose(found: tuple[Candidate, ...], rule: Rule = "M") -> Candidate:
    """The candidate that a rule picks; the cheaper one where two are equal."""
    if rule == "A":
        return min(found, key=lambda candidate: candidate.volume)
    if rule == "B":
        return min(found, key=lambda candidate: candidate.largest_protrusion)
    allowed = [candidate for candidate in found if rule == "M" or len(candidate.solids) == 1]
    least = min(candidate.mean_protrusion for candidate in allowed)
    return next(candidate for candidate in allowed if candidate.mean_protrusion <= TIE * least)


def pick(found: tuple[Candidate, ...], choice: FitChoice) -> Candidate:
    """The candidate of a kind that is named, or that a rule picks."""
    if choice in RULES:
        return choose(found, choice)
    return next(candidate for candidate in found if candidate.kind.replace("chain of ", "chain") == choice)


def _capsule(fitted: FittedCapsule, points: NDArray[np.float64]) -> Solid:
    """The capsule on the grid, its ball grown until it holds the points with headroom."""
    ends = np.round(fitted.ends / GRID) * GRID
    radius = float(distance_to_segment(points, ends).max()) + HEADROOM
    return Solid(ends.round(9) + 0.0, float(np.round(np.ceil(radius / 1e-6 + 1e-3) * 1e-6, 6)))


def _chain(surface: Surface, whole: FittedCapsule, count: int) -> tuple[Solid, ...]:
    """A capsule for each of `count` equal slabs along the whole capsule's axis. A slab keeps the points of its cuts,
    so the capsules hold the triangles across them too."""
    axis = whole.ends[1] - whole.ends[0]
    length = float(np.linalg.norm(axis))
    axis = axis / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
    along = surface.vertices @ axis
    solids, rest = [], surface
    for offset in np.linspace(along.min(), along.max(), count + 1)[1:-1]:
        slab, rest = cut(rest, Plane(axis, float(offset)))
        solids.append(_capsule(fit_capsule(slab.vertices), slab.vertices))
    return (*solids, _capsule(fit_capsule(rest.vertices), rest.vertices))


def _box(hull: ConvexHull) -> Solid:
    """The oriented box of least volume with a face flush with the hull's, grown by the headroom."""
    points = hull.points[hull.vertices]
    rotation = box_rotation(points)
    local = points @ rotation
    low, high = local.min(axis=0) - HEADROOM, local.max(axis=0) + HEADROOM
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    return Solid((np.round((low + corners * (high - low)) @ rotation.T / GRID) * GRID).round(9) + 0.0, 0.0)


def _measured(kind: Kind, solids: tuple[Solid, ...], hull: ConvexHull) -> Candidate:
    directions = sphere(_DIRECTIONS)
    reach = np.max([(directions @ s.vertices.T).max(axis=1) + s.radius for s in solids], axis=0)
    protrusion = reach - (directions @ hull.points[hull.vertices].T).max(axis=1)
    volume = _union_volume(solids)
    return Candidate(kind, solids, volume, volume / hull.volume, float(protrusion.max()), float(protrusion.mean()))


def _union_volume(solids: tuple[Solid, ...]) -> float:
    """[m^3]; of a chain by counting points of a fixed lattice, to about 1 %."""
    if len(solids) == 1:
        solid = solids[0]
        if solid.radius == 0.0:
            return float(ConvexHull(solid.vertices).volume)
        return FittedCapsule(solid.vertices, solid.radius).volume
    low = np.min([s.vertices.min(axis=0) - s.radius for s in solids], axis=0)
    high = np.max([s.vertices.max(axis=0) + s.radius for s in solids], axis=0)
    points = low + _lattice(_VOLUME_POINTS) * (high - low)
    inside = np.any([distance_to_segment(points, s.vertices) <= s.radius for s in solids], axis=0)
    return float(inside.mean() * np.prod(high - low))


def _lattice(count: int) -> NDArray[np.float64]:
    """Points spread over the unit cube, shape (count, 3): the additive recurrence of the plastic number's cubic kin."""
    ratio = 1.2207440846057596  # the root of x^4 = x + 1
    steps = np.arange(1, count + 1)[:, None] * ratio ** -np.arange(1.0, 4.0)
    return (0.5 + steps) % 1.0
