"""Random streams: an environment's draws depend on its seed and episode, on nothing that runs beside it."""

import pytest
import torch

from simulo.seeding import EpisodeStreams


def draws(streams: EpisodeStreams, env: int) -> list[float]:
    return streams[env].random(4).tolist()


def test_environment_i_of_a_batch_draws_as_a_lone_one_seeded_i_higher():
    batch, lone = EpisodeStreams(4), EpisodeStreams(1)
    batch.restart(10, torch.arange(4))
    batch.begin_episodes(torch.arange(4))
    lone.restart(13, torch.arange(1))
    lone.begin_episodes(torch.tensor([0]))
    assert draws(batch, 3) == draws(lone, 0)
    assert draws(batch, 0) != draws(batch, 1)


def test_an_episode_does_not_depend_on_what_the_last_one_drew():
    idle, busy = EpisodeStreams(2), EpisodeStreams(2)
    for streams in (idle, busy):
        streams.restart([5, 7], torch.arange(2))
        streams.begin_episodes(torch.tensor([0, 1]))
    busy[0].random(1000)
    for streams in (idle, busy):
        streams.begin_episodes(torch.tensor([0]))
    assert draws(idle, 0) == draws(busy, 0)
    assert idle.seed_of(0) == (5, 1)
    assert idle.seed_of(1) == (7, 0)


def test_assigned_seeds_start_at_their_first_episode():
    streams, other = EpisodeStreams(2), EpisodeStreams(1)
    streams.restart(0, torch.arange(2))
    streams.begin_episodes(torch.arange(2))
    streams.assign(1, 99)
    streams.begin_episodes(torch.tensor([1]))
    other.restart(99, torch.arange(1))
    other.begin_episodes(torch.tensor([0]))
    assert draws(streams, 1) == draws(other, 0)


@pytest.mark.parametrize("seed", [[1, 2, 3], -1, [0, -1], 0.5, 2**63, "1"])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="seed must be"):
        EpisodeStreams(2).restart(seed, torch.arange(2))
    with pytest.raises(ValueError, match="seed must be"):
        EpisodeStreams(2).assign(0, seed)


def test_only_the_named_environments_are_seeded():
    streams = EpisodeStreams(3)
    streams.restart(0, torch.arange(3))
    streams.restart(100, torch.tensor([1]))
    streams.begin_episodes(torch.arange(3))
    assert [streams.seed_of(env) for env in range(3)] == [(0, 0), (101, 0), (2, 0)]
