"""Differential inverse kinematics by damped least squares, for all environments at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from simulo.controllers.chain import Chain, chain_to
from simulo.description import RobotDescription, reference_fk
from simulo.description.kinematics import edges_from_root
from simulo.indexing import EnvIds, resolve_env_ids
from simulo.pose import Pose
from simulo.robot import Robot
from simulo.rotations import to_matrix
from simulo.tensors import real_tensor

_STEP_METRES = 0.1  # the Jacobian is trusted this far in one iteration
_STEP_RADIANS = 0.5
_DAMPING = 0.1  # at or beyond the trusted step; it vanishes with the error, so that the end is exact
_RESTING_DAMPING = 1e-4  # what is left of it, so that a singular arm is still solvable


@dataclass(frozen=True)
class Residual:
    """What is left between the goal and where the targets put the end effector, per environment.

    position [m], rotation [rad]: shape (M,). Large where the goal is out of reach or beyond a limit.
    """

    position: Tensor
    rotation: Tensor

    def reach(self, lever: float) -> Tensor:
        """How far anything that is fixed to the end effector, up to `lever` [m] from its frame, is from where the goal
        has it, at most [m], shape (M,)."""
        return self.position + lever * self.rotation


class DifferentialIKController:
    """Moves a robot's end effector to poses in the robot's base frame, by writing joint position targets.

    end_effector: a link, or "gripper:<name>" for the grasp frame of a gripper. joints: name, regex or list of names of
    the joints it may move; others on the way keep their targets. ik_method: "dls". command_type: "pose", or "position"
    to leave the orientation free. iterations: at most, per call; tolerance_m, tolerance_rad: where it stops sooner.
    follows_pose: the robot's own controller is sent the pose, and the joint targets stand in for what it makes of it; a
    gate then keeps its distance wider by what the residual moves the hand. Of links before the hand, a redundant arm's
    own solution may be another.

    Build it in `on_start` from the robot. A solution starts from the buffered targets, so it moves on smoothly, and
    never leaves the joint limits: a joint at its limit stays there and the others make up for it where they can.
    """

    def __init__(
        self,
        robot: Robot,
        end_effector: str,
        joints: str | Sequence[str],
        ik_method: str = "dls",
        command_type: str = "pose",
        iterations: int = 20,
        tolerance_m: float = 1e-5,
        tolerance_rad: float = 1e-4,
        follows_pose: bool = False,
    ):
        if ik_method != "dls":
            raise ValueError(f"ik_method={ik_method!r} is not known; the one there is, is 'dls' (damped least squares)")
        if command_type not in ("pose", "position"):
            raise ValueError(f"command_type={command_type!r} is not known; choose 'pose' or 'position'")
        if iterations < 1:
            raise ValueError(f"iterations must be at least 1, got {iterations}")
        self.robot = robot
        self.command_type = command_type
        self.iterations = iterations
        self.tolerance_m = tolerance_m
        self.tolerance_rad = tolerance_rad
        link, frame = _end_frame(robot, end_effector)
        self._chain: Chain = chain_to(robot.description, link, frame, robot.device)
        self._columns = list(self._chain.columns)
        self._free = self._movable(joints)
        self.follows_pose = follows_pose
        self.lever = _hand_lever(robot.description, link, frame)
        self._limits = robot.joint_limits.to(device=robot.device, dtype=torch.float64)[self._columns]

    def move_to(
        self,
        position: Tensor | ArrayLike,
        orientation_wxyz: Tensor | ArrayLike | None = None,
        env_ids: EnvIds | None = None,
    ) -> Residual:
        """Write targets that put the end effector at a pose of the base frame.

        position [m], shape (3,) or (M, 3); orientation_wxyz, shape (4,) or (M, 4), needed unless command_type is
        "position". A goal that is not finite becomes targets that are not, for a gate to stop that environment alone.
        """
        ids = resolve_env_ids(env_ids, self.robot.num_envs, self.robot.device)
        goal_position = self._goal(position, len(ids), 3, "position")
        if self.command_type == "position":
            goal_rotation = torch.eye(3, dtype=torch.float64, device=self.robot.device).expand(len(ids), 3, 3)
        elif orientation_wxyz is None:
            raise ValueError("command_type 'pose' needs orientation_wxyz")
        else:
            quaternion = self._goal(orientation_wxyz, len(ids), 4, "orientation_wxyz")
            goal_rotation = to_matrix(quaternion / quaternion.norm(dim=1, keepdim=True))
        if ids.numel() == 0:
            return Residual(goal_position[:, 0], goal_position[:, 0])
        start = self.robot.joint_position_targets[ids][:, self._columns].to(torch.float64)
        q, residual = self._solve(start, goal_position, goal_rotation)
        moved = [k for k in range(len(self._columns)) if bool(self._free[k])]
        self.robot.set_joint_position_target(q[:, moved], tuple(self._columns[k] for k in moved), ids)
        if self.follows_pose:
            self.robot.loosen(residual.reach(self.lever), ids)
        return residual

    def pose(self) -> tuple[Tensor, Tensor]:
        """The measured pose of the end effector in the base frame: position [m], (num_envs, 3), and rotation matrix."""
        q = self.robot.state.joint_positions[:, self._columns].to(torch.float64)
        rotation, position, _ = self._chain.pose_and_jacobian(q)
        return position, rotation

    def _solve(self, q: Tensor, goal_position: Tensor, goal_rotation: Tensor) -> tuple[Tensor, Residual]:
        """Iterate each environment until it is there, whatever the others still need: so its result is its own."""
        q = q.clamp(self._limits[:, 0], self._limits[:, 1])
        for _ in range(self.iterations):
            rotation, position, jacobian = self._chain.pose_and_jacobian(q)
            error = self._error(position, rotation, goal_position, goal_rotation)
            ongoing = (error[:, :3].norm(dim=1) > self.tolerance_m) | (error[:, 3:].norm(dim=1) > self.tolerance_rad)
            if not ongoing.any():  # a goal that is not finite compares false: nothing brings it nearer
                break
            q = torch.where(ongoing[:, None], self._step(q, error, jacobian), q)
        rotation, position, _ = self._chain.pose_and_jacobian(q)
        error = self._error(position, rotation, goal_position, goal_rotation)
        q = torch.where(torch.isfinite(error).all(dim=1, keepdim=True), q, torch.nan)
        return q, Residual(error[:, :3].norm(dim=1), error[:, 3:].norm(dim=1))

    def _step(self, q: Tensor, error: Tensor, jacobian: Tensor) -> Tensor:
        """One damped step inside the limits: a joint that would leave them is fixed and the rest solved again."""
        linear, angular = error[:, :3], error[:, 3:]
        linear = linear * (_STEP_METRES / linear.norm(dim=1, keepdim=True).clamp_min(_STEP_METRES))
        angular = angular * (_STEP_RADIANS / angular.norm(dim=1, keepdim=True).clamp_min(_STEP_RADIANS))
        wanted = torch.cat([linear, angular], dim=1)
        share = (linear.norm(dim=1) / _STEP_METRES + angular.norm(dim=1) / _STEP_RADIANS).clamp_max(1.0)
        damping = (_RESTING_DAMPING + _DAMPING * share) ** 2
        if self.command_type == "position":  # the angular rows would hold the orientation rather than leave it free
            wanted, jacobian = wanted[:, :3], jacobian[:, :3]
        free = self._free.expand_as(q)
        change = _damped_least_squares(jacobian * free[:, None, :], wanted, damping)
        beyond = (q + change > self._limits[:, 1]) | (q + change < self._limits[:, 0])
        if beyond.any():
            change = _damped_least_squares(jacobian * (free & ~beyond)[:, None, :], wanted, damping)
        return (q + change).clamp(self._limits[:, 0], self._limits[:, 1])

    def _error(self, position: Tensor, rotation: Tensor, goal_position: Tensor, goal_rotation: Tensor) -> Tensor:
        """Goal minus pose, shape (M, 6): metres, then the rotation vector [rad] that turns the one into the other."""
        linear = goal_position - position
        if self.command_type == "position":
            return torch.cat([linear, torch.zeros_like(linear)], dim=1)
        return torch.cat([linear, rotation_vector(goal_rotation @ rotation.transpose(1, 2))], dim=1)

    def _goal(self, values: Tensor | ArrayLike, count: int, width: int, what: str) -> Tensor:
        tensor = real_tensor(values, what)
        if tensor.shape not in ((width,), (count, width)):
            raise ValueError(f"{what} must have shape ({width},) or ({count}, {width}), got {tuple(tensor.shape)}")
        return tensor.to(device=self.robot.device, dtype=torch.float64).expand(count, width)

    def _movable(self, joints: str | Sequence[str]) -> Tensor:
        patterns = [joints] if isinstance(joints, str) else list(joints)
        columns = {column for pattern in patterns for column in self.robot.find_joints(pattern)}
        idle = sorted(self.robot.joint_names[column] for column in columns - set(self._columns))
        if idle or not columns:
            names = [self.robot.joint_names[column] for column in self._columns]
            raise ValueError(f"joints {idle or list(patterns)} do not move the end effector; those that do are {names}")
        return torch.tensor([column in columns for column in self._columns], device=self.robot.device)


def rotation_vector(rotation: Tensor) -> Tensor:
    """Axis times angle [rad], shape (M, 3), of rotation matrices, shape (M, 3, 3)."""
    twice_sine = torch.stack(
        [
            rotation[:, 2, 1] - rotation[:, 1, 2],
            rotation[:, 0, 2] - rotation[:, 2, 0],
            rotation[:, 1, 0] - rotation[:, 0, 1],
        ],
        dim=1,
    )
    twice_cosine = rotation.diagonal(dim1=1, dim2=2).sum(dim=1, keepdim=True) - 1.0
    length = twice_sine.norm(dim=1, keepdim=True)
    regular = length > 1e-6
    safe = torch.where(regular, length, 1.0)
    # the half-angle form, since atan2 of a batch rounds differently with the batch's size
    angle = torch.where(regular, 2.0 * torch.atan(safe / (2.0 + twice_cosine)), torch.pi)
    axis = torch.where(regular, twice_sine / safe, _axis_at_half_turn(rotation))
    small = ~regular & (twice_cosine > 0)
    return torch.where(small, 0.5 * twice_sine, axis * angle)


def _axis_at_half_turn(rotation: Tensor) -> Tensor:
    """At an angle of pi, R + I is twice the axis' outer product: its longest column points along the axis."""
    outer = rotation + torch.eye(3, dtype=rotation.dtype, device=rotation.device)
    longest = outer.norm(dim=1).argmax(dim=1)
    column = outer[torch.arange(len(rotation), device=rotation.device), :, longest]
    return torch.nn.functional.normalize(column, dim=1)


def _damped_least_squares(jacobian: Tensor, wanted: Tensor, damping: Tensor) -> Tensor:
    """J^T (J J^T + damping I)^-1 wanted, shape (M, joints) (Wampler 1986)."""
    transposed = jacobian.transpose(1, 2)
    square = jacobian @ transposed + damping[:, None, None] * torch.eye(
        wanted.shape[1], dtype=wanted.dtype, device=wanted.device
    )
    solution, _ = torch.linalg.solve_ex(square, wanted[..., None])
    return (transposed @ solution)[..., 0]


def _end_frame(robot: Robot, end_effector: str) -> tuple[str, Pose]:
    """Link and frame in it. Raises ValueError for a gripper or link that the robot does not have."""
    kind, colon, name = end_effector.partition(":")
    if not colon:
        return end_effector, Pose()
    grippers = {gripper.name: gripper for gripper in robot.description.grippers}
    if kind != "gripper" or name not in grippers:
        raise ValueError(
            f"end_effector={end_effector!r} is neither a link nor one of {[f'gripper:{g}' for g in grippers]}"
        )
    return grippers[name].hand_link, grippers[name].grasp_frame


def _hand_lever(description: RobotDescription, link: str, frame: Pose) -> float:
    """The furthest vertex [m] from the end frame of the link and of all that hangs on it, hands open and closed."""
    below = {link}
    for edge in edges_from_root(description):
        below |= {edge.child} if edge.parent in below else set()
    furthest = 0.0
    for end in ("open_position", "closed_position"):
        q = np.array(description.rest_pose, dtype=np.float64)
        for gripper in description.grippers:
            q[description.joint_names.index(gripper.joint)] = getattr(gripper, end)
        poses = reference_fk(description, q)
        back = np.linalg.inv(poses[link] @ frame.matrix)
        for name in below & set(description.geometry):
            to_end = back @ poses[name]
            for piece in description.geometry[name].pieces:
                local = np.asarray(piece.vertices) @ to_end[:3, :3].T + to_end[:3, 3]
                furthest = max(furthest, float(np.linalg.norm(local, axis=1).max()) + piece.radius)
    return furthest
