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


# A link, "gripper:<name>", two links for their pair alone, or None for everything.
Links = str | tuple[str, str] | None


def select(model: CollisionModel, payloads_per_gripper: int, links: Links) -> Selection:
    """Everything (None), or what concerns "gripper:<name>" (jaws, followers and what hangs on them) or one link; of two
    links only their pair: neither payloads nor the world."""
    if isinstance(links, tuple):
        return _select_pair(model, payloads_per_gripper, links)
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
    return _selection(model, pairs, moving, held, asked_links)


def _select_pair(model: CollisionModel, payloads_per_gripper: int, links: tuple[str, str]) -> Selection:
    numbers = sorted(model.link_index(name) for name in links)
    pairs = np.flatnonzero((model.pair_arrays.links == numbers).all(1))
    if not len(pairs):
        raise CollisionModelError(
            f"robot {model.name!r} does not check {links[0]!r} against {links[1]!r}: an answer would say nothing"
        )
    slots = np.zeros(len(model.grippers) * payloads_per_gripper, dtype=bool)
    return _selection(model, pairs, [], slots, np.zeros(len(model.link_names), dtype=bool))


def _selection(
    model: CollisionModel,
    pairs: NDArray[np.int64],
    bodies: list[int],
    slots: NDArray[np.bool_],
    links: NDArray[np.bool_],
) -> Selection:
    gates = model.pair_arrays.pair[pairs, 2]
    masks = np.arange(2 << len(model.grippers))
    expected = ((gates[None, :] & ~masks[:, None]) == 0).sum(1)
    return Selection(
        _ints(pairs),
        _ints(bodies),
        _mask(slots),
        _mask(links),
        _ints(expected),
        int((gates == 0).sum()),
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
