"""A gantry's suction cup moves boxes from one tray to another. Run: simulo run tasks/suction_pick.py --envs 64

Actions say where the cup's lip goes. Lengths in metres; the environment's frame is the gantry's, on the floor below the
middle of its work area.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

import simulo
from simulo.description import reference_fk
from simulo.evaluation.scripted import Route, TakesDeclarations
from simulo.gate import Region

TABLE_TOP, TABLE = 0.20, (0.90, 0.60)
TRAY_INSIDE, TRAY_WALL, TRAY_RIM, TRAY_FLOOR = (0.22, 0.42), 0.008, 0.036, 0.008  # rim and floor above the table
FROM, TO = -0.24, 0.24  # x of the trays' middles
BOXES = {
    "BoxFlat": ((0.08, 0.06, 0.03), 0.25),
    "BoxCube": ((0.05, 0.05, 0.05), 0.30),
    "BoxTall": ((0.05, 0.04, 0.07), 0.20),
}
SLOTS = (-0.13, 0.0, 0.13)  # y in a tray
SPREAD_XY, SPREAD_YAW = 0.012, 0.6  # half widths of what is drawn per box
AIM = 0.003  # standard deviation of how far the scripted policy misses a box's middle, per axis

GAP = 0.001  # between lip and box when the cup is switched on
CARRY = TABLE_TOP + 0.21  # z of the lip on its way; what it holds clears the rims
GRASP_DURATION = 1.0  # s
FLOOR_REGION = 0.030  # above the table: how high up a tray a held box may touch the floor


@dataclass(frozen=True)
class Episode:
    """places: where each box starts. actions: the scripted policy's, shape (T, 5)."""

    places: dict[str, simulo.Pose]
    actions: Tensor


class SuctionPickTask(simulo.Task):
    """Actions, shape (num_envs, 5): position of the cup's lip [m], its yaw [rad], suction (-1 off, +1 on).

    An episode succeeds once every box stands in the second tray and the cup has let go.
    """

    observation_dim: ClassVar[int] = 5 + 7 * len(BOXES)
    action_dim: ClassVar[int] = 5
    episode_length_s = 16.0
    gate_world: ClassVar[str] = "primitives"

    # --- scene -------------------------------------------------------------------------------------------------------

    def build(self, scene: simulo.Scene) -> None:
        self.robot = simulo.Robot("gantry")
        scene.add(self.robot, at="/World/Robot")
        self.gripper = simulo.SurfaceGripperActuator(
            max_grip_distance=0.004, coaxial_force_limit=25.0, shear_force_limit=15.0, forward_axis="-z"
        )
        scene.add(self.gripper, at="/World/Robot/cup/Suction")
        board = simulo.Pose((0.0, 0.0, TABLE_TOP / 2))
        scene.add(
            simulo.Prop.box((*TABLE, TABLE_TOP), fixed=True, pose=board, rgba=(0.72, 0.62, 0.48, 1)), at="/World/Table"
        )
        for tray, x in (("From", FROM), ("To", TO)):
            for part, size, centre in _tray_parts(x):
                prop = simulo.Prop.box(size, fixed=True, pose=simulo.Pose(centre), rgba=(0.25, 0.42, 0.60, 1))
                scene.add(prop, at=f"/World/{tray}{part}")
        self.boxes = {}
        for slot, (name, (size, mass)) in zip(SLOTS, BOXES.items(), strict=True):
            pose = simulo.Pose((FROM, slot, _standing(size[2])))
            self.boxes[name] = simulo.Prop.box(size, mass=mass, pose=pose, rgba=(0.80, 0.45, 0.20, 1))
            scene.add(self.boxes[name], at=f"/World/{name}")

    def on_start(self, env: simulo.LearningEnv) -> None:
        description = self.robot.description
        rest = reference_fk(description, np.zeros((1, self.robot.num_actuated)))
        self.lip_at_rest = torch.tensor(rest["cup"][0, :3, 3], dtype=torch.float32)
        self.head = self.robot.link_names.index("head")
        self.episodes: list[Episode | None] = [None] * env.num_envs
        self.told_near = torch.full((env.num_envs,), -1)  # the box that the gate was told the cup is about to touch
        self.told_held = torch.full((env.num_envs,), -1)
        self.told_low = torch.zeros(env.num_envs, dtype=torch.bool)

    def reset_idx(self, env_ids: Tensor) -> None:
        for env in env_ids.tolist():
            episode = draw(self.env.rng(env), self.lip_at_rest.double().numpy(), self.env.dt)
            self.episodes[env] = episode
            for name, box in self.boxes.items():
                box.set_pose(episode.places[name], [env])
        self.told_near[env_ids] = self.told_held[env_ids] = -1
        self.told_low[env_ids] = False

    # --- one step ----------------------------------------------------------------------------------------------------

    def apply_actions(self, actions: Tensor) -> None:
        self._tell_gate(actions[:, 4])
        slides = actions[:, :3] - self.lip_at_rest
        plunger = torch.zeros_like(actions[:, :1])
        self.robot.set_joint_position_target(torch.cat([slides, actions[:, 3:4], plunger], dim=1))
        self.gripper.set_commands(actions[:, 4])

    def on_post_physics_step(self) -> None:
        self.gripper.update(self.env.dt)

    def _tell_gate(self, commands: Tensor) -> None:
        """Say which box the cup is about to touch, which it holds and where that may stand, as each begins."""
        gate = self.env.gate
        if not isinstance(gate, TakesDeclarations):
            return
        near, held, low = self._near(), self._held(), self._low()
        for env in ((near >= 0) & (near != self.told_near) & (self.told_held < 0)).nonzero().flatten().tolist():
            self._declare_grasp(gate, env, int(near[env]))
        self.told_near = near
        for env in ((held >= 0) & (self.told_held < 0)).nonzero().flatten().tolist():
            box = self._box(int(held[env]))
            head = _pose(self.robot.state.link_poses[env, self.head])
            in_head = head.inverse() @ _pose(box.state.pose[env])
            gate.attach("cup", box.shape, in_head, support=_floor_region(FROM), env_ids=[env], object=box)
            self.told_held[env] = held[env]
        low = low.gather(1, self.told_held.clamp(min=0)[:, None])[:, 0] & (self.told_held >= 0)
        for env in (low & ~self.told_low).nonzero().flatten().tolist():
            gate.declare_place(_floor_region(TO), 3.0, hand="cup", env_ids=[env])
        self.told_low = low
        for env in ((self.told_held >= 0) & ((commands < -0.3) | (held < 0))).nonzero().flatten().tolist():
            gate.detach("cup", env_ids=[env])
            self._declare_grasp(gate, env, int(self.told_held[env]))  # the lip is at the box until it has left
            self.told_held[env] = -1

    def _declare_grasp(self, gate: TakesDeclarations, env: int, index: int) -> None:
        box = self._box(index)
        size = BOXES[box.name][0]
        gate.declare_grasp("cup", box.state.pose[env], size, GRASP_DURATION, object=box, env_ids=[env])

    def _box(self, index: int) -> simulo.Prop:
        return list(self.boxes.values())[index]

    def _near(self) -> Tensor:
        """The box that the lip is right above, shape (num_envs,), -1 for none."""
        heights = torch.tensor([size[2] for size, _ in BOXES.values()])
        apart = self.lip[:, None] - self.box_poses[..., :3]
        above = apart[..., 2] - 0.5 * heights
        near = (apart[..., :2].norm(dim=-1) < 0.02) & (above < 0.04) & (above > -0.01)
        return torch.where(near.any(dim=1), near.int().argmax(dim=1), -1)

    def _held(self) -> Tensor:
        """The box that hangs on the cup, shape (num_envs,), -1 for none."""
        held = torch.stack([self.gripper.held(box) for box in self.boxes.values()], dim=1)
        return torch.where(held.any(dim=1), held.int().argmax(dim=1), -1)

    def _low(self) -> Tensor:
        """Where a box has come down between the walls of the second tray, bool, shape (num_envs, boxes)."""
        bottoms = self.box_poses[..., 2] - 0.5 * torch.tensor([size[2] for size, _ in BOXES.values()])
        return self._over(TO, self.box_poses) & (bottoms < TABLE_TOP + FLOOR_REGION - 0.002)

    def _over(self, x: float, points: Tensor) -> Tensor:
        middle, half = torch.tensor([x, 0.0]), 0.5 * torch.tensor(TRAY_INSIDE)
        return ((points[..., :2] - middle).abs() < half).all(dim=-1)

    # --- what is seen and judged -------------------------------------------------------------------------------------

    def get_observations(self) -> Tensor:
        """Lip (3), yaw (1), every box's pose (7 each), the gripper's state (1)."""
        yaw = self.robot.state.joint_positions[:, 3:4]
        return torch.cat([self.lip, yaw, self.box_poses.flatten(1), self.gripper.state.float()[:, None]], dim=1)

    def get_rewards(self) -> Tensor:
        return self._delivered().float().mean(dim=1)

    def get_dones(self) -> tuple[dict[str, Tensor], Tensor]:
        let_go = self.gripper.state == simulo.GripperState.OPEN
        fallen = (self.box_poses[..., 2] < TABLE_TOP).any(dim=1)
        return {"moved": self._delivered().all(dim=1) & let_go, "dropped": fallen}, torch.zeros_like(fallen)

    @staticmethod
    def succeeded(reason: str) -> bool:
        """Whether an episode that ended for this reason did what was asked."""
        return reason == "moved"

    def _delivered(self) -> Tensor:
        """Which boxes stand on the second tray's floor, bool, shape (num_envs, boxes)."""
        standing = torch.tensor([_standing(size[2]) for size, _ in BOXES.values()])
        return self._over(TO, self.box_poses) & ((self.box_poses[..., 2] - standing).abs() < 0.005)

    @property
    def lip(self) -> Tensor:
        """Position of the cup's lip, shape (num_envs, 3): the slides are along the axes."""
        x, y, z, _, plunger = self.robot.state.joint_positions.unbind(dim=1)
        return self.lip_at_rest + torch.stack([x, y, z - plunger], dim=1)

    @property
    def box_poses(self) -> Tensor:
        """Shape (num_envs, boxes, 7)."""
        return torch.stack([box.state.pose for box in self.boxes.values()], dim=1)

    def scripted_policy(self) -> Callable[[simulo.LearningEnv], Tensor]:
        """Waypoints drawn with the episode, played by its steps."""

        def policy(env: simulo.LearningEnv) -> Tensor:
            rows = []
            for episode, step in zip(self.episodes, env.episode_steps.tolist(), strict=True):
                assert episode is not None, "an environment is reset before its first step"
                rows.append(episode.actions[min(step, len(episode.actions) - 1)])
            return torch.stack(rows)

        return policy


def draw(rng: np.random.Generator, home: np.ndarray, dt: float) -> Episode:
    """Boxes in the slots of the first tray, in any order, each to a slot of the second.

    home: where the lip starts. dt [s]: one environment step.
    """
    sources, targets = rng.permutation(SLOTS), rng.permutation(SLOTS)
    route, places = Route(home, 0.0, dt), {}
    for (name, (size, _)), source, target in zip(BOXES.items(), sources, targets, strict=True):
        xy = np.array([FROM, source]) + rng.uniform(-SPREAD_XY, SPREAD_XY, 2)
        yaw = rng.uniform(-SPREAD_YAW, SPREAD_YAW)
        aim, top = xy + AIM * rng.standard_normal(2), TABLE_TOP + TRAY_FLOOR + size[2]
        places[name] = simulo.Pose((*xy, _standing(size[2])), (np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)))
        there, turned = np.array([TO, target]), rng.uniform(-SPREAD_YAW, SPREAD_YAW)
        route.go("approach", np.array([*aim, CARRY]), yaw, -1.0, 0.45)
        route.go("descend", np.array([*aim, top + GAP]), yaw, -1.0, 0.20)
        route.wait("catch", 1.0, 0.1)
        route.go("lift", np.array([*aim, CARRY]), yaw, 1.0, 0.25)
        route.go("carry", np.array([*there, CARRY]), turned, 1.0, 0.45)
        route.go("lower", np.array([*there, top + GAP + 0.002]), turned, 1.0, 0.20)
        route.wait("release", -1.0, 0.1)
        route.go("leave", np.array([*there, CARRY]), turned, -1.0, 0.25)
    actions = np.column_stack([np.array(route.positions), route.yaws, route.grips])
    return Episode(places, torch.tensor(actions, dtype=torch.float32))


def _standing(height: float) -> float:
    """z of the middle of a box that stands in a tray."""
    return TABLE_TOP + TRAY_FLOOR + 0.5 * height


def _tray_parts(x: float) -> list[tuple[str, tuple[float, float, float], tuple[float, float, float]]]:
    """Name, size and centre of a tray's floor and walls."""
    (dx, dy), wall = TRAY_INSIDE, TRAY_WALL
    floor, middle = TABLE_TOP + TRAY_FLOOR / 2, TABLE_TOP + TRAY_RIM / 2
    across, along = (dx + wall) / 2, (dy + wall) / 2
    return [
        ("Floor", (dx, dy, TRAY_FLOOR), (x, 0.0, floor)),
        ("East", (wall, dy + 2 * wall, TRAY_RIM), (x + across, 0.0, middle)),
        ("West", (wall, dy + 2 * wall, TRAY_RIM), (x - across, 0.0, middle)),
        ("North", (dx, wall, TRAY_RIM), (x, along, middle)),
        ("South", (dx, wall, TRAY_RIM), (x, -along, middle)),
    ]


def _floor_region(x: float) -> Region:
    """Where a held box may stand: a tray's floor, which is wholly inside, as no wall is."""
    (dx, dy), below = TRAY_INSIDE, 0.005
    middle = TABLE_TOP + (FLOOR_REGION - below) / 2
    return Region(simulo.Pose((x, 0.0, middle)), (dx + 0.01, dy + 0.01, FLOOR_REGION + below))


def _pose(row: Tensor) -> simulo.Pose:
    """Of position and wxyz, shape (7,)."""
    values = row.double().tolist()
    return simulo.Pose(tuple(values[:3]), tuple(values[3:]))
