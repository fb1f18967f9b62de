"""A link's meshes to its certified geometry: one piece, slabs, or a decomposition."""

from __future__ import annotations

import numpy as np
import trimesh
from numpy.typing import NDArray

from simulo.description.schema import LinkGeometry
from simulo.lowering.decompose import decompose
from simulo.lowering.pieces import fit_piece
from simulo.lowering.slabs import split_points


def fit_link(link: str, mesh: trimesh.Trimesh, slabs: int = 1, pieces: int = 1) -> LinkGeometry:
    """The link's own hull, and under it `slabs` slabs or `pieces` pieces of a decomposition when more than one."""
    label = f"link {link!r}"
    if pieces > 1:
        return geometry_of(link, mesh, [cell.points for cell in decompose(*_arrays(mesh), pieces, label)])
    return geometry_of(link, mesh, split_points(mesh, slabs, label))


def geometry_of(link: str, mesh: trimesh.Trimesh, parts: list[NDArray[np.float64]]) -> LinkGeometry:
    """A certified piece for each set of points, under one hull of the mesh and them all."""
    label = f"link {link!r}"
    pieces = tuple(fit_piece(points, label) for points in parts)
    if len(pieces) == 1:
        return LinkGeometry(link, pieces, pieces[0])
    everything = np.concatenate([np.asarray(mesh.vertices), *(piece.vertices for piece in pieces)])
    return LinkGeometry(link, pieces, fit_piece(everything, label))


def _arrays(mesh: trimesh.Trimesh) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    return np.asarray(mesh.vertices, dtype=np.float64), np.asarray(mesh.faces, dtype=np.int64)
