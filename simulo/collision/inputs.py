"""What the checker is given: refused by name unless it fits, and put the way the kernels want it."""

from __future__ import annotations

import torch

from simulo.errors import CollisionModelError


def refuse_unless(name: str, values: object, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
    """Raise CollisionModelError unless `values` is a tensor of that shape and dtype on that device."""
    if not isinstance(values, torch.Tensor):
        raise CollisionModelError(f"{name} must be a {dtype} tensor of shape {shape}, got {type(values).__name__}")
    if values.shape != shape or values.dtype != dtype or values.device != device:
        raise CollisionModelError(
            f"{name} must be {dtype} of shape {shape} on {device}, "
            f"got {values.dtype} of shape {tuple(values.shape)} on {values.device}"
        )


def as_rows(q: object, joint_names: tuple[str, ...], device: torch.device) -> torch.Tensor:
    """Configurations as (K, rows, dof), a view of q; raises CollisionModelError unless that is possible."""
    if not isinstance(q, torch.Tensor) or q.dtype != torch.float32 or q.device != device:
        got = f"{q.dtype} on {q.device}" if isinstance(q, torch.Tensor) else type(q).__name__
        raise CollisionModelError(f"q must be a float32 tensor on {device}, got {got}")
    dof = len(joint_names)
    if q.dim() not in (2, 3) or q.shape[-1] != dof or 0 in q.shape:
        raise CollisionModelError(
            f"q must be (K, {dof}) or (K, rows, {dof}), K >= 1, columns {', '.join(joint_names)}; got {tuple(q.shape)}"
        )
    return q if q.dim() == 3 else q.unsqueeze(1)


def packed_poses(pose: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """Poses (..., 7) of the packed frames, whose origin lies at `offset` [m], shape (..., 3), in the posed ones."""
    unit = pose[..., 3:] / pose[..., 3:].norm(dim=-1, keepdim=True)
    w, xyz = unit[..., :1], unit[..., 1:]
    shift = offset.expand(xyz.shape)
    turn = 2.0 * torch.linalg.cross(xyz, shift)
    turned = shift + w * turn + torch.linalg.cross(xyz, turn)
    return torch.cat([pose[..., :3] + turned, pose[..., 3:]], dim=-1)
