"""How a stage records what it found: the first offender in the asked order, or else the nearest."""

import warp as wp

from simulo.collision.kernels.bodies import Gap
from simulo.collision.kernels.convex import FAR
from simulo.collision.kernels.types import Findings, Query

NONE = wp.constant(-1)
PAST_MARGIN = wp.constant(wp.float32(1.0e-6))  # m: what is clear is known to be this much above the margin


@wp.struct
class Tally:
    """A stage's answer while it is being made; fields as in Findings. above [m]: what need not be told apart."""

    hit: wp.int32
    party_a: wp.int32
    party_b: wp.int32
    lower: wp.float32
    exact: wp.int32
    cleared: wp.int32
    asked: wp.int32
    capped: wp.int32
    unknown: wp.int32
    outside: wp.int32
    above: wp.float32


@wp.func
def new_tally(query: Query, margin: wp.float32) -> Tally:
    out = Tally()
    out.party_a = NONE
    out.party_b = NONE
    out.lower = FAR
    out.exact = 1  # nothing to measure is infinitely far, exactly
    out.above = margin
    if query.distances[0] != 0:
        out.above = FAR
    return out


@wp.func
def enough(tally: Tally, margin: wp.float32) -> wp.float32:
    """The distance [m] above which nothing need be told apart: just past the margin, or the least found so far."""
    return wp.max(tally.above, margin + PAST_MARGIN)


@wp.func
def past(query: Query, margin: wp.float32) -> wp.float32:
    """`enough` of a new tally [m]."""
    return enough(new_tally(query, margin), margin)


@wp.func
def counted(
    tally: Tally, gap: Gap, party_a: wp.int32, party_b: wp.int32, margin: wp.float32, distances: wp.int32
) -> Tally:
    """The tally with one more pair evaluated. A gap that is not certainly above the margin (NaN included) is a hit.

    After a hit, only other bodies of the two parties that were hit may be counted: the parties' distance is the least.
    """
    tally.asked += 1
    tally.capped += gap.capped
    if tally.hit != 0:
        if gap.lower < tally.lower:
            tally.lower = gap.lower
            tally.exact = gap.exact
    elif gap.lower > margin:
        tally.cleared += 1
        if gap.lower < tally.lower:
            tally.lower = gap.lower
            tally.exact = gap.exact
            if distances != 0:
                tally.party_a = party_a
                tally.party_b = party_b
                tally.above = gap.lower
    else:
        tally.hit = 1
        tally.party_a = party_a
        tally.party_b = party_b
        tally.lower = gap.lower
        tally.exact = gap.exact
    return tally


@wp.func
def store(m: wp.int32, tally: Tally, out: Findings):
    out.hit[m] = tally.hit
    out.party_a[m] = tally.party_a
    out.party_b[m] = tally.party_b
    out.lower[m] = tally.lower
    out.exact[m] = tally.exact
    out.cleared[m] = tally.cleared
    out.asked[m] = tally.asked
    out.capped[m] = tally.capped
    out.unknown[m] = tally.unknown
    out.outside[m] = tally.outside
