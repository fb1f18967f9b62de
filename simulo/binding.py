"""What a robot has once an environment has built it: its simulator's handle, and the commands on their way there."""

from __future__ import annotations

import torch
from torch import Tensor

from simulo.commands import ComingTargets, CommandMode, JointCommands, JointCoupling
from simulo.handles import Articulation, CommandLatch
from simulo.tensors import host_array


class RobotState:
    """What the robot is doing, read from the simulator. Tensors are copies: they do not change under the reader."""

    def __init__(self, articulation: Articulation):
        self._articulation = articulation

    @property
    def joint_positions(self) -> Tensor:
        """[rad or m], float32, shape (num_envs, num_joints); columns are `Robot.joint_names`, mimic joints last."""
        return self._articulation.joint_positions()

    @property
    def joint_velocities(self) -> Tensor:
        """[rad/s or m/s], float32, shape (num_envs, num_joints)."""
        return self._articulation.joint_velocities()

    @property
    def link_poses(self) -> Tensor:
        """Position [m] and quaternion wxyz of every link in its environment's frame, shape (num_envs, num_links, 7)."""
        return self._articulation.link_poses()


class Binding:
    """A robot's part in one environment. `Robot` has the words for each of its methods; masks are bool, (num_envs,).

    commands: the buffer; accepted: what a gate last let through, and has_accepted, where it did. coming: targets of
    later steps. slack [m] and loosened: see `Robot.loosen`. spoiled: see `Robot.spoil_commands`; spoilable: whether
    anything on the robot can. control_dt [s]: how long one command is held.
    """

    def __init__(self, articulation: Articulation, control_dt: float, coupling: JointCoupling, spoilable: bool):
        num_envs, device, num_actuated = articulation.num_envs, articulation.device, coupling.num_actuated
        shape = (num_envs, num_actuated + len(coupling.leader), num_actuated)
        self.articulation = articulation
        self.control_dt = control_dt
        self.position_limits = articulation.position_limits()
        self.velocity_limits = articulation.velocity_limits()
        self.commands = JointCommands(*shape, device=device)
        self.accepted = JointCommands(*shape, device=device)
        self.coming = ComingTargets()
        self.slack = torch.zeros(num_envs, device=device)
        self.loosened = False
        self.has_accepted = torch.zeros(num_envs, dtype=torch.bool, device=device)
        self.spoiled = torch.zeros_like(self.has_accepted)
        self.spoilable = spoilable
        self.latches: list[CommandLatch] = []
        self._coupling = coupling
        self._host_accepted = host_array(self.has_accepted)

    def write_state(self, positions: Tensor, velocities: Tensor, ids: Tensor) -> None:
        """Teleport; targets follow, and nothing that was accepted before stands."""
        self.articulation.write_joint_state(positions, velocities, ids)
        self.commands.hold(positions, ids)
        self.has_accepted[ids] = False
        self.spoiled[ids] = False

    def commanded_positions(self) -> Tensor:
        num_actuated = self._coupling.num_actuated
        commands, limits = self.commands, self.position_limits
        targets = commands.position[:, :num_actuated]
        if not commands.positions_only:
            measured = self.articulation.joint_positions()[:, :num_actuated]
            velocity = commands.velocity.clamp(self.velocity_limits[:, 0], self.velocity_limits[:, 1])
            moved = measured + velocity * self.control_dt
            targets = torch.where(commands.mode == CommandMode.VELOCITY, moved, targets)
            targets = torch.where(commands.mode == CommandMode.EFFORT, measured, targets)
        # A clamp would make a limit of infinity, and an effort that is no number leaves the measured position as it is.
        targets = targets.clamp(limits[:, 0], limits[:, 1]).masked_fill(commands.not_finite(), torch.nan)
        return targets.masked_fill(self.spoiled[:, None], torch.nan) if self.spoilable else targets

    def end_step(self) -> None:
        """Forget what was said of this step alone."""
        self.coming.clear()
        if self.loosened:
            self.loosened = False
            self.slack.zero_()

    def accept(self, envs: Tensor | None) -> None:
        self.accepted.copy_rows(self.commands, envs)
        if not self.accepted.positions_only:
            everywhere = torch.ones_like(self.has_accepted)
            self.accepted.end_travel(self.commanded_positions(), everywhere if envs is None else envs)
            followers = self.accepted.position[:, self._coupling.num_actuated :]
            followers.copy_(self._coupling.follow(self.accepted.position))
        if envs is not None:
            self.has_accepted |= envs
        elif self._host_accepted is not None:
            self._host_accepted.fill(True)
        else:
            self.has_accepted.fill_(True)
        for latch in self.latches:
            latch.accept(envs)

    def restore(self, envs: Tensor) -> None:
        self.commands.copy_rows(self.accepted, envs & self.has_accepted)
        fresh = (envs & ~self.has_accepted).nonzero().flatten()
        self.commands.hold(self.articulation.joint_positions()[fresh], fresh)
        self.spoiled &= ~envs
        for latch in self.latches:
            latch.restore(envs)
