"""How often a robot would be refused if every link were the primitives that a rule of the fitter chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from simulo.collision import CollisionChecker, build_model
from simulo.description import LinkGeometry, RobotDescription
from simulo.description.schema import DOP_DIRECTIONS, ConvexPiece
from simulo.evaluation.configuration import uniform
from simulo.evaluation.sweep import SEED
from simulo.lowering.capsules import frame_along
from simulo.lowering.exemptions import exempt_pairs
from simulo.lowering.meshes import capsule
from simulo.lowering.primitives import RULES, Candidate, Rule, Solid, choose
from simulo.pose import Pose


@dataclass(frozen=True)
class Refusals:
    """Of `poses` seeded in-limit poses: refused, and refused where one exact hull a link is clear (slop)."""

    poses: int
    refused: int
    slop: int


def refusals(
    description: RobotDescription, found: Mapping[str, tuple[Candidate, ...]], poses: int = 1000
) -> dict[Rule, Refusals]:
    """Every rule on the same poses. found: each link's candidates. Exempt are the description's own pairs, and those
    proven to overlap always under the rule's primitives, as a lowering with them would leave them out.

    A capsule is checked as a polyhedron around it that stands off it by at most half a percent of its radius.
    """
    lower_to_upper = np.random.default_rng(SEED).random((poses, len(description.joints)))
    q = torch.from_numpy(uniform(description, lower_to_upper))
    hulls = {link: LinkGeometry(link, (g.hull,), g.hull) for link, g in description.geometry.items()}
    touching = _refused(replace(description, geometry=hulls), q)
    out = {}
    for rule in RULES:
        chosen = {link: _geometry(link, choose(found[link], rule)) for link in description.geometry}
        refused = _refused(_with_its_exemptions(replace(description, geometry=chosen)), q)
        out[rule] = Refusals(poses, int(refused.sum()), int((refused & ~touching).sum()))
    return out


def _with_its_exemptions(description: RobotDescription) -> RobotDescription:
    known = {frozenset((pair.link_a, pair.link_b)) for pair in description.disabled_pairs}
    more = [pair for pair in exempt_pairs(description) if frozenset((pair.link_a, pair.link_b)) not in known]
    return replace(description, disabled_pairs=(*description.disabled_pairs, *more))


def _refused(description: RobotDescription, q: torch.Tensor) -> NDArray[np.bool_]:
    return ~CollisionChecker(build_model(description), len(q)).check(q, world=False).clear.numpy()


def _geometry(link: str, candidate: Candidate) -> LinkGeometry:
    pieces = tuple(_piece(solid) for solid in candidate.solids)
    everything = np.concatenate([piece.vertices for piece in pieces])
    return LinkGeometry(link, pieces, _around(everything))


def _piece(solid: Solid) -> ConvexPiece:
    if solid.radius == 0.0:
        return _around(solid.vertices)
    start, end = solid.vertices
    along = end - start
    length = float(np.linalg.norm(along))
    z = along / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
    upright = np.asarray(capsule(solid.radius, 0.5 * length).vertices)
    return _around(upright @ frame_along(z).T + 0.5 * (start + end))


def _around(vertices: NDArray[np.float64]) -> ConvexPiece:
    """A piece for a measurement: its box lies along the link's axes, and nothing is rounded outward."""
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    x, y, z = (float(value) for value in 0.5 * (high - low) + 1e-6)
    middle = 0.5 * (low + high)
    offsets = (vertices - middle) @ DOP_DIRECTIONS.T
    return ConvexPiece(
        vertices, Pose(tuple(middle)), (x, y, z), np.column_stack([offsets.min(axis=0), offsets.max(axis=0)])
    )
