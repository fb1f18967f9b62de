"""A link's meshes to its certified geometry: one hull, slabs, a decomposition, or primitives around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import trimesh
from numpy.typing import NDArray

from simulo.description.files import FitChoice, RobotFile
from simulo.description.schema import ConvexPiece, LinkGeometry
from simulo.errors import LoweringError
from simulo.lowering.decompose import decompose
from simulo.lowering.model import triangles_of
from simulo.lowering.pieces import HEADROOM, ball_piece, fit_piece
from simulo.lowering.primitives import Candidate, Solid
from simulo.lowering.slabs import split_points
from simulo.lowering.solids import points_around, stand_out, standing_out


@dataclass(frozen=True)
class LinkCut:
    """How a link is cut: into `slabs` across its longest axis, or into `pieces` by planes in any direction; 1: not.
    fit: what is put around it instead."""

    slabs: int = 1
    pieces: int = 1
    fit: FitChoice | None = None


UNCUT = LinkCut()
_ROUNDED = 1e-8  # m: of the headroom, what numbers on the grid may take
_SEAM = 1e-4  # m: of the headroom, what tells apart on which side of a seam a part of a triangle lies
ALL_LINKS = "all"
"""Stands, among the links to fit primitives around, for every link that nothing else is said of."""


@dataclass(frozen=True)
class Asked:
    """What a command line asks of links, over robot.yaml's own: slabs, pieces and primitives by link."""

    tight_links: Mapping[str, int] = field(default_factory=dict)
    decompose: Mapping[str, int] = field(default_factory=dict)
    fitted_links: Mapping[str, FitChoice] = field(default_factory=dict)


def merged_cuts(robot: RobotFile, asked: Asked, links: Collection[str], where: str) -> dict[str, LinkCut]:
    """robot.yaml's cuts with the asked for ones over them, by link. links: those with geometry.

    Raises LoweringError for a link that is to be cut in two ways, or that has no geometry.
    """
    own, over = (_cuts(source, where) for source in (robot, asked))
    everywhere = over.pop(ALL_LINKS, None) if ALL_LINKS not in links else None
    cuts = own | ({} if everywhere is None else dict.fromkeys(links, everywhere)) | over
    for link in cuts:
        if link not in links:
            raise LoweringError(f"{where}: {link!r} has no geometry in the model; links: {', '.join(links)}")
    return cuts


def _cuts(source: RobotFile | Asked, where: str) -> dict[str, LinkCut]:
    ways = (
        {link: LinkCut(slabs=count) for link, count in source.tight_links.items()},
        {link: LinkCut(pieces=count) for link, count in source.decompose.items()},
        {link: LinkCut(fit=choice) for link, choice in source.fitted_links.items()},
    )
    named = Counter(link for way in ways for link in way)
    for link, count in named.items():
        if count > 1:
            raise LoweringError(
                f"{where}: link {link!r} is to be cut in {count} ways; give it one of --tight-link, --decompose and "
                "--fit (tight_links, decompose and fitted_links in robot.yaml)"
            )
    return ways[0] | ways[1] | ways[2]


def fitted_link(candidate: Candidate, link: str, mesh: trimesh.Trimesh | None = None) -> LinkGeometry:
    """The candidate as certified pieces, under one hull of them all. mesh: proven to lie in them.

    Raises LoweringError where a vertex is not HEADROOM deep in a piece, or a triangle not (all but) that deep in them.
    """
    label = f"link {link!r}"
    pieces = tuple(_piece(solid, label) for solid in candidate.solids)
    if mesh is not None:
        vertices = np.asarray(mesh.vertices, dtype=np.float64)
        room = -float(np.min([stand_out(vertices, piece) for piece in pieces], axis=0).max())
        out = len(standing_out(triangles_of(mesh), pieces, HEADROOM - _SEAM))
        if room < HEADROOM - _ROUNDED or out:
            raise LoweringError(
                f"{label}: its {candidate.kind} leaves a vertex {room * 1e3:.6f} mm of headroom and {out} triangles "
                "too little; report this mesh"
            )
    if len(pieces) == 1:
        return LinkGeometry(link, pieces, pieces[0])
    return LinkGeometry(link, pieces, fit_piece(np.concatenate([points_around(piece) for piece in pieces]), label))


def _piece(solid: Solid, label: str) -> ConvexPiece:
    if solid.radius == 0.0:
        return fit_piece(solid.vertices, label)
    round_one = np.array_equal(solid.vertices[0], solid.vertices[-1])
    return ball_piece(solid.vertices[:1] if round_one else solid.vertices, solid.radius)


def fit_link(link: str, mesh: trimesh.Trimesh, cut: LinkCut = UNCUT) -> LinkGeometry:
    """The link's own hull and, where it is cut, the certified pieces under it."""
    label = f"link {link!r}"
    if cut.pieces > 1:
        vertices, faces = np.asarray(mesh.vertices, dtype=np.float64), np.asarray(mesh.faces, dtype=np.int64)
        return geometry_of(link, mesh, [cell.points for cell in decompose(vertices, faces, cut.pieces, label)])
    return geometry_of(link, mesh, split_points(mesh, cut.slabs, label))


def geometry_of(link: str, mesh: trimesh.Trimesh, parts: list[NDArray[np.float64]]) -> LinkGeometry:
    """A certified piece for each set of points, under one hull of the mesh and them all."""
    label = f"link {link!r}"
    pieces = tuple(fit_piece(points, label) for points in parts)
    if len(pieces) == 1:
        return LinkGeometry(link, pieces, pieces[0])
    everything = np.concatenate([np.asarray(mesh.vertices), *(piece.vertices for piece in pieces)])
    return LinkGeometry(link, pieces, fit_piece(everything, label))
