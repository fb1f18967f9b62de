"""Kinematics of one serial chain from the robot's base to a frame, batched, with its geometric Jacobian."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from simulo.description import FixedAttachment, Joint, MimicJoint, RobotDescription
from simulo.description.kinematics import all_edges
from simulo.pose import Pose


@dataclass(frozen=True)
class Chain:
    """columns: actuated joint per moving edge, base first. Edge e turns its child by
    turn_zero + sin(q) turn_sine + (1 - cos(q)) turn_versine, shape (edges, 3, 3) each, and shifts it by
    shift + q slide, shape (edges, 3). axis: in the parent's frame, shape (edges, 3). revolute: bool, shape (edges,).
    tail: pose of the end frame in the last moving link, as rotation and position.
    """

    columns: tuple[int, ...]
    turn_zero: Tensor
    turn_sine: Tensor
    turn_versine: Tensor
    shift: Tensor
    slide: Tensor
    axis: Tensor
    revolute: Tensor
    tail_rotation: Tensor
    tail_position: Tensor

    def pose_and_jacobian(self, q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """End frame and Jacobian in the base frame, for positions of the chain's joints, shape (N, edges).

        Returns rotation (N, 3, 3), position [m] (N, 3), and the Jacobian (N, 6, edges): linear rows, then angular.
        """
        angle = torch.where(self.revolute, q, 0.0)[..., None, None]
        turns = self.turn_zero + angle.sin() * self.turn_sine + (1.0 - angle.cos()) * self.turn_versine
        shifts = self.shift + q[..., None] * self.slide
        rotation = torch.eye(3, dtype=q.dtype, device=q.device).expand(len(q), 3, 3)
        position = torch.zeros((len(q), 3), dtype=q.dtype, device=q.device)
        axes, origins = [], []
        for edge in range(len(self.columns)):
            axes.append(rotation @ self.axis[edge])
            position = position + (rotation @ shifts[:, edge, :, None])[..., 0]
            rotation = rotation @ turns[:, edge]
            origins.append(position)
        position = position + rotation @ self.tail_position
        axis, origin = torch.stack(axes, dim=1), torch.stack(origins, dim=1)
        swept = torch.linalg.cross(axis, position[:, None, :] - origin, dim=-1)
        turning = self.revolute[:, None]
        linear = torch.where(turning, swept, axis)
        angular = torch.where(turning, axis, 0.0)
        return rotation @ self.tail_rotation, position, torch.cat([linear, angular], dim=-1).transpose(1, 2)


def chain_to(description: RobotDescription, link: str, frame: Pose, device: torch.device) -> Chain:
    """The chain from the root link to `frame` on `link`, in double precision.

    Raises ValueError for a link that does not exist, that no joint moves, or that hangs on a mimic joint: such a joint
    has no command of its own, so its motion belongs to another column.
    """
    if link not in description.links:
        raise ValueError(f"robot {description.name!r} has no link {link!r}; it has {list(description.links)}")
    edges = _edges_to(description, link)
    names, origins, axes, revolute = [], [], [], []
    fixed = Pose()  # rigid edges since the last joint
    for edge in edges:
        fixed = fixed @ edge.origin
        if isinstance(edge, Joint):
            names.append(edge.name)
            origins.append(fixed)
            axes.append(edge.axis)
            revolute.append(edge.type != "prismatic")
            fixed = Pose()
    if not names:
        raise ValueError(f"no joint of robot {description.name!r} moves link {link!r}")
    rotations = np.stack([origin.rotation for origin in origins])
    axis = np.asarray(axes, dtype=np.float64)
    skew = np.cross(axis[:, None, :], np.eye(3)[None]).transpose(0, 2, 1)  # skew[e] @ v = axis[e] x v
    axis_in_parent = np.einsum("eij,ej->ei", rotations, axis)
    sliding = ~np.array(revolute)
    tail = fixed @ frame

    def tensor(values: np.ndarray) -> Tensor:
        return torch.as_tensor(values, device=device)

    return Chain(
        columns=tuple(description.joint_names.index(name) for name in names),
        turn_zero=tensor(rotations),
        turn_sine=tensor(rotations @ skew),
        turn_versine=tensor(rotations @ skew @ skew),
        shift=tensor(np.array([origin.position for origin in origins])),
        slide=tensor(axis_in_parent * sliding[:, None]),
        axis=tensor(axis_in_parent),
        revolute=tensor(np.array(revolute)),
        tail_rotation=tensor(tail.rotation),
        tail_position=tensor(np.array(tail.position)),
    )


def _edges_to(description: RobotDescription, link: str) -> list[Joint | FixedAttachment]:
    by_child = {edge.child: edge for edge in all_edges(description)}
    edges: list[Joint | FixedAttachment] = []
    at = link
    while at != description.root_link:
        edge = by_child[at]
        if isinstance(edge, MimicJoint):
            raise ValueError(
                f"link {link!r} hangs on the mimic joint {edge.name!r}, which has no command of its own; choose a link "
                f"before it, such as {edge.parent!r}"
            )
        edges.append(edge)
        at = edge.parent
    return edges[::-1]
