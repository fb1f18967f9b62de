"""Counting, on recorded batches: hand-made facts in, hand-counted figures out."""

from __future__ import annotations

import json
from math import inf, nan

import pytest

from simulo.evaluation.counting import (
    MAP_PARTY,
    Contact,
    ContactClass,
    JudgedEpisode,
    RefusedStep,
    StopClass,
    missed,
    stop_events,
    summary,
    wilson95,
)

PER_SECOND, MARGIN = 50.0, 0.005
FINGER, CUP, LINK = "finger", "cup", "forearm"


def refused(steps, pair, clearance, cells=inf, beyond=0.0):
    return [RefusedStep(step, pair, clearance, cells, beyond) for step in steps]


def real(step, pair, clearance=0.0):
    return Contact(step, pair, ContactClass.REAL, clearance)


def judged(number, steps, contacts=(), failure="", success=None):
    events = stop_events(steps, contacts, MARGIN, PER_SECOND)
    return JudgedEpisode(number, "none", 100, success, events, tuple(contacts), failure)


def recorded_batch():
    """B51: 2 real contacts, 2 stops with 10 mm clearance, 1 self pair with no truth, 1 run killed by a timeout, 1 real
    contact with no stop."""
    return [
        judged(0, refused(range(20, 40), (FINGER, CUP), 0.0), [real(30, (FINGER, CUP))]),
        judged(1, refused(range(50, 55), (LINK, CUP), 0.004), [real(60, (LINK, CUP))]),
        judged(2, refused(range(10, 15), (FINGER, CUP), 0.010)),
        judged(3, refused(range(70, 71), (FINGER, CUP), 0.010)),
        judged(4, refused(range(5, 9), (FINGER, "unmeshed"), nan)),
        judged(5, refused(range(5, 9), (FINGER, CUP), 0.0), failure="killed by a timeout"),
        judged(6, [], [real(44, (LINK, CUP))]),
    ]


def test_b51_each_stop_is_judged_against_its_own_pair():
    figures = summary(recorded_batch(), PER_SECOND)
    counted = (
        "true_stops",
        "false_stops",
        "within_resolution",
        "unjudged",
        "invalid",
        "real_contacts",
        "missed_contacts",
    )
    assert [figures[key] for key in counted] == [2, 2, 0, 1, 1, 3, 1]
    assert figures["stops"] == 5
    assert figures["policy_steps"] == 600, "an episode whose infrastructure failed is in no figure"
    assert figures["false_stop_clearance_mm"] == {"median": 10.0, "max": 10.0}


def test_b51_a_contact_of_another_pair_makes_no_stop_true():
    events = stop_events(refused(range(5), (FINGER, CUP), 0.02), [real(3, (LINK, CUP))], MARGIN, PER_SECOND)
    assert [event.kind for event in events] == [StopClass.FALSE]


def test_b51_an_empty_batch_has_no_rates():
    for batch in ([], [judged(0, [], failure="killed by a timeout")]):
        figures = summary(batch, PER_SECOND)
        assert figures["success_rate"] is None
        assert figures["success_wilson95"] is None
        assert figures["false_stop_clearance_mm"] == {"median": None, "max": None}
        assert figures["stops"] == figures["real_contacts"] == 0


def test_a_false_stop_with_nothing_about_has_no_clearance_and_is_json():
    counts = summary([judged(0, refused(range(3), (CUP, MAP_PARTY), inf, beyond=0.1))], PER_SECOND)
    assert (counts["false_stops"], counts["map_stops"]) == (1, 1)
    assert counts["false_stop_clearance_mm"] == {"median": None, "max": None}
    json.dumps(counts, allow_nan=False)


def test_an_event_is_a_maximal_run_on_one_pair():
    steps = (
        refused([3, 4, 5], (FINGER, CUP), 0.02) + refused([6, 7], (LINK, CUP), 0.02) + refused([9], (LINK, CUP), 0.02)
    )
    events = stop_events(reversed(steps), [], MARGIN, PER_SECOND)
    assert [(event.first, event.last, event.pair[0]) for event in events] == [
        (3, 5, FINGER),
        (6, 7, LINK),
        (9, 9, LINK),
    ]


@pytest.mark.parametrize(
    ("clearance", "cells", "beyond", "kind"),
    [
        (0.001, 0.02, 0.0, StopClass.TRUE),  # exactly 1 mm is a contact
        (0.0011, 0.02, 0.0, StopClass.FALSE),
        (0.02, 0.005, 0.0, StopClass.WITHIN_RESOLUTION),  # exactly the margin
        (0.02, 0.0051, 0.0, StopClass.FALSE),
        (0.02, 0.02, 0.001, StopClass.MAP),  # the cell is more than its diagonal from any body
        (0.02, 0.0, 0.001, StopClass.WITHIN_RESOLUTION),  # any model would have stopped on that map
    ],
)
def test_classes_at_their_bounds(clearance, cells, beyond, kind):
    steps = refused([1], (FINGER, MAP_PARTY), 0.03) + refused([2], (FINGER, MAP_PARTY), clearance, cells, beyond)
    steps = [RefusedStep(s.step, s.pair, s.clearance, s.cells, beyond) for s in steps]
    assert [event.kind for event in stop_events(steps, [], MARGIN, PER_SECOND)] == [kind]


@pytest.mark.parametrize(("after", "kind"), [(25, StopClass.TRUE), (26, StopClass.FALSE)])
def test_a_touch_within_half_a_second_makes_a_stop_true(after, kind):
    steps = refused(range(10, 13), (FINGER, MAP_PARTY), 0.02)
    events = stop_events(steps, [real(12 + after, (FINGER, CUP))], MARGIN, PER_SECOND)
    assert events[0].kind is kind


def test_the_engines_stand_ins_make_no_stop_true():
    proxy = Contact(11, (FINGER, CUP), ContactClass.PROXY, 0.013)
    events = stop_events(refused(range(10, 13), (FINGER, CUP), 0.013), [proxy], MARGIN, PER_SECOND)
    assert events[0].kind is StopClass.FALSE


@pytest.mark.parametrize(
    ("first", "last", "caught"),
    [(90, 100, True), (100, 120, True), (50, 60, True), (49, 60, False), (101, 110, False), (20, 99, False)],
)
def test_missed_means_nothing_open_then_or_begun_in_the_second_before(first, last, caught):
    events = stop_events(refused(range(first, last + 1), (FINGER, CUP), 0.02), [], MARGIN, PER_SECOND)
    assert missed(real(100, (FINGER, CUP)), events, PER_SECOND) is not caught


@pytest.mark.parametrize("stopped_by", [MAP_PARTY, CUP])
def test_a_stop_on_another_link_catches_nothing(stopped_by):
    """Not even where it is stopped by the very thing that is hit."""
    events = stop_events(refused(range(90, 110), ("wrist", stopped_by), 0.02), [], MARGIN, PER_SECOND)
    assert missed(real(100, (FINGER, CUP)), events, PER_SECOND)


@pytest.mark.parametrize("pair", [(FINGER, "wrist"), ("wrist", FINGER), (FINGER, CUP), (FINGER, MAP_PARTY)])
def test_a_stop_on_either_link_of_a_contact_catches_it(pair):
    events = stop_events(refused(range(90, 110), pair, 0.02), [], MARGIN, PER_SECOND)
    assert not missed(real(100, (FINGER, "wrist")), events, PER_SECOND)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    # Newcombe (1998), table I, score method without continuity correction.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_interval_against_published_values(successes, trials, low, high):
    interval = wilson95(successes, trials)
    assert interval == pytest.approx([low, high], abs=5e-5)
