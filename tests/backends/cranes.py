"""A small MJCF robot with every kind of drive: a position servo, a velocity servo, motors; its base is a body."""

from pathlib import Path

import numpy as np

from simulo.description import Gripper, Joint, PadPoint, RobotDescription, Source
from simulo.pose import Pose

MJCF = """
<mujoco model="crane">
  <option cone="{cone}" impratio="{impratio}" integrator="implicitfast"/>
  <worldbody>
    <body name="base" pos="0 0 0.1">
      <geom type="box" size="0.05 0.05 0.05"/>
      <body name="column">
        <joint name="lift" type="slide" axis="0 0 1" range="0 1" limited="true" damping="1"/>
        <geom type="box" size="0.02 0.02 0.1" pos="0 0 0.2" mass="1"/>
        <body name="boom" pos="0 0 0.3">
          <joint name="turn" axis="0 0 1" damping="0.1"/>
          <geom type="box" size="0.1 0.02 0.02" pos="0.1 0 0" mass="0.5"/>
          <body name="claw" pos="0.2 0 0">
            <joint name="slide" type="slide" axis="0 1 0" range="-0.1 0.1" limited="true"/>
            <geom type="box" size="0.02 0.02 0.02" mass="0.1"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="lift_drive" joint="lift" kp="500" kv="40" ctrlrange="0 0.8" gear="{gear}"/>
    <velocity name="turn_drive" joint="turn" kv="5"/>
    <motor name="slide_drive" joint="slide" ctrlrange="-2 2"/>
  </actuator>
</mujoco>
"""


def crane(folder: Path, cone: str = "elliptic", impratio: float = 10.0, gear: float = 1.0) -> RobotDescription:
    """Write the model below `folder` (to be a root of SIMULO_MODEL_PATH) and describe it."""
    folder.mkdir(exist_ok=True)
    file = f"{cone}{impratio:g}.xml"
    (folder / file).write_text(MJCF.format(cone=cone, impratio=impratio, gear=gear))

    def joint(name: str, kind: str, parent: str, child: str, z: float, axis, lower: float, upper: float) -> Joint:
        origin = Pose((0.2 if name == "slide" else 0.0, 0.0, z))
        return Joint(name, kind, parent, child, origin, axis, lower, upper, np.inf, "arm", name)  # type: ignore[arg-type]

    pads = (PadPoint("claw", (0.0, 0.0, 0.0)), PadPoint("boom", (0.0, 0.0, 0.0)))
    return RobotDescription(
        name="crane",
        source=Source("none", "0", f"{folder.name}/{file}", "none", "mjcf"),
        root_link="base",
        links=("base", "column", "boom", "claw"),
        joints=(
            joint("lift", "prismatic", "base", "column", 0.0, (0, 0, 1), 0.0, 1.0),
            joint("turn", "continuous", "column", "boom", 0.3, (0, 0, 1), -np.inf, np.inf),
            joint("slide", "prismatic", "boom", "claw", 0.0, (0, 1, 0), -0.1, 0.1),
        ),
        fixed_attachments=(),
        mimic_joints=(),
        grippers=(Gripper("claw", "slide", "boom", ("claw",), (), 0.1, 0.0, Pose(), pads),),
        rest_pose=np.zeros(3),
        disabled_pairs=(),
        touch_links=(),
        geometry={},
        swept={},
        digest="crane",
    )
