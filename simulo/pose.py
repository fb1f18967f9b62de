"""Rigid poses, and the only quaternion conversions in the project.

Quaternions are wxyz everywhere in simulo's API. The xyzw order that Warp and Isaac use exists only at those
edges, through `wxyz_to_xyzw` and `xyzw_to_wxyz`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


@dataclass(frozen=True)
class Pose:
    """A rigid transform from a child frame to a parent frame.

    position [m], shape (3,): the child's origin in the parent frame.
    orientation_wxyz, shape (4,): unit quaternion; normalised here, refused when zero or not finite.
    """

    position: Vector = (0.0, 0.0, 0.0)
    orientation_wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        position = np.asarray(self.position, dtype=np.float64)
        quaternion = np.asarray(self.orientation_wxyz, dtype=np.float64)
        if position.shape != (3,) or not np.isfinite(position).all():
            raise ValueError(f"Pose.position must be three finite numbers in metres, got {self.position!r}")
        if quaternion.shape != (4,) or not np.isfinite(quaternion).all():
            raise ValueError(
                f"Pose.orientation_wxyz must be four finite numbers (w, x, y, z), got {self.orientation_wxyz!r}"
            )
        norm = float(np.linalg.norm(quaternion))
        if norm < 1e-9:
            raise ValueError("Pose.orientation_wxyz is zero and names no rotation; the identity is (1, 0, 0, 0)")
        if abs(norm - 1.0) > 1e-15:
            quaternion = quaternion / norm
        object.__setattr__(self, "position", tuple(float(v) for v in position))
        object.__setattr__(self, "orientation_wxyz", tuple(float(v) for v in quaternion))

    @staticmethod
    def identity() -> Pose:
        return Pose()

    @staticmethod
    def from_rpy(xyz: ArrayLike, rpy: ArrayLike) -> Pose:
        """Pose from a URDF origin: xyz [m] and fixed-axis roll, pitch, yaw [rad] (R = Rz(yaw) Ry(pitch) Rx(roll))."""
        halves = [0.5 * float(angle) for angle in np.asarray(rpy, dtype=np.float64)]
        (cr, sr), (cp, sp), (cy, sy) = ((math.cos(half), math.sin(half)) for half in halves)
        quaternion = (
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        )
        x, y, z = (float(v) for v in np.asarray(xyz, dtype=np.float64))
        return Pose((x, y, z), quaternion)

    @staticmethod
    def from_matrix(matrix: ArrayLike) -> Pose:
        """Pose from a homogeneous transform, shape (4, 4)."""
        m = np.asarray(matrix, dtype=np.float64)
        return Pose(tuple(m[:3, 3]), tuple(matrix_to_wxyz(m[:3, :3])))

    @property
    def rotation(self) -> NDArray[np.float64]:
        """Rotation matrix, shape (3, 3)."""
        return wxyz_to_matrix(np.asarray(self.orientation_wxyz))

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Homogeneous transform, shape (4, 4)."""
        out = np.eye(4)
        out[:3, :3] = self.rotation
        out[:3, 3] = self.position
        return out

    def __matmul__(self, other: Pose) -> Pose:
        """`pose_a_b @ pose_b_c` is `pose_a_c`."""
        position = self.rotation @ np.asarray(other.position) + np.asarray(self.position)
        return Pose(tuple(position), tuple(multiply_wxyz(self.orientation_wxyz, other.orientation_wxyz)))

    def inverse(self) -> Pose:
        w, x, y, z = self.orientation_wxyz
        return Pose(tuple(-self.rotation.T @ np.asarray(self.position)), (w, -x, -y, -z))

    def apply(self, points: ArrayLike) -> NDArray[np.float64]:
        """Points [m], shape (..., 3), taken from the child frame to the parent frame."""
        return np.asarray(points, dtype=np.float64) @ self.rotation.T + np.asarray(self.position)


def checked_pose(pose: Pose | None, what: str) -> Pose:
    """The pose itself, or the identity where none was given. Raises TypeError for what is no Pose."""
    if not isinstance(pose, Pose | None):
        raise TypeError(f"{what} takes a simulo.Pose, got {pose!r}; write Pose(position=(x, y, z))")
    return Pose() if pose is None else pose


def wxyz_to_xyzw(quaternion: NDArray) -> NDArray:
    """Reorder quaternions, shape (..., 4), for Warp and Isaac."""
    return np.roll(np.asarray(quaternion), -1, axis=-1)


def xyzw_to_wxyz(quaternion: NDArray) -> NDArray:
    """Reorder quaternions, shape (..., 4), from Warp and Isaac."""
    return np.roll(np.asarray(quaternion), 1, axis=-1)


def multiply_wxyz(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Hamilton product of two quaternions, shape (..., 4) each."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a, dtype=np.float64), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b, dtype=np.float64), -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def wxyz_to_matrix(quaternion: ArrayLike) -> NDArray[np.float64]:
    """Rotation matrices, shape (..., 3, 3), of unit quaternions, shape (..., 4)."""
    w, x, y, z = np.moveaxis(np.asarray(quaternion, dtype=np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def matrix_to_wxyz(rotation: ArrayLike) -> NDArray[np.float64]:
    """Unit quaternion, shape (4,), w >= 0, of one rotation matrix, shape (3, 3) (Shepperd 1978)."""
    m = np.asarray(rotation, dtype=np.float64)
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    diagonal = np.array([trace, m[0, 0], m[1, 1], m[2, 2]])
    largest = int(np.argmax(diagonal))
    if largest == 0:
        q = np.array([1 + trace, m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])
    elif largest == 1:
        q = np.array([m[2, 1] - m[1, 2], 1 + m[0, 0] - m[1, 1] - m[2, 2], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]])
    elif largest == 2:
        q = np.array([m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], 1 - m[0, 0] + m[1, 1] - m[2, 2], m[1, 2] + m[2, 1]])
    else:
        q = np.array([m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], 1 - m[0, 0] - m[1, 1] + m[2, 2]])
    q = q / np.linalg.norm(q)
    return q if q[0] >= 0 else -q
