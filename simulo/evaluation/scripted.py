"""What a scripted policy is made of: joint paths along Cartesian poses, a learned policy's noise, word to the gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from simulo.controllers.chain import Chain, chain_to
from simulo.description import RobotDescription
from simulo.pose import Pose
from simulo.rotations import conjugate, multiply, rotate

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ArmPath:
    """Joint paths of one arm whose hand follows Cartesian poses.

    chain: from the robot's root to the grasp point, with the hand's axes. limits [rad or m], shape (n, 2).
    """

    chain: Chain
    limits: Array

    @staticmethod
    def to_grasp(description: RobotDescription, gripper: str) -> ArmPath:
        """The arm that carries a gripper. Raises ValueError when no joint, or a mimic joint, is on the way."""
        hand = description.gripper(gripper)
        chain = chain_to(description, hand.hand_link, Pose(hand.grasp_frame.position), torch.device("cpu"))
        joints = [description.joints[column] for column in chain.columns]
        return ArmPath(chain, np.array([(joint.lower, joint.upper) for joint in joints]))

    @property
    def columns(self) -> tuple[int, ...]:
        """Of the arm's joints in `description.joints`."""
        return self.chain.columns

    def forward(self, q: Array) -> tuple[Array, Array]:
        """Pose of the grasp point in the root frame, shape (T, 4, 4), and its Jacobian, (T, 6, n), for q, (T, n)."""
        rotation, position, jacobian = self.chain.pose_and_jacobian(torch.from_numpy(q))
        pose = np.tile(np.eye(4), (len(q), 1, 1))
        pose[:, :3, :3], pose[:, :3, 3] = rotation.numpy(), position.numpy()
        return pose, jacobian.numpy()

    def solve(self, poses: Array, posture: Array, room: float = 0.02) -> tuple[Array, Array]:
        """Joint positions, shape (T, n), that put the grasp point at `poses`, shape (T, 4, 4).

        Damped least squares from `posture`, shape (n,), for all poses at once; what freedom is left is pulled back to
        it, so that neighbouring poses get neighbouring answers. Stays `room` [rad or m] inside the limits. Every
        eighth pose is solved so, and those between from their neighbours' answers.
        Also returns the remaining error, shape (T,): the larger of metres and radians.
        """
        knots = np.unique([*range(0, len(poses), 8), len(poses) - 1])
        q = np.tile(posture, (len(knots), 1))
        for _ in range(32):
            q = self._improved(q, poses[knots], room, pull=0.1 * (posture - q))
        q = np.stack([np.interp(np.arange(len(poses)), knots, column) for column in q.T], axis=1)
        for _ in range(4):
            q = self._improved(q, poses, room, pull=np.zeros_like(q))
        error = pose_error(self.forward(q)[0], poses)
        return q, np.maximum(np.linalg.norm(error[:, :3], axis=1), np.linalg.norm(error[:, 3:], axis=1))

    def _improved(self, q: Array, poses: Array, room: float, pull: Array) -> Array:
        """One step towards the poses, and along `pull` as far as that does not move the hand."""
        now, jacobian = self.forward(q)
        inverse = damped_inverse(jacobian)
        slack = pull - (inverse @ (jacobian @ pull[..., None]))[..., 0]
        step = (inverse @ pose_error(now, poses).clip(-0.2, 0.2)[..., None])[..., 0] + slack
        return np.clip(q + step, self.limits[:, 0] + room, self.limits[:, 1] - room)

    def disturb(self, q: Array, twist: Array) -> Array:
        """Joint positions q, shape (T, n), displaced so that the grasp point moves by small twists [m, rad], (T, 6)."""
        moved = q + (damped_inverse(self.forward(q)[1]) @ twist[..., None])[..., 0]
        return np.clip(moved, self.limits[:, 0], self.limits[:, 1])


def damped_inverse(jacobian: Array, damping: float = 1e-4) -> Array:
    """J^T (J J^T + damping I)^-1, shape (..., n, 6) (Wampler 1986)."""
    transposed = np.swapaxes(jacobian, -1, -2)
    solved = np.linalg.solve(jacobian @ transposed + damping * np.eye(6), jacobian)
    return np.swapaxes(solved, -1, -2).astype(np.float64, copy=False)


def pose_error(now: Array, wanted: Array) -> Array:
    """Twist [m, rad] from one pose to another in the root frame, shape (..., 6)."""
    turn = wanted[..., :3, :3] @ np.swapaxes(now[..., :3, :3], -1, -2)
    vector = 0.5 * np.stack(
        [turn[..., 2, 1] - turn[..., 1, 2], turn[..., 0, 2] - turn[..., 2, 0], turn[..., 1, 0] - turn[..., 0, 1]],
        axis=-1,
    )
    sine = np.linalg.norm(vector, axis=-1, keepdims=True)
    cosine = 0.5 * (np.trace(turn, axis1=-2, axis2=-1)[..., None] - 1.0)
    small = sine < 1e-9
    scale = np.where(small, 1.0, np.arctan2(sine, cosine) / np.where(small, 1.0, sine))
    return np.concatenate([wanted[..., :3, 3] - now[..., :3, 3], vector * scale], axis=-1)


def pointing_down(position: ArrayLike, yaw: ArrayLike) -> Array:
    """Poses of a hand whose own -z points to the ground, shape (..., 4, 4). yaw [rad]: of its x axis."""
    place, angle = np.asarray(position, dtype=np.float64), np.asarray(yaw, dtype=np.float64)
    out = np.zeros((*angle.shape, 4, 4))
    out[..., 0, 0] = out[..., 1, 1] = np.cos(angle)
    out[..., 1, 0] = np.sin(angle)
    out[..., 0, 1] = -np.sin(angle)
    out[..., 2, 2] = out[..., 3, 3] = 1.0
    out[..., :3, 3] = place
    return out


def ease(steps: int) -> Array:
    """Progress 0 to 1, end included and start not, at rest at both ends (minimum jerk), shape (steps,)."""
    s = np.linspace(0.0, 1.0, steps + 1)[1:]
    return s**3 * (10.0 - 15.0 * s + 6.0 * s * s)


class Route:
    """Waypoints of a hand that points down, taken to one pose, gripper command and phase per step of `dt` [s].

    It begins open at a position [m] and a yaw [rad] in the robot's base frame.
    """

    def __init__(self, position: Array, yaw: float, dt: float):
        self.dt = dt
        self.position, self.yaw = position, yaw
        self.positions: list[Array] = [position]
        self.yaws: list[float] = [yaw]
        self.grips: list[float] = [-1.0]
        self.phases: list[str] = ["start"]

    def go(self, phase: str, position: Array, yaw: float, grip: float, speed: float) -> None:
        """Along a straight line at a mean speed [m/s], at rest at both ends."""
        seconds = max(float(np.linalg.norm(position - self.position)) / speed, abs(yaw - self.yaw) / 1.2, 0.1)
        for s in ease(int(np.ceil(seconds / self.dt))):
            self._add(phase, self.position + s * (position - self.position), self.yaw + s * (yaw - self.yaw), grip)
        self.position, self.yaw = position, yaw

    def wait(self, phase: str, grip: float, seconds: float) -> None:
        for _ in range(round(seconds / self.dt)):
            self._add(phase, self.position, self.yaw, grip)

    def _add(self, phase: str, position: Array, yaw: float, grip: float) -> None:
        self.positions.append(position)
        self.yaws.append(yaw)
        self.grips.append(grip)
        self.phases.append(phase)

    @property
    def poses(self) -> Array:
        """Of the grasp point in the robot's base frame, shape (T, 4, 4)."""
        return pointing_down(np.array(self.positions), np.array(self.yaws))


def seen_from(frame: Tensor, pose: Tensor) -> Tensor:
    """Poses, position [m] and wxyz, shape (N, 7), in the frames at `frame`, both given in one common frame."""
    back = conjugate(frame[:, 3:])
    return torch.cat([rotate(back, pose[:, :3] - frame[:, :3]), multiply(back, pose[:, 3:])], dim=1)


def displacement(before: Tensor, after: Tensor, reach: float) -> Tensor:
    """How far [m], at most, points within `reach` [m] of a body's origin lie apart in two poses of it, shape (N, 7)."""
    half_chord = multiply(conjugate(before[:, 3:]), after[:, 3:])[:, 1:].norm(dim=1)
    return (after[:, :3] - before[:, :3]).norm(dim=1) + 2.0 * reach * half_chord


@runtime_checkable
class TakesDeclarations(Protocol):
    """A gate that wants to know what a hand is about to touch, holds and sets down, as `simulo.CollisionGate` does."""

    def declare_grasp(
        self, hand: str, pose: Any, size: Any, duration: float, object: Any = None, env_ids: Any = None
    ) -> None: ...

    def attach(
        self,
        hand: str,
        shape: Any,
        pose: Any,
        support: Any = None,
        env_ids: Any = None,
        touch_links: Sequence[str] = (),
        object: Any = "",
    ) -> None: ...

    def detach(self, hand: str, env_ids: Any = None) -> None: ...

    def declare_place(self, region: Any, duration: float, hand: str | None = None, env_ids: Any = None) -> None: ...


@dataclass(frozen=True)
class PolicyNoise:
    """How far a learned policy's hand strays from where a perfect one would be: standard deviations per axis.

    position [m], rotation [rad]: correlated over `correlation_time` [s] (Ornstein-Uhlenbeck).
    jitter [m]: white, on top.
    """

    position: float = 0.003
    rotation: float = float(np.deg2rad(2.0))
    jitter: float = 0.001
    correlation_time: float = 0.2

    def sample(self, steps: int, dt: float, rng: np.random.Generator) -> Array:
        """Twists [m, rad], shape (steps, 6), starting on the path: the first step is undisturbed."""
        keep = np.exp(-dt / self.correlation_time)
        spread = np.repeat([self.position, self.rotation], 3)
        kicks = rng.standard_normal((steps, 6)) * spread * np.sqrt(1.0 - keep * keep)
        white = rng.standard_normal((steps, 3)) * self.jitter
        out = np.zeros((steps, 6))
        for step in range(1, steps):
            out[step] = keep * out[step - 1] + kicks[step]
        out[1:, :3] += white[1:]
        return out
