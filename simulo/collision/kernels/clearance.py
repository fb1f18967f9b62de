"""Looking clearance maps up: of a configuration, and all along a way."""

import warp as wp

from simulo.collision.kernels.types import CLEARANCE_UNIT, LANES, Clearance, Poses, Query, Way
from simulo.collision.kernels.way import come_from

MOST_STEPS = wp.constant(32)


@wp.func
def said_by_map(clearance: Clearance, pair: wp.int32, first: wp.float32, second: wp.float32) -> wp.float32:
    """What the pair's map says [m] where its columns have these values; 0 past its edges. There must be one."""
    head = clearance.head[pair]
    place = clearance.place[pair]
    x = (first - place[0]) * place[1]
    y = (second - place[2]) * place[3]
    # Written so that what is not a number is past the edges.
    if not (x >= 0.0 and x < wp.float32(head[1]) and y >= 0.0 and y < wp.float32(head[2])):
        return 0.0
    code = wp.float32(clearance.cells[head[0] + wp.int32(x) * head[2] + wp.int32(y)])
    return code * code * CLEARANCE_UNIT


@wp.func
def known_clearance(clearance: Clearance, poses: Poses, m: wp.int32, pair: wp.int32) -> wp.float32:
    """What is known of a pair in configuration m [m], 0 where there is no map."""
    head = clearance.head[pair]
    if head[0] < 0:
        return 0.0
    block = m // LANES
    lane = m % LANES
    first = poses.columns[block, head[3] & 0xFFFF, lane]
    second = poses.columns[block, head[3] >> 16, lane]
    return said_by_map(clearance, pair, first, second)


@wp.func
def clear_along(
    clearance: Clearance,
    query: Query,
    way: Way,
    m: wp.int32,
    env: wp.int32,
    pair: wp.int32,
    motion: wp.float32,
    margin: wp.float32,
) -> wp.bool:
    """Whether the pair's map shows it farther apart than the margin [m] all along configuration m's way, over which the
    distance changes by `motion` [m] at most: conservative advancement (Mirtich 1996), each step as long as what is
    known where it begins allows."""
    head = clearance.head[pair]
    if head[0] < 0:
        return False
    a = head[3] & 0xFFFF
    b = head[3] >> 16
    from_a = come_from(query, way, m, env, a)
    from_b = come_from(query, way, m, env, b)
    by_a = query.q[m, a] - from_a
    by_b = query.q[m, b] - from_b
    share = wp.float32(0.0)
    for _step in range(MOST_STEPS):
        left = said_by_map(clearance, pair, from_a + share * by_a, from_b + share * by_b) - margin
        if not left > 0.0:
            return False
        if left >= motion * (1.0 - share):
            return True
        share += 0.999 * left / motion
    return False
