"""Environment ids: every form that is allowed, every bad one named before anything happens (B39)."""

import numpy as np
import pytest
import torch

from simulo.indexing import resolve_env_ids


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (None, [0, 1, 2, 3]),
        ([], []),
        (torch.zeros(0), []),
        (2, [2]),
        ([1, 3], [1, 3]),
        ((0,), [0]),
        (range(1, 3), [1, 2]),
        (np.array([3, 0]), [3, 0]),
        (np.int64(1), [1]),
        (torch.tensor([2, 2, 0], dtype=torch.int32), [2, 2, 0]),
        (torch.tensor(3), [3]),
        ([torch.tensor(1), np.int32(2)], [1, 2]),
        ([True, False, False, True], [0, 3]),
        (torch.tensor([False, True, True, False]), [1, 2]),
        (np.array([False] * 4), []),
    ],
)
def test_b39_every_allowed_form(ids, expected):
    resolved = resolve_env_ids(ids, 4)
    assert resolved.dtype == torch.int64
    assert resolved.tolist() == expected


@pytest.mark.parametrize("bad", [4, -1, -5])
def test_b39_ids_outside_are_named_with_the_count(bad):
    for ids in (bad, [0, bad], torch.tensor([bad]), np.array([1, bad])):
        with pytest.raises(IndexError, match=rf"{bad} is outside \[0, 4\).*num_envs=4"):
            resolve_env_ids(ids, 4)


@pytest.mark.parametrize("mask", [[True, False], torch.ones(5, dtype=torch.bool), np.zeros(3, dtype=bool)])
def test_masks_of_another_length_are_refused(mask):
    with pytest.raises(IndexError, match=r"shape \(4,\)"):
        resolve_env_ids(mask, 4)


@pytest.mark.parametrize(
    "ids",
    [
        torch.ones(4, dtype=torch.uint8),
        np.ones(4, dtype=np.uint8),
        torch.ones(4),
        np.ones(4),
        [0.0, 1.0],
        True,
        "0",
        {"a": 1}.get,
        ["0"],
        np.array(["0"]),
        [None],
        [1, True],
        2**70,
    ],
)
def test_what_could_be_a_mask_or_is_no_id_is_refused(ids):
    with pytest.raises(TypeError):
        resolve_env_ids(ids, 4)


def test_b43_views_are_read_right_and_never_written():
    table = torch.arange(12).view(4, 3)
    before = table.clone()
    assert resolve_env_ids(table[:, -1], 12).tolist() == [2, 5, 8, 11]
    assert resolve_env_ids(table[0].flip(0), 12).tolist() == [2, 1, 0]
    assert resolve_env_ids(torch.tensor([3]).expand(4), 12).tolist() == [3, 3, 3, 3]
    assert torch.equal(table, before)
