"""What the hands hold against the robot, against each other and against the world."""

import warp as wp

from simulo.collision.kernels.bodies import bare, bounded, part_of, parts_gap, slack_of
from simulo.collision.kernels.findings import Tally, counted, enough, new_tally, store
from simulo.collision.kernels.shapes import Shapes
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
from simulo.collision.kernels.types import Bodies, Findings, Grid, Payloads, Pieces, Poses, Primitives, Query, Regions
from simulo.collision.kernels.voxels import bounds_of, count_unknown, edge_clearance, reaches_out, window_of


@wp.func
def check_payload_on_robot(
    bodies: Bodies,
    pieces: Pieces,
    shapes: Shapes,
    query: Query,
    poses: Poses,
    payloads: Payloads,
    m: wp.int32,
    env: wp.int32,
    slot: wp.int32,
    frame: Frame,
    party: wp.int32,
    tally: Tally,
) -> Tally:
    """The tally with every body that the payload may not touch, then every payload of another hand; what is asked of
    either party is evaluated, whoever it is that holds."""
    margin = query.margins[env, 0]
    shape = payloads.shape[env, slot]
    links = query.link_asked.shape[0]
    active = poses.active[m]
    for body in range(bodies.body.shape[0]):
        link = bodies.link[body]
        apart = (bodies.gate[body] & ~active) == 0 and payloads.touch[env, slot, link] == wp.uint8(0)
        asked = query.slot_asked[slot] + query.link_asked[link] > wp.uint8(0)
        if apart and asked and (tally.hit == 0 or tally.party_b == link):
            other = body_frame(poses, m, body)
            reach = shapes.reach[shape] + shapes.reach[bodies.body[body][1]]
            away = wp.length(other.position - frame.position)
            gap = bounded(away - reach - slack_of(away))  # no number, and so no bound, where float32 overflows
            above = enough(tally, margin)
            if not gap.lower > above:
                between = relative(other, frame)
                gap = parts_gap(
                    pieces, shapes, part_of(bodies, body), bare(shape), between.rotation, between.position,
                    above,
                )  # fmt: skip
            tally = counted(tally, gap, party, link, margin, query.distances[0])
    for other_slot in range(slot + 1, payloads.slot_gripper.shape[0]):
        other_shape = payloads.shape[env, other_slot]
        foreign = payloads.slot_gripper[other_slot] != payloads.slot_gripper[slot]
        foreign = foreign and payloads.touch[env, slot, links + other_slot] == wp.uint8(0)
        asked = query.slot_asked[slot] + query.slot_asked[other_slot] > wp.uint8(0)
        if other_shape >= 0 and foreign and asked and tally.hit == 0:
            between = relative(frame, payload_frame(payloads, poses, m, env, other_slot))
            gap = parts_gap(
                pieces, shapes, bare(shape), bare(other_shape), between.rotation, between.position,
                enough(tally, margin),
            )  # fmt: skip
            tally = counted(tally, gap, party, party - slot + other_slot, margin, query.distances[0])
    return tally


@wp.kernel(enable_backward=False)
def payload_kernel(
    first: wp.int32,
    bodies: Bodies,
    pieces: Pieces,
    shapes: Shapes,
    query: Query,
    poses: Poses,
    payloads: Payloads,
    primitives: Primitives,
    grid: Grid,
    regions: Regions,
    first_payload_code: wp.int32,
    first_primitive_code: wp.int32,
    by_self: Findings,
    found_out: Findings,
):
    """One thread per configuration: payload slots in ascending order, against the robot and then the world."""
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    env = query.env[m // query.rows[0]]
    tally = new_tally(query, query.margins[env, 0])
    if poses.finite[m] != 0 and by_self.hit[m] == 0:
        for slot in range(payloads.slot_gripper.shape[0]):
            shape = payloads.shape[env, slot]
            if shape >= 0 and tally.hit == 0:
                frame = payload_frame(payloads, poses, m, env, slot)
                party = first_payload_code + slot
                region = payloads.first_region + slot
                tally = check_payload_on_robot(
                    bodies, pieces, shapes, query, poses, payloads, m, env, slot, frame, party, tally
                )
                if query.num_asked[2] != 0 and query.slot_asked[slot] != wp.uint8(0):
                    tally = check_primitives(
                        pieces, shapes, query, poses, primitives, regions,
                        m, env, bare(shape), frame, party, region, first_primitive_code, query.margins[env, 1],
                        query.distances[0], tally,
                    )  # fmt: skip
                    if grid.present[0] != 0 and tally.hit == 0:
                        lattice = in_base(query, poses, m, env, grid.pose[env])
                        placed = placed_on(lattice, frame, bare(shape), party, query.margins[env, 1])
                        bounds = bounds_of(shapes, placed)
                        tally.outside += reaches_out(edge_clearance(grid, bounds), placed.margin)
                        if grid.has_unknown[0] != 0:
                            tally.unknown += count_unknown(grid, env, window_of(grid, bounds, placed.margin))
                        tally = check_cells(
                            pieces, shapes, query, poses, grid, regions, m, env, region, lattice, placed,
                            query.distances[0], tally,
                        )  # fmt: skip
    store(m, tally, found_out)
