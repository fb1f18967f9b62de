"""What every hand holds, and from what it was lifted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from simulo.collision import ConvexShape
from simulo.gate.rigid import compose
from simulo.rotations import conjugate, rotate


@dataclass(frozen=True)
class Held:
    """One attached object of one environment. pose_in_link: shape (7,). object: its name in the world, or "".
    touch_links: what it may touch beside the hand's own fingers."""

    shape: ConvexShape
    link: str
    pose_in_link: Tensor
    object: str
    touch_links: tuple[str, ...] = ()


class PayloadTable:
    """Attached objects by (environment, slot), and the supports that they may still touch.

    Slots: all of the first hand, then of the second. Supports end by themselves once their payload has been `clearance`
    [m] away, which `lifted` finds for all environments at once.
    """

    def __init__(self, num_envs: int, hands: int, slots_per_hand: int, device: torch.device) -> None:
        slots = max(hands * slots_per_hand, 1)
        self.slots_per_hand = slots_per_hand
        self._held: dict[tuple[int, int], Held] = {}
        self.present = torch.zeros((num_envs, slots), dtype=torch.bool, device=device)
        self._corners = torch.zeros((num_envs, slots, 8, 3), device=device)
        self._ball = torch.zeros((num_envs, slots), device=device)
        self.supported = torch.zeros((num_envs, slots), dtype=torch.bool, device=device)
        self._support = torch.tensor([0.0, 0, 0, 1, 0, 0, 0], device=device).repeat(num_envs, slots, 1)
        self._half = torch.zeros((num_envs, slots, 3), device=device)
        self._hand_of_slot = torch.arange(slots, device=device) // max(slots_per_hand, 1)
        self.any_supported = False

    def holding(self) -> Tensor:
        """Which hands hold something, bool, shape (num_envs, hands)."""
        return self.present.view(len(self.present), -1, self.slots_per_hand).any(dim=-1)

    def object_name(self, column: int, env: int) -> str:
        """What a slot holds, for people."""
        held = self._held.get((env, column))
        return held.object if held is not None and held.object else "the object"

    def partners(self, env: int, column: int) -> list[int]:
        """The other hands' slots that hold the very thing that a slot holds: the one of its name."""
        held, hand = self._held.get((env, column)), column // self.slots_per_hand
        if held is None or not held.object:
            return []
        return [
            other
            for thing, other in self.in_env(env)
            if thing.object == held.object and other // self.slots_per_hand != hand
        ]

    def in_env(self, env: int) -> list[tuple[Held, int]]:
        """What the hands hold in an environment, and in which slots."""
        slots = range(self.present.shape[1])
        return [(held, column) for column in slots if (held := self._held.get((env, column))) is not None]

    def balls(self, env: int, number: Callable[[str], int]) -> list[tuple[int, float]]:
        """Balls around the links that hold something in an environment, and hold it: link's number and radius [m]."""
        found = []
        for held, _column in self.in_env(env):
            furthest = (held.shape.vertices**2).sum(axis=1).max() ** 0.5 + held.shape.radius
            found.append((number(held.link), float(held.pose_in_link[:3].norm()) + float(furthest)))
        return found

    def slot_for(self, hand: int, env_ids: Tensor, name: str) -> int:
        """The slot of a hand that can take an object in all these environments, -1 for none: it is empty, or holds the
        object of that name, "" for one without, already."""
        columns = range(hand * self.slots_per_hand, (hand + 1) * self.slots_per_hand)
        for slot, column in enumerate(columns):
            others = [other for other in columns if other != column]
            if all(
                self._holds(env, column, name)
                or not (self.present[env, column] or any(self._holds(env, other, name) for other in others))
                for env in env_ids.tolist()
            ):
                return slot
        return -1

    def _holds(self, env: int, column: int, name: str) -> bool:
        held = self._held.get((env, column))
        return held is not None and name != "" and held.object == name

    def put(
        self,
        column: int,
        env_ids: Tensor,
        shape: ConvexShape,
        link: str,
        poses: Tensor,
        names: Sequence[str],
        touch_links: tuple[str, ...] = (),
    ) -> None:
        """poses (M, 7), float64: the shape's frame in the link. names: the object's name in each environment, or ""."""
        for env, pose, name in zip(env_ids.tolist(), poses, names, strict=True):
            self._held[env, column] = Held(shape, link, pose, name, touch_links)
        self.present[env_ids, column] = True
        middle, half = torch.as_tensor(shape.centre), torch.as_tensor(shape.half)
        signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 3)
        unit = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64).expand(8, 4)
        corners = torch.cat([middle + signs * half, unit], dim=-1).expand(len(poses), 8, 7)
        placed = compose(poses[:, None].expand(-1, 8, -1), corners)[..., :3]
        self._corners[env_ids, column] = placed.to(self._corners)
        self._ball[env_ids, column] = float(shape.radius)

    def groups(self, column: int, env_ids: Tensor) -> list[tuple[Held, Tensor, Tensor]]:
        """What a slot holds, equal things together: (one of them, environments, poses in the link (M, 7))."""
        groups: dict[tuple[int, str, str], list[int]] = {}
        for env in env_ids.tolist():
            if (env, column) in self._held:
                held = self._held[env, column]
                groups.setdefault((id(held.shape), held.link, held.object), []).append(env)
        return [
            (
                self._held[envs[0], column],
                torch.tensor(envs, device=env_ids.device),
                torch.stack([self._held[env, column].pose_in_link for env in envs]),
            )
            for envs in groups.values()
        ]

    def take_out(self, column: int, env_ids: Tensor) -> None:
        """Empty a slot."""
        for env in env_ids.tolist():
            self._held.pop((env, column), None)
        self.present[env_ids, column] = False
        self.end_support(column, env_ids)

    def set_support(self, column: int, env_ids: Tensor, pose: Tensor, size: Tensor) -> None:
        """The payload of a slot may touch what lies in a box: pose (M, 7) in the environment's frame, size (M, 3)."""
        self._support[env_ids, column] = pose.to(self._support)
        self._half[env_ids, column] = 0.5 * size.to(self._half)
        self.supported[env_ids, column] = True
        self.any_supported = True

    def end_support(self, column: int, env_ids: Tensor) -> None:
        self.supported[env_ids, column] = False
        self.any_supported = bool(self.supported.any())

    def lifted(self, hand_poses: Tensor, clearance: float) -> Tensor:
        """Where a supported payload's box is more than `clearance` [m] beyond a face of its support; bool, (num_envs,
        slots). hand_poses: the hands' links in the environment's frame, (num_envs, hands, 7)."""
        hands = hand_poses[:, self._hand_of_slot]
        in_env = rotate(hands[:, :, None, 3:].expand(-1, -1, 8, -1), self._corners) + hands[:, :, None, :3]
        back = conjugate(self._support[..., None, 3:].expand(-1, -1, 8, -1))
        local = rotate(back, in_env - self._support[..., None, :3])
        beyond = torch.maximum(local.amin(dim=2) - self._half, -local.amax(dim=2) - self._half).amax(dim=-1)
        return self.supported & (beyond - self._ball > clearance)
