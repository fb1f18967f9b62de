"""A parallel gripper lifts a cube off a table and holds it. Run: simulo run tasks/lift.py --gripper franka_hand

The same task for every preset of `simulo.grippers`: only the line that constructs the gripper knows which one it is.
Actions say where the grasp point goes, so that a policy reads the same on any arm. Lengths in metres, angles in
radians; the environment's frame is the robot's base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

import simulo
from simulo.controllers.differential_ik import Residual
from simulo.description import RobotDescription, load_description, reference_fk
from simulo.evaluation.scripted import ArmPath, TakesDeclarations, displacement, seen_from
from simulo.gate import Region
from simulo.grippers import GripperPreset, preset
from simulo.rotations import rotate

CUBE = 0.04
BOARD = 0.03  # the table board's thickness
LIFT, HOLD = 0.10, 2.0  # m above where the cube stood; s
HOME_HEIGHT = 0.14  # of the grasp point above the table
SPREAD_XY, SPREAD_YAW = 0.03, 0.2  # half widths of what is drawn per episode
AIM = 0.002  # standard deviation of how far the scripted policy misses the cube's middle, per axis
GAP = 0.012  # between an open finger and the cube while the hand comes down
ABOVE_TABLE = 0.008  # between the fingertips and the table, at the least
ARRIVED = 0.004  # how near the hand is to where it was sent when the next thing is done
GRASP_DURATION = 4.0  # s
SLIP = 0.002  # when a point of the held cube has moved so far in the hand, the gate is told


@dataclass(frozen=True)
class Station:
    """Where an arm reaches a table from above.

    middle: x, y of where cubes stand. table_top: z. yaw: of the closing direction, comfortable there. posture: of the
    arm's joints, base to hand, near one with the hand above the middle. parked: other joints that have to be away.
    """

    middle: tuple[float, float]
    table_top: float
    yaw: float
    posture: tuple[float, ...]
    parked: Mapping[str, float] = field(default_factory=dict)


STATIONS = {
    "openarm": Station((0.25, -0.12), 0.38, 0.75, (-1.0, 2.6, 0.1, 1.75, 0.6, 0.0, 0.5), {"openarm_left_joint4": 2.0}),
    "openarm_left": Station(
        (0.25, 0.12), 0.38, -0.75, (1.0, -2.6, -0.1, 1.75, -0.6, 0.0, -0.5), {"openarm_right_joint4": 2.0}
    ),
    "franka_hand": Station((0.50, 0.0), 0.0, np.pi / 2, (0.0, 0.2, 0.0, -2.2, 0.0, 2.4, np.pi / 4)),
    "robotiq_2f85": Station((0.45, 0.0), 0.0, np.pi / 2, (2.84, -1.6, 2.11, -2.08, -np.pi / 2, -0.3)),
    "so101": Station((0.22, 0.0), -0.12, np.pi, (0.0, 0.6, 0.6, 0.4, 0.0)),  # it reaches little above its own foot
}


class LiftTask(simulo.Task):
    """Actions, shape (num_envs, 5): position of the grasp point, yaw of the closing direction, gripper (+1 closes).

    gripper: a preset's name. An episode succeeds once the cube has been `LIFT` above where it stood, held, for `HOLD`.
    """

    observation_dim: ClassVar[int] = 15
    action_dim: ClassVar[int] = 5
    episode_length_s = 12.0
    gate_world: ClassVar[str] = "primitives"

    def __init__(self, gripper: str = "openarm"):
        self.gripper_name, self.preset = gripper, preset(gripper)
        if gripper not in STATIONS:
            raise ValueError(f"the gripper {gripper!r} is on no arm that has a station here; {', '.join(STATIONS)} are")
        self.station = STATIONS[gripper]

    # --- scene -------------------------------------------------------------------------------------------------------

    def build(self, scene: simulo.Scene) -> None:
        description = load_description(self.preset.robot)
        posture = dict(zip(arm_joints(description, self.preset), self.station.posture, strict=True))
        posture |= self.station.parked
        self.robot = simulo.Robot(description, initial_joint_positions=posture)
        scene.add(self.robot, at="/World/Robot")
        (x, y), top = self.station.middle, self.station.table_top
        board = simulo.Pose((x, y, top - BOARD / 2))
        table = simulo.Prop.box((0.24, 0.24, BOARD), fixed=True, pose=board, rgba=(0.72, 0.62, 0.48, 1.0))
        scene.add(table, at="/World/Table")
        self.cube = simulo.Prop.box((CUBE, CUBE, CUBE), mass=0.04, pose=simulo.Pose((x, y, top + CUBE / 2)))
        scene.add(self.cube, at="/World/Cube")

    def on_start(self, env: simulo.LearningEnv) -> None:
        self.gripper = simulo.ParallelGripperActuator(robot=self.robot, **self.preset)
        description, hand = self.robot.description, self.robot.description.gripper(self.preset.hand)
        self.closing = Closing.of(description, self.preset)
        arm = arm_joints(description, self.preset)
        self.ik = simulo.DifferentialIKController(self.robot, f"gripper:{hand.name}", arm)
        self.hand_link, self.grasp_point = self.robot.link_names.index(hand.hand_link), hand.grasp_frame.position
        self.start = torch.zeros(env.num_envs, 4)  # x, y, z of the cube and its yaw, as drawn
        self.aim = torch.zeros(env.num_envs, 2)
        self.held_for = torch.zeros(env.num_envs)
        self.told_held = torch.zeros(env.num_envs, dtype=torch.bool)
        self.told_in_hand = torch.zeros(env.num_envs, 7)
        self.ready = self._ready()

    def _ready(self) -> Tensor:
        """Joint positions, shape (num_actuated,), with the open hand above the middle of the table."""
        home = torch.tensor([[*self.station.middle, self.station.table_top + HOME_HEIGHT, self.station.yaw]])
        for _ in range(20):
            residual = self._move(home.expand(self.env.num_envs, 4))
        if residual.position.max() > 1e-3 or residual.rotation.max() > 0.05:
            raise RuntimeError(f"{self.preset.robot} does not reach the home pose of its station: {residual}")
        ready = self.robot.joint_position_targets[0, : self.robot.num_actuated].clone()
        ready[self.robot.find_joints(self.preset.joint)] = self.preset.open_width
        return ready

    def _move(self, goals: Tensor) -> Residual:
        """goals, shape (num_envs, 4): position of the grasp point and yaw of the closing direction."""
        half = 0.5 * (goals[:, 3] - self.closing.yaw)
        down = torch.stack([torch.zeros_like(half), half.cos(), half.sin(), torch.zeros_like(half)], dim=1)
        return self.ik.move_to(goals[:, :3], down)

    def reset_idx(self, env_ids: Tensor) -> None:
        for env in env_ids.tolist():
            rng = self.env.rng(env)
            x, y = np.array(self.station.middle) + rng.uniform(-SPREAD_XY, SPREAD_XY, 2)
            yaw = self.station.yaw + rng.uniform(-SPREAD_YAW, SPREAD_YAW)
            self.start[env] = torch.tensor([x, y, self.station.table_top + CUBE / 2, yaw])
            self.aim[env] = torch.from_numpy(AIM * rng.standard_normal(2))
            pose = simulo.Pose(tuple(self.start[env, :3].tolist()), (np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)))
            self.cube.set_pose(pose, [env])
        self.robot.set_joint_positions(self.ready, env_ids)
        self.gripper.reset(env_ids)
        self.held_for[env_ids] = 0.0
        self.told_held[env_ids] = False

    # --- one step ----------------------------------------------------------------------------------------------------

    def apply_actions(self, actions: Tensor) -> None:
        self._tell_gate(actions[:, -1])
        self._move(actions[:, :4])
        self.gripper.set_commands(actions[:, -1])

    def on_post_physics_step(self) -> None:
        self.gripper.update(self.env.dt)
        up = self.raised >= LIFT
        self.held_for = torch.where(up & self.gripper.held(self.cube), self.held_for + self.env.dt, 0.0)

    def _tell_gate(self, commands: Tensor) -> None:
        """Say when the fingers are about to touch the cube or to leave it, and when the hand holds it."""
        gate = self.env.gate
        if not isinstance(gate, TakesDeclarations):
            return
        hand, pose, state = self.preset.hand, self.cube.state.pose, self.gripper.state
        taken = (state == simulo.GripperState.CLOSED) & self.gripper.held(self.cube) & ~self.told_held
        closes = (commands > 0.3) & (state == simulo.GripperState.OPEN)
        leaves = (commands < -0.3) & self.told_held
        in_hand = seen_from(self.robot.state.link_poses[:, self.hand_link], pose)
        slipped = self.told_held & ~leaves & (displacement(self.told_in_hand, in_hand, CUBE) > SLIP)
        for env in (closes | leaves).nonzero().flatten().tolist():
            gate.declare_grasp(hand, pose[env], (CUBE,) * 3, GRASP_DURATION, object=self.cube, env_ids=[env])
        for env in (taken | slipped).nonzero().flatten().tolist():
            support = None if slipped[env] else self._table()
            gate.attach(hand, self.cube.shape, in_hand[env], support=support, env_ids=[env], object=self.cube)
            self.told_in_hand[env] = in_hand[env]
        if leaves.any():
            gate.detach(hand, env_ids=leaves.nonzero().flatten())
        self.told_held = (self.told_held | taken) & ~leaves

    def _table(self) -> Region:
        (x, y), top = self.station.middle, self.station.table_top
        return Region(simulo.Pose((x, y, top - BOARD / 2)), (0.26, 0.26, BOARD + 0.02))

    def get_observations(self) -> Tensor:
        """Grasp point (3), cube pose (7), where it stood (3), aperture (1), the gripper's state (1)."""
        gripper = [self.gripper.aperture[:, None], self.gripper.state.float()[:, None]]
        return torch.cat([self.grasp_position, self.cube.state.pose, self.start[:, :3], *gripper], dim=1).float()

    def get_rewards(self) -> Tensor:
        return self.held_for / HOLD + self.raised.clamp(0.0, LIFT)

    def get_dones(self) -> tuple[dict[str, Tensor], Tensor]:
        fallen = self.raised < -0.05
        return {"lifted": self.held_for >= HOLD - 1e-6, "dropped": fallen}, torch.zeros_like(fallen)

    @staticmethod
    def succeeded(reason: str) -> bool:
        """Whether an episode that ended for this reason did what was asked."""
        return reason == "lifted"

    @property
    def raised(self) -> Tensor:
        """How far the cube is above where it stood, shape (num_envs,)."""
        return self.cube.state.pose[:, 2].float() - self.start[:, 2]

    @property
    def grasp_height(self) -> float:
        """Where the hand should take the cube, above its middle: there, unless the fingers reach down to the table."""
        return max(0.0, self.closing.reach + ABOVE_TABLE - CUBE / 2)

    @property
    def grasp_position(self) -> Tensor:
        """The grasp point in the environment's frame, shape (num_envs, 3)."""
        pose = self.robot.state.link_poses[:, self.hand_link]
        return pose[:, :3] + rotate(pose[:, 3:], torch.tensor(self.grasp_point, dtype=pose.dtype).expand(len(pose), 3))

    def scripted_policy(self) -> Callable[[simulo.LearningEnv], Tensor]:
        """Above the cube, down, close until the fingers have stopped, up, and stay there."""
        return _Script(self)


@dataclass(frozen=True)
class Closing:
    """How a hand closes, seen from its grasp point along its approach.

    yaw: of the closing direction. shift: where along it a cube should be while the hand comes down, so that no open
    finger touches it; not 0 where one jaw is fixed beside the grasp point. reach: how far beyond the grasp point the
    fingers get along the approach, anywhere on their way.
    """

    yaw: float
    shift: float
    reach: float

    @staticmethod
    def of(description: RobotDescription, chosen: GripperPreset) -> Closing:
        hand = description.gripper(chosen.hand)
        q = np.tile(np.array(description.rest_pose), (9, 1))
        q[:, description.joint_names.index(chosen.joint)] = np.linspace(chosen.open_width, chosen.closed_width, 9)
        links = reference_fk(description, q)
        to_grasp = np.linalg.inv(links[hand.hand_link] @ hand.grasp_frame.matrix)
        pads = [(to_grasp @ links[pad.link] @ [*pad.position, 1.0])[0, :2] for pad in hand.pad_points]
        across = (pads[1] - pads[0]) / np.linalg.norm(pads[1] - pads[0])
        room = CUBE / 2 + GAP
        low, high = float(across @ pads[0]) + room, float(across @ pads[1]) - room
        fingers = {*hand.grasp_contact_links, *(pad.link for pad in hand.pad_points)} & set(description.geometry)
        depths = [
            (to_grasp @ links[finger])[:, 2, :3] @ piece.vertices.T + (to_grasp @ links[finger])[:, 2, 3:]
            for finger in fingers
            for piece in description.geometry[finger].pieces
        ]
        # the approach points down, so a yaw about it runs backwards in the table's plane
        yaw = float(-np.arctan2(across[1], across[0]))
        return Closing(yaw, min(max(0.0, low), max(high, low)), max((float(d.max()) for d in depths), default=0.0))


class _Script:
    """The scripted policy: one phase per environment, and a set point that travels to each phase's goal."""

    ABOVE, DOWN, CLOSE, LIFT = range(4)
    SPEED = (0.25, 0.10, 1.0, 0.15)  # m/s

    def __init__(self, task: LiftTask):
        self.task = task
        self.phase = torch.zeros(task.env.num_envs, dtype=torch.int64)
        self.at = torch.zeros(task.env.num_envs, 4)
        self.rested = torch.zeros(task.env.num_envs)

    def __call__(self, env: simulo.LearningEnv) -> Tensor:
        self._begin((env.episode_steps == 0).nonzero().flatten())
        goal = self._goals()
        away = goal[:, :3] - self.at[:, :3]
        step = torch.tensor(self.SPEED)[self.phase] * env.dt
        share = (step / away.norm(dim=1).clamp_min(1e-9)).clamp_max(1.0)
        self.at[:, :3] += share[:, None] * away
        self.at[:, 3] += (goal[:, 3] - self.at[:, 3]).clamp(-env.dt, env.dt)
        arrived = (goal - self.at).abs().amax(dim=1) < 1e-5
        arrived &= (self.task.grasp_position - self.at[:, :3]).norm(dim=1) < ARRIVED
        self.rested = torch.where(arrived, self.rested + env.dt, 0.0)
        closed = self.task.gripper.state == simulo.GripperState.CLOSED
        done = torch.where(self.phase == self.CLOSE, closed, self.rested >= 0.1) & (self.phase < self.LIFT)
        grip = torch.where(self.phase >= self.CLOSE, 1.0, -1.0)
        self.phase += done
        self.rested[done] = 0.0
        return torch.cat([self.at, grip[:, None]], dim=1)

    def _begin(self, envs: Tensor) -> None:
        station = self.task.station
        self.phase[envs] = self.ABOVE
        self.rested[envs] = 0.0
        self.at[envs] = torch.tensor([*station.middle, station.table_top + HOME_HEIGHT, station.yaw])

    def _goals(self) -> Tensor:
        task = self.task
        goal = task.start.clone()
        yaw = goal[:, 3]
        goal[:, :2] += task.aim - task.closing.shift * torch.stack([yaw.cos(), yaw.sin()], dim=1)
        goal[:, 2] += task.grasp_height + torch.tensor([0.08, 0.0, 0.0, LIFT + 0.02])[self.phase]
        return goal


def arm_joints(description: RobotDescription, chosen: GripperPreset) -> list[str]:
    """The joints that carry a hand, base to hand."""
    return [description.joint_names[column] for column in ArmPath.to_grasp(description, chosen.hand).columns]
