"""Triangles of a link's shapes: mesh files, checked, and primitives, each circumscribed so that nothing is lost."""

from __future__ import annotations

import warnings
import zlib
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import trimesh
from numpy.typing import ArrayLike, NDArray

from simulo.errors import LoweringError

FLATNESS = 1e-6
"""[m] A mesh thinner than this has no volume to certify."""

SUSPICIOUS_SIZE = 10.0
"""[m] A wider mesh is more likely in millimetres."""

# What trimesh's readers raise on damaged files, whatever the format.
_UNREADABLE = (ValueError, OSError, LookupError, TypeError, NotImplementedError, ImportError, BadZipFile, zlib.error)

_SIDES = 64
_SPHERE_SUBDIVISIONS = 3


def load_mesh(path: Path, scale: ArrayLike, owner: str) -> trimesh.Trimesh:
    """The file's own vertices in float64, scaled [m], before placement. owner: names link and shape in errors.

    Raises LoweringError when the file is missing, unreadable, empty, flat or holds a number that is not finite.
    """
    if not path.is_file():
        raise LoweringError(f"{owner}: mesh file {path} does not exist; restore it, or correct the path in the model")
    try:
        scene = trimesh.load_scene(str(path), process=False, skip_materials=True)
        meshes = [mesh for mesh in scene.dump() if isinstance(mesh, trimesh.Trimesh)]
    except _UNREADABLE as error:
        raise LoweringError(
            f"{owner}: mesh file {path} cannot be read ({error}); export it again as STL or OBJ"
        ) from error
    if not meshes or sum(len(mesh.faces) for mesh in meshes) == 0:
        raise LoweringError(f"{owner}: mesh file {path} is empty; remove the shape or export it again")
    if not all(_is_well_formed(mesh) for mesh in meshes):
        raise LoweringError(f"{owner}: mesh file {path} has a triangle without a corner in space; export it again")
    vertices = np.concatenate([np.asarray(mesh.vertices, dtype=np.float64) for mesh in meshes])
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = np.concatenate([np.asarray(mesh.faces) + start for mesh, start in zip(meshes, starts[:-1], strict=True)])
    vertices = vertices * np.asarray(scale, dtype=np.float64)
    if np.prod(np.asarray(scale, dtype=np.float64)) < 0.0:  # a mirrored triangle turns its back; turn it round
        faces = faces[:, ::-1]
    refuse_bad_vertices(vertices, f"{owner}: mesh file {path}")
    if np.ptp(vertices, axis=0).max() > SUSPICIOUS_SIZE:
        warnings.warn(
            f"{owner}: mesh file {path} is over {SUSPICIOUS_SIZE:g} m wide; is its scale right?", stacklevel=2
        )
    return _merged(vertices, faces)


def _is_well_formed(mesh: trimesh.Trimesh) -> bool:
    """A damaged file may give vertices of two coordinates, or triangles of vertices that it has not got."""
    faces = np.asarray(mesh.faces)
    return mesh.vertices.shape[1:] == (3,) and bool(((faces >= 0) & (faces < len(mesh.vertices))).all())


def refuse_bad_vertices(vertices: NDArray[np.float64], label: str) -> None:
    """Raise LoweringError for vertices that are not finite, or that all lie in one plane."""
    if not np.isfinite(vertices).all():
        row = int(np.flatnonzero(~np.isfinite(vertices).all(axis=1))[0])
        raise LoweringError(f"{label} has a vertex that is not finite (number {row}); repair the mesh")
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
