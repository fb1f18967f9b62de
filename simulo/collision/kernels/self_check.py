"""The robot against itself: every asked pair of bodies, bounding spheres first.

The spheres are a kernel of their own: it is small enough to stay in registers (three times as fast on a CPU), and
what it leaves over is the compacted work list of the next launch on a GPU.
"""

import warp as wp

from simulo.collision.kernels.alone import near_alone
from simulo.collision.kernels.bits import lowest_bit
from simulo.collision.kernels.bodies import bounded, part_of, parts_gap
from simulo.collision.kernels.clearance import known_clearance
from simulo.collision.kernels.findings import PAST_MARGIN, counted, enough, new_tally, store
from simulo.collision.kernels.lanes import lanes_at_once, near_block, near_one, position_at, rotation_at
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import (
    LANES,
    Bodies,
    Clearance,
    Findings,
    Near,
    Pairs,
    Pieces,
    Poses,
    Query,
)

ROOM = wp.constant(wp.float32(0.02))  # m: what the spheres pass over is known to be this much above the margin
UNLIMITED = wp.constant(wp.float32(1.0e15))  # m: its square is a float32 too


@wp.func
def near_all(
    bodies: Bodies, pairs: Pairs, shapes: Shapes, query: Query, poses: Poses, m: wp.int32, end: wp.int32, near_out: Near
):
    """The asked pairs of configurations m .. end - 1 whose spheres and boxes are not clear, as in `fk.pose_all`."""
    for one in range(m, end):
        near_out.above[one] = query.margins[query.env[one // query.rows[0]], 0] + PAST_MARGIN
        if query.distances[0] != 0:
            near_out.above[one] = UNLIMITED
    if poses.hulls.shape[3] == 1:
        near_alone(bodies, pairs, shapes, query, poses, m, ROOM, near_out)
    elif end - m == 1:
        near_one(bodies, pairs, shapes, query, poses, m, ROOM, near_out)
    else:
        near_block(bodies, pairs, shapes, query, poses, m, ROOM, near_out)


@wp.func
def ask_pairs(
    bodies: Bodies,
    pieces: Pieces,
    pairs: Pairs,
    clearance: Clearance,
    shapes: Shapes,
    query: Query,
    poses: Poses,
    near: Near,
    m: wp.int32,
    found_out: Findings,
):
    """The pairs of configuration m that are left over, in ascending order, up to the first that is not clear and what
    other bodies its two links have, whose pairs follow it."""
    margin = query.margins[query.env[m // query.rows[0]], 0]
    distances = query.distances[0]
    tally = new_tally(query, margin)
    going = wp.bool(True)
    if poses.finite[m] != 0:
        tally.asked = near.asked[m] - near.num[m]
        tally.cleared = tally.asked
        if tally.asked > 0:
            tally.lower = near.lower[m]
            tally.exact = 0
        for w in range(near.pairs.shape[1]):
            word = near.pairs[m // LANES, w, m % LANES]
            while word != wp.uint32(0) and going:
                p = 32 * w + lowest_bit(word)
                word = word & (word - wp.uint32(1))
                pair = pairs.pair[p]
                a = pair[0]
                b = pair[1]
                if tally.hit != 0:
                    going = bodies.link[a] == tally.party_a and bodies.link[b] == tally.party_b
                    if not going:
                        break
                gap = bounded(known_clearance(clearance, poses, m, p))
                if not gap.lower > enough(tally, margin):
                    back = wp.transpose(rotation_at(poses.hulls, m, a))
                    between = position_at(poses.hulls, m, b) - position_at(poses.hulls, m, a)
                    gap = parts_gap(
                        pieces, shapes, part_of(bodies, a), part_of(bodies, b), back * rotation_at(poses.hulls, m, b),
                        back * between, enough(tally, margin),
                    )  # fmt: skip
                tally = counted(tally, gap, bodies.link[a], bodies.link[b], margin, distances)
    store(m, tally, found_out)


@wp.kernel(enable_backward=False)
def near_kernel(
    first: wp.int32, bodies: Bodies, pairs: Pairs, shapes: Shapes, query: Query, poses: Poses, near_out: Near
):
    """One thread per block of configurations (see `lanes`)."""
    m = first + wp.tid() * lanes_at_once()
    count = query.count[0]
    if m >= count:
        return
    near_all(bodies, pairs, shapes, query, poses, m, wp.min(m + lanes_at_once(), count), near_out)


@wp.kernel(enable_backward=False)
def self_kernel(
    first: wp.int32,
    bodies: Bodies,
    pieces: Pieces,
    pairs: Pairs,
    clearance: Clearance,
    shapes: Shapes,
    query: Query,
    poses: Poses,
    near: Near,
    found_out: Findings,
):
    """One thread per configuration."""
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    ask_pairs(bodies, pieces, pairs, clearance, shapes, query, poses, near, m, found_out)
