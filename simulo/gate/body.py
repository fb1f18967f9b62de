"""The robot as the gate sees it: in a simulated environment, or alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from simulo.collision import Closing, CollisionModel, LiveRobot
from simulo.description import RobotDescription, reference_fk
from simulo.errors import GateError
from simulo.gate.rigid import compose
from simulo.pose import Pose
from simulo.robot import Robot
from simulo.tensors import real_tensor

if TYPE_CHECKING:
    from simulo.env import LearningEnv

CLOSED = 1  # simulo.actuators.GripperState.CLOSED: the gate knows actuators only as what has joined a robot
MODEL_TOLERANCE = 0.001  # m: more than this, and the model that is checked is not the robot that moves
_LEVER = 0.1  # m: a link that is turned shows itself in points this far from its origin


class Body(Protocol):
    """What the gate reads of a robot in `num_envs` environments. measured: whether joint positions are known. floating:
    whether its base moves by itself, so that nobody knows where a step will leave it."""

    num_envs: int
    device: torch.device
    measured: bool

    @property
    def floating(self) -> bool: ...

    @property
    def time(self) -> float:
        """Environment time [s]."""
        ...

    def base_pose(self) -> Tensor:
        """(num_envs, 7), float32."""
        ...

    def joint_positions(self) -> Tensor:
        """Measured, shape (num_envs, dof), float32."""
        ...

    def closed(self) -> Tensor:
        """Which hands are CLOSED, bool, shape (num_envs, hands)."""
        ...

    def link_poses(self, links: tuple[str, ...]) -> Tensor:
        """Measured, in the environment's frame, shape (num_envs, links, 7), float32."""
        ...


@runtime_checkable
class FingerLatch(Protocol):
    """An actuator that opens and closes fingers: `simulo.ParallelGripperActuator`."""

    finger_joints: str

    progress_when_closed: int

    @property
    def state(self) -> Tensor: ...

    @property
    def progress(self) -> Tensor:
        """int32 (num_envs,), the same memory for good: `progress_when_closed` or more where `state` is CLOSED."""
        ...


class SimulatedBody:
    """A `simulo.Robot` of an environment."""

    measured = True

    def __init__(self, env: LearningEnv, model: CollisionModel) -> None:
        self.robot = _find_robot(env.scene.robots, model)
        self.num_envs, self.device = env.num_envs, env.device
        self._env, self._model = env, model
        pose = self.robot.initial_pose
        base = torch.tensor([*pose.position, *pose.orientation_wxyz], dtype=torch.float32, device=env.device)
        self._base = base.repeat(env.num_envs, 1)
        self._none_closed = torch.zeros((env.num_envs, len(model.grippers)), dtype=torch.bool, device=env.device)
        self._hand_of_joint = {gripper.column: hand for hand, gripper in enumerate(model.grippers)}
        self._fingers: list[tuple[FingerLatch, int]] = []
        self._num_latches = 0

    @property
    def floating(self) -> bool:
        return self.robot.description.floating_base

    @property
    def time(self) -> float:
        return self._env.time

    def base_pose(self) -> Tensor:
        return self.robot.state.link_poses[:, 0] if self.robot.description.floating_base else self._base

    def joint_positions(self) -> Tensor:
        return self.robot.state.joint_positions[:, : self._model.num_joints]

    def link_poses(self, links: tuple[str, ...]) -> Tensor:
        columns = [self.robot.link_names.index(link) for link in links]
        return self.robot.state.link_poses[:, columns]

    def closed(self) -> Tensor:
        self._find_fingers()
        if not self._fingers:
            return self._none_closed
        out = self._none_closed.clone()
        for fingers, hand in self._fingers:
            out[:, hand] |= fingers.state == CLOSED
        return out

    def live(self, holding: Tensor, map_status: Tensor) -> LiveRobot | None:
        """The robot as a checker's kernels read it, for as long as its actuators stay those of now; None where the
        simulator keeps no memory that they could read. Of a base that floats, `follow_base` keeps it up to date."""
        positions = self.robot.live_positions()
        if positions is None:
            return None
        self._find_fingers()
        dof = self._model.num_joints
        return LiveRobot(
            targets=self.robot.joint_position_targets[:, :dof],
            limits=self.robot.target_limits,
            positions=positions.values,
            columns=positions.columns[:dof],
            holding=holding,
            closing=tuple(Closing(hand, latch.progress, latch.progress_when_closed) for latch, hand in self._fingers),
            spoiled=self.robot.spoiled,
            base_pose=self._base,
            map_status=map_status,
        )

    def follow_base(self) -> None:
        """Bring what `live` gave up to date with a base that floats."""
        if self.floating:
            self._base.copy_(self.base_pose())

    def _find_fingers(self) -> None:
        """Which of the robot's actuators drive the joint of which hand."""
        latches = self.robot.latches
        if len(latches) == self._num_latches:
            return
        self._num_latches = len(latches)
        moving = [latch for latch in latches if isinstance(latch, FingerLatch)]
        driven = [(latch, column) for latch in moving for column in self.robot.find_joints(latch.finger_joints)]
        self._fingers = [(latch, self._hand_of_joint[c]) for latch, c in driven if c in self._hand_of_joint]

    def refuse_other_model(self, description: RobotDescription) -> None:
        """GateError when some link's pose in the simulator is not the model's, within MODEL_TOLERANCE."""
        q = self.joint_positions().cpu().numpy()
        model = reference_fk(description, q)
        bases = np.stack([Pose(tuple(pose[:3]), tuple(pose[3:])).matrix for pose in self.base_pose().cpu().numpy()])
        actual = self.robot.state.link_poses.cpu().numpy()
        probes = np.vstack([np.zeros(3), _LEVER * np.eye(3)])
        worst, name = 0.0, ""
        for column, link in enumerate(self.robot.link_names):
            expected = bases @ model[link]
            for env in range(len(q)):
                pose = Pose(tuple(actual[env, column, :3]), tuple(actual[env, column, 3:]))
                here = probes @ expected[env, :3, :3].T + expected[env, :3, 3]
                gap = float(np.linalg.norm(pose.apply(probes) - here, axis=1).max())
                if not gap <= worst:
                    worst, name = gap, link
        if not worst <= MODEL_TOLERANCE:
            raise GateError(
                f"the model of {description.name!r} puts link {name!r} {1000 * worst:.1f} mm from where the simulator "
                f"has it (at most {1000 * MODEL_TOLERANCE:.0f} mm is accepted), so the gate would check another robot; "
                f"lower it again from the file that the simulator loads, with `simulo lower {description.name}`"
            )


class LoneBody:
    """A robot without a simulator: one environment, base at its origin, measured where `place` put it."""

    num_envs = 1
    time = 0.0

    def __init__(self, description: RobotDescription, model: CollisionModel, device: torch.device) -> None:
        self.device, self.measured, self.floating = device, False, description.floating_base
        self._description, self._model = description, model
        self._base = torch.tensor([[0.0, 0, 0, 1, 0, 0, 0]], device=device)
        self._q = torch.as_tensor(np.array(description.rest_pose), dtype=torch.float32, device=device)[None]

    def place(self, q: ArrayLike | Tensor) -> None:
        """The measured configuration from now on, shape (dof,)."""
        values = real_tensor(q, "a configuration").to(self.device, torch.float32).reshape(1, -1)
        if values.shape != self._q.shape or not torch.isfinite(values).all():
            raise GateError(f"a configuration of {self._model.name!r} is {self._q.shape[1]} finite joint values")
        self._q, self.measured = values, True

    def base_pose(self) -> Tensor:
        return self._base

    def joint_positions(self) -> Tensor:
        return self._q

    def closed(self) -> Tensor:
        return torch.zeros((1, len(self._model.grippers)), dtype=torch.bool, device=self.device)

    def link_poses(self, links: tuple[str, ...]) -> Tensor:
        if not self.measured:
            raise GateError(
                "attaching to a hand needs to know where the hand is, so that the object leaves the world: give the "
                "gate to an environment, call gate.set_configuration(q) first, or use world='none'"
            )
        poses = reference_fk(self._description, self._q[0].cpu().numpy())
        rows = [Pose.from_matrix(poses[link]) for link in links]
        values = [[*pose.position, *pose.orientation_wxyz] for pose in rows]
        local = torch.tensor([values], dtype=torch.float64)
        return compose(self._base.cpu().double()[:, None].expand_as(local), local).to(self.device, torch.float32)


def _find_robot(robots: dict[str, Robot], model: CollisionModel) -> Robot:
    digest = model.digest.rsplit(":", 1)[0]
    fitting = [robot for robot in robots.values() if robot.description.digest == digest]
    if len(fitting) != 1:
        there = ", ".join(f"{name} ({robot.description.name})" for name, robot in robots.items()) or "no robot"
        raise GateError(
            f"the gate checks robot {model.name!r}, and the scene has {there}; it needs exactly one robot of the very "
            "same description"
        )
    return fitting[0]
