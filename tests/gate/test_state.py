"""What the gate remembers between steps, against plain Python and NumPy."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simulo.collision import ConvexShape
from simulo.gate.declarations import Expiries
from simulo.gate.payloads import PayloadTable
from simulo.pose import Pose


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.floats(0.0, 5.0), st.floats(0.0, 5.0)),
        min_size=1,
        max_size=25,
    )
)
def test_every_declaration_ends_once_and_none_before_its_time(events):
    """(environment, column, when it is set to end, time that is asked next)."""
    expiries, ends, now = Expiries(4, 3), {}, 0.0
    for env, column, end, ask in events:
        expiries.set(torch.tensor([env]), column, end)
        ends[env, column] = end
        now = max(now, ask)
        told = {(int(e), c) for c, envs in expiries.due(now) for e in envs}
        assert told == {key for key, value in ends.items() if value <= now}
        ends = {key: value for key, value in ends.items() if value > now}
        assert expiries.due(now) == []


def as_row(pose: Pose) -> torch.Tensor:
    return torch.tensor([[*pose.position, *pose.orientation_wxyz]], dtype=torch.float64)


@settings(max_examples=40, deadline=None)
@given(
    height=st.floats(0.0, 0.3), tilt=st.floats(-1.5, 1.5), turn=st.floats(-3.0, 3.0), grip=st.floats(-0.2, 0.2),
)  # fmt: skip
def test_lifted_is_a_lower_bound_of_the_distance_to_the_support(height, tilt, turn, grip):
    """A block over a slab whose top is z = 0: lifted at the height of its lowest corner, never earlier."""
    block = ConvexShape.box((0.04, 0.06, 0.10))
    hand = Pose.from_rpy((0.1, 0.2, height + 0.1), (tilt, 0.3, turn))
    in_hand = Pose.from_rpy((0.0, 0.0, grip), (0.1, 0.0, 0.5))
    corners = (hand @ in_hand).apply(block.vertices)
    table = PayloadTable(2, 2, 2, torch.device("cpu"))
    ids = torch.tensor([1])
    table.put(2, ids, block, "hand", as_row(in_hand), [""])
    table.set_support(2, ids, as_row(Pose((0.0, 0.0, -0.05))), torch.tensor([[9.0, 9.0, 0.1]]))
    hands = as_row(hand).float()[None].expand(2, 2, 7)
    for clearance in (corners[:, 2].min() - 1e-4, corners[:, 2].min() + 1e-4):
        if clearance <= 0:
            continue
        lifted = table.lifted(hands, float(clearance))
        assert lifted[1, 2] == (corners[:, 2].min() > clearance)
        assert lifted.sum() == int(lifted[1, 2])
    table.end_support(2, ids)
    assert not table.any_supported and not table.lifted(hands, 0.0).any()
    assert table.holding().tolist() == [[False, False], [False, True]]
    assert np.isfinite(corners).all()
