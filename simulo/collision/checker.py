"""`CollisionChecker`: batched, certified, fail-closed answers for robot configurations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import warp as wp

from simulo.collision.buffers import GridBuffers, QueryBuffers, Sizes, WorldBuffers
from simulo.collision.clearance_maps import ClearanceMaps
from simulo.collision.inputs import as_rows, packed_poses, refuse_unless
from simulo.collision.kernels.voxels import CLOSED
from simulo.collision.kinds import Kind
from simulo.collision.launches import CELL_SLOT, MOTION_STAGES, Launches
from simulo.collision.library import ShapeLibrary
from simulo.collision.live import LiveOutputs, LiveRobot
from simulo.collision.model import CollisionModel
from simulo.collision.motion import MotionBounds
from simulo.collision.motion_buffers import MotionBuffers
from simulo.collision.parties import PartyCodes
from simulo.collision.question import Question
from simulo.collision.raw_verdict import RawVerdict
from simulo.collision.selection import Links
from simulo.collision.selftest import prove_live, self_test
from simulo.collision.shapes import ConvexShape
from simulo.collision.world import Payload, Primitives, VoxelGrid
from simulo.device import resolve_device, start_warp
from simulo.errors import CollisionModelError
from simulo.indexing import EnvIds, resolve_env_ids


class CollisionChecker:
    """Checks up to num_envs environments x horizon rows at once.

    All memory is planned at construction; `check` allocates its result and nothing else. Margins [m]: a pair is
    refused at a distance of the margin or less. device: "cpu", "cuda:0" or "auto". split_at: how many configurations
    make the CPU work on two threads. motion: to certify the ways between configurations too (see `kernels.motion`).
    clearance: maps of the model (see `clearance`), which spare most searches and change no verdict.
    Raises CollisionModelError, naming what does not fit.
    """

    def __init__(
        self,
        model: CollisionModel,
        num_envs: int,
        horizon: int = 1,
        *,
        device: str | torch.device = "cpu",
        max_payloads: int = 2,
        max_primitives: int = 64,
        self_margin: float = 0.0,
        world_margin: float = 0.005,
        split_at: int = 512,
        motion: MotionBounds | None = None,
        clearance: ClearanceMaps | None = None,
    ) -> None:
        if num_envs < 1 or horizon < 1 or max_payloads < 1 or max_primitives < 1:
            raise CollisionModelError("num_envs, horizon, max_payloads and max_primitives must be at least 1")
        self.model = model
        maps = ClearanceMaps.none(model) if clearance is None else clearance
        if maps.model != model.content_digest:
            raise CollisionModelError(
                f"these clearance maps are of another model than this one of robot {model.name!r}; "
                "make them of it with build_clearance(model)"
            )
        start_warp()
        self.device = resolve_device(device)
        self.sizes = Sizes(num_envs, horizon, max_payloads, max_primitives)
        self.parties = PartyCodes(model, max_payloads)
        self._query = QueryBuffers.plan(model, self.sizes, self.device)
        self._question = Question(model, self.sizes, self._query, self.device, motion is not None)
        self._world = WorldBuffers.plan(model, self.sizes, self.device)
        self._live = LiveOutputs(self._query)
        self._live_asked: bool | None = None  # of the world or not: what the last call left the query set up for
        self._grid = GridBuffers.plan(num_envs, (1, 1, 1), False, self.device)
        self._payload_slots = self._world.payload_shape.shape[1]
        self._first_primitive_slot = 1 + num_envs * self._payload_slots
        slots = self._first_primitive_slot + max_primitives
        self._library = ShapeLibrary(model.shapes, slots, str(self.device))
        self._primitives: Primitives | None = None
        self._motion = (
            None if motion is None else MotionBuffers(model, motion, self.sizes, self._query.start, self.device)
        )
        self._launches = Launches(
            model, self.sizes, self._query, self._world, self._grid, self._library, self.device, split_at, self._motion,
            maps,
        )  # fmt: skip
        self.set_margins(self_margin, world_margin)
        everything = self._question.everything
        self_test(
            self._launches, self._query, self._world, model, self._library, everything, self._first_primitive_slot
        )
        for stage in MOTION_STAGES if motion is not None else ():
            self._launches.launch(stage)  # of no configuration: so that it is loaded
        self._launches.record()
        wp.synchronize_device(str(self.device))  # the uploads, before torch's own stream touches them

    def check(
        self,
        q: torch.Tensor,
        base_pose: torch.Tensor | None = None,
        measured: torch.Tensor | None = None,
        measured_active: torch.Tensor | None = None,
        *,
        env_ids: EnvIds | None = None,
        map_status: torch.Tensor | None = None,
        links: Links = None,
        world: bool = True,
        distances: bool = False,
        start: torch.Tensor | None = None,
        widen: torch.Tensor | None = None,
    ) -> RawVerdict:
        """Check configurations; answers are one per entry of q.

        q [rad or m], shape (K, dof) or (K, rows, dof), float32, columns in `model.joint_names` order. K is num_envs,
        or the length of env_ids, which says whose base, world and payloads each entry meets (repeats are fine).
        base_pose, shape (num_envs, 7): the robot's base in its environment, identity when left out.
        measured [rad or m], shape (num_envs, grippers), and measured_active, bool: where active, that hand's fingers
        are checked at the measured value too. map_status, int8 (num_envs,): `MapStatus`, fresh when left out.
        links: ask only of one link, of "gripper:<name>", or of the pair of two links. distances: search for the least
        distance instead of stopping at a bound above the margin. start [rad or m], shape (num_envs, dof): where each
        environment's first way begins; needed by, and only by, a checker of motion. widen [m], shape (num_envs,): how
        much wider both margins are in each environment, this time.
        """
        self._live_asked = None
        configurations = as_rows(q, self.model.joint_names, self.device)
        entries, rows, _dof = configurations.shape
        ids = self._question.entry_ids(entries, env_ids)
        self._question.put_env_inputs(base_pose, measured, measured_active, map_status)
        self._question.put_start(start)
        self._question.widen(widen)
        self._question.ask(links)
        room = min(self.sizes.num_envs, self.sizes.num_configurations // rows)
        if room == 0:
            raise CollisionModelError(
                f"q has {rows} rows, and this checker was planned for {self.sizes.num_configurations} configurations "
                f"in all; construct it with horizon >= {rows}"
            )
        blocks = [
            self._run(configurations[k : k + room], ids[k : k + room] if ids is not None else None, world, distances)
            for k in range(0, entries, room)
        ]
        return RawVerdict.of(blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=1))

    def read_live(self, robot: LiveRobot) -> None:
        """Have `check_live` judge this robot. Raises CollisionModelError where its tensors do not fit, or where what is
        read of it is not what torch reads."""
        columns = tuple(gripper.column for gripper in self.model.grippers)
        robot.refuse_misfit(self.sizes.num_envs, self.model.num_joints, len(columns), self.device)
        self._launches.read_live(robot, columns)
        prove_live(self._launches, self._query, robot, columns)
        self._launches.record()
        self._live_asked = None
        self._question.env_inputs_changed()

    def check_live(self, world: bool = True) -> tuple[RawVerdict, bool | None]:
        """`check` of every environment's one configuration, as the robot that `read_live` was given is commanded now,
        and whether all are clear, which is None where telling would wait for a GPU. `live.joints` has what was read.

        Neither allocates nor calls torch but for the answer: behind physics, with cold caches, the calls around a small
        check take longer than the check.
        """
        if self._live_asked is not world:
            self._set_up_live(world)
        if self._motion is not None:
            self._motion.kind.fill_(int(Kind.NOT_EVALUATED))
        self._launches.run_live()
        return self._live.read()

    def _set_up_live(self, world: bool) -> None:
        entries = self.sizes.num_envs
        self._question.widen(None)
        self._question.ask(None)
        self._question.put_env_ids(None, entries)
        self._question.put_settings(entries, 1, world, False)
        self._question.env_inputs_changed()
        self._live_asked = world

    def set_margins(self, self_margin: float, world_margin: float) -> None:
        """Margins [m] of the robot against itself and its payloads, and of both against the world."""
        self._question.set_margins(self_margin, world_margin)

    def set_voxels(self, grid: VoxelGrid) -> None:
        """Use this map from now on, a copy of it. A map of other brick counts plans its memory anew."""
        if grid.num_envs != self.sizes.num_envs:
            raise CollisionModelError(f"the map has {grid.num_envs} environments, this checker {self.sizes.num_envs}")
        planned = self._grid
        if planned.brick_counts != grid.brick_counts or (grid.has_unknown and not planned.planned_unknown):
            planned = GridBuffers.plan(self.sizes.num_envs, grid.brick_counts, grid.has_unknown, self.device)
            self._grid = planned
            self._launches.use_grid(planned)
            self._launches.record()
        planned.bricks.copy_(grid.bricks.reshape(planned.bricks.shape))
        if grid.has_unknown:
            planned.count_unknown(grid.unknown.to(self.device).reshape(planned.bricks.shape).contiguous())
        planned.pose[:, :3] = grid.position
        planned.pose[:, 3:] = grid.orientation_wxyz
        planned.cell.copy_(torch.tensor([[grid.cell, 0.5 * grid.cell]]))
        planned.mark_columns()
        present = int(CLOSED) if grid.closed else 1
        planned.flags.copy_(torch.tensor([present, int(grid.has_unknown)], dtype=torch.int32))
        self._library.put(CELL_SLOT, ConvexShape.box((grid.cell,) * 3), "the map's cell")

    def clear_voxels(self) -> None:
        """Check against no map."""
        self._grid.flags.zero_()

    def set_primitives(self, primitives: Primitives) -> None:
        """Check against these primitives from now on; later poses come through `move_primitives`.

        Raises CollisionModelError, with those in use untouched, for more than were planned for and shapes too large.
        """
        count = len(primitives.names)
        if count > self.sizes.max_primitives:
            raise CollisionModelError(
                f"{count} primitives, and this checker was planned for max_primitives={self.sizes.max_primitives}"
            )
        if primitives.pose.shape[0] != self.sizes.num_envs:
            raise CollisionModelError(
                f"the primitives have {primitives.pose.shape[0]} environments, this checker {self.sizes.num_envs}"
            )
        self._refuse_other_rows(primitives.pose, primitives.valid, count)
        for name, shape in zip(primitives.names, primitives.shapes, strict=True):
            self._library.refuse(shape, f"primitive {name!r}")
        offsets = np.zeros((count, 3), np.float32)
        for k, (name, shape) in enumerate(zip(primitives.names, primitives.shapes, strict=True)):
            offsets[k] = self._library.put(self._first_primitive_slot + k, shape, f"primitive {name!r}").offset
        self._primitives = primitives
        self._world.primitive_offset[:count] = torch.from_numpy(offsets)
        self._world.primitive_count.fill_(count)
        self.move_primitives(primitives.pose, primitives.valid)

    def move_primitives(self, pose: torch.Tensor, valid: torch.Tensor) -> None:
        """New poses (num_envs, K, 7) of the primitives in use, and where each exists (num_envs, K)."""
        count = 0 if self._primitives is None else len(self._primitives.names)
        self._refuse_other_rows(pose, valid, count)
        self._world.primitive_pose[:, :count] = pose
        first = self._library.shape_index(self._first_primitive_slot)
        slots = torch.arange(first, first + count, dtype=torch.int32, device=self.device)
        self._world.primitive_shape[:, :count] = torch.where(valid, slots, -1)

    def _refuse_other_rows(self, pose: torch.Tensor, valid: torch.Tensor, count: int) -> None:
        refuse_unless("Primitives.pose", pose, (self.sizes.num_envs, count, 7), torch.float32, self.device)
        refuse_unless("Primitives.valid", valid, (self.sizes.num_envs, count), torch.bool, self.device)

    def primitive_index(self, name: str) -> int:
        """Which primitive carries a name; its party code is parties.first_primitive more."""
        names = () if self._primitives is None else self._primitives.names
        if name not in names:
            raise CollisionModelError(f"no primitive {name!r} in the world; there are: {', '.join(names) or 'none'}")
        return names.index(name)

    def attach(self, payload: Payload, env_ids: EnvIds | None = None) -> None:
        """Put a payload into a hand of some environments, in the stead of what its slot held."""
        ids = resolve_env_ids(env_ids, self.sizes.num_envs)
        slot = self._payload_slot(payload.gripper, payload.slot)
        refuse_unless("Payload.pose", payload.pose, (len(ids), 7), torch.float32, self.device)
        gripper = self.model.grippers[self.model.gripper_index(payload.gripper)]
        link = self.model.link_index(payload.link if payload.link is not None else gripper.hand_link)
        may_touch = {*gripper.contact_links, *self.model.touch_links, *payload.touch_links, self.model.link_names[link]}
        for hand, _slot in payload.one_with:
            may_touch.update(self.model.grippers[self.model.gripper_index(hand)].contact_links)
        touch = torch.zeros(self._world.payload_touch.shape[2], dtype=torch.uint8)
        touch[[self.model.link_index(name) for name in may_touch]] = 1
        touch[[len(self.model.link_names) + self._payload_slot(*other) for other in payload.one_with]] = 1
        for env in ids.tolist():
            place = 1 + env * self._payload_slots + slot
            packed = self._library.put(place, payload.shape, f"payload of gripper {payload.gripper!r}")
            self._world.payload_shape[env, slot] = self._library.shape_index(place)
            offset = torch.from_numpy(packed.offset).to(self.device)
            self._world.payload_pose[env, slot] = packed_poses(payload.pose[ids == env][-1], offset)
        self._world.payload_link[ids, slot] = link
        self._world.payload_touch[ids, slot] = touch.to(self.device)

    def detach(self, gripper: str, slot: int = 0, env_ids: EnvIds | None = None) -> None:
        """Empty a hand's payload slot in some environments."""
        ids = resolve_env_ids(env_ids, self.sizes.num_envs)
        self._world.payload_shape[ids, self._payload_slot(gripper, slot)] = -1

    def held(self, gripper: str, slot: int = 0) -> torch.Tensor:
        """bool (num_envs,): where the slot holds a payload."""
        return self._world.payload_shape[:, self._payload_slot(gripper, slot)] >= 0

    def set_grasp_region(
        self,
        gripper: str,
        pose: torch.Tensor,
        size: torch.Tensor,
        env_ids: EnvIds | None = None,
        primitive: str | None = None,
    ) -> None:
        """Exempt a hand's grasp contact links from what lies in a box, one box per environment id.

        Exempt are cells whose centre is in it, primitives wholly in it, and the primitive of that name.
        pose, shape (M, 7): the box's centre in the env frame; size [m], shape (M, 3): its full edges.
        """
        self._set_region(self.model.gripper_index(gripper), pose, size, env_ids, primitive)

    def clear_grasp_region(self, gripper: str, env_ids: EnvIds | None = None) -> None:
        ids = resolve_env_ids(env_ids, self.sizes.num_envs)
        self._world.region_active[ids, self.model.gripper_index(gripper)] = 0

    def set_support_region(
        self,
        gripper: str,
        slot: int,
        pose: torch.Tensor,
        size: torch.Tensor,
        env_ids: EnvIds | None = None,
        primitive: str | None = None,
    ) -> None:
        """As set_grasp_region, exempting one payload and nothing else."""
        region = len(self.model.grippers) + self._payload_slot(gripper, slot)
        self._set_region(region, pose, size, env_ids, primitive)

    def clear_support_region(self, gripper: str, slot: int = 0, env_ids: EnvIds | None = None) -> None:
        ids = resolve_env_ids(env_ids, self.sizes.num_envs)
        self._world.region_active[ids, len(self.model.grippers) + self._payload_slot(gripper, slot)] = 0

    def regions(self, env: int) -> dict[str, torch.Tensor]:
        """The regions of one environment, hands first and then payload slots: active, pose, half edges [m], and the
        number of a primitive exempted by name, or -1."""
        world = self._world
        return {
            "active": world.region_active[env],
            "pose": world.region_pose[env],
            "half": world.region_half[env],
            "primitive": world.region_primitive[env],
        }

    def link_poses(self) -> torch.Tensor:
        """Link poses of the last check in the base frame, homogeneous float32 (num_configurations, L, 4, 4); rows
        that were not checked hold what was there before, those that were not finite no numbers."""
        links, m = len(self.model.link_names), self.sizes.num_configurations
        frames = wp.to_torch(self._launches.poses.links)[:, :links].movedim(3, 1).flatten(0, 1)[:m]
        out = torch.zeros(m, links, 4, 4, device=self.device)
        out[..., :3, :3] = frames[..., :9].unflatten(2, (3, 3))
        out[..., :3, 3] = frames[..., 9:]
        out[..., 3, 3] = 1.0
        return out

    def describe(self, verdict: RawVerdict, entry: int) -> str:
        """The two parties of an entry by name."""
        names = () if self._primitives is None else self._primitives.names
        codes = (int(verdict.party_a[entry]), int(verdict.party_b[entry]))
        return " against ".join(self.parties.name(code, names, self._grid.brick_counts) for code in codes)

    def stages(self) -> dict[str, Callable[[], None]]:
        """The stages "fk", "self", "payload" and "world" by themselves, recorded: to time them one by one with the
        inputs of the last check, rows and all."""
        return self._launches.recorded_stages()

    def self_check(self) -> tuple[Callable[[], None], torch.Tensor]:
        """Kinematics and the self check of the last check's inputs on one thread, recorded: to time it; and where it
        reads the configurations [rad or m], shape (num_configurations, dof)."""
        return self._launches.recorded_self_check(), self._query.q

    # How a call reaches the kernels.

    def _run(
        self, configurations: torch.Tensor, ids: torch.Tensor | None, world: bool, distances: bool
    ) -> torch.Tensor:
        entries, rows, dof = configurations.shape
        query = self._query
        query.q[: entries * rows].copy_(configurations.reshape(entries * rows, dof))
        self._question.put_env_ids(ids, entries)
        self._question.put_settings(entries, rows, world, distances)
        query.verdicts[0].fill_(int(Kind.NOT_EVALUATED))
        if self._motion is not None:
            self._motion.kind.fill_(int(Kind.NOT_EVALUATED))
        self._launches.run()
        return query.verdicts[:, :entries].clone()

    def _payload_slot(self, gripper: str, slot: int) -> int:
        per_hand = self.sizes.payloads_per_gripper
        if not 0 <= slot < per_hand:
            raise CollisionModelError(f"payload slot {slot} is outside [0, {per_hand}) (max_payloads={per_hand})")
        return self.model.gripper_index(gripper) * per_hand + slot

    def _set_region(
        self, region: int, pose: torch.Tensor, size: torch.Tensor, env_ids: EnvIds | None, primitive: str | None
    ) -> None:
        ids = resolve_env_ids(env_ids, self.sizes.num_envs)
        refuse_unless("pose", pose, (len(ids), 7), torch.float32, self.device)
        refuse_unless("size", size, (len(ids), 3), torch.float32, self.device)
        index = -1 if primitive is None else self.primitive_index(primitive)
        self._world.region_pose[ids, region] = pose
        self._world.region_half[ids, region] = 0.5 * size
        self._world.region_primitive[ids, region] = index
        self._world.region_active[ids, region] = 1
