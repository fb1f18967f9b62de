"""What a gate's user says of the robot's hands: what they hold, and what they may touch for a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from simulo.collision import ConvexShape, Payload
from simulo.description import RobotDescription
from simulo.errors import GateError
from simulo.gate.declarations import (
    Region,
    aperture_limit,
    checked_duration,
    edges,
    fits,
    object_limit,
    refuse_oversized,
)
from simulo.gate.primitives import as_convex
from simulo.gate.rigid import pose_rows
from simulo.gate.session import SLOTS_PER_HAND, Session
from simulo.indexing import EnvIds, resolve_env_ids
from simulo.pose import Pose
from simulo.props import Prop, Shape


@dataclass(frozen=True)
class DeclaredGrasp:
    """object: its name, or "". box [m]: full edges, at `pose` (7,) in the environment. until [s]: when it ends."""

    object: str
    box: tuple[float, float, float]
    pose: Tensor
    until: float


class Hands:
    """The hands of one session's robot. `CollisionGate` has the words for what its methods do.

    props: the scene's, by name, as shapes.
    """

    def __init__(self, session: Session, description: RobotDescription, props: Mapping[str, ConvexShape]) -> None:
        self._session, self._description, self._props = session, description, props
        self._model, self._device = session.model, session.body.device
        self._grasped: dict[tuple[int, str], DeclaredGrasp] = {}

    def attach(
        self,
        hand: str,
        shape: ConvexShape | Shape,
        pose: Pose | Tensor | ArrayLike,
        support: Region | None = None,
        env_ids: EnvIds | None = None,
        touch_links: Sequence[str] = (),
        object: str | Prop = "",
    ) -> None:
        session = self._session
        index, ids = self._model.gripper_index(hand), self._ids(env_ids)
        if len(ids) == 0:
            return
        names = self._names_of(object, hand, ids)
        slot = session.payloads.slot_for(index, ids, object.name if isinstance(object, Prop) else object)
        if slot < 0:
            raise GateError(
                f"the {hand} hand holds {SLOTS_PER_HAND} objects already in some of environments "
                f"{ids.tolist()[:8]}; detach one first"
            )
        if isinstance(touch_links, str):
            raise GateError(
                f"attach({hand!r}): touch_links must be a list of links, got the name {touch_links!r} alone"
            )
        convex = shape if isinstance(shape, ConvexShape) else as_convex(shape)
        rows = pose_rows(pose, len(ids), f"attach({hand!r}): pose")
        allowed = None if support is None else self._region_rows(support, ids)
        link, column = self._model.grippers[index].hand_link, index * SLOTS_PER_HAND + slot
        if session.world.kind != "none":
            session.body.link_poses((link,))  # raises where nobody knows where the hand is
        payload = Payload(hand, convex, rows.to(self._device, torch.float32), slot, link, tuple(touch_links))
        session.checker.attach(payload, ids)
        new = ids[~session.payloads.present[ids, column]]
        session.payloads.put(column, ids, convex, link, rows, names, tuple(touch_links))
        for group in session.payloads.groups(column, ids):
            session.world.take(session.taken(column, *group))
        shared = {env: others for env in ids.tolist() if (others := session.payloads.partners(env, column))}
        for env, others in shared.items():
            for each in (column, *others):
                self._tell_partners(env, each)
        self._free_declared(hand, new, convex)
        session.note_holding()
        if allowed is not None:
            session.allow_support(column, ids, *allowed, torch.inf)
        session.refresh()

    def detach(self, hand: str, env_ids: EnvIds | None = None) -> None:

        session = self._session
        index, ids = self._model.gripper_index(hand), self._ids(env_ids)
        for slot in range(SLOTS_PER_HAND):
            column = index * SLOTS_PER_HAND + slot
            given = [session.taken(column, *group) for group in session.payloads.groups(column, ids)]
            shared = {env: others for env in ids.tolist() if (others := session.payloads.partners(env, column))}
            session.payloads.take_out(column, ids)
            session.checker.detach(hand, slot, ids)
            session.checker.clear_support_region(hand, slot, ids)
            for item in given:
                session.world.give_back(item)
            for env, others in shared.items():
                for other in others:
                    self._hold_on(env, other)
        for env in ids.tolist():  # what the hand takes next is not what it was to grasp before
            self._grasped.pop((env, hand), None)
        session.note_holding()
        session.refresh()

    def take_again(self) -> None:
        """The world is another: an obstacle of the name of what is held is that thing, and not in it as well."""
        session = self._session
        for column in range(session.payloads.present.shape[1]) if session.world.objects else ():
            ids = session.payloads.present[:, column].nonzero().flatten()
            for group in session.payloads.groups(column, ids):
                if group[0].object in session.world.objects:
                    session.world.take(session.taken(column, *group))
        session.refresh()

    def declare_grasp(
        self,
        hand: str,
        pose: Pose | Tensor | ArrayLike,
        size: ArrayLike,
        duration: float,
        object: str | Prop | Shape | None = None,
        env_ids: EnvIds | None = None,
    ) -> None:

        session = self._session
        index, ids = self._model.gripper_index(hand), self._ids(env_ids)
        box = edges(size, "declare_grasp: size")
        until = session.body.time + checked_duration(duration, "declare_grasp")
        limit, why = self._grasp_limit(hand, object)
        refuse_oversized(box, limit, why)
        rows = pose_rows(pose, len(ids), f"declare_grasp({hand!r}): pose").to(self._device, torch.float32)
        name = object.name if isinstance(object, Prop) else object if isinstance(object, str) else ""
        sizes = torch.tensor(box, device=self._device).expand(len(ids), 3)
        session.allow_grasp(index, ids, rows, sizes, name, until)
        for env_row, env in enumerate(ids.tolist()):
            self._grasped[env, hand] = DeclaredGrasp(name, box, rows[min(env_row, len(rows) - 1)].double().cpu(), until)

    def declare_place(
        self, region: Region, duration: float, hand: str | None = None, env_ids: EnvIds | None = None
    ) -> None:

        session, ids = self._session, self._ids(env_ids)
        until = session.body.time + checked_duration(duration, "declare_place")
        poses, sizes = self._region_rows(region, ids)
        hands = range(len(self._model.grippers)) if hand is None else [self._model.gripper_index(hand)]
        found = False
        for column in (index * SLOTS_PER_HAND + slot for index in hands for slot in range(SLOTS_PER_HAND)):
            held = session.payloads.present[ids, column]
            if held.any():
                found = True
                session.allow_support(column, ids[held], poses[held], sizes[held], until)
        if not found and len(ids):
            who = "no hand holds anything" if hand is None else f"the {hand} hand holds nothing"
            raise GateError(f"declare_place: {who} in environments {ids.tolist()[:8]}")

    def forget(self, env_ids: Tensor) -> None:
        """Episodes have ended in these environments, and their declarations with them."""
        ended = set(env_ids.tolist())
        self._grasped = {key: grasp for key, grasp in self._grasped.items() if key[0] not in ended}

    # --- private -----------------------------------------------------------------------------------------------------

    def _tell_partners(self, env: int, column: int) -> None:
        """What a slot holds, with which other hands: a thing does not collide with itself, nor with its holders."""
        session, hands = self._session, [gripper.name for gripper in self._model.grippers]
        held = next(thing for thing, at in session.payloads.in_env(env) if at == column)
        hand, slot = divmod(column, SLOTS_PER_HAND)
        others = [divmod(other, SLOTS_PER_HAND) for other in session.payloads.partners(env, column)]
        pose = held.pose_in_link[None].to(self._device, torch.float32)
        one_with = tuple((hands[other], at) for other, at in others)
        session.checker.attach(
            Payload(hands[hand], held.shape, pose, slot, held.link, held.touch_links, one_with), [env]
        )

    def _hold_on(self, env: int, column: int) -> None:
        """Another hand has let go of what this slot holds: it is no obstacle, and that hand may touch it no more."""
        self._tell_partners(env, column)
        ids = torch.tensor([env], device=self._device)
        for group in self._session.payloads.groups(column, ids):
            self._session.world.take(self._session.taken(column, *group))

    def _ids(self, env_ids: EnvIds | None) -> Tensor:
        return resolve_env_ids(env_ids, self._session.body.num_envs, self._device)

    def _names_of(self, given: str | Prop, hand: str, ids: Tensor) -> list[str]:
        """The name of what is attached in each environment: as given, or as the hand's last grasp was declared."""
        name = given.name if isinstance(given, Prop) else given
        if name and name not in self._known_objects():
            raise GateError(f"no object {name!r} in the world; there are: {', '.join(self._known_objects()) or 'none'}")
        return [name or self._declared_object(env, hand) for env in ids.tolist()]

    def _declared_object(self, env: int, hand: str) -> str:
        """What a hand was last to grasp, "" where it holds that already: what it takes beside it is another thing."""
        grasp, held = self._grasped.get((env, hand)), self._session.payloads.in_env(env)
        index = self._model.gripper_index(hand)
        names = {thing.object for thing, column in held if column // SLOTS_PER_HAND == index}
        return "" if grasp is None or grasp.object in names else grasp.object

    def _free_declared(self, hand: str, ids: Tensor, shape: ConvexShape) -> None:
        """What the map shows in a box that was declared to hold the object is the object: closing fingers push it from
        where it was last seen, and hide from the cameras that it has left. A box with room for more says nothing."""
        session = self._session
        limit, _why = object_limit(shape, "the object", session.world.cell)
        for env in ids.tolist():
            grasp = self._grasped.get((env, hand))
            if grasp is not None and session.body.time <= grasp.until and fits(grasp.box, limit):
                session.world.free(grasp.box, grasp.pose[None], torch.tensor([env], device=ids.device))

    def _known_objects(self) -> dict[str, ConvexShape]:
        return {**self._props, **self._session.world.objects}

    def _grasp_limit(self, hand: str, object: str | Prop | Shape | None) -> tuple[tuple[float, float, float], str]:
        """Largest edges [m] of a grasp box, and why."""
        cell = self._session.world.cell
        if object is None:
            return aperture_limit(self._description, self._description.gripper(hand), cell)
        if not isinstance(object, (str, Prop)):
            return object_limit(as_convex(object), "the object", cell)
        name = object.name if isinstance(object, Prop) else object
        known = self._known_objects()
        if name not in known:
            raise GateError(f"declare_grasp: no object {name!r} in the world; there are: {', '.join(known) or 'none'}")
        return object_limit(known[name], name, cell)

    def _region_rows(self, region: Region, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Poses (M, 7) and full edges (M, 3) [m] of a region in M environments; GateError where it is none."""
        if not isinstance(region, Region):
            raise GateError(f"a support region must be a simulo.gate.Region(pose, size), got {region!r:.60}")
        box = edges(region.size, "support region: size")
        rows = pose_rows(region.pose, len(ids), "support region: pose").to(self._device, torch.float32)
        return rows, torch.tensor(box, device=self._device).expand(len(ids), 3)
