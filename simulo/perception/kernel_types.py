"""The kernels' form of settings and tensors."""

from __future__ import annotations

import numpy as np
import torch
import warp as wp

from simulo.perception import grid_kernels as kernels
from simulo.perception.spec import Evidence, GridSpec, Intrinsics
from simulo.pose import wxyz_to_xyzw


def kernel_intrinsics(intrinsics: Intrinsics) -> kernels.Intrinsics:
    out = kernels.Intrinsics()
    out.fx, out.fy, out.cx, out.cy = intrinsics.fx, intrinsics.fy, intrinsics.cx, intrinsics.cy
    out.width, out.height = intrinsics.width, intrinsics.height
    return out


def kernel_lattice(grid: GridSpec) -> kernels.Lattice:
    out = kernels.Lattice()
    out.cell = grid.cell
    out.bx, out.by, out.bz = grid.bricks
    inverse = grid.corner.inverse()
    out.from_env = wp.transform(wp.vec3(*inverse.position), wp.quat(*wxyz_to_xyzw(np.array(inverse.orientation_wxyz))))
    return out


def kernel_rule(evidence: Evidence) -> kernels.EvidenceRule:
    out = kernels.EvidenceRule()
    out.hit, out.miss, out.occupied = evidence.hit, evidence.miss, evidence.occupied
    out.floor, out.ceiling = evidence.floor, evidence.ceiling
    return out


def to_transforms(poses: torch.Tensor) -> torch.Tensor:
    """Poses (position, wxyz), shape (..., 7), in Warp's order (position, xyzw), float32 and contiguous."""
    return poses.to(torch.float32)[..., [0, 1, 2, 4, 5, 6, 3]].contiguous()


def env_array(env_ids: torch.Tensor, device: str) -> wp.array:
    """Environment indices as the kernels take them, int32."""
    return wp.from_torch(env_ids.to(device, torch.int32).contiguous(), dtype=wp.int32)
