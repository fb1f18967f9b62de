"""One prop in every MuJoCo world: what `simulo.Prop` reads and moves through."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from simulo.backends.mujoco.builder import PropMap
from simulo.backends.mujoco.worlds import Worlds
from simulo.pose import wxyz_to_matrix

_PARKING_DEPTH = 100.0  # m below the scene, far out of reach of every robot and camera
_PARKING_PITCH = 10.0  # m between parked props, so that none touches another


class MujocoBodies:
    """See `simulo.props.PropBodies`."""

    def __init__(self, worlds: Worlds, addresses: PropMap, parking_place: int):
        self.num_envs = worlds.count
        self.device = torch.device("cpu")
        self._worlds = worlds
        self._map = addresses
        self._parked = np.array([_PARKING_PITCH * parking_place, 0.0, -_PARKING_DEPTH, 1.0, 0.0, 0.0, 0.0])
        self._present = np.ones(worlds.count, dtype=bool)
        model = worlds.model
        self._weight = model.body_mass[addresses.body] * model.opt.gravity
        # Only `_place` moves a fixed prop, so its poses are remembered here: reading them from every world is slow.
        self._fixed = np.zeros((worlds.count, 7), dtype=np.float32)
        if addresses.mocap >= 0:
            for row, data in zip(self._fixed, worlds.data, strict=True):
                row[:3], row[3:] = data.mocap_pos[addresses.mocap], data.mocap_quat[addresses.mocap]

    def poses(self) -> Tensor:
        if self._map.mocap < 0:
            return torch.from_numpy(self._worlds.qpos[:, self._map.qpos : self._map.qpos + 7].astype(np.float32))
        return torch.from_numpy(self._fixed.copy())

    def velocities(self) -> Tensor:
        if self._map.mocap >= 0:
            return torch.zeros((self.num_envs, 6))
        velocity = self._worlds.qvel[:, self._map.dof : self._map.dof + 6].copy()
        rotation = wxyz_to_matrix(self._worlds.qpos[:, self._map.qpos + 3 : self._map.qpos + 7])
        velocity[:, 3:] = np.einsum("nij,nj->ni", rotation, velocity[:, 3:])  # the engine's is in the body's frame
        return torch.from_numpy(velocity.astype(np.float32))

    def present(self) -> Tensor:
        return torch.from_numpy(self._present.copy())

    def write_poses(self, poses: Tensor, env_ids: Tensor) -> None:
        for pose, env in zip(poses.numpy(), env_ids.tolist(), strict=True):
            self._place(env, pose)

    def write_present(self, present: bool, env_ids: Tensor) -> None:
        for env in env_ids.tolist():
            self._present[env] = present
            # A parked prop is held up against gravity, so that it is still there after any time.
            self._worlds.data[env].xfrc_applied[self._map.body, :3] = 0.0 if present else -self._weight
            if not present:
                self._place(env, self._parked)

    def _place(self, env: int, pose: np.ndarray) -> None:
        worlds, data, at = self._worlds, self._worlds.data[env], self._map
        worlds.moved(env, (at.body,))
        if at.mocap >= 0:
            data.mocap_pos[at.mocap] = pose[:3]
            data.mocap_quat[at.mocap] = pose[3:]
            self._fixed[env] = pose
            return
        data.qpos[at.qpos : at.qpos + 7] = worlds.qpos[env, at.qpos : at.qpos + 7] = pose
        data.qvel[at.dof : at.dof + 6] = worlds.qvel[env, at.dof : at.dof + 6] = 0.0
