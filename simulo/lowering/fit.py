"""A link's meshes to its certified geometry: one hull, slabs, a decomposition, or primitives around it."""

from __future__ import annotations

import numpy as np
import trimesh
from numpy.typing import NDArray

from simulo.description.cuts import UNCUT
from simulo.description.files import LinkCut
from simulo.description.schema import ConvexPiece, LinkGeometry
from simulo.errors import LoweringError
from simulo.lowering.decompose import decompose
from simulo.lowering.model import triangles_of
from simulo.lowering.pieces import HEADROOM, ball_piece, fit_piece
from simulo.lowering.primitives import Candidate, Solid
from simulo.lowering.slabs import split_points
from simulo.lowering.solids import points_around, stand_out, standing_out

_ROUNDED = 1e-8  # m: of the headroom, what numbers on the grid may take
_SEAM = 1e-4  # m: of the headroom, what tells apart on which side of a seam a part of a triangle lies


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
