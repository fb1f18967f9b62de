"""One gate at work on one body: its checker, its world, what is held and what is allowed for a while."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from simulo.collision import (
    CollisionChecker,
    CollisionModel,
    MapStatus,
    MotionBounds,
    build_clearance,
    build_levers,
    build_motion_bounds,
    joints,
)
from simulo.errors import GateError
from simulo.gate.body import Body, SimulatedBody
from simulo.gate.declarations import Expiries, end_region
from simulo.gate.payloads import Held, PayloadTable
from simulo.gate.rigid import compose
from simulo.gate.settings import GateSettings
from simulo.gate.verdict import Checked, Reserve, Verdict
from simulo.gate.world import OwedWorld, Taken, World, no_world

SLOTS_PER_HAND = 2
# s. How often to look whether a payload has left its support: reading where hands are costs as much as a check.
_LIFT_PERIOD = 0.1
MAX_PRIMITIVES = 64


@dataclass(frozen=True)
class Sensed:
    """What the checks read of a measured robot. start [rad or m], shape (num_envs, dof): where it is. measured,
    (num_envs, hands): its hands' joints; active, bool: which of them are posed at that too."""

    start: Tensor
    measured: Tensor
    active: Tensor


class Session:
    """The state of a gate for one body. Nothing here loops over environments but what a declaration changes."""

    def __init__(self, model: CollisionModel, settings: GateSettings, body: Body) -> None:
        self.body, self.settings, self.model = body, settings, model
        self_margin, world_margin = settings.margins
        self.checker = CollisionChecker(
            model,
            body.num_envs,
            settings.horizon,
            device=body.device,
            max_payloads=SLOTS_PER_HAND,
            max_primitives=MAX_PRIMITIVES,
            self_margin=self_margin,
            world_margin=world_margin,
            motion=self.motion_bounds if settings.motion_check else None,
            clearance=build_clearance(model),
        )
        hands = len(model.grippers)
        self.payloads = PayloadTable(body.num_envs, hands, SLOTS_PER_HAND, body.device)
        self.expiries = Expiries(body.num_envs, hands + hands * SLOTS_PER_HAND)
        self._gripper_columns = torch.tensor([g.column for g in model.grippers], dtype=torch.int64, device=body.device)
        self._hand_links = tuple(gripper.hand_link for gripper in model.grippers)
        self._envs = torch.arange(body.num_envs, device=body.device)
        self._none = torch.zeros(body.num_envs, device=body.device)
        self._holding = torch.zeros((body.num_envs, hands), dtype=torch.bool, device=body.device)
        self._map_status = torch.zeros(body.num_envs, dtype=torch.int8, device=body.device)
        self._status_holds = (math.inf, -math.inf)
        self._looked = -math.inf
        self._told: dict[tuple[str, str], Checked] = {}
        self._named = torch.zeros((body.num_envs, hands), dtype=torch.bool, device=body.device)
        self.world: World = no_world(body.num_envs, body.device)
        self._loaded = -1
        self._latches_read = -1
        self._reads_live = False
        if settings.world != "none":
            self.use_world(OwedWorld(settings.world, body.num_envs, body.device))

    @cached_property
    def motion_bounds(self) -> MotionBounds:
        """How far anything can move while joints do: for the motion check, or to tell how much goes unchecked."""
        return build_motion_bounds(self.model) if self.settings.motion_check else build_levers(self.model)

    # --- the world ---------------------------------------------------------------------------------------------------

    def use_world(self, world: World) -> None:
        """Check against this world from now on, and against nothing that was there before.

        Where the named obstacles are others, grasp regions that named one end: the name would exempt something else.
        Raises CollisionModelError, with the world as it was, for one that the checker has no room for.
        """
        world.load(self.checker)  # what a gate takes is of one kind, so that it replaces what was loaded before
        if tuple(world.objects) != tuple(self.world.objects):
            for hand in self._named.any(dim=0).nonzero().flatten().tolist():
                self._end(hand, self._named[:, hand].nonzero().flatten())
            self._named[:] = False
        self.world, self._loaded = world, world.revision
        self._judge_age(self.body.time)
        self.refresh()

    def refresh(self) -> None:
        """Bring the checker up to date with the world, the time and what has been lifted."""
        self.world.refresh()
        now = self.body.time
        if self.world.revision != self._loaded:
            self.world.load(self.checker)
            self._loaded = self.world.revision
            if self.world.kind == "voxels":  # exact shapes are not seen anew, they are there
                self._judge_age(now)
        first, last = self._status_holds
        if not first <= now < last:
            self._judge_age(now)
        for column, env_ids in self.expiries.due(now):
            self._end(column, env_ids)
        if self.payloads.any_supported and not 0.0 < now - self._looked < _LIFT_PERIOD:
            self._looked = now
            self._end_lifted()

    def _judge_age(self, now: float) -> None:
        """Say which maps are fresh, and from when to when that stays so."""
        stamp = self.world.stamp
        age = now - stamp
        stale = torch.where(age <= self.settings.max_age, int(MapStatus.FRESH), int(MapStatus.STALE))  # NaN is stale
        self._map_status.copy_(torch.where(torch.isneginf(stamp), int(MapStatus.NONE), stale))
        fresh = stamp[self._map_status == int(MapStatus.FRESH)]
        self._status_holds = (now, float(fresh.min()) + self.settings.max_age if len(fresh) else math.inf)

    def _end(self, column: int, env_ids: Tensor) -> None:
        end_region(self.checker, column, env_ids, SLOTS_PER_HAND)
        if column >= len(self.model.grippers):
            self.payloads.end_support(column - len(self.model.grippers), env_ids)

    def _end_lifted(self) -> None:
        """A payload that has once been a margin and a cell diagonal clear of its support is exempt no longer."""
        clearance = self.settings.margins[1] + math.sqrt(3.0) * self.world.cell
        lifted = self.payloads.lifted(self.body.link_poses(self._hand_links), clearance)
        if not bool(lifted.any()):
            return
        for slot in lifted.any(dim=0).nonzero().flatten().tolist():
            env_ids = lifted[:, slot].nonzero().flatten()
            self._end(len(self.model.grippers) + slot, env_ids)
            self.expiries.set(env_ids, len(self.model.grippers) + slot, math.inf)

    # --- checking ----------------------------------------------------------------------------------------------------

    @property
    def map_status(self) -> Tensor:
        """int8 (num_envs,), live: how the last `refresh` found the maps, see `simulo.collision.MapStatus`."""
        return self._map_status

    def sensed(self) -> Sensed:
        """What is measured of the robot now."""
        start = self.body.joint_positions()
        active = (self._holding | self.body.closed()) if self.body.measured else torch.zeros_like(self._holding)
        return Sensed(start, start[:, self._gripper_columns], active)

    def check(
        self,
        q: Tensor,
        base_pose: Tensor,
        env_ids: Tensor | None,
        links: str | None,
        world: bool,
        distances: bool,
        widen: Tensor | None = None,
    ) -> Verdict:
        """q: float32 on the body's device, (K, dof) or (K, rows, dof). env_ids: (K,), or all environments in order.
        widen [m]: of both margins, shape (num_envs,).

        Raises GateError where the way to q is to be checked and nobody knows where it begins.
        """
        if self.settings.motion_check and not self.body.measured:
            raise GateError(
                "motion_check=True checks the way from where the robot is measured: give the gate to an environment, "
                "or call gate.set_configuration(q) first"
            )
        seen = self.sensed()
        ask_world = world and self.world.kind != "none"
        raw = self.checker.check(
            q,
            base_pose,
            seen.measured,
            seen.active,
            env_ids=env_ids,
            map_status=self._map_status,
            links=links,
            world=ask_world,
            distances=distances,
            start=seen.start if self.settings.motion_check else None,
            widen=widen,
        )
        envs = self._envs if env_ids is None else env_ids
        wider = self._none if widen is None else widen.clone()
        reserve = self._reserve(lambda: (q, seen.start), envs)
        return Verdict(raw, envs, self._checked(links, world), self._name_of, reserve, wider)

    def check_step(self) -> tuple[Verdict, bool | None] | None:
        """The verdict on what every robot is commanded for this step alone, and whether all are clear if that is known.

        The same as `check` of the commanded positions, read by the checker's own kernels from where robot and simulator
        keep them. None where more than positions is commanded, or where there is nothing to read.
        """
        body = self.body
        if not isinstance(body, SimulatedBody) or not body.robot.commands_positions_alone:
            return None
        if self._latches_read != body.robot.num_latches:
            self._read_live(body)
        if not self._reads_live:
            return None
        body.follow_base()
        raw, all_clear = self.checker.check_live(self.world.kind != "none")
        reserve = self._reserve(lambda: joints(raw), self._envs)
        verdict = Verdict(raw, self._envs, self._checked(None, True), self._name_of, reserve, self._none)
        return verdict, all_clear

    def _read_live(self, body: SimulatedBody) -> None:
        """Point the checker at the robot as it is equipped now."""
        robot = body.live(self._holding, self._map_status)
        self._reads_live = robot is not None
        if robot is not None:
            self.checker.read_live(robot)
        self._latches_read = body.robot.num_latches

    def _checked(self, links: str | None, world: bool) -> Checked:
        kind = self.world.kind if world else "skipped"
        asked = "all" if links is None else links
        if (kind, asked) not in self._told:
            codes = self.checker.parties.first_primitive
            motion, floating = self.settings.motion_check, self.body.floating
            self._told[kind, asked] = Checked(kind, asked, *self.settings.margins, motion, codes, floating)
        return self._told[kind, asked]

    def _reserve(self, judged: Callable[[], tuple[Tensor, Tensor]], envs: Tensor) -> Reserve:
        """What a verdict does not vouch for, worked out for those who ask. judged: the configurations that it is on,
        and where every robot was measured."""
        known = self.body.measured

        def unchecked(i: int) -> float:
            q, start = judged()
            rows = q[i].reshape(-1, q.shape[-1])
            way = torch.cat([start[int(envs[i])][None], rows]) if known else rows
            held = self.payloads.balls(int(envs[i]), self.model.link_index)
            return self.motion_bounds.largest(torch.diff(way, dim=0).cpu().double().numpy(), held)

        return Reserve(known, unchecked)

    def _name_of(self, code: int, env: int) -> str:
        """A party's name; of a cell, where it is."""
        codes = self.checker.parties
        kind = codes.kind_of(code)
        if kind == "cell":
            return self.world.cell_name(code, env)
        if kind == "payload":
            hand, slot = divmod(code - codes.first_payload, SLOTS_PER_HAND)
            what = self.payloads.object_name(code - codes.first_payload, env)
            return f"{what} in the {self.model.grippers[hand].name} hand" + (f" (slot {slot})" if slot else "")
        return codes.name(code, tuple(self.world.objects))

    def allow_grasp(self, hand: int, env_ids: Tensor, poses: Tensor, sizes: Tensor, name: str, until: float) -> None:
        """Exempt a hand's fingers in boxes, poses (M, 7), sizes (M, 3), and from the obstacle `name` if there is."""
        named = name in self.world.objects
        gripper = self.model.grippers[hand].name
        self.checker.set_grasp_region(gripper, poses, sizes, env_ids, name if named else None)
        self._named[env_ids, hand] = named
        self.expiries.set(env_ids, hand, until)

    def allow_support(self, column: int, env_ids: Tensor, poses: Tensor, sizes: Tensor, until: float) -> None:
        """Exempt one payload in boxes, until a time [s] or until it has been lifted off."""
        hand, slot = divmod(column, SLOTS_PER_HAND)
        self.checker.set_support_region(self.model.grippers[hand].name, slot, poses, sizes, env_ids)
        self.payloads.set_support(column, env_ids, poses, sizes)
        self.expiries.set(env_ids, len(self.model.grippers) + column, until)

    # --- what is held ------------------------------------------------------------------------------------------------

    def taken(self, column: int, held: Held, env_ids: Tensor, poses: Tensor) -> Taken:
        """An object of a payload slot, with its pose in the environment as its hand is measured."""
        if self.world.kind == "none":
            placed = poses
        else:
            hand = column // SLOTS_PER_HAND
            link = self.body.link_poses((self._hand_links[hand],))[env_ids, 0].to("cpu", torch.float64)
            placed = compose(link, poses)
        return Taken(column, held.shape, held.link, poses, placed, held.object, env_ids)

    def note_holding(self) -> None:
        """Call after what is held has changed."""
        if len(self.model.grippers):
            self._holding.copy_(self.payloads.holding())

    def forget(self, env_ids: Tensor) -> None:
        """Empty hands, no declarations and no map in these environments."""
        hands = len(self.model.grippers)
        for slot in range(hands * SLOTS_PER_HAND):
            self.payloads.take_out(slot, env_ids)
            self.checker.detach(self.model.grippers[slot // SLOTS_PER_HAND].name, slot % SLOTS_PER_HAND, env_ids)
        for column in range(hands + hands * SLOTS_PER_HAND):
            self._end(column, env_ids)
            self.expiries.set(env_ids, column, math.inf)
        self.note_holding()
        self.world.forget(env_ids)
