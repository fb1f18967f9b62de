"""Poses and maps for tests."""

from __future__ import annotations

import numpy as np
import torch
from scipy.spatial.transform import Rotation

from simulo.collision import VoxelGrid

IDENTITY = Rotation.identity()


def pose(position, rotation: Rotation = IDENTITY) -> list[float]:
    """Position [m] and wxyz."""
    x, y, z, w = rotation.as_quat()
    return [*map(float, position), w, x, y, z]


def poses(count: int, position=(0.0, 0.0, 0.0), rotation: Rotation = IDENTITY) -> torch.Tensor:
    return torch.tensor([pose(position, rotation)] * count, dtype=torch.float32)


def grid(cells, cell: float, position, rotation: Rotation = IDENTITY, unknown=None) -> VoxelGrid:
    """A map of bool cells (N, nx, ny, nz), every environment's lattice at one pose."""
    occupied = torch.as_tensor(np.asarray(cells))
    at = poses(len(occupied), position, rotation)
    hidden = None if unknown is None else torch.as_tensor(np.asarray(unknown))
    return VoxelGrid.from_cells(occupied, cell, at[:, :3], at[:, 3:], hidden)
