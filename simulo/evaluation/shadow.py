"""Shadow runs: physics goes on, gates only report, and everything that adjudication needs is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulo.collision.model import CollisionModel
from simulo.env import PHYSICS_FAILED, LearningEnv
from simulo.evaluation.counting import HELD, TOUCHING
from simulo.evaluation.panel import JudgePanel
from simulo.evaluation.records import EngineContacts, EpisodeRecord, JudgeName, MapFrames, Refusals
from simulo.evaluation.truth import Truth, link_poses, matrix_of
from simulo.gate import Verdict
from simulo.perception import DeploySimPerception

AFTER_CONTACT = 0.5
"""[s] An episode goes on this long after its first real contact."""
_FRAME_STEPS = 5
"""Batches begin at multiples of this many steps, so that depth frames fall alike in every batch."""

Progress = Callable[[str, int, int], None]


class BenchTask(Protocol):
    """What a task must tell for its stops to be counted, beside being a `simulo.Task`.

    map_box: low and high corner [m] of what is mapped, in the environment's frame.
    """

    map_box: tuple[tuple[float, float, float], tuple[float, float, float]]

    def scripted_policy(self) -> Callable[[LearningEnv], Tensor]: ...

    def hazard_of(self, env_id: int) -> str: ...

    def succeeded(self, reason: str) -> bool: ...


@dataclass
class _Log:
    """One running episode."""

    number: int
    seed: int
    hazard: str
    present: NDArray[np.bool_]
    commanded: list = field(default_factory=list)
    measured: list = field(default_factory=list)
    prop_poses: list = field(default_factory=list)
    frame_step: list = field(default_factory=list)
    held: list = field(default_factory=list)
    held_pose: list = field(default_factory=list)
    touchable: list = field(default_factory=list)
    supports: list = field(default_factory=list)
    contacts: list = field(default_factory=list)
    refusals: dict = field(default_factory=dict)
    maps: dict = field(default_factory=dict)
    end: int = 10**9

    @property
    def step(self) -> int:
        return len(self.commanded)


class ShadowRun:
    """Runs episodes of one environment's task under its panel, as many at a time as it has environments."""

    def __init__(self, env: LearningEnv, panel: JudgePanel, task: BenchTask, truth: Truth):
        self.env, self.panel, self.task, self.truth = env, panel, task, truth
        self.policy = task.scripted_policy()
        self.robot = panel.robot
        self.props = tuple(env.scene.props)
        self.hand = self.robot.description.grippers[-1]
        self._contact_links = {
            link: gripper.grasp_contact_links
            for gripper in self.robot.description.grippers
            for link in gripper.grasp_contact_links
        }
        model = next(iter(panel.gates.values())).model
        self._exempt = _exempt_pairs(model)
        env.backend.watch_contacts = True

    def run(
        self,
        numbers: Sequence[int],
        seed: int,
        upcoming: Sequence[int] = (),
        progress: Callable[[int], None] = lambda done: None,
    ) -> list[EpisodeRecord]:
        """Record these episodes, at most num_envs of them; episode k of a run has seed `seed + k`.

        upcoming: those of the next batch. An environment that ends begins its own of them, so that the task may keep
        what it drew. progress: told how many have ended.
        """
        env = self.env
        spare = [seed + numbers[-1]] * (env.num_envs - len(numbers))
        while env.step_count % _FRAME_STEPS:
            env.step(self.policy(env))
        env.reset(seed=[*(seed + number for number in numbers), *spare])
        for i, number in enumerate(upcoming):
            env.assign_seed(i, seed + number)
        present = torch.stack([prop.state.present for prop in env.scene.props.values()], dim=1).numpy()
        logs = [_Log(n, seed + n, self.task.hazard_of(i), present[i].copy()) for i, n in enumerate(numbers)]
        done: dict[int, EpisodeRecord] = {}
        while len(done) < len(logs):
            running = [i for i in range(len(logs)) if i not in done]
            self._before(logs, running)
            *_, info = env.step(self.policy(env))
            self._after(logs, running, ended=set(info["stop"]))
            for i in running:
                reason = info["stop"].get(i, "contact" if logs[i].step >= logs[i].end else "")
                if reason:
                    done[i] = self._record(logs[i], reason, alive=i not in info["stop"], env_id=i)
            progress(len(done))
        return [done[i] for i in range(len(logs))]

    # --- one step ----------------------------------------------------------------------------------------------------

    def _before(self, logs: list[_Log], running: list[int]) -> None:
        measured, poses = self._state()
        for i in running:
            logs[i].measured.append(measured[i])
            logs[i].prop_poses.append(poses[i])

    def _state(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        measured = self.robot.state.joint_positions[:, : self.robot.num_actuated].numpy()
        poses = torch.stack([prop.state.pose for prop in self.env.scene.props.values()], dim=1).numpy()
        return measured.copy(), poses.copy()

    def _after(self, logs: list[_Log], running: list[int], ended: set[int]) -> None:
        """Take in what the gates said before physics, and what touched during it."""
        refused = {
            judge: (~verdict.clear).nonzero().flatten().tolist() for judge, verdict in self.panel.verdicts.items()
        }
        contacts = self._contacts(logs, running)
        age = self._frame_age()
        for i in running:
            log = logs[i]
            step = log.step
            for judge, envs in refused.items():
                if i in envs:
                    log.refusals.setdefault(judge, []).append(self._refusal(judge, self.panel.verdicts[judge], i, step))
            for cell, perception in self.panel.perceptions.items():
                _keep_map(log, step, cell, perception, i)
            grip = self.panel.grips[i]
            log.frame_step.append(max(0, step - int(age[i])))
            log.held.append(grip.held)
            log.held_pose.append(np.zeros(7, np.float32) if grip.held_pose is None else grip.held_pose)
            log.touchable.append(self.panel.touchable(i))
            log.supports.append("|".join(self.panel.supports(i)))
            log.commanded.append(self.panel.commanded[i].numpy())
            log.contacts += contacts.get(i, [])
            if (
                i not in ended
                and log.end == 10**9
                and any(self._is_real(row, i) for row in contacts.get(i, []) if not row[-1])
            ):
                log.end = log.step + round(AFTER_CONTACT / self.env.dt)

    def _frame_age(self) -> NDArray[np.int64]:
        """Steps since the newest depth frame of each environment, at the time of the check."""
        if not self.panel.perceptions:
            return np.zeros(self.env.num_envs, dtype=np.int64)
        stamps = torch.stack([perception.stamp for perception in self.panel.perceptions.values()]).amax(dim=0)
        age = (self.env.time - self.env.dt - stamps).clamp_min(0.0) / self.env.dt
        return age.round().to(torch.int64).numpy()

    def _refusal(self, judge: JudgeName, verdict: Verdict, i: int, step: int) -> tuple:
        names, centre = self.panel.parties(judge, verdict, i)
        return step, int(verdict.kind[i]), *names, centre

    # --- contacts ----------------------------------------------------------------------------------------------------

    def _contacts(self, logs: list[_Log], running: list[int]) -> dict[int, list[tuple]]:
        """Per environment, the deepest contact of each pair that has a robot link or the held object in it, as
        (step, a, b, distance, position, allowed)."""
        found = self.env.backend.contacts()
        names = found.body_names
        ours = np.isin(names, self.robot.link_names)
        held = np.array([names.index(grip.held) if grip.held else -1 for grip in self.panel.grips])[found.env]
        relevant = ours[found.body_a] | ours[found.body_b] | (found.body_a == held) | (found.body_b == held)
        out: dict[int, dict[tuple[str, str], tuple]] = {}
        for k in np.flatnonzero(relevant & np.isin(found.env, running)):
            env = int(found.env[k])
            pair = self._parties(names[found.body_a[k]], names[found.body_b[k]], self.panel.grips[env].held)
            if pair is None:
                continue
            distance = float(found.distance[k])
            known = out.setdefault(env, {})
            if pair not in known or distance < known[pair][3]:
                allowed = self._allowed(env, pair)
                known[pair] = (logs[env].step, *pair, distance, found.position[k].copy(), allowed)
        return {env: list(pairs.values()) for env, pairs in out.items()}

    def _parties(self, a: str, b: str, held: str) -> tuple[str, str] | None:
        """The pair with the robot's party first, the held object under its role; None for what is no contact of the
        robot's, or of two links that no configuration parts."""
        links = self.robot.link_names
        order = {True: 0, False: 1}
        first, second = sorted((a, b), key=lambda name: (order[name in links], order[name == held], name))
        if first not in links and first != held:
            return None
        if frozenset((first, second)) in self._exempt:
            return None
        return tuple(HELD if name == held and held else name for name in (first, second))  # type: ignore[return-value]

    def _allowed(self, env: int, pair: tuple[str, str]) -> bool:
        link, other = pair
        touchable = self.panel.touchable(env)
        if link in self._contact_links and touchable and other in (touchable, HELD):
            return True
        return link == HELD and other in self.panel.supports(env)

    def _is_real(self, row: tuple, env: int) -> bool:
        """Whether a contact's real surfaces touch, where the step ended."""
        measured, poses = self._state()
        places = link_poses(self.robot.description, measured[env])
        places |= {name: matrix_of(poses[env, k].astype(np.float64)) for k, name in enumerate(self.props)}
        a, b = (self.panel.grips[env].held if name == HELD else name for name in row[1:3])
        if not (self.truth.has(a) and self.truth.has(b)):
            return False
        return self.truth.distance(a, places[a], b, places[b]) <= TOUCHING

    # --- the end of an episode ---------------------------------------------------------------------------------------

    def _record(self, log: _Log, reason: str, alive: bool, env_id: int) -> EpisodeRecord:
        if alive:
            measured, poses = self._state()
            log.measured.append(measured[env_id])
            log.prop_poses.append(poses[env_id])
        else:  # the environment has begun another episode already: the last state is the one before its last step
            log.measured.append(log.measured[-1])
            log.prop_poses.append(log.prop_poses[-1])
        return EpisodeRecord(
            number=log.number,
            seed=log.seed,
            hazard=log.hazard,
            reason=reason,
            success=self.task.succeeded(reason),
            joint_names=self.robot.joint_names[: self.robot.num_actuated],
            props=self.props,
            present=log.present,
            commanded=np.stack(log.commanded),
            measured=np.stack(log.measured),
            prop_poses=np.stack(log.prop_poses),
            frame_step=np.array(log.frame_step, dtype=np.int32),
            held=np.array(log.held, dtype=np.str_),
            held_pose=np.stack(log.held_pose),
            touchable=np.array(log.touchable, dtype=np.str_),
            supports=np.array(log.supports, dtype=np.str_),
            hand=self.hand.hand_link,
            contacts=_as_contacts(log.contacts),
            failure=f"the episode ended by {reason}" if reason == PHYSICS_FAILED else "",
            refusals={str(judge): _as_refusals(log.refusals.get(judge, [])) for judge in self.panel.gates},
            maps={key: _as_frames(frames, self.panel.perceptions) for key, frames in log.maps.items()},
        )


def map_key(cell: float) -> str:
    """Key of a map in `EpisodeRecord.maps`."""
    return f"{1000 * cell:g}mm"


def _keep_map(log: _Log, step: int, cell: float, perception: DeploySimPerception, env: int) -> None:
    """Keep an environment's map when it differs from the one kept last."""
    bricks = perception.mapper.occupied[env].cpu().numpy()
    frames = log.maps.setdefault(map_key(cell), [])
    if not frames or not np.array_equal(frames[-1][1], bricks):
        frames.append((step, bricks.copy(), cell))


def _as_frames(frames: list[tuple], perceptions: dict[float, DeploySimPerception]) -> MapFrames:
    steps, bricks, cells = zip(*frames, strict=True)
    corner = np.array(perceptions[cells[0]].grid.corner.position)
    return MapFrames(np.array(steps, dtype=np.int32), np.stack(bricks), corner, cells[0])


def _as_refusals(rows: list[tuple]) -> Refusals:
    step, kind, a, b, centre = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return Refusals(
        np.array(step, dtype=np.int32),
        np.array(kind, dtype=np.int8),
        np.array(a, dtype=np.str_),
        np.array(b, dtype=np.str_),
        np.array(centre, dtype=np.float64).reshape(len(rows), 3),
    )


def _as_contacts(rows: list[tuple]) -> EngineContacts:
    step, a, b, distance, position, allowed = zip(*rows, strict=True) if rows else ((), (), (), (), (), ())
    return EngineContacts(
        np.array(step, dtype=np.int32),
        np.array(a, dtype=np.str_),
        np.array(b, dtype=np.str_),
        np.array(distance, dtype=np.float64),
        np.array(position, dtype=np.float64).reshape(len(rows), 3),
        np.array(allowed, dtype=np.bool_),
    )


def _exempt_pairs(model: CollisionModel) -> frozenset[frozenset[str]]:
    """Pairs of links that the description leaves out of the self check: neighbours on the chain, and the like."""
    return frozenset(frozenset((pair.link_a, pair.link_b)) for pair in model.exempt)
