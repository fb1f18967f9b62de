"""Warp kernels between shapes and cells: which cells a shape fills, and maps that are told so."""

import warp as wp

from simulo.collision.kernels.convex import ABOVE, core_distance
from simulo.collision.kernels.shapes import Shapes
from simulo.perception.filter_kernels import Body, near_shape
from simulo.perception.grid_kernels import UNKNOWN, EvidenceRule, Lattice, MapState

SHAPE = wp.constant(0)
CUBE = wp.constant(1)
"""The pool of `fill_kernel`: the shape, then one cell as a box."""


@wp.func
def brick_corner(lattice: Lattice, brick: wp.int32) -> wp.vec3f:
    """A brick's lower corner [m, lattice frame]."""
    z = brick % lattice.bz
    y = (brick // lattice.bz) % lattice.by
    x = brick // (lattice.bz * lattice.by)
    return wp.vec3f(wp.float32(x), wp.float32(y), wp.float32(z)) * (4.0 * lattice.cell)


@wp.func
def cell_offset(cell: wp.int32, edge: wp.float32) -> wp.vec3f:
    """A cell's centre [m] from its brick's corner."""
    x = wp.float32(cell >> 4)
    y = wp.float32((cell >> 2) & 3)
    z = wp.float32(cell & 3)
    return wp.vec3f(x + 0.5, y + 0.5, z + 0.5) * edge


@wp.kernel(enable_backward=False)
def fill_kernel(
    lattice: Lattice, shapes: Shapes, tolerance: wp.float32, lattice_poses: wp.array(dtype=wp.transformf),
    mask_out: wp.array2d(dtype=wp.uint64),
):  # fmt: skip
    """Bits of the cells whose cube is within `tolerance` of the shape, one thread per environment and brick.

    lattice_poses: the shape's packed frame in each environment's lattice frame.
    """
    i, brick = wp.tid()
    mask_out[i, brick] = wp.uint64(0)
    pose = lattice_poses[i]
    corner = brick_corner(lattice, brick)
    middle = corner + wp.vec3f(2.0, 2.0, 2.0) * lattice.cell
    reach = shapes.reach[SHAPE] + tolerance + 3.4642 * lattice.cell
    if wp.length(middle - wp.transform_get_translation(pose)) > reach:
        return
    turned = wp.transpose(wp.quat_to_matrix(wp.transform_get_rotation(pose)))
    near = shapes.size[SHAPE][3] + tolerance
    mask = wp.uint64(0)
    for cell in range(64):
        center = corner + cell_offset(cell, lattice.cell)
        position = turned * (center - wp.transform_get_translation(pose))
        if core_distance(shapes, SHAPE, CUBE, turned, position, near).status != ABOVE:
            mask = mask | (wp.uint64(1) << wp.uint64(cell))
    mask_out[i, brick] = mask


@wp.kernel(enable_backward=False)
def spare_robot_kernel(
    lattice: Lattice, env_from_lattice: wp.transformf, body: Body, padding: wp.float32,
    shapes: wp.array2d(dtype=wp.int32), poses: wp.array2d(dtype=wp.transformf), mask_out: wp.array2d(dtype=wp.uint64),
):  # fmt: skip
    """Take the cells that the robot reaches, within the padding, out of a mask."""
    i, brick = wp.tid()
    mask = mask_out[i, brick]
    if mask == wp.uint64(0):
        return
    corner = brick_corner(lattice, brick)
    middle = wp.transform_point(env_from_lattice, corner + wp.vec3f(2.0, 2.0, 2.0) * lattice.cell)
    reach = padding + 0.8660255 * lattice.cell
    for k in range(poses.shape[1]):
        shape = shapes[i, k]
        if shape >= 0:
            away = wp.length(middle - wp.transform_get_translation(poses[i, k]))
            if away <= body.shapes.reach[shape] + reach + 2.5981 * lattice.cell:
                for cell in range(64):
                    bit = wp.uint64(1) << wp.uint64(cell)
                    if (mask & bit) != wp.uint64(0):
                        center = wp.transform_point(env_from_lattice, corner + cell_offset(cell, lattice.cell))
                        if near_shape(body.shapes, shape, body.point, poses[i, k], center, reach):
                            mask = mask & ~bit
    mask_out[i, brick] = mask


@wp.kernel(enable_backward=False)
def tell_kernel(
    rule: EvidenceRule, value: wp.int32, envs: wp.array(dtype=wp.int32), mask: wp.array2d(dtype=wp.uint64),
    state_out: MapState,
):  # fmt: skip
    """Set the evidence of the masked cells to `value`, and pack what that makes of them."""
    i, brick = wp.tid()
    told = mask[i, brick]
    if told == wp.uint64(0):
        return
    env = envs[i]
    for cell in range(64):
        if (told & (wp.uint64(1) << wp.uint64(cell))) != wp.uint64(0):
            state_out.evidence[env, brick, cell] = wp.int8(value)
    if value >= rule.occupied:
        state_out.occupied[env, brick] = state_out.occupied[env, brick] | told
    else:
        state_out.occupied[env, brick] = state_out.occupied[env, brick] & ~told
    if value != UNKNOWN:
        state_out.unknown[env, brick] = state_out.unknown[env, brick] & ~told
    state_out.settled[env, brick] = wp.uint8(0)
