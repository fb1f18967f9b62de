"""Kinematics and the self check in one launch, for a CPU: a launch costs as much as the kinematics of a configuration,
and poses that were just made are in the cache. A GPU is better off with a thread for each configuration that is left
after each stage."""

import warp as wp

from simulo.collision.kernels.fk import pose_all
from simulo.collision.kernels.lanes import lanes_at_once
from simulo.collision.kernels.self_check import ask_pairs, near_all
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import (
    Bodies,
    Clearance,
    Findings,
    Grid,
    Near,
    Pairs,
    Payloads,
    Pieces,
    Poses,
    Primitives,
    Query,
    Tree,
)


@wp.kernel(enable_backward=False)
def self_at_once_kernel(
    first: wp.int32,
    tree: Tree,
    bodies: Bodies,
    pieces: Pieces,
    pairs: Pairs,
    clearance: Clearance,
    shapes: Shapes,
    query: Query,
    payloads: Payloads,
    primitives: Primitives,
    grid: Grid,
    poses_out: Poses,
    near_out: Near,
    found_out: Findings,
):
    """`fk_kernel`, `near_kernel` and `self_kernel`; one thread per block of configurations (see `lanes`)."""
    m = first + wp.tid() * lanes_at_once()
    count = query.count[0]
    if m >= count:
        return
    end = wp.min(m + lanes_at_once(), count)
    pose_all(tree, bodies, query, payloads, primitives, grid, m, end, poses_out)
    near_all(bodies, pairs, shapes, query, poses_out, m, end, near_out)
    for one in range(m, end):
        ask_pairs(bodies, pieces, pairs, clearance, shapes, query, poses_out, near_out, one, found_out)
