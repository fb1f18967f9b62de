"""Several gates on one motion: each judges every step, none interferes, and all hear what a task declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulo.collision.parties import PartyCodes, cell_indices
from simulo.env import GateDecision, LearningEnv
from simulo.evaluation.counting import HELD, MAP_PARTY
from simulo.evaluation.records import JudgeName
from simulo.evaluation.truth import distance_between, matrix_of, solid
from simulo.gate import CollisionGate, Region, Verdict
from simulo.gate.primitives import as_convex
from simulo.gate.rigid import pose_rows
from simulo.gate.session import SLOTS_PER_HAND
from simulo.indexing import EnvIds, resolve_env_ids
from simulo.perception import DeploySimPerception, GridSpec
from simulo.pose import Pose
from simulo.props import Box
from simulo.robot import Robot


@dataclass
class Grip:
    """What one environment's hand was last declared to do. until [s]: when the declared grasp region ends.

    held: the attached object, at `held_pose` in the hand's link, shape (7,). supports: what it may stand on, all that
    lies wholly in `region`, until a time [s] or until it has once been clear of the region.
    """

    touchable: str = ""
    until: float = -np.inf
    held: str = ""
    held_pose: NDArray[np.float32] | None = None
    supports: tuple[str, ...] = ()
    supports_until: float = -np.inf
    region: Region | None = None


class JudgePanel:
    """A gate made of gates that only report. See `simulo.env.Gate`.

    low, high [m]: the box that is mapped, in the environment's frame. One perception per cell size serves all gates, so
    that they judge the same depth frames.
    """

    def __init__(self, gates: Mapping[JudgeName, CollisionGate], low: Any, high: Any):
        self.gates = dict(gates)
        self.low, self.high = low, high
        self.perceptions: dict[float, DeploySimPerception] = {}
        self.verdicts: dict[JudgeName, Any] = {}

    def bind(self, env: LearningEnv) -> None:
        self.env = env
        self.robot: Robot = next(iter(env.scene.robots.values()))
        for judge in self.gates:
            if judge.world == "voxels" and judge.cell not in self.perceptions:
                self.perceptions[judge.cell] = DeploySimPerception(
                    env, GridSpec.around(self.low, self.high, judge.cell)
                )
        for judge, gate in self.gates.items():
            gate.bind(env)
            if judge.world == "voxels":
                gate.set_world(self.perceptions[judge.cell])
        self.grips = [Grip() for _ in range(env.num_envs)]
        self.commanded = torch.zeros((env.num_envs, self.robot.num_actuated))
        self._nobody = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)

    def filter(self, env: LearningEnv) -> GateDecision:
        self.commanded = self.robot.commanded_positions().cpu().clone()
        self.verdicts = {judge: gate.filter(env).verdict for judge, gate in self.gates.items()}
        self._end_lifted()
        return GateDecision(self.verdicts, self._nobody)

    def reset(self, env_ids: Tensor) -> None:
        for env in env_ids.tolist():
            self.grips[env] = Grip()
        for gate in self.gates.values():
            gate.reset(env_ids)

    def check_reset(self, env: LearningEnv, env_ids: Tensor) -> None:
        for gate in self.gates.values():
            gate.check_reset(env, env_ids)

    def describe(self, env_id: int) -> str:
        return "; ".join(f"{judge}: {gate.describe(env_id)}" for judge, gate in self.gates.items())

    def parties(self, judge: JudgeName, verdict: Verdict, env: int) -> tuple[tuple[str, str], NDArray[np.float64]]:
        """The two parties of a refusal, the robot's first, and the centre of the cell [m], shape (3,), nan for none.

        Every cell is `MAP_PARTY` and whatever the hand holds is `HELD`: a pair is not a place.
        """
        codes = PartyCodes(self.gates[judge].model, SLOTS_PER_HAND)
        names, centre = [], np.full(3, np.nan)
        for code in (int(verdict.party_a[env]), int(verdict.party_b[env])):
            kind = codes.kind_of(code)
            if kind == "cell":
                grid = self.perceptions[judge.cell].grid
                centre = grid.corner.apply((np.array(cell_indices(code, grid.bricks)) + 0.5) * grid.cell)
            names.append(
                {"cell": MAP_PARTY, "payload": HELD}.get(kind) or codes.name(code, tuple(self.env.scene.props))
            )
        return (names[0], names[1]), centre

    # --- declarations, in the words of `CollisionGate`, one environment at a time ------------------------------------

    def declare_grasp(
        self, hand: str, pose: Any, size: Any, duration: float, object: str | None = None, env_ids: EnvIds | None = None
    ) -> None:
        """size [m]: for the gates with the finest cells; those with larger ones are told a box that much larger."""
        finest = min(judge.cell for judge in self.gates)
        for judge, gate in self.gates.items():
            box = np.asarray(size, dtype=np.float64) + 2.0 * (judge.cell - finest)
            gate.declare_grasp(hand, pose, box, duration, object=object, env_ids=env_ids)
        for env in self._ids(env_ids):
            self.grips[env].touchable, self.grips[env].until = object or "", self.env.time + duration

    def attach(
        self,
        hand: str,
        shape: Any,
        pose: Any,
        support: Region | None = None,
        env_ids: EnvIds | None = None,
        touch_links: Sequence[str] = (),
        object: str = "",
    ) -> None:
        for gate in self.gates.values():
            gate.attach(hand, shape, pose, support, env_ids, touch_links, object)
        ids = self._ids(env_ids)
        rows = pose_rows(pose, len(ids), "attach: pose").float().numpy()
        for row, env in enumerate(ids):
            grip = self.grips[env]
            if support is not None or grip.held != object:  # else it has moved in the hand, and may touch what it might
                grip.supports, grip.supports_until, grip.region = self._inside(support, env), np.inf, support
            grip.held, grip.held_pose = object, rows[row]

    def detach(self, hand: str, env_ids: EnvIds | None = None) -> None:
        for gate in self.gates.values():
            gate.detach(hand, env_ids)
        for env in self._ids(env_ids):
            self.grips[env].held, self.grips[env].supports = "", ()

    def declare_place(
        self, region: Region, duration: float, hand: str | None = None, env_ids: EnvIds | None = None
    ) -> None:
        for gate in self.gates.values():
            gate.declare_place(region, duration, hand, env_ids)
        for env in self._ids(env_ids):
            grip = self.grips[env]
            grip.supports, grip.supports_until = self._inside(region, env), self.env.time + duration
            grip.region = region

    def touchable(self, env: int) -> str:
        """What the hand's contact links may touch now, or "": what it holds, or what it was declared to grasp."""
        grip = self.grips[env]
        return grip.held or (grip.touchable if self.env.time <= grip.until else "")

    def supports(self, env: int) -> tuple[str, ...]:
        """What the held object may stand on now."""
        grip = self.grips[env]
        return grip.supports if self.env.time <= grip.supports_until else ()

    def _ids(self, env_ids: EnvIds | None) -> list[int]:
        return resolve_env_ids(env_ids, self.env.num_envs).tolist()

    def _inside(self, region: Region | None, env: int) -> tuple[str, ...]:
        """Props that lie wholly in a support region, as the gates see them: no other may be touched."""
        if region is None:
            return ()
        half, back = 0.5 * np.asarray(region.size), np.linalg.inv(_matrix(region))
        found = []
        for prop in self.env.scene.primitives():
            shape, at = as_convex(prop.shape), back @ matrix_of(prop.pose[env].double().numpy())
            points = shape.vertices @ at[:3, :3].T + at[:3, 3]
            if (np.abs(points) + shape.radius <= half).all():
                found.append(prop.name)
        return tuple(found)

    def _end_lifted(self) -> None:
        """What has once been a margin and a cell diagonal clear of its support may touch it no longer."""
        standing = [env for env, grip in enumerate(self.grips) if grip.supports and grip.held in self.env.scene.props]
        if not standing:
            return
        hand = self.robot.link_names.index(self.robot.description.grippers[-1].hand_link)
        hands = self.robot.state.link_poses[:, hand].double().numpy()
        clear = max(gate.settings.margins[1] + np.sqrt(3.0) * judge.cell for judge, gate in self.gates.items())
        for env in standing:
            grip = self.grips[env]
            assert grip.region is not None and grip.held_pose is not None
            held = solid(self.env.scene.props[grip.held].shape)
            at = matrix_of(hands[env]) @ matrix_of(grip.held_pose.astype(np.float64))
            if distance_between(held, at, solid(Box(grip.region.size)), _matrix(grip.region)) > clear:
                grip.supports = ()


def _matrix(region: Region) -> NDArray[np.float64]:
    """Where a region is in the environment, shape (4, 4)."""
    return region.pose.matrix if isinstance(region.pose, Pose) else matrix_of(np.asarray(region.pose).reshape(7))
