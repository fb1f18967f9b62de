"""What a robot is commanded and where it is, read from the simulator's memory into a check's."""

from typing import Any

import warp as wp

from simulo.collision.kernels.types import Query, pose7
from simulo.collision.kernels.verdict import NOT_EVALUATED


@wp.struct
class Live:
    """Torch side: `simulo.collision.live.LiveRobot`, with the same words. N environments, G grippers.

    target (N, dof), low, high (dof) [rad or m]. column (dof): where a row of positions has each joint.
    gripper (G + 1): the grippers' joints, the last of no gripper, since no array may be empty. holding (N, G + 1).
    spoiled (N). base_pose (N), map_status (N): as in `Query`.
    """

    target: wp.array2d(dtype=wp.float32)
    low: wp.array(dtype=wp.float32)
    high: wp.array(dtype=wp.float32)
    column: wp.array(dtype=wp.int64)
    gripper: wp.array(dtype=wp.int32)
    holding: wp.array2d(dtype=wp.uint8)
    spoiled: wp.array(dtype=wp.uint8)
    base_pose: wp.array(dtype=pose7)
    map_status: wp.array(dtype=wp.int8)


@wp.kernel(enable_backward=False)
def live_kernel(
    first: wp.int32,
    live: Live,
    positions: wp.array2d(dtype=Any),
    query_out: Query,
    kind_out: wp.array(dtype=wp.int32),
    start_out: wp.array2d(dtype=wp.float32),
):
    """One thread per environment. positions (N, ...): present joint positions, float32 or float64."""
    n = first + wp.tid()
    kind_out[n] = NOT_EVALUATED  # nothing is clear until it was looked at
    for j in range(live.column.shape[0]):
        start_out[n, j] = wp.float32(positions[n, wp.int32(live.column[j])])
        target = live.target[n, j]
        query_out.q[n, j] = wp.nan
        if wp.isfinite(target) and live.spoiled[n] == wp.uint8(0):  # others a clamp would take for the limit
            query_out.q[n, j] = wp.clamp(target, live.low[j], live.high[j])
    for g in range(live.gripper.shape[0] - 1):
        query_out.measured[n, g] = start_out[n, live.gripper[g]]
        query_out.measured_active[n, g] = live.holding[n, g]
    query_out.base_pose[n] = live.base_pose[n]
    query_out.map_status[n] = live.map_status[n]


@wp.kernel(enable_backward=False)
def closed_kernel(first: wp.int32, progress: wp.array(dtype=wp.int32), done: wp.int32, gripper: wp.int32, query: Query):
    """One thread per environment: pose this gripper at its measured value too, where its progress is done."""
    n = first + wp.tid()
    if progress[n] >= done:
        query.measured_active[n, gripper] = wp.uint8(1)
