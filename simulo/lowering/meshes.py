"""Triangles of a link's shapes: mesh files, checked, and primitives, each circumscribed so that nothing is lost."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import trimesh
from numpy.typing import ArrayLike, NDArray

from simulo.errors import LoweringError
from simulo.lowering.limits import MAX_LENGTH
from simulo.lowering.meshfiles import read_mesh_file

FLATNESS = 1e-6
"""[m] A mesh thinner than this has no volume to certify."""

SUSPICIOUS_SIZE = 10.0
"""[m] A wider mesh is more likely in millimetres."""

_SIDES = 64
_SPHERE_SUBDIVISIONS = 3


def load_mesh(path: Path, scale: ArrayLike, owner: str) -> trimesh.Trimesh:
    """The file's own vertices in float64, scaled [m], before placement. owner: names file, link and shape in errors.

    Raises LoweringError when the file is missing, unreadable, empty, flat or holds a number that is not finite.
    """
    vertices, faces = read_mesh_file(path, owner)
    factors = np.asarray(scale, dtype=np.float64)
    vertices = vertices * factors
    if np.prod(np.sign(factors)) < 0.0:  # a mirrored triangle turns its back; turn it round
        faces = faces[:, ::-1]
    label = f"{owner}: mesh file {path}"
    refuse_bad_vertices(vertices, label)
    if np.ptp(vertices, axis=0).max() > SUSPICIOUS_SIZE:
        warnings.warn(f"{label} is over {SUSPICIOUS_SIZE:g} m wide; is its scale right?", stacklevel=2)
    return _merged(vertices, faces)


def refuse_bad_vertices(vertices: NDArray[np.float64], label: str) -> None:
    """Raise LoweringError for vertices that are not finite, or that all lie in one plane."""
    if not np.isfinite(vertices).all():
        row = int(np.flatnonzero(~np.isfinite(vertices).all(axis=1))[0])
        raise LoweringError(f"{label} has a vertex that is not finite (number {row}); repair the mesh")
    if np.abs(vertices).max() > MAX_LENGTH:
        raise LoweringError(
            f"{label} reaches {np.abs(vertices).max():.3g} m, over the limit of {MAX_LENGTH:g} m; scale it"
        )
    centred = vertices - vertices.mean(axis=0)
    directions = np.linalg.svd(centred.T @ centred)[0]
    if len(vertices) < 4 or np.ptp(centred @ directions[:, 2]) < FLATNESS:
        raise LoweringError(f"{label} is flat (thinner than {FLATNESS} m); give it a thickness, or remove the shape")


def _merged(vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> trimesh.Trimesh:
    """Identical vertices joined; the set of triangles stays as it is."""
    unique, inverse = np.unique(vertices, axis=0, return_inverse=True)
    return trimesh.Trimesh(unique, inverse.reshape(-1)[faces], process=False)


def box(half: ArrayLike) -> trimesh.Trimesh:
    """Box about the origin with half extents [m]."""
    return trimesh.creation.box(extents=2.0 * np.asarray(half, dtype=np.float64))


def ellipsoid(radii: ArrayLike) -> trimesh.Trimesh:
    """Polyhedron around the ellipsoid with these radii [m] about the origin."""
    sphere = trimesh.creation.icosphere(subdivisions=_SPHERE_SUBDIVISIONS)
    inradius = float(np.einsum("ij,ij->i", sphere.face_normals, sphere.triangles_center).min())
    vertices = np.asarray(sphere.vertices) / inradius * np.asarray(radii, dtype=np.float64)
    return trimesh.Trimesh(vertices, sphere.faces, process=False)


def cylinder(radius: float, half_length: float) -> trimesh.Trimesh:
    """Prism around the cylinder along z about the origin, [m]."""
    outer = radius / np.cos(np.pi / _SIDES)
    return trimesh.creation.cylinder(radius=outer, height=2.0 * half_length, sections=_SIDES)


def capsule(radius: float, half_length: float) -> trimesh.Trimesh:
    """Polyhedron around the capsule along z about the origin; half_length [m] is half the straight part's."""
    ball = np.asarray(ellipsoid([radius] * 3).vertices)
    shift = np.array([0.0, 0.0, half_length])
    return trimesh.convex.convex_hull(np.concatenate([ball + shift, ball - shift]))
