"""What one call asks, put where the kernels read it; what the last call left there already is not put again."""

from __future__ import annotations

import numpy as np
import torch

from simulo.collision.buffers import QueryBuffers, Sizes
from simulo.collision.inputs import refuse_unless
from simulo.collision.model import CollisionModel
from simulo.collision.selection import Links, Selection, select
from simulo.errors import CollisionModelError
from simulo.indexing import EnvIds, resolve_env_ids

_INPUTS = ("base_pose", "measured", "measured_active", "map_status")


class Question:
    """The inputs of a checker's calls, other than its configurations. Everything is asked of at first.

    asked: what is asked of now. Raises CollisionModelError, naming it, for an input that does not fit.
    """

    def __init__(
        self, model: CollisionModel, sizes: Sizes, query: QueryBuffers, device: torch.device, motion: bool
    ) -> None:
        """motion: whether calls say where the ways to their first rows begin."""
        self._model, self._sizes, self._query, self._device, self._motion = model, sizes, query, device, motion
        self.everything = select(model, sizes.payloads_per_gripper, None)
        self._selections: dict[Links, Selection] = {None: self.everything}
        self._settings: tuple[object, ...] = ()
        self._defaulted = {*_INPUTS, "env_ids"}
        self._put_selection(self.everything)

    def set_margins(self, self_margin: float, world_margin: float) -> None:
        """See `CollisionChecker.set_margins`."""
        if not (np.isfinite([self_margin, world_margin]).all() and min(self_margin, world_margin) >= 0.0):
            raise CollisionModelError(f"margins must be finite and >= 0 m, got {self_margin!r} and {world_margin!r}")
        self._margins = torch.tensor([self_margin, world_margin], device=self._device)
        self._widened = True
        self.widen(None)

    def widen(self, widen: torch.Tensor | None) -> None:
        """Put the margins, wider by `widen` [m] for this call; below zero or no number is infinitely wide."""
        if widen is not None:
            refuse_unless("widen", widen, (self._sizes.num_envs,), torch.float32, self._device)
            self._query.margins.copy_(self._margins + widen.where(widen >= 0.0, torch.inf)[:, None])
        elif self._widened:
            self._query.margins.copy_(self._margins.expand(self._sizes.num_envs, 2))
        self._widened = widen is not None

    def entry_ids(self, entries: int, env_ids: EnvIds | None) -> torch.Tensor | None:
        """The environment of each entry; None where they are all of them, in order."""
        num_envs = self._sizes.num_envs
        if env_ids is None:
            if entries != num_envs:
                raise CollisionModelError(
                    f"q has {entries} entries and this checker {num_envs} environments; pass env_ids, one per entry"
                )
            return None
        ids = resolve_env_ids(env_ids, num_envs, self._device)
        if len(ids) != entries:
            raise CollisionModelError(f"q has {entries} entries, env_ids {len(ids)}; there must be one id per entry")
        return ids

    def put_env_ids(self, ids: torch.Tensor | None, entries: int) -> None:
        if ids is not None:
            self._query.env[:entries].copy_(ids)
            self._defaulted.discard("env_ids")
        elif "env_ids" not in self._defaulted:
            self._query.env.copy_(torch.arange(self._sizes.num_envs))
            self._defaulted.add("env_ids")

    def put_settings(self, entries: int, rows: int, world: bool, distances: bool) -> None:
        asked = self.asked
        settings = (
            entries * rows, rows, int(distances), len(asked.pairs), len(asked.bodies) if world else 0, int(world),
            asked.num_plain,
        )  # fmt: skip
        if settings != self._settings:
            self._query.settings.copy_(torch.tensor(settings, dtype=torch.int32))
            self._settings = settings

    def put_env_inputs(
        self,
        base_pose: torch.Tensor | None,
        measured: torch.Tensor | None,
        measured_active: torch.Tensor | None,
        map_status: torch.Tensor | None,
    ) -> None:
        n, hands, query = self._sizes.num_envs, len(self._model.grippers), self._query
        if (measured is None) != (measured_active is None):
            raise CollisionModelError("measured and measured_active belong together; pass both or neither")
        self._put("base_pose", base_pose, query.base_pose, (n, 7), torch.float32, [0.0, 0, 0, 1, 0, 0, 0])
        self._put("measured", measured, query.measured[:, :hands], (n, hands), torch.float32, 0.0)
        self._put("measured_active", measured_active, query.measured_active[:, :hands], (n, hands), torch.bool, 0)
        self._put("map_status", map_status, query.map_status, (n,), torch.int8, 0)

    def env_inputs_changed(self) -> None:
        """Somebody else writes what `put_env_inputs` puts."""
        self._defaulted -= set(_INPUTS)

    def put_start(self, start: torch.Tensor | None) -> None:
        if (start is not None) != self._motion:
            raise CollisionModelError(
                "start says where the way to the first row begins: it belongs to a checker that was constructed with "
                "motion bounds; pass both or neither"
            )
        if start is not None:
            refuse_unless("start", start, tuple(self._query.start.shape), torch.float32, self._device)
            self._query.start.copy_(start)

    def ask(self, links: Links) -> None:
        """Ask of these links from now on."""
        if not isinstance(links, str | tuple | None):
            raise CollisionModelError(f"links must be a name, a pair of names or None, got {type(links).__name__}")
        if links not in self._selections:
            self._selections[links] = select(self._model, self._sizes.payloads_per_gripper, links)
        if self.asked is not self._selections[links]:
            self._put_selection(self._selections[links])

    def _put(
        self,
        name: str,
        values: torch.Tensor | None,
        target: torch.Tensor,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        default: float | list[float],
    ) -> None:
        """Copy an input into its place, or its default when the last call did not leave it there."""
        if values is not None:
            refuse_unless(name, values, shape, dtype, self._device)
            target.copy_(values)
            self._defaulted.discard(name)
        elif name not in self._defaulted:
            target.copy_(torch.tensor(default, dtype=target.dtype).expand(target.shape))
            self._defaulted.add(name)

    def _put_selection(self, selection: Selection) -> None:
        query = self._query
        query.pairs[: len(selection.pairs)].copy_(selection.pairs)
        query.bodies[: len(selection.bodies)].copy_(selection.bodies)
        query.slot_asked[: len(selection.slots)].copy_(selection.slots)
        query.link_asked.copy_(selection.links)
        query.expected_pairs.copy_(selection.expected_pairs)
        self.asked = selection
