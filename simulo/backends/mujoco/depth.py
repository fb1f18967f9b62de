"""Depth images by ray casting, without a display."""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from simulo.backends.mujoco.worlds import Worlds
from simulo.indexing import EnvIds, resolve_env_ids
from simulo.sensors import DepthCamera

_VISIBLE = np.array([1, 0, 0, 0, 0, 0], dtype=np.uint8)  # geom groups, as the builder sorted them


class RayCaster:
    """Casts one ray per pixel against what a camera sees, in as many environments as asked for."""

    def __init__(self, worlds: Worlds):
        self._worlds = worlds

    def render(self, camera: DepthCamera, env_ids: EnvIds | None) -> Tensor:
        """See `DepthCamera.depth`."""
        ids = resolve_env_ids(env_ids, self._worlds.count).tolist()
        depth = np.empty((len(ids), camera.height * camera.width), dtype=np.float32)
        directions = camera.rays.reshape(-1, 3).astype(np.float64) @ camera.pose.rotation.T
        origin = np.array(camera.pose.position)
        count = len(directions)
        lengths = np.linalg.norm(directions, axis=1)
        unit = (directions / lengths[:, None]).flatten()
        row_of = {env: row for row, env in enumerate(ids)}

        def cast(env: int) -> None:
            geoms, distance = np.empty(count, dtype=np.int32), np.empty(count)
            mujoco.mj_multiRay(
                self._worlds.model,
                self._worlds.data[env],
                origin,
                unit,
                _VISIBLE,
                True,
                -1,
                geoms,
                distance,
                None,
                count,
                1e10,
            )
            depth[row_of[env]] = np.where(distance < 0, np.inf, distance / lengths)

        self._worlds.for_each(ids, cast)
        return torch.from_numpy(depth.reshape(len(ids), camera.height, camera.width))
