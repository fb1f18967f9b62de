"""The robot's moving bodies against the world."""

import warp as wp

from simulo.collision.kernels.bodies import part_of
from simulo.collision.kernels.findings import new_tally, store
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.surroundings import body_frame, check_cells, check_primitives
from simulo.collision.kernels.types import Bodies, Findings, Grid, Pieces, Poses, Primitives, Query, Regions


@wp.kernel(enable_backward=False)
def world_kernel(
    first: wp.int32,
    bodies: Bodies,
    pieces: Pieces,
    shapes: Shapes,
    query: Query,
    poses: Poses,
    primitives: Primitives,
    grid: Grid,
    regions: Regions,
    first_primitive_code: wp.int32,
    by_self: Findings,
    by_payload: Findings,
    found_out: Findings,
):
    """One thread per configuration: asked bodies in ascending order, each against primitives and then cells.

    Nothing is asked where a stage that outranks this one refused already.
    """
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    env = query.env[m // query.rows[0]]
    tally = new_tally(query, query.margins[env, 1])
    if poses.finite[m] != 0 and by_self.hit[m] == 0 and by_payload.hit[m] == 0:
        active = poses.active[m]
        for i in range(query.num_asked[1]):
            body = query.bodies[i]
            if tally.hit == 0 and (bodies.gate[body] & ~active) == 0:
                frame = body_frame(poses, m, body)
                part = part_of(bodies, body)
                link = bodies.link[body]
                region = bodies.region[body]
                tally = check_primitives(
                    pieces, shapes, query, poses, primitives, regions,
                    m, env, part, frame, link, region, first_primitive_code, tally,
                )  # fmt: skip
                if grid.present[0] != 0 and tally.hit == 0:
                    tally = check_cells(
                        pieces, shapes, query, poses, grid, regions, m, env, part, frame, link, region, tally
                    )
    store(m, tally, found_out)
