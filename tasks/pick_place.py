"""OpenArm picks an object from a table and places it in a bin, with its right arm. Run: simulo run tasks/pick_place.py

The scripted policy knows where things are and moves through waypoints above them, with the noise of a learned policy
on top. In a chosen fraction of episodes it is made to collide instead, to see whether a gate notices.
Lengths in metres; the environment's frame is the robot's foot plate on the floor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import simulo
from simulo.evaluation.clearance import RobotSurface, Solid, extent, least_distance
from simulo.evaluation.scripted import (
    ArmPath,
    PolicyNoise,
    Route,
    TakesDeclarations,
    displacement,
    ease,
    seen_from,
)
from simulo.gate import Region
from simulo.grippers import preset
from simulo.props import Box, Capsule, Cylinder
from simulo.rotations import rotate
from simulo.sensors import look_at

Array = NDArray[np.float64]
Hazard = Literal["none", "neighbour", "bin", "torso", "other_arm"]
HAZARDS: tuple[Hazard, ...] = ("neighbour", "bin", "torso", "other_arm")

TABLE_TOP = 0.38
BOARD = 0.025  # the table board's thickness
TABLE = ((0.12, 0.50), (-0.54, 0.08))  # x and y extent
BIN_CENTRE = np.array([0.23, -0.37])
BIN_INSIDE, BIN_WALL, BIN_FLOOR, BIN_RIM = 0.20, 0.008, 0.006, 0.046  # edge of the square, thicknesses, rim above table
OBJECT_X, OBJECT_Y = (0.22, 0.28), (-0.16, -0.06)

# Where a held object may stand: the board, and the board with the bin's floor on it. No wall lies wholly inside.
TABLE_REGION = Region(
    simulo.Pose((0.31, -0.23, TABLE_TOP - BOARD / 2)),
    (TABLE[0][1] - TABLE[0][0] + 0.02, TABLE[1][1] - TABLE[1][0] + 0.02, BOARD + 0.02),
)
BIN_REGION = Region(simulo.Pose((0.31, -0.23, TABLE_TOP - BOARD / 2 + 0.01)), (*TABLE_REGION.size[:2], BOARD + 0.04))
GRASP_DURATION = 1.6  # s: closing takes 0.7, opening and leaving 1.2
SLIP = 0.002  # m: when a point of what the hand holds has moved so far in the hand, the gate is told
REACH = 0.065  # m: no object has a point farther from its middle

# At most 40 mm wide and 80 to 120 mm tall, standing.
OBJECTS = {
    "BoxTall": Box((0.030, 0.030, 0.110)),
    "BoxFlat": Box((0.034, 0.024, 0.085)),
    "CylinderTall": Cylinder(0.015, 0.120),
    "CylinderThin": Cylinder(0.012, 0.090),
    "CapsuleTall": Capsule(0.016, 0.078),
    "CapsuleShort": Capsule(0.014, 0.054),
}
NEIGHBOURS = {
    "NeighbourBox": Box((0.040, 0.040, 0.100)),
    "NeighbourSlab": Box((0.060, 0.030, 0.080)),
    "NeighbourCylinder": Cylinder(0.020, 0.115),
}
# From the open fingers to the nearest neighbour: what the arithmetic of collision.md grants, less, and hardly any.
GAPS = {"wide": (0.045, 0.080), "medium": (0.025, 0.045), "tight": (0.010, 0.025)}

# The object's top relative to the hand at the moment of closing: 10 mm of finger straddle it, where the open jaws are
# still 90 mm and more from its sides, and the palm is 31 mm above it. The tips then close 23 mm below the top.
TOP_IN_HAND = -0.152 + 0.010
GRASP_IN_HAND = -0.165
BELOW_TOP = TOP_IN_HAND - GRASP_IN_HAND

POSTURE = np.array([-1.0, 2.6, 0.1, 1.75, 0.6, -0.05, 0.5])  # elbow high: top-down grasps in the middle of all limits
HOME = (np.array([0.26, -0.20, 0.64]), np.deg2rad(105.0))
# The other arm waits with its forearm raised, away from the table and within reach of this one.
LEFT_ARM = {"openarm_left_joint4": 2.0, "openarm_left_finger_joint1": 0.3}

# Right-arm configurations 20 mm and more inside what their name says, each reached from home on a straight line in
# joint space that touches nothing else on its way and meets it head on, where MuJoCo's convex hulls are no larger than
# the surfaces they stand for.
COLLISIONS: dict[Hazard, tuple[tuple[float, ...], ...]] = {
    "bin": (
        (0.079, 0.358, 0.354, 1.097, 0.882, -0.546, 0.827),
        (0.111, 0.163, 0.764, 1.171, 0.964, -0.062, 1.031),
    ),
    "torso": (
        (-0.199, 2.143, 1.471, 2.343, 1.190, -0.685, 1.275),
        (0.353, 2.185, 1.308, 2.343, 0.683, -0.685, 0.035),
        (0.417, 3.216, 1.085, 1.641, 1.471, 0.685, 1.471),
    ),
    "other_arm": ((-0.382, 3.216, 1.142, 1.861, 1.471, -0.685, -0.063),),
}
FINGERS = ("openarm_right_ee_inner_finger", "openarm_right_ee_outer_finger")
BEHIND_FINGERS = ("openarm_right_ee_base_link", "openarm_right_link6", "openarm_right_link5", "openarm_right_link4")
ARM_SPEED = 0.8  # rad/s, on average, on the way to a collision


@dataclass(frozen=True)
class Standing:
    """A prop on the table: its name, pose and height."""

    name: str
    pose: simulo.Pose
    height: float


@dataclass(frozen=True)
class Episode:
    """What one episode is made of.

    neighbours: those that stand on the table; the others are away. start: right-arm joint positions [rad].
    actions: the scripted policy's, shape (T, 8). phases: name of what each of its steps does.
    """

    hazard: Hazard
    target: Standing
    neighbours: tuple[Standing, ...]
    start: Array
    actions: NDArray[np.float32]
    phases: tuple[str, ...]


class PickPlaceTask(simulo.Task):
    """Actions, shape (num_envs, 8): the right arm's seven joint targets [rad], then the gripper (-1 open, +1 close).

    neighbours: how near others stand to the open fingers, a key of GAPS; clearance [m]: no nearer than this, whatever
    that key's own least distance. hazards: the fraction of episodes, spread
    evenly over consecutive seeds, in which the scripted policy collides. noise: of the scripted policy.
    cell [m]: edge of the gate's map cells; grasp regions are one wider than the object, on each side.
    """

    observation_dim: ClassVar[int] = 24
    action_dim: ClassVar[int] = 8
    episode_length_s = 9.0
    gripper_name: ClassVar[str] = "openarm"
    map_box: ClassVar = ((0.08, -0.60, 0.30), (0.56, 0.16, 0.56))

    def __init__(
        self,
        neighbours: Literal["wide", "medium", "tight"] = "wide",
        hazards: float = 0.0,
        noise: PolicyNoise | None = None,
        cell: float = 0.01,
        clearance: float | None = None,
    ):
        if neighbours not in GAPS:
            raise ValueError(f"neighbours must be one of {', '.join(GAPS)}, got {neighbours!r}")
        if not 0.0 <= hazards <= 1.0:
            raise ValueError(f"hazards is a fraction of the episodes, between 0 and 1, got {hazards!r}")
        low, high = GAPS[neighbours]
        if clearance is not None and not 0.0 < clearance < high:
            raise ValueError(f"clearance of {neighbours} neighbours is between 0 and {high} m, got {clearance!r}")
        self.gap = (low if clearance is None else clearance, high)
        self.hazards = hazards
        self.noise = PolicyNoise() if noise is None else noise
        self.cell = cell

    # --- scene -------------------------------------------------------------------------------------------------------

    def build(self, scene: simulo.Scene) -> None:
        self.robot = simulo.Robot(asset="openarm", initial_joint_positions=LEFT_ARM)
        scene.add(self.robot, at="/World/Robot")
        (x0, x1), (y0, y1) = TABLE
        middle, wood = ((x0 + x1) / 2, (y0 + y1) / 2), (0.72, 0.62, 0.48, 1.0)
        board = simulo.Pose((*middle, TABLE_TOP - BOARD / 2))
        stand = simulo.Pose((*middle, (TABLE_TOP - BOARD) / 2))
        scene.add(simulo.Prop.box((x1 - x0, y1 - y0, BOARD), fixed=True, pose=board, rgba=wood), at="/World/Table")
        scene.add(
            simulo.Prop.box((0.20, 0.40, TABLE_TOP - BOARD), fixed=True, pose=stand, rgba=wood), at="/World/Stand"
        )
        for name, size, centre in _bin_parts():
            pose = simulo.Pose(tuple(centre))
            scene.add(simulo.Prop.box(size, fixed=True, pose=pose, rgba=(0.25, 0.42, 0.60, 1)), at=f"/World/{name}")
        away = simulo.Pose((0.0, 0.0, -10.0))
        self.objects = {n: simulo.Prop(s, mass=0.1, pose=away, rgba=(0.80, 0.30, 0.20, 1)) for n, s in OBJECTS.items()}
        self.others = {
            n: simulo.Prop(s, fixed=True, pose=away, rgba=(0.45, 0.55, 0.35, 1)) for n, s in NEIGHBOURS.items()
        }
        for name, prop in (self.objects | self.others).items():
            scene.add(prop, at=f"/World/{name}")
        for name, eye in (("FrontCamera", (0.95, -0.05, 1.05)), ("SideCamera", (-0.10, -0.95, 1.10))):
            scene.add(simulo.DepthCamera(look_at(eye, (0.27, -0.22, 0.42)), fovy=0.75), at=f"/World/{name}")

    def on_start(self, env: simulo.LearningEnv) -> None:
        description = self.robot.description
        self.gripper = simulo.ParallelGripperActuator(robot=self.robot, **preset(self.gripper_name))
        self.planner = _Planner(
            ArmPath.to_grasp(description, "right"),
            RobotSurface.of(description, FINGERS + BEHIND_FINGERS),
            np.array([LEFT_ARM.get(name, 0.0) for name in description.joint_names]),
            self.gap,
            self.noise,
            env.dt,
        )
        self.arm_columns = torch.tensor(self.planner.arm.columns)
        self.grasp_point = torch.tensor(description.gripper("right").grasp_frame.position)
        self.hand = self.robot.link_names.index(description.gripper("right").hand_link)
        self._known: dict[tuple[int, int], Episode] = {}
        self.episodes: list[Episode | None] = [None] * env.num_envs
        self.holding = torch.zeros(env.num_envs, dtype=torch.bool)  # what the gate was told, not what the hand does
        self.placing = torch.zeros(env.num_envs, dtype=torch.bool)
        self.told_in_hand = torch.zeros(env.num_envs, 7)  # where in the hand

    def reset_idx(self, env_ids: Tensor) -> None:
        for env in env_ids.tolist():
            episode = self._drawn(env)
            self.episodes[env] = episode
            for name, prop in (self.objects | self.others).items():
                standing = {s.name: s for s in (episode.target, *episode.neighbours)}.get(name)
                if standing is None:
                    prop.park([env])
                else:
                    prop.set_pose(standing.pose, [env])
            joints = self.planner.whole_arm(episode.start[None])[0]
            self.robot.set_joint_positions(joints, [env])
        self.gripper.reset(env_ids)
        self.holding[env_ids] = self.placing[env_ids] = False

    def _drawn(self, env: int) -> Episode:
        """The present episode, drawn from its own stream; drawn once where an episode is begun again."""
        key = self.env.episode_seed(env)
        if key not in self._known:
            while len(self._known) >= 4 * self.env.num_envs:
                del self._known[next(iter(self._known))]
            self._known[key] = self.planner.draw(self._hazard_in(*key), self.env.rng(env))
        return self._known[key]

    def _hazard_in(self, seed: int, number: int) -> Hazard:
        """Consecutive seeds hold exactly the asked fraction of hazards, their kinds in turn."""
        before, after = (int(np.floor((seed + number + k) * self.hazards + 1e-9)) for k in (0, 1))
        return HAZARDS[before % len(HAZARDS)] if after > before else "none"

    def hazard_of(self, env_id: int) -> str:
        """What is made to go wrong in an environment's present episode, "none" for nothing."""
        return self._episode(env_id).hazard

    def _episode(self, env_id: int) -> Episode:
        episode = self.episodes[env_id]
        if episode is None:
            raise RuntimeError("no episode has been drawn yet; call env.reset() first")
        return episode

    # --- one step ----------------------------------------------------------------------------------------------------

    def apply_actions(self, actions: Tensor) -> None:
        self._tell_gate(closes=actions[:, -1] > 0.3, opens=actions[:, -1] < -0.3)
        self.robot.set_joint_position_target(actions[:, :7], joint_ids=self.arm_columns)
        self.gripper.set_commands(actions[:, -1])

    def on_post_physics_step(self) -> None:
        self.gripper.update(self.env.dt)

    def _tell_gate(self, closes: Tensor, opens: Tensor) -> None:
        """Say what the hand is about to touch, holds, and where that may stand, as each begins."""
        gate = self.env.gate
        if not isinstance(gate, TakesDeclarations):
            return
        closing = self.gripper.state != simulo.GripperState.OPEN
        holds = torch.stack([self.gripper.held(prop) for prop in self.objects.values()]).any(dim=0)
        in_hand = seen_from(self.robot.state.link_poses[:, self.hand], self.object_pose)
        for env in (closes & ~closing & ~self.holding).nonzero().flatten().tolist():
            self._declare_grasp(gate, env)
        slipped = self.holding & (displacement(self.told_in_hand, in_hand, REACH) > SLIP)
        taken = (self.gripper.state == simulo.GripperState.CLOSED) & holds & ~self.holding
        for env in (taken | slipped).nonzero().flatten().tolist():
            name, support = self._episode(env).target.name, None if slipped[env] else TABLE_REGION
            gate.attach("right", OBJECTS[name], in_hand[env], support=support, env_ids=[env], object=name)
            self.told_in_hand[env] = in_hand[env]
        self.holding |= taken
        low = self.holding & self._above_bin(self.object_pose) & (self.object_bottom < TABLE_TOP + 0.035)
        for env in (low & ~self.placing).nonzero().flatten().tolist():
            gate.declare_place(BIN_REGION, 5.0, hand="right", env_ids=[env])
        self.placing = low
        for env in (opens & self.holding).nonzero().flatten().tolist():
            self._declare_grasp(gate, env)  # the fingers are around the object for as long as they open
            gate.detach("right", env_ids=[env])
            self.holding[env] = False

    def _declare_grasp(self, gate: TakesDeclarations, env: int) -> None:
        """The object may be touched where it stands, if it stands between the fingers."""
        pose = self.object_pose[env]
        if (pose[:3] - self.grasp_position[env])[:2].norm() < 0.05:
            name = self._episode(env).target.name
            size = np.array(extent(OBJECTS[name])) + 2.0 * self.cell
            gate.declare_grasp("right", pose, tuple(size), GRASP_DURATION, object=name, env_ids=[env])

    def _above_bin(self, pose: Tensor) -> Tensor:
        return ((pose[:, :2] - torch.tensor(BIN_CENTRE, dtype=pose.dtype)).abs() < BIN_INSIDE / 2).all(dim=1)

    def get_observations(self) -> Tensor:
        """Right arm and gripper positions (8) and velocities (8), the object's pose (7), the gripper's state (1)."""
        state, columns = self.robot.state, [*self.arm_columns.tolist(), self.arm_columns[-1].item() + 1]
        joints, speeds = state.joint_positions[:, columns], state.joint_velocities[:, columns]
        return torch.cat([joints, speeds, self.object_pose, self.gripper.state.float()[:, None]], dim=1)

    def get_rewards(self) -> Tensor:
        return self.placed.float()

    def get_dones(self) -> tuple[dict[str, Tensor], Tensor]:
        fallen = self.object_pose[:, 2] < TABLE_TOP - 0.05
        return {"placed": self.placed, "dropped": fallen}, torch.zeros_like(fallen)

    @staticmethod
    def succeeded(reason: str) -> bool:
        """Whether an episode that ended for this reason did what was asked."""
        return reason == "placed"

    @property
    def object_pose(self) -> Tensor:
        """Pose of the object to pick in its environment's frame, shape (num_envs, 7)."""
        poses = torch.stack([prop.state.pose for prop in self.objects.values()])
        order = list(self.objects)
        chosen = torch.tensor([order.index(e.target.name) if e else 0 for e in self.episodes])
        return poses[chosen, torch.arange(self.env.num_envs)]

    @property
    def object_bottom(self) -> Tensor:
        """Height of the object's lowest point while it stands upright or hangs so [m], shape (num_envs,)."""
        heights = torch.tensor([self._episode(env).target.height for env in range(self.env.num_envs)])
        return self.object_pose[:, 2] - 0.5 * heights

    @property
    def grasp_position(self) -> Tensor:
        """The point between the fingertips in its environment's frame [m], shape (num_envs, 3)."""
        pose = self.robot.state.link_poses[:, self.hand]
        return pose[:, :3] + rotate(pose[:, 3:], self.grasp_point.to(pose.dtype).expand(len(pose), 3))

    @property
    def placed(self) -> Tensor:
        """Where the object lies in the bin and the open hand has left it, bool, shape (num_envs,)."""
        pose = self.object_pose
        inside = self._above_bin(pose) & (pose[:, 2] < TABLE_TOP + 0.08)
        left = self.grasp_position[:, 2] > TABLE_TOP + 0.17
        return inside & left & (self.gripper.state == simulo.GripperState.OPEN)

    def scripted_policy(self) -> Callable[[simulo.LearningEnv], Tensor]:
        """The policy that plays what each episode was drawn with: env to actions (num_envs, 8)."""
        return self._play

    def _play(self, env: simulo.LearningEnv) -> Tensor:
        rows = []
        for env_id, step in enumerate(env.episode_steps.tolist()):
            episode = self._episode(env_id)
            rows.append(episode.actions[min(step, len(episode.actions) - 1)])
        return torch.from_numpy(np.stack(rows))


# --- what an episode holds, drawn from its own random stream ---------------------------------------------------------


@dataclass(frozen=True)
class _Planner:
    """Draws episodes: what stands where, and how the scripted policy moves."""

    arm: ArmPath
    surface: RobotSurface
    parked: Array  # all actuated joints where the task keeps them, shape (16,)
    gap: tuple[float, float]
    noise: PolicyNoise
    dt: float

    def draw(self, hazard: Hazard, rng: np.random.Generator) -> Episode:
        for _ in range(50):
            target = self._target(rng)
            route = self._pick_route(target)
            q = self._joints(route)
            if q is None:
                continue
            neighbours = self._neighbours(target, route, q, rng)
            if hazard == "neighbour" and neighbours:
                route, q = self._press_route(target, neighbours, rng)
            if not neighbours or q is None:
                continue
            grips, phases = np.array(route.grips), tuple(route.phases)
            if hazard in COLLISIONS:
                q = self._sweep(q[0], np.array(COLLISIONS[hazard][rng.integers(len(COLLISIONS[hazard]))]))
                grips, phases = np.full(len(q), -1.0), ("collide",) * len(q)
            noisy = self.arm.disturb(q, self.noise.sample(len(q), self.dt, rng))
            actions = np.column_stack([noisy, grips]).astype(np.float32)
            return Episode(hazard, target, neighbours, q[0], actions, phases)
        raise RuntimeError("no reachable layout in 50 draws; the table, the bin and the robot no longer fit together")

    def whole_arm(self, q: Array) -> Array:
        """All actuated joints, shape (T, 16), for right-arm positions (T, 7): fingers open, the other arm parked."""
        joints = np.tile(self.parked, (len(q), 1))
        joints[:, list(self.arm.columns)] = q
        joints[:, self.arm.columns[-1] + 1] = -0.7854
        return joints

    def _target(self, rng: np.random.Generator) -> Standing:
        name = list(OBJECTS)[rng.integers(len(OBJECTS))]
        xy = np.array([rng.uniform(*OBJECT_X), rng.uniform(*OBJECT_Y)])
        return _standing(name, OBJECTS[name], xy, _comfortable_yaw(xy) + rng.uniform(-0.1, 0.1))

    def _pick_route(self, target: Standing) -> Route:
        xy, yaw = np.array(target.pose.position[:2]), _comfortable_yaw(np.array(target.pose.position[:2]))
        grasp_z = TABLE_TOP + target.height - BELOW_TOP
        # The held object clears the tallest neighbour by 45 mm; it is set down on the bin's floor, or dropped on it
        # from as low as the fingers get over the rim.
        carry_z = TABLE_TOP + 0.165 + target.height - BELOW_TOP
        place_z = TABLE_TOP + max(BIN_FLOOR + 0.006 + target.height - BELOW_TOP, BIN_RIM + 0.035)
        bin_yaw = _comfortable_yaw(BIN_CENTRE)
        route = Route(*HOME, self.dt)
        route.go("transit", np.array([*xy, grasp_z + 0.10]), yaw, -1.0, 0.25)
        route.go("descend", np.array([*xy, grasp_z]), yaw, -1.0, 0.12)
        route.wait("close", 1.0, 0.7)
        route.go("lift", np.array([*xy, carry_z]), yaw, 1.0, 0.20)
        route.go("carry", np.array([*BIN_CENTRE, carry_z]), bin_yaw, 1.0, 0.28)
        route.go("lower", np.array([*BIN_CENTRE, place_z]), bin_yaw, 1.0, 0.15)
        route.wait("open", -1.0, 0.5)
        route.go("retreat", np.array([*BIN_CENTRE, place_z + 0.14]), bin_yaw, -1.0, 0.20)
        route.go("home", HOME[0], HOME[1], -1.0, 0.30)
        return route

    def _press_route(
        self, target: Standing, neighbours: tuple[Standing, ...], rng: np.random.Generator
    ) -> tuple[Route, Array | None]:
        """Down onto a neighbour with one open finger, 30 mm too deep and not slowly, with nothing else in the way."""
        for _ in range(20):
            hit = neighbours[rng.integers(len(neighbours))]
            xy = np.array(hit.pose.position[:2])
            yaw = _comfortable_yaw(xy) + rng.uniform(-0.4, 0.4)
            finger = rng.choice([-0.077, 0.077]) * np.array([-np.sin(yaw), np.cos(yaw)])
            if (xy - finger)[0] < 0.20:  # MuJoCo's hull of the torso stands out to there above the table
                continue
            touch_z = TABLE_TOP + hit.height + (GRASP_IN_HAND + 0.152)
            route = Route(*HOME, self.dt)
            route.go("transit", np.array([*(xy - finger), touch_z + 0.09]), yaw, -1.0, 0.25)
            route.go("collide", np.array([*(xy - finger), touch_z - 0.030]), yaw, -1.0, 0.13)
            route.wait("collide", -1.0, 0.8)
            q = self._joints(route)
            if q is None:
                continue
            pressing = np.array([phase == "collide" for phase in route.phases])
            fastest = np.abs(np.diff(q[pressing], axis=0)).max() / self.dt
            if fastest > 1.1:  # rad/s: a joint that lags turns the finger where no command was
                continue
            path = self.whole_arm(q)[::4]
            everything = [(s.pose, (OBJECTS | NEIGHBOURS)[s.name]) for s in (target, *neighbours)] + _bin_solids()
            rest = [solid for solid in everything if solid[0] is not hit.pose]
            above = self.whole_arm(q[~pressing])[::4]
            clear = (
                least_distance(rest, self.surface.along(path, FINGERS + BEHIND_FINGERS)),
                least_distance(everything, self.surface.along(path, BEHIND_FINGERS)),
                least_distance(everything, self.surface.along(above, FINGERS)),
            )
            if min(clear) > 0.03:
                return route, q
        return Route(*HOME, self.dt), None

    def _sweep(self, start: Array, end: Array) -> Array:
        """Straight to a configuration in joint space, ever faster, then staying there, shape (T, 7).

        What is commanded runs ahead of the arm, as far as it is fast: it collides first, and the arm after it.
        """
        steps = int(np.ceil(np.abs(end - start).max() / ARM_SPEED / self.dt))
        progress = np.concatenate([[0.0], 2.0 * ease(2 * steps)[:steps], np.ones(round(0.8 / self.dt))])
        return start + progress[:, None] * (end - start)

    def _joints(self, route: Route) -> Array | None:
        """The route in joint space, shape (T, 7), or None where the arm does not reach along all of it."""
        q, error = self.arm.solve(route.poses, POSTURE)
        return q if error.max() < 1e-3 else None

    def _neighbours(self, target: Standing, route: Route, q: Array, rng: np.random.Generator) -> tuple[Standing, ...]:
        """Up to three, the gap away from the open fingers on their way to the object, clear of the rest of the arm."""
        near = [p in ("transit", "descend", "close", "lift") for p in route.phases]
        fingers = self.surface.along(self.whole_arm(q[near])[::4], FINGERS)
        others = self.surface.along(self.whole_arm(q)[::8], BEHIND_FINGERS)
        taken = [(target.pose, OBJECTS[target.name]), *_bin_solids()]
        chosen: list[Standing] = []
        for name, shape in NEIGHBOURS.items():
            for _ in range(40):
                bearing, reach = rng.uniform(-np.pi, np.pi), rng.uniform(0.07, 0.22)
                xy = np.array(target.pose.position[:2]) + reach * np.array([np.cos(bearing), np.sin(bearing)])
                candidate = _standing(name, shape, xy, rng.uniform(-np.pi, np.pi))
                solid = [(candidate.pose, shape)]
                if not all(low + 0.04 < v < high - 0.04 for v, (low, high) in zip(xy, TABLE, strict=True)):
                    continue
                if min(np.linalg.norm(xy - np.array(pose.position[:2])) for pose, _ in taken) < 0.09:
                    continue
                if self.gap[0] < least_distance(solid, fingers) < self.gap[1] and least_distance(solid, others) > max(
                    self.gap[0], 0.045
                ):
                    chosen.append(candidate)
                    taken += solid
                    break
        return tuple(chosen)


def _comfortable_yaw(xy: Array) -> float:
    """Yaw of the hand at a place, with every joint of the arm away from its limits."""
    return float(np.deg2rad(np.interp(xy[1], [-0.37, -0.27, -0.17, -0.07, -0.02], [75.0, 98.0, 118.0, 132.0, 135.0])))


def _standing(name: str, shape: Box | Cylinder | Capsule, xy: Array, yaw: float) -> Standing:
    height = extent(shape)[2]
    pose = simulo.Pose(
        (float(xy[0]), float(xy[1]), TABLE_TOP + height / 2), (np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))
    )
    return Standing(name, pose, height)


def _bin_parts() -> list[tuple[str, tuple[float, float, float], Array]]:
    """Name, size and centre of the bin's floor and walls."""
    outer, inner = BIN_INSIDE + 2 * BIN_WALL, BIN_INSIDE
    low, high = np.array([*BIN_CENTRE, TABLE_TOP + BIN_FLOOR / 2]), np.array([*BIN_CENTRE, TABLE_TOP + BIN_RIM / 2])
    across, along = np.array([(inner + BIN_WALL) / 2, 0.0, 0.0]), np.array([0.0, (inner + BIN_WALL) / 2, 0.0])
    return [
        ("BinFloor", (outer, outer, BIN_FLOOR), low),
        ("BinFar", (BIN_WALL, outer, BIN_RIM), high + across),
        ("BinNear", (BIN_WALL, outer, BIN_RIM), high - across),
        ("BinLeft", (inner, BIN_WALL, BIN_RIM), high + along),
        ("BinRight", (inner, BIN_WALL, BIN_RIM), high - along),
    ]


def _bin_solids() -> list[Solid]:
    return [(simulo.Pose(tuple(centre)), Box(size)) for _, size, centre in _bin_parts()]
