"""LearningEnv: runs a task in many environments at once, with a gate between its commands and physics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from simulo.backends import BackendOptions, build_backend
from simulo.decision import GateDecision as GateDecision
from simulo.device import resolve_device
from simulo.indexing import EnvIds, resolve_env_ids
from simulo.scene import Scene
from simulo.seeding import EpisodeStreams
from simulo.task import Task
from simulo.tensors import real_tensor

GATE = "gate"
PHYSICS_FAILED = "physics_failed"
TIME_LIMIT = "time_limit"
TRUNCATED = "truncated"
_OWN_REASONS = frozenset({GATE, PHYSICS_FAILED, TIME_LIMIT, TRUNCATED})


class Gate(Protocol):
    """What stands between a task's commands and physics. All calls come from the environment.

    `filter` judges the robots' buffered commands. Where it refuses an environment and physics must not see the refused
    command (hold and terminate alike) it calls `robot.restore_commands(mask)` for it, and `robot.accept_commands(mask)`
    for those it lets through; both take the grippers' latches along.
    """

    def bind(self, env: LearningEnv) -> None:
        """Called once, when the scene is live and before `task.on_start`. Raises GateError where it cannot vouch."""
        ...

    def filter(self, env: LearningEnv) -> GateDecision: ...

    def reset(self, env_ids: Tensor) -> None:
        """Forget what was declared, held and mapped in these environments, int64 (M,)."""
        ...

    def check_reset(self, env: LearningEnv, env_ids: Tensor) -> None:
        """Judge the configuration these environments start in. Raises GateError where it collides."""
        ...

    def describe(self, env_id: int) -> str:
        """A sentence on the last verdict of one environment."""
        ...


class _OpenGate:
    """No gate: everything passes."""

    def __init__(self, num_envs: int, device: torch.device):
        self._decision = GateDecision((), torch.zeros(num_envs, dtype=torch.bool, device=device))

    def bind(self, env: LearningEnv) -> None: ...

    def filter(self, env: LearningEnv) -> GateDecision:
        return self._decision

    def reset(self, env_ids: Tensor) -> None: ...

    def check_reset(self, env: LearningEnv, env_ids: Tensor) -> None: ...

    def describe(self, env_id: int) -> str:
        return "no gate"


class LearningEnv:
    """`num_envs` environments of one task.

    Environments that end are reset within the same step (`autoreset_mode` "same_step"): `step` then returns the first
    observation of their new episode, and info["final_obs"] the last of the old one.

    physics_dt [s]: one physics step; `physics_steps_per_action` of them make one environment step, `dt`.
    gate: judges every step's commands before anything is applied; None lets everything pass. validate_actions: False
    spares the look at every action (on a GPU, the wait for it); one that is not finite then becomes targets that are
    not, and stops its environment at the gate instead of raising.
    """

    autoreset_mode = "same_step"

    def __init__(
        self,
        task: Task,
        num_envs: int = 1,
        backend: str = "mujoco",
        physics_dt: float = 0.002,
        physics_steps_per_action: int = 10,
        gate: Gate | None = None,
        device: str = "cpu",
        validate_actions: bool = True,
    ):
        _check_dimensions(task)
        options = BackendOptions(num_envs, physics_dt, physics_steps_per_action, resolve_device(device))
        self.task = task
        self.num_envs = num_envs
        self.physics_dt = physics_dt
        self.physics_steps_per_action = physics_steps_per_action
        self.device = options.device
        self.validate_actions = validate_actions
        self.scene = Scene()
        task.build(self.scene)
        self.backend = build_backend(backend, self.scene, options)
        self.scene.close()
        for robot in self.scene.robots.values():
            robot.refuses_bad_commands = validate_actions
        if gate is not None and (isinstance(gate, type) or not hasattr(gate, "bind")):
            raise TypeError(f"gate must be a simulo.CollisionGate(robot) or None, got {gate!r:.60}")
        self.gate: Gate = _OpenGate(num_envs, self.device) if gate is None else gate
        self.episode_steps = torch.zeros(num_envs, dtype=torch.int64, device=self.device)
        self.step_count = 0
        self._gated = gate is not None
        self._started = False
        self._streams = EpisodeStreams(num_envs)
        task.env = self
        self.gate.bind(self)
        task.on_start(self)

    @property
    def dt(self) -> float:
        """Duration of one environment step [s]."""
        return self.physics_dt * self.physics_steps_per_action

    @property
    def time(self) -> float:
        """Time that the environments have been stepped since they were built [s]."""
        return self.step_count * self.dt

    @property
    def observation_dim(self) -> int:
        return self.task.observation_dim

    @property
    def action_dim(self) -> int:
        return self.task.action_dim

    def rng(self, env_id: int) -> np.random.Generator:
        """The random stream of one environment's present episode."""
        return self._streams[self._existing(env_id)]

    def episode_seed(self, env_id: int) -> tuple[int, int]:
        """(seed, number) of one environment's present episode: with them it can be run again, alone."""
        return self._streams.seed_of(self._existing(env_id))

    def assign_seed(self, env_id: int, seed: int) -> None:
        """Have the next episode of one environment be the first episode of `seed`."""
        self._streams.assign(self._existing(env_id), seed)

    def reset(self, seed: int | Sequence[int] | None = None, env_ids: EnvIds | None = None) -> tuple[Tensor, dict]:
        """Start new episodes, everywhere or in env_ids. Returns observations (num_envs, observation_dim), and info.

        seed: environment i gets `seed + i`, or its own of a sequence of num_envs; without it the streams go on.
        The first reset must be of all environments.
        """
        ids = resolve_env_ids(env_ids, self.num_envs, self.device)
        if not self._started and len(ids.unique()) < self.num_envs:
            raise RuntimeError("the first reset() must be of all environments: leave env_ids out")
        if seed is not None:
            self._streams.restart(seed, ids)
        self._begin_episodes(ids)
        self._started = True
        return self._observations(), {}

    def step(self, actions: Tensor | ArrayLike) -> tuple[Tensor, Tensor, Tensor, Tensor, dict]:
        """One environment step of every environment.

        actions: shape (num_envs, action_dim). Returns observations (num_envs, observation_dim), rewards (num_envs,),
        terminated and truncated, bool (num_envs,), and info: "stop" maps each ended environment to its reason,
        "final_obs" (num_envs, observation_dim) is there when one ended, "gate" is the gate's verdict.
        Raises ValueError, with nothing applied, for actions of another shape or (see validate_actions) not finite, and
        TypeError for bools, since elsewhere True means another thing than 1.
        """
        applied = self._checked(actions)
        self.task.on_pre_physics_step()
        self.task.apply_actions(applied)
        decision = self.gate.filter(self)
        self.scene.flush()
        failed = self.backend.step(self.physics_steps_per_action)
        self.step_count += 1
        self.episode_steps += 1
        self.task.on_post_physics_step()
        terminated, truncated, stop = self._dones(decision, failed)
        rewards = self._per_env(self.task.get_rewards(), "get_rewards")
        observations = self._observations()
        info: dict[str, Any] = {"stop": stop}
        if self._gated:
            info["gate"] = decision.verdict
        if stop:
            info["final_obs"] = observations.clone()
            self._begin_episodes(torch.tensor(sorted(stop), device=self.device))
            observations = self._observations()
        return observations, rewards, terminated, truncated, info

    def close(self) -> None:
        """Release the simulator. The environment cannot be stepped afterwards."""
        self.backend.close()

    # --- the parts of a step -----------------------------------------------------------------------------------------

    def _checked(self, actions: Tensor | ArrayLike) -> Tensor:
        if not self._started:
            raise RuntimeError("call reset() before the first step()")
        given = real_tensor(actions, "actions")
        if given.shape != (self.num_envs, self.action_dim):
            raise ValueError(
                f"actions must have shape (num_envs, action_dim) = ({self.num_envs}, {self.action_dim}), "
                f"got {tuple(given.shape)}; nothing was applied"
            )
        copy = given.to(device=self.device, dtype=torch.float32, copy=True)
        if self.validate_actions and not torch.isfinite(copy).all():
            wrong = (~torch.isfinite(copy)).any(dim=1).nonzero().flatten().tolist()
            raise ValueError(f"actions are not finite in environments {_short(wrong)}; nothing was applied")
        return copy

    def _dones(self, decision: GateDecision, failed: Tensor) -> tuple[Tensor, Tensor, dict[int, str]]:
        """Terminated, truncated, and the reason of every environment that ended: the gate's first, then the task's."""
        reasons, task_truncated = self.task.get_dones()
        taken = sorted(_OWN_REASONS & set(reasons))
        if taken:  # or the task's flags would stand in for the gate's
            raise ValueError(
                f"{type(self.task).__name__}.get_dones() uses {taken}, which are the environment's: rename"
            )
        terminations = {GATE: decision.terminate, PHYSICS_FAILED: failed, **reasons}
        terminated = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        for name, flags in terminations.items():
            terminated |= self._per_env(flags, f"get_dones()[{name!r}]", torch.bool)
        timed_out = self.episode_steps * self.dt >= self.task.episode_length_s - 1e-9
        truncated = self._per_env(task_truncated, "get_dones() truncated", torch.bool) | timed_out
        truncations = {TIME_LIMIT: timed_out, TRUNCATED: truncated}
        stop: dict[int, str] = {}
        for i in (terminated | truncated).nonzero().flatten().tolist():
            reason = next(name for name, flags in (terminations | truncations).items() if flags[i])
            stop[i] = f"{GATE}: {self.gate.describe(i)}" if reason == GATE else reason
        return terminated, truncated, stop

    def _begin_episodes(self, env_ids: Tensor) -> None:
        """New episodes in these environments: scene as declared, the task's variation, the gate's one look at it."""
        env_ids = env_ids.unique()  # an id given twice begins one episode
        if env_ids.numel() == 0:
            return
        self._streams.begin_episodes(env_ids)
        self.backend.reset(env_ids)
        self.scene.reset(env_ids)
        self.gate.reset(env_ids)
        self.task.reset_idx(env_ids)
        self.episode_steps[env_ids] = 0
        self.gate.check_reset(self, env_ids)

    def _existing(self, env_id: int) -> int:
        if not 0 <= env_id < self.num_envs:
            raise IndexError(f"environment id {env_id} is outside [0, {self.num_envs}) (num_envs={self.num_envs})")
        return env_id

    def _observations(self) -> Tensor:
        observations = self.task.get_observations()
        if not isinstance(observations, Tensor) or observations.shape != (self.num_envs, self.observation_dim):
            raise ValueError(
                f"{type(self.task).__name__}.get_observations() must return a tensor of shape "
                f"({self.num_envs}, {self.observation_dim}), got {_shape(observations)}"
            )
        return observations

    def _per_env(self, values: Tensor, what: str, dtype: torch.dtype = torch.float32) -> Tensor:
        if not isinstance(values, Tensor) or values.shape != (self.num_envs,):
            raise ValueError(
                f"{type(self.task).__name__}: {what} must be a tensor of shape ({self.num_envs},), got {_shape(values)}"
            )
        return values.to(dtype)


def _check_dimensions(task: Task) -> None:
    if isinstance(task, type):
        raise TypeError(f"task must be an instance: {task.__name__}(), got the class {task.__name__}")
    for name in ("observation_dim", "action_dim"):
        width = getattr(task, name, None)
        if not isinstance(width, int) or width < 0:
            raise ValueError(f"{type(task).__name__}.{name} must be an int, the width of its rows; got {width!r}")
    if not task.episode_length_s > 0.0:
        raise ValueError(f"{type(task).__name__}.episode_length_s must be > 0 in seconds, got {task.episode_length_s}")


def _shape(value: Any) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def _short(ids: list[int]) -> str:
    return f"{ids[:8]}" + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
