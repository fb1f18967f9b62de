"""The motion check's memory and launches: what it adds to a checker, which goes without where it is not asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import warp as wp

from simulo.collision.buffers import Sizes, plan_near, plan_poses, view
from simulo.collision.kernels.motion import MAX_LEVEL
from simulo.collision.kernels.types import LANES, Levers, Poses, Way
from simulo.collision.kernels.way import Scene, Ways
from simulo.collision.kinds import Kind
from simulo.collision.model import CollisionModel
from simulo.collision.motion import MotionBounds


class MotionBuffers:
    """Torch and Warp arrays of the motion check of one checker.

    kind (M,): see `kernels.motion.Ways`.
    """

    def __init__(
        self, model: CollisionModel, bounds: MotionBounds, sizes: Sizes, start: torch.Tensor, device: torch.device
    ) -> None:
        """start: of `QueryBuffers`."""
        m, dof, place = sizes.num_configurations, model.num_joints, str(device)
        slots = max(len(model.grippers) * sizes.payloads_per_gripper, 1)
        items = len(bounds.pair) + len(bounds.body) + slots
        self.kind = torch.full((m,), int(Kind.NOT_EVALUATED), dtype=torch.int32, device=device)
        self.levers = _upload(bounds, place)
        self.way = Way()
        self.way.start = view(start)
        blocks, moving = sizes.num_blocks, len(bounds.body) + slots
        self.way.travel = wp.zeros((blocks, dof, LANES), dtype=wp.float32, device=place)
        self.way.moved = wp.zeros((blocks, moving, LANES), dtype=wp.float32, device=place)
        self.way.near = plan_near(model, sizes, place)
        self.way.left = wp.zeros((m, items), dtype=wp.int32, device=place)
        self.way.num = wp.zeros((m, int(MAX_LEVEL) + 2), dtype=wp.int32, device=place)
        self.way.rounding = wp.zeros(m, dtype=wp.float32, device=place)
        self.ways = Ways()
        self.ways.kind = view(self.kind)
        for name in ("party_a", "party_b", "capped"):
            setattr(self.ways, name, wp.zeros(m, dtype=wp.int32, device=place))
        for name in ("between", "lower"):
            setattr(self.ways, name, wp.zeros(m, dtype=wp.float32, device=place))
        self._poses = plan_poses(model, sizes, place)

    def poses(self, configurations: Poses) -> Poses:
        """Room for the poses of middles; what stands still is the configurations' own."""
        out = self._poses
        for name in ("active", "base", "primitive_position"):
            setattr(out, name, getattr(configurations, name))
        return out


def scene_of(parts: Sequence[Any], first_payload: int, first_primitive: int) -> Scene:
    """parts: bodies, pieces, pairs, clearance, shapes, primitives, grid, payloads, regions."""
    out = Scene()
    names = ("bodies", "pieces", "pairs", "clearance", "shapes", "primitives", "grid", "payloads", "regions")
    for name, part in zip(names, parts, strict=True):
        setattr(out, name, part)
    out.first_payload, out.first_primitive = first_payload, first_primitive
    return out


def _upload(bounds: MotionBounds, device: str) -> Levers:
    rows = np.concatenate([bounds.pair, bounds.body])
    row, column = np.nonzero(rows)
    first = np.searchsorted(row, np.arange(len(rows) + 1))
    out = Levers()
    out.first = wp.array(first, dtype=wp.int32, device=device)
    # Never empty: a kernel argument of no elements has no address to check in debug mode.
    out.column = wp.array(np.append(column, 0), dtype=wp.int32, device=device)
    out.lever = wp.array(np.append(rows[row, column], 0.0), dtype=wp.float32, device=device)
    out.num_pairs = len(bounds.pair)
    for name in ("origin", "ball", "origin_to", "ball_to", "low", "high", "always"):
        setattr(out, name, wp.array(getattr(bounds, name), dtype=wp.float32, device=device))
    out.slides = wp.array(bounds.slides.astype(np.uint8), dtype=wp.uint8, device=device)
    out.total = float(rows.sum(1).max())
    return out
