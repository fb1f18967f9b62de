"""What a task is: a scene, how actions drive it, and what is observed, rewarded and ended."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from simulo.env import LearningEnv
    from simulo.scene import Scene


class Task:
    """Subclass it, give the dimensions, and fill in `build`, `apply_actions` and the `get_` methods.

    observation_dim, action_dim: widths of the observation and action rows. episode_length_s [s]: after it an episode is
    truncated; infinite by default. env: the environment that runs the task, from `on_start` on.
    """

    observation_dim: ClassVar[int]
    action_dim: ClassVar[int]
    episode_length_s: float = math.inf
    env: LearningEnv

    def build(self, scene: Scene) -> None:
        """Declare robots, props and cameras. Called once, before physics exists."""
        raise NotImplementedError(f"{type(self).__name__}.build(scene) must declare what the scene holds")

    def on_start(self, env: LearningEnv) -> None:
        """Called once, when the scene's handles are live: the place to make controllers and grippers."""

    def on_pre_physics_step(self) -> None:
        """Called first in every step."""

    def apply_actions(self, actions: Tensor) -> None:
        """Turn actions, shape (num_envs, action_dim), into targets. Called once per step, with a copy."""
        raise NotImplementedError(f"{type(self).__name__}.apply_actions(actions) must set targets")

    def on_post_physics_step(self) -> None:
        """Called when physics has advanced, before anything of the step is judged."""

    def get_observations(self) -> Tensor:
        """Shape (num_envs, observation_dim)."""
        raise NotImplementedError(f"{type(self).__name__}.get_observations() must return (num_envs, observation_dim)")

    def get_rewards(self) -> Tensor:
        """Shape (num_envs,)."""
        return torch.zeros(self.env.num_envs, device=self.env.device)

    def get_dones(self) -> tuple[dict[str, Tensor], Tensor]:
        """({reason: bool (num_envs,)}, truncated bool (num_envs,)). The time limit truncates by itself."""
        return {}, torch.zeros(self.env.num_envs, dtype=torch.bool, device=self.env.device)

    def reset_idx(self, env_ids: Tensor) -> None:
        """Start an episode in these environments, int64 (M,): the scene is back as declared, vary it here.

        Draw from `self.env.rng(i)` only, so that an episode is the same whatever runs beside it.
        """
