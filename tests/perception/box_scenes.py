"""Depth images and distances of boxes, in float64 NumPy: the truth that the perception tests compare with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from simulo.perception import Intrinsics
from simulo.pose import Pose

CAMERA = Intrinsics.from_fovy(160, 120, np.radians(58.0))


@dataclass(frozen=True)
class Box:
    """Centre and full edges [m]; axis-aligned."""

    centre: tuple[float, float, float]
    size: tuple[float, float, float]

    @property
    def low(self) -> np.ndarray:
        return np.asarray(self.centre) - 0.5 * np.asarray(self.size)

    @property
    def high(self) -> np.ndarray:
        return np.asarray(self.centre) + 0.5 * np.asarray(self.size)


def look(eye: tuple[float, float, float], at: tuple[float, float, float]) -> Pose:
    """Optical frame (x right, y down, z forward) at `eye`, looking at `at`."""
    forward = np.asarray(at, float) - np.asarray(eye, float)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    matrix = np.eye(4)
    matrix[:3, :3] = np.column_stack([right, np.cross(forward, right), forward])
    matrix[:3, 3] = eye
    return Pose.from_matrix(matrix)


def rays(pose: Pose, camera: Intrinsics = CAMERA) -> np.ndarray:
    """Ray directions of unit z depth in the environment frame, shape (height, width, 3)."""
    v, u = np.mgrid[0 : camera.height, 0 : camera.width].astype(float)
    return np.stack([(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, np.ones_like(u)], -1) @ pose.rotation.T


def depth_of(boxes: list[Box], pose: Pose, camera: Intrinsics = CAMERA) -> np.ndarray:
    """z depth [m] of the nearest box along each pixel's ray (slab method), infinite where none is hit."""
    directions = rays(pose, camera)
    depth = np.full(directions.shape[:2], np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for box in boxes:
            to_low = (box.low - np.asarray(pose.position)) / directions
            to_high = (box.high - np.asarray(pose.position)) / directions
            enter = np.minimum(to_low, to_high).max(-1)
            leave = np.maximum(to_low, to_high).min(-1)
            depth = np.where((enter <= leave) & (enter > 0), np.minimum(depth, enter), depth)
    return depth


def frame(boxes: list[Box], poses: list[Pose], num_envs: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Depth (num_envs, views, H, W) and camera poses (num_envs, views, 7), the same in every environment."""
    depth = np.stack([depth_of(boxes, pose) for pose in poses]).astype(np.float32)
    camera_poses = np.array([[*pose.position, *pose.orientation_wxyz] for pose in poses], dtype=np.float32)
    return torch.tensor(depth).repeat(num_envs, 1, 1, 1), torch.tensor(camera_poses).repeat(num_envs, 1, 1)


def surface_distance(points: np.ndarray, boxes: list[Box]) -> np.ndarray:
    """Distance [m] of each point, shape (P, 3), to the nearest box surface, from outside or inside."""
    best = np.full(len(points), np.inf)
    for box in boxes:
        offset = np.abs(points - np.asarray(box.centre)) - 0.5 * np.asarray(box.size)
        outside = np.linalg.norm(np.maximum(offset, 0.0), axis=1)
        best = np.minimum(best, np.where(outside > 0, outside, -offset.max(1)))
    return best


def cells_of(bricks: torch.Tensor) -> np.ndarray:
    """Booleans, shape (4 bx, 4 by, 4 bz), of one environment's packed cells, decoded bit by bit."""
    words = bricks.cpu().numpy().view(np.uint64)
    bx, by, bz = words.shape
    out = np.zeros((4 * bx, 4 * by, 4 * bz), dtype=bool)
    for bit in range(64):
        x, y, z = bit // 16, bit // 4 % 4, bit % 4
        out[x::4, y::4, z::4] = (words >> np.uint64(bit)) & np.uint64(1) == 1
    return out
