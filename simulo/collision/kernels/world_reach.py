"""Which of the robot's moving bodies have anything of the world within reach of their boxes.

Most have nothing, and seeing that takes a kernel small enough to stay in registers; what it leaves over is the
compacted work list of `world_check`.
"""

import warp as wp

from simulo.collision.kernels.bits import any_of_columns, lowest_bit64
from simulo.collision.kernels.bodies import bare, half_of, slack_of
from simulo.collision.kernels.findings import past
from simulo.collision.kernels.lanes import lanes_at_once, position_at
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.surroundings import body_frame, in_base, placed_on
from simulo.collision.kernels.types import LANES, Bodies, Findings, Grid, Poses, Primitives, Query, Reach
from simulo.collision.kernels.voxels import CLOSED, between_bits, box_clearance, count_unknown, extent, reaches_out
from simulo.collision.kernels.windows import lattice_at, window_at, window_block, window_one


@wp.func
def reaches_primitive(
    shapes: Shapes,
    poses: Poses,
    primitives: Primitives,
    m: wp.int32,
    env: wp.int32,
    shape: wp.int32,
    position: wp.vec3f,
    above: wp.float32,
) -> wp.bool:
    """Whether some primitive's bounding sphere is within `above` [m] of the body's, centred at `position` [m]."""
    for k in range(primitives.count[0]):
        other = primitives.shape[env, k]
        if other >= 0:
            apart = wp.length(poses.primitive_position[m, k] - position)
            if not apart - (shapes.reach[shape] + shapes.reach[other]) - slack_of(apart) > above:
                return True
    return False


@wp.func
def reaches_cell(
    bodies: Bodies, shapes: Shapes, grid: Grid, poses: Poses, env: wp.int32, body: wp.int32, m: wp.int32, reach: Reach
) -> wp.bool:
    """Whether some brick that is not empty lies within the body's reach, by its window and then its hull's box."""
    window = window_at(reach, m, 0)
    low = window.low
    high = window.high
    counts = grid.counts[0]
    words = (counts[2] + 63) // 64
    z0 = low[2]
    z1 = high[2]
    columns = grid.columns[env]
    some = wp.uint64(0)  # most windows are empty, and this is the shortest way to see it
    for w in range(z0 // 64, (z1 + 63) // 64):
        word = any_of_columns(columns, low, high, counts[1], words, w)
        some = some | between_bits(word, z0 - 64 * w, z1 - 64 * w)
    if some == wp.uint64(0):
        return False
    shape = bodies.body[body][1]
    placed = placed_on(lattice_at(reach, m), body_frame(poses, m, body), bare(shape), body, 0.0)
    brick = 4.0 * grid.cell[0][0]
    half = 0.5 * brick
    turned = wp.transpose(placed.rotation)
    near = half_of(shapes, shape) + extent(turned, wp.vec3f(half, half, half))
    most = reach.pads[m // LANES, 0, m % LANES] + shapes.size[shape][3] + slack_of(placed.lever)
    for x in range(low[0], high[0]):
        for y in range(low[1], high[1]):
            column = (x * counts[1] + y) * words
            for w in range(z0 // 64, (z1 + 63) // 64):
                word = between_bits(columns[column + w], z0 - 64 * w, z1 - 64 * w)
                while word != wp.uint64(0):
                    z = 64 * w + lowest_bit64(word)
                    word = word & (word - wp.uint64(1))
                    middle = wp.vec3f(wp.float32(x) + 0.5, wp.float32(y) + 0.5, wp.float32(z) + 0.5) * brick
                    if box_clearance(turned * (middle - placed.position), near) <= most:
                        return True
    return False


@wp.func
def begin(query: Query, poses: Poses, grid: Grid, by_self: Findings, by_payload: Findings, m: wp.int32, reach: Reach):
    """Nothing in reach of configuration m yet, and where the map lies, if the world is to be looked at."""
    reached = reach.bodies[m]
    for w in range(reached.shape[0]):
        reached[w] = wp.uint32(0)
    reach.unknown[m] = 0
    reach.outside[m] = 0
    reach.going[m] = 0
    if poses.finite[m] == 0 or by_self.hit[m] != 0 or by_payload.hit[m] != 0:
        return
    reach.going[m] = 1
    env = query.env[m // query.rows[0]]
    margin = query.margins[env, 1]
    block = m // LANES
    lane = m % LANES
    reach.pads[block, 0, lane] = past(query, margin)
    reach.pads[block, 1, lane] = margin
    if grid.present[0] != 0:
        lattice = in_base(query, poses, m, env, grid.pose[env])
        for i in range(3):
            reach.lattice[block, 9 + i, lane] = lattice.position[i]
            for j in range(3):
                reach.lattice[block, 3 * i + j, lane] = lattice.rotation[i, j]


@wp.kernel(enable_backward=False)
def reach_kernel(
    first: wp.int32,
    bodies: Bodies,
    shapes: Shapes,
    query: Query,
    poses: Poses,
    primitives: Primitives,
    grid: Grid,
    by_self: Findings,
    by_payload: Findings,
    reach_out: Reach,
):
    """One thread per block of configurations (see `lanes`): the asked bodies that `world_kernel` has to look at."""
    m = first + wp.tid() * lanes_at_once()
    count = query.count[0]
    if m >= count:
        return
    end = wp.min(m + lanes_at_once(), count)
    for one in range(m, end):
        begin(query, poses, grid, by_self, by_payload, one, reach_out)
    mapped = grid.present[0] != 0
    for i in range(query.num_asked[1]):
        body = query.bodies[i]
        if mapped:
            if end - m == 1:
                window_one(bodies, shapes, grid, poses, body, m, reach_out)
            else:
                window_block(bodies, shapes, grid, poses, body, m, reach_out)
        for one in range(m, end):
            if reach_out.going[one] != 0 and (bodies.gate[body] & ~poses.active[one]) == 0:
                env = query.env[one // query.rows[0]]
                block = one // LANES
                lane = one % LANES
                near = wp.bool(False)
                if primitives.count[0] > 0:
                    position = position_at(poses.hulls, one, body)
                    near = reaches_primitive(
                        shapes, poses, primitives, one, env, bodies.body[body][1], position,
                        reach_out.pads[block, 0, lane],
                    )  # fmt: skip
                if mapped:
                    if reach_out.windows[block, 12, lane] != 0:
                        near = True  # for the check itself to refuse
                    elif not near:
                        near = reaches_cell(bodies, shapes, grid, poses, env, body, one, reach_out)
                    clearance = reach_out.clearance[one]
                    if grid.present[0] == CLOSED:
                        near = near or not clearance > reach_out.pads[block, 0, lane]
                    outside = reaches_out(clearance, reach_out.pads[block, 1, lane])
                    reach_out.outside[one] = reach_out.outside[one] + outside
                    if grid.has_unknown[0] != 0:
                        reach_out.unknown[one] = reach_out.unknown[one] + count_unknown(
                            grid, env, window_at(reach_out, one, 6)
                        )
                if near:
                    bit = wp.uint32(1) << wp.uint32(body & 31)
                    reach_out.bodies[one, body >> 5] = reach_out.bodies[one, body >> 5] | bit
