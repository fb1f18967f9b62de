"""How often a robot would be refused if every link were the primitives that a rule of the fitter chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from simulo.collision import CollisionChecker, build_model
from simulo.description import LinkGeometry, RobotDescription
from simulo.evaluation.configuration import uniform
from simulo.evaluation.sweep import SEED
from simulo.lowering.exemptions import exempt_pairs
from simulo.lowering.fit import fitted_link
from simulo.lowering.primitives import RULES, Candidate, Rule, choose


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
    """
    lower_to_upper = np.random.default_rng(SEED).random((poses, len(description.joints)))
    q = torch.from_numpy(uniform(description, lower_to_upper))
    hulls = {link: LinkGeometry(link, (g.hull,), g.hull) for link, g in description.geometry.items()}
    touching = _refused(replace(description, geometry=hulls), q)
    out = {}
    for rule in RULES:
        chosen = {link: fitted_link(choose(found[link], rule), link) for link in description.geometry}
        refused = _refused(_with_its_exemptions(replace(description, geometry=chosen)), q)
        out[rule] = Refusals(poses, int(refused.sum()), int((refused & ~touching).sum()))
    return out


def _with_its_exemptions(description: RobotDescription) -> RobotDescription:
    known = {frozenset((pair.link_a, pair.link_b)) for pair in description.disabled_pairs}
    more = [pair for pair in exempt_pairs(description) if frozenset((pair.link_a, pair.link_b)) not in known]
    return replace(description, disabled_pairs=(*description.disabled_pairs, *more))


def _refused(description: RobotDescription, q: torch.Tensor) -> NDArray[np.bool_]:
    return ~CollisionChecker(build_model(description), len(q)).check(q, world=False).clear.numpy()
