"""One robot in every MuJoCo world: what `simulo.Robot` reads and commands through."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from simulo.backends.mujoco.builder import RobotMap
from simulo.backends.mujoco.contacts import read_contacts
from simulo.backends.mujoco.drives import Drive
from simulo.backends.mujoco.worlds import Worlds
from simulo.commands import CommandMode, JointCommands
from simulo.errors import BackendError
from simulo.handles import LivePositions
from simulo.robot import Robot


class MujocoArticulation:
    """See `simulo.handles.Articulation`."""

    def __init__(self, worlds: Worlds, addresses: RobotMap, prop_bodies: dict[str, int], robot: Robot, clock: Clock):
        self.num_envs = worlds.count
        self.device = torch.device("cpu")
        self._worlds = worlds
        self._map = addresses
        self._prop_bodies = prop_bodies
        self._names = robot.joint_names
        self._clock = clock
        self._drives = addresses.drives
        self._is_servo = np.array([kind is Drive.POSITION_SERVO for kind in self._drives.kinds])
        self._link_of_body = np.full(worlds.model.nbody, -1, dtype=np.int64)
        self._link_of_body[addresses.link_bodies] = np.arange(len(addresses.link_bodies))
        self._bodies = frozenset(addresses.link_bodies.tolist())

    @property
    def physics_tick(self) -> int:
        return self._clock.tick

    def joint_positions(self) -> Tensor:
        return torch.from_numpy(self._worlds.qpos.take(self._map.qpos, axis=1).astype(np.float32))

    def live_positions(self) -> LivePositions:
        return LivePositions(torch.from_numpy(self._worlds.qpos), torch.from_numpy(self._map.qpos.astype(np.int64)))

    def joint_velocities(self) -> Tensor:
        return torch.from_numpy(self._worlds.qvel[:, self._map.dof].astype(np.float32))

    def link_poses(self) -> Tensor:
        self._worlds.refresh()
        bodies = self._map.link_bodies
        poses = np.empty((self.num_envs, len(bodies), 7), dtype=np.float32)
        for row, data in zip(poses, self._worlds.data, strict=True):
            row[:, :3] = data.xpos[bodies]
            row[:, 3:] = data.xquat[bodies]
        return torch.from_numpy(poses)

    def contact_forces(self, prop: str) -> tuple[Tensor, Tensor]:
        if prop not in self._prop_bodies:
            raise BackendError(f"the scene has no prop {prop!r}; it has {sorted(self._prop_bodies)}")
        self._worlds.refresh()
        body, links = self._prop_bodies[prop], len(self._map.link_bodies)
        pressure = np.zeros((self.num_envs, links), dtype=np.float32)
        force = np.zeros((self.num_envs, links, 3), dtype=np.float32)
        for env, data in enumerate(self._worlds.data):
            if data.ncon == 0:
                continue
            rows = read_contacts(self._worlds.model, data)
            bodies = self._worlds.model.geom_bodyid[rows.geoms]
            for side, sign in ((0, 1.0), (1, -1.0)):  # a normal points from the first body to the second
                link = self._link_of_body[bodies[:, side]]
                touching = (bodies[:, 1 - side] == body) & (link >= 0)
                np.add.at(pressure[env], link[touching], rows.normal_force[touching])
                pushes = sign * rows.normal_force[touching, None] * rows.normal[touching]
                np.add.at(force[env], link[touching], pushes)
        return torch.from_numpy(pressure), torch.from_numpy(force)

    def position_limits(self) -> Tensor:
        return self._clamp(Drive.POSITION_SERVO)

    def velocity_limits(self) -> Tensor:
        return self._clamp(Drive.VELOCITY_SERVO)

    def _clamp(self, drive: Drive) -> Tensor:
        """The control ranges of one kind of drive, in the joint's units: those of others limit something else."""
        model, drives = self._worlds.model, self._drives
        limits = np.tile(np.array([-np.inf, np.inf]), (len(drives.actuators), 1))
        clamped = model.actuator_ctrllimited[drives.actuators].astype(bool) & [kind is drive for kind in drives.kinds]
        ranges = model.actuator_ctrlrange[drives.actuators[clamped]]
        limits[clamped] = np.sort((ranges - drives.offset[clamped, None]) / drives.scale[clamped, None], axis=1)
        return torch.from_numpy(limits.astype(np.float32))

    def check_mode(self, mode: CommandMode, columns: Sequence[int]) -> None:
        fitting = {
            CommandMode.POSITION: {Drive.POSITION_SERVO},
            CommandMode.VELOCITY: {Drive.POSITION_SERVO, Drive.VELOCITY_SERVO},
            CommandMode.EFFORT: {Drive.MOTOR},
        }[mode]
        for column in columns:
            drive = self._drives.kinds[column]
            if drive not in fitting:
                raise BackendError(
                    f"joint {self._names[column]!r} takes no {mode.name.lower()} target: its MuJoCo model drives it by "
                    f"{drive.value}; it needs {' or '.join(sorted(kind.value for kind in fitting))}"
                )

    def write_joint_state(self, positions: Tensor, velocities: Tensor, env_ids: Tensor) -> None:
        worlds = self._worlds
        for row, env in enumerate(env_ids.tolist()):
            data = worlds.data[env]
            worlds.moved(env, self._bodies)
            data.qpos[self._map.qpos] = worlds.qpos[env, self._map.qpos] = positions[row].numpy()
            data.qvel[self._map.dof] = worlds.qvel[env, self._map.dof] = velocities[row].numpy()
            data.qpos[self._map.held_qpos] = worlds.qpos[env, self._map.held_qpos] = self._map.held
            data.qvel[self._map.held_dof] = worlds.qvel[env, self._map.held_dof] = 0.0

    def write_commands(self, commands: JointCommands) -> None:
        worlds, drives = self._worlds, self._drives
        actuators = drives.actuators
        targets = commands.position[:, : len(actuators)].numpy()
        if commands.positions_only:
            worlds.ctrl[:, actuators] = np.where(self._is_servo, targets * drives.scale + drives.offset, 0.0)
            return
        velocity, mode = commands.velocity.numpy().astype(np.float64), commands.mode.numpy()
        moving = mode == CommandMode.VELOCITY
        travelling = moving & self._is_servo
        command = np.where(self._is_servo, targets, 0.0)  # a motor that was given nothing to do gets no effort
        command = np.where(travelling, worlds.qpos[:, self._map.qpos[: len(actuators)]], command)
        command = np.where(moving & ~self._is_servo, velocity, command)
        command = np.where(mode == CommandMode.EFFORT, commands.effort.numpy(), command)
        worlds.ctrl[:, actuators] = command * drives.scale + drives.offset
        worlds.ramp[:, actuators] = np.where(travelling, velocity * drives.scale, 0.0)
        # A servo damps velocity itself: ahead of the moving target by this much, it damps the velocity error instead.
        worlds.lead[:, actuators] = np.where(travelling, velocity * drives.lead, 0.0)
        worlds.ramping = bool(worlds.ramp.any())


class Clock:
    """How many times physics has advanced."""

    def __init__(self) -> None:
        self.tick = 0
