"""The smallest real gripper: two sliding fingers on a lift in MuJoCo, above a block on a stand. Joints as Franka's."""

from pathlib import Path

import numpy as np
import pytest
import torch

import simulo
from simulo.description import Gripper, Joint, PadPoint, RobotDescription, Source
from simulo.pose import Pose

FINGERS = "panda_finger_joint.*"
OPENING = 0.04  # m, per finger
HEIGHT = 0.30  # m, of the hand at lift 0; the fingers reach 5 cm below it
BLOCK = (0.03, 0.03, 0.06)

MJCF = """
<mujoco model="hand">
  <option cone="elliptic" impratio="10" integrator="implicitfast"/>
  <worldbody>
    <body name="base">
      <body name="hand" pos="0 0 0.30">
        <joint name="lift" type="slide" axis="0 0 1" range="0 0.3"/>
        <geom type="box" size="0.03 0.06 0.01" pos="0 0 0.01" mass="0.5"/>
        <body name="left">
          <joint name="panda_finger_joint1" type="slide" axis="0 1 0" range="0 0.04"/>
          <geom type="box" size="0.01 0.005 0.025" pos="0 0.005 -0.025" mass="0.05"/>
        </body>
        <body name="right">
          <joint name="panda_finger_joint2" type="slide" axis="0 -1 0" range="0 0.04"/>
          <geom type="box" size="0.01 0.005 0.025" pos="0 -0.005 -0.025" mass="0.05"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position joint="lift" kp="3000" kv="150"/>
    <position joint="panda_finger_joint1" kp="{stiffness}" kv="{damping}"/>
    <position joint="panda_finger_joint2" kp="{stiffness}" kv="{damping}"/>
  </actuator>
</mujoco>
"""


def describe(folder: Path, stiffness: float = 400.0, damping: float = 20.0) -> RobotDescription:
    """Write the model below `folder` (to be a root of SIMULO_MODEL_PATH) and describe it. Drives in N/m and N s/m."""
    (folder / "hand").mkdir(exist_ok=True)
    file = f"hand/{stiffness:g}-{damping:g}.xml"
    (folder / file).write_text(MJCF.format(stiffness=stiffness, damping=damping))

    def joint(name: str, parent: str, child: str, z: float, axis, upper: float, role: str) -> Joint:
        return Joint(name, "prismatic", parent, child, Pose((0.0, 0.0, z)), axis, 0.0, upper, np.inf, role, name)  # type: ignore[arg-type]

    pads = (PadPoint("left", (0.0, 0.0, -0.04)), PadPoint("right", (0.0, 0.0, -0.04)))
    first, second = "panda_finger_joint1", "panda_finger_joint2"
    return RobotDescription(
        name="hand",
        source=Source("none", "0", file, "none", "mjcf"),
        root_link="base",
        links=("base", "hand", "left", "right"),
        joints=(
            joint("lift", "base", "hand", HEIGHT, (0, 0, 1), 0.3, "arm"),
            joint(first, "hand", "left", 0.0, (0, 1, 0), OPENING, "gripper"),
            joint(second, "hand", "right", 0.0, (0, -1, 0), OPENING, "gripper"),
        ),
        fixed_attachments=(),
        mimic_joints=(),
        grippers=(Gripper("hand", first, "hand", ("left", "right"), (), OPENING, 0.0, Pose(), pads),),
        rest_pose=np.array([0.0, OPENING, OPENING]),
        disabled_pairs=(),
        touch_links=(),
        geometry={},
        swept={},
        digest="hand",
    )


class HandTask(simulo.Task):
    """action: lift target [m] and gripper command. The block stands between the open fingers."""

    observation_dim, action_dim = 3, 2

    def __init__(self, description: RobotDescription, block: tuple[float, float, float] = BLOCK):
        self.description = description
        self.block_size = block

    def build(self, scene):
        self.robot = simulo.Robot(self.description)
        scene.add(self.robot, at="/World/Robot")
        bottom = HEIGHT - 0.045 - 0.5 * BLOCK[2]
        stand = simulo.Prop.box(size=(0.2, 0.2, 0.02), fixed=True, pose=simulo.Pose((0.0, 0.0, bottom - 0.01)))
        scene.add(stand, at="/World/Stand")
        middle = simulo.Pose((0.0, 0.0, bottom + 0.5 * self.block_size[2]))
        self.block = simulo.Prop.box(size=self.block_size, mass=0.1, pose=middle)
        scene.add(self.block, at="/World/Block")

    def on_start(self, env):
        self.gripper = simulo.ParallelGripperActuator(robot=self.robot, finger_joints=FINGERS)

    def apply_actions(self, actions):
        self.robot.set_joint_position_target(actions[:, :1], joint_ids=[0])
        self.gripper.set_commands(actions[:, -1])

    def get_observations(self):
        self.gripper.update(self.env.dt)
        return self.robot.state.joint_positions

    def reset_idx(self, env_ids):
        self.gripper.reset(env_ids)

    @property
    def block_below_hand(self) -> torch.Tensor:
        """How far the block's middle is below the hand [m], shape (num_envs,)."""
        return HEIGHT + self.robot.state.joint_positions[:, 0] - self.block.state.pose[:, 2]


@pytest.fixture
def models(tmp_path, monkeypatch) -> Path:
    """A folder that models are found in."""
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    return tmp_path


def run(env: simulo.LearningEnv, steps: int, command, lift: float = 0.0) -> list[list[int]]:
    """Step under one gripper command (or one each) and lift target [m]; the states after every step."""
    actions = torch.zeros(env.num_envs, 2)
    actions[:, 0], actions[:, 1] = lift, torch.as_tensor(command)
    states = []
    for _ in range(steps):
        env.step(actions)
        states.append(env.task.gripper.state.tolist())
    return states
