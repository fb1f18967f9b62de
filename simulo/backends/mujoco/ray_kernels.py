"""Distances along rays to shapes, and the kernel that makes a depth image of them.

Every function takes a ray in the shape's own frame (origin, unit direction) and returns the distance [m] of the first
surface ahead, or NO_HIT. From inside a shape that is its far side.
"""

import warp as wp

NO_HIT = wp.constant(wp.float32(3.0e38))
BOX = wp.constant(wp.int32(0))
SPHERE = wp.constant(wp.int32(1))
CYLINDER = wp.constant(wp.int32(2))
CAPSULE = wp.constant(wp.int32(3))
PLANE = wp.constant(wp.int32(4))
MESH = wp.constant(wp.int32(5))


@wp.struct
class Shapes:
    """Shapes of a scene, each array of length S. size [m]: half extents of a box; radius and half height (of the
    straight part for a capsule); half extents of a plane, 0 for endless. mesh: id, 0 for other kinds.
    radius [m]: of a bounding sphere."""

    kind: wp.array(dtype=wp.int32)
    size: wp.array(dtype=wp.vec3)
    mesh: wp.array(dtype=wp.uint64)
    radius: wp.array(dtype=wp.float32)


@wp.func
def ray_sphere(origin: wp.vec3, direction: wp.vec3, radius: float):
    b = wp.dot(origin, direction)
    discriminant = b * b - wp.dot(origin, origin) + radius * radius
    if discriminant < 0.0:
        return NO_HIT
    root = wp.sqrt(discriminant)
    if -b - root >= 0.0:
        return -b - root
    if -b + root >= 0.0:
        return -b + root
    return NO_HIT


@wp.func
def ray_box(origin: wp.vec3, direction: wp.vec3, half: wp.vec3):
    near = float(-NO_HIT)
    far = float(NO_HIT)
    for i in range(3):
        if direction[i] == 0.0:
            if wp.abs(origin[i]) > half[i]:
                return NO_HIT
        else:
            a = (-half[i] - origin[i]) / direction[i]
            b = (half[i] - origin[i]) / direction[i]
            near = wp.max(near, wp.min(a, b))
            far = wp.min(far, wp.max(a, b))
    if near > far or far < 0.0:
        return NO_HIT
    return wp.where(near >= 0.0, near, far)


@wp.func
def ray_tube(origin: wp.vec3, direction: wp.vec3, radius: float, half_height: float):
    """The curved side of a cylinder along z, without its ends."""
    a = direction[0] * direction[0] + direction[1] * direction[1]
    if a == 0.0:
        return NO_HIT
    b = origin[0] * direction[0] + origin[1] * direction[1]
    c = origin[0] * origin[0] + origin[1] * origin[1] - radius * radius
    discriminant = b * b - a * c
    if discriminant < 0.0:
        return NO_HIT
    root = wp.sqrt(discriminant)
    near = (-b - root) / a
    if near >= 0.0 and wp.abs(origin[2] + near * direction[2]) <= half_height:
        return near
    far = (-b + root) / a
    if far >= 0.0 and wp.abs(origin[2] + far * direction[2]) <= half_height:
        return far
    return NO_HIT


@wp.func
def ray_plane(origin: wp.vec3, direction: wp.vec3, half_x: float, half_y: float):
    """The plane z = 0, seen from above only."""
    if direction[2] >= 0.0 or origin[2] < 0.0:
        return NO_HIT
    distance = -origin[2] / direction[2]
    if half_x > 0.0 and wp.abs(origin[0] + distance * direction[0]) > half_x:
        return NO_HIT
    if half_y > 0.0 and wp.abs(origin[1] + distance * direction[1]) > half_y:
        return NO_HIT
    return distance


@wp.func
def ray_disc(origin: wp.vec3, direction: wp.vec3, radius: float, height: float):
    if direction[2] == 0.0:
        return NO_HIT
    distance = (height - origin[2]) / direction[2]
    x = origin[0] + distance * direction[0]
    y = origin[1] + distance * direction[1]
    if distance < 0.0 or x * x + y * y > radius * radius:
        return NO_HIT
    return distance


@wp.func
def ray_cylinder(origin: wp.vec3, direction: wp.vec3, radius: float, half_height: float):
    ends = wp.min(ray_disc(origin, direction, radius, half_height), ray_disc(origin, direction, radius, -half_height))
    return wp.min(ends, ray_tube(origin, direction, radius, half_height))


@wp.func
def ray_cap(origin: wp.vec3, direction: wp.vec3, radius: float, height: float):
    """The half of a sphere at (0, 0, height) that lies beyond it."""
    offset = origin - wp.vec3(0.0, 0.0, height)
    b = wp.dot(offset, direction)
    discriminant = b * b - wp.dot(offset, offset) + radius * radius
    if discriminant < 0.0:
        return NO_HIT
    root = wp.sqrt(discriminant)
    for side in range(2):
        distance = -b - root + 2.0 * float(side) * root
        if distance >= 0.0 and (origin[2] + distance * direction[2]) * height >= height * height:
            return distance
    return NO_HIT


@wp.func
def ray_capsule(origin: wp.vec3, direction: wp.vec3, radius: float, half_height: float):
    caps = wp.min(ray_cap(origin, direction, radius, half_height), ray_cap(origin, direction, radius, -half_height))
    return wp.min(caps, ray_tube(origin, direction, radius, half_height))


@wp.func
def ray_shape(shapes: Shapes, shape: int, origin: wp.vec3, direction: wp.vec3, limit: float):
    """Distance to one shape if it is below `limit`, else anything not below it."""
    size = shapes.size[shape]
    kind = shapes.kind[shape]
    if kind == MESH:
        hit = wp.mesh_query_ray(shapes.mesh[shape], origin, direction, limit)
        return wp.where(hit.result, hit.t, NO_HIT)
    if kind == BOX:
        return ray_box(origin, direction, size)
    if kind == SPHERE:
        return ray_sphere(origin, direction, size[0])
    if kind == CYLINDER:
        return ray_cylinder(origin, direction, size[0], size[1])
    if kind == CAPSULE:
        return ray_capsule(origin, direction, size[0], size[1])
    return ray_plane(origin, direction, size[0], size[1])


@wp.kernel(enable_backward=False)
def cast_rays(
    shapes: Shapes,
    poses: wp.array(dtype=wp.transform),
    centers: wp.array(dtype=wp.vec3),
    order: wp.array(dtype=wp.int32),
    camera: wp.transform,
    rays: wp.array(dtype=wp.vec3),
    depth_out: wp.array(dtype=wp.float32),
):
    """One thread per pixel. poses, centers: shape frames and bounding spheres in the camera's parent. order: shapes,
    nearest first. rays: optical frame, z = 1, so that a distance along the ray is its length times the depth."""
    pixel = wp.tid()
    ray = rays[pixel]
    length = wp.length(ray)
    origin = wp.transform_get_translation(camera)
    direction = wp.transform_vector(camera, ray / length)
    nearest = float(NO_HIT)
    for k in range(order.shape[0]):
        shape = order[k]
        to_center = centers[shape] - origin
        along = wp.dot(to_center, direction)
        reach = shapes.radius[shape]
        # the ray's distance to the sphere's centre, unless the sphere lies behind or beyond what was hit already
        if along + reach >= 0.0 and along - reach < nearest:
            if wp.dot(to_center, to_center) - along * along <= reach * reach:
                inverse = wp.transform_inverse(poses[shape])
                distance = ray_shape(
                    shapes,
                    shape,
                    wp.transform_point(inverse, origin),
                    wp.transform_vector(inverse, direction),
                    nearest,
                )
                nearest = wp.min(nearest, distance)
    if nearest < NO_HIT:
        depth_out[pixel] = nearest / length
    else:
        depth_out[pixel] = wp.inf
