"""Shapes and bodies against occupancy bricks.

A brick is 4 x 4 x 4 cells in one uint64, bit (x * 4 + y) * 4 + z; bricks lie in x, y, z order. A cell's code is
64 * brick + bit, and bricks and bits are visited in ascending order, so the first cell found is the lowest. Cells are
full cubes; everything here is in the lattice's frame or the checked hull's.
"""

import warp as wp

from simulo.collision.kernels.bits import are_numbers, lowest_bit64
from simulo.collision.kernels.bodies import Part, bare, bounded, half_of, nearly_exact, parts_gap, slack_of
from simulo.collision.kernels.convex import FAR, ROUNDING
from simulo.collision.kernels.findings import NONE, Tally, counted, enough
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import Grid, Pieces

CLOSED = wp.constant(2)
"""`Grid.present` of a map that has solid space past its edges."""

EDGE = wp.constant(-2147483648)
"""Party code of that space: below every cell's."""


@wp.struct
class Placed:
    """Something to check against cells. rotation, position [m]: its hull's frame in the lattice's. party: its code.
    margin [m]: of the world check. lever [m]: from the lattice's corner to the hull; float32 is coarser far out."""

    part: Part
    rotation: wp.mat33f
    position: wp.vec3f
    party: wp.int32
    margin: wp.float32
    lever: wp.float32


@wp.struct
class Exempt:
    """A box in the lattice's frame; cells whose centre lies in it are not checked. active: 0 for no box."""

    active: wp.int32
    rotation: wp.mat33f
    position: wp.vec3f
    half: wp.vec3f


@wp.func
def contains(box: Exempt, point: wp.vec3f) -> wp.bool:
    if box.active == 0:
        return False
    p = (point - box.position) * box.rotation
    return wp.abs(p[0]) <= box.half[0] and wp.abs(p[1]) <= box.half[1] and wp.abs(p[2]) <= box.half[2]


@wp.func
def extent(rotation: wp.mat33f, half: wp.vec3f) -> wp.vec3f:
    """Half edges [m] of the axis-aligned box around a box of half edges `half` turned by `rotation`."""
    return wp.vec3f(
        wp.abs(rotation[0, 0]) * half[0] + wp.abs(rotation[0, 1]) * half[1] + wp.abs(rotation[0, 2]) * half[2],
        wp.abs(rotation[1, 0]) * half[0] + wp.abs(rotation[1, 1]) * half[1] + wp.abs(rotation[1, 2]) * half[2],
        wp.abs(rotation[2, 0]) * half[0] + wp.abs(rotation[2, 1]) * half[1] + wp.abs(rotation[2, 2]) * half[2],
    )


@wp.func
def brick_index(position: wp.float32, brick: wp.float32, count: wp.int32) -> wp.int32:
    """Brick that holds a coordinate [m], clamped to -1 .. count; clamped as a float, since far ones overflow."""
    return wp.int32(wp.clamp(wp.floor(position / brick), -1.0, wp.float32(count)))


@wp.func
def box_clearance(centre: wp.vec3f, half: wp.vec3f) -> wp.float32:
    """Largest gap [m] along the axes between a point and a box of half edges `half` at the origin."""
    return wp.max(wp.abs(centre[0]) - half[0], wp.max(wp.abs(centre[1]) - half[1], wp.abs(centre[2]) - half[2]))


@wp.func
def cell_offset(bit: wp.int32, cell: wp.float32) -> wp.vec3f:
    """Centre of a brick's cell [m] from the brick's corner."""
    return wp.vec3f(
        (wp.float32(bit >> 4) + 0.5) * cell,
        (wp.float32((bit >> 2) & 3) + 0.5) * cell,
        (wp.float32(bit & 3) + 0.5) * cell,
    )


@wp.func
def check_cell(
    pieces: Pieces,
    shapes: Shapes,
    grid: Grid,
    placed: Placed,
    centre: wp.vec3f,
    code: wp.int32,
    tally: Tally,
    distances: wp.int32,
) -> Tally:
    """The tally with one occupied cell more; centre [m] in the hull's frame."""
    turned = wp.transpose(placed.rotation)
    above = enough(tally, placed.margin)
    gap = parts_gap(pieces, shapes, placed.part, bare(grid.cell_shape), turned, centre, above)
    gap.lower -= ROUNDING * placed.lever
    gap.exact *= nearly_exact(placed.lever)
    return counted(tally, gap, placed.party, -code - 2, placed.margin, distances)


@wp.func
def check_brick(
    pieces: Pieces,
    shapes: Shapes,
    grid: Grid,
    placed: Placed,
    exempt: Exempt,
    word: wp.uint64,
    corner: wp.vec3f,
    code: wp.int32,
    sought: wp.int32,
    tally: Tally,
    distances: wp.int32,
) -> Tally:
    """The tally with one brick's occupied cells; corner [m] in the lattice's frame, code of its first cell. sought: the
    only cell to look at, or -1."""
    cell = grid.cell[0][0]
    half = half_of(shapes, placed.part.shape)
    cover = shapes.size[placed.part.shape][3] + slack_of(placed.lever)
    above = enough(tally, placed.margin)
    turned = wp.transpose(placed.rotation)
    cube = extent(turned, wp.vec3f(grid.cell[0][1], grid.cell[0][1], grid.cell[0][1]))
    # The brick as a whole first: its cube is four cells wide.
    middle = turned * (corner + wp.vec3f(2.0 * cell, 2.0 * cell, 2.0 * cell) - placed.position)
    if box_clearance(middle, half + cube * 4.0) - cover > above:
        return tally
    left = word
    if sought >= 0:
        left = word & (wp.uint64(1) << wp.uint64(sought & 63))
    while left != wp.uint64(0) and (tally.hit == 0 or sought >= 0):
        bit = lowest_bit64(left)
        left = left & (left - wp.uint64(1))
        point = corner + cell_offset(bit, cell)
        centre = turned * (point - placed.position)
        near = box_clearance(centre, half + cube) - cover <= above
        if near and not contains(exempt, point):
            tally = check_cell(pieces, shapes, grid, placed, centre, code + bit, tally, distances)
    return tally


@wp.struct
class Bounds:
    """The box along the lattice's axes around a placed hull, its ball and the slack of where it is [m]. known: 0 where
    its place is no number."""

    known: wp.int32
    middle: wp.vec3f
    half: wp.vec3f


@wp.struct
class Window:
    """Bricks low .. high - 1 along x, y, z; empty when a high is not above its low."""

    low: wp.vec3i
    high: wp.vec3i


@wp.func
def bounds_of(shapes: Shapes, placed: Placed) -> Bounds:
    cover = shapes.size[placed.part.shape][3] + slack_of(placed.lever)
    out = Bounds()
    out.known = wp.where(are_numbers(placed.position), 1, 0)
    out.middle = placed.position
    out.half = extent(placed.rotation, half_of(shapes, placed.part.shape)) + wp.vec3f(cover, cover, cover)
    return out


@wp.func
def window_of(grid: Grid, bounds: Bounds, above: wp.float32) -> Window:
    """Bricks within `above` [m] of the bounds along each axis; cells elsewhere are farther. None where those are not
    known."""
    out = Window()
    if bounds.known == 0:
        return out
    brick = 4.0 * grid.cell[0][0]
    counts = grid.counts[0]
    low = bounds.middle - bounds.half
    high = bounds.middle + bounds.half
    out.low = wp.vec3i(
        wp.max(brick_index(low[0] - above, brick, counts[0]), 0),
        wp.max(brick_index(low[1] - above, brick, counts[1]), 0),
        wp.max(brick_index(low[2] - above, brick, counts[2]), 0),
    )
    out.high = wp.vec3i(
        wp.min(brick_index(high[0] + above, brick, counts[0]) + 1, counts[0]),
        wp.min(brick_index(high[1] + above, brick, counts[1]) + 1, counts[1]),
        wp.min(brick_index(high[2] + above, brick, counts[2]) + 1, counts[2]),
    )
    return out


@wp.func
def edge_clearance(grid: Grid, bounds: Bounds) -> wp.float32:
    """How far [m] the bounds are from the map's edges, negative where they reach past one; -FAR where not known."""
    if bounds.known == 0:
        return -FAR
    out = FAR
    for i in range(3):
        edge = 4.0 * grid.cell[0][0] * wp.float32(grid.counts[0][i])
        out = wp.min(out, wp.min(bounds.middle[i], edge - bounds.middle[i]) - bounds.half[i])
    return out


@wp.func
def reaches_out(clearance: wp.float32, margin: wp.float32) -> wp.int32:
    """1 where bounds of that `edge_clearance`, grown by the margin, reach past the edges: no cell is there to tell."""
    return wp.where(clearance > margin, 0, 1)


@wp.func
def between_bits(word: wp.uint64, low: wp.int32, high: wp.int32) -> wp.uint64:
    """The word's bits low .. high - 1 (high > 0, low < 64), the others zero."""
    ones = ~wp.uint64(0)
    kept = word
    if low > 0:
        kept = kept & (ones << wp.uint64(low))
    if high < 64:
        kept = kept & ~(ones << wp.uint64(high))
    return kept


@wp.func
def check_grid(
    pieces: Pieces,
    shapes: Shapes,
    grid: Grid,
    env: wp.int32,
    placed: Placed,
    exempt: Exempt,
    tally: Tally,
    distances: wp.int32,
) -> Tally:
    """The tally with every occupied cell that can be near the placed part, and with what lies past the map's edges,
    where that is solid; after a hit, with what was hit."""
    sought = wp.int32(-1)
    if tally.hit != 0:
        if tally.party_b == EDGE:
            past = bounded(edge_clearance(grid, bounds_of(shapes, placed)))
            return counted(tally, past, placed.party, EDGE, placed.margin, 0)
        sought = -tally.party_b - 2
        if sought < 0:  # a primitive, or nothing
            return tally
    if not are_numbers(placed.position):  # sums of huge inputs; nothing lies in a window around NaN
        return counted(tally, bounded(-FAR), placed.party, NONE, placed.margin, distances)
    bounds = bounds_of(shapes, placed)
    window = window_of(grid, bounds, enough(tally, placed.margin))
    brick = 4.0 * grid.cell[0][0]
    counts = grid.counts[0]
    if sought >= 0:
        place = sought // 64
        at = wp.vec3i(place // counts[2] // counts[1], place // counts[2] % counts[1], place % counts[2])
        window.low = wp.vec3i(wp.max(window.low[0], at[0]), wp.max(window.low[1], at[1]), wp.max(window.low[2], at[2]))
        window.high = wp.vec3i(
            wp.min(window.high[0], at[0] + 1), wp.min(window.high[1], at[1] + 1), wp.min(window.high[2], at[2] + 1)
        )
    words = (counts[2] + 63) // 64
    z0 = window.low[2]
    z1 = window.high[2]
    columns = grid.columns[env]
    for x in range(window.low[0], window.high[0]):
        for y in range(window.low[1], window.high[1]):
            column = x * counts[1] + y
            for w in range(z0 // 64, (z1 + 63) // 64):
                word = between_bits(columns[column * words + w], z0 - 64 * w, z1 - 64 * w)
                while word != wp.uint64(0) and (tally.hit == 0 or sought >= 0):
                    z = 64 * w + lowest_bit64(word)
                    word = word & (word - wp.uint64(1))
                    index = column * counts[2] + z
                    corner = wp.vec3f(wp.float32(x), wp.float32(y), wp.float32(z)) * brick
                    tally = check_brick(
                        pieces, shapes, grid, placed, exempt,
                        grid.bricks[env, index], corner, index * 64, sought, tally, distances,
                    )  # fmt: skip
    passed = enough(tally, placed.margin)
    if passed < tally.lower:  # what was passed over is only known to be farther than this
        tally.lower = passed
        tally.exact = 0
    if grid.present[0] == CLOSED and tally.hit == 0:
        past_it = bounded(edge_clearance(grid, bounds))
        tally = counted(tally, past_it, placed.party, EDGE, placed.margin, distances)
    return tally


@wp.func
def count_bits(word: wp.uint64) -> wp.int32:
    """How many bits are set: sums of neighbours in ever wider fields (Warren, Hacker's Delight, section 5-1)."""
    pairs = word - ((word >> wp.uint64(1)) & wp.uint64(0x5555555555555555))
    fours = (pairs & wp.uint64(0x3333333333333333)) + ((pairs >> wp.uint64(2)) & wp.uint64(0x3333333333333333))
    bytes = (fours + (fours >> wp.uint64(4))) & wp.uint64(0x0F0F0F0F0F0F0F0F)
    return wp.int32((bytes * wp.uint64(0x0101010101010101)) >> wp.uint64(56))


@wp.func
def unknown_before(grid: Grid, env: wp.int32, low: wp.vec3i, high: wp.vec3i, z: wp.int32) -> wp.int32:
    """Unknown cells of the bricks low .. high - 1 along x and y that lie below brick z."""
    sums = grid.unknown_before[env]
    beside = sums[low[0], high[1], z] + sums[high[0], low[1], z]
    return sums[high[0], high[1], z] - beside + sums[low[0], low[1], z]


@wp.func
def count_unknown(grid: Grid, env: wp.int32, window: Window) -> wp.int32:
    """Unknown cells of the bricks in a window: of a hull's bounds and margin, at least those that near the hull.

    Whole bricks are counted, along the lattice's axes: half of a perceived map is unknown (the robot's own inside, to
    begin with), and cell by cell the count would cost more than the check.
    """
    low = window.low
    high = window.high
    if low[0] >= high[0] or low[1] >= high[1] or low[2] >= high[2]:
        return 0
    upper = unknown_before(grid, env, low, high, high[2])
    return upper - unknown_before(grid, env, low, high, low[2])


@wp.kernel(enable_backward=False)
def column_kernel(counts: wp.vec3i, bricks: wp.array2d(dtype=wp.uint64), columns_out: wp.array2d(dtype=wp.uint64)):
    """One thread per word of a column: bit z says that brick z is not empty."""
    env, column, w = wp.tid()
    word = wp.uint64(0)
    for z in range(64 * w, wp.min(counts[2], 64 * w + 64)):
        if bricks[env, column * counts[2] + z] != wp.uint64(0):
            word = word | (wp.uint64(1) << wp.uint64(z - 64 * w))
    columns_out[env, column * ((counts[2] + 63) // 64) + w] = word


@wp.kernel(enable_backward=False)
def unknown_kernel(counts: wp.vec3i, unknown: wp.array2d(dtype=wp.uint64), cells_out: wp.array4d(dtype=wp.int32)):
    """One thread per brick: how many unknown cells it has, one place further along every axis."""
    env, brick = wp.tid()
    z = brick % counts[2]
    column = brick // counts[2]
    cells_out[env, column // counts[1] + 1, column % counts[1] + 1, z + 1] = count_bits(unknown[env, brick])
