"""The nearest triangle of a mesh to each of many points."""

import warp as wp


@wp.kernel(enable_backward=False)
def nearest_face(
    mesh: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    reach: float,
    face_out: wp.array(dtype=wp.int32),
):
    """points [m], shape (P,), in the mesh's frame; face_out, shape (P,): -1 when nothing lies within reach [m]."""
    i = wp.tid()
    query = wp.mesh_query_point_no_sign(mesh, points[i], reach)
    face_out[i] = wp.where(query.result, query.face, -1)
