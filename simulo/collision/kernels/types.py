"""What the kernels read and write: constants of the robot, per-environment inputs, per-configuration state.

Sizes: E edges, L posed links (the robot's, then the measured copies), B bodies (posed links with geometry), Q pieces,
P pairs, N environments, G grippers, S payload slots, K primitives, M configurations. A configuration is one row of one
environment's chunk. "base" is the robot's base frame, "env" the environment's.

A gate is a bit mask of grippers: what carries one is evaluated only while all of these are posed at a measured value
too. Zero means always.
"""

import warp as wp

# Configurations are looked at in blocks of this many (see `lanes`): as many as a CPU's widest vectors hold.
LANES = 16

CLEARANCE_UNIT = wp.constant(wp.float32(1.0e-5))  # m: what a cell of a clearance map says is its square times this

# A pose as the API gives it: position [m], then wxyz.
pose7 = wp.types.vector(length=7, dtype=wp.float32)

# A constant frame, as rows of a rotation each with its part of the position [m], or what makes one of a joint's value.
frame34 = wp.types.matrix(shape=(3, 4), dtype=wp.float32)


@wp.struct
class Tree:
    """Edges of the kinematic tree, parents first.

    ends (E): parent link (-1: the base frame), child link, column of [q | measured] or -1, gate.
    relation (E): column value -> joint value, multiplier and offset.
    A child's frame in its parent is still + cos * cos q + sin * sin q + slide * q, and still for a fixed edge.
    """

    ends: wp.array(dtype=wp.vec4i)
    relation: wp.array(dtype=wp.vec2f)
    still: wp.array(dtype=frame34)
    cos: wp.array(dtype=frame34)
    sin: wp.array(dtype=frame34)
    slide: wp.array(dtype=frame34)


@wp.struct
class Bodies:
    """Posed links with geometry.

    body (B): posed link, shape of its hull, first piece, number of pieces. gate (B). link (B): the robot's link, of
    which the posed one may be a measured copy. region (B): the region the body is exempt in, -1 for none.
    frame (B): the hull's, in the posed link.
    """

    body: wp.array(dtype=wp.vec4i)
    gate: wp.array(dtype=wp.int32)
    link: wp.array(dtype=wp.int32)
    region: wp.array(dtype=wp.int32)
    frame: wp.array(dtype=frame34)


@wp.struct
class Pieces:
    """Pieces of the bodies' hulls (Q): shape, and their frame in the hull's."""

    shape: wp.array(dtype=wp.int32)
    rotation: wp.array(dtype=wp.mat33f)
    origin: wp.array(dtype=wp.vec3f)


@wp.struct
class Pairs:
    """Checked pairs. pair (P): body a, body b, gate. reach [m] (P): sum of the two bounding spheres' radii.

    The same by bodies, the lower one's row and the other's column: number (B, width) and reaches (B, width) [m], of
    what is no checked pair without a gate -1. width: B rounded up to a multiple of 64.
    """

    pair: wp.array(dtype=wp.vec3i)
    reach: wp.array(dtype=wp.float32)
    number: wp.array2d(dtype=wp.int32)
    reaches: wp.array2d(dtype=wp.float32)


@wp.struct
class Clearance:
    """`simulo.collision.clearance_maps.ClearanceMaps` on the device; fields as there."""

    head: wp.array(dtype=wp.vec4i)
    place: wp.array(dtype=wp.vec4f)
    cells: wp.array(dtype=wp.uint8)


@wp.struct
class Query:
    """What is asked, one call at a time.

    count (1): configurations in use. rows (1): rows per environment. env (entries): environment of each entry;
    configuration m belongs to entry m / rows. q (M, dof) [rad or m].
    base_pose (N): the base in the env frame. measured (N, G) [rad or m], measured_active (N, G).
    map_status (N): MapStatus. margins (N, 2) [m]: self, world. distances (1): 1 to search for the least distance.
    pairs, bodies: indices of what is asked of; num_asked (4): how many of each, then 1 to ask of the world, then how
    many of the pairs, which come first, have no gate. slot_asked (S), link_asked (L): 1 for the payload slots and the
    robot's links that are asked of; what two payloads or a payload and a link have to do with each other concerns both.
    """

    count: wp.array(dtype=wp.int32)
    rows: wp.array(dtype=wp.int32)
    env: wp.array(dtype=wp.int32)
    q: wp.array2d(dtype=wp.float32)
    base_pose: wp.array(dtype=pose7)
    measured: wp.array2d(dtype=wp.float32)
    measured_active: wp.array2d(dtype=wp.uint8)
    map_status: wp.array(dtype=wp.int8)
    margins: wp.array2d(dtype=wp.float32)
    distances: wp.array(dtype=wp.int32)
    pairs: wp.array(dtype=wp.int32)
    bodies: wp.array(dtype=wp.int32)
    slot_asked: wp.array(dtype=wp.uint8)
    link_asked: wp.array(dtype=wp.uint8)
    num_asked: wp.array(dtype=wp.int32)


@wp.struct
class Poses:
    """Where everything is, per configuration, in the base frame.

    finite (M): 1 when every input of the configuration is. active (M): bit mask of grippers posed at measured values.
    base (M): rotation of the base in the env frame. primitive_position [m] (M, K): the primitives' packed origins.
    Of the following, in blocks of LANES configurations (see `lanes`), lanes that are not finite hold no numbers:
    columns (blocks, C, LANES): values of the columns [q | measured], [rad or m]. links (blocks, L, 12, LANES), hulls
    (blocks, B, 12, LANES): the links' frames and those of the bodies' hulls, rotation row by row and then position [m].
    Where there is one configuration on a CPU, frames have one lane: in a piece, they are sooner written than computed.
    """

    finite: wp.array(dtype=wp.int32)
    active: wp.array(dtype=wp.int32)
    base: wp.array(dtype=wp.mat33f)
    primitive_position: wp.array2d(dtype=wp.vec3f)
    columns: wp.array3d(dtype=wp.float32)
    links: wp.array4d(dtype=wp.float32)
    hulls: wp.array4d(dtype=wp.float32)


@wp.struct
class Primitives:
    """World primitives. shape (N, K): index in the pool, -1 for none; pose (N, K): the shape's own frame in the env
    frame. offset (K) [m]: the packed frame's origin in that; not in the pose, which is coarse far from the env's
    origin. count (1): primitives in use."""

    shape: wp.array2d(dtype=wp.int32)
    pose: wp.array2d(dtype=pose7)
    offset: wp.array(dtype=wp.vec3f)
    count: wp.array(dtype=wp.int32)


@wp.struct
class Grid:
    """Occupancy bricks.

    present (1): 0 when no map was set, `voxels.CLOSED` when what lies past its edges is solid, else 1. counts (1):
    bricks along x, y, z. cell (1) [m]: (edge, edge / 2). bricks (N, number of bricks). columns (N, number of columns x
    words): bit z says that brick z of the column is not empty. pose (N): the grid's corner in the env frame.
    unknown_before (N, bricks along x, y and z, one more each): unknown cells of all bricks that come before along all
    three axes (a summed-area table: Crow 1984), read where has_unknown (1) is 1.
    cell_shape: the pool's box of one cell.
    """

    present: wp.array(dtype=wp.int32)
    bricks: wp.array2d(dtype=wp.uint64)
    columns: wp.array2d(dtype=wp.uint64)
    counts: wp.array(dtype=wp.vec3i)
    cell: wp.array(dtype=wp.vec2f)
    pose: wp.array(dtype=pose7)
    has_unknown: wp.array(dtype=wp.int32)
    unknown_before: wp.array4d(dtype=wp.int32)
    cell_shape: wp.int32


@wp.struct
class Payloads:
    """What the hands hold. Slot s belongs to gripper slot_gripper[s] and has region first_region + s.

    shape (N, S): index in the pool, -1 for empty. link (N, S): posed link. pose (N, S): the shape's packed frame in
    that link. touch (N, S, links + S): 1 where the payload may touch that link, or what that slot holds.
    """

    slot_gripper: wp.array(dtype=wp.int32)
    first_region: wp.int32
    shape: wp.array2d(dtype=wp.int32)
    link: wp.array2d(dtype=wp.int32)
    pose: wp.array2d(dtype=pose7)
    touch: wp.array3d(dtype=wp.uint8)


@wp.struct
class Regions:
    """Boxes in which some contact is allowed: one per gripper (its grasp contact links), then one per payload slot.

    active (N, G + S). pose, half [m] (N, G + S): oriented boxes in the env frame. primitive (N, G + S):
    a primitive exempted by name, -1 for none.
    """

    active: wp.array2d(dtype=wp.uint8)
    pose: wp.array2d(dtype=pose7)
    half: wp.array2d(dtype=wp.vec3f)
    primitive: wp.array2d(dtype=wp.int32)


@wp.struct
class Near:
    """What bounding spheres and boxes leave over, per configuration (M).

    above [m] (M): what the pairs have to keep. pairs (blocks, words, LANES): bit p % 32 of word p // 32 is set where
    pair p is left, num (M): how many are. asked (M): pairs that had to be looked at, left or not. lower [m] (M): bound
    of the distances of those that are not left.
    """

    above: wp.array(dtype=wp.float32)
    pairs: wp.array3d(dtype=wp.uint32)
    num: wp.array(dtype=wp.int32)
    asked: wp.array(dtype=wp.int32)
    lower: wp.array(dtype=wp.float32)


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

    start (N, dof) [rad or m]. travel (blocks, dof, LANES): how far each column goes. moved (blocks, B + S, LANES) [m]:
    motion bounds of bodies and of what is held. near: pairs that are not clear all along by their spheres and boxes.
    left (M, items): the list, what needs the next level first. num (M, MAX_LEVEL + 2): how many at each level, negative
    for a way that is not looked at. rounding (M) [m]: what float32 middles may be off by.
    """

    start: wp.array2d(dtype=wp.float32)
    travel: wp.array3d(dtype=wp.float32)
    moved: wp.array3d(dtype=wp.float32)
    near: Near
    left: wp.array2d(dtype=wp.int32)
    num: wp.array2d(dtype=wp.int32)
    rounding: wp.array(dtype=wp.float32)


@wp.struct
class Reach:
    """What of the world is in reach of the robot's boxes, per configuration (M).

    bodies (M, words): bit b % 32 of word b // 32 is set where body b has to be looked at. unknown (M): unknown cells.
    outside (M): bodies past the map's edges.
    Working memory: going (M): 1 where the world is looked at. In blocks of LANES: lattice (blocks, 12, LANES), as
    `Poses.hulls`: the lattice in the base frame; pads (blocks, 2, LANES) [m]: what the reach is, and the margin. Of one
    body at a time: windows (blocks, 13, LANES): the bricks low x, y, z and high x, y, z within either, then not 0 where
    the body's place is no number; clearance (blocks x LANES) [m]: `voxels.edge_clearance`.
    """

    bodies: wp.array2d(dtype=wp.uint32)
    unknown: wp.array(dtype=wp.int32)
    outside: wp.array(dtype=wp.int32)
    going: wp.array(dtype=wp.int32)
    lattice: wp.array3d(dtype=wp.float32)
    pads: wp.array3d(dtype=wp.float32)
    windows: wp.array3d(dtype=wp.int32)
    clearance: wp.array(dtype=wp.float32)


@wp.struct
class Findings:
    """One stage's answer per configuration (M).

    hit: 1 refused, 0 not. party_a, party_b: of the refused pair, or the nearest. lower [m]: certified bound of its
    distance, exact: 1 when it is the distance. cleared: how many of the asked were certified clear; asked: how many
    there were to ask. capped: searches that ran out of iterations. unknown: unknown cells in reach. outside: parts
    that reach past the map's edges.
    """

    hit: wp.array(dtype=wp.int32)
    party_a: wp.array(dtype=wp.int32)
    party_b: wp.array(dtype=wp.int32)
    lower: wp.array(dtype=wp.float32)
    exact: wp.array(dtype=wp.int32)
    cleared: wp.array(dtype=wp.int32)
    asked: wp.array(dtype=wp.int32)
    capped: wp.array(dtype=wp.int32)
    unknown: wp.array(dtype=wp.int32)
    outside: wp.array(dtype=wp.int32)
