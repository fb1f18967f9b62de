"""Joint commands: the buffer between a task and the simulator, and the relation of mimic joints to their leaders."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

from simulo.description import RobotDescription
from simulo.tensors import host_array


class CommandMode(IntEnum):
    """What drives a joint."""

    POSITION = 0
    VELOCITY = 1
    EFFORT = 2


@dataclass(frozen=True)
class JointCoupling:
    """q[follower] = multiplier * q[leader] + offset, for every follower in the order of the joint columns.

    leader: actuated column per follower. multiplier, offset [rad or m]: shape (num_followers,).
    """

    num_actuated: int
    leader: tuple[int, ...]
    multiplier: Tensor
    offset: Tensor

    @staticmethod
    def of(description: RobotDescription) -> JointCoupling:
        joints = description.mimic_joints
        return JointCoupling(
            len(description.joints),
            tuple(description.joint_names.index(joint.mimics) for joint in joints),
            torch.tensor([joint.multiplier for joint in joints], dtype=torch.float32),
            torch.tensor([joint.offset for joint in joints], dtype=torch.float32),
        )

    def follow(self, positions: Tensor) -> Tensor:
        """Followers' positions, shape (..., num_followers); leading columns of `positions` are the actuated joints."""
        leaders = positions[..., list(self.leader)]
        return leaders * self.multiplier.to(positions.device) + self.offset.to(positions.device)

    def extend(self, actuated: Tensor) -> Tensor:
        """Actuated positions, shape (..., num_actuated), with the followers' columns behind."""
        return torch.cat([actuated, self.follow(actuated)], dim=-1)

    def check_followers(self, rows: Tensor, columns: Tensor, names: tuple[str, ...]) -> None:
        """Raise ValueError where a follower's value comes without its leader's or contradicts it."""
        listed = columns.tolist()
        for position, column in enumerate(listed):
            if column < self.num_actuated:
                continue
            follower = column - self.num_actuated
            leader = self.leader[follower]
            if leader not in listed:
                raise ValueError(
                    f"joint {names[column]!r} follows {names[leader]!r} and takes no target of its own; "
                    f"set {names[leader]!r}, alone or in the same call"
                )
            implied = rows[:, listed.index(leader)] * float(self.multiplier[follower]) + float(self.offset[follower])
            wrong = ~torch.isclose(rows[:, position], implied, rtol=0.0, atol=1e-5, equal_nan=True)
            if wrong.any():
                row = int(wrong.nonzero()[0])
                raise ValueError(
                    f"the target {float(rows[row, position]):.6g} of joint {names[column]!r} contradicts its leader "
                    f"{names[leader]!r}, whose target makes it {float(implied[row]):.6g}; set the leader alone"
                )


class ComingTargets:
    """Position targets that a task means to command in the steps after this one: judged with it, and never applied."""

    def __init__(self) -> None:
        self._parts: list[tuple[Tensor, Tensor, Tensor]] = []

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def rows(self) -> int:
        """How many steps ahead they reach."""
        return max((rows.shape[1] for rows, _columns, _ids in self._parts), default=0)

    def announce(self, rows: Tensor, columns: Tensor, env_ids: Tensor) -> None:
        """rows [rad or m], shape (M, H, K), for K actuated columns and M env_ids; what came before is kept beside."""
        self._parts.append((rows.clone(), columns, env_ids))

    def clear(self) -> None:
        self._parts.clear()

    def after(self, commanded: Tensor, limits: Tensor) -> Tensor:
        """The chunk that begins with `commanded`, (num_envs, num_actuated): shape (num_envs, 1 + rows, num_actuated).

        Joints and environments that nothing was announced for stay as commanded; a shorter part's end is held.
        limits: the engine's clamp, shape (num_actuated, 2), which makes no number of what is none.
        """
        chunk = commanded[:, None].repeat(1, 1 + self.rows, 1)
        for rows, columns, ids in self._parts:
            held = torch.cat([rows, rows[:, -1:].expand(-1, self.rows - rows.shape[1], -1)], dim=1)
            later = torch.arange(1, 1 + self.rows, device=chunk.device)
            index = (ids.to(chunk.device)[:, None, None], later[:, None], columns.to(chunk.device))
            targets = held.to(chunk)
            chunk[index] = targets.clamp(*limits[columns].T).masked_fill(~torch.isfinite(targets), torch.nan)
        return chunk


class JointCommands:
    """One command per environment and actuated joint; positions have the followers' columns behind.

    mode: `CommandMode`, int8, shape (num_envs, num_actuated). position [rad or m]: shape (num_envs, num_joints).
    velocity [rad/s or m/s], effort [N m or N]: shape (num_envs, num_actuated).
    """

    def __init__(self, num_envs: int, num_joints: int, num_actuated: int, device: torch.device):
        self.mode = torch.zeros((num_envs, num_actuated), dtype=torch.int8, device=device)
        self.position = torch.zeros((num_envs, num_joints), device=device)
        self.velocity = torch.zeros((num_envs, num_actuated), device=device)
        self.effort = torch.zeros((num_envs, num_actuated), device=device)
        self.host_position = host_array(self.position)
        self.positions_only = True  # no velocity or effort was ever commanded: the usual case, and the cheap one

    def write(self, mode: CommandMode, values: Tensor, columns: Tensor, env_ids: Tensor) -> None:
        """values: shape (M, K), for K actuated columns and M env_ids."""
        target = {
            CommandMode.POSITION: self.position,
            CommandMode.VELOCITY: self.velocity,
            CommandMode.EFFORT: self.effort,
        }
        index = (env_ids[:, None].to(self.mode.device), columns.to(self.mode.device))
        target[mode][index] = values.to(self.mode.device)
        self.positions_only &= mode is CommandMode.POSITION
        if not self.positions_only:
            self.mode[index] = int(mode)

    def hold(self, positions: Tensor, env_ids: Tensor) -> None:
        """Position commands at `positions`, shape (M, num_joints), in these environments."""
        ids = env_ids.to(self.mode.device)
        self.position[ids] = positions.to(self.mode.device)
        self.mode[ids] = int(CommandMode.POSITION)

    def copy_rows(self, other: JointCommands, envs: Tensor | None) -> None:
        """Take over the commands of `other` in the environments of a bool mask, shape (num_envs,), or in all (None)."""
        mine, theirs = self.host_position, other.host_position
        positions_only = self.positions_only and other.positions_only
        if envs is None and positions_only and mine is not None and theirs is not None:
            mine[:] = theirs
            return
        rows = torch.ones_like(self.mode[:, :1], dtype=torch.bool) if envs is None else envs[:, None]
        torch.where(rows, other.position, self.position, out=self.position)
        if self.positions_only and other.positions_only:
            return
        self.positions_only = False
        self.mode.copy_(torch.where(rows, other.mode, self.mode))
        self.velocity.copy_(torch.where(rows, other.velocity, self.velocity))
        self.effort.copy_(torch.where(rows, other.effort, self.effort))

    def end_travel(self, destinations: Tensor, envs: Tensor) -> None:
        """Make of velocity commands the positions that they lead to, in the environments of a bool mask.

        Repeated, a velocity would lead on from there, step after step. destinations: shape (num_envs, num_actuated).
        """
        if self.positions_only:
            return
        travelling = (self.mode == CommandMode.VELOCITY) & envs[:, None]
        commanded = self.position[:, : self.mode.shape[1]]
        commanded.copy_(torch.where(travelling, destinations, commanded))
        self.mode.masked_fill_(travelling, int(CommandMode.POSITION))

    def not_finite(self) -> Tensor:
        """Where the command that counts is not finite, bool, shape (num_envs, num_actuated)."""
        commanded = self.position[:, : self.mode.shape[1]]
        if not self.positions_only:
            commanded = torch.where(self.mode == CommandMode.VELOCITY, self.velocity, commanded)
            commanded = torch.where(self.mode == CommandMode.EFFORT, self.effort, commanded)
        return ~torch.isfinite(commanded)
