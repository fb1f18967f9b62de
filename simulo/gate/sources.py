"""From what a user hands to `CollisionGate.set_world` to a world."""

from __future__ import annotations

import torch
from torch import Tensor

from simulo.collision import Primitives, VoxelGrid
from simulo.errors import GateError
from simulo.gate.primitives import PrimitiveWorld
from simulo.gate.settings import GateSettings
from simulo.gate.world import GridWorld, PerceivedWorld, World
from simulo.perception import DeploySimPerception

_EARLY = 1e-6  # s: a stamp may be rounded to later than now


def as_world(
    given: VoxelGrid | Primitives | DeploySimPerception, settings: GateSettings, now: Tensor, stamp: Tensor | None
) -> World:
    """now [s], float64, shape (num_envs,). stamp: when it was seen, in place of now; primitives without one never age.

    Raises GateError when it is not the kind of world that the gate was made for, or has other environments.
    """
    if not isinstance(given, (VoxelGrid, Primitives, DeploySimPerception)):
        raise GateError(
            f"set_world takes a VoxelGrid, Primitives or a perception, got {type(given).__name__}; a gate that is to "
            "check the robot alone is made with world='none'"
        )
    kind = "primitives" if isinstance(given, Primitives) else "voxels"
    if settings.world != kind:
        raise GateError(f"this gate was made with world={settings.world!r} and takes no {kind}; make another gate")
    if stamp is not None and not isinstance(stamp, Tensor):
        raise GateError(f"stamp must be a tensor of shape {tuple(now.shape)} in seconds, got {type(stamp).__name__}")
    count = _num_envs(given)
    if count != len(now):
        raise GateError(f"the world has {count} environments, the gate {len(now)}")
    if stamp is not None and stamp.shape != now.shape:
        raise GateError(f"stamp must have shape {tuple(now.shape)}, got {tuple(stamp.shape)}")
    if stamp is not None and not stamp.is_floating_point():
        raise GateError(f"stamp must hold floats, seconds, got {stamp.dtype}")
    if stamp is not None and torch.isnan(stamp).any():
        raise GateError("stamp holds NaN, and a map of unknown age may not pass for fresh; -inf means never seen")
    if stamp is not None and bool((stamp.to(now) > now + _EARLY).any()):
        raise GateError(
            f"stamp {float(stamp.max()):g} s is later than now, {float(now.max()):g} s, and no age; stamps are in the "
            "environment's time (make the gate with max_age=inf for a map that never changes)"
        )
    unknown_occupied = settings.unknown == "occupied"
    if isinstance(given, DeploySimPerception):
        return PerceivedWorld(given, unknown_occupied)
    seen = now if stamp is None else stamp.to(now, copy=True)
    if isinstance(given, VoxelGrid):
        return GridWorld(given, seen, unknown_occupied)
    return PrimitiveWorld(given, torch.full_like(now, torch.inf) if stamp is None else seen)


def _num_envs(given: VoxelGrid | Primitives | DeploySimPerception) -> int:
    if isinstance(given, Primitives):
        return len(given.pose)
    return given.num_envs if isinstance(given, VoxelGrid) else given.mapper.num_envs
