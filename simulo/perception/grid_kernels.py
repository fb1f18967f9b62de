"""Warp kernels of the occupancy map: every cell's evidence moves once a frame, from bits that the rays set before.

The map is made of 4 x 4 x 4 bricks of cells. Hits are collected as bits (a bitwise or, so the order of the rays does
not matter); then one thread per brick updates its 64 cells. Whether a cell was seen through is decided from the
cell's side, by looking up the pixel its centre projects to: there are no holes between rays, and a cell costs the
same whatever the number of rays that cross it.

Frames: `lattice` has its origin at the map's corner, metres along x, y, z; `camera` is an optical frame (x right,
y down, z forward). Depth is along z [m]. Kernel parameters come in the order model, state, out.
"""

import warp as wp

UNKNOWN = wp.constant(-128)
"""Evidence of a cell that no ray has ever reached (the int8 minimum; real evidence never gets there)."""

TILE = wp.constant(8)
"""Edge [px] of the image tiles whose depth range decides a brick's view of a camera without asking its cells."""


@wp.struct
class Intrinsics:
    """Pinhole model [px]; the centre of column i lies at u = i, that of row j at v = j."""

    fx: wp.float32
    fy: wp.float32
    cx: wp.float32
    cy: wp.float32
    width: wp.int32
    height: wp.int32


@wp.struct
class Lattice:
    """Cell edge [m], bricks along each axis, and the transform from the environment frame to the lattice frame."""

    cell: wp.float32
    bx: wp.int32
    by: wp.int32
    bz: wp.int32
    from_env: wp.transform


@wp.struct
class EvidenceRule:
    """Log-odds in whole units, see `simulo.perception.occupancy.Evidence`."""

    hit: wp.int32
    miss: wp.int32
    occupied: wp.int32
    floor: wp.int32
    ceiling: wp.int32


@wp.struct
class MapState:
    """The maps of all environments and the newest images they took; see `simulo.perception.occupancy`.

    Per environment and brick: evidence (64 per brick), settled, hits, occupied, unknown. Per environment and view:
    free_depth and its TILE maxima `farthest`, camera_from_lattice.
    """

    evidence: wp.array3d(dtype=wp.int8)
    settled: wp.array2d(dtype=wp.uint8)
    hits: wp.array2d(dtype=wp.uint64)
    occupied: wp.array2d(dtype=wp.uint64)
    unknown: wp.array2d(dtype=wp.uint64)
    free_depth: wp.array4d(dtype=wp.float32)
    farthest: wp.array4d(dtype=wp.float32)
    camera_from_lattice: wp.array2d(dtype=wp.transform)


@wp.func
def brick_bit(x: wp.int32, y: wp.int32, z: wp.int32) -> wp.int32:
    """Bit of cell (x, y, z) of a brick, each 0..3: as in `simulo.collision.kernels.voxels`."""
    return (x * 4 + y) * 4 + z


@wp.func
def mark_hit(point: wp.vec3, env: wp.int32, lattice: Lattice, hits_out: wp.array2d(dtype=wp.uint64)):
    """Set the bit of the cell that holds a surface point [m, environment frame]; a point outside the map sets none."""
    p = wp.transform_point(lattice.from_env, point) / lattice.cell
    x = wp.int32(wp.floor(p[0]))
    y = wp.int32(wp.floor(p[1]))
    z = wp.int32(wp.floor(p[2]))
    if x >= 0 and y >= 0 and z >= 0 and x < 4 * lattice.bx and y < 4 * lattice.by and z < 4 * lattice.bz:
        brick = ((x >> 2) * lattice.by + (y >> 2)) * lattice.bz + (z >> 2)
        bit = wp.uint64(1) << wp.uint64(brick_bit(x & 3, y & 3, z & 3))
        wp.atomic_or(hits_out, env, brick, bit)


@wp.func
def pixel_ray(camera: Intrinsics, row: wp.int32, column: wp.int32) -> wp.vec3:
    """The point at depth 1 on a pixel's ray [m, camera frame]."""
    return wp.vec3((wp.float32(column) - camera.cx) / camera.fx, (wp.float32(row) - camera.cy) / camera.fy, 1.0)


@wp.kernel(enable_backward=False)
def mark_depth_kernel(
    lattice: Lattice, camera: Intrinsics, max_range: wp.float32, envs: wp.array(dtype=wp.int32),
    camera_poses: wp.array2d(dtype=wp.transform), depth: wp.array4d(dtype=wp.float32),
    on_robot: wp.array4d(dtype=wp.uint8), state_out: MapState,
):  # fmt: skip
    """One thread per pixel: how far its ray is free, and the cell that it hit.

    No return (infinite, or beyond the range) is free up to the range. NaN, zero and negative depths say nothing. A
    ray that ends on the robot is free up to there and hits nothing.
    """
    i, view, row, column = wp.tid()
    env = envs[i]
    d = depth[i, view, row, column]
    if not (d > 0.0):
        state_out.free_depth[env, view, row, column] = wp.float32(-wp.inf)
        return
    state_out.free_depth[env, view, row, column] = wp.min(d, max_range)
    if d > max_range or on_robot[i, view, row, column] != wp.uint8(0):
        return
    mark_hit(
        wp.transform_point(camera_poses[i, view], d * pixel_ray(camera, row, column)), env, lattice, state_out.hits
    )


@wp.kernel(enable_backward=False)
def place_cameras_kernel(
    lattice: Lattice, envs: wp.array(dtype=wp.int32), camera_poses: wp.array2d(dtype=wp.transform), state_out: MapState
):
    """Invert each camera's pose (camera frame to environment frame), seen from the lattice."""
    i, view = wp.tid()
    env_from_lattice = wp.transform_inverse(lattice.from_env)
    state_out.camera_from_lattice[envs[i], view] = wp.transform_inverse(camera_poses[i, view]) * env_from_lattice


@wp.kernel(enable_backward=False)
def tile_range_kernel(camera: Intrinsics, envs: wp.array(dtype=wp.int32), state_out: MapState):
    """The greatest free depth in each TILE x TILE part of each image."""
    i, view, row, column = wp.tid()
    env = envs[i]
    farthest = wp.float32(-wp.inf)
    for v in range(row * TILE, wp.min((row + 1) * TILE, camera.height)):
        for u in range(column * TILE, wp.min((column + 1) * TILE, camera.width)):
            farthest = wp.max(farthest, state_out.free_depth[env, view, v, u])
    state_out.farthest[env, view, row, column] = farthest


@wp.func
def in_frustum(center: wp.vec3, radius: wp.float32, camera: Intrinsics) -> wp.bool:
    """Whether a sphere [m, camera frame] may reach into what the image shows."""
    left = camera.cx + 0.5
    right = wp.float32(camera.width) - 0.5 - camera.cx
    top = camera.cy + 0.5
    bottom = wp.float32(camera.height) - 0.5 - camera.cy
    x = camera.fx * center[0]
    y = camera.fy * center[1]
    z = center[2]
    fx2 = camera.fx * camera.fx
    fy2 = camera.fy * camera.fy
    return (
        z > -radius
        and x + left * z >= -radius * wp.sqrt(fx2 + left * left)
        and right * z - x >= -radius * wp.sqrt(fx2 + right * right)
        and y + top * z >= -radius * wp.sqrt(fy2 + top * top)
        and bottom * z - y >= -radius * wp.sqrt(fy2 + bottom * bottom)
    )


@wp.func
def any_ray_reaches(
    center: wp.vec3, radius: wp.float32, camera: Intrinsics, env: wp.int32, view: wp.int32,
    farthest: wp.array4d(dtype=wp.float32),
) -> wp.bool:  # fmt: skip
    """Whether some ray near a sphere [m, camera frame] is free as far as the sphere's near side."""
    near = center[2] - radius
    if near <= 0.1 * radius:
        return True  # the camera stands in or beside the sphere: its window is the whole image
    u = camera.fx * center[0] / center[2] + camera.cx
    v = camera.fy * center[1] / center[2] + camera.cy
    # A point of the sphere projects at most this far from the centre's pixel.
    reach = radius * (1.0 + wp.length(center) / near) / near
    tile = wp.float32(TILE)
    first_u = wp.max(wp.int32((u - camera.fx * reach - 1.0) / tile), 0)
    last_u = wp.min(wp.int32((u + camera.fx * reach + 1.0) / tile), (camera.width - 1) // TILE)
    first_v = wp.max(wp.int32((v - camera.fy * reach - 1.0) / tile), 0)
    last_v = wp.min(wp.int32((v + camera.fy * reach + 1.0) / tile), (camera.height - 1) // TILE)
    for row in range(first_v, last_v + 1):
        for column in range(first_u, last_u + 1):
            if farthest[env, view, row, column] >= near:
                return True
    return False


@wp.func
def sees_through(
    center: wp.vec3, radius: wp.float32, camera: Intrinsics, env: wp.int32, view: wp.int32,
    free_depth: wp.array4d(dtype=wp.float32),
) -> wp.bool:  # fmt: skip
    """Whether the ray nearest to a cell's centre [m, camera frame] crosses the cell's sphere and ends behind it."""
    z = center[2]
    if z <= radius:
        return False
    u = camera.fx * center[0] / z + camera.cx
    v = camera.fy * center[1] / z + camera.cy
    column = wp.int32(wp.floor(u + 0.5))
    row = wp.int32(wp.floor(v + 0.5))
    if column < 0 or row < 0 or column >= camera.width or row >= camera.height:
        return False
    if free_depth[env, view, row, column] < z + radius:
        return False
    du = (u - wp.float32(column)) * z / camera.fx
    dv = (v - wp.float32(row)) * z / camera.fy
    return du * du + dv * dv <= radius * radius


@wp.func
def passed_cells(
    lattice: Lattice, camera: Intrinsics, views: wp.int32, env: wp.int32, corner: wp.vec3, state: MapState
) -> wp.uint64:
    """The cells of a brick that some camera saw through. corner [m, lattice frame]: the centre of its first cell."""
    radius = 0.8660255 * lattice.cell
    middle = corner + wp.vec3(1.5, 1.5, 1.5) * lattice.cell
    passed = wp.uint64(0)
    for view in range(views):
        pose = state.camera_from_lattice[env, view]
        seen_middle = wp.transform_point(pose, middle)
        if not in_frustum(seen_middle, 4.0 * radius, camera):
            continue
        if not any_ray_reaches(seen_middle, 4.0 * radius, camera, env, view, state.farthest):
            continue
        first = wp.transform_point(pose, corner)
        step_x = wp.transform_vector(pose, wp.vec3(lattice.cell, 0.0, 0.0))
        step_y = wp.transform_vector(pose, wp.vec3(0.0, lattice.cell, 0.0))
        step_z = wp.transform_vector(pose, wp.vec3(0.0, 0.0, lattice.cell))
        for cell in range(64):
            x = wp.float32(cell >> 4)
            y = wp.float32((cell >> 2) & 3)
            z = wp.float32(cell & 3)
            center = first + x * step_x + y * step_y + z * step_z
            if sees_through(center, radius, camera, env, view, state.free_depth):
                passed = passed | (wp.uint64(1) << wp.uint64(cell))
    return passed


@wp.func
def moved(value: wp.int32, hit: wp.bool, passed: wp.bool, rule: EvidenceRule) -> wp.int32:
    """A cell's evidence after one frame. A hit wins over any number of rays that pass."""
    if not (hit or passed):
        return value
    base = wp.where(value == UNKNOWN, 0, value)
    if hit:
        return wp.min(base + rule.hit, rule.ceiling)
    return wp.max(base - rule.miss, rule.floor)


@wp.kernel(enable_backward=False)
def update_kernel(
    lattice: Lattice, camera: Intrinsics, rule: EvidenceRule, views: wp.int32, envs: wp.array(dtype=wp.int32),
    state_out: MapState,
):  # fmt: skip
    """One thread per brick: move the evidence of its 64 cells and pack what they now are.

    A hit wins over misses of the same frame, so a thin object is not erased by the rays beside it. A brick whose
    cells all stand at the floor is `settled`: without a hit, nothing that a ray can do changes it.
    """
    i, brick = wp.tid()
    env = envs[i]
    hits = state_out.hits[env, brick]
    state_out.hits[env, brick] = wp.uint64(0)
    if hits == wp.uint64(0) and state_out.settled[env, brick] != wp.uint8(0):
        return
    bz = brick % lattice.bz
    by = (brick // lattice.bz) % lattice.by
    bx = brick // (lattice.bz * lattice.by)
    corner = wp.vec3(wp.float32(4 * bx) + 0.5, wp.float32(4 * by) + 0.5, wp.float32(4 * bz) + 0.5) * lattice.cell
    passed = passed_cells(lattice, camera, views, env, corner, state_out)
    if (hits | passed) == wp.uint64(0):
        return
    occupied = wp.uint64(0)
    unknown = wp.uint64(0)
    at_floor = wp.int32(0)
    for cell in range(64):
        bit = wp.uint64(1) << wp.uint64(cell)
        value = wp.int32(state_out.evidence[env, brick, cell])
        value = moved(value, (hits & bit) != wp.uint64(0), (passed & bit) != wp.uint64(0), rule)
        state_out.evidence[env, brick, cell] = wp.int8(value)
        if value >= rule.occupied:
            occupied = occupied | bit
        if value == UNKNOWN:
            unknown = unknown | bit
        if value == rule.floor:
            at_floor = at_floor + 1
    state_out.occupied[env, brick] = occupied
    state_out.unknown[env, brick] = unknown
    state_out.settled[env, brick] = wp.uint8(wp.where(at_floor == 64, 1, 0))


@wp.kernel(enable_backward=False)
def forget_kernel(envs: wp.array(dtype=wp.int32), state_out: MapState):
    """Every cell of some environments becomes unknown again, one thread per brick."""
    i, brick = wp.tid()
    env = envs[i]
    for cell in range(64):
        state_out.evidence[env, brick, cell] = wp.int8(UNKNOWN)
    state_out.hits[env, brick] = wp.uint64(0)
    state_out.settled[env, brick] = wp.uint8(0)
    state_out.occupied[env, brick] = wp.uint64(0)
    state_out.unknown[env, brick] = ~wp.uint64(0)
