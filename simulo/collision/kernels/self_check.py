"""The robot against itself: every asked pair of bodies, bounding spheres first.

The spheres are a kernel of their own: it is small enough to stay in registers (three times as fast on a CPU), and
what it leaves over is the compacted work list of the next launch on a GPU.
"""

import warp as wp

from simulo.collision.kernels.bits import lanes_within, lowest_bit
from simulo.collision.kernels.bodies import bounded, part_of, parts_gap
from simulo.collision.kernels.convex import SLACK
from simulo.collision.kernels.findings import counted, new_tally, store
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import Bodies, Findings, Near, Pairs, Pieces, Poses, Query, Spheres

ROOM = wp.constant(wp.float32(0.02))  # m: what the spheres pass over is known to be this much above the margin
UNLIMITED = wp.constant(wp.float32(1.0e15))  # m: its square is a float32 too


@wp.func
def centre_of(centre: wp.array(dtype=wp.float32), lane: wp.int32) -> wp.vec3f:
    row = centre.shape[0] // 3
    return wp.vec3f(centre[lane], centre[row + lane], centre[2 * row + lane])


@wp.kernel(enable_backward=False)
def sphere_kernel(first: wp.int32, spheres: Spheres, query: Query, poses: Poses, near_out: Near):
    """One thread per configuration: the asked pairs whose bounding spheres are not clear."""
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    left = near_out.pairs[m]
    for w in range(left.shape[0]):
        left[w] = wp.uint32(0)
    num = wp.int32(0)
    asked = wp.int32(0)
    if poses.finite[m] != 0:
        active = poses.active[m]
        centre = poses.centre[m]
        lanes = poses.lanes[m]
        above = query.margins[query.env[m // query.rows[0]], 0] + ROOM + SLACK
        if query.distances[0] != 0:
            above = UNLIMITED
        for r in range(wp.where(active == 0, spheres.num[1], spheres.num[0])):
            row = spheres.row[r]
            if (row[2] & ~active) == 0:
                asked += row[3]
                block = row[1]
                bits = lanes_within(
                    lanes[0, block], lanes[1, block], lanes[2, block], centre_of(centre, row[0]),
                    spheres.reach[r], above,
                )  # fmt: skip
                while bits != wp.uint32(0):
                    p = spheres.pair[r, lowest_bit(bits)]
                    bits = bits & (bits - wp.uint32(1))
                    if p >= 0:  # a lane that is no pair is near only where something is not a number
                        left[p >> 5] = left[p >> 5] | (wp.uint32(1) << wp.uint32(p & 31))
                        num += 1
    near_out.num[m] = num
    near_out.asked[m] = asked


@wp.kernel(enable_backward=False)
def self_kernel(
    first: wp.int32,
    bodies: Bodies,
    pieces: Pieces,
    pairs: Pairs,
    shapes: Shapes,
    query: Query,
    poses: Poses,
    near: Near,
    found_out: Findings,
):
    """One thread per configuration: the pairs left over in ascending order, up to the first that is not clear and what
    other bodies its two links have, whose pairs follow it."""
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    margin = query.margins[query.env[m // query.rows[0]], 0]
    distances = query.distances[0]
    tally = new_tally(query, margin)
    going = wp.bool(True)
    if poses.finite[m] != 0:
        tally.asked = near.asked[m] - near.num[m]
        tally.cleared = tally.asked
        if tally.asked > 0:
            tally.lower = margin + ROOM
            tally.exact = 0
        for w in range(near.pairs.shape[1]):
            word = near.pairs[m, w]
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
                between = poses.hull_position[m, b] - poses.hull_position[m, a]
                gap = bounded(wp.length(between) - pairs.reach[p] - SLACK)
                if not gap.lower > tally.above:
                    back = wp.transpose(poses.hull_rotation[m, a])
                    rotation = back * poses.hull_rotation[m, b]
                    gap = parts_gap(
                        pieces, shapes, part_of(bodies, a), part_of(bodies, b), rotation, back * between,
                        tally.above,
                    )  # fmt: skip
                tally = counted(tally, gap, bodies.link[a], bodies.link[b], margin, distances)
    store(m, tally, found_out)
