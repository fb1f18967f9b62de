"""Props: the things of a scene that are not robots, declared in `build`, live after it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from simulo.indexing import EnvIds, resolve_env_ids
from simulo.pose import Pose, Vector, checked_pose
from simulo.tensors import real_tensor


@dataclass(frozen=True)
class Box:
    """size [m]: full edges."""

    size: Vector


@dataclass(frozen=True)
class Sphere:
    """radius [m]."""

    radius: float


@dataclass(frozen=True)
class Cylinder:
    """radius, height [m]: height along z, end to end."""

    radius: float
    height: float


@dataclass(frozen=True)
class Capsule:
    """radius, length [m]: length of the straight part along z, so the whole is length + 2 radius."""

    radius: float
    length: float


@dataclass(frozen=True)
class Hull:
    """The convex hull of vertices [m], shape (V, 3), in the prop's frame."""

    vertices: NDArray[np.float64] = field(repr=False)


Shape = Box | Sphere | Cylinder | Capsule | Hull


class PropBodies(Protocol):
    """One prop's bodies in every environment, as a backend gives them."""

    num_envs: int
    device: torch.device

    def poses(self) -> Tensor: ...

    def velocities(self) -> Tensor: ...

    def present(self) -> Tensor: ...

    def write_poses(self, poses: Tensor, env_ids: Tensor) -> None: ...

    def write_present(self, present: bool, env_ids: Tensor) -> None: ...


class PropState:
    """What a prop is doing, read from the simulator. Tensors are copies: they do not change under the reader."""

    def __init__(self, bodies: PropBodies):
        self._bodies = bodies

    @property
    def pose(self) -> Tensor:
        """Pose of the prop in its environment's frame: position [m], then quaternion wxyz; shape (num_envs, 7)."""
        return self._bodies.poses()

    @property
    def velocity(self) -> Tensor:
        """Linear [m/s], then angular [rad/s] velocity in the environment's frame, shape (num_envs, 6)."""
        return self._bodies.velocities()

    @property
    def present(self) -> Tensor:
        """Whether the prop is in each environment at all (see `Prop.park`), bool, shape (num_envs,)."""
        return self._bodies.present()


class _Unattached:
    """Stands in for the bodies of a prop that no environment has built yet."""

    def __getattr__(self, name: str):
        raise RuntimeError(
            "this prop is not attached to a simulation yet: read and move it in on_start or later, not in build"
        )


class Prop:
    """A rigid object of one convex shape.

    shape: in the prop's frame, whose origin is the shape's centre. pose: where it starts in the environment's frame.
    fixed: not moved by physics. mass [kg] is needed unless fixed. friction: sliding [-], torsional [m], rolling [m].
    rgba: colour, 0 to 1.
    """

    def __init__(
        self,
        shape: Shape,
        pose: Pose | None = None,
        mass: float | None = None,
        fixed: bool = False,
        friction: tuple[float, float, float] = (1.0, 0.005, 0.0001),
        rgba: tuple[float, float, float, float] = (0.6, 0.6, 0.6, 1.0),
    ):
        if fixed and mass is not None:
            raise ValueError("a fixed prop has no mass: give mass or fixed=True, not both")
        if not fixed and (mass is None or not math.isfinite(mass) or mass <= 0):
            raise ValueError(f"a prop that moves needs a mass > 0 in kg, got {mass!r}; pass mass=..., or fixed=True")
        if len(friction) != 3 or not all(math.isfinite(f) and f >= 0 for f in friction):
            raise ValueError(f"friction must be three numbers >= 0 (sliding, torsional, rolling), got {friction!r}")
        if len(rgba) != 4 or not all(0.0 <= channel <= 1.0 for channel in rgba):
            raise ValueError(f"rgba must be four numbers from 0 to 1, got {rgba!r}")
        self.shape = shape
        self.initial_pose = checked_pose(pose, "Prop(pose=...)")
        self.mass = mass
        self.fixed = fixed
        self.friction = friction
        self.rgba = rgba
        self.name = ""
        self._bodies: PropBodies = _Unattached()  # type: ignore[assignment]

    @staticmethod
    def box(size: Vector, **options) -> Prop:
        """size [m]: full edges, not half."""
        return Prop(Box(_lengths("size", size, 3)), **options)

    @staticmethod
    def sphere(radius: float, **options) -> Prop:
        return Prop(Sphere(*_lengths("radius", [radius], 1)), **options)

    @staticmethod
    def cylinder(radius: float, height: float, **options) -> Prop:
        """height [m]: end to end, along z."""
        return Prop(Cylinder(*_lengths("radius, height", [radius, height], 2)), **options)

    @staticmethod
    def capsule(radius: float, length: float, **options) -> Prop:
        """length [m]: of the straight part along z."""
        return Prop(Capsule(*_lengths("radius, length", [radius, length], 2)), **options)

    @staticmethod
    def hull(vertices: ArrayLike, **options) -> Prop:
        """The convex hull of vertices [m], shape (V, 3): at least four that are not in one plane."""
        points = np.array(vertices, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4 or not np.isfinite(points).all():
            raise ValueError(f"hull vertices must be finite, shape (V >= 4, 3), got shape {points.shape}")
        if np.linalg.svd(points - points.mean(axis=0), compute_uv=False)[2] < 1e-6:
            raise ValueError("hull vertices lie in one plane and enclose nothing")
        points.setflags(write=False)
        return Prop(Hull(points), **options)

    @property
    def is_attached(self) -> bool:
        return not isinstance(self._bodies, _Unattached)

    @property
    def state(self) -> PropState:
        """Raises RuntimeError, when read, before the environment is built."""
        return PropState(self._bodies)

    def attach(self, bodies: PropBodies) -> None:
        """Called once by the environment that builds the scene."""
        if self.is_attached:
            raise RuntimeError(f"prop {self.name!r} already belongs to an environment; declare a new one in build")
        self._bodies = bodies

    def set_pose(self, pose: Pose | Tensor | ArrayLike, env_ids: EnvIds | None = None) -> None:
        """Teleport the prop, at rest; one that was parked comes back.

        pose: a Pose, or position [m] and quaternion wxyz in the environment's frame, (7,) or (M, 7) for M env_ids.
        """
        ids = resolve_env_ids(env_ids, self._bodies.num_envs)
        values = _pose_rows(pose)
        if values.ndim == 2 and len(values) != len(ids):
            raise ValueError(f"pose has {len(values)} rows for {len(ids)} environments")
        if not torch.isfinite(values).all():
            raise ValueError(f"prop {self.name!r}: a pose to set is not finite")
        norms = values[..., 3:].norm(dim=-1, keepdim=True)
        if (norms < 1e-6).any():
            raise ValueError(f"prop {self.name!r}: a quaternion to set is zero; the identity is (1, 0, 0, 0)")
        rows = torch.cat([values[..., :3], values[..., 3:] / norms], dim=-1).expand(len(ids), 7)
        self._bodies.write_poses(rows, ids)
        self._bodies.write_present(True, ids)

    def park(self, env_ids: EnvIds | None = None) -> None:
        """Take the prop out of these environments, far below the scene and weightless, until `set_pose` or a reset."""
        self._bodies.write_present(False, resolve_env_ids(env_ids, self._bodies.num_envs))

    def reset(self, env_ids: EnvIds | None = None) -> None:
        """Back to the declared pose, at rest."""
        self.set_pose(self.initial_pose, env_ids)


def _pose_rows(pose: Pose | Tensor | ArrayLike) -> Tensor:
    if isinstance(pose, Pose):
        return torch.tensor([*pose.position, *pose.orientation_wxyz], dtype=torch.float64)
    values = real_tensor(pose, "a pose")
    if values.ndim not in (1, 2) or values.shape[-1] != 7:
        raise ValueError(f"a pose must have shape (7,) or (M, 7): position, quaternion wxyz; got {tuple(values.shape)}")
    return values.to(device="cpu", dtype=torch.float64)


def _lengths(what: str, values: ArrayLike, count: int) -> tuple:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (count,) or not np.isfinite(numbers).all() or (numbers <= 0).any():
        raise ValueError(f"{what} must be {count} finite lengths > 0 in metres, got {values!r}")
    return tuple(float(v) for v in numbers)
