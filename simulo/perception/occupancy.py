"""A log-odds occupancy map per environment, from depth images and camera poses."""

from __future__ import annotations

import math
from typing import Any

import torch
import warp as wp

from simulo.collision.world import VoxelGrid
from simulo.device import start_warp
from simulo.errors import PerceptionError
from simulo.perception import grid_kernels as kernels
from simulo.perception.kernel_types import (
    env_array,
    kernel_intrinsics,
    kernel_lattice,
    kernel_rule,
    to_transforms,
)
from simulo.perception.solid_kernels import tell_kernel
from simulo.perception.spec import DEFAULT_EVIDENCE, Evidence, GridSpec, Intrinsics
from simulo.tensors import real_number


class OccupancyMapper:
    """Occupancy of N environments, each in its own frame, from depth images. All memory is allocated here.

    Within one frame hits win over misses, whichever camera and whatever order they come from: the map depends on the
    images alone. Occupied cells hold measured surface points. A cell that was never reached is unknown, and stays
    apart from free. Nothing is forgotten while it is out of sight (an arm above a table hides the table, and does not
    remove it); what ages is the map as a whole, by `age`, which the gate compares with its `max_age`.

    max_range [m]: returns beyond it are ignored, and rays without a return are free up to it. Raises PerceptionError
    for settings that would map nothing.
    """

    def __init__(
        self,
        num_envs: int,
        grid: GridSpec,
        intrinsics: Intrinsics,
        views: int,
        evidence: Evidence = DEFAULT_EVIDENCE,
        max_range: float = 4.0,
        device: str = "cpu",
    ) -> None:
        if not isinstance(grid, GridSpec):
            raise PerceptionError(f"a map lies where a GridSpec says, got {grid!r:.60}")
        if not 0.0 < real_number(max_range) < math.inf:  # where nothing is in range, nothing would be mapped
            raise PerceptionError(f"max_range must be a finite length > 0 in metres, got {max_range!r:.60}")
        if num_envs < 1 or views < 1:
            raise PerceptionError(f"a map needs an environment and a view, got {num_envs} and {views}")
        self.num_envs, self.grid, self.intrinsics, self.views = num_envs, grid, intrinsics, views
        self.evidence, self.max_range, self.device = evidence, float(max_range), device
        bx, by, bz = grid.bricks
        count = bx * by * bz
        rows, columns = -(-intrinsics.height // kernels.TILE), -(-intrinsics.width // kernels.TILE)
        self._evidence = torch.empty((num_envs, count, 64), dtype=torch.int8, device=device)
        self._settled = torch.empty((num_envs, count), dtype=torch.uint8, device=device)
        self._hits = torch.zeros((num_envs, count), dtype=torch.int64, device=device)
        self.occupied = torch.empty((num_envs, bx, by, bz), dtype=torch.int64, device=device)
        """Occupied cells, 64 to a word (bit 16 x + 4 y + z of a brick), shape (num_envs, bx, by, bz)."""
        self.unknown = torch.empty((num_envs, bx, by, bz), dtype=torch.int64, device=device)
        """Cells that no ray has reached yet, laid out like `occupied`."""
        image = (num_envs, views, intrinsics.height, intrinsics.width)
        self._free_depth = torch.zeros(image, dtype=torch.float32, device=device)
        self._no_robot = torch.zeros(image, dtype=torch.uint8, device=device)
        self._farthest = torch.zeros((num_envs, views, rows, columns), dtype=torch.float32, device=device)
        self._camera_from_lattice = torch.zeros((num_envs, views, 7), dtype=torch.float32, device=device)
        self.stamp = torch.full((num_envs,), -torch.inf, dtype=torch.float64, device=device)
        """Time [s] of each environment's newest frame; -inf before the first."""
        self._all = torch.arange(num_envs, dtype=torch.int32, device=device)
        self._lattice, self._camera = kernel_lattice(grid), kernel_intrinsics(intrinsics)
        self._rule = kernel_rule(evidence)
        self._state = self._kernel_state()
        self.reset(self._all)

    def _kernel_state(self) -> kernels.MapState:
        """The kernels' view of the tensors, made once."""
        start_warp()
        flat = (self.num_envs, -1)
        state = kernels.MapState()
        state.evidence = wp.from_torch(self._evidence, dtype=wp.int8)
        state.settled = wp.from_torch(self._settled, dtype=wp.uint8)
        state.hits = wp.from_torch(self._hits, dtype=wp.uint64)
        state.occupied = wp.from_torch(self.occupied.view(flat), dtype=wp.uint64)
        state.unknown = wp.from_torch(self.unknown.view(flat), dtype=wp.uint64)
        state.free_depth = wp.from_torch(self._free_depth, dtype=wp.float32)
        state.farthest = wp.from_torch(self._farthest, dtype=wp.float32)
        state.camera_from_lattice = wp.from_torch(self._camera_from_lattice, dtype=wp.transform)
        return state

    def reset(self, env_ids: torch.Tensor) -> None:
        """Forget everything about some environments: all cells unknown, no frame seen. env_ids: int, shape (M,)."""
        if len(env_ids) == 0:
            return
        envs = env_array(env_ids, self.device)
        self._launch(kernels.forget_kernel, (len(env_ids), self._hits.shape[1]), [envs, self._state])
        self.stamp[env_ids.long()] = -torch.inf

    def integrate(
        self,
        depth: torch.Tensor,
        camera_poses: torch.Tensor,
        time: torch.Tensor,
        on_robot: torch.Tensor | None = None,
        env_ids: torch.Tensor | None = None,
    ) -> None:
        """Take one frame of every camera into the maps of M environments.

        depth: z depth [m], float32, shape (M, views, height, width); infinite where nothing returned, NaN, zero or
        negative where the camera has nothing to say. camera_poses: optical frame in the environment frame, position
        and wxyz, shape (M, views, 7). time [s]: shape (M,). on_robot: uint8, as depth, from `SelfFilter.label`.
        env_ids: the M environments, distinct; without it, all of them in order.

        Raises PerceptionError, with nothing changed, for shapes that do not fit and poses that are not finite.
        """
        ids = self._all if env_ids is None else env_ids
        self._validate(depth, camera_poses, ids)
        count = len(ids)
        if count == 0:
            return
        envs = env_array(ids, self.device)
        poses = wp.from_torch(to_transforms(camera_poses), dtype=wp.transform)
        images = wp.from_torch(depth.to(torch.float32).contiguous(), dtype=wp.float32)
        robot = wp.from_torch(self._no_robot[:count] if on_robot is None else on_robot.contiguous(), dtype=wp.uint8)
        world = (self._lattice, self._camera)
        self._launch(kernels.place_cameras_kernel, (count, self.views), [self._lattice, envs, poses, self._state])
        self._launch(
            kernels.mark_depth_kernel,
            tuple(depth.shape),
            [*world, self.max_range, envs, poses, images, robot, self._state],
        )
        self._launch(kernels.tile_range_kernel, (count, *self._farthest.shape[1:]), [self._camera, envs, self._state])
        self._launch(
            kernels.update_kernel,
            (count, self._hits.shape[1]),
            [*world, self._rule, self.views, envs, self._state],
        )
        self.stamp[ids.long()] = time.to(self.device, torch.float64)

    def tell_free(self, mask: torch.Tensor, env_ids: torch.Tensor) -> None:
        """Free the masked cells, int64 bricks of shape (M, bx, by, bz), whatever the cameras said so far."""
        self._tell(mask, env_ids, self.evidence.floor)

    def tell_occupied(self, mask: torch.Tensor, env_ids: torch.Tensor) -> None:
        """Occupy the masked cells, just: the first ray that passes frees them again."""
        self._tell(mask, env_ids, self.evidence.occupied)

    def _tell(self, mask: torch.Tensor, env_ids: torch.Tensor, value: int) -> None:
        if len(env_ids) == 0:
            return
        told = wp.from_torch(mask.view(len(env_ids), -1), dtype=wp.uint64)
        inputs = [self._rule, value, env_array(env_ids, self.device), told, self._state]
        self._launch(tell_kernel, told.shape, inputs)

    def voxel_grid(self) -> VoxelGrid:
        """The maps as the collision check reads them: views of the live bricks, not copies."""
        corner = torch.tensor([*self.grid.corner.position, *self.grid.corner.orientation_wxyz], dtype=torch.float32)
        pose = corner.to(self.device).repeat(self.num_envs, 1)
        position, wxyz = pose[:, :3].contiguous(), pose[:, 3:].contiguous()
        return VoxelGrid(self.occupied, self.grid.cell, position, wxyz, self.unknown)

    def age(self, now: torch.Tensor) -> torch.Tensor:
        """Seconds since each environment's newest frame, infinite before the first. now [s]: shape (num_envs,)."""
        return now.to(self.device, torch.float64) - self.stamp

    def _validate(self, depth: torch.Tensor, camera_poses: torch.Tensor, ids: torch.Tensor) -> None:
        expected = (len(ids), *self._free_depth.shape[1:])
        if tuple(depth.shape) != expected:
            raise PerceptionError(
                f"depth has shape {tuple(depth.shape)}, expected (environments, views, height, width) = {expected}"
            )
        if tuple(camera_poses.shape) != (len(ids), self.views, 7):
            wanted = (len(ids), self.views, 7)
            raise PerceptionError(f"camera_poses has shape {tuple(camera_poses.shape)}, expected {wanted}")
        finite = torch.isfinite(camera_poses).all(dim=-1)
        if not bool(finite.all()):
            row, view = torch.nonzero(~finite)[0].tolist()
            raise PerceptionError(
                f"the pose of camera {view} of environment {int(ids[row])} is not finite; "
                "leave that environment out of this frame"
            )

    def _launch(self, kernel: Any, dim: tuple[int, ...], inputs: list) -> None:
        wp.launch(kernel, dim=dim, inputs=inputs, device=self.device)
