"""What differs between the committed collision.json and the one that the lowering gives now."""

from __future__ import annotations

import numpy as np

from simulo.description.files import CollisionFile, GeometryEntry
from simulo.description.load import NANOMETRE
from simulo.lowering.hull import outside_by

_KINEMATICS = ("source", "links", "joints", "mimic_joints", "fixed_attachments", "exempt_pairs", "bare_links")


def differences(committed: CollisionFile, lowered: CollisionFile) -> list[str]:
    """One sentence per part that differs; geometry says whether the committed one is looser, and by how much."""
    found = [f"{part} differ" for part in _KINEMATICS if getattr(committed, part) != getattr(lowered, part)]
    for kind in ("geometry", "swept"):
        old, new = getattr(committed, kind), getattr(lowered, kind)
        found += [f"{kind} of {name} is missing" for name in new if name not in old]
        found += [f"{kind} of {name} should not be there" for name in old if name not in new]
        found += [_geometry_difference(f"{kind} of {n}", old[n], new[n]) for n in new if n in old and old[n] != new[n]]
    return found


def _geometry_difference(label: str, committed: GeometryEntry, lowered: GeometryEntry) -> str:
    """Compared on the links' hulls: pieces that cover less leave a hull that covers less, or are cut elsewhere."""
    old, new = _hull_vertices(committed), _hull_vertices(lowered)
    lost = max(0.0, outside_by(new, old))
    gained = max(0.0, outside_by(old, new))
    pieces = f", {len(committed.pieces)} pieces against {len(lowered.pieces)}"
    return f"{label} differs: the committed hull covers {lost * 1e3:.6f} mm less and {gained * 1e3:.6f} mm more{pieces}"


def _hull_vertices(entry: GeometryEntry) -> np.ndarray:
    return np.array((entry.hull or entry.pieces[0]).vertices_nm, dtype=np.float64) * NANOMETRE
