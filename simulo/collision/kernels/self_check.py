"""The robot against itself: every asked pair of bodies, bounding spheres first.

The spheres are a kernel of their own: it is small enough to stay in registers (three times as fast on a CPU), and
what it leaves over is the compacted work list of the next launch on a GPU.
"""

import warp as wp

from simulo.collision.kernels.bodies import bounded, part_of, parts_gap
from simulo.collision.kernels.convex import FAR, SLACK
from simulo.collision.kernels.findings import counted, new_tally, store
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import Bodies, Findings, Near, Pairs, Pieces, Poses, Query


@wp.kernel(enable_backward=False)
def sphere_kernel(first: wp.int32, pairs: Pairs, query: Query, poses: Poses, near_out: Near):
    """One thread per configuration: the asked pairs whose bounding spheres are not clear, ascending."""
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    above = query.margins[query.env[m // query.rows[0]], 0]
    if query.distances[0] != 0:
        above = FAR
    kept = wp.int32(0)
    asked = wp.int32(0)
    lower = wp.float32(FAR)
    if poses.finite[m] != 0:
        active = poses.active[m]
        hulls = poses.hull_position[m]
        near = near_out.pair[m]
        asked_pairs = query.num_asked[0]
        if active == 0:
            asked_pairs = query.num_asked[3]
        for i in range(asked_pairs):
            p = query.pairs[i]
            pair = pairs.pair[p]
            if (pair[2] & ~active) == 0:
                asked += 1
                gap = wp.length(hulls[pair[1]] - hulls[pair[0]]) - pairs.reach[p] - SLACK
                if gap > above:
                    lower = wp.min(lower, gap)
                else:
                    near[kept] = p
                    kept += 1
    near_out.num[m] = kept
    near_out.lower[m] = lower
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
    """One thread per configuration: the pairs left over in ascending order, up to the first that is not clear."""
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    margin = query.margins[query.env[m // query.rows[0]], 0]
    distances = query.distances[0]
    tally = new_tally(query, margin)
    if poses.finite[m] != 0:
        tally.asked = near.asked[m] - near.num[m]
        tally.cleared = tally.asked
        if near.lower[m] < tally.lower:
            tally.lower = near.lower[m]
            tally.exact = 0
        for i in range(near.num[m]):
            if tally.hit == 0:
                p = near.pair[m, i]
                pair = pairs.pair[p]
                a = pair[0]
                b = pair[1]
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
