"""Warp kernels of the self-filter: which depth pixels show the robot itself.

The collision check's own distance routine answers "how far is this point from that hull": the pool of shapes holds
one shape of a single vertex for it. Kernel parameters come in the order model, state, out.
"""

import warp as wp

from simulo.collision.kernels.convex import ABOVE, core_distance
from simulo.collision.kernels.shapes import Shapes
from simulo.perception.grid_kernels import Intrinsics, pixel_ray


@wp.struct
class Body:
    """What belongs to the robot: P convex pieces fixed to its links, and S slots for what its hands hold.

    point: the pool's one-vertex shape. pieces: P. link (P), offset [m] (P): the link of each piece, and the origin of
    the piece's packed frame in it (same axes); piece i is shape i of the pool. held_shape (N, S): pool index or -1.
    held_link (N, S). held_pose (N, S): packed frame in the link.
    """

    shapes: Shapes
    point: wp.int32
    pieces: wp.int32
    link: wp.array(dtype=wp.int32)
    offset: wp.array(dtype=wp.vec3f)
    held_shape: wp.array2d(dtype=wp.int32)
    held_link: wp.array2d(dtype=wp.int32)
    held_pose: wp.array2d(dtype=wp.transformf)


@wp.kernel(enable_backward=False)
def place_body_kernel(
    body: Body, envs: wp.array(dtype=wp.int32), link_poses: wp.array2d(dtype=wp.transformf),
    shapes_out: wp.array2d(dtype=wp.int32), poses_out: wp.array2d(dtype=wp.transformf),
):  # fmt: skip
    """Shape and pose (packed frame in the environment frame) of each piece and slot; -1 for an empty slot."""
    i, k = wp.tid()
    env = envs[i]
    if k < body.pieces:
        pose = link_poses[i, body.link[k]]
        position = wp.transform_point(pose, body.offset[k])
        shapes_out[i, k] = k
        poses_out[i, k] = wp.transformf(position, wp.transform_get_rotation(pose))
        return
    slot = k - body.pieces
    shapes_out[i, k] = body.held_shape[env, slot]
    poses_out[i, k] = link_poses[i, body.held_link[env, slot]] * body.held_pose[env, slot]


@wp.func
def near_shape(
    shapes: Shapes, shape: wp.int32, probe: wp.int32, pose: wp.transformf, point: wp.vec3f, padding: wp.float32
) -> wp.bool:
    """Whether a point [m, environment frame] is at most `padding` from a placed shape; in doubt, yes."""
    away = point - wp.transform_get_translation(pose)
    reach = shapes.reach[shape] + padding
    if wp.dot(away, away) > reach * reach:
        return False
    local = wp.quat_rotate_inv(wp.transform_get_rotation(pose), away)
    size = shapes.size[shape]
    pad = size[3] + padding
    if wp.abs(local[0]) > size[0] + pad or wp.abs(local[1]) > size[1] + pad or wp.abs(local[2]) > size[2] + pad:
        return False
    return core_distance(shapes, shape, probe, wp.identity(n=3, dtype=wp.float32), local, pad).status != ABOVE


@wp.kernel(enable_backward=False)
def label_kernel(
    body: Body, padding: wp.float32, camera: Intrinsics, camera_poses: wp.array2d(dtype=wp.transformf),
    shapes: wp.array2d(dtype=wp.int32), poses: wp.array2d(dtype=wp.transformf), depth: wp.array4d(dtype=wp.float32),
    on_robot_out: wp.array4d(dtype=wp.uint8),
):  # fmt: skip
    """One thread per pixel: 1 where the measured point lies on the robot, or within the padding of it."""
    i, view, row, column = wp.tid()
    on_robot_out[i, view, row, column] = wp.uint8(0)
    d = depth[i, view, row, column]
    if not (d > 0.0) or d == wp.float32(wp.inf):
        return
    point = wp.transform_point(camera_poses[i, view], d * pixel_ray(camera, row, column))
    for k in range(poses.shape[1]):
        shape = shapes[i, k]
        if shape >= 0:
            if near_shape(body.shapes, shape, body.point, poses[i, k], point, padding):
                on_robot_out[i, view, row, column] = wp.uint8(1)
                return
