"""Stand-ins for a simulator: a robot of two fingers whose readings a test dictates, and what it was told to do."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from simulo.commands import CommandMode, JointCommands
from simulo.description import Gripper, Joint, MimicJoint, PadPoint, RobotDescription, Source
from simulo.pose import Pose
from simulo.robot import Robot


def two_finger_description(coupled: bool) -> RobotDescription:
    """A hand on one lift joint, with prismatic fingers 0 to 0.04 m; coupled: finger2 follows finger1."""
    lift = Joint("lift", "prismatic", "base", "hand", Pose(), (0, 0, 1), 0.0, 1.0, np.inf, "arm", "lift")
    first = Joint("finger1", "prismatic", "hand", "left", Pose(), (0, 1, 0), 0.0, 0.04, np.inf, "gripper", "finger1")
    second = Joint("finger2", "prismatic", "hand", "right", Pose(), (0, -1, 0), 0.0, 0.04, np.inf, "gripper", "finger2")
    follower = MimicJoint("finger2", "prismatic", "hand", "right", Pose(), (0, -1, 0), "finger1", 1.0, 0.0, "finger2")
    pads = (PadPoint("left", (0.0, 0.0, 0.0)), PadPoint("right", (0.0, 0.0, 0.0)))
    jaws = (("left",), ("right",)) if coupled else (("left", "right"), ())
    return RobotDescription(
        name="two_finger",
        source=Source("none", "0", "none.xml", "none", "mjcf"),
        root_link="base",
        links=("base", "hand", "left", "right"),
        joints=(lift, first) if coupled else (lift, first, second),
        fixed_attachments=(),
        mimic_joints=(follower,) if coupled else (),
        grippers=(Gripper("hand", "finger1", "hand", *jaws, 0.04, 0.0, Pose(), pads),),
        rest_pose=np.zeros(2 if coupled else 3),
        disabled_pairs=(),
        touch_links=(),
        geometry={},
        swept={},
        digest="fake",
    )


class FakeArticulation:
    """See `simulo.handles.Articulation`: readings are attributes, and the last commands written are kept."""

    def __init__(self, robot: Robot, num_envs: int):
        self.num_envs = num_envs
        self.device = torch.device("cpu")
        self.physics_tick = 0
        self.positions = torch.zeros(num_envs, len(robot.joint_names))
        self.velocities = torch.zeros(num_envs, len(robot.joint_names))
        self.written: list[Tensor] = []
        actuated = robot.joint_limits[: robot.num_actuated]
        self._limits = actuated

    def joint_positions(self) -> Tensor:
        return self.positions.clone()

    def joint_velocities(self) -> Tensor:
        return self.velocities.clone()

    def link_poses(self) -> Tensor:
        raise NotImplementedError("these tests read no links")

    def contact_forces(self, prop: str) -> tuple[Tensor, Tensor]:
        raise NotImplementedError("these tests touch no prop")

    def position_limits(self) -> Tensor:
        return self._limits

    def velocity_limits(self) -> Tensor:
        return torch.tensor([[-torch.inf, torch.inf]]).expand(len(self._limits), 2)

    def check_mode(self, mode: CommandMode, columns: Sequence[int]) -> None: ...

    def write_joint_state(self, positions: Tensor, velocities: Tensor, env_ids: Tensor) -> None:
        self.positions[env_ids], self.velocities[env_ids] = positions, velocities

    def write_commands(self, commands: JointCommands) -> None:
        self.written.append(commands.position.clone())


def attached(description: RobotDescription | str, num_envs: int) -> tuple[Robot, FakeArticulation]:
    """A robot on a fake simulator."""
    robot = Robot(description)
    articulation = FakeArticulation(robot, num_envs)
    robot.attach(articulation, control_dt=0.02)
    robot.reset()
    return robot, articulation
