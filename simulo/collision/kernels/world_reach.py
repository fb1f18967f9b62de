"""Which of the robot's moving bodies have anything of the world within reach of their boxes.

Most have nothing, and seeing that takes a kernel small enough to stay in registers; what it leaves over is the
compacted work list of `world_check`.
"""

import warp as wp

from simulo.collision.kernels.bits import any_of_columns, lowest_bit64
from simulo.collision.kernels.bodies import bare, half_of, slack_of
from simulo.collision.kernels.findings import past
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.surroundings import Frame, body_frame, in_base, placed_on
from simulo.collision.kernels.types import Bodies, Findings, Grid, Poses, Primitives, Query, Reach
from simulo.collision.kernels.voxels import (
    CLOSED,
    Placed,
    Window,
    between_bits,
    bounds_of,
    box_clearance,
    count_unknown,
    edge_clearance,
    extent,
    reaches_out,
    window_of,
)


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
    shapes: Shapes, grid: Grid, env: wp.int32, placed: Placed, window: Window, above: wp.float32
) -> wp.bool:
    """Whether some brick that is not empty lies within `above` [m] of the placed hull's box, and so in the window."""
    counts = grid.counts[0]
    words = (counts[2] + 63) // 64
    z0 = window.low[2]
    z1 = window.high[2]
    columns = grid.columns[env]
    some = wp.uint64(0)  # most windows are empty, and this is the shortest way to see it
    for w in range(z0 // 64, (z1 + 63) // 64):
        word = any_of_columns(columns, window.low, window.high, counts[1], words, w)
        some = some | between_bits(word, z0 - 64 * w, z1 - 64 * w)
    if some == wp.uint64(0):
        return False
    brick = 4.0 * grid.cell[0][0]
    half = 0.5 * brick
    turned = wp.transpose(placed.rotation)
    near = half_of(shapes, placed.part.shape) + extent(turned, wp.vec3f(half, half, half))
    most = above + shapes.size[placed.part.shape][3] + slack_of(placed.lever)
    for x in range(window.low[0], window.high[0]):
        for y in range(window.low[1], window.high[1]):
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
    """One thread per configuration: the asked bodies that `world_kernel` has to look at."""
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    reached = reach_out.bodies[m]
    for w in range(reached.shape[0]):
        reached[w] = wp.uint32(0)
    unknown = wp.int32(0)
    outside = wp.int32(0)
    if poses.finite[m] != 0 and by_self.hit[m] == 0 and by_payload.hit[m] == 0:
        env = query.env[m // query.rows[0]]
        active = poses.active[m]
        margin = query.margins[env, 1]
        above = past(query, margin)
        lattice = Frame()
        mapped = grid.present[0] != 0
        if mapped:
            lattice = in_base(query, poses, m, env, grid.pose[env])
        for i in range(query.num_asked[1]):
            body = query.bodies[i]
            if (bodies.gate[body] & ~active) == 0:
                shape = bodies.body[body][1]
                frame = body_frame(poses, m, body)
                near = reaches_primitive(shapes, poses, primitives, m, env, shape, frame.position, above)
                if mapped:
                    placed = placed_on(lattice, frame, bare(shape), bodies.link[body], margin)
                    bounds = bounds_of(shapes, placed)
                    window = window_of(grid, bounds, above)
                    if not near:
                        # What is nowhere is for the check itself to refuse.
                        near = bounds.known == 0 or reaches_cell(shapes, grid, env, placed, window, above)
                    clearance = edge_clearance(grid, bounds)
                    if grid.present[0] == CLOSED:
                        near = near or not clearance > above
                    outside += reaches_out(clearance, margin)
                    if grid.has_unknown[0] != 0:
                        if above != margin:
                            window = window_of(grid, bounds, margin)
                        unknown += count_unknown(grid, env, window)
                if near:
                    reached[body >> 5] = reached[body >> 5] | (wp.uint32(1) << wp.uint32(body & 31))
    reach_out.unknown[m] = unknown
    reach_out.outside[m] = outside
