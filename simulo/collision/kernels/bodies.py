"""Certified gaps between placed shapes and bodies: bounding boxes, then the hulls, then their pieces."""

import warp as wp

from simulo.collision.kernels.convex import (
    CAPPED,
    CONVERGED,
    FAR,
    OVERLAP,
    SLACK,
    box_face_gap,
    core_depth,
    core_distance,
)
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import Robot


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
    cover = shapes.size[a][3] + shapes.size[b][3] + SLACK
    faces = box_face_gap(half_of(shapes, a), half_of(shapes, b), rotation, position) - cover
    if faces > above:
        return bounded(faces)
    d = core_distance(shapes, a, b, rotation, position, above + cover)
    out = Gap()
    out.lower = d.lower - cover
    if d.status == CONVERGED:
        out.exact = 1
    if d.status == CAPPED:
        out.capped = 1
    if d.status == OVERLAP and want_depth:
        depth = core_depth(shapes, a, b, rotation, position)
        out.lower = -depth[0] - cover
        out.exact = wp.int32(depth[1])
    return out


@wp.func
def keep_lower(best: Gap, gap: Gap) -> Gap:
    out = Gap()
    out.lower = best.lower
    out.exact = best.exact
    out.capped = best.capped + gap.capped
    if gap.lower < best.lower:
        out.lower = gap.lower
        out.exact = gap.exact
    return out


@wp.func
def body_meets_shape(
    robot: Robot,
    shapes: Shapes,
    body: wp.int32,
    shape: wp.int32,
    rotation: wp.mat33f,
    position: wp.vec3f,
    above: wp.float32,
    margin: wp.float32,
) -> Gap:
    """Gap of a body and one shape, whose frame rotation, position [m] take to the body's hull frame.

    Nothing above `above` needs to be told apart; at or under `margin` the first offending piece is answer enough.
    """
    head = robot.body[body]
    single = head[3] == 1
    hull = meets(shapes, head[1], shape, rotation, position, above, single)
    if single or hull.lower > above:
        return hull
    best = Gap()
    best.lower = FAR
    best.capped = hull.capped
    for i in range(head[2], head[2] + head[3]):
        if best.lower > margin:
            back = wp.transpose(robot.piece_rotation[i])
            gap = meets(
                shapes,
                robot.piece_shape[i],
                shape,
                back * rotation,
                back * (position - robot.piece_origin[i]),
                wp.min(above, best.lower),
                True,
            )
            best = keep_lower(best, gap)
    return best


@wp.func
def body_meets_body(
    robot: Robot,
    shapes: Shapes,
    a: wp.int32,
    b: wp.int32,
    rotation: wp.mat33f,
    position: wp.vec3f,
    above: wp.float32,
    margin: wp.float32,
) -> Gap:
    """As body_meets_shape, for two bodies; rotation, position [m] take b's hull frame to a's."""
    head = robot.body[b]
    if head[3] == 1:
        return body_meets_shape(robot, shapes, a, head[1], rotation, position, above, margin)
    hull = meets(shapes, robot.body[a][1], head[1], rotation, position, above, False)
    if hull.lower > above:
        return hull
    best = Gap()
    best.lower = FAR
    best.capped = hull.capped
    for j in range(head[2], head[2] + head[3]):
        if best.lower > margin:
            gap = body_meets_shape(
                robot,
                shapes,
                a,
                robot.piece_shape[j],
                rotation * robot.piece_rotation[j],
                rotation * robot.piece_origin[j] + position,
                wp.min(above, best.lower),
                margin,
            )
            best = keep_lower(best, gap)
    return best
