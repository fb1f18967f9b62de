"""Frames, regions and the checks of one placed body or shape against the world's primitives and cells."""

import warp as wp

from simulo.collision.kernels.bodies import Part, bare, bounded, parts_gap, slack_of
from simulo.collision.kernels.findings import Tally, counted, enough
from simulo.collision.kernels.fk import position_of, rotation_of
from simulo.collision.kernels.lanes import position_at, rotation_at
from simulo.collision.kernels.shapes import Shapes, support
from simulo.collision.kernels.types import Grid, Payloads, Pieces, Poses, Primitives, Query, Regions, pose7
from simulo.collision.kernels.voxels import Exempt, Placed, check_grid


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
def primitive_frame(poses: Poses, primitives: Primitives, m: wp.int32, env: wp.int32, k: wp.int32) -> Frame:
    """The primitive's packed frame in the base frame."""
    out = Frame()
    out.rotation = wp.transpose(poses.base[m]) * rotation_of(primitives.pose[env, k])
    out.position = poses.primitive_position[m, k]
    return out


@wp.func
def body_frame(poses: Poses, m: wp.int32, body: wp.int32) -> Frame:
    out = Frame()
    out.rotation = rotation_at(poses.hulls, m, body)
    out.position = position_at(poses.hulls, m, body)
    return out


@wp.func
def payload_frame(payloads: Payloads, poses: Poses, m: wp.int32, env: wp.int32, slot: wp.int32) -> Frame:
    """The payload's packed frame in the base frame."""
    out = Frame()
    link = payloads.link[env, slot]
    above = rotation_at(poses.links, m, link)
    out.rotation = above * rotation_of(payloads.pose[env, slot])
    out.position = above * position_of(payloads.pose[env, slot]) + position_at(poses.links, m, link)
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
        if not (top <= box.half[i] and bottom >= -box.half[i]):  # so that NaN is outside
            return False
    return True


@wp.func
def primitive_exempted(
    shapes: Shapes,
    query: Query,
    poses: Poses,
    regions: Regions,
    m: wp.int32,
    env: wp.int32,
    region: wp.int32,
    k: wp.int32,
    shape: wp.int32,
    placed: Frame,
) -> wp.bool:
    """Whether an active region names primitive k or holds all of it; `placed` is its frame in the base's."""
    if region < 0:
        return False
    if regions.active[env, region] == wp.uint8(0):
        return False
    if regions.primitive[env, region] == k:
        return True
    base = Frame()
    base.rotation = wp.identity(n=3, dtype=wp.float32)
    return wholly_inside(shapes, shape, placed, region_in(query, poses, regions, m, env, region, base))


@wp.func
def check_primitives(
    pieces: Pieces,
    shapes: Shapes,
    query: Query,
    poses: Poses,
    primitives: Primitives,
    regions: Regions,
    m: wp.int32,
    env: wp.int32,
    part: Part,
    frame: Frame,
    party: wp.int32,
    region: wp.int32,
    first_code: wp.int32,
    margin: wp.float32,
    distances: wp.int32,
    tally: Tally,
) -> Tally:
    """The tally with every primitive of the environment, for a part whose hull's frame is `frame`; after a hit, with
    the one that was hit."""
    for k in range(primitives.count[0]):
        other = primitives.shape[env, k]
        if other >= 0 and (tally.hit == 0 or tally.party_b == first_code + k):
            above = enough(tally, margin)
            apart = wp.length(poses.primitive_position[m, k] - frame.position)
            size = shapes.reach[part.shape] + shapes.reach[other]
            gap = bounded(apart - size - slack_of(apart))
            exempted = wp.bool(False)
            if not gap.lower > above:
                placed = primitive_frame(poses, primitives, m, env, k)
                exempted = primitive_exempted(shapes, query, poses, regions, m, env, region, k, other, placed)
                between = relative(frame, placed)
                gap = parts_gap(pieces, shapes, part, bare(other), between.rotation, between.position, above)
            if not exempted:
                tally = counted(tally, gap, party, first_code + k, margin, distances)
    return tally


@wp.func
def placed_on(lattice: Frame, frame: Frame, part: Part, party: wp.int32, margin: wp.float32) -> Placed:
    """A part whose hull's frame is `frame`, on the grid whose frame is `lattice`."""
    on_lattice = relative(lattice, frame)
    out = Placed()
    out.part = part
    out.rotation = on_lattice.rotation
    out.position = on_lattice.position
    out.party = party
    out.margin = margin
    out.lever = wp.length(on_lattice.position)
    return out


@wp.func
def check_cells(
    pieces: Pieces,
    shapes: Shapes,
    query: Query,
    poses: Poses,
    grid: Grid,
    regions: Regions,
    m: wp.int32,
    env: wp.int32,
    region: wp.int32,
    lattice: Frame,
    placed: Placed,
    distances: wp.int32,
    tally: Tally,
) -> Tally:
    """The tally with the environment's cells, for what is placed on the grid, whose frame is `lattice`; after a hit,
    with the one that was hit."""
    exempt = region_in(query, poses, regions, m, env, region, lattice)
    return check_grid(pieces, shapes, grid, env, placed, exempt, tally, distances)
