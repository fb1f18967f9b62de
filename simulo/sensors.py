"""Sensors of a scene: declared in `build`, read after it."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from simulo.indexing import EnvIds
from simulo.pose import Pose


class DepthSource(Protocol):
    """What a backend gives a depth camera: an image of each environment asked for."""

    def render(self, camera: DepthCamera, env_ids: EnvIds | None) -> Tensor: ...


class _Unattached:
    def render(self, camera: DepthCamera, env_ids: EnvIds | None) -> Tensor:
        raise RuntimeError(
            f"camera {camera.name!r} is not attached to a simulation yet: read it in on_start or later, not in build"
        )


class DepthCamera:
    """A pinhole depth camera that stands still in the environment and sees visual geometry. Needs no display.

    pose: of the optical frame (x right, y down, z forward) in the environment's frame; see `look_at`.
    width, height [pixels]. fovy [rad]: vertical field of view. rate [Hz]: how often a perception loop should read it.
    """

    def __init__(self, pose: Pose, width: int = 160, height: int = 120, fovy: float = 1.0, rate: float = 10.0):
        if width < 1 or height < 1:
            raise ValueError(f"a depth camera needs at least one pixel, got {width} x {height}")
        if not 0.0 < fovy < np.pi:
            raise ValueError(f"fovy is in radians, between 0 and pi, got {fovy}")
        if not rate > 0.0:
            raise ValueError(f"rate is in Hz and must be > 0, got {rate}")
        self.pose = pose
        self.width = int(width)
        self.height = int(height)
        self.fovy = float(fovy)
        self.rate = float(rate)
        self.name = ""
        self._source: DepthSource = _Unattached()

    @property
    def focal_length(self) -> float:
        """[pixels], the same along both axes: pixels are square."""
        return 0.5 * self.height / np.tan(0.5 * self.fovy)

    @cached_property
    def rays(self) -> NDArray[np.float32]:
        """Per pixel, the direction in the optical frame with z = 1, shape (height, width, 3): point = depth * ray."""
        columns = (np.arange(self.width) + 0.5 - 0.5 * self.width) / self.focal_length
        rows = (np.arange(self.height) + 0.5 - 0.5 * self.height) / self.focal_length
        x, y = np.meshgrid(columns, rows)
        rays = np.stack([x, y, np.ones_like(x)], axis=-1).astype(np.float32)
        rays.setflags(write=False)
        return rays

    def attach(self, source: DepthSource) -> None:
        """Called once by the environment that builds the scene."""
        if not isinstance(self._source, _Unattached):
            raise RuntimeError(f"camera {self.name!r} already belongs to an environment; declare a new one in build")
        self._source = source

    def depth(self, env_ids: EnvIds | None = None) -> Tensor:
        """Depth along the optical axis [m], inf where nothing is hit; float32, (M, height, width) for M env_ids."""
        return self._source.render(self, env_ids)


def look_at(eye: ArrayLike, target: ArrayLike, up: ArrayLike = (0.0, 0.0, 1.0)) -> Pose:
    """Pose of an optical frame (x right, y down, z forward) at `eye` [m] that looks at `target` [m]."""
    origin = np.asarray(eye, dtype=np.float64)
    forward = np.asarray(target, dtype=np.float64) - origin
    right = np.cross(forward, np.asarray(up, dtype=np.float64))
    if np.linalg.norm(forward) < 1e-9 or np.linalg.norm(right) < 1e-9 * np.linalg.norm(forward):
        raise ValueError("look_at needs eye and target apart, and up not along the line between them")
    forward /= np.linalg.norm(forward)
    right /= np.linalg.norm(right)
    matrix = np.eye(4)
    matrix[:3, :3] = np.stack([right, np.cross(forward, right), forward], axis=1)
    matrix[:3, 3] = origin
    return Pose.from_matrix(matrix)
