"""What is looked at in the middle of an interval of a way (see `way`), and how far it must keep there."""

import warp as wp

from simulo.collision.kernels.bodies import Part, bare, bounded, part_of, parts_gap, slack_of
from simulo.collision.kernels.convex import FAR
from simulo.collision.kernels.findings import NONE, Tally, counted
from simulo.collision.kernels.lanes import position_at, rotation_at
from simulo.collision.kernels.surroundings import (
    Frame,
    body_frame,
    check_cells,
    check_primitives,
    in_base,
    payload_frame,
    placed_on,
    relative,
)
from simulo.collision.kernels.types import Levers, Poses, Query, Way
from simulo.collision.kernels.verdict import PAYLOAD, SELF, WORLD
from simulo.collision.kernels.way import Scene, ball_motion_to, held_ball, moved, row_motion


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
def pair_on_way(scene: Scene, poses: Poses, m: wp.int32, p: wp.int32, kept: wp.float32) -> Tally:
    """One checked pair, which must keep `kept` [m] apart."""
    pair = scene.pairs.pair[p]
    a = pair[0]
    b = pair[1]
    back = wp.transpose(rotation_at(poses.hulls, m, a))
    between = position_at(poses.hulls, m, b) - position_at(poses.hulls, m, a)
    gap = parts_gap(
        scene.pieces, scene.shapes, part_of(scene.bodies, a), part_of(scene.bodies, b),
        back * rotation_at(poses.hulls, m, b), back * between, kept,
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
    tally = check_primitives(
        scene.pieces, scene.shapes, query, poses, scene.primitives, scene.regions,
        m, env, part, frame, party, region, scene.first_primitive, kept, 0, tally,
    )  # fmt: skip
    if scene.grid.present[0] != 0 and tally.hit == 0:
        lattice = in_base(query, poses, m, env, scene.grid.pose[env])
        placed = placed_on(lattice, frame, part, party, kept)
        tally = check_cells(
            scene.pieces,
            scene.shapes,
            query,
            poses,
            scene.grid,
            scene.regions,
            m,
            env,
            region,
            lattice,
            placed,
            0,
            tally,
        )
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
    own = moved(way, m, bodies + slot)
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
                ask = ask and scene.payloads.touch[env, slot, query.link_asked.shape[0] + held] == wp.uint8(0)
                ask = ask and query.slot_asked[slot] + query.slot_asked[held] > wp.uint8(0)
                other = payload_frame(scene.payloads, poses, m, env, held)
                part = bare(scene.payloads.shape[env, held])
        if ask and tally.hit == 0:
            reach = scene.shapes.reach[shape] + scene.shapes.reach[part.shape]
            apart = wp.length(other.position - frame.position)
            gap = bounded(apart - reach - slack_of(apart))
            kept = margin + half * (own + moved(way, m, k))
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
        return pair_on_way(
            scene, poses, m, item, query.margins[env, 0] + rounding + half * row_motion(levers, way, m, item)
        )
    kept = query.margins[env, 1] + rounding + half * moved(way, m, item - levers.num_pairs)
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
