"""The robot against itself: every asked pair of bodies."""

import warp as wp

from simulo.collision.kernels.bodies import Gap, body_meets_body, bounded
from simulo.collision.kernels.convex import SLACK
from simulo.collision.kernels.findings import counted, new_tally, store
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import Findings, Poses, Query, Robot


@wp.func
def bodies_gap(
    robot: Robot,
    shapes: Shapes,
    poses: Poses,
    m: wp.int32,
    a: wp.int32,
    b: wp.int32,
    reach: wp.float32,
    above: wp.float32,
    margin: wp.float32,
) -> Gap:
    """Gap of two bodies of configuration m; reach [m]: sum of their bounding spheres' radii."""
    between = poses.hull_position[m, b] - poses.hull_position[m, a]
    spheres = wp.length(between) - reach - SLACK
    if spheres > above:
        return bounded(spheres)
    back = wp.transpose(poses.hull_rotation[m, a])
    rotation = back * poses.hull_rotation[m, b]
    return body_meets_body(robot, shapes, a, b, rotation, back * between, above, margin)


@wp.kernel(enable_backward=False)
def self_kernel(first: wp.int32, robot: Robot, shapes: Shapes, query: Query, poses: Poses, found_out: Findings):
    """One thread per configuration: pairs in ascending order, up to the first that is not clear."""
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    margin = query.margins[0]
    distances = query.distances[0]
    tally = new_tally(query, margin)
    if poses.finite[m] != 0:
        active = poses.active[m]
        for i in range(query.num_asked[0]):
            p = query.pairs[i]
            pair = robot.pair[p]
            if tally.hit == 0 and (pair[2] & ~active) == 0:
                a = pair[0]
                b = pair[1]
                gap = bodies_gap(robot, shapes, poses, m, a, b, robot.pair_reach[p], tally.above, margin)
                party_a = robot.link_of[robot.body[a][0]]
                party_b = robot.link_of[robot.body[b][0]]
                tally = counted(tally, gap, party_a, party_b, margin, distances)
    store(m, tally, found_out)
