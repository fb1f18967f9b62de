"""Which measured points are the robot: judged by the geometry of every link where it is measured to be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
import warp as wp

from simulo.collision.pool import PackedShape, pack_shape, pack_shapes
from simulo.collision.shapes import ConvexShape
from simulo.description.schema import LinkGeometry
from simulo.device import start_warp
from simulo.errors import PerceptionError
from simulo.perception import filter_kernels as kernels
from simulo.perception.kernel_types import env_array, kernel_intrinsics, kernel_lattice, to_transforms
from simulo.perception.solid_kernels import spare_robot_kernel
from simulo.perception.spec import GridSpec, Intrinsics
from simulo.pose import wxyz_to_xyzw
from simulo.rotations import rotate
from simulo.tensors import real_number

_MAX_SHAPES = 64
_MAX_POINTS = 64 * 256


class SelfFilter:
    """Labels the depth pixels that show the robot or what it holds.

    It works on measured link poses, each finger at its own, and always on the links' tight geometry: a swept finger
    model would swallow the object between the jaws, and with it the gate's own false stops. Static links are the
    robot too. Shapes held are labelled in the environments where `hold` put them.

    links: names in the order of the link poses. geometry: by link name; links without geometry show nothing.
    padding [m]: also labels points this far off the surface (calibration and depth error). slots: how many things
    each environment's robot can hold at once.
    """

    def __init__(
        self,
        links: Sequence[str],
        geometry: Mapping[str, LinkGeometry],
        num_envs: int,
        padding: float = 0.01,
        slots: int = 4,
        device: str = "cpu",
    ) -> None:
        if not 0.0 <= real_number(padding) < math.inf:
            raise PerceptionError(f"padding must be a finite length >= 0 in metres, got {padding!r:.60}")
        self.links, self.num_envs, self.padding, self.slots = tuple(links), num_envs, float(padding), slots
        self.device = device
        start_warp()
        pieces = [(self.links.index(name), piece) for name in geometry for piece in geometry[name].pieces]
        packed = [pack_shape(ConvexShape(piece.vertices, piece.radius)) for _, piece in pieces]
        point = pack_shape(ConvexShape(np.zeros((1, 3))))
        arrays = pack_shapes([*packed, point])
        self._next_shape, self._next_point = len(packed) + 1, len(arrays.points)
        self._held_index: dict[bytes, tuple[int, PackedShape]] = {}
        self._body = kernels.Body()
        self._body.shapes = arrays.upload(device, _MAX_SHAPES, _MAX_POINTS)
        self._body.point, self._body.pieces = len(packed), len(packed)
        self._body.link = wp.array([link for link, _ in pieces], dtype=wp.int32, device=device)
        self._body.offset = wp.array(np.array([p.offset for p in packed]), dtype=wp.vec3f, device=device)
        self._held_shape = torch.full((num_envs, slots), -1, dtype=torch.int32, device=device)
        self._held_link = torch.zeros((num_envs, slots), dtype=torch.int32, device=device)
        self._held_pose = torch.zeros((num_envs, slots, 7), dtype=torch.float32, device=device)
        self._held_pose[..., 6] = 1.0
        self._body.held_shape = wp.from_torch(self._held_shape)
        self._body.held_link = wp.from_torch(self._held_link)
        self._body.held_pose = wp.from_torch(self._held_pose, dtype=wp.transformf)
        count = len(packed) + slots
        self._shapes = wp.zeros((num_envs, count), dtype=wp.int32, device=device)
        self._poses = wp.zeros((num_envs, count), dtype=wp.transformf, device=device)

    def missing_links(self, link_poses: torch.Tensor) -> dict[int, tuple[str, ...]]:
        """Rows of link_poses, shape (M, links, 7), that a frame cannot be filtered with, and the links at fault."""
        finite = torch.isfinite(link_poses).all(dim=-1)
        if bool(finite.all()):
            return {}
        rows = torch.nonzero(~finite.all(dim=-1)).flatten().tolist()
        return {row: tuple(n for n, ok in zip(self.links, finite[row].tolist(), strict=True) if not ok) for row in rows}

    def label(
        self,
        depth: torch.Tensor,
        intrinsics: Intrinsics,
        camera_poses: torch.Tensor,
        link_poses: torch.Tensor,
        env_ids: torch.Tensor,
    ) -> torch.Tensor:
        """uint8, shaped like depth: 1 where the pixel shows the robot. Raises PerceptionError for unusable link poses.

        depth: z depth [m], shape (M, views, height, width). camera_poses: optical frames in the environment frame,
        position and wxyz, shape (M, views, 7). link_poses: in the environment frame at the time of the depth images,
        shape (M, links, 7). env_ids: int, shape (M,).
        """
        if tuple(link_poses.shape) != (len(depth), len(self.links), 7):
            wanted = (len(depth), len(self.links), 7)
            raise PerceptionError(f"link_poses has shape {tuple(link_poses.shape)}, expected {wanted}")
        missing = self.missing_links(link_poses)
        if missing:
            row, names = next(iter(missing.items()))
            raise PerceptionError(
                f"environment {int(env_ids[row])}: no pose for {', '.join(names)}; without it the robot itself would "
                "be mapped as an obstacle, so leave that environment out of this frame"
            )
        out = torch.empty(depth.shape, dtype=torch.uint8, device=self.device)
        if len(depth) == 0:
            return out
        self._place(link_poses, env_ids)
        camera = kernel_intrinsics(intrinsics)
        cameras = wp.from_torch(to_transforms(camera_poses), dtype=wp.transformf)
        images = wp.from_torch(depth.to(torch.float32).contiguous(), dtype=wp.float32)
        labels = wp.from_torch(out, dtype=wp.uint8)
        inputs = [self._body, self.padding, camera, cameras, self._shapes, self._poses, images, labels]
        wp.launch(kernels.label_kernel, dim=tuple(depth.shape), inputs=inputs, device=self.device)
        return out

    def spare(self, mask: torch.Tensor, grid: GridSpec, link_poses: torch.Tensor, env_ids: torch.Tensor) -> None:
        """Take the cells that the robot reaches, padding included, out of bricks (M, bx, by, bz), in place."""
        if len(mask) == 0:
            return
        self._place(link_poses, env_ids)
        corner = wp.transformf(
            wp.vec3f(*grid.corner.position), wp.quatf(*wxyz_to_xyzw(np.array(grid.corner.orientation_wxyz)))
        )
        bits = wp.from_torch(mask.view(len(mask), -1), dtype=wp.uint64)
        inputs = [kernel_lattice(grid), corner, self._body, self.padding, self._shapes, self._poses, bits]
        wp.launch(spare_robot_kernel, dim=bits.shape, inputs=inputs, device=self.device)

    def _place(self, link_poses: torch.Tensor, env_ids: torch.Tensor) -> None:
        """Pose every piece and every held shape for the environments of the call."""
        links = wp.from_torch(to_transforms(link_poses), dtype=wp.transformf)
        inputs = [self._body, env_array(env_ids, self.device), links, self._shapes, self._poses]
        dim = (len(env_ids), self._poses.shape[1])
        wp.launch(kernels.place_body_kernel, dim=dim, inputs=inputs, device=self.device)

    def hold(self, slot: int, shape: ConvexShape, link: str, pose_in_link: torch.Tensor, env_ids: torch.Tensor) -> None:
        """From now on the robot of these environments includes `shape`.

        pose_in_link: its frame in the frame of `link`, position [m] and wxyz, shape (M, 7).
        """
        index, packed = self._pooled(shape)
        ids = env_ids.to(self.device).long()
        pose = pose_in_link.to(self.device, torch.float32)
        offset = torch.tensor(packed.offset, device=pose.device).expand(len(pose), 3)
        origin = torch.cat([pose[:, :3] + rotate(pose[:, 3:], offset), pose[:, 3:]], dim=-1)
        self._held_pose[ids, slot] = to_transforms(origin)
        self._held_link[ids, slot] = self.links.index(link)
        self._held_shape[ids, slot] = index

    def release(self, slot: int, env_ids: torch.Tensor) -> None:
        """What `hold` put in this slot is no longer part of the robot."""
        self._held_shape[env_ids.to(self.device).long(), slot] = -1

    def _pooled(self, shape: ConvexShape) -> tuple[int, PackedShape]:
        """Index of a shape in the pool; the same shape is stored once."""
        key = shape.vertices.tobytes() + np.float64(shape.radius).tobytes()
        if key not in self._held_index:
            packed = pack_shape(shape, table=False)
            first, index = self._next_point, self._next_shape
            pool = self._body.shapes
            if index >= pool.header.shape[0] or first + len(packed.points) > pool.points.shape[0]:
                raise PerceptionError(
                    f"the self-filter has room for {_MAX_SHAPES} different held shapes of {_MAX_POINTS} vertices in "
                    "all; give equal objects equal shapes, or reduce their hulls"
                )
            header = np.array([[packed.kind, first, len(packed.points), 0]], dtype=np.int32)
            pool.header[index : index + 1].assign(header)
            pool.size[index : index + 1].assign(packed.size.reshape(1, 4))
            pool.reach[index : index + 1].assign(np.array([packed.reach], dtype=np.float32))
            if len(packed.points):
                pool.points[first : first + len(packed.points)].assign(packed.points)
            self._next_point, self._next_shape = first + len(packed.points), index + 1
            self._held_index[key] = (index, packed)
        return self._held_index[key]
