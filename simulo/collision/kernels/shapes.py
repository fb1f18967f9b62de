"""The pool of convex shapes on the device, and their support functions.

Every shape has a frame of its own in which its bounding box is centred at the origin and aligned with the axes; a
rotation and a position place that frame. Supports are of the vertices alone: the ball is added to distances.
"""

import warp as wp

BRUTE = wp.constant(0)  # few vertices: all are tried
BOX = wp.constant(1)  # the bounding box itself
TABLE = wp.constant(2)  # vertices found through a support table

FACE_CELLS = wp.constant(16)
HALF_CELLS = wp.constant(wp.float32(8.0))
CHILDREN = wp.constant(4)  # along an edge of a split cell
COUNT_BITS = wp.constant(wp.uint32(10))
COUNT_MASK = wp.constant(wp.uint32(1023))


@wp.struct
class Shapes:
    """header: (kind, first point, number of points or, with a table, its first entry, first cell).

    size: half edges [m] and ball radius [m]. reach [m]: radius of the bounding sphere at the frame's origin, ball
    included. points [m]: vertices. A cell of a table is (first entry << COUNT_BITS) | number of entries; one without
    entries is split, its children begin at the cell in the upper bits. entries: vertices, from the first point on.
    """

    header: wp.array(dtype=wp.vec4i)
    size: wp.array(dtype=wp.vec4f)
    reach: wp.array(dtype=wp.float32)
    points: wp.array(dtype=wp.vec3f)
    cells: wp.array(dtype=wp.uint32)
    entries: wp.array(dtype=wp.uint16)


@wp.struct
class FacePoint:
    """A direction on the direction cube: face, and position along its edges in cells, 0 .. FACE_CELLS."""

    face: wp.int32
    u: wp.float32
    v: wp.float32


@wp.func
def on_cube(d: wp.vec3f) -> FacePoint:
    """Where a direction leaves the cube; any place when d is zero (every vertex is extreme then)."""
    size = wp.vec3f(wp.abs(d[0]), wp.abs(d[1]), wp.abs(d[2]))
    major = wp.max(size[0], wp.max(size[1], size[2]))
    # Selections, not branches: which axis is the longest is unpredictable.
    by_x = size[0] == major
    by_y = size[1] == major
    along = wp.where(by_x, d[0], wp.where(by_y, d[1], d[2]))
    u = wp.where(by_x, d[1], wp.where(by_y, d[2], d[0]))
    v = wp.where(by_x, d[2], wp.where(by_y, d[0], d[1]))
    scale = wp.where(major > 0.0, HALF_CELLS / major, 0.0)
    out = FacePoint()
    out.face = wp.where(by_x, 0, wp.where(by_y, 2, 4)) + wp.where(along > 0.0, 0, 1)
    out.u = u * scale + HALF_CELLS
    out.v = v * scale + HALF_CELLS
    return out


@wp.func_native("""
    assert(i >= 0 && i < cells.shape[0]);
    return cells.data[i];
""")
def cell_at(cells: wp.array(dtype=wp.uint32), i: wp.int32) -> wp.uint32:
    """cells[i], of an array without gaps, where a negative i is none."""


@wp.func_native("""
    assert(i >= 0 && i < points.shape[0]);
    return points.data[i];
""")
def point_at(points: wp.array(dtype=wp.vec3f), i: wp.int32) -> wp.vec3f:
    """points[i], as cell_at."""


@wp.func
def find_cell(cells: wp.array(dtype=wp.uint32), first: wp.int32, d: wp.vec3f) -> wp.uint32:
    """The cell, never a split one, of the table beginning at cell `first` that holds direction d."""
    p = on_cube(d)
    u = p.u
    v = p.v
    iu = wp.clamp(wp.int32(u), 0, FACE_CELLS - 1)
    iv = wp.clamp(wp.int32(v), 0, FACE_CELLS - 1)
    cell = cell_at(cells, first + (p.face * FACE_CELLS + iv) * FACE_CELLS + iu)
    while (cell & COUNT_MASK) == wp.uint32(0):
        u = (u - wp.float32(iu)) * wp.float32(CHILDREN)
        v = (v - wp.float32(iv)) * wp.float32(CHILDREN)
        iu = wp.clamp(wp.int32(u), 0, CHILDREN - 1)
        iv = wp.clamp(wp.int32(v), 0, CHILDREN - 1)
        cell = cell_at(cells, first + wp.int32(cell >> COUNT_BITS) + iv * CHILDREN + iu)
    return cell


# C++ for the innermost loops of every search: a third less time than the same in Warp, whose indices may be negative.
# No branches: which vertex wins is unpredictable, and a wrong guess costs more than the dot products.
@wp.func_native("""
    int best = first;
    float most = -1.0e30f;
    assert(begin >= 0 && end <= entries.shape[0]);
    for (int i = begin; i < end; ++i) {
        const int vertex = first + entries.data[i];
        assert(vertex >= 0 && vertex < points.shape[0]);
        const auto& point = points.data[vertex];
        const float along = point[0] * d[0] + point[1] * d[1] + point[2] * d[2];
        best = along > most ? vertex : best;
        most = along > most ? along : most;
    }
    return best;
""")
def furthest_entry(
    points: wp.array(dtype=wp.vec3f), entries: wp.array(dtype=wp.uint16), first: wp.int32, begin: wp.int32,
    end: wp.int32, d: wp.vec3f,
) -> wp.int32:  # fmt: skip
    """The first vertex that is furthest along d of those that entries begin .. end - 1 name, from vertex `first` on."""


@wp.func_native("""
    int best = begin;
    float most = -1.0e30f;
    assert(begin >= 0 && end <= points.shape[0]);
    for (int vertex = begin; vertex < end; ++vertex) {
        const auto& point = points.data[vertex];
        const float along = point[0] * d[0] + point[1] * d[1] + point[2] * d[2];
        best = along > most ? vertex : best;
        most = along > most ? along : most;
    }
    return best;
""")
def furthest_point(points: wp.array(dtype=wp.vec3f), begin: wp.int32, end: wp.int32, d: wp.vec3f) -> wp.int32:
    """As furthest_entry, of vertices begin .. end - 1."""


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return false;
#else
    return true;
#endif
""")
def looks_ahead() -> wp.bool:
    """Whether supports are looked up before they are followed: a GPU has other threads to run while one waits, and no
    registers to spare."""


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    assert(begin >= 0 && begin < entries.shape[0]);
    __builtin_prefetch(entries.data + begin);
#endif
""")
def prefetch(entries: wp.array(dtype=wp.uint16), begin: wp.int32):
    """Begin to bring entries into the cache."""


@wp.func
def look_up(shapes: Shapes, shape: wp.int32, d: wp.vec3f) -> wp.uint32:
    """The first half of a support: what the table says, if the shape has one."""
    header = shapes.header[shape]
    cell = wp.uint32(0)
    if looks_ahead() and header[0] == TABLE:
        cell = find_cell(shapes.cells, header[3], d)
        prefetch(shapes.entries, header[2] + wp.int32(cell >> COUNT_BITS))
    return cell


@wp.func
def furthest(shapes: Shapes, shape: wp.int32, d: wp.vec3f, cell: wp.uint32) -> wp.vec3f:
    """The second half."""
    header = shapes.header[shape]
    if header[0] == BOX:
        size = shapes.size[shape]
        return wp.vec3f(
            wp.where(d[0] >= 0.0, size[0], -size[0]),
            wp.where(d[1] >= 0.0, size[1], -size[1]),
            wp.where(d[2] >= 0.0, size[2], -size[2]),
        )
    first = header[1]
    if header[0] == TABLE:
        if not looks_ahead():
            cell = find_cell(shapes.cells, header[3], d)
        begin = header[2] + wp.int32(cell >> COUNT_BITS)
        end = begin + wp.int32(cell & COUNT_MASK)
        return point_at(shapes.points, furthest_entry(shapes.points, shapes.entries, first, begin, end, d))
    return point_at(shapes.points, furthest_point(shapes.points, first, first + header[2], d))


@wp.func
def support(shapes: Shapes, shape: wp.int32, d: wp.vec3f) -> wp.vec3f:
    """A vertex [m] of the shape that is furthest along d, in the shape's frame."""
    return furthest(shapes, shape, d, look_up(shapes, shape, d))
