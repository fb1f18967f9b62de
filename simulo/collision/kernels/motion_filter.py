"""The first look at every way: what is certified as a whole, from its middle, and so need not be halved.

Apart from `motion`, since nearly everything ends here: the bounding spheres are a kernel small enough to stay in
registers, and each filter has one call of its search, which is then built into it. Filters only take items off the
list that `way_kernel` makes of all that is asked; what they do not get to see is judged by `motion_kernel`.
"""

import warp as wp

from simulo.collision.kernels.bits import lanes_within, lowest_bit
from simulo.collision.kernels.bodies import part_of
from simulo.collision.kernels.convex import SLACK
from simulo.collision.kernels.fk import pose_hulls, pose_links
from simulo.collision.kernels.motion import (
    Levers,
    Scene,
    Way,
    Ways,
    ball_motion,
    ball_total,
    held_ball,
    new_tally,
    pair_on_way,
    row_motion,
    set_out,
    stand_at,
    within_ranges,
    world_on_way,
)
from simulo.collision.kernels.self_check import UNLIMITED, centre_of
from simulo.collision.kernels.surroundings import body_frame
from simulo.collision.kernels.types import Bodies, Pairs, Poses, Query, Spheres, Tree
from simulo.collision.kernels.verdict import CLEAR, NON_FINITE, NOT_EVALUATED, Verdicts


@wp.kernel(enable_backward=False)
def way_kernel(
    first: wp.int32,
    tree: Tree,
    bodies: Bodies,
    pairs: Pairs,
    spheres: Spheres,
    levers: Levers,
    query: Query,
    middle: Query,
    poses: Poses,
    way: Way,
    expected_pairs: wp.array(dtype=wp.int32),
    verdicts: Verdicts,
    ways_out: Ways,
):
    """One thread per configuration of entries that are clear row by row: pose the middle of the way, bound every
    body's motion, and list what is asked of, but for pairs that are always clear, or whose bounding spheres are."""
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    entry = m // query.rows[0]
    ways_out.capped[m] = 0
    ways_out.kind[m] = NOT_EVALUATED
    way.num[m, 0] = -1
    if verdicts.kind[entry] != CLEAR:
        return
    env = query.env[entry]
    active = poses.active[m]
    rounding = set_out(levers, query, way, m, env)
    if not wp.isfinite(rounding):
        if wp.isnan(rounding):
            ways_out.kind[m] = NON_FINITE
        return
    way.rounding[m] = rounding
    stand_at(0.5, query, middle, way, m, env)
    pose_links(tree, middle, m, env, active, query.q.shape[1], poses)
    pose_hulls(bodies, m, active, poses)
    moved = way.moved[m]
    largest = wp.float32(0.0)
    for b in range(bodies.body.shape[0]):
        bound = wp.float32(0.0)
        if (bodies.gate[b] & ~active) == 0:
            bound = row_motion(levers, way, m, levers.num_pairs + b)
        moved[levers.num_pairs + b] = bound
        largest = wp.max(largest, bound)
    hulls = poses.hull_position[m]
    centre = poses.centre[m]
    lanes = poses.lanes[m]
    left = way.left[m]
    margin = query.margins[env, 0] + rounding
    inside = within_ranges(levers, query, way, m, env)
    num = wp.int32(0)
    seen = wp.int32(0)
    # Half of what two bodies move is no more than what one of them does: spheres further apart are clear all along.
    above = wp.min(margin + largest + SLACK, UNLIMITED)
    for r in range(wp.where(active == 0, spheres.num[1], spheres.num[0])):
        row = spheres.row[r]
        if (row[2] & ~active) == 0:
            seen += row[3]
            block = row[1]
            bits = lanes_within(
                lanes[0, block], lanes[1, block], lanes[2, block], centre_of(centre, row[0]), spheres.reach[r], above
            )
            while bits != wp.uint32(0):
                p = spheres.pair[r, lowest_bit(bits)]
                bits = bits & (bits - wp.uint32(1))
                if p >= 0 and not (inside and levers.always[p] > margin):
                    pair = pairs.pair[p]
                    gap = wp.length(hulls[pair[1]] - hulls[pair[0]]) - pairs.reach[p] - SLACK - margin
                    if not gap > 0.5 * (moved[levers.num_pairs + pair[0]] + moved[levers.num_pairs + pair[1]]):
                        bound = row_motion(levers, way, m, p)
                        if not gap > 0.5 * bound:
                            moved[p] = bound
                            left[num] = p
                            num += 1
    if seen != expected_pairs[active]:
        return
    for i in range(query.num_asked[1]):
        b = query.bodies[i]
        if (bodies.gate[b] & ~active) == 0:
            left[num] = levers.num_pairs + b
            num += 1
    way.num[m, 0] = num


@wp.kernel(enable_backward=False)
def held_way_kernel(first: wp.int32, scene: Scene, levers: Levers, query: Query, way: Way):
    """One thread per configuration: bound the motion of what the hands hold, and list it. A long payload has longer
    levers than any body, and float32 middles are off by more at its end."""
    m = first + wp.tid()
    if m >= query.count[0] or way.num[m, 0] < 0:
        return
    env = query.env[m // query.rows[0]]
    first_slot = levers.num_pairs + scene.bodies.body.shape[0]
    num = way.num[m, 0]
    longest = wp.float32(levers.total)
    for s in range(scene.payloads.slot_gripper.shape[0]):
        if scene.payloads.shape[env, s] >= 0:
            link = scene.payloads.link[env, s]
            ball = held_ball(scene, env, s)
            way.moved[m, first_slot + s] = ball_motion(levers, way, m, link, ball)
            longest = wp.max(longest, 2.0 * ball_total(levers, link, ball))
            way.left[m, num] = first_slot + s
            num += 1
    way.num[m, 0] = num
    way.rounding[m] = way.rounding[m] * (longest / levers.total)


@wp.kernel(enable_backward=False)
def pair_filter_kernel(first: wp.int32, scene: Scene, levers: Levers, query: Query, poses: Poses, way: Way):
    """One thread per configuration: take the pairs off the list that are clear all along."""
    m = first + wp.tid()
    if m >= query.count[0] or way.num[m, 0] < 0:
        return
    margin = query.margins[query.env[m // query.rows[0]], 0] + way.rounding[m]
    kept = wp.int32(0)
    for j in range(way.num[m, 0]):
        item = way.left[m, j]
        clear = wp.bool(False)
        if item < levers.num_pairs:
            clear = pair_on_way(scene, poses, m, item, 0.5 * way.moved[m, item] + margin).hit == 0
        if not clear:
            way.left[m, kept] = item
            kept += 1
    way.num[m, 0] = kept


@wp.kernel(enable_backward=False)
def world_filter_kernel(first: wp.int32, scene: Scene, levers: Levers, query: Query, poses: Poses, way: Way):
    """One thread per configuration: take the bodies off the list that are clear of the world all along."""
    m = first + wp.tid()
    if m >= query.count[0] or way.num[m, 0] < 0:
        return
    env = query.env[m // query.rows[0]]
    margin = query.margins[env, 1] + way.rounding[m]
    kept = wp.int32(0)
    for j in range(way.num[m, 0]):
        item = way.left[m, j]
        body = item - levers.num_pairs
        clear = wp.bool(False)
        if body >= 0 and body < scene.bodies.body.shape[0]:
            least = 0.5 * way.moved[m, item] + margin
            tally = world_on_way(
                scene, query, poses, m, env, part_of(scene.bodies, body), body_frame(poses, m, body),
                scene.bodies.link[body], scene.bodies.region[body], least, new_tally(least),
            )  # fmt: skip
            clear = tally.hit == 0
        if not clear:
            way.left[m, kept] = item
            kept += 1
    way.num[m, 0] = kept
