"""What a check can answer, in order of precedence."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """Why a configuration was refused, or that it was not.

    When several reasons hold in one environment, the one that undermines the others comes first: NON_FINITE,
    STALE_MAP, NO_MAP, SELF, PAYLOAD, WORLD. NOT_EVALUATED is what an answer holds until a check has filled it in,
    and what a row keeps when fewer pairs were evaluated than had to be.
    """

    CLEAR = 0
    NON_FINITE = 1
    STALE_MAP = 2
    NO_MAP = 3
    SELF = 4
    PAYLOAD = 5
    WORLD = 6
    NOT_EVALUATED = 7


class MapStatus(IntEnum):
    """What the caller knows about an environment's map when it asks."""

    FRESH = 0
    STALE = 1
    NONE = 2
