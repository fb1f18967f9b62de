"""What differs between the committed collision.json and the one that the lowering gives now."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from simulo.description.files import CollisionFile, DisabledPairEntry, GeometryEntry
from simulo.description.load import to_piece
from simulo.description.schema import ConvexPiece
from simulo.lowering.sampling import on_triangles, thinned
from simulo.lowering.solids import points_within, stand_out

_WHOLE = ("source", "links", "joints", "mimic_joints", "fixed_attachments", "bare_links", "srdf_sha256", "asked_cuts")

_SAMPLES_ACROSS = 60
_LAYERS = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Where a piece is sampled: on its surface, on smaller copies of it about its middle, and there."""


def differences(committed: CollisionFile, lowered: CollisionFile) -> list[str]:
    """One sentence per part that differs; geometry says whether the committed one is looser, and by how much."""
    found = [f"{part} differ" for part in _WHOLE if getattr(committed, part) != getattr(lowered, part)]
    found += _exemptions(committed.exempt_pairs, lowered.exempt_pairs)
    for kind in ("geometry", "swept"):
        old, new = getattr(committed, kind), getattr(lowered, kind)
        found += [f"{kind} of {name} is missing" for name in new if name not in old]
        found += [f"{kind} of {name} should not be there" for name in old if name not in new]
        found += [_geometry_difference(f"{kind} of {n}", old[n], new[n]) for n in new if n in old and old[n] != new[n]]
    return found


def _exemptions(committed: Sequence[DisabledPairEntry], lowered: Sequence[DisabledPairEntry]) -> list[str]:
    """A row too many is a pair that nobody checks."""
    old, new = ({frozenset(row.links): row for row in rows} for rows in (committed, lowered))
    found = [f"looser: {_row(old[pair])} is exempt and should be checked" for pair in old if pair not in new]
    found += [f"{_row(new[pair])} should be exempt" for pair in new if pair not in old]
    found += [f"{_row(new[pair])}: another reason" for pair in new if pair in old and old[pair] != new[pair]]
    return found or (["exempt_pairs are in another order"] if committed != lowered else [])


def _row(row: DisabledPairEntry) -> str:
    return f"pair {row.links[0]}, {row.links[1]} ({row.reason})"


def _geometry_difference(label: str, committed: GeometryEntry, lowered: GeometryEntry) -> str:
    """Compared as unions of pieces: one that grew does not make up for a gap between two others."""
    old, new = ([to_piece(piece) for piece in entry.pieces] for entry in (committed, lowered))
    lost, gained = uncovered_by(old, new), uncovered_by(new, old)
    verdict = "looser: the" if lost > 0.0 else "the"
    return (
        f"{label} differs; {verdict} committed pieces cover {lost * 1e3:.6f} mm less and {gained * 1e3:.6f} mm more, "
        f"{len(old)} pieces against {len(new)}"
    )


def uncovered_by(cover: Sequence[ConvexPiece], pieces: Sequence[ConvexPiece]) -> float:
    """How far [m] the pieces stand out of the union of `cover`. 0: nowhere.

    A piece that lies in one of the cover's is proven to. Any other is sampled, at its corners, on its surface and
    inside, and the figure is that of the sample furthest out of the cover piece that is nearest to it.
    """
    worst = 0.0
    for piece in pieces:
        if min(float(stand_out(piece.vertices, one).max()) + piece.radius for one in cover) <= 0.0:
            continue
        samples = _samples(points_within(piece))
        out = np.min([stand_out(samples, one) for one in cover], axis=0)
        worst = max(worst, float(out.max()))
    return worst


def _samples(vertices: NDArray[np.float64]) -> NDArray[np.float64]:
    spacing = float(np.linalg.norm(np.ptp(vertices, axis=0))) / _SAMPLES_ACROSS
    surface = thinned(on_triangles(vertices[ConvexHull(vertices).simplices], spacing), spacing)
    middle = vertices.mean(axis=0)
    return np.concatenate([vertices, *(middle + share * (surface - middle) for share in _LAYERS)])
