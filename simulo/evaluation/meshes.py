"""The links' own triangles, read once per process: they are what every verdict is judged by."""

from __future__ import annotations

import trimesh

from simulo.description import RobotDescription
from simulo.lowering import link_meshes

_read: dict[str, dict[str, trimesh.Trimesh]] = {}


def true_meshes(description: RobotDescription) -> dict[str, trimesh.Trimesh]:
    """Collision and visual triangles of each link in the link frame [m]. Not to be written to."""
    if description.digest not in _read:
        _read[description.digest] = link_meshes(description)
    return _read[description.digest]
