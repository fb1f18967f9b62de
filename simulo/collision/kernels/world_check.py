"""The robot's moving bodies against the world."""

import warp as wp

from simulo.collision.kernels.bits import lowest_bit
from simulo.collision.kernels.bodies import part_of
from simulo.collision.kernels.convex import FAR
from simulo.collision.kernels.findings import enough, new_tally, store
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.surroundings import (
    body_frame,
    check_cells,
    check_primitives,
    placed_on,
)
from simulo.collision.kernels.types import Bodies, Findings, Grid, Pieces, Poses, Primitives, Query, Reach, Regions
from simulo.collision.kernels.windows import lattice_at


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
    reach: Reach,
    found_out: Findings,
):
    """One thread per configuration: bodies in reach of something in ascending order, each against primitives and then
    cells, up to the first hit and what other bodies that link has. Nothing is in reach where a stage that outranks this
    one refused already.
    """
    m = first + wp.tid()
    if m >= query.count[0]:
        return
    env = query.env[m // query.rows[0]]
    margin = query.margins[env, 1]
    tally = new_tally(query, margin)
    going = wp.bool(True)
    tally.unknown = reach.unknown[m]
    tally.outside = reach.outside[m]
    mapped = grid.present[0] != 0
    if mapped or primitives.count[0] > 0:  # what is out of reach is only known to be farther than this
        tally.lower = enough(tally, margin)
        tally.exact = wp.where(tally.lower < FAR, 0, 1)
    for w in range(reach.bodies.shape[1]):
        word = reach.bodies[m, w]
        while word != wp.uint32(0) and going:
            body = 32 * w + lowest_bit(word)
            word = word & (word - wp.uint32(1))
            link = bodies.link[body]
            if tally.hit != 0:
                going = link == tally.party_a
                if not going:
                    break
            frame = body_frame(poses, m, body)
            part = part_of(bodies, body)
            region = bodies.region[body]
            tally = check_primitives(
                pieces, shapes, query, poses, primitives, regions,
                m, env, part, frame, link, region, first_primitive_code, margin, query.distances[0], tally,
            )  # fmt: skip
            if mapped:
                lattice = lattice_at(reach, m)
                placed = placed_on(lattice, frame, part, link, margin)
                tally = check_cells(
                    pieces, shapes, query, poses, grid, regions, m, env, region, lattice, placed, query.distances[0],
                    tally,
                )  # fmt: skip
    store(m, tally, found_out)
