"""Cameras, self-filter and map of a simulated environment, run as on the real robot: at the cameras' own rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from simulo.collision.shapes import ConvexShape
from simulo.description.schema import RobotDescription
from simulo.errors import PerceptionError
from simulo.perception.occupancy import OccupancyMapper
from simulo.perception.self_filter import SelfFilter
from simulo.perception.solid import filled_cells
from simulo.perception.spec import DEFAULT_EVIDENCE, Evidence, GridSpec, Intrinsics
from simulo.pose import Pose
from simulo.rotations import multiply, rotate

CARVE = 0.5
"""Cells this many edges around what a hand takes are taken along: depth and pose are not exact, and a cell that is
left behind would stop the hand as soon as it moves. Less than one cell, so a neighbour's cells stay."""


class Camera(Protocol):
    """A depth camera that stands still: `simulo.sensors.DepthCamera`."""

    name: str
    pose: Pose
    width: int
    height: int
    fovy: float
    rate: float

    def depth(self, env_ids: Tensor | None = None) -> Tensor: ...


class RobotState(Protocol):
    @property
    def link_poses(self) -> Tensor: ...


class FilteredRobot(Protocol):
    """The robot that the cameras see: `simulo.robot.Robot`."""

    description: RobotDescription

    @property
    def link_names(self) -> tuple[str, ...]: ...

    @property
    def state(self) -> RobotState: ...


class Scene(Protocol):
    @property
    def robots(self) -> Mapping[str, FilteredRobot]: ...

    @property
    def cameras(self) -> Mapping[str, Camera]: ...


class Environment(Protocol):
    """What is read of a `simulo.LearningEnv`."""

    @property
    def num_envs(self) -> int: ...

    @property
    def step_count(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def scene(self) -> Scene: ...

    @property
    def dt(self) -> float: ...

    @property
    def time(self) -> float: ...


class DeploySimPerception:
    """The map of every environment, from its depth cameras. Give it to `CollisionGate.set_world`.

    `refresh` once per environment step takes a frame when one is due; several gates may share one perception, since
    asking again within a step takes no second frame. `look` builds the maps of environments that have just begun an
    episode: their robots stand still until the cameras have seen the scene often enough to believe it.

    grid: where the map lies. cameras: names in the scene, all of one size, field of view and rate; without it, every
    camera of the scene. Other settings: see `SelfFilter` and `OccupancyMapper`.
    """

    def __init__(
        self,
        env: Environment,
        grid: GridSpec,
        cameras: Sequence[str] | None = None,
        padding: float = 0.01,
        evidence: Evidence = DEFAULT_EVIDENCE,
        max_range: float = 4.0,
    ) -> None:
        self._env = env
        self.grid = grid
        self.cameras = _chosen_cameras(env.scene.cameras, cameras)
        self.robot = _only_robot(env.scene.robots)
        first = self.cameras[0]
        self._intrinsics = Intrinsics.from_fovy(first.width, first.height, first.fovy)
        self._period = max(1, round(1.0 / (first.rate * env.dt)))
        device = str(env.device)
        self.self_filter = SelfFilter(
            self.robot.link_names, self.robot.description.geometry, env.num_envs, padding, device=device
        )
        self.mapper = OccupancyMapper(
            env.num_envs, grid, self._intrinsics, len(self.cameras), evidence, max_range, device
        )
        poses = [[*c.pose.position, *c.pose.orientation_wxyz] for c in self.cameras]
        self._camera_poses = torch.tensor(poses, dtype=torch.float32, device=env.device)
        self._every_env = torch.arange(env.num_envs, device=env.device)
        self._next_step = env.step_count
        self._unseen = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
        self.revision = 0
        """Grows by one whenever a map has changed."""
        self.skipped: dict[int, tuple[str, ...]] = {}
        """Environments left out of the newest frame, and the links without a usable pose that were the reason."""

    @property
    def stamp(self) -> Tensor:
        """Environment time [s] of each map's newest frame, shape (num_envs,); -inf before the first."""
        return self.mapper.stamp

    def refresh(self) -> None:
        """Take a frame in every environment if one is due."""
        if self._env.step_count >= self._next_step:
            self._next_step = self._env.step_count + self._period
            self._take_frame(self._every_env, times=1)

    def forget(self, env_ids: Tensor) -> None:
        """Episodes have ended in these environments: their maps are worth nothing, and their hands are empty."""
        self.mapper.reset(env_ids)
        for slot in range(self.self_filter.slots):
            self.self_filter.release(slot, env_ids)
        self._unseen[env_ids] = True
        self.revision += 1

    def look(self) -> None:
        """See the environments anew that were forgotten, often enough for surfaces to count."""
        unseen = self._unseen.nonzero().flatten()
        if len(unseen):
            self._unseen[unseen] = False
            self._take_frame(unseen, times=self.mapper.evidence.frames_to_occupy)

    def unseen_cells(self) -> Tensor:
        """Bricks, int64, of the cells that no ray has reached and that the robot itself does not fill."""
        unseen = self.mapper.unknown.clone()
        self.self_filter.spare(unseen, self.grid, self.robot.state.link_poses, self._every_env)
        return unseen

    def hold(self, slot: int, shape: ConvexShape, link: str, pose_in_link: Tensor, env_ids: Tensor) -> None:
        """The robot now holds `shape`: what it fills is free of obstacles at once, and it shows none from now on.

        pose_in_link: position [m] and wxyz in the frame of `link`, shape (M, 7).
        """
        self.self_filter.hold(slot, shape, link, pose_in_link, env_ids)
        self.mapper.tell_free(self._cells_of(shape, link, pose_in_link, env_ids, CARVE * self.grid.cell), env_ids)
        self.revision += 1

    def release(self, slot: int, shape: ConvexShape, link: str, pose_in_link: Tensor, env_ids: Tensor) -> None:
        """What `hold` took is an obstacle again where it now is, but for the cells that the robot itself reaches."""
        self.self_filter.release(slot, env_ids)
        cells = self._cells_of(shape, link, pose_in_link, env_ids, 0.0)
        self.self_filter.spare(cells, self.grid, self.robot.state.link_poses[env_ids], env_ids)
        self.mapper.tell_occupied(cells, env_ids)
        self.revision += 1

    def tell_free(self, shape: ConvexShape, pose: Tensor, env_ids: Tensor) -> None:
        """Nothing fills a shape at pose (M, 7) in the environment any more, whatever the cameras said so far."""
        self.mapper.tell_free(self._cells_at(shape, pose, 0.0), env_ids)
        self.revision += 1

    def _cells_of(
        self, shape: ConvexShape, link: str, pose_in_link: Tensor, env_ids: Tensor, tolerance: float
    ) -> Tensor:
        """Bricks of the cells within `tolerance` [m] of a shape on a link where that link is now."""
        links = self.robot.state.link_poses[env_ids][:, self.robot.link_names.index(link)]
        return self._cells_at(shape, _compose(links, pose_in_link.to(links)), tolerance)

    def _cells_at(self, shape: ConvexShape, pose: Tensor, tolerance: float) -> Tensor:
        """Bricks of the cells within `tolerance` [m] of a shape at pose (M, 7) in the environment's frame."""
        corner = self.grid.corner.inverse()
        where = torch.tensor([[*corner.position, *corner.orientation_wxyz]], device=self._env.device)
        in_lattice = _compose(where.to(torch.float32), pose.to(where.device, torch.float32))
        return filled_cells(shape, in_lattice, self.grid.cell, self.grid.bricks, tolerance)

    def _take_frame(self, env_ids: Tensor, times: int) -> None:
        links = self.robot.state.link_poses[env_ids]
        missing = self.self_filter.missing_links(links)
        self.skipped = {int(env_ids[row]): names for row, names in missing.items()}
        if missing:
            usable = torch.ones(len(env_ids), dtype=torch.bool, device=env_ids.device)
            usable[list(missing)] = False
            env_ids, links = env_ids[usable], links[usable]
        if len(env_ids) == 0:
            return
        depth = torch.stack([camera.depth(env_ids) for camera in self.cameras], dim=1)
        camera_poses = self._camera_poses.expand(len(env_ids), -1, -1)
        on_robot = self.self_filter.label(depth, self._intrinsics, camera_poses, links, env_ids)
        now = torch.full((len(env_ids),), self._env.time, dtype=torch.float64, device=env_ids.device)
        for _ in range(times):
            self.mapper.integrate(depth, camera_poses, now, on_robot, env_ids)
        self.revision += 1


def _compose(a: Tensor, b: Tensor) -> Tensor:
    """Poses (..., 7): b's frame through a's."""
    return torch.cat([a[..., :3] + rotate(a[..., 3:], b[..., :3]), multiply(a[..., 3:], b[..., 3:])], dim=-1)


def _chosen_cameras(available: Mapping[str, Camera], names: Sequence[str] | None) -> tuple[Camera, ...]:
    if isinstance(names, str):
        raise PerceptionError(f"cameras must be a list of names, got {names!r} alone")
    chosen = tuple(available) if names is None else tuple(names)
    unknown = [name for name in chosen if name not in available]
    if unknown or not chosen:
        there = ", ".join(available) or "none; add a simulo.DepthCamera in the task's build"
        raise PerceptionError(f"no depth camera {', '.join(unknown) or 'to look through'}: the scene has {there}")
    cameras = tuple(available[name] for name in chosen)
    first = cameras[0]
    for camera in cameras[1:]:
        for setting in ("width", "height", "fovy", "rate"):
            if getattr(camera, setting) != getattr(first, setting):
                raise PerceptionError(
                    f"cameras of one map must agree: {camera.name!r} has {setting} {getattr(camera, setting)}, "
                    f"{first.name!r} has {getattr(first, setting)}"
                )
    return cameras


def _only_robot(robots: Mapping[str, FilteredRobot]) -> FilteredRobot:
    if len(robots) != 1:
        raise PerceptionError(f"the self-filter needs exactly one robot in the scene: {', '.join(robots) or 'none'}")
    return next(iter(robots.values()))
