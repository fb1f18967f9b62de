"""Where bodies lie on the map, LANES configurations at once where they are many (see `lanes`)."""

import warp as wp

from simulo.collision.kernels.convex import ROUNDING, SLACK
from simulo.collision.kernels.lanes import BLOCK, END, END_BLOCK, ONE
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.surroundings import Frame
from simulo.collision.kernels.types import LANES, Bodies, Grid, Poses, Reach
from simulo.collision.kernels.voxels import Window

# `voxels.bounds_of` and `window_of` once more. The bricks at a box's ends come from a product where they divide: SLACK
# covers that, and the sum of a place's coordinates is no less than its distance.
_WINDOWS = (
    f"""
    const float slack = {float(SLACK)!r}f, rounding = {float(ROUNDING)!r}f;
"""
    + """
    const size_t block = m / N, lane = m % N;
    assert(m >= 0 && lane + NUM_LANES <= N && body >= 0 && body < poses.hulls.shape[1]);
    assert(block < poses.hulls.shape[0] && block < reach.lattice.shape[0] && block < reach.pads.shape[0]);
    assert(block < reach.windows.shape[0] && m + NUM_LANES <= reach.clearance.shape[0]);
    const int S = APART(poses.hulls);
    assert(poses.hulls.shape[3] == S);
    const float* const hull = poses.hulls.data + (block * poses.hulls.shape[1] + body) * 12 * S + lane;
    const float* const lattice = reach.lattice.data + block * 12 * N + lane;
    const float* const pads = reach.pads.data + block * 2 * N + lane;
    int* const windows = reach.windows.data + block * 13 * N + lane;
    const auto& size = shapes.size.data[bodies.body.data[body][1]];
    const float brick = 4.0f * grid.cell.data[0][0], per_brick = 1.0f / brick;
    const auto value = [](const float* at) WIDE { return *(const V*)at; };
    V away[3], position[3], extent[3], lever = 0.0f;
    for (int k = 0; k < 3; ++k)
        away[k] = value(hull + (9 + k) * S) - value(lattice + (9 + k) * N);
    for (int i = 0; i < 3; ++i) {
        const V x = value(lattice + i * N), y = value(lattice + (3 + i) * N), z = value(lattice + (6 + i) * N);
        position[i] = x * away[0] + y * away[1] + z * away[2];
        extent[i] = 0.0f;
        for (int j = 0; j < 3; ++j) {
            const V turn = x * value(hull + j * S) + y * value(hull + (3 + j) * S) + z * value(hull + (6 + j) * S);
            extent[i] = extent[i] + SIZE(turn) * size[j];
        }
        lever = lever + SIZE(position[i]);
    }
    // Squares, so that what is too far for the check's own distances is no number here either.
    const V square = position[0] * position[0] + position[1] * position[1] + position[2] * position[2];
    const I known = ALL(square - square == 0.0f);
    *(I*)(windows + 12 * N) = ~known;
    V clearance = 1.0e30f;
    for (int i = 0; i < 3; ++i) {
        const V half = extent[i] + (size[3] + slack) + rounding * lever;
        const float count = grid.counts.data[0][i];
        for (int w = 0; w < 2; ++w) {
            const V pad = half + value(pads + w * N);
            V low = FLOOR((position[i] - pad) * per_brick), high = FLOOR((position[i] + pad) * per_brick) + 1.0f;
            low = ALL(low > 0.0f) ? low : V(0.0f);
            high = ALL(high > 0.0f) ? high : V(0.0f);
            *(I*)(windows + (6 * w + i) * N) = INTEGER(ALL(low < count) ? low : V(count));
            *(I*)(windows + (6 * w + 3 + i) * N) = INTEGER(ALL(high < count) ? high : V(count));
        }
        const V before = position[i] - half, after = brick * count - position[i] - half;
        clearance = ALL(before < clearance) ? before : clearance;
        clearance = ALL(after < clearance) ? after : clearance;
    }
    *(V*)(reach.clearance.data + m) = known ? clearance : V(-1.0e30f);
"""
)


@wp.func_native(ONE + _WINDOWS + END)
def window_one(bodies: Bodies, shapes: Shapes, grid: Grid, poses: Poses, body: wp.int32, m: wp.int32, reach: Reach):
    """Fill `reach.windows` of configuration m for one body."""


@wp.func_native(BLOCK + _WINDOWS + END_BLOCK)
def window_block(bodies: Bodies, shapes: Shapes, grid: Grid, poses: Poses, body: wp.int32, m: wp.int32, reach: Reach):
    """window_one of all configurations of the block that m is the first of; not on a GPU."""


@wp.func
def window_at(reach: Reach, m: wp.int32, first: wp.int32) -> Window:
    """Configuration m's window that begins at number `first`: 0 of the reach, 6 of the margin."""
    block = m // LANES
    lane = m % LANES
    out = Window()
    for i in range(3):
        out.low[i] = reach.windows[block, first + i, lane]
        out.high[i] = reach.windows[block, first + 3 + i, lane]
    return out


@wp.func
def lattice_at(reach: Reach, m: wp.int32) -> Frame:
    """The lattice in configuration m's base frame, read where it is needed: kept over a search, its numbers would be
    more than a GPU's thread has registers for."""
    out = Frame()
    block = m // LANES
    lane = m % LANES
    for i in range(3):
        out.position[i] = reach.lattice[block, 9 + i, lane]
        for j in range(3):
            out.rotation[i, j] = reach.lattice[block, 3 * i + j, lane]
    return out
