"""Shaded pictures of a scene by ray casting, without a display: solids, and what is checked drawn through over them."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from simulo.evaluation.picture_kernels import cast
from simulo.pose import Pose

Array = NDArray[np.float64]
Colour = tuple[float, float, float]
BACKGROUND = (0.965, 0.968, 0.975)
_LIGHT = np.array([0.35, -0.5, 0.8]) / np.linalg.norm([0.35, -0.5, 0.8])


@dataclass(frozen=True)
class Surface:
    """Triangles [m], shape (F, 3, 3), of one colour, red green blue from 0 to 1."""

    triangles: Array
    colour: Colour


@dataclass(frozen=True)
class View:
    """A pinhole camera: pose of the optical frame (x right, y down, z forward), fovy [rad], size [pixels]."""

    pose: Pose
    fovy: float
    width: int = 640
    height: int = 480

    def rays(self) -> Array:
        """Unit directions in the scene's frame, shape (height * width, 3)."""
        focal = 0.5 * self.height / np.tan(0.5 * self.fovy)
        u, v = np.meshgrid(np.arange(self.width) + 0.5 - self.width / 2, np.arange(self.height) + 0.5 - self.height / 2)
        directions = np.stack([u / focal, v / focal, np.ones_like(u)], axis=-1).reshape(-1, 3) @ self.pose.rotation.T
        return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def render(solids: list[Surface], overlay: list[Surface], view: View) -> NDArray[np.uint8]:
    """An image, shape (height, width, 3). The overlay is drawn half transparent where it lies in front of the solids,
    and fainter where it lies inside or behind them."""
    rays = view.rays()
    distance, colour = _shaded(solids, view, rays)
    image = np.where(np.isfinite(distance)[:, None], colour, BACKGROUND)
    over_distance, over_colour = _shaded(overlay, view, rays)
    seen = np.isfinite(over_distance)
    weight = np.where(over_distance <= distance + 1e-4, 0.55, 0.18) * seen
    image = (1.0 - weight[:, None]) * image + weight[:, None] * np.where(seen[:, None], over_colour, 0.0)
    return (255.0 * image.clip(0.0, 1.0)).astype(np.uint8).reshape(view.height, view.width, 3)


def png(image: NDArray[np.uint8]) -> bytes:
    """An image as the bytes of a PNG file."""
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    imsave(buffer, image, format="png")
    return buffer.getvalue()


def _shaded(surfaces: list[Surface], view: View, rays: Array) -> tuple[Array, Array]:
    """Distance along each ray, infinite for no hit, and the colour there."""
    if not surfaces:
        return np.full(len(rays), np.inf), np.zeros((len(rays), 3))
    triangles = np.concatenate([surface.triangles for surface in surfaces])
    colours = np.concatenate([np.tile(surface.colour, (len(surface.triangles), 1)) for surface in surfaces])
    mesh = wp.Mesh(
        points=wp.array(triangles.reshape(-1, 3), dtype=wp.vec3, device="cpu"),
        indices=wp.array(np.arange(3 * len(triangles)), dtype=wp.int32, device="cpu"),
    )
    distance = wp.full(len(rays), np.inf, dtype=wp.float32, device="cpu")
    face = wp.full(len(rays), -1, dtype=wp.int32, device="cpu")
    inputs = [mesh.id, wp.vec3(*view.pose.position), wp.array(rays, dtype=wp.vec3, device="cpu")]
    wp.launch(cast, dim=len(rays), inputs=inputs, outputs=[distance, face], device="cpu")
    edges = triangles[:, 1:] - triangles[:, :1]
    normals = np.cross(edges[:, 0], edges[:, 1])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)
    hit: NDArray[np.int32] = face.numpy()  # type: ignore[assignment]
    # Both sides are lit: meshes of real robots do not all wind their triangles one way.
    facing = np.sign(-np.einsum("ij,ij->i", rays, normals[hit]))[:, None] * normals[hit]
    brightness = 0.45 + 0.55 * np.clip(facing @ _LIGHT, 0.0, 1.0)
    return distance.numpy().astype(np.float64), colours[hit] * brightness[:, None]


def box_triangles(size: ArrayLike, pose: Array) -> Array:
    """Triangles of a box of full edges `size` at a homogeneous transform."""
    import trimesh

    return placed(np.asarray(trimesh.creation.box(extents=size).triangles), pose)


def placed(triangles: Array, pose: Array) -> Array:
    """Triangles, shape (F, 3, 3), taken to another frame by a homogeneous transform."""
    return triangles @ pose[:3, :3].T + pose[:3, 3]
