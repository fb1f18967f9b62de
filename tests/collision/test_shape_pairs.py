"""A hundredth of the committed run of `benchmarks/shape_pairs.py`, and that its counting sees what is wrong."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULT = BENCHMARKS / "results" / "shape_pairs.json"
A_HUNDREDTH = 10_000


@pytest.fixture(scope="module")
def pairs():
    sys.path.insert(0, str(BENCHMARKS))
    module = importlib.import_module("shape_pairs")
    importlib.import_module("far_pairs").ENVS = 64  # payloads are put in one by one
    yield module
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize(
    ("first", "second"), list(combinations_with_replacement(("hull", "capsule", "sphere", "box"), 2))
)
def test_no_distance_is_above_the_truth_and_no_contact_is_missed(pairs, first, second):
    assert (first, second) in pairs.PAIRS and len(pairs.PAIRS) == 10
    for family in pairs.FAMILIES:
        size = A_HUNDREDTH // len(pairs.FAMILIES)
        found = pairs.count(first, second, family, size, seed=1, sample=10, each=3)
        assert (found["pairs"], found["above_truth"], found["missed_hits"]) == (size, 0, 0), family
        assert found["worst_exact_below_um"] <= 10.0, family
        assert found["sample"]["reference"]["above_it"] == 0 and found["sample"]["depth"]["understated"] == 0
        told = found["sample"]["reference"]
        assert told["worst_outside_truth_um"] < 0.05, "the construction is what it says"
        if family not in ("deep", "coincident"):
            assert (found["apart"] > 0.3 * size and found["hits"] > 0.01 * size) or family == "apart"


def test_a_wrong_answer_is_counted(pairs):
    rng = np.random.default_rng(5)
    block = next(pairs.judged("hull", "box", "touching", 300, rng, each=3))
    right = pairs.tally(block)
    assert right["above_truth"] == right["missed_hits"] == 0

    def told(**answers):
        return pairs.tally(replace(block, answers=replace(block.answers, **answers)))

    assert told(lower=block.high + 1e-8)["above_truth"] == 300
    assert told(lower=np.full(300, np.nan))["above_truth"] == 300
    assert told(lower=block.low - 12e-6, exact=np.ones(300, bool))["worst_exact_below_um"] > 10.0
    sharing = next(pairs.judged("hull", "box", "deep", 300, rng, each=3))
    missed = pairs.tally(replace(sharing, answers=replace(sharing.answers, lower=np.full(300, 1e-3))))
    assert missed["missed_hits"] == missed["above_truth"] == 300


def test_the_committed_run_holds_what_is_promised():
    run = json.loads(RESULT.read_text())
    assert len(run["found"]) == 10 and run["pairs_per_kind"] == 1_000_000
    for families in run["found"].values():
        assert sum(f["pairs"] for f in families.values()) == run["pairs_per_kind"]
        for found in families.values():
            assert found["above_truth"] == found["missed_hits"] == 0
            assert found["worst_exact_below_um"] <= 10.0
