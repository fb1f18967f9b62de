"""OpenArm picks an object from a table and places it in a bin, with its right arm. Run: simulo run tasks/pick_place.py

The scripted policy knows where things are and moves through waypoints above them, with the noise of a learned policy
on top. In a chosen fraction of episodes it is made to collide instead, to see whether a gate notices. What stands where
and how the hand moves is drawn in `simulo.evaluation.tabletop`.
Lengths in metres; the environment's frame is the robot's foot plate on the floor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

import simulo
from simulo.evaluation.clearance import RobotSurface, extent
from simulo.evaluation.scripted import ArmPath, PolicyNoise, TakesDeclarations, displacement, seen_from
from simulo.evaluation.tabletop import (
    BEHIND_FINGERS,
    BIN_CENTRE,
    BIN_INSIDE,
    BOARD,
    FINGERS,
    GAPS,
    HAZARDS,
    NEIGHBOURS,
    OBJECTS,
    TABLE,
    TABLE_TOP,
    Episode,
    Hazard,
    Planner,
    bin_parts,
)
from simulo.gate import Region
from simulo.grippers import preset
from simulo.rotations import rotate
from simulo.sensors import look_at

# Where a held object may stand: the board, and the board with the bin's floor on it. No wall lies wholly inside.
TABLE_REGION = Region(
    simulo.Pose((0.31, -0.23, TABLE_TOP - BOARD / 2)),
    (TABLE[0][1] - TABLE[0][0] + 0.02, TABLE[1][1] - TABLE[1][0] + 0.02, BOARD + 0.02),
)
BIN_REGION = Region(simulo.Pose((0.31, -0.23, TABLE_TOP - BOARD / 2 + 0.01)), (*TABLE_REGION.size[:2], BOARD + 0.04))
GRASP_DURATION = 1.6  # s: closing takes 0.7, opening and leaving 1.2
SLIP = 0.002  # m: when a point of what the hand holds has moved so far in the hand, the gate is told
REACH = 0.065  # m: no object has a point farther from its middle
# The other arm waits with its forearm raised, away from the table and within reach of this one.
LEFT_ARM = {"openarm_left_joint4": 2.0, "openarm_left_finger_joint1": 0.3}


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
        for name, size, centre in bin_parts():
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
        self.planner = Planner(
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
