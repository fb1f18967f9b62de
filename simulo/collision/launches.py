"""The stages of a check in order, and the recorded launches that replay them without the cost of launching."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from math import gcd
from typing import Any

import torch
import warp as wp

from simulo.collision.buffers import (
    GridBuffers,
    QueryBuffers,
    Sizes,
    WorldBuffers,
    plan_findings,
    plan_near,
    plan_poses,
    plan_reach,
    torch_stream,
    upload_bodies,
    upload_clearance,
    upload_pairs,
    upload_pieces,
    upload_tree,
    view,
)
from simulo.collision.clearance_maps import ClearanceMaps
from simulo.collision.kernels.fk import fk_kernel
from simulo.collision.kernels.live import closed_kernel, live_kernel
from simulo.collision.kernels.motion import motion_kernel, motion_verdict_kernel
from simulo.collision.kernels.motion_filter import (
    held_way_kernel,
    pair_filter_kernel,
    way_kernel,
    world_filter_kernel,
)
from simulo.collision.kernels.payload_check import payload_kernel
from simulo.collision.kernels.self_at_once import self_at_once_kernel
from simulo.collision.kernels.self_check import near_kernel, self_kernel
from simulo.collision.kernels.types import LANES
from simulo.collision.kernels.verdict import verdict_kernel
from simulo.collision.kernels.world_check import world_kernel
from simulo.collision.kernels.world_reach import reach_kernel
from simulo.collision.library import ShapeLibrary
from simulo.collision.live import LiveRobot
from simulo.collision.model import CollisionModel
from simulo.collision.motion_buffers import MotionBuffers, scene_of
from simulo.collision.parties import PartyCodes

CELL_SLOT = 0  # of the shape library
_CACHED = 128  # configurations whose poses a core's second-level cache holds: some 5 KiB each
_FEW = 128  # configurations for which launches are dear beside the work
SELF_STAGES = ("fk", "near", "self")
MOTION_STAGES = ("way", "held way", "pair filter", "world filter", "motion", "motion verdict")


class Per(Enum):
    """BLOCK: LANES configurations on a CPU, one on a GPU."""

    BLOCK = auto()
    CONFIGURATION = auto()
    ENTRY = auto()


@dataclass(frozen=True)
class Stage:
    """One kernel of a check, and what it has a thread for."""

    kernel: Any
    inputs: tuple[Any, ...]
    per: Per = Per.CONFIGURATION


class Launches:
    """Launches of one checker. `record` must follow every change of what `grid` points at."""

    def __init__(
        self,
        model: CollisionModel,
        sizes: Sizes,
        query: QueryBuffers,
        world: WorldBuffers,
        grid: GridBuffers,
        library: ShapeLibrary,
        device: torch.device,
        split_at: int,
        motion: MotionBuffers | None,
        clearance: ClearanceMaps,
    ) -> None:
        self._motion = motion
        self._sizes, self._device, self._torch_device = sizes, str(device), device
        self._library, self._query_buffers = library, query
        self._tree = upload_tree(model, self._device)
        self._bodies = upload_bodies(model, self._device)
        self._pieces = upload_pieces(model, self._device)
        self._pairs = upload_pairs(model, self._device)
        self._clearance = upload_clearance(clearance, self._device)
        self.near = plan_near(model, sizes, self._device)
        self._reach = plan_reach(model, sizes, self._device)
        self.poses = plan_poses(model, sizes, self._device)
        self.by_self, self.by_payload, self.by_world = (plan_findings(sizes, self._device) for _ in range(3))
        self._query, self._verdicts = query.as_query(), query.as_verdicts()
        self._primitives = world.as_primitives()
        self._payloads = world.as_payloads(len(model.grippers))
        self._regions = world.as_regions()
        codes = PartyCodes(model, sizes.payloads_per_gripper)
        self._codes = (codes.first_payload, codes.first_primitive)
        self.num_payloads = codes.num_payloads
        # Warp keeps one pointer to tile memory per module, not per thread. Kernels without tiles, as all of these are,
        # never read it; in its debug mode they do.
        threads_allowed = device.type == "cpu" and wp.config.mode != "debug"
        # Launches begin at multiples of this many entries, whose configurations fill whole blocks.
        self._aligned = LANES // gcd(LANES, sizes.horizon)
        enough = sizes.num_configurations >= split_at and sizes.num_envs >= 2 * self._aligned
        self._split = threads_allowed and enough
        self._threads = ThreadPoolExecutor(1) if self._split else None
        self._live: dict[str, Stage] = {}
        self.use_grid(grid)

    def use_grid(self, grid: GridBuffers) -> None:
        """Point the stages at a map's memory."""
        lattice = grid.as_grid(self._library.shape_index(CELL_SLOT))
        bodies, pieces, shapes, query, poses = (
            self._bodies, self._pieces, self._library.shapes, self._query, self.poses
        )  # fmt: skip
        first_payload, first_primitive = self._codes
        primitives, payloads, regions = self._primitives, self._payloads, self._regions
        expected = wp.from_torch(self._query_buffers.expected_pairs)
        self.stages: dict[str, Stage] = {
            "fk": Stage(fk_kernel, (self._tree, bodies, query, payloads, primitives, lattice, poses), Per.BLOCK),
            "near": Stage(near_kernel, (bodies, self._pairs, shapes, query, poses, self.near), Per.BLOCK),
            "self at once": Stage(
                self_at_once_kernel,
                (self._tree, bodies, pieces, self._pairs, self._clearance, shapes, query, payloads, primitives, lattice,
                 poses, self.near, self.by_self),
                Per.BLOCK,
            ),
            "self": Stage(
                self_kernel,
                (bodies, pieces, self._pairs, self._clearance, shapes, query, poses, self.near, self.by_self),
            ),
            "payload": Stage(
                payload_kernel,
                (bodies, pieces, shapes, query, poses, payloads, primitives, lattice, regions,
                 first_payload, first_primitive, self.by_self, self.by_payload),
            ),
            "reach": Stage(
                reach_kernel,
                (bodies, shapes, query, poses, primitives, lattice, self.by_self, self.by_payload, self._reach),
                Per.BLOCK,
            ),
            "world": Stage(
                world_kernel,
                (bodies, pieces, shapes, query, poses, primitives, lattice, regions,
                 first_primitive, self._reach, self.by_world),
            ),
            "verdict": Stage(
                verdict_kernel,
                (query, poses, self.by_self, self.by_payload, self.by_world, expected, self._verdicts),
                Per.ENTRY,
            ),
        }  # fmt: skip
        if self._motion is not None:
            parts = (
                bodies, pieces, self._pairs, self._clearance, shapes, primitives, lattice, payloads, regions,
            )  # fmt: skip
            self._add_motion(self._motion, scene_of(parts, *self._codes), expected)

    def _add_motion(self, motion: MotionBuffers, scene: Any, expected: Any) -> None:
        """The stages that look at the way between rows, where the rows themselves are clear."""
        poses = motion.poses(self.poses)
        levers, way, ways, query = motion.levers, motion.way, motion.ways, self._query
        self.stages |= {
            "way": Stage(
                way_kernel, (self._tree, scene, levers, query, poses, way, expected, self._verdicts, ways), Per.BLOCK
            ),
            "held way": Stage(held_way_kernel, (scene, levers, query, way)),
            "pair filter": Stage(pair_filter_kernel, (scene, levers, query, poses, way)),
            "world filter": Stage(world_filter_kernel, (scene, levers, query, poses, way)),
            "motion": Stage(motion_kernel, (self._tree, scene, levers, query, poses, way, ways)),
            "motion verdict": Stage(motion_verdict_kernel, (query, ways, self._verdicts), Per.ENTRY),
        }

    def read_live(self, robot: LiveRobot, gripper_columns: tuple[int, ...]) -> None:
        """Have `run_live` begin with stages that read this robot. `record` must follow."""
        query = self._query_buffers
        inputs: tuple[Any, ...] = (
            robot.upload(gripper_columns),
            view(robot.positions),
            self._query,
            self._verdicts.kind,
            view(query.start),
        )
        self._live = {"live": Stage(live_kernel, inputs, Per.ENTRY)}
        for closing in robot.closing:
            inputs = (view(closing.progress), closing.done, closing.gripper, self._query)
            self._live[f"closed {len(self._live)}"] = Stage(closed_kernel, inputs, Per.ENTRY)

    @property
    def live_stages(self) -> tuple[str, ...]:
        """What `run_live` does before it checks."""
        return tuple(self._live)

    def launch(self, name: str) -> None:
        """Launch one stage for all entries as Warp does it, in the order of torch's work."""
        with torch_stream(self._torch_device):
            self._launch(name, 0, self._sizes.num_envs)

    def _launch(self, name: str, first_entry: int, entries: int) -> None:
        stage = self._live[name] if name in self._live else self.stages[name]
        rows = 1 if stage.per is Per.ENTRY else self._sizes.horizon
        threads = entries * rows
        if stage.per is Per.BLOCK and self._torch_device.type == "cpu":
            threads = -(-threads // LANES)
        wp.launch(stage.kernel, threads, inputs=[first_entry * rows, *stage.inputs], device=self._device)

    @property
    def at_once(self) -> bool:
        """Whether kinematics and the self check are one launch."""
        return self._torch_device.type == "cpu" and self._sizes.num_configurations <= _FEW

    @property
    def _self_stages(self) -> list[str]:
        return ["self at once"] if self.at_once else [*SELF_STAGES]

    @property
    def _whole(self) -> list[str]:
        """The stages of a whole check, in order."""
        return self._self_stages + [name for name in self.stages if name not in (*SELF_STAGES, "self at once")]

    def record(self) -> None:
        """Record the launches of a whole check. Every kernel must have been launched before, so that it is loaded."""
        self._checks = self._record_check(self._whole)
        self._live_checks = self._record_check([*self._live, *self._whole]) if self._live else []

    def _record_check(self, names: list[str]) -> list[Callable[[], None]]:
        """One graph; of a check that is split between threads, both halves' and then the last stages'."""
        entries = self._sizes.num_envs
        if not self._split:
            return [self._record(names, 0, entries)]
        # Where a call has fewer rows than were planned for, an entry's rows may lie in the other half.
        last = [name for name in names if name == "verdict" or name in MOTION_STAGES]
        before = [name for name in names if name not in last]
        half = entries // 2 // self._aligned * self._aligned
        halves = [self._record(before, 0, half), self._record(before, half, entries - half)]
        return [*halves, self._record(last, 0, entries)]

    def recorded_stages(self) -> dict[str, Callable[[], None]]:
        """Each stage of the check alone, replayed on what the stages before it left behind."""
        parts = {"fk": ["fk"], "self": ["near", "self"], "payload": ["payload"], "world": ["reach", "world"]}
        return {name: self._record(kernels, 0, self._sizes.num_envs) for name, kernels in parts.items()}

    def recorded_self_check(self) -> Callable[[], None]:
        """Kinematics and the self check, on one thread."""
        return self._record(self._self_stages, 0, self._sizes.num_envs)

    def _record(self, names: list[str], first_entry: int, entries: int) -> Callable[[], None]:
        # On a CPU a few configurations go through all stages before the next do, while their poses are in its cache.
        most = max(1, _CACHED // (self._sizes.horizon * self._aligned)) * self._aligned
        if self._torch_device.type == "cuda":
            most = entries
        with wp.ScopedCapture(device=self._device) as capture:
            for first in range(first_entry, first_entry + entries, most):
                for name in names:
                    self._launch(name, first, min(most, first_entry + entries - first))
        graph = capture.graph
        assert graph is not None
        if self._torch_device.type == "cpu":
            return partial(wp.capture_launch, graph)
        return lambda: wp.capture_launch(graph, stream=wp.stream_from_torch(torch.cuda.current_stream()))

    def run(self) -> None:
        """Replay a whole check; on the CPU it has finished when this returns."""
        self._run(self._whole, self._checks)

    def run_live(self) -> None:
        """`run`, of what the robot that `read_live` was given is commanded now."""
        self._run([*self._live, *self._whole], self._live_checks)

    def _run(self, names: list[str], graphs: list[Callable[[], None]]) -> None:
        if self._torch_device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            for name in names:  # a graph that is being captured takes kernels, not another graph's launch
                self.launch(name)
        elif self._threads is None:
            graphs[0]()
        else:
            other = self._threads.submit(graphs[1])
            graphs[0]()
            other.result()
            graphs[2]()
