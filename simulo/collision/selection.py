"""Which pairs, bodies and payloads a question is about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from simulo.collision.model import CollisionModel
from simulo.errors import CollisionModelError


@dataclass(frozen=True)
class Selection:
    """What is asked of: indices of pairs and bodies, ascending; payload slots and links as masks, uint8.

    expected_pairs, shape (2^(hands + 1),): how many pairs that is, by the bit mask of hands posed at measured values.
    num_plain: the pairs, first in order, that no hand has to be measured for.
    """

    pairs: torch.Tensor
    bodies: torch.Tensor
    slots: torch.Tensor
    links: torch.Tensor
    expected_pairs: torch.Tensor
    num_plain: int


def select(model: CollisionModel, payloads_per_gripper: int, links: str | None) -> Selection:
    """Everything (None), or what concerns "gripper:<name>" (jaws, followers and what hangs on them) or one link."""
    wanted = _wanted(model, links)
    arrays, bodies = model.pair_arrays, model.bodies
    pairs = np.flatnonzero(np.isin(arrays.links, wanted).any(1))
    still = {model.link_index(name) for name in model.static_links}
    moving = [i for i, link in enumerate(bodies.link) if link in wanted and link not in still]
    hands = [g for g, gripper in enumerate(model.grippers) if model.link_index(gripper.hand_link) in wanted]
    if links is not None and links.startswith("gripper:"):
        hands = [model.gripper_index(links.removeprefix("gripper:"))]
    held = np.isin(np.arange(len(model.grippers)), hands).repeat(payloads_per_gripper)
    asked_links = np.isin(np.arange(len(model.link_names)), wanted)
    gates = arrays.pair[pairs, 2]
    masks = np.arange(2 << len(model.grippers))
    expected = ((gates[None, :] & ~masks[:, None]) == 0).sum(1)
    return Selection(
        _ints(pairs), _ints(moving), _mask(held), _mask(asked_links), _ints(expected), int((gates == 0).sum())
    )


def _ints(values: object) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.int32))


def _mask(values: NDArray[np.bool_]) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.uint8))


def _wanted(model: CollisionModel, links: str | None) -> list[int]:
    if links is None:
        return list(range(len(model.link_names)))
    if links.startswith("gripper:"):
        gripper = model.grippers[model.gripper_index(links.removeprefix("gripper:"))]
        return [model.link_index(name) for name in {*gripper.contact_links, *gripper.moving_links}]
    if links in model.link_names:
        return [model.link_index(links)]
    choices = ", ".join([*(f"gripper:{g.name}" for g in model.grippers), *model.link_names])
    raise CollisionModelError(f"links={links!r} names no part of robot {model.name!r}; choices: {choices}")
