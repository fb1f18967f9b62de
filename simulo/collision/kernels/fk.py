"""Forward kinematics: joint values to link and hull poses, and the primitives' positions, in the base frame."""

import warp as wp

from simulo.collision.kernels.types import Bodies, Grid, Payloads, Poses, Primitives, Query, Tree, pose7


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
    n = wp.length(wp.vec4f(pose[3], pose[4], pose[5], pose[6]))
    return wp.isfinite(pose) and n > 0.5 and n < 2.0


@wp.func
def edge_rotation(tree: Tree, e: wp.int32, value: wp.float32) -> wp.mat33f:
    """Rotation of the edge's child in its parent at joint value [rad or m]."""
    return tree.still[e] + tree.cos[e] * wp.cos(value) + tree.sin[e] * wp.sin(value)


@wp.func
def pose_links(tree: Tree, query: Query, m: wp.int32, env: wp.int32, active: wp.int32, dof: wp.int32, out: Poses):
    """Pose every link of configuration m; measured copies only where their gripper is active."""
    for e in range(tree.ends.shape[0]):
        ends = tree.ends[e]
        parent = ends[0]
        child = ends[1]
        column = ends[2]
        if (ends[3] & ~active) == 0:
            rotation = tree.still[e]
            position = tree.origin[e]
            if column >= 0:
                relation = tree.relation[e]
                value = wp.float32(0.0)
                if column < dof:
                    value = query.q[m, column]
                else:
                    value = query.measured[env, column - dof]
                value = relation[0] * value + relation[1]
                rotation = edge_rotation(tree, e, value)
                position = position + tree.slide[e] * value
            if parent >= 0:
                above = out.link_rotation[m, parent]
                position = above * position + out.link_position[m, parent]
                rotation = above * rotation
            out.link_rotation[m, child] = rotation
            out.link_position[m, child] = position


@wp.func
def pose_hulls(bodies: Bodies, m: wp.int32, active: wp.int32, out: Poses):
    """Pose the hulls on the posed links; of those whose gripper is not active the old poses stay, and nobody asks."""
    row = out.centre.shape[1] // 3
    for b in range(bodies.body.shape[0]):
        if (bodies.gate[b] & ~active) == 0:
            link = bodies.body[b][0]
            above = out.link_rotation[m, link]
            position = above * bodies.origin[b] + out.link_position[m, link]
            out.hull_rotation[m, b] = above * bodies.rotation[b]
            out.hull_position[m, b] = position
            lane = bodies.lane[b]
            for axis in range(3):
                out.centre[m, axis * row + lane] = position[axis]


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
    """One thread per configuration, the first of them `first`."""
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    env = query.env[m // query.rows[0]]
    dof = query.q.shape[1]
    finite = finite_pose(query.base_pose[env])
    finite = finite and finite_world(query, payloads, primitives, grid, env)
    for j in range(dof):
        finite = finite and wp.isfinite(query.q[m, j])
    active = wp.int32(0)
    for g in range(query.measured.shape[1]):
        if query.measured_active[env, g] != wp.uint8(0):
            active = active | (1 << g)
            finite = finite and wp.isfinite(query.measured[env, g])
    poses_out.active[m] = active
    if not finite:
        poses_out.finite[m] = 0
        return
    poses_out.finite[m] = 1
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
    pose_links(tree, query, m, env, active, dof, poses_out)
    pose_hulls(bodies, m, active, poses_out)
