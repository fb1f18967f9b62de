"""Rotations of batches as torch tensors; quaternions are wxyz and of unit length."""

from __future__ import annotations

import torch
from torch import Tensor


def rotate(wxyz: Tensor, vectors: Tensor) -> Tensor:
    """Vectors, shape (..., 3), turned by quaternions, shape (..., 4)."""
    w, axis = wxyz[..., :1], wxyz[..., 1:]
    twice = 2.0 * torch.linalg.cross(axis, vectors, dim=-1)
    return vectors + w * twice + torch.linalg.cross(axis, twice, dim=-1)


def conjugate(wxyz: Tensor) -> Tensor:
    """The inverse rotations, shape (..., 4)."""
    return wxyz * torch.tensor([1.0, -1.0, -1.0, -1.0], dtype=wxyz.dtype, device=wxyz.device)


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """Hamilton products, shape (..., 4): b first, then a."""
    aw, av, bw, bv = a[..., :1], a[..., 1:], b[..., :1], b[..., 1:]
    w = aw * bw - (av * bv).sum(dim=-1, keepdim=True)
    return torch.cat([w, aw * bv + bw * av + torch.linalg.cross(av, bv, dim=-1)], dim=-1)


def to_matrix(wxyz: Tensor) -> Tensor:
    """Rotation matrices, shape (..., 3, 3)."""
    w, x, y, z = wxyz.unbind(dim=-1)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
