"""Certified gaps between placed shapes and bodies: bounding boxes, then the hulls, then their pieces."""

import warp as wp

from simulo.collision.kernels.convex import (
    CAPPED,
    CONVERGED,
    FAR,
    OVERLAP,
    ROUNDING,
    SLACK,
    box_face_gap,
    core_depth,
    core_distance_from,
)
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import Bodies, Pieces


@wp.struct
class Gap:
    """lower [m]: certified lower bound of a signed distance. exact: 1 when it is the distance itself, within 10 um.
    capped: searches that ran out of iterations."""

    lower: wp.float32
    exact: wp.int32
    capped: wp.int32


@wp.func
def bounded(lower: wp.float32) -> Gap:
    out = Gap()
    out.lower = lower
    return out


@wp.func
def slack_of(length: wp.float32) -> wp.float32:
    """What to take off a distance [m] that was computed from lengths up to `length` [m]."""
    return SLACK + ROUNDING * length


@wp.func
def nearly_exact(length: wp.float32) -> wp.int32:
    """1 where that slack still leaves a converged distance within 10 um of the truth."""
    return wp.where(ROUNDING * length <= 2.0e-6, 1, 0)


@wp.func
def half_of(shapes: Shapes, shape: wp.int32) -> wp.vec3f:
    size = shapes.size[shape]
    return wp.vec3f(size[0], size[1], size[2])


@wp.func
def meets(
    shapes: Shapes,
    a: wp.int32,
    b: wp.int32,
    rotation: wp.mat33f,
    position: wp.vec3f,
    above: wp.float32,
    want_depth: wp.bool,
) -> Gap:
    """Gap of shapes a and b; rotation, position [m] take b's frame to a's. A bound as soon as it passes `above`.

    Without want_depth, overlapping vertex hulls answer no more than that they do (minus the balls).
    """
    size = shapes.reach[a] + shapes.reach[b]
    cover = shapes.size[a][3] + shapes.size[b][3] + slack_of(size)
    faces = box_face_gap(half_of(shapes, a), half_of(shapes, b), rotation, position)
    if faces.gap - cover > above:
        return bounded(faces.gap - cover)
    d = core_distance_from(shapes, a, b, rotation, position, faces.start, above + cover)
    out = Gap()
    out.lower = d.lower - cover
    if d.status == CONVERGED:
        out.exact = nearly_exact(size)
    if d.status == CAPPED:
        out.capped = 1
    if d.status == OVERLAP and want_depth:
        depth = core_depth(shapes, a, b, rotation, position, faces.start)
        out.lower = -depth[0] - cover
        out.exact = wp.int32(depth[1]) * nearly_exact(size)
    return out


@wp.struct
class Part:
    """Something to check: a body, or a bare shape. shape: its hull's. first, num: its pieces, num 1 for a bare shape
    or a body whose hull is its only piece."""

    shape: wp.int32
    first: wp.int32
    num: wp.int32


@wp.func
def bare(shape: wp.int32) -> Part:
    out = Part()
    out.shape = shape
    out.num = 1
    return out


@wp.func
def part_of(bodies: Bodies, body: wp.int32) -> Part:
    head = bodies.body[body]
    out = Part()
    out.shape = head[1]
    out.first = head[2]
    out.num = head[3]
    return out


@wp.func
def parts_gap(
    pieces: Pieces,
    shapes: Shapes,
    a: Part,
    b: Part,
    rotation: wp.mat33f,
    position: wp.vec3f,
    above: wp.float32,
) -> Gap:
    """Gap of two parts; rotation, position [m] take b's hull frame to a's.

    Nothing beyond `above` needs to be told apart; below it every pair of pieces is asked, since the first that offends
    need not be the nearest. One loop with one call serves hulls and pieces alike: on a CPU a second call would keep
    the search from being built into the kernel, and calling it copies the structs of arrays.
    """
    best = Gap()
    best.lower = FAR
    first = wp.int32(0)
    if a.num > 1 or b.num > 1:
        first = -1  # the hulls, before their pieces
    for k in range(first, a.num * b.num):
        shape_a = a.shape
        shape_b = b.shape
        turn = rotation
        shift = position
        if k >= 0:
            if b.num > 1:
                j = b.first + k % b.num
                shape_b = pieces.shape[j]
                shift = turn * pieces.origin[j] + shift
                turn = turn * pieces.rotation[j]
            if a.num > 1:
                i = a.first + k // b.num
                shape_a = pieces.shape[i]
                back = wp.transpose(pieces.rotation[i])
                shift = back * (shift - pieces.origin[i])
                turn = back * turn
        gap = meets(shapes, shape_a, shape_b, turn, shift, wp.min(above, best.lower), k >= 0)
        best.capped += gap.capped
        if k < 0:
            if gap.lower > above:
                return gap
        elif gap.lower < best.lower:
            best.lower = gap.lower
            best.exact = gap.exact
    return best
