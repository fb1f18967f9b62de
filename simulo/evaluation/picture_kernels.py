"""The ray caster of the report's pictures."""

import warp as wp


@wp.kernel(enable_backward=False)
def cast(
    mesh: wp.uint64,
    origin: wp.vec3,
    directions: wp.array(dtype=wp.vec3),
    distance_out: wp.array(dtype=wp.float32),
    face_out: wp.array(dtype=wp.int32),
):
    ray = wp.tid()
    hit = wp.mesh_query_ray(mesh, origin, directions[ray], 100.0)
    if hit.result:
        distance_out[ray] = hit.t
        face_out[ray] = hit.face
