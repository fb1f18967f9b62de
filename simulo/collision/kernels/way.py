"""The way between two configurations, and how far along it everything moves.

The distance of two parties changes by no more than their motion bound (see `simulo.collision.motion`) from one end of
an interval of the way to the other: a bound of the distance in its middle, less half the motion, holds all along.

Items that are looked at: checked pairs, then bodies against the world, then what the hands hold against everything;
item numbers run on in that order. "moved" is an item's motion bound over the whole way [m].
"""

import warp as wp

from simulo.collision.kernels.bits import is_number
from simulo.collision.kernels.fk import position_of
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import (
    LANES,
    Bodies,
    Clearance,
    Grid,
    Levers,
    Pairs,
    Payloads,
    Pieces,
    Poses,
    Primitives,
    Query,
    Regions,
    Way,
)

# A float32 middle of two joint values is the true one to this share of them.
MIDDLE = wp.constant(wp.float32(5.0e-7))


@wp.struct
class Ways:
    """One answer per configuration (M). kind: CLEAR when the whole way is certified. between: the share of the way at
    which it is not. party_a, party_b, lower [m]: who comes how near there, at the least. capped: as in Findings."""

    kind: wp.array(dtype=wp.int32)
    between: wp.array(dtype=wp.float32)
    party_a: wp.array(dtype=wp.int32)
    party_b: wp.array(dtype=wp.int32)
    lower: wp.array(dtype=wp.float32)
    capped: wp.array(dtype=wp.int32)


@wp.struct
class Scene:
    """Everything a way is checked against: what the stages of single configurations are given one by one."""

    bodies: Bodies
    pieces: Pieces
    pairs: Pairs
    clearance: Clearance
    shapes: Shapes
    primitives: Primitives
    grid: Grid
    payloads: Payloads
    regions: Regions
    first_payload: wp.int32
    first_primitive: wp.int32


@wp.func
def come_from(query: Query, way: Way, m: wp.int32, env: wp.int32, column: wp.int32) -> wp.float32:
    """Where a column's way begins [rad or m]."""
    if m % query.rows[0] > 0:
        return query.q[m - 1, column]
    return way.start[env, column]


@wp.func
def set_out(levers: Levers, query: Query, way: Way, m: wp.int32, env: wp.int32) -> wp.float32:
    """Note how far each column goes. Returns what float32 middles may be off by [m]; NaN where an end is no finite
    number, infinite where one lies beyond what the bounds hold for."""
    largest = wp.float32(0.0)
    beyond = wp.bool(False)
    for c in range(query.q.shape[1]):
        here = come_from(query, way, m, env, c)
        there = query.q[m, c]
        way.travel[m // LANES, c, m % LANES] = wp.abs(there - here)
        largest = wp.max(largest, wp.max(wp.abs(here), wp.abs(there)))
        if not (is_number(here) and is_number(there)):
            return wp.nan
        outside = wp.min(here, there) < levers.low[c] or wp.max(here, there) > levers.high[c]
        beyond = beyond or (outside and levers.slides[c] != wp.uint8(0))
    if beyond:
        return wp.inf
    return MIDDLE * largest * levers.total


@wp.func
def within_ranges(levers: Levers, query: Query, way: Way, m: wp.int32, env: wp.int32) -> wp.bool:
    """Whether both ends, and so all of the way, lie where `always` holds."""
    inside = wp.bool(True)
    for c in range(query.q.shape[1]):
        here = come_from(query, way, m, env, c)
        there = query.q[m, c]
        inside = inside and wp.min(here, there) >= levers.low[c] and wp.max(here, there) <= levers.high[c]
    return inside


@wp.func
def stand_at(share: wp.float32, query: Query, way: Way, m: wp.int32, env: wp.int32, poses: Poses):
    """Write the columns' values at a share of the way."""
    for c in range(query.q.shape[1]):
        here = come_from(query, way, m, env, c)
        poses.columns[m // LANES, c, m % LANES] = here + share * (query.q[m, c] - here)


@wp.func
def travel(way: Way, m: wp.int32, column: wp.int32) -> wp.float32:
    return way.travel[m // LANES, column, m % LANES]


@wp.func
def moved(way: Way, m: wp.int32, body: wp.int32) -> wp.float32:
    """Motion bound [m] of a body, or of a payload slot after the last body."""
    return way.moved[m // LANES, body, m % LANES]


@wp.func
def row_motion(levers: Levers, way: Way, m: wp.int32, row: wp.int32) -> wp.float32:
    """Motion bound [m] of a pair or body."""
    out = wp.float32(0.0)
    for i in range(levers.first[row], levers.first[row + 1]):
        out += levers.lever[i] * travel(way, m, levers.column[i])
    return out


@wp.func
def ball_motion(levers: Levers, way: Way, m: wp.int32, link: wp.int32, ball: wp.float32) -> wp.float32:
    """How far any point of a ball [m] around a link's origin moves in the base frame."""
    out = wp.float32(0.0)
    for c in range(levers.origin.shape[1]):
        out += (levers.origin[link, c] + ball * levers.ball[link, c]) * travel(way, m, c)
    return out


@wp.func
def ball_total(levers: Levers, link: wp.int32, ball: wp.float32) -> wp.float32:
    """The sum of such a ball's levers."""
    out = wp.float32(0.0)
    for c in range(levers.origin.shape[1]):
        out += levers.origin[link, c] + ball * levers.ball[link, c]
    return out


@wp.func
def ball_motion_to(
    levers: Levers, way: Way, m: wp.int32, link: wp.int32, ball: wp.float32, body: wp.int32
) -> wp.float32:
    """How much the distance of such a ball and a body changes."""
    out = wp.float32(0.0)
    for c in range(levers.origin.shape[1]):
        out += (levers.origin_to[link, body, c] + ball * levers.ball_to[link, body, c]) * travel(way, m, c)
    return out


@wp.func
def held_ball(scene: Scene, env: wp.int32, slot: wp.int32) -> wp.float32:
    """Radius [m] around its link's origin that holds a payload."""
    away = wp.length(position_of(scene.payloads.pose[env, slot]))
    return (away + scene.shapes.reach[scene.payloads.shape[env, slot]]) * 1.00001
