"""Certified distances between two convex shapes.

The search is GJK (Gilbert, Johnson, Keerthi 1988) on the difference D = A - B of the vertex sets, in A's frame, with
the closest point of a simplex found by its Voronoi regions (Ericson 2004, chapter 5). What is promised does not
depend on the search going well: for any direction v, min over D of v.x / |v| is a lower bound of the distance, and
that minimum is one support call. The point v itself lies in D, so |v| is an upper bound. The search only narrows the
two; rounding of the supports (0.25 um at most, see tests/collision/test_convex.py) is covered by SLACK, which callers
take off every lower bound.

Signs: distances are positive apart, negative inside. Degenerate simplices (repeated, collinear or coplanar points)
are branches: a face without area is represented by its edges, a tetrahedron without volume by its faces.
"""

import warp as wp

from simulo.collision.kernels.shapes import BOX, Shapes, furthest, look_up, support

SLACK = wp.constant(wp.float32(2.5e-6))  # m: 10 times the measured float32 error of kinematics and supports together
# What float32 makes of a length: rotations are good to about 3e-7 and shapes turn on levers as long as they are.
ROUNDING = wp.constant(wp.float32(6.0e-7))
TOLERANCE = wp.constant(wp.float32(2.5e-6))  # m: upper minus lower bound at which a distance counts as found
TOUCHING = wp.constant(wp.float32(1.0e-6))  # m: closer than this the direction of v is rounding noise
MAX_ITERATIONS = wp.constant(32)
TILT = wp.constant(wp.float32(0.2))
FAR = wp.constant(wp.float32(1.0e30))

CONVERGED = wp.constant(0)  # upper - lower <= TOLERANCE
ABOVE = wp.constant(1)  # the lower bound passed stop_above
OVERLAP = wp.constant(2)  # the vertex hulls meet: lower is 0
STALLED = wp.constant(3)  # float32 cannot narrow it further: lower is a bound
CAPPED = wp.constant(4)  # MAX_ITERATIONS: lower is a bound


@wp.struct
class Simplex:
    """The points of a simplex that carry its closest point v to the origin [m]. size 4: it holds the origin."""

    a: wp.vec3f
    b: wp.vec3f
    c: wp.vec3f
    d: wp.vec3f
    size: wp.int32
    v: wp.vec3f


@wp.struct
class Distance:
    """lower, upper [m]: bounds of the distance of the vertex hulls. status: why the search ended."""

    lower: wp.float32
    upper: wp.float32
    status: wp.int32


@wp.func
def on_point(a: wp.vec3f) -> Simplex:
    s = Simplex()
    s.a = a
    s.size = 1
    s.v = a
    return s


@wp.func
def on_segment(a: wp.vec3f, b: wp.vec3f) -> Simplex:
    ab = b - a
    along = -wp.dot(a, ab)
    length = wp.dot(ab, ab)
    if along <= 0.0:
        return on_point(a)
    if along >= length:
        return on_point(b)
    s = Simplex()
    s.a = a
    s.b = b
    s.size = 2
    v = a + ab * (along / length)
    # Close to the origin v is a small difference of large numbers; what it gained along the edge would tilt it.
    s.v = v - ab * (wp.dot(v, ab) / length)
    return s


@wp.func
def nearer(s: Simplex, t: Simplex) -> Simplex:
    if wp.dot(t.v, t.v) < wp.dot(s.v, s.v):
        return t
    return s


@wp.func
def on_triangle(a: wp.vec3f, b: wp.vec3f, c: wp.vec3f) -> Simplex:
    ab = b - a
    ac = c - a
    n = wp.cross(ab, ac)
    area = wp.dot(n, n)
    # sin(angle at a)^2 of the triangle: below 1e-10 the normal is noise, and the edges say as much as the face.
    if area <= 1.0e-10 * wp.dot(ab, ab) * wp.dot(ac, ac):
        return nearer(nearer(on_segment(a, b), on_segment(a, c)), on_segment(b, c))
    ca = wp.dot(wp.cross(c, a), n)
    bc = wp.dot(wp.cross(b, c), n)
    aa = wp.dot(wp.cross(a, b), n)
    if ca > 0.0 and bc > 0.0 and aa > 0.0:
        s = Simplex()
        s.a = a
        s.b = b
        s.c = c
        s.size = 3
        s.v = n * (wp.dot(a, n) / area)
        return s
    # Outside: the closest point lies on an edge whose outer side the origin is on.
    s = on_point(a)
    if aa <= 0.0:
        s = nearer(s, on_segment(a, b))
    if ca <= 0.0:
        s = nearer(s, on_segment(a, c))
    if bc <= 0.0:
        s = nearer(s, on_segment(b, c))
    return s


@wp.func
def beyond(a: wp.vec3f, b: wp.vec3f, c: wp.vec3f, d: wp.vec3f) -> wp.bool:
    """Whether the origin and d lie on different sides of the plane abc, or the two sides cannot be told apart."""
    n = wp.cross(b - a, c - a)
    origin = -wp.dot(a, n)
    ad = d - a
    height = wp.dot(ad, n)
    if height * height <= 1.0e-10 * wp.dot(n, n) * wp.dot(ad, ad):
        return True
    return origin * height <= 0.0


@wp.func
def on_tetrahedron(a: wp.vec3f, b: wp.vec3f, c: wp.vec3f, d: wp.vec3f) -> Simplex:
    s = Simplex()
    s.size = 4
    s.a = a
    s.b = b
    s.c = c
    s.d = d
    s.v = wp.vec3f(FAR, FAR, FAR)
    outside = wp.bool(False)
    if beyond(a, b, c, d):
        outside = True
        s = nearer(s, on_triangle(a, b, c))
    if beyond(a, b, d, c):
        outside = True
        s = nearer(s, on_triangle(a, b, d))
    if beyond(a, c, d, b):
        outside = True
        s = nearer(s, on_triangle(a, c, d))
    if beyond(b, c, d, a):
        outside = True
        s = nearer(s, on_triangle(b, c, d))
    if not outside:
        s.v = wp.vec3f(0.0, 0.0, 0.0)
    return s


@wp.func
def extend(s: Simplex, w: wp.vec3f) -> Simplex:
    if s.size == 0:
        return on_point(w)
    if s.size == 1:
        return on_segment(w, s.a)
    if s.size == 2:
        return on_triangle(w, s.a, s.b)
    return on_tetrahedron(w, s.a, s.b, s.c)


@wp.func
def holds(s: Simplex, w: wp.vec3f) -> wp.bool:
    return (s.size >= 1 and s.a == w) or (s.size >= 2 and s.b == w) or (s.size >= 3 and s.c == w)


@wp.func
def extreme(shapes: Shapes, a: wp.int32, b: wp.int32, rotation: wp.mat33f, position: wp.vec3f, v: wp.vec3f) -> wp.vec3f:
    """The point [m] of A - B that is least along v."""
    along = v * rotation
    # Both are looked up before either is followed: a core waits for memory once.
    cell_a = look_up(shapes, a, -v)
    cell_b = look_up(shapes, b, along)
    return furthest(shapes, a, -v, cell_a) - (rotation * furthest(shapes, b, along, cell_b) + position)


@wp.func
def bound_by_faces(
    shapes: Shapes, a: wp.int32, b: wp.int32, rotation: wp.mat33f, position: wp.vec3f, s: Simplex, w: wp.vec3f
) -> wp.float32:
    """Lower bound of the distance [m] from the normals of the faces that w makes with an edge or triangle simplex.

    Where a search ends on an edge or a point near the origin, v is mostly rounding; the normal of a face beside it is
    not, since it comes from the face's long edges.
    """
    lower = wp.float32(-FAR)
    faces = wp.where(s.size == 3, 4, wp.where(s.size == 2, 1, 0))
    for k in range(faces):
        p = wp.where(k == 3, s.c, w)
        q = wp.where(k == 2, s.b, s.a)
        r = wp.where(k == 0 or k == 3, s.b, s.c)
        n = wp.cross(q - p, r - p)
        area = wp.length(n)
        if area > 0.0:
            n = n * (wp.where(wp.dot(n, s.v) < 0.0, -1.0, 1.0) / area)
            lower = wp.max(lower, wp.dot(n, extreme(shapes, a, b, rotation, position, n)))
    return lower


@wp.func
def core_distance_from(
    shapes: Shapes,
    a: wp.int32,
    b: wp.int32,
    rotation: wp.mat33f,
    position: wp.vec3f,
    start: wp.vec3f,
    stop_above: wp.float32,
) -> Distance:
    """Distance of the vertex hulls of shapes a and b; rotation, position [m] take b's frame to a's.

    start: a guess, not zero, of the direction from b to a; a good one saves iterations and no more. The search ends
    early when the lower bound passes stop_above.
    """
    out = Distance()
    out.lower = -FAR
    out.upper = FAR
    out.status = CAPPED
    s = Simplex()
    s.size = 0
    s.v = start
    narrowed = wp.bool(True)
    for _i in range(MAX_ITERATIONS):
        v = s.v
        w = extreme(shapes, a, b, rotation, position, v)
        lower = wp.dot(v, w) / wp.length(v)
        if lower > out.lower:
            out.lower = lower
            narrowed = True
        if out.lower > stop_above:
            out.status = ABOVE
            return out
        if out.upper - out.lower <= TOLERANCE:
            out.status = CONVERGED
            return out
        # Near the end the upper bound gains less than float32 can show while the lower one still rises: only when
        # neither moves, or the same vertices come back, is there nothing left to find.
        if holds(s, w) or not narrowed:
            out.lower = wp.max(out.lower, bound_by_faces(shapes, a, b, rotation, position, s, w))
            out.status = wp.where(out.upper - out.lower <= TOLERANCE, CONVERGED, STALLED)
            return out
        s = extend(s, w)
        if s.size == 4 or wp.dot(s.v, s.v) <= TOUCHING * TOUCHING:
            out.lower = 0.0
            out.upper = 0.0
            out.status = OVERLAP
            return out
        upper = wp.length(s.v)
        narrowed = upper < out.upper
        out.upper = wp.min(upper, out.upper)
    return out


@wp.func
def core_distance(
    shapes: Shapes,
    a: wp.int32,
    b: wp.int32,
    rotation: wp.mat33f,
    position: wp.vec3f,
    stop_above: wp.float32,
) -> Distance:
    """`core_distance_from` the line of centres."""
    start = -position
    if wp.dot(position, position) == 0.0:
        start = wp.vec3f(1.0, 0.0, 0.0)
    return core_distance_from(shapes, a, b, rotation, position, start, stop_above)


@wp.func
def overlap_along(
    shapes: Shapes, a: wp.int32, b: wp.int32, rotation: wp.mat33f, position: wp.vec3f, d: wp.vec3f
) -> wp.float32:
    """How far b must move along the unit direction d to leave a: an upper bound of the penetration depth [m]."""
    end = wp.dot(support(shapes, a, d), d)
    start = wp.dot(rotation * support(shapes, b, -(d * rotation)) + position, d)
    return end - start


@wp.func
def depth_axis(k: wp.int32, rotation: wp.mat33f, position: wp.vec3f) -> wp.vec3f:
    """Direction k to look for the least overlap of two boxes in, not normalised: 0..2 the faces of a's box, 3..5 of
    b's, 6..14 the pairs of their edges."""
    i = wp.where(k < 3, k, (k - 6) // 3)
    j = wp.where(k < 6, k - 3, (k - 6) % 3)
    edge = wp.vec3f(wp.where(i == 0, 1.0, 0.0), wp.where(i == 1, 1.0, 0.0), wp.where(i == 2, 1.0, 0.0))
    if k < 3:
        return edge
    other = rotation * wp.vec3f(wp.where(j == 0, 1.0, 0.0), wp.where(j == 1, 1.0, 0.0), wp.where(j == 2, 1.0, 0.0))
    if k < 6:
        return other
    return wp.cross(edge, other)


@wp.func
def core_depth(
    shapes: Shapes, a: wp.int32, b: wp.int32, rotation: wp.mat33f, position: wp.vec3f, guess: wp.vec3f
) -> wp.vec2f:
    """Upper bound [m] of the penetration depth of two overlapping vertex hulls, and 1.0 where it is the depth itself.

    For two boxes it is: the least overlap along the faces of both and the nine edge pairs (separating axes of boxes:
    Gottschalk 1996). For others it is the lesser one along `guess`, not zero, which points from b to a, and the line of
    centres: more directions say little more and are most of what a contact costs. One loop with one call: unrolled, it
    would be most of the kernel.
    """
    boxes = shapes.header[a][0] == BOX and shapes.header[b][0] == BOX
    depth = wp.float32(FAR)
    for k in range(wp.where(boxes, 30, 2)):
        axis = wp.where(k == 0, -guess, position)
        if boxes:
            axis = depth_axis(k // 2, rotation, position) * wp.where(k % 2 == 0, 1.0, -1.0)
        length = wp.length(axis)
        if length > 1.0e-3:  # nearer to parallel, two edges' normal is a face normal, tested before
            depth = wp.min(depth, overlap_along(shapes, a, b, rotation, position, axis / length))
    return wp.vec2f(depth, wp.where(boxes, 1.0, 0.0))


@wp.struct
class FaceGap:
    """gap [m]: the largest gap of two boxes over their six face normals, a lower bound of their distance when
    positive. start: that normal, from b to a and tilted a little, in a's frame: where to start `core_distance_from`."""

    gap: wp.float32
    start: wp.vec3f


@wp.func
def box_face_gap(half_a: wp.vec3f, half_b: wp.vec3f, rotation: wp.mat33f, position: wp.vec3f) -> FaceGap:
    """Faces of two boxes of half edges [m]; rotation, position [m] take b's frame to a's."""
    out = FaceGap()
    out.gap = -FAR
    for i in range(3):
        reach = half_a[i]
        for j in range(3):
            reach += wp.abs(rotation[i, j]) * half_b[j]
        gap = wp.abs(position[i]) - reach
        if gap > out.gap:
            out.gap = gap
            out.start = wp.vec3f(wp.where(i == 0, 1.0, 0.0), wp.where(i == 1, 1.0, 0.0), wp.where(i == 2, 1.0, 0.0))
    for j in range(3):
        reach = half_b[j]
        axis = wp.vec3f(rotation[0, j], rotation[1, j], rotation[2, j])
        for i in range(3):
            reach += wp.abs(axis[i]) * half_a[i]
        gap = wp.abs(wp.dot(axis, position)) - reach
        if gap > out.gap:
            out.gap = gap
            out.start = axis
    if wp.dot(out.start, position) > 0.0:
        out.start = -out.start
    # Tilted towards the centres: the exact normal of a box face is where a round part's whole rim is extreme, the one
    # direction whose support is dear, and a slight tilt also finds the separating plane sooner (measured).
    length = wp.length(position)
    if length > TOUCHING:
        out.start = out.start - position * (TILT / length)
    return out
