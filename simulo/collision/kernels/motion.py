"""Ways certified by halving.

Where the middle of an interval does not certify all of it (see `way`), the interval is halved; all parties are looked
at in the first middle, in each half those that need it. What is not certified when half its motion is below FINEST is
refused.
"""

import warp as wp

from simulo.collision.kernels.findings import NONE
from simulo.collision.kernels.lanes import pose_one
from simulo.collision.kernels.types import Levers, Poses, Query, Tree, Way
from simulo.collision.kernels.verdict import CLEAR, NOT_EVALUATED, PAYLOAD, SELF, WORLD, Verdicts
from simulo.collision.kernels.way import Scene, Ways, moved, row_motion, stand_at
from simulo.collision.kernels.way_items import item_on_way, kind_of_item

FINEST = wp.constant(wp.float32(1.0e-5))  # m: half a motion that is halved no further
MAX_LEVEL = wp.constant(23)  # halvings; a motion of 80 m reaches FINEST before


@wp.func
def largest_motion(scene: Scene, way: Way, m: wp.int32, env: wp.int32) -> wp.float32:
    """How far anything that a payload may meet moves in the base frame [m]."""
    out = wp.float32(0.0)
    bodies = scene.bodies.body.shape[0]
    for b in range(bodies):
        out = wp.max(out, moved(way, m, b))
    for s in range(scene.payloads.slot_gripper.shape[0]):
        if scene.payloads.shape[env, s] >= 0:
            out = wp.max(out, moved(way, m, bodies + s))
    return out


@wp.func
def item_motion(
    levers: Levers, way: Way, m: wp.int32, item: wp.int32, first_slot: wp.int32, largest: wp.float32
) -> wp.float32:
    """How much an item's distance to what it meets changes over the whole way [m]."""
    if item < levers.num_pairs:
        return row_motion(levers, way, m, item)
    return moved(way, m, item - levers.num_pairs) + wp.where(item < first_slot, 0.0, largest)


@wp.kernel(enable_backward=False)
def motion_kernel(
    first: wp.int32,
    tree: Tree,
    scene: Scene,
    levers: Levers,
    query: Query,
    poses: Poses,
    way: Way,
    ways_out: Ways,
):
    """One thread per configuration: what the filters left of the way to it, first half first. `poses` are the way's
    own: what does not move they share with the configurations'."""
    m = first + wp.tid()
    if m >= query.count[0] or way.num[m, 0] < 0:
        return
    if way.num[m, 0] == 0:
        ways_out.kind[m] = CLEAR
        return
    env = query.env[m // query.rows[0]]
    rounding = way.rounding[m]
    largest = largest_motion(scene, way, m, env)
    first_slot = levers.num_pairs + scene.bodies.body.shape[0]
    level = wp.int32(0)
    index = wp.int32(0)
    share = wp.float32(1.0)
    found = wp.int32(-1)
    capped = wp.int32(0)
    going = wp.bool(True)
    while going:
        stand_at((wp.float32(index) + 0.5) * share, query, way, m, env, poses)
        pose_one(tree, scene.bodies, poses.columns, m, poses)
        failing = wp.int32(0)
        for j in range(way.num[m, level]):
            item = way.left[m, j]
            tally = item_on_way(scene, levers, query, poses, way, m, env, item, 0.5 * share, rounding)
            capped += tally.capped
            if tally.hit != 0:
                # Written so that a motion that is not a number is not halved for ever.
                half = 0.5 * share * item_motion(levers, way, m, item, first_slot, largest)
                if not (half > FINEST and level < MAX_LEVEL):
                    if found < 0 or item < found:
                        found = item
                        ways_out.party_a[m] = tally.party_a
                        ways_out.party_b[m] = tally.party_b
                        ways_out.lower[m] = tally.lower - half
                way.left[m, j] = way.left[m, failing]
                way.left[m, failing] = item
                failing += 1
        if found >= 0:
            ways_out.kind[m] = kind_of_item(levers, scene, found)
            ways_out.between[m] = (wp.float32(index) + 0.5) * share
            going = False
        elif failing > 0:
            level += 1
            way.num[m, level] = failing
            index = 2 * index
            share = 0.5 * share
        else:
            index += 1
            while level > 0 and index % 2 == 0:
                index = index // 2
                level -= 1
                share = 2.0 * share
            if level == 0:
                ways_out.kind[m] = CLEAR
                going = False
    ways_out.capped[m] = capped


@wp.kernel(enable_backward=False)
def motion_verdict_kernel(first: wp.int32, query: Query, ways: Ways, verdicts_out: Verdicts):
    """One thread per entry: one that is clear row by row stays so only where every way to a row is certified."""
    k = first + wp.tid()
    rows = query.rows[0]
    if k * rows >= query.count[0]:
        return
    verdicts_out.between[k] = 0.0
    if verdicts_out.kind[k] != CLEAR:
        return
    worst = wp.int32(NOT_EVALUATED + 1)
    row = wp.int32(-1)
    capped = wp.int32(0)
    for r in range(rows):
        m = k * rows + r
        kind = ways.kind[m]
        capped += ways.capped[m]
        if kind != CLEAR and kind < worst:
            worst = kind
            row = r
    verdicts_out.capped[k] = verdicts_out.capped[k] + capped
    if row < 0:
        return
    m = k * rows + row
    verdicts_out.kind[k] = worst
    verdicts_out.row[k] = row
    verdicts_out.bound[k] = 1
    if worst == SELF or worst == PAYLOAD or worst == WORLD:
        verdicts_out.between[k] = ways.between[m]
        verdicts_out.party_a[k] = ways.party_a[m]
        verdicts_out.party_b[k] = ways.party_b[m]
        verdicts_out.distance[k] = ways.lower[m]
    else:
        verdicts_out.party_a[k] = NONE
        verdicts_out.party_b[k] = NONE
        verdicts_out.distance[k] = -wp.inf
