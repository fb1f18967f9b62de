"""One random stream per environment: an episode is the same alone or in any batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

_LARGEST_SEED = np.iinfo(np.int64).max


class EpisodeStreams:
    """A generator per environment, renewed every episode from (the environment's seed, the episode's number).

    Environment i of `restart(seed)` has seed `seed + i`, as vector environments commonly do: environment 3 of a batch
    seeded 0 runs the episodes of a lone environment seeded 3.
    """

    def __init__(self, num_envs: int):
        entropy = np.random.SeedSequence().generate_state(num_envs, np.uint32)
        self._seeds: NDArray[np.int64] = entropy.astype(np.int64)
        self._episodes: NDArray[np.int64] = np.full(num_envs, -1, dtype=np.int64)
        self._generators = [np.random.default_rng(int(seed)) for seed in self._seeds]

    def restart(self, seed: int | Sequence[int], env_ids: Tensor) -> None:
        """Seed these environments: one int, or one for each environment there is. The next episode is number 0."""
        count = len(self._seeds)
        alone = isinstance(seed, (int, np.integer))
        seeds = np.array([int(seed) + i for i in range(count)] if alone else seed)  # type: ignore[arg-type]
        if (
            seeds.shape != (count,)
            or seeds.dtype.kind not in "iu"
            or (seeds < 0).any()
            or (seeds > _LARGEST_SEED).any()
        ):
            raise ValueError(
                f"seed must be an int in [0, 2**63), or {count} of them, one per environment; got {seed!r}"
            )
        chosen = env_ids.cpu().numpy()
        self._seeds[chosen] = seeds[chosen]
        self._episodes[chosen] = -1

    def begin_episodes(self, env_ids: Tensor) -> None:
        """Renew the generators of these environments for their next episode."""
        for i in env_ids.tolist():
            self._episodes[i] += 1
            self._generators[i] = np.random.default_rng([int(self._seeds[i]), int(self._episodes[i])])

    def assign(self, env_id: int, seed: int) -> None:
        """Let the next episode of one environment be number 0 of another seed."""
        if not isinstance(seed, (int, np.integer)) or not 0 <= seed <= _LARGEST_SEED:
            raise ValueError(f"seed must be an int in [0, 2**63), got {seed!r}")
        self._seeds[env_id] = seed
        self._episodes[env_id] = -1

    def seed_of(self, env_id: int) -> tuple[int, int]:
        """(seed, episode number): what `restart` and `begin_episodes` need to run this episode again."""
        return int(self._seeds[env_id]), int(self._episodes[env_id])

    def __getitem__(self, env_id: int) -> np.random.Generator:
        return self._generators[env_id]
