"""Stops and contacts, counted: pure functions from what was measured in a run to what it is worth.

A stop event is a maximal run of consecutive refused steps of one environment on one pair, and it is judged against that
pair alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf, isfinite, isnan, nan, sqrt
from statistics import median
from typing import Any

TOUCHING = 0.001
"""[m] A real clearance up to here is a contact: what the engine's own contacts are apart by."""

MAP_PARTY = "map"
"""The party that a stop by an occupied cell names, whichever cell it was."""
HELD = "held object"
"""The party that whatever the hand holds is named by."""

Pair = tuple[str, str]


class StopClass(StrEnum):
    """What a stop event was worth. MAP is listed apart and counts as false."""

    TRUE = "true"
    WITHIN_RESOLUTION = "within_resolution"
    FALSE = "false"
    MAP = "map"
    UNJUDGED = "unjudged"


class ContactClass(StrEnum):
    """What an engine contact was: of the real surfaces, of the engine's own stand-ins for them, or with a body that had
    moved since it was last seen."""

    REAL = "real"
    PROXY = "proxy"
    DYNAMIC = "dynamic"


@dataclass(frozen=True)
class RefusedStep:
    """One step that a gate refused, with what was measured of it.

    pair: the robot's party and what it was stopped by. clearance [m]: between the real surfaces of that pair, nan where
    there is no truth for it. cells [m]: from the robot's real surface to what the gate had of the world, the map's
    cells or the prop itself; inf between the robot's own parts.
    beyond [m]: from the reported cell to the nearest body, less the cell's diagonal; 0 without a map.
    """

    step: int
    pair: Pair
    clearance: float
    cells: float = inf
    beyond: float = 0.0


@dataclass(frozen=True)
class Contact:
    """The first engine contact of a pair in an episode that is none of its allowed touches. clearance [m]: real."""

    step: int
    pair: Pair
    kind: ContactClass
    clearance: float


@dataclass(frozen=True)
class StopEvent:
    """first, last: its steps, both inclusive. clearance [m]: the least in it, nan when unjudged."""

    first: int
    last: int
    pair: Pair
    kind: StopClass
    clearance: float


@dataclass(frozen=True)
class JudgedEpisode:
    """One episode under one gate.

    success: None where the gate had no say in it. failure: why it could not be run to its end; such an episode is in no
    rate.
    """

    number: int
    hazard: str
    steps: int
    success: bool | None
    events: tuple[StopEvent, ...] = ()
    contacts: tuple[Contact, ...] = ()
    failure: str = ""

    @property
    def real_contacts(self) -> tuple[Contact, ...]:
        return tuple(contact for contact in self.contacts if contact.kind is ContactClass.REAL)


def stop_events(
    refused: Iterable[RefusedStep], contacts: Sequence[Contact], margin: float, per_second: float
) -> tuple[StopEvent, ...]:
    """The stop events of one episode, classified.

    margin [m]: of the gate against the world. per_second: steps in a second, for what "within 0.5 s" means.
    """
    runs: list[list[RefusedStep]] = []
    for step in sorted(refused, key=lambda r: r.step):
        if runs and runs[-1][-1].pair == step.pair and step.step == runs[-1][-1].step + 1:
            runs[-1].append(step)
        else:
            runs.append([step])
    return tuple(_event(run, contacts, margin, 0.5 * per_second) for run in runs)


def _event(run: list[RefusedStep], contacts: Sequence[Contact], margin: float, soon: float) -> StopEvent:
    first, last, pair = run[0].step, run[-1].step, run[0].pair
    touches = any(
        contact.kind is not ContactClass.PROXY
        and _same_pair(contact.pair, pair)
        and first <= contact.step <= last + soon
        for contact in contacts
    )
    known = [step.clearance for step in run if not isnan(step.clearance)]
    clearance = min(known, default=nan)
    if touches or (known and clearance <= TOUCHING):
        kind = StopClass.TRUE
    elif not known:
        kind = StopClass.UNJUDGED
    elif min(step.cells for step in run) <= margin:
        kind = StopClass.WITHIN_RESOLUTION
    elif min(step.beyond for step in run) > 0.0:
        kind = StopClass.MAP
    else:
        kind = StopClass.FALSE
    return StopEvent(first, last, pair, kind, clearance)


def missed(contact: Contact, events: Iterable[StopEvent], per_second: float) -> bool:
    """Whether no stop event on the link or payload of a contact was open at its step, or had begun at most 1 s before.

    Pairs name the robot's party first. A stop of one link by the table is no stop of another that hits the table.
    """
    return not any(
        (contact.pair[0] in event.pair or event.pair[0] in contact.pair)
        and event.first <= contact.step
        and (event.last >= contact.step or event.first >= contact.step - per_second)
        for event in events
    )


def _same_pair(contact: Pair, stop: Pair) -> bool:
    """A stop by the map names no body: any contact of its robot party with the world is its own."""
    return set(contact) == set(stop) or (stop[1] == MAP_PARTY and stop[0] == contact[0])


def summary(episodes: Sequence[JudgedEpisode], per_second: float) -> dict[str, Any]:
    """The counts of `bench stop-count` over some episodes; a rate with nothing under it is None."""
    valid = [episode for episode in episodes if not episode.failure]
    events = [event for episode in valid for event in episode.events]
    kinds = Counter(event.kind for event in events)
    contacts = Counter(contact.kind for episode in valid for contact in episode.contacts)
    false_kinds = (StopClass.FALSE, StopClass.MAP)
    # Infinite where nothing stood about that the stopped party might not touch.
    false_clearances = [1000.0 * e.clearance for e in events if e.kind in false_kinds and isfinite(e.clearance)]
    pairs = Counter("|".join(event.pair) for event in events)
    outcomes = [episode.success for episode in valid if episode.success is not None]
    return {
        "policy_steps": sum(episode.steps for episode in valid),
        "stops": len(events),
        "true_stops": kinds[StopClass.TRUE],
        "within_resolution": kinds[StopClass.WITHIN_RESOLUTION],
        "false_stops": kinds[StopClass.FALSE] + kinds[StopClass.MAP],
        "map_stops": kinds[StopClass.MAP],
        "unjudged": kinds[StopClass.UNJUDGED],
        "invalid": len(episodes) - len(valid),
        "real_contacts": contacts[ContactClass.REAL],
        "missed_contacts": sum(missed(c, e.events, per_second) for e in valid for c in e.real_contacts),
        "proxy_contacts": contacts[ContactClass.PROXY],
        "dynamic": contacts[ContactClass.DYNAMIC],
        "episodes_completed": len(valid),
        "success_rate": sum(outcomes) / len(outcomes) if outcomes else None,
        "success_wilson95": wilson95(sum(outcomes), len(outcomes)),
        "stops_by_pair": dict(pairs.most_common()),
        "false_stop_clearance_mm": {
            "median": round(median(false_clearances), 3) if false_clearances else None,
            "max": round(max(false_clearances), 3) if false_clearances else None,
        },
    }


def wilson95(successes: int, trials: int) -> list[float] | None:
    """Wilson's 95 % score interval of a proportion (Wilson 1927); None without trials."""
    if trials == 0:
        return None
    z = 1.959963984540054
    share, shrink = successes / trials, 1.0 + z * z / trials
    centre = (share + z * z / (2 * trials)) / shrink
    half = z / shrink * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return [max(0.0, centre - half), min(1.0, centre + half)]
