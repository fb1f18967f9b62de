"""A link's meshes to its certified geometry: one piece, slabs, or a decomposition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import trimesh
from numpy.typing import NDArray

from simulo.description.files import RobotFile
from simulo.description.schema import LinkGeometry
from simulo.errors import LoweringError
from simulo.lowering.decompose import decompose
from simulo.lowering.pieces import fit_piece
from simulo.lowering.slabs import split_points


@dataclass(frozen=True)
class LinkCut:
    """How a link is cut: into `slabs` across its longest axis, or into `pieces` by planes in any direction; 1: not."""

    slabs: int = 1
    pieces: int = 1


UNCUT = LinkCut()


def merged_cuts(
    robot: RobotFile, tight_links: Mapping[str, int], decomposed: Mapping[str, int], where: str
) -> dict[str, LinkCut]:
    """robot.yaml's cuts with the asked for ones over them, by link. Raises LoweringError for a link cut both ways."""
    twice = (set(tight_links) & set(decomposed)) | (set(robot.tight_links) & set(robot.decompose))
    if twice:
        raise LoweringError(
            f"{where}: link {min(twice)!r} is to be cut into slabs and decomposed; give it one of --tight-link and "
            "--decompose (tight_links and decompose in robot.yaml)"
        )
    slabs = {link: LinkCut(slabs=count) for link, count in robot.tight_links.items()}
    pieces = {link: LinkCut(pieces=count) for link, count in robot.decompose.items()}
    slabs_over = {link: LinkCut(slabs=count) for link, count in tight_links.items()}
    return slabs | pieces | slabs_over | {link: LinkCut(pieces=count) for link, count in decomposed.items()}


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
