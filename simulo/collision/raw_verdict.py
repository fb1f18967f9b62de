"""The checker's answer as it comes from the kernels: numbers and party codes, no names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from simulo.collision.kinds import Kind

# Rows of int32; some hold float32 bits.
VERDICT_ROWS = ("kind", "row", "party_a", "party_b", "distance", "bound", "capped", "unknown", "between", "outside")


@dataclass(frozen=True)
class RawVerdict:
    """One answer per checked environment, shape (K,) each; a snapshot that later checks do not touch.

    words, int32: begins with the rows of `VERDICT_ROWS`, K after K. Everything else reads them. count: K.
    """

    words: torch.Tensor | NDArray[np.int32]
    count: int

    @staticmethod
    def of(block: torch.Tensor) -> RawVerdict:
        """Of rows as `block` has them."""
        return RawVerdict(block.reshape(-1), block.shape[1])

    @cached_property
    def block(self) -> torch.Tensor:
        """The rows, int32 (10, K); a tensor is made of NumPy's words when it is first asked for."""
        return torch.as_tensor(self.words)[: len(VERDICT_ROWS) * self.count].view(len(VERDICT_ROWS), self.count)

    @property
    def clear(self) -> torch.Tensor:
        """bool: every pair that had to be evaluated was, all finite, and clear of its margin."""
        return self.block[0] == int(Kind.CLEAR)

    @property
    def kind(self) -> torch.Tensor:
        """int8, see `Kind`."""
        return self.block[0].to(torch.int8)

    @property
    def row(self) -> torch.Tensor:
        """int32: row of the chunk that was refused, -1 where clear."""
        return self.block[1]

    @property
    def party_a(self) -> torch.Tensor:
        """int32 party code, see `parties`. -1 where the kind names nobody."""
        return self.block[2]

    @property
    def party_b(self) -> torch.Tensor:
        return self.block[3]

    @property
    def distance(self) -> torch.Tensor:
        """float32 [m], signed: a certified lower bound of the distance of the refused pair, or where clear of the
        least distance. -inf where nothing was measured, +inf where there was nothing to measure."""
        return self.block[4].view(torch.float32)

    @property
    def bound(self) -> torch.Tensor:
        """bool: `distance` is only a bound; where False the true distance lies within 10 um above it."""
        return self.block[5] != 0

    @property
    def gjk_capped(self) -> torch.Tensor:
        """int32: searches that ran out of iterations (their bound was used instead)."""
        return self.block[6]

    @property
    def unknown_cells(self) -> torch.Tensor:
        """int32: cells never seen within reach of the robot's boxes, counted per body and row."""
        return self.block[7]

    @property
    def between(self) -> torch.Tensor:
        """float32: of a refusal on the way to `row`, the share of that way at which it was found; 0 for one at `row`
        itself, and where clear."""
        return self.block[8].view(torch.float32)

    @property
    def outside_map(self) -> torch.Tensor:
        """int32: how many bodies and payloads reach past the map's edges, where no cell says what is there; of the
        row where they are most."""
        return self.block[9]
