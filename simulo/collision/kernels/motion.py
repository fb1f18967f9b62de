"""The way between configurations: intervals certified by halving.

The distance of two parties changes by no more than their motion bound (see `simulo.collision.motion`) from one end of
an interval to the other, so it is clear of the margin all along when it is so in the middle by half the bound. Where it
is not, the interval is halved; all parties are looked at in the first middle, in each half those that need it. What is
not certified when half its motion is below FINEST is refused.

Items that are looked at: checked pairs, then bodies against the world, then what the hands hold against everything;
item numbers run on in that order. "moved" is an item's motion bound over the whole way [m].
"""

import warp as wp

from simulo.collision.kernels.bodies import Part, bare, bounded, part_of, parts_gap, slack_of
from simulo.collision.kernels.convex import FAR, SLACK
from simulo.collision.kernels.findings import NONE, Tally, counted
from simulo.collision.kernels.fk import pose_hulls, pose_links, position_of
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.surroundings import (
    Frame,
    body_frame,
    in_base,
    payload_frame,
    primitive_exempted,
    primitive_frame,
    region_in,
    relative,
)
from simulo.collision.kernels.types import (
    Bodies,
    Grid,
    Pairs,
    Payloads,
    Pieces,
    Poses,
    Primitives,
    Query,
    Regions,
    Tree,
)
from simulo.collision.kernels.verdict import (
    CLEAR,
    NOT_EVALUATED,
    PAYLOAD,
    SELF,
    WORLD,
    Verdicts,
)
from simulo.collision.kernels.voxels import Placed, check_grid

FINEST = wp.constant(wp.float32(1.0e-4))  # m: half a motion that is halved no further
MAX_LEVEL = wp.constant(20)  # halvings; a motion of 100 m reaches FINEST before
# A float32 middle of two joint values is the true one to this share of them.
MIDDLE = wp.constant(wp.float32(5.0e-7))


@wp.struct
class Levers:
    """`simulo.collision.motion.MotionBounds` on the device.

    first (P + B + 1), column, lever: what is not zero in the rows of pairs, then of bodies. num_pairs: P.
    origin, ball (L, dof), origin_to, ball_to (L, B, dof), low, high, slides (dof), always (P): as there. total [m]:
    the largest sum of a row's levers.
    """

    first: wp.array(dtype=wp.int32)
    column: wp.array(dtype=wp.int32)
    lever: wp.array(dtype=wp.float32)
    num_pairs: wp.int32
    origin: wp.array2d(dtype=wp.float32)
    ball: wp.array2d(dtype=wp.float32)
    origin_to: wp.array3d(dtype=wp.float32)
    ball_to: wp.array3d(dtype=wp.float32)
    low: wp.array(dtype=wp.float32)
    high: wp.array(dtype=wp.float32)
    slides: wp.array(dtype=wp.uint8)
    always: wp.array(dtype=wp.float32)
    total: wp.float32


@wp.struct
class Way:
    """Working memory of one way per configuration (M): from the configuration before it, or from `start`, to it.

    start (N, dof) [rad or m]. travel (M, dof): how far each column goes. moved (M, items) [m]: motion bounds of bodies,
    of what is held, and of pairs that are on the list. left (M, items): the list, what needs the next level first.
    num (M, MAX_LEVEL + 2): how many at each level, negative for a way that is not looked at. rounding (M) [m]: what
    float32 middles may be off by.
    """

    start: wp.array2d(dtype=wp.float32)
    travel: wp.array2d(dtype=wp.float32)
    moved: wp.array2d(dtype=wp.float32)
    left: wp.array2d(dtype=wp.int32)
    num: wp.array2d(dtype=wp.int32)
    rounding: wp.array(dtype=wp.float32)


@wp.struct
class Ways:
    """One answer per configuration (M). kind: CLEAR when the whole way is certified. between: the share of the way at
    which it is not. party_a, party_b, lower [m]: who comes how near there, at the least. capped: as in Findings."""

    kind: wp.array(dtype=wp.int32)
    between: wp.array(dtype=wp.float32)
    party_a: wp.array(dtype=wp.int32)
    party_b: wp.array(dtype=wp.int32)
    lower: wp.array(dtype=wp.float32)
    capped: wp.array(dtype=wp.int32)


@wp.struct
class Scene:
    """Everything a way is checked against: what the stages of single configurations are given one by one."""

    bodies: Bodies
    pieces: Pieces
    pairs: Pairs
    shapes: Shapes
    primitives: Primitives
    grid: Grid
    payloads: Payloads
    regions: Regions
    first_payload: wp.int32
    first_primitive: wp.int32


@wp.func
def new_tally(margin: wp.float32) -> Tally:
    """Nothing need be told apart above the margin."""
    out = Tally()
    out.party_a = NONE
    out.party_b = NONE
    out.lower = FAR
    out.above = margin
    return out


@wp.func
def set_out(levers: Levers, query: Query, way: Way, m: wp.int32, env: wp.int32) -> wp.float32:
    """Note how far each column goes. Returns what float32 middles may be off by [m]; NaN where an end is no finite
    number, infinite where one lies beyond what the bounds hold for."""
    largest = wp.float32(0.0)
    beyond = wp.bool(False)
    for c in range(query.q.shape[1]):
        here = way.start[env, c]
        if m % query.rows[0] > 0:
            here = query.q[m - 1, c]
        there = query.q[m, c]
        way.travel[m, c] = wp.abs(there - here)
        largest = wp.max(largest, wp.max(wp.abs(here), wp.abs(there)))
        if not (wp.isfinite(here) and wp.isfinite(there)):
            return wp.nan
        outside = wp.min(here, there) < levers.low[c] or wp.max(here, there) > levers.high[c]
        beyond = beyond or (outside and levers.slides[c] != wp.uint8(0))
    if beyond:
        return wp.inf
    return MIDDLE * largest * levers.total


@wp.func
def within_ranges(levers: Levers, query: Query, way: Way, m: wp.int32, env: wp.int32) -> wp.bool:
    """Whether both ends, and so all of the way, lie where `always` holds."""
    inside = wp.bool(True)
    for c in range(query.q.shape[1]):
        here = way.start[env, c]
        if m % query.rows[0] > 0:
            here = query.q[m - 1, c]
        there = query.q[m, c]
        inside = inside and wp.min(here, there) >= levers.low[c] and wp.max(here, there) <= levers.high[c]
    return inside


@wp.func
def stand_at(share: wp.float32, query: Query, middle: Query, way: Way, m: wp.int32, env: wp.int32):
    """Write the configuration at a share of the way."""
    for c in range(query.q.shape[1]):
        here = way.start[env, c]
        if m % query.rows[0] > 0:
            here = query.q[m - 1, c]
        middle.q[m, c] = here + share * (query.q[m, c] - here)


@wp.func
def row_motion(levers: Levers, way: Way, m: wp.int32, row: wp.int32) -> wp.float32:
    """Motion bound [m] of a pair or body."""
    out = wp.float32(0.0)
    for i in range(levers.first[row], levers.first[row + 1]):
        out += levers.lever[i] * way.travel[m, levers.column[i]]
    return out


@wp.func
def ball_motion(levers: Levers, way: Way, m: wp.int32, link: wp.int32, ball: wp.float32) -> wp.float32:
    """How far any point of a ball [m] around a link's origin moves in the base frame."""
    out = wp.float32(0.0)
    for c in range(levers.origin.shape[1]):
        out += (levers.origin[link, c] + ball * levers.ball[link, c]) * way.travel[m, c]
    return out


@wp.func
def ball_total(levers: Levers, link: wp.int32, ball: wp.float32) -> wp.float32:
    """The sum of such a ball's levers."""
    out = wp.float32(0.0)
    for c in range(levers.origin.shape[1]):
        out += levers.origin[link, c] + ball * levers.ball[link, c]
    return out


@wp.func
def ball_motion_to(
    levers: Levers, way: Way, m: wp.int32, link: wp.int32, ball: wp.float32, body: wp.int32
) -> wp.float32:
    """How much the distance of such a ball and a body changes."""
    out = wp.float32(0.0)
    for c in range(levers.origin.shape[1]):
        out += (levers.origin_to[link, body, c] + ball * levers.ball_to[link, body, c]) * way.travel[m, c]
    return out


@wp.func
def held_ball(scene: Scene, env: wp.int32, slot: wp.int32) -> wp.float32:
    """Radius [m] around its link's origin that holds a payload."""
    away = wp.length(position_of(scene.payloads.pose[env, slot]))
    return (away + scene.shapes.reach[scene.payloads.shape[env, slot]]) * 1.00001


@wp.func
def largest_motion(scene: Scene, levers: Levers, way: Way, m: wp.int32, env: wp.int32) -> wp.float32:
    """How far anything that a payload may meet moves in the base frame [m]."""
    out = wp.float32(0.0)
    for b in range(scene.bodies.body.shape[0]):
        out = wp.max(out, way.moved[m, levers.num_pairs + b])
    for s in range(scene.payloads.slot_gripper.shape[0]):
        if scene.payloads.shape[env, s] >= 0:
            out = wp.max(out, way.moved[m, levers.num_pairs + scene.bodies.body.shape[0] + s])
    return out


@wp.func
def pair_on_way(scene: Scene, poses: Poses, m: wp.int32, p: wp.int32, kept: wp.float32) -> Tally:
    """One checked pair, which must keep `kept` [m] apart."""
    pair = scene.pairs.pair[p]
    a = pair[0]
    b = pair[1]
    between = poses.hull_position[m, b] - poses.hull_position[m, a]
    gap = bounded(wp.length(between) - scene.pairs.reach[p] - SLACK)
    if not gap.lower > kept:
        back = wp.transpose(poses.hull_rotation[m, a])
        gap = parts_gap(
            scene.pieces, scene.shapes, part_of(scene.bodies, a), part_of(scene.bodies, b),
            back * poses.hull_rotation[m, b], back * between, kept,
        )  # fmt: skip
    return counted(new_tally(kept), gap, scene.bodies.link[a], scene.bodies.link[b], kept, 0)


@wp.func
def world_on_way(
    scene: Scene,
    query: Query,
    poses: Poses,
    m: wp.int32,
    env: wp.int32,
    part: Part,
    frame: Frame,
    party: wp.int32,
    region: wp.int32,
    kept: wp.float32,
    tally: Tally,
) -> Tally:
    """The tally with all of the world, from which a part must keep `kept` [m]."""
    for k in range(scene.primitives.count[0]):
        other = scene.primitives.shape[env, k]
        if other >= 0 and tally.hit == 0:
            apart = wp.length(poses.primitive_position[m, k] - frame.position)
            size = scene.shapes.reach[part.shape] + scene.shapes.reach[other]
            gap = bounded(apart - size - slack_of(apart))
            exempted = wp.bool(False)
            if not gap.lower > kept:
                placed = primitive_frame(poses, scene.primitives, m, env, k)
                exempted = primitive_exempted(
                    scene.shapes, query, poses, scene.regions, m, env, region, k, other, placed
                )
                between = relative(frame, placed)
                gap = parts_gap(scene.pieces, scene.shapes, part, bare(other), between.rotation, between.position, kept)
            if not exempted:
                tally = counted(tally, gap, party, scene.first_primitive + k, kept, 0)
    if scene.grid.present[0] != 0 and tally.hit == 0:
        lattice = in_base(query, poses, m, env, scene.grid.pose[env])
        on_lattice = relative(lattice, frame)
        placed_part = Placed()
        placed_part.part = part
        placed_part.rotation = on_lattice.rotation
        placed_part.position = on_lattice.position
        placed_part.party = party
        placed_part.margin = kept
        placed_part.lever = wp.length(on_lattice.position)
        exempt = region_in(query, poses, scene.regions, m, env, region, lattice)
        tally = check_grid(scene.pieces, scene.shapes, scene.grid, env, placed_part, exempt, tally, 0)
    return tally


@wp.func
def payload_on_robot(
    scene: Scene,
    levers: Levers,
    query: Query,
    poses: Poses,
    way: Way,
    m: wp.int32,
    env: wp.int32,
    slot: wp.int32,
    frame: Frame,
    half: wp.float32,
    margin: wp.float32,
) -> Tally:
    """One payload against the robot, and then against what other hands hold, as in `payload_check`."""
    tally = new_tally(margin)
    shape = scene.payloads.shape[env, slot]
    ball = held_ball(scene, env, slot)
    bodies = scene.bodies.body.shape[0]
    own = way.moved[m, levers.num_pairs + bodies + slot]
    for k in range(bodies + scene.payloads.slot_gripper.shape[0]):
        other = Frame()
        part = Part()
        party = wp.int32(0)
        ask = wp.bool(False)
        if k < bodies:
            party = scene.bodies.link[k]
            ask = (scene.bodies.gate[k] & ~poses.active[m]) == 0
            ask = ask and scene.payloads.touch[env, slot, party] == wp.uint8(0)
            ask = ask and query.slot_asked[slot] + query.link_asked[party] > wp.uint8(0)
            other = body_frame(poses, m, k)
            part = part_of(scene.bodies, k)
        else:
            held = k - bodies
            party = scene.first_payload + held
            if held > slot and scene.payloads.shape[env, held] >= 0:
                ask = scene.payloads.slot_gripper[held] != scene.payloads.slot_gripper[slot]
                ask = ask and query.slot_asked[slot] + query.slot_asked[held] > wp.uint8(0)
                other = payload_frame(scene.payloads, poses, m, env, held)
                part = bare(scene.payloads.shape[env, held])
        if ask and tally.hit == 0:
            reach = scene.shapes.reach[shape] + scene.shapes.reach[part.shape]
            apart = wp.length(other.position - frame.position)
            gap = bounded(apart - reach - slack_of(apart))
            kept = margin + half * (own + way.moved[m, levers.num_pairs + k])
            if k < bodies and not gap.lower > kept:
                kept = margin + half * ball_motion_to(levers, way, m, scene.payloads.link[env, slot], ball, k)
            if not gap.lower > kept:
                between = relative(other, frame)
                gap = parts_gap(scene.pieces, scene.shapes, part, bare(shape), between.rotation, between.position, kept)
            tally = counted(tally, gap, scene.first_payload + slot, party, kept, 0)
    return tally


@wp.func
def item_on_way(
    scene: Scene,
    levers: Levers,
    query: Query,
    poses: Poses,
    way: Way,
    m: wp.int32,
    env: wp.int32,
    item: wp.int32,
    half: wp.float32,
    rounding: wp.float32,
) -> Tally:
    """One item in the middle of an interval: a hit unless it is clear all along it. The hull poses are the middle's."""
    first_slot = levers.num_pairs + scene.bodies.body.shape[0]
    if item < levers.num_pairs:
        return pair_on_way(scene, poses, m, item, query.margins[env, 0] + rounding + half * way.moved[m, item])
    kept = query.margins[env, 1] + rounding + half * way.moved[m, item]
    tally = new_tally(kept)
    part = Part()
    frame = Frame()
    party = wp.int32(0)
    region = wp.int32(-1)
    in_world = wp.bool(True)
    if item < first_slot:
        body = item - levers.num_pairs
        part = part_of(scene.bodies, body)
        frame = body_frame(poses, m, body)
        party = scene.bodies.link[body]
        region = scene.bodies.region[body]
    else:
        slot = item - first_slot
        part = bare(scene.payloads.shape[env, slot])
        frame = payload_frame(scene.payloads, poses, m, env, slot)
        party = scene.first_payload + slot
        region = scene.payloads.first_region + slot
        margin = query.margins[env, 0] + rounding
        tally = payload_on_robot(scene, levers, query, poses, way, m, env, slot, frame, half, margin)
        in_world = tally.hit == 0 and query.num_asked[2] != 0 and query.slot_asked[slot] != wp.uint8(0)
    # One call for both: each is a copy of the search.
    if in_world:
        tally = world_on_way(scene, query, poses, m, env, part, frame, party, region, kept, tally)
    return tally


@wp.func
def kind_of_item(levers: Levers, scene: Scene, item: wp.int32) -> wp.int32:
    if item < levers.num_pairs:
        return SELF
    if item < levers.num_pairs + scene.bodies.body.shape[0]:
        return WORLD
    return PAYLOAD


@wp.kernel(enable_backward=False)
def motion_kernel(
    first: wp.int32,
    tree: Tree,
    scene: Scene,
    levers: Levers,
    query: Query,
    middle: Query,
    poses: Poses,
    way: Way,
    ways_out: Ways,
):
    """One thread per configuration: what the filters left of the way to it, first half first.

    `poses` share with the configurations' what does not move, `middle` all of the query but q.
    """
    m = first + wp.tid()
    if m >= query.count[0] or way.num[m, 0] < 0:
        return
    if way.num[m, 0] == 0:
        ways_out.kind[m] = CLEAR
        return
    env = query.env[m // query.rows[0]]
    active = poses.active[m]
    rounding = way.rounding[m]
    largest = largest_motion(scene, levers, way, m, env)
    first_slot = levers.num_pairs + scene.bodies.body.shape[0]
    level = wp.int32(0)
    index = wp.int32(0)
    share = wp.float32(1.0)
    found = wp.int32(-1)
    capped = wp.int32(0)
    going = wp.bool(True)
    while going:
        stand_at((wp.float32(index) + 0.5) * share, query, middle, way, m, env)
        pose_links(tree, middle, m, env, active, query.q.shape[1], poses)
        pose_hulls(scene.bodies, m, active, poses)
        failing = wp.int32(0)
        for j in range(way.num[m, level]):
            item = way.left[m, j]
            tally = item_on_way(scene, levers, query, poses, way, m, env, item, 0.5 * share, rounding)
            capped += tally.capped
            if tally.hit != 0:
                # Written so that a motion that is not a number is not halved for ever.
                moved = 0.5 * share * (way.moved[m, item] + wp.where(item < first_slot, 0.0, largest))
                if not (moved > FINEST and level < MAX_LEVEL):
                    if found < 0 or item < found:
                        found = item
                        ways_out.party_a[m] = tally.party_a
                        ways_out.party_b[m] = tally.party_b
                        ways_out.lower[m] = tally.lower - moved
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
