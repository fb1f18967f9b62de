"""Bodies and payloads against the world (primitives, then occupied cells), and payloads against the robot."""

import warp as wp

from simulo.collision.kernels.bodies import body_meets_shape, bounded, meets
from simulo.collision.kernels.convex import SLACK
from simulo.collision.kernels.findings import Tally, counted, new_tally, store
from simulo.collision.kernels.fk import position_of, rotation_of
from simulo.collision.kernels.shapes import Shapes, support
from simulo.collision.kernels.types import Findings, Grid, Payloads, Poses, Primitives, Query, Regions, Robot, pose7
from simulo.collision.kernels.voxels import NO_BODY, Exempt, Placed, check_grid

NO_REGION = wp.constant(-1)


@wp.struct
class Frame:
    """A rotation and a position [m]."""

    rotation: wp.mat33f
    position: wp.vec3f


@wp.func
def in_base(query: Query, poses: Poses, m: wp.int32, env: wp.int32, pose: pose7) -> Frame:
    """A pose of the env frame in the base frame. Positions are subtracted first, so far from the env's origin nothing
    more is lost than the inputs themselves had."""
    out = Frame()
    back = wp.transpose(poses.base[m])
    out.rotation = back * rotation_of(pose)
    out.position = back * (position_of(pose) - position_of(query.base_pose[env]))
    return out


@wp.func
def relative(a: Frame, b: Frame) -> Frame:
    """Frame b in frame a, both given in one frame."""
    out = Frame()
    back = wp.transpose(a.rotation)
    out.rotation = back * b.rotation
    out.position = back * (b.position - a.position)
    return out


@wp.func
def body_frame(poses: Poses, m: wp.int32, body: wp.int32) -> Frame:
    out = Frame()
    out.rotation = poses.hull_rotation[m, body]
    out.position = poses.hull_position[m, body]
    return out


@wp.func
def payload_frame(payloads: Payloads, poses: Poses, m: wp.int32, env: wp.int32, slot: wp.int32) -> Frame:
    """The payload's packed frame in the base frame."""
    out = Frame()
    link = payloads.link[env, slot]
    above = poses.link_rotation[m, link]
    out.rotation = above * rotation_of(payloads.pose[env, slot])
    out.position = above * position_of(payloads.pose[env, slot]) + poses.link_position[m, link]
    return out


@wp.func
def region_in(
    query: Query, poses: Poses, regions: Regions, m: wp.int32, env: wp.int32, region: wp.int32, frame: Frame
) -> Exempt:
    """A region's box in `frame`, itself given in the base frame; inactive where there is none."""
    out = Exempt()
    if region < 0:
        return out
    if regions.active[env, region] == wp.uint8(0):
        return out
    box = relative(frame, in_base(query, poses, m, env, regions.pose[env, region]))
    out.active = 1
    out.rotation = box.rotation
    out.position = box.position
    out.half = regions.half[env, region]
    return out


@wp.func
def wholly_inside(shapes: Shapes, shape: wp.int32, frame: Frame, box: Exempt) -> wp.bool:
    """Whether the shape, posed by `frame`, lies in the box (both in one frame), its ball included."""
    if box.active == 0:
        return False
    ball = shapes.size[shape][3]
    for i in range(3):
        axis = wp.vec3f(box.rotation[0, i], box.rotation[1, i], box.rotation[2, i])
        along = axis * frame.rotation
        middle = wp.dot(axis, frame.position - box.position)
        top = middle + wp.dot(support(shapes, shape, along), along) + ball
        bottom = middle + wp.dot(support(shapes, shape, -along), along) - ball
        if top > box.half[i] or bottom < -box.half[i]:
            return False
    return True


@wp.func
def check_primitives(
    robot: Robot,
    shapes: Shapes,
    query: Query,
    poses: Poses,
    primitives: Primitives,
    regions: Regions,
    m: wp.int32,
    env: wp.int32,
    body: wp.int32,
    shape: wp.int32,
    frame: Frame,
    party: wp.int32,
    region: wp.int32,
    first_code: wp.int32,
    tally: Tally,
) -> Tally:
    """The tally with every primitive of the environment, for a body or (body NO_BODY) a bare shape in `frame`."""
    margin = query.margins[1]
    for k in range(primitives.count[0]):
        above = wp.max(tally.above, margin)
        other = primitives.shape[env, k]
        if other >= 0 and tally.hit == 0:
            placed = in_base(query, poses, m, env, primitives.pose[env, k])
            spheres = wp.length(placed.position - frame.position) - shapes.reach[shape] - shapes.reach[other] - SLACK
            gap = bounded(spheres)
            exempted = bool(False)
            if not spheres > above:
                if region >= 0:
                    named = regions.active[env, region] != wp.uint8(0) and regions.primitive[env, region] == k
                    base = Frame()
                    base.rotation = wp.identity(n=3, dtype=wp.float32)
                    box = region_in(query, poses, regions, m, env, region, base)
                    exempted = named or wholly_inside(shapes, other, placed, box)
                between = relative(frame, placed)
                if body >= 0:
                    gap = body_meets_shape(
                        robot, shapes, body, other, between.rotation, between.position, above, margin
                    )
                else:
                    gap = meets(shapes, shape, other, between.rotation, between.position, above, True)
            if not exempted:
                tally = counted(tally, gap, party, first_code + k, margin, query.distances[0])
    return tally


@wp.func
def check_cells(
    robot: Robot,
    shapes: Shapes,
    query: Query,
    poses: Poses,
    grid: Grid,
    regions: Regions,
    m: wp.int32,
    env: wp.int32,
    body: wp.int32,
    shape: wp.int32,
    frame: Frame,
    party: wp.int32,
    region: wp.int32,
    tally: Tally,
) -> Tally:
    """The tally with the environment's cells, for a body or (body NO_BODY) a bare shape in `frame`."""
    lattice = in_base(query, poses, m, env, grid.pose[env])
    on_lattice = relative(lattice, frame)
    placed = Placed()
    placed.body = body
    placed.shape = shape
    placed.rotation = on_lattice.rotation
    placed.position = on_lattice.position
    placed.party = party
    placed.margin = query.margins[1]
    exempt = region_in(query, poses, regions, m, env, region, lattice)
    return check_grid(robot, shapes, grid, env, placed, exempt, tally, query.distances[0])


@wp.kernel(enable_backward=False)
def world_kernel(
    first: wp.int32,
    robot: Robot,
    shapes: Shapes,
    query: Query,
    poses: Poses,
    primitives: Primitives,
    grid: Grid,
    regions: Regions,
    first_primitive_code: wp.int32,
    by_self: Findings,
    by_payload: Findings,
    found_out: Findings,
):
    """One thread per configuration: asked bodies in ascending order, each against primitives and then cells.

    Nothing is asked where a stage that outranks this one refused already.
    """
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    tally = new_tally(query, query.margins[1])
    if poses.finite[m] != 0 and by_self.hit[m] == 0 and by_payload.hit[m] == 0:
        env = query.env[m // query.rows[0]]
        active = poses.active[m]
        for i in range(query.num_asked[1]):
            body = query.bodies[i]
            if tally.hit == 0 and (robot.body_gate[body] & ~active) == 0:
                frame = body_frame(poses, m, body)
                shape = robot.body[body][1]
                party = robot.link_of[robot.body[body][0]]
                region = regions.body_region[body]
                tally = check_primitives(
                    robot, shapes, query, poses, primitives, regions,
                    m, env, body, shape, frame, party, region, first_primitive_code, tally,
                )  # fmt: skip
                if grid.present[0] != 0 and tally.hit == 0:
                    tally = check_cells(
                        robot, shapes, query, poses, grid, regions, m, env, body, shape, frame, party, region, tally
                    )
    store(m, tally, found_out)


@wp.func
def check_payload_on_robot(
    robot: Robot,
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
    """The tally with every body that the payload may not touch, then every payload of another hand."""
    margin = query.margins[0]
    shape = payloads.shape[env, slot]
    active = poses.active[m]
    for body in range(robot.body.shape[0]):
        link = robot.link_of[robot.body[body][0]]
        apart = (robot.body_gate[body] & ~active) == 0 and payloads.touch[env, slot, link] == wp.uint8(0)
        if apart and tally.hit == 0:
            other = body_frame(poses, m, body)
            spheres = wp.length(other.position - frame.position) - shapes.reach[shape] - SLACK
            spheres = spheres - shapes.reach[robot.body[body][1]]
            gap = bounded(spheres)
            if not spheres > tally.above:
                between = relative(other, frame)
                gap = body_meets_shape(
                    robot, shapes, body, shape, between.rotation, between.position, tally.above, margin
                )
            tally = counted(tally, gap, party, link, margin, query.distances[0])
    for other_slot in range(slot + 1, payloads.slot_gripper.shape[0]):
        other_shape = payloads.shape[env, other_slot]
        foreign = payloads.slot_gripper[other_slot] != payloads.slot_gripper[slot]
        if other_shape >= 0 and foreign and tally.hit == 0:
            between = relative(frame, payload_frame(payloads, poses, m, env, other_slot))
            gap = meets(shapes, shape, other_shape, between.rotation, between.position, tally.above, True)
            tally = counted(tally, gap, party, party - slot + other_slot, margin, query.distances[0])
    return tally


@wp.kernel(enable_backward=False)
def payload_kernel(
    first: wp.int32,
    robot: Robot,
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
    """One thread per configuration: asked payload slots in ascending order, against the robot and then the world."""
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    tally = new_tally(query, query.margins[0])
    if poses.finite[m] != 0 and by_self.hit[m] == 0:
        env = query.env[m // query.rows[0]]
        for i in range(query.num_asked[2]):
            slot = query.slots[i]
            shape = payloads.shape[env, slot]
            if shape >= 0 and tally.hit == 0:
                frame = payload_frame(payloads, poses, m, env, slot)
                party = first_payload_code + slot
                region = payloads.first_region + slot
                tally = check_payload_on_robot(
                    robot, shapes, query, poses, payloads, m, env, slot, frame, party, tally
                )
                if query.num_asked[3] != 0:
                    tally = check_primitives(
                        robot, shapes, query, poses, primitives, regions,
                        m, env, NO_BODY, shape, frame, party, region, first_primitive_code, tally,
                    )  # fmt: skip
                    if grid.present[0] != 0 and tally.hit == 0:
                        tally = check_cells(
                            robot, shapes, query, poses, grid, regions,
                            m, env, NO_BODY, shape, frame, party, region, tally,
                        )  # fmt: skip
    store(m, tally, found_out)
