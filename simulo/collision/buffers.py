"""The checker's memory: every array the kernels touch, planned once. Torch owns it, Warp views it."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import warp as wp
from numpy.typing import NDArray

from simulo.collision.clearance_maps import ClearanceMaps
from simulo.collision.kernels.types import (
    LANES,
    Bodies,
    Clearance,
    Findings,
    Grid,
    Near,
    Pairs,
    Payloads,
    Pieces,
    Poses,
    Primitives,
    Query,
    Reach,
    Regions,
    Tree,
    frame34,
    pose7,
)
from simulo.collision.kernels.verdict import Verdicts
from simulo.collision.kernels.voxels import column_kernel, unknown_kernel
from simulo.collision.model import CollisionModel
from simulo.collision.raw_verdict import VERDICT_ROWS

_FLOAT_ROWS = ("distance", "between")
# Entries of the settings tensor.
COUNT, ROWS, DISTANCES, NUM_PAIRS, NUM_BODIES, ASK_WORLD, NUM_PLAIN_PAIRS, NUM_SETTINGS = range(8)


def view(tensor: torch.Tensor, dtype: Any = None) -> Any:
    """A Warp array over a torch tensor's memory."""
    return wp.from_torch(tensor, dtype=dtype) if dtype is not None else wp.from_torch(tensor)


def torch_stream(device: torch.device) -> AbstractContextManager[Any]:
    """Warp's work goes where torch's goes: torch fills the inputs and reads the answer, and nobody else orders the two.
    Nothing to do on the CPU."""
    if device.type == "cpu":
        return nullcontext()
    return wp.ScopedStream(wp.stream_from_torch(torch.cuda.current_stream(device)))


def unit_poses(*shape: int, device: torch.device) -> torch.Tensor:
    """Poses (*shape, 7) at the origin: position [m], wxyz."""
    return torch.tensor([0.0, 0, 0, 1, 0, 0, 0], device=device).repeat(*shape, 1)


@dataclass(frozen=True)
class Sizes:
    """What the memory is planned for."""

    num_envs: int
    horizon: int
    payloads_per_gripper: int
    max_primitives: int

    @property
    def num_configurations(self) -> int:
        return self.num_envs * self.horizon

    @property
    def num_blocks(self) -> int:
        """Of LANES configurations."""
        return -(-self.num_configurations // LANES)


@dataclass(frozen=True)
class QueryBuffers:
    """Torch side of `kernels.types.Query`, and of the verdicts. Fields have its shapes.

    start (N, dof) [rad or m]: where each environment's way to its first row begins. verdicts (rows of VERDICT_ROWS, N).
    answer: the memory of verdicts, of start, and of q's first N rows, one after the other: a snapshot is one copy.
    """

    settings: torch.Tensor
    env: torch.Tensor
    q: torch.Tensor
    base_pose: torch.Tensor
    measured: torch.Tensor
    measured_active: torch.Tensor
    map_status: torch.Tensor
    start: torch.Tensor
    margins: torch.Tensor
    pairs: torch.Tensor
    bodies: torch.Tensor
    slot_asked: torch.Tensor
    link_asked: torch.Tensor
    expected_pairs: torch.Tensor
    verdicts: torch.Tensor
    answer: torch.Tensor

    @staticmethod
    def plan(model: CollisionModel, sizes: Sizes, device: torch.device) -> QueryBuffers:
        n, hands = sizes.num_envs, len(model.grippers)
        on = {"device": device}
        shapes = (len(VERDICT_ROWS), n), (n, model.num_joints), (sizes.num_configurations, model.num_joints)
        counts = [math.prod(shape) for shape in shapes]
        memory = torch.zeros(sum(counts), dtype=torch.int32, **on)
        verdicts, start, q = (part.view(shape) for part, shape in zip(memory.split(counts), shapes, strict=True))
        return QueryBuffers(
            settings=torch.zeros(NUM_SETTINGS, dtype=torch.int32, **on),
            env=torch.arange(n, dtype=torch.int32, **on),
            q=q.view(torch.float32),
            base_pose=unit_poses(n, device=device),
            # A column more than there are hands, so that no array is ever empty.
            measured=torch.zeros(n, hands + 1, **on),
            measured_active=torch.zeros(n, hands + 1, dtype=torch.uint8, **on),
            map_status=torch.zeros(n, dtype=torch.int8, **on),
            start=start.view(torch.float32),
            margins=torch.zeros(n, 2, **on),
            pairs=torch.zeros(len(model.pair_arrays.pair), dtype=torch.int32, **on),
            bodies=torch.zeros(len(model.bodies.body), dtype=torch.int32, **on),
            slot_asked=torch.zeros(max(hands * sizes.payloads_per_gripper, 1), dtype=torch.uint8, **on),
            link_asked=torch.zeros(len(model.link_names), dtype=torch.uint8, **on),
            expected_pairs=torch.zeros(2 << hands, dtype=torch.int32, **on),
            verdicts=verdicts,
            answer=memory[: sum(counts[:2]) + n * model.num_joints],
        )

    def as_query(self) -> Query:
        out = Query()
        out.count = view(self.settings[COUNT : COUNT + 1])
        out.rows = view(self.settings[ROWS : ROWS + 1])
        out.distances = view(self.settings[DISTANCES : DISTANCES + 1])
        out.num_asked = view(self.settings[NUM_PAIRS : NUM_PLAIN_PAIRS + 1])
        out.env, out.q = view(self.env), view(self.q)
        out.base_pose = view(self.base_pose, pose7)
        out.measured, out.measured_active = view(self.measured), view(self.measured_active)
        out.map_status, out.margins = view(self.map_status), view(self.margins)
        out.pairs, out.bodies = view(self.pairs), view(self.bodies)
        out.slot_asked, out.link_asked = view(self.slot_asked), view(self.link_asked)
        return out

    def as_verdicts(self) -> Verdicts:
        out = Verdicts()
        for i, name in enumerate(VERDICT_ROWS):
            row = self.verdicts[i]
            setattr(out, name, view(row.view(torch.float32) if name in _FLOAT_ROWS else row))
        return out


def _frames(rotation: NDArray[np.floating], position: NDArray[np.floating], device: str) -> wp.array:
    """`kernels.types.frame34` of rotations (K, 3, 3) and positions (K, 3) [m]."""
    # No negative zeros: adding zero would change one.
    return wp.array(np.concatenate([rotation, position[:, :, None]], axis=2) + 0.0, dtype=frame34, device=device)


def upload_tree(model: CollisionModel, device: str) -> Tree:
    edges, out = model.edges, Tree()
    out.ends = wp.array(edges.ends, dtype=wp.vec4i, device=device)
    out.relation = wp.array(edges.relation, dtype=wp.vec2f, device=device)
    turn, shift = np.zeros_like(edges.still), np.zeros_like(edges.origin)
    out.still = _frames(edges.still, edges.origin, device)
    out.cos, out.sin = _frames(edges.cos, shift, device), _frames(edges.sin, shift, device)
    out.slide = _frames(turn, edges.slide, device)
    return out


def upload_bodies(model: CollisionModel, device: str) -> Bodies:
    bodies, out = model.bodies, Bodies()
    contact = {link: g for g, gripper in enumerate(model.grippers) for link in gripper.contact_links}
    regions = np.array([contact.get(model.link_names[link], -1) for link in bodies.link], np.int32)
    out.body = wp.array(bodies.body, dtype=wp.vec4i, device=device)
    out.gate = wp.array(bodies.gate, dtype=wp.int32, device=device)
    out.link = wp.array(bodies.link, dtype=wp.int32, device=device)
    out.region = wp.array(regions, dtype=wp.int32, device=device)
    out.frame = _frames(bodies.rotation, bodies.origin, device)
    return out


def upload_pieces(model: CollisionModel, device: str) -> Pieces:
    out = Pieces()
    out.shape = wp.array(model.bodies.piece_shape, dtype=wp.int32, device=device)
    out.rotation = wp.array(model.bodies.piece_rotation, dtype=wp.mat33f, device=device)
    out.origin = wp.array(model.bodies.piece_origin, dtype=wp.vec3f, device=device)
    return out


def upload_pairs(model: CollisionModel, device: str) -> Pairs:
    arrays, bodies = model.pair_arrays, len(model.bodies.body)
    low, high = np.sort(arrays.pair[:, :2], axis=1).T
    number = np.full((bodies, -(-bodies // 64) * 64), -1, np.int32)
    reaches = np.full(number.shape, -1.0, np.float32)
    plain = arrays.pair[:, 2] == 0
    number[low[plain], high[plain]], reaches[low[plain], high[plain]] = np.flatnonzero(plain), arrays.reach[plain]
    out = Pairs()
    out.number = wp.array(number, dtype=wp.int32, device=device)
    out.reaches = wp.array(reaches, dtype=wp.float32, device=device)
    out.pair = wp.array(model.pair_arrays.pair, dtype=wp.vec3i, device=device)
    out.reach = wp.array(model.pair_arrays.reach, dtype=wp.float32, device=device)
    return out


def upload_clearance(maps: ClearanceMaps, device: str) -> Clearance:
    out = Clearance()
    out.head = wp.array(maps.head, dtype=wp.vec4i, device=device)
    out.place = wp.array(maps.place, dtype=wp.vec4f, device=device)
    # Never empty: a kernel argument of no elements has no address to check in debug mode.
    out.cells = wp.array(np.append(maps.cells, np.uint8(0)), dtype=wp.uint8, device=device)
    return out


def plan_poses(model: CollisionModel, sizes: Sizes, device: str) -> Poses:
    m, blocks = sizes.num_configurations, sizes.num_blocks
    columns = model.num_joints + len(model.grippers) + 1  # one more, as in QueryBuffers
    out = Poses()
    out.finite = wp.zeros(blocks * LANES, dtype=wp.int32, device=device)
    out.active = wp.zeros(blocks * LANES, dtype=wp.int32, device=device)
    out.base = wp.zeros(m, dtype=wp.mat33f, device=device)
    out.primitive_position = wp.zeros((m, sizes.max_primitives), dtype=wp.vec3f, device=device)
    out.columns = wp.zeros((blocks, columns, LANES), dtype=wp.float32, device=device)
    lanes = 1 if m == 1 and device == "cpu" else LANES
    out.links = wp.zeros((blocks, len(model.posed_links), 12, lanes), dtype=wp.float32, device=device)
    out.hulls = wp.zeros((blocks, len(model.bodies.body), 12, lanes), dtype=wp.float32, device=device)
    return out


def plan_near(model: CollisionModel, sizes: Sizes, device: str) -> Near:
    blocks, out = sizes.num_blocks, Near()
    words = -(-len(model.pair_arrays.pair) // 32)
    out.pairs = wp.zeros((blocks, words, LANES), dtype=wp.uint32, device=device)
    out.num = wp.zeros(blocks * LANES, dtype=wp.int32, device=device)
    out.asked = wp.zeros(blocks * LANES, dtype=wp.int32, device=device)
    out.above = wp.zeros(blocks * LANES, dtype=wp.float32, device=device)
    out.lower = wp.zeros(blocks * LANES, dtype=wp.float32, device=device)
    return out


def plan_reach(model: CollisionModel, sizes: Sizes, device: str) -> Reach:
    m, blocks = sizes.num_configurations, sizes.num_blocks
    words, out = -(-len(model.bodies.body) // 32), Reach()
    out.bodies = wp.zeros((m, words), dtype=wp.uint32, device=device)
    out.unknown, out.outside, out.going = (wp.zeros(m, dtype=wp.int32, device=device) for _ in range(3))
    out.lattice = wp.zeros((blocks, 12, LANES), dtype=wp.float32, device=device)
    out.pads = wp.zeros((blocks, 2, LANES), dtype=wp.float32, device=device)
    out.windows = wp.zeros((blocks, 13, LANES), dtype=wp.int32, device=device)
    out.clearance = wp.zeros(blocks * LANES, dtype=wp.float32, device=device)
    return out


def plan_findings(sizes: Sizes, device: str) -> Findings:
    out = Findings()
    for name in ("hit", "party_a", "party_b", "exact", "cleared", "asked", "capped", "unknown", "outside"):
        setattr(out, name, wp.zeros(sizes.num_configurations, dtype=wp.int32, device=device))
    out.lower = wp.zeros(sizes.num_configurations, dtype=wp.float32, device=device)
    return out


@dataclass(frozen=True)
class WorldBuffers:
    """Torch side of the primitives, payloads and regions; fields as in `kernels.types`, regions' prefixed region_."""

    primitive_shape: torch.Tensor
    primitive_pose: torch.Tensor
    primitive_offset: torch.Tensor
    primitive_count: torch.Tensor
    payload_gripper: torch.Tensor
    payload_shape: torch.Tensor
    payload_link: torch.Tensor
    payload_pose: torch.Tensor
    payload_touch: torch.Tensor
    region_active: torch.Tensor
    region_pose: torch.Tensor
    region_half: torch.Tensor
    region_primitive: torch.Tensor

    @staticmethod
    def plan(model: CollisionModel, sizes: Sizes, device: torch.device) -> WorldBuffers:
        n, k, hands = sizes.num_envs, sizes.max_primitives, len(model.grippers)
        per_hand = sizes.payloads_per_gripper
        slots = max(hands * per_hand, 1)  # never empty: see QueryBuffers
        regions = hands + slots
        on = {"device": device}
        return WorldBuffers(
            primitive_shape=torch.full((n, k), -1, dtype=torch.int32, **on),
            primitive_pose=unit_poses(n, k, device=device),
            primitive_offset=torch.zeros(k, 3, **on),
            primitive_count=torch.zeros(1, dtype=torch.int32, **on),
            payload_gripper=torch.arange(slots, dtype=torch.int32, **on) // max(per_hand, 1),
            payload_shape=torch.full((n, slots), -1, dtype=torch.int32, **on),
            payload_link=torch.zeros(n, slots, dtype=torch.int32, **on),
            payload_pose=unit_poses(n, slots, device=device),
            payload_touch=torch.zeros(n, slots, len(model.link_names) + slots, dtype=torch.uint8, **on),
            region_active=torch.zeros(n, regions, dtype=torch.uint8, **on),
            region_pose=unit_poses(n, regions, device=device),
            region_half=torch.zeros(n, regions, 3, **on),
            region_primitive=torch.full((n, regions), -1, dtype=torch.int32, **on),
        )

    def as_primitives(self) -> Primitives:
        out = Primitives()
        out.shape, out.count = view(self.primitive_shape), view(self.primitive_count)
        out.pose = view(self.primitive_pose, pose7)
        out.offset = view(self.primitive_offset, wp.vec3f)
        return out

    def as_payloads(self, num_hands: int) -> Payloads:
        out = Payloads()
        out.slot_gripper, out.first_region = view(self.payload_gripper), num_hands
        out.shape, out.link = view(self.payload_shape), view(self.payload_link)
        out.pose = view(self.payload_pose, pose7)
        out.touch = view(self.payload_touch)
        return out

    def as_regions(self) -> Regions:
        out = Regions()
        out.active, out.primitive = view(self.region_active), view(self.region_primitive)
        out.pose = view(self.region_pose, pose7)
        out.half = view(self.region_half, wp.vec3f)
        return out


@dataclass(frozen=True)
class GridBuffers:
    """Torch side of the map, planned anew whenever its brick counts change."""

    brick_counts: tuple[int, int, int]
    bricks: torch.Tensor
    columns: torch.Tensor
    unknown_before: torch.Tensor
    flags: torch.Tensor
    counts: torch.Tensor
    cell: torch.Tensor
    pose: torch.Tensor

    @staticmethod
    def plan(
        num_envs: int, brick_counts: tuple[int, int, int], with_unknown: bool, device: torch.device
    ) -> GridBuffers:
        on, words = {"device": device}, int(np.prod(brick_counts))
        num_columns, column_words = brick_counts[0] * brick_counts[1], -(-brick_counts[2] // 64)
        corners = [count + 1 for count in brick_counts] if with_unknown else [1, 1, 1]
        return GridBuffers(
            brick_counts=brick_counts,
            bricks=torch.zeros(num_envs, words, dtype=torch.int64, **on),
            columns=torch.zeros(num_envs, num_columns * column_words, dtype=torch.int64, **on),
            unknown_before=torch.zeros(num_envs, *corners, dtype=torch.int32, **on),
            flags=torch.zeros(2, dtype=torch.int32, **on),  # present, has_unknown
            counts=torch.tensor([brick_counts], dtype=torch.int32, **on),
            cell=torch.ones(1, 2, **on),
            pose=unit_poses(num_envs, device=device),
        )

    @property
    def planned_unknown(self) -> bool:
        return self.unknown_before.shape[1] > 1

    def mark_columns(self) -> None:
        """Bring `columns` up to date with `bricks`."""
        x, y, z = self.brick_counts
        inputs = [wp.vec3i(x, y, z), view(self.bricks, wp.uint64), view(self.columns, wp.uint64)]
        threads = (self.bricks.shape[0], x * y, -(-z // 64))
        with torch_stream(self.bricks.device):
            wp.launch(column_kernel, threads, inputs=inputs, device=str(self.bricks.device))

    def count_unknown(self, unknown: torch.Tensor) -> None:
        """Bring `unknown_before` up to date with bricks of unknown cells, shape of `bricks`."""
        inputs = [wp.vec3i(*self.brick_counts), view(unknown, wp.uint64), view(self.unknown_before)]
        with torch_stream(self.bricks.device):
            wp.launch(unknown_kernel, unknown.shape, inputs=inputs, device=str(self.bricks.device))
        for axis in (1, 2, 3):
            self.unknown_before.cumsum_(axis)

    def as_grid(self, cell_shape: int) -> Grid:
        out = Grid()
        out.present, out.has_unknown = view(self.flags[0:1]), view(self.flags[1:2])
        out.columns = view(self.columns, wp.uint64)
        out.bricks, out.unknown_before = view(self.bricks, wp.uint64), view(self.unknown_before)
        out.counts, out.cell = view(self.counts, wp.vec3i), view(self.cell, wp.vec2f)
        out.pose = view(self.pose, pose7)
        out.cell_shape = cell_shape
        return out
