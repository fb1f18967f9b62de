"""The cells that a shape fills."""

from __future__ import annotations

import torch
import warp as wp

from simulo.collision.pool import pack_shape, pack_shapes
from simulo.collision.shapes import ConvexShape
from simulo.perception import solid_kernels as kernels
from simulo.perception.grid_kernels import Lattice
from simulo.perception.kernel_types import to_transforms
from simulo.rotations import rotate


def filled_cells(
    shape: ConvexShape, lattice_poses: torch.Tensor, cell: float, bricks: tuple[int, int, int], tolerance: float = 0.0
) -> torch.Tensor:
    """Bricks, int64, shape (M, bx, by, bz), of the cells whose cube comes within `tolerance` [m] of a shape.

    lattice_poses: the shape's frame in the frame of the map's corner, position [m] and wxyz, shape (M, 7).
    """
    device = str(lattice_poses.device)
    packed = pack_shape(shape, table=False)
    pool = pack_shapes([packed, pack_shape(ConvexShape.box((cell, cell, cell)))]).upload(device)
    lattice = Lattice()
    lattice.cell = cell
    lattice.bx, lattice.by, lattice.bz = bricks
    shifted = lattice_poses.clone().to(torch.float32)
    offset = torch.tensor(packed.offset, device=shifted.device).expand(len(shifted), 3)
    shifted[:, :3] += rotate(shifted[:, 3:], offset)
    out = torch.zeros((len(shifted), *bricks), dtype=torch.int64, device=shifted.device)
    poses = wp.from_torch(to_transforms(shifted), dtype=wp.transformf)
    mask = wp.from_torch(out.view(len(shifted), -1), dtype=wp.uint64)
    inputs = [lattice, pool, float(tolerance), poses, mask]
    wp.launch(kernels.fill_kernel, dim=mask.shape, inputs=inputs, device=device)
    return out
