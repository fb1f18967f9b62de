"""What a gate may be asked to be: a setting of another kind or out of range is refused by its own name."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simulo.errors import GateError
from simulo.gate import CollisionGate
from simulo.gate.settings import GateSettings

DEFAULTS: dict[str, Any] = {
    "on_stop": "hold",
    "self_margin": 0.0,
    "world_margin": 0.005,
    "world": "voxels",
    "finger_model": "mimic",
    "horizon": 1,
    "motion_check": False,
    "max_age": 0.5,
    "unknown": "free",
    "tracking_margin": 0.0,
}
LENGTHS = ("self_margin", "world_margin", "tracking_margin")
CHOICES = {
    "on_stop": {"hold", "terminate", "report"},
    "world": {"voxels", "primitives", "none"},
    "finger_model": {"mimic", "swept"},
    "unknown": {"free", "occupied"},
}

# Values that are no setting of any kind, whatever they would be converted to.
ODD = st.one_of(
    st.none(),
    st.binary(max_size=4),
    st.complex_numbers(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
    st.sampled_from([np.zeros(2), np.array(["free"]), torch.tensor(1.0), torch.tensor(True), object(), float]),
)
TEXT = st.text(max_size=8)
NUMBERS = st.one_of(st.integers(), st.floats(), st.booleans())
NOT_LENGTHS = st.one_of(
    ODD,
    TEXT,
    st.booleans(),
    st.floats(max_value=0.0, exclude_max=True),
    st.sampled_from([math.nan, math.inf, -1, 10**400]),
)
WRONG = {
    **{name: st.one_of(ODD, NUMBERS, TEXT.filter(lambda t, ok=ok: t not in ok)) for name, ok in CHOICES.items()},
    **dict.fromkeys(LENGTHS, NOT_LENGTHS),
    "max_age": st.one_of(ODD, TEXT, st.booleans(), st.floats(max_value=0.0), st.just(math.nan)),
    "horizon": st.one_of(ODD, TEXT, st.booleans(), st.floats(), st.integers(max_value=0)),
    "motion_check": st.one_of(ODD, TEXT, st.integers(), st.floats()),
}


@pytest.mark.parametrize("name", DEFAULTS)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_a_setting_of_another_kind_is_refused_by_its_name(name: str, data: st.DataObject) -> None:
    wrong = data.draw(WRONG[name])
    with pytest.raises(GateError, match=f"^{name}"):
        GateSettings(**{**DEFAULTS, name: wrong})


@settings(deadline=None, max_examples=40)
@given(
    length=st.floats(min_value=0.0, max_value=1e6) | st.integers(0, 1000) | st.fractions(0, 10),
    age=st.floats(min_value=0.0, exclude_min=True),
    rows=st.integers(1, 10**6),
)
def test_numbers_are_taken_whatever_type_holds_them(length: float | Fraction, age: float, rows: int) -> None:
    asked = GateSettings(
        **{
            **DEFAULTS,
            "self_margin": length,
            "world_margin": np.float64(length),
            "max_age": np.float64(age),
            "horizon": np.int64(rows),
            "motion_check": np.True_,
        }
    )
    assert asked.margins == (float(length), float(length)) and asked.motion_check is True
    assert (asked.horizon, asked.max_age) == (rows, age)
    json.dumps(asdict(asked))  # as the record of a stop keeps them


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("openarm", "stop"), "on_stop must be one of 'hold', 'terminate', 'report', got 'stop'"),
        (("openarm",), "world=None is not allowed"),
        ((3,), "robot must be a name"),
        ((None,), "robot must be a name"),
    ],
)
def test_a_gate_says_what_it_was_not_to_be(arguments: tuple, said: str) -> None:
    with pytest.raises(GateError, match=said):
        CollisionGate(*arguments, **({"world": None} if "world" in said else {}))


@pytest.mark.parametrize("audit", [3, True, b"stops"])
def test_a_folder_for_stops_is_a_path(audit: Any) -> None:
    with pytest.raises(GateError, match="audit must be a folder"):
        CollisionGate("openarm", audit=audit)
