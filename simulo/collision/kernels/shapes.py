"""The pool of convex shapes on the device, and their support functions.

Every shape has a frame of its own in which its bounding box is centred at the origin and aligned with the axes; a
rotation and a position place that frame. Supports are of the vertices alone: the ball is added to distances.
"""

import warp as wp

BRUTE = wp.constant(0)  # few vertices: all are tried
BOX = wp.constant(1)  # the bounding box itself
TABLE = wp.constant(2)  # vertices found through a support table

COUNT_BITS = wp.constant(wp.uint32(10))
COUNT_MASK = wp.constant(wp.uint32(1023))


@wp.struct
class Shapes:
    """header: (kind, first point, number of points, first cell). size: half edges [m] and ball radius [m].

    reach [m]: radius of the bounding sphere at the frame's origin, ball included. points [m]: vertices, or the
    candidates of support tables. cells: (offset from the first point << COUNT_BITS) | count.
    """

    header: wp.array(dtype=wp.vec4i)
    size: wp.array(dtype=wp.vec4f)
    reach: wp.array(dtype=wp.float32)
    points: wp.array(dtype=wp.vec3f)
    cells: wp.array(dtype=wp.uint32)


@wp.func
def face_coordinate(value: wp.float32, scale: wp.float32) -> wp.int32:
    """Cell index 0..7 of a coordinate in [-1, 1] / scale on a face of the direction cube."""
    return wp.clamp(wp.int32((value * scale + 1.0) * 4.0), 0, 7)


@wp.func
def direction_cell(d: wp.vec3f) -> wp.int32:
    """Cell of the support table that holds direction d; any cell when d is zero (every vertex is extreme then)."""
    ax = wp.abs(d[0])
    ay = wp.abs(d[1])
    az = wp.abs(d[2])
    if ax >= ay and ax >= az:
        if ax == 0.0:
            return 0
        scale = 1.0 / ax
        face = wp.where(d[0] > 0.0, 0, 1)
        return (face * 8 + face_coordinate(d[2], scale)) * 8 + face_coordinate(d[1], scale)
    if ay >= az:
        scale = 1.0 / ay
        face = wp.where(d[1] > 0.0, 2, 3)
        return (face * 8 + face_coordinate(d[0], scale)) * 8 + face_coordinate(d[2], scale)
    scale = 1.0 / az
    face = wp.where(d[2] > 0.0, 4, 5)
    return (face * 8 + face_coordinate(d[1], scale)) * 8 + face_coordinate(d[0], scale)


@wp.func
def support(shapes: Shapes, shape: wp.int32, d: wp.vec3f) -> wp.vec3f:
    """A vertex [m] of the shape that is furthest along d, in the shape's frame."""
    header = shapes.header[shape]
    if header[0] == BOX:
        size = shapes.size[shape]
        return wp.vec3f(
            wp.where(d[0] >= 0.0, size[0], -size[0]),
            wp.where(d[1] >= 0.0, size[1], -size[1]),
            wp.where(d[2] >= 0.0, size[2], -size[2]),
        )
    first = header[1]
    count = header[2]
    if header[0] == TABLE:
        cell = shapes.cells[header[3] + direction_cell(d)]
        first = first + wp.int32(cell >> COUNT_BITS)
        count = wp.int32(cell & COUNT_MASK)
    best = shapes.points[first]
    value = wp.dot(best, d)
    for i in range(first + 1, first + count):
        point = shapes.points[i]
        candidate = wp.dot(point, d)
        if candidate > value:
            value = candidate
            best = point
    return best
