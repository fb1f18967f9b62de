"""The first look at every way: what is certified as a whole, from its middle, and so need not be halved.

Apart from `motion`, since nearly everything ends here: spheres and boxes are looked at for a block of configurations at
once, and each filter has one call of its search, which is then built into it. What the filters do not see to be clear
they put on the list of what `motion_kernel` judges.
"""

import warp as wp

from simulo.collision.kernels.alone import pose_lanes
from simulo.collision.kernels.bits import is_number, lowest_bit
from simulo.collision.kernels.bodies import part_of
from simulo.collision.kernels.clearance import clear_along
from simulo.collision.kernels.lanes import lanes_at_once
from simulo.collision.kernels.surroundings import body_frame
from simulo.collision.kernels.types import LANES, Levers, Poses, Query, Tree, Way
from simulo.collision.kernels.verdict import CLEAR, NON_FINITE, NOT_EVALUATED, Verdicts
from simulo.collision.kernels.way import (
    Scene,
    Ways,
    ball_motion,
    ball_total,
    held_ball,
    row_motion,
    set_out,
    stand_at,
    within_ranges,
)
from simulo.collision.kernels.way_items import new_tally, pair_on_way, world_on_way
from simulo.collision.kernels.way_lanes import near_way_block, near_way_one


@wp.func
def begin(levers: Levers, query: Query, poses: Poses, way: Way, verdicts: Verdicts, ways_out: Ways, m: wp.int32):
    """Stand in the middle of configuration m's way, if it is to be looked at: `poses.finite` says so."""
    entry = m // query.rows[0]
    ways_out.capped[m] = 0
    ways_out.kind[m] = NOT_EVALUATED
    way.num[m, 0] = -1
    poses.finite[m] = 0
    if verdicts.kind[entry] != CLEAR:
        return
    env = query.env[entry]
    rounding = set_out(levers, query, way, m, env)
    if not is_number(rounding):
        if wp.isnan(rounding):
            ways_out.kind[m] = NON_FINITE
        return
    poses.finite[m] = 1
    way.rounding[m] = rounding
    way.near.above[m] = query.margins[env, 0] + rounding
    stand_at(0.5, query, way, m, env, poses)
    for g in range(query.measured.shape[1]):
        poses.columns[m // LANES, query.q.shape[1] + g, m % LANES] = query.measured[env, g]


@wp.kernel(enable_backward=False)
def way_kernel(
    first: wp.int32,
    tree: Tree,
    scene: Scene,
    levers: Levers,
    query: Query,
    poses: Poses,
    way: Way,
    expected_pairs: wp.array(dtype=wp.int32),
    verdicts: Verdicts,
    ways_out: Ways,
):
    """One thread per block of configurations (see `lanes`), of entries that are clear row by row: pose the middles of
    the ways, bound every body's motion, and see which pairs' spheres and boxes are not clear all along."""
    m = first + wp.tid() * lanes_at_once()
    count = query.count[0]
    if m >= count:
        return
    end = wp.min(m + lanes_at_once(), count)
    going = wp.int32(0)
    for one in range(m, end):
        begin(levers, query, poses, way, verdicts, ways_out, one)
        going += poses.finite[one]
    if going == 0:
        return
    pose_lanes(tree, scene.bodies, poses.columns, m, end, poses)
    if end - m == 1:
        near_way_one(scene.bodies, scene.pairs, scene.shapes, query, poses, m, 0.0, levers, way, way.near)
    else:
        near_way_block(scene.bodies, scene.pairs, scene.shapes, query, poses, m, 0.0, levers, way, way.near)
    for one in range(m, end):
        if poses.finite[one] != 0 and way.near.asked[one] == expected_pairs[poses.active[one]]:
            way.num[one, 0] = 0


@wp.kernel(enable_backward=False)
def held_way_kernel(first: wp.int32, scene: Scene, levers: Levers, query: Query, way: Way):
    """One thread per configuration: bound the motion of what the hands hold, and list it. A long payload has longer
    levers than any body, and float32 middles are off by more at its end."""
    m = first + wp.tid()
    if m >= query.count[0] or way.num[m, 0] < 0:
        return
    env = query.env[m // query.rows[0]]
    bodies = scene.bodies.body.shape[0]
    num = wp.int32(0)
    longest = wp.float32(levers.total)
    for s in range(scene.payloads.slot_gripper.shape[0]):
        if scene.payloads.shape[env, s] >= 0:
            link = scene.payloads.link[env, s]
            ball = held_ball(scene, env, s)
            way.moved[m // LANES, bodies + s, m % LANES] = ball_motion(levers, way, m, link, ball)
            longest = wp.max(longest, 2.0 * ball_total(levers, link, ball))
            way.left[m, num] = levers.num_pairs + bodies + s
            num += 1
    way.num[m, 0] = num
    way.rounding[m] = way.rounding[m] * (longest / levers.total)


@wp.kernel(enable_backward=False)
def pair_filter_kernel(first: wp.int32, scene: Scene, levers: Levers, query: Query, poses: Poses, way: Way):
    """One thread per configuration: list the pairs that are neither clear all along nor always."""
    m = first + wp.tid()
    if m >= query.count[0] or way.num[m, 0] < 0:
        return
    env = query.env[m // query.rows[0]]
    margin = query.margins[env, 0] + way.rounding[m]
    inside = within_ranges(levers, query, way, m, env)
    num = way.num[m, 0]
    for w in range(way.near.pairs.shape[1]):
        word = way.near.pairs[m // LANES, w, m % LANES]
        while word != wp.uint32(0):
            p = 32 * w + lowest_bit(word)
            word = word & (word - wp.uint32(1))
            if not (inside and levers.always[p] > margin):
                motion = row_motion(levers, way, m, p)
                if not clear_along(scene.clearance, query, way, m, env, p, motion, margin):
                    if pair_on_way(scene, poses, m, p, 0.5 * motion + margin).hit != 0:
                        way.left[m, num] = p
                        num += 1
    way.num[m, 0] = num


@wp.kernel(enable_backward=False)
def world_filter_kernel(first: wp.int32, scene: Scene, levers: Levers, query: Query, poses: Poses, way: Way):
    """One thread per configuration: list the asked bodies that are not clear of the world all along."""
    m = first + wp.tid()
    if m >= query.count[0] or way.num[m, 0] < 0:
        return
    env = query.env[m // query.rows[0]]
    margin = query.margins[env, 1] + way.rounding[m]
    num = way.num[m, 0]
    for i in range(query.num_asked[1]):
        body = query.bodies[i]
        if (scene.bodies.gate[body] & ~poses.active[m]) == 0:
            least = 0.5 * way.moved[m // LANES, body, m % LANES] + margin
            tally = world_on_way(
                scene, query, poses, m, env, part_of(scene.bodies, body), body_frame(poses, m, body),
                scene.bodies.link[body], scene.bodies.region[body], least, new_tally(least),
            )  # fmt: skip
            if tally.hit != 0:
                way.left[m, num] = levers.num_pairs + body
                num += 1
    way.num[m, 0] = num
