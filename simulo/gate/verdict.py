"""What the gate found, per environment, as tensors and as sentences."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from simulo.collision import Kind, RawVerdict

ADVICE = {
    Kind.NON_FINITE: "a commanded joint, the base pose, a measured finger or a payload pose is not a finite number; "
    "look for NaN in the task's arithmetic",
    Kind.STALE_MAP: "the newest map is older than max_age; see that depth frames still arrive, or call set_world again",
    Kind.NO_MAP: "no map has been given; call gate.set_world with a grid, primitives or a perception",
    Kind.NOT_EVALUATED: "the check ended before every pair was evaluated, as it does for motion that begins or ends "
    "beyond a slide's limits; take it for a collision",
}

_NO_EFFORT = torch.zeros(0, 0, dtype=torch.bool)


@dataclass(frozen=True)
class Checked:
    """What a verdict vouches for. world: "voxels", "primitives", "none" or "skipped". links: "all" or a hand.

    self_margin, world_margin [m]. motion: whether the way to each configuration was checked, straight in joint space.
    robot_codes: party codes below it are links and payloads, which are held apart by the self margin. floating: the
    base moves by itself, and was judged where it is measured.
    """

    world: str
    links: str
    self_margin: float
    world_margin: float
    motion: bool
    robot_codes: int
    floating: bool = False

    def margin(self, party: int) -> float:
        """The margin [m] that was kept to a party."""
        return self.self_margin if 0 <= party < self.robot_codes else self.world_margin

    def __str__(self) -> str:
        outside = {"none": "not the world (world='none')", "skipped": "not the world (world=False)"}
        world = outside.get(self.world, f"the {self.world} at margin {1000 * self.world_margin:.1f} mm")
        of = "" if self.links == "all" else f" of {self.links}"
        way = " all along the way, straight in joint space" if self.motion else ""
        return f"self-collision{of} at margin {1000 * self.self_margin:.1f} mm and {world}{way}"


@dataclass(frozen=True)
class Reserve:
    """What a verdict does not vouch for. start_known: whether the robot is measured, so that the way to the first
    configuration is known. motion(i) [m]: an upper bound of how far anything comes or goes, relative to anything that
    it is checked against, between one of entry i's configurations and the next."""

    start_known: bool
    motion: Callable[[int], float]


SENTENCES = 4
"""How many refusals a printed verdict spells out."""


@dataclass(frozen=True, repr=False)
class Verdict:
    """The gate's answer for M entries: one per environment of a step, or per candidate that `check` was asked about.

    Printed, it says how many are clear and why the first others are not; `describe(i)` has the sentence of any.
    All tensors have shape (M,) and are a snapshot. env_ids: int64, each entry's environment. name_of(code, environment)
    names a party and, for a cell, its place. reserve: see `unchecked_motion`. widened [m], shape
    (num_envs,): how much wider the margins were than `checked` has them. by_effort: bool,
    (M, dof) or empty, the joints that were judged where they are measured, since nobody knows where effort takes them.
    """

    raw: RawVerdict
    env_ids: Tensor
    checked: Checked
    name_of: Callable[[int, int], str]
    reserve: Reserve
    widened: Tensor
    by_effort: Tensor = _NO_EFFORT
    joint_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.env_ids)

    def __repr__(self) -> str:
        return f"<Verdict on {len(self)}: {', '.join(f'{n} {kind}' for kind, n in self.counts.items()) or 'nothing'}>"

    def __str__(self) -> str:
        refused = (~self.clear).nonzero().flatten().tolist()
        if not refused:
            return f"all {len(self)} clear of {self.checked}"
        more = [f"and {len(refused) - SENTENCES} more"] if len(refused) > SENTENCES else []
        told = [self.describe(i) for i in refused[:SENTENCES]]
        return "\n  ".join([f"{len(refused)} of {len(self)} refused", *told, *more])

    @property
    def clear(self) -> Tensor:
        """bool: everything that had to be evaluated was, and is clear of its margin."""
        return self.raw.clear

    @property
    def kind(self) -> Tensor:
        """int8, see `simulo.collision.Kind`; `kind_name` has the words."""
        return self.raw.kind

    @property
    def row(self) -> Tensor:
        """int32: the first offending row of the chunk, -1 when clear."""
        return self.raw.row

    @property
    def party_a(self) -> Tensor:
        """int32 party code, -1 for nobody; `parties` has the names."""
        return self.raw.party_a

    @property
    def party_b(self) -> Tensor:
        return self.raw.party_b

    @property
    def distance(self) -> Tensor:
        """float32 [m], signed: a lower bound of the distance of the two parties, or of everything when clear."""
        return self.raw.distance

    @property
    def bound(self) -> Tensor:
        """bool: the distance is only a bound; where False the true one is within 10 um above it."""
        return self.raw.bound

    @property
    def unknown_cells(self) -> Tensor:
        """int32: cells in reach that no camera has ever seen."""
        return self.raw.unknown_cells

    @property
    def outside_map(self) -> Tensor:
        """int32: bodies and payloads that reach past the map's edges, where no cell says what is there."""
        return self.raw.outside_map

    @property
    def gjk_capped(self) -> Tensor:
        """int32: distance searches that fell back to their looser bound."""
        return self.raw.gjk_capped

    @property
    def between(self) -> Tensor:
        """float32: of a refusal on the way to `row`, the share of that way at which it was found; else 0."""
        return self.raw.between

    def unchecked_motion(self, i: int) -> float:
        """How much motion [m] of one entry nobody looked at: an upper bound of how far anything comes or goes, relative
        to what it is checked against, from one configuration to the next. 0 with the motion check."""
        return 0.0 if self.checked.motion else self.reserve.motion(i)

    @property
    def counts(self) -> dict[str, int]:
        """How many entries there are of each kind that occurs."""
        numbers = torch.bincount(self.kind.to(torch.int64), minlength=len(Kind)).tolist()
        return {kind.name.lower(): numbers[kind] for kind in Kind if numbers[kind]}

    def kind_name(self, i: int) -> str:
        """Lower-case name of one entry's kind: "clear", "self", "world", ..."""
        return Kind(int(self.kind[i])).name.lower()

    def parties(self, i: int) -> tuple[str, str]:
        """Names of the two parties of one entry; "nobody" where there is none."""
        env = int(self.env_ids[i])
        return self.name_of(int(self.party_a[i]), env), self.name_of(int(self.party_b[i]), env)

    def describe(self, i: int) -> str:
        """One sentence on one entry: what was refused and why, or what CLEAR stands for. IndexError for no entry."""
        if not 0 <= operator.index(i) < len(self):
            raise IndexError(f"entry {i} is outside [0, {len(self)}), the entries of this verdict")
        kind = Kind(int(self.kind[i]))
        where = f"environment {int(self.env_ids[i])}"
        swept = self._unseen(i)
        if kind == Kind.CLEAR:
            wider = float(self.widened[self.env_ids[i]])
            more = f", both wider by {1000 * wider:.1f} mm" if wider else ""
            return f"{where}: clear of {self.checked}{more}{swept}{self._unsaid(i)}"
        between = float(self.between[i])
        if between > 0.0:
            where += f", {100.0 * between:.0f} % of the way to row {int(self.row[i])}"
        elif int(self.row[i]) > 0:
            where += f", row {int(self.row[i])}"
        if kind in ADVICE:
            return f"{where}: refused ({self.kind_name(i)}): {ADVICE[kind]}"
        a, b = self.parties(i)
        relation = _relation(float(self.distance[i]), bool(self.bound[i]))
        margin = 1000 * (self.checked.margin(int(self.party_b[i])) + float(self.widened[self.env_ids[i]]))
        return f"{where}: refused ({self.kind_name(i)}): {a} {relation} {b}; the margin is {margin:.1f} mm{swept}"

    def _unseen(self, i: int) -> str:
        """What of the world nobody has seen."""
        unknown, outside = int(self.unknown_cells[i]), int(self.outside_map[i])
        said = [f"{unknown} unseen cells in reach"] if unknown else []
        if outside:
            said.append(f"{outside} bodies reach past the map's edges, where nothing is known")
        return f" ({'; '.join(said)})" if said else ""

    def joints_by_effort(self, i: int) -> tuple[str, ...]:
        """Joints of one entry that were judged where they are measured."""
        if len(self.by_effort) == 0:
            return ()
        return tuple(n for n, effort in zip(self.joint_names, self.by_effort[i].tolist(), strict=True) if effort)

    def _unsaid(self, i: int) -> str:
        """What CLEAR does not stand for."""
        driven = self.joints_by_effort(i)
        effort = f"; under effort, and judged where measured: {', '.join(driven)}" if driven else ""
        if self.checked.floating:
            effort += "; the base floats, and is judged where it is measured"
        if self.checked.motion:
            return effort
        unknown = "" if self.reserve.start_known else ", nor how the first one is reached"
        millimetres = 1000.0 * self.unchecked_motion(i)
        return f"; the motion between configurations is not checked, up to {millimetres:.1f} mm of it{unknown}{effort}"


def _relation(distance: float, bound: bool) -> str:
    """How two parties stand to each other, from a signed distance [m] that may be no more than a lower bound."""
    millimetres = 1000.0 * abs(distance)
    if distance < 0.0:
        return f"is {'at most ' if bound else ''}{millimetres:.1f} mm inside"
    return f"is {'at least ' if bound else ''}{millimetres:.1f} mm from"
