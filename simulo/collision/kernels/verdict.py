"""From the stages' findings to one verdict per environment."""

import warp as wp

from simulo.collision.kernels.convex import FAR
from simulo.collision.kernels.findings import NONE
from simulo.collision.kernels.types import Findings, Poses, Query

CLEAR = wp.constant(0)
NON_FINITE = wp.constant(1)
STALE_MAP = wp.constant(2)
NO_MAP = wp.constant(3)
SELF = wp.constant(4)
PAYLOAD = wp.constant(5)
WORLD = wp.constant(6)
NOT_EVALUATED = wp.constant(7)


@wp.struct
class Verdicts:
    """One answer per entry (N); the fields as in `checker.RawVerdict`, row -1 and parties -1 where there are none."""

    kind: wp.array(dtype=wp.int32)
    row: wp.array(dtype=wp.int32)
    party_a: wp.array(dtype=wp.int32)
    party_b: wp.array(dtype=wp.int32)
    distance: wp.array(dtype=wp.float32)
    bound: wp.array(dtype=wp.int32)
    capped: wp.array(dtype=wp.int32)
    unknown: wp.array(dtype=wp.int32)
    between: wp.array(dtype=wp.float32)
    outside: wp.array(dtype=wp.int32)


@wp.func
def stage_kind(found: Findings, m: wp.int32, kind: wp.int32) -> wp.int32:
    """The stage's kind where it refused, CLEAR where every one it had to ask is certified clear."""
    if found.hit[m] != 0:
        return kind
    if found.cleared[m] != found.asked[m]:
        return NOT_EVALUATED
    return CLEAR


@wp.func
def row_kind(
    query: Query,
    poses: Poses,
    by_self: Findings,
    by_payload: Findings,
    by_world: Findings,
    expected_pairs: wp.array(dtype=wp.int32),
    m: wp.int32,
    env: wp.int32,
) -> wp.int32:
    """Kind of one configuration; the kinds' numbers are their precedence."""
    if poses.finite[m] == 0:
        return NON_FINITE
    if query.num_asked[2] != 0:
        status = wp.int32(query.map_status[env])
        if status == 1:
            return STALE_MAP
        if status != 0:
            return NO_MAP
    in_self = stage_kind(by_self, m, SELF)
    # What the self check had to ask is known beforehand, from the grippers that are posed at measured values.
    if in_self == CLEAR and by_self.asked[m] != expected_pairs[poses.active[m]]:
        in_self = NOT_EVALUATED
    if in_self == SELF:
        return SELF
    in_payload = stage_kind(by_payload, m, PAYLOAD)
    if in_payload == PAYLOAD:
        return PAYLOAD
    in_world = stage_kind(by_world, m, WORLD)
    if in_world == WORLD:
        return WORLD
    return wp.max(in_self, wp.max(in_payload, in_world))


@wp.struct
class Nearest:
    party_a: wp.int32
    party_b: wp.int32
    lower: wp.float32
    exact: wp.int32


@wp.func
def nearer_of(best: Nearest, found: Findings, m: wp.int32) -> Nearest:
    if found.lower[m] < best.lower:
        best.party_a = found.party_a[m]
        best.party_b = found.party_b[m]
        best.lower = found.lower[m]
        best.exact = found.exact[m]
    return best


@wp.kernel(enable_backward=False)
def verdict_kernel(
    first: wp.int32,
    query: Query,
    poses: Poses,
    by_self: Findings,
    by_payload: Findings,
    by_world: Findings,
    expected_pairs: wp.array(dtype=wp.int32),
    verdicts_out: Verdicts,
):
    """One thread per entry: its rows in order, the least kind but CLEAR first, then the lowest row."""
    k = first + wp.tid()
    rows = query.rows[0]
    if k * rows >= query.count[0]:
        return
    env = query.env[k]
    worst = wp.int32(NOT_EVALUATED + 1)
    row = wp.int32(-1)
    capped = wp.int32(0)
    unknown = wp.int32(0)
    outside = wp.int32(0)
    best = Nearest()
    best.party_a = NONE
    best.party_b = NONE
    best.lower = FAR
    best.exact = 1
    for r in range(rows):
        m = k * rows + r
        kind = row_kind(query, poses, by_self, by_payload, by_world, expected_pairs, m, env)
        capped += by_self.capped[m] + by_payload.capped[m] + by_world.capped[m]
        unknown += by_payload.unknown[m] + by_world.unknown[m]
        outside = wp.max(outside, by_payload.outside[m] + by_world.outside[m])
        if kind != CLEAR and kind < worst:
            worst = kind
            row = r
            best.lower = FAR
            best.party_a = NONE
            best.party_b = NONE
            best.exact = 1
            if kind == SELF:
                best = nearer_of(best, by_self, m)
            elif kind == PAYLOAD:
                best = nearer_of(best, by_payload, m)
            elif kind == WORLD:
                best = nearer_of(best, by_world, m)
        elif worst > NOT_EVALUATED:
            best = nearer_of(best, by_self, m)
            best = nearer_of(best, by_payload, m)
            best = nearer_of(best, by_world, m)
    distance = best.lower
    if worst > NOT_EVALUATED:
        worst = CLEAR
    elif worst != SELF and worst != PAYLOAD and worst != WORLD:
        distance = -wp.inf  # nothing was measured: the one lower bound that holds whatever the truth is
        best.exact = 0
    if distance >= FAR:
        distance = wp.inf
    verdicts_out.kind[k] = worst
    verdicts_out.row[k] = row
    verdicts_out.party_a[k] = best.party_a
    verdicts_out.party_b[k] = best.party_b
    verdicts_out.distance[k] = distance
    verdicts_out.bound[k] = 1 - best.exact
    verdicts_out.capped[k] = capped
    verdicts_out.unknown[k] = unknown
    verdicts_out.outside[k] = outside
