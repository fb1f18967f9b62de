"""The first look at ways, LANES of them at once where they are many (see `lanes`)."""

import warp as wp

from simulo.collision.kernels.lanes import BLOCK, END, END_BLOCK, NEAR, NEAR_LOOP, ONE
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import Bodies, Levers, Near, Pairs, Poses, Query, Way

# Half of what two bodies move relative to each other is no more than half of what both do.
_ALL_ALONG = (
    NEAR
    + """
    assert(block < way.travel.shape[0] && block < way.moved.shape[0]);
    assert(levers.num_pairs + bodies.body.shape[0] < levers.first.shape[0]);
    const float* const travel = way.travel.data + block * way.travel.shape[1] * N + lane;
    float* const moved = way.moved.data + block * way.moved.shape[1] * N + lane;
    const auto sum = [&](int row) WIDE {
        V out = 0.0f;
        for (int i = levers.first.data[row]; i < levers.first.data[row + 1]; ++i) {
            assert(i >= 0 && i < levers.lever.shape[0] && levers.column.data[i] < way.travel.shape[1]);
            out = out + levers.lever.data[i] * *(const V*)(travel + levers.column.data[i] * N);
        }
        return out;
    };
    for (int b = 0; b < bodies.body.shape[0]; ++b)
        *(V*)(moved + b * N) = sum(levers.num_pairs + b);
    const auto kept = [&](int p) { return above + 0.5f * sum(p); };
    const auto rough = [&](const auto& pair) {
        return above + 0.5f * (*(const V*)(moved + pair[0] * N) + *(const V*)(moved + pair[1] * N));
    };
"""
    + NEAR_LOOP
)


@wp.func_native(ONE + _ALL_ALONG + END)
def near_way_one(
    bodies: Bodies, pairs: Pairs, shapes: Shapes, query: Query, poses: Poses, m: wp.int32, room: wp.float32,
    levers: Levers, way: Way, near_out: Near,
):  # fmt: skip
    """As `lanes.near_one`, in the middle of configuration m's way, of pairs that have to keep half their motion more;
    and bound how far each body moves."""


@wp.func_native(BLOCK + _ALL_ALONG + END_BLOCK)
def near_way_block(
    bodies: Bodies, pairs: Pairs, shapes: Shapes, query: Query, poses: Poses, m: wp.int32, room: wp.float32,
    levers: Levers, way: Way, near_out: Near,
):  # fmt: skip
    """near_way_one of all configurations of the block that m is the first of; not on a GPU."""
