"""What primitives the fitter offers for each link of a robot, and what each rule would choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import trimesh

from simulo.lowering.primitives import RULES, Candidate, Rule, candidates, choose


@dataclass(frozen=True)
class RuleTotals:
    """A rule over a whole robot. volume_ratio: mean over the links; protrusions [m]: the largest, and the mean of the
    links' means. kinds: how many links get which kind."""

    volume_ratio: float
    largest_protrusion: float
    mean_protrusion: float
    solids: int
    kinds: Mapping[str, int]


def link_candidates(mesh: trimesh.Trimesh) -> tuple[Candidate, ...]:
    """The candidates of one link's mesh, as `primitives.candidates` gives them."""
    return candidates(np.asarray(mesh.vertices, dtype=np.float64), np.asarray(mesh.faces, dtype=np.int64))


def totals(found: Mapping[str, tuple[Candidate, ...]]) -> dict[Rule, RuleTotals]:
    """Every rule side by side over the links' candidates."""
    out = {}
    for rule in RULES:
        chosen = [choose(of_link, rule) for of_link in found.values()]
        kinds = [candidate.kind for candidate in chosen]
        out[rule] = RuleTotals(
            volume_ratio=float(np.mean([c.volume_ratio for c in chosen])),
            largest_protrusion=max(c.largest_protrusion for c in chosen),
            mean_protrusion=float(np.mean([c.mean_protrusion for c in chosen])),
            solids=sum(len(c.solids) for c in chosen),
            kinds={kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        )
    return out
