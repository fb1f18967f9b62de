"""Shapes and bodies against occupancy bricks.

A brick is 4 x 4 x 4 cells in one uint64, bit (x * 4 + y) * 4 + z; bricks lie in x, y, z order. A cell's code is
64 * brick + bit, and bricks and bits are visited in ascending order, so the first cell found is the lowest. Cells are
full cubes; everything here is in the lattice's frame or the checked hull's.
"""

import warp as wp

from simulo.collision.kernels.bodies import body_meets_shape, half_of, meets
from simulo.collision.kernels.convex import SLACK
from simulo.collision.kernels.findings import Tally, counted
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import Grid, Robot

NO_BODY = wp.constant(-1)


@wp.struct
class Placed:
    """Something to check against cells. body: its index, or NO_BODY for a bare shape. shape: its hull's shape.
    rotation, position [m]: the hull's frame in the lattice's. party: its code. margin [m]: of the world check."""

    body: wp.int32
    shape: wp.int32
    rotation: wp.mat33f
    position: wp.vec3f
    party: wp.int32
    margin: wp.float32


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
    robot: Robot, shapes: Shapes, grid: Grid, placed: Placed, centre: wp.vec3f, code: wp.int32, tally: Tally, distances: wp.int32
) -> Tally:
    """The tally with one occupied cell more; centre [m] in the hull's frame."""
    turned = wp.transpose(placed.rotation)
    above = wp.max(tally.above, placed.margin)
    if placed.body >= 0:
        gap = body_meets_shape(robot, shapes, placed.body, grid.cell_shape, turned, centre, above, placed.margin)
        return counted(tally, gap, placed.party, -code - 2, placed.margin, distances)
    gap = meets(shapes, placed.shape, grid.cell_shape, turned, centre, above, True)
    return counted(tally, gap, placed.party, -code - 2, placed.margin, distances)


@wp.func
def check_brick(
    robot: Robot,
    shapes: Shapes,
    grid: Grid,
    placed: Placed,
    exempt: Exempt,
    word: wp.uint64,
    corner: wp.vec3f,
    code: wp.int32,
    tally: Tally,
    distances: wp.int32,
) -> Tally:
    """The tally with one brick's occupied cells; corner [m] in the lattice's frame, code of its first cell."""
    cell = grid.cell[0][0]
    half = half_of(shapes, placed.shape)
    cover = shapes.size[placed.shape][3] + SLACK
    above = wp.max(tally.above, placed.margin)
    turned = wp.transpose(placed.rotation)
    cube = extent(turned, wp.vec3f(grid.cell[0][1], grid.cell[0][1], grid.cell[0][1]))
    # The brick as a whole first: its cube is four cells wide.
    middle = turned * (corner + wp.vec3f(2.0 * cell, 2.0 * cell, 2.0 * cell) - placed.position)
    if box_clearance(middle, half + cube * 4.0) - cover > above:
        return tally
    for bit in range(64):
        if tally.hit == 0 and ((word >> wp.uint64(bit)) & wp.uint64(1)) != wp.uint64(0):
            point = corner + cell_offset(bit, cell)
            centre = turned * (point - placed.position)
            near = box_clearance(centre, half + cube) - cover <= above
            if near and not contains(exempt, point):
                tally = check_cell(robot, shapes, grid, placed, centre, code + bit, tally, distances)
    return tally


@wp.func
def count_unknown(shapes: Shapes, grid: Grid, placed: Placed, word: wp.uint64, corner: wp.vec3f) -> wp.int32:
    """Unknown cells of a brick within the margin of the hull's bounding box (so at least those near the hull)."""
    turned = wp.transpose(placed.rotation)
    cube = extent(turned, wp.vec3f(grid.cell[0][1], grid.cell[0][1], grid.cell[0][1]))
    reach = half_of(shapes, placed.shape) + cube
    near = placed.margin + shapes.size[placed.shape][3] + SLACK
    count = int(0)
    for bit in range(64):
        if ((word >> wp.uint64(bit)) & wp.uint64(1)) != wp.uint64(0):
            centre = turned * (corner + cell_offset(bit, grid.cell[0][0]) - placed.position)
            if box_clearance(centre, reach) <= near:
                count += 1
    return count


@wp.func
def check_grid(
    robot: Robot,
    shapes: Shapes,
    grid: Grid,
    env: wp.int32,
    placed: Placed,
    exempt: Exempt,
    tally: Tally,
    distances: wp.int32,
) -> Tally:
    """The tally with every occupied cell that can be near the placed body; unknown cells are counted, not checked."""
    cell = grid.cell[0][0]
    brick = 4.0 * cell
    counts = grid.counts[0]
    # Cells outside this window are farther than `above` (and than the margin) along an axis of the lattice.
    pad = wp.max(tally.above, placed.margin) + shapes.size[placed.shape][3] + SLACK
    reach = extent(placed.rotation, half_of(shapes, placed.shape)) + wp.vec3f(pad, pad, pad)
    low = placed.position - reach
    high = placed.position + reach
    x0 = wp.max(brick_index(low[0], brick, counts[0]), 0)
    y0 = wp.max(brick_index(low[1], brick, counts[1]), 0)
    z0 = wp.max(brick_index(low[2], brick, counts[2]), 0)
    x1 = wp.min(brick_index(high[0], brick, counts[0]) + 1, counts[0])
    y1 = wp.min(brick_index(high[1], brick, counts[1]) + 1, counts[1])
    z1 = wp.min(brick_index(high[2], brick, counts[2]) + 1, counts[2])
    for x in range(x0, x1):
        for y in range(y0, y1):
            column = x * counts[1] + y
            for z in range(z0, z1):
                if tally.hit == 0:
                    index = column * counts[2] + z
                    corner = wp.vec3f(wp.float32(x), wp.float32(y), wp.float32(z)) * brick
                    word = grid.bricks[env, index]
                    if word != wp.uint64(0):
                        tally = check_brick(
                            robot, shapes, grid, placed, exempt, word, corner, index * 64, tally, distances
                        )
                    if grid.has_unknown[0] != 0:
                        tally.unknown += count_unknown(shapes, grid, placed, grid.unknown[env, index], corner)
    if tally.above < tally.lower:  # what was passed over is only known to be farther than `above`
        tally.lower = tally.above
        tally.exact = 0
    return tally
