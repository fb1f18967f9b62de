"""Forward kinematics: joint values to link and hull poses, and the primitives' positions, in the base frame."""

import warp as wp

from simulo.collision.kernels.alone import pose_lanes
from simulo.collision.kernels.bits import are_numbers, is_number
from simulo.collision.kernels.lanes import lanes_at_once
from simulo.collision.kernels.types import (
    LANES,
    Bodies,
    Grid,
    Payloads,
    Poses,
    Primitives,
    Query,
    Tree,
    pose7,
)


@wp.func
def position_of(pose: pose7) -> wp.vec3f:
    return wp.vec3f(pose[0], pose[1], pose[2])


@wp.func
def rotation_of(pose: pose7) -> wp.mat33f:
    """Rotation matrix of the quaternion, normalised first; not finite when it is zero or not finite."""
    q = wp.vec4f(pose[3], pose[4], pose[5], pose[6])
    n = q / wp.length(q)
    w = n[0]
    x = n[1]
    y = n[2]
    z = n[3]
    return wp.mat33f(
        1.0 - 2.0 * (y * y + z * z),
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
        2.0 * (x * y + w * z),
        1.0 - 2.0 * (x * x + z * z),
        2.0 * (y * z - w * x),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        1.0 - 2.0 * (x * x + y * y),
    )


@wp.func
def finite_pose(pose: pose7) -> wp.bool:
    """Finite, with a quaternion that names a rotation."""
    n = pose[3] * pose[3] + pose[4] * pose[4] + pose[5] * pose[5] + pose[6] * pose[6]
    return are_numbers(position_of(pose)) and n > 0.25 and n < 4.0


@wp.func
def finite_world(query: Query, payloads: Payloads, primitives: Primitives, grid: Grid, env: wp.int32) -> wp.bool:
    """Whether every pose the environment's check would read is finite: payloads, and the world where it is asked."""
    finite = wp.bool(True)
    for s in range(payloads.shape.shape[1]):
        if payloads.shape[env, s] >= 0:
            finite = finite and finite_pose(payloads.pose[env, s])
    if query.num_asked[2] != 0:
        for k in range(primitives.count[0]):
            if primitives.shape[env, k] >= 0:
                finite = finite and finite_pose(primitives.pose[env, k])
        if grid.present[0] != 0:
            finite = finite and finite_pose(grid.pose[env])
    return finite


@wp.func
def read_inputs(query: Query, payloads: Payloads, primitives: Primitives, grid: Grid, m: wp.int32, poses_out: Poses):
    """Everything of configuration m's poses but the links': what of it is no number, and where the world stands."""
    env = query.env[m // query.rows[0]]
    dof = query.q.shape[1]
    block = m // LANES
    lane = m % LANES
    finite = finite_pose(query.base_pose[env])
    finite = finite and finite_world(query, payloads, primitives, grid, env)
    for j in range(dof):
        value = query.q[m, j]
        finite = finite and is_number(value)
        poses_out.columns[block, j, lane] = value
    active = wp.int32(0)
    for g in range(query.measured.shape[1]):
        value = query.measured[env, g]
        if query.measured_active[env, g] != wp.uint8(0):
            active = active | (1 << g)
            finite = finite and is_number(value)
        poses_out.columns[block, dof + g, lane] = value
    poses_out.active[m] = active
    poses_out.finite[m] = wp.where(finite, 1, 0)
    if not finite:
        return
    base = rotation_of(query.base_pose[env])
    poses_out.base[m] = base
    # Positions are subtracted before they are turned: far from the env's origin nothing is lost but what the inputs
    # had lost already.
    if query.num_asked[2] != 0:
        for k in range(primitives.count[0]):
            away = position_of(primitives.pose[env, k]) - position_of(query.base_pose[env])
            poses_out.primitive_position[m, k] = (
                away * base + rotation_of(primitives.pose[env, k]) * primitives.offset[k] * base
            )


@wp.func
def pose_all(
    tree: Tree,
    bodies: Bodies,
    query: Query,
    payloads: Payloads,
    primitives: Primitives,
    grid: Grid,
    m: wp.int32,
    end: wp.int32,
    poses_out: Poses,
):
    """Everything of the poses of configurations m .. end - 1, of which m is the first of a block if there is more than
    one."""
    for one in range(m, end):
        read_inputs(query, payloads, primitives, grid, one, poses_out)
    pose_lanes(tree, bodies, poses_out.columns, m, end, poses_out)


@wp.kernel(enable_backward=False)
def fk_kernel(
    first: wp.int32,
    tree: Tree,
    bodies: Bodies,
    query: Query,
    payloads: Payloads,
    primitives: Primitives,
    grid: Grid,
    poses_out: Poses,
):
    """One thread per block of configurations (see `lanes`), from configuration `first` on."""
    m = first + wp.tid() * lanes_at_once()
    count = query.count[0]
    if m >= count:
        return
    end = wp.min(m + lanes_at_once(), count)
    pose_all(tree, bodies, query, payloads, primitives, grid, m, end, poses_out)
