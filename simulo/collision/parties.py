"""Party codes: which link, payload, primitive or cell a verdict speaks of, in one int32.

0 .. L-1 are links, then come the payload slots (all slots of the first gripper, then of the second, ...), then the
primitives; -1 is nobody, and -2, -3, ... are the map's cells, the code 64 * brick + bit of the cell negated and
shifted by two. The least int32, which no cell reaches, is what lies past the map's edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulo.collision.model import CollisionModel

NOBODY = -1
EDGE = -(2**31)  # as in `kernels.voxels`


@dataclass(frozen=True)
class PartyCodes:
    """The codes of one checker. payloads_per_gripper: slots of each hand."""

    model: CollisionModel
    payloads_per_gripper: int

    @property
    def first_payload(self) -> int:
        return len(self.model.link_names)

    @property
    def num_payloads(self) -> int:
        return len(self.model.grippers) * self.payloads_per_gripper

    @property
    def first_primitive(self) -> int:
        return self.first_payload + self.num_payloads

    def payload(self, gripper: str, slot: int) -> int:
        """Code of a gripper's payload slot."""
        return self.first_payload + self.model.gripper_index(gripper) * self.payloads_per_gripper + slot

    def kind_of(self, code: int) -> str:
        """'link', 'payload', 'primitive', 'cell', 'edge' or 'nobody'."""
        if code == NOBODY:
            return "nobody"
        if code == EDGE:
            return "edge"
        if code < NOBODY:
            return "cell"
        if code < self.first_payload:
            return "link"
        return "payload" if code < self.first_primitive else "primitive"

    def name(
        self,
        code: int,
        primitive_names: Sequence[str] = (),
        brick_counts: tuple[int, int, int] | None = None,
    ) -> str:
        """A name a person can act on. brick_counts: the map's bricks along x, y, z, to name a cell by its indices."""
        kind = self.kind_of(code)
        if kind == "nobody":
            return "nobody"
        if kind == "edge":
            return "the unseen space past the map's edge"
        if kind == "link":
            return self.model.link_names[code]
        if kind == "payload":
            gripper, slot = divmod(code - self.first_payload, self.payloads_per_gripper)
            return f"payload {slot} of gripper {self.model.grippers[gripper].name}"
        if kind == "primitive":
            index = code - self.first_primitive
            return primitive_names[index] if index < len(primitive_names) else f"primitive {index}"
        if brick_counts is None:
            return f"map cell {cell_code(code)}"
        return "map cell ({}, {}, {})".format(*cell_indices(code, brick_counts))


def cell_code(party: int) -> int:
    """64 * brick + bit of a cell's party code."""
    return -party - 2


def cell_indices(party: int, brick_counts: tuple[int, int, int]) -> tuple[int, int, int]:
    """Cell indices along x, y, z of a cell's party code, in a map of brick_counts bricks."""
    brick, bit = divmod(cell_code(party), 64)
    column, z = divmod(brick, brick_counts[2])
    x, y = divmod(column, brick_counts[1])
    return 4 * x + (bit >> 4), 4 * y + ((bit >> 2) & 3), 4 * z + (bit & 3)
