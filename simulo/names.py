"""Finding joints and links by exact name or by regex."""

from __future__ import annotations

import re
from collections.abc import Sequence


def match_names(pattern: str, names: Sequence[str], owner: str, what: str) -> list[int]:
    """Indices of `names` that `pattern` names exactly or, failing that, matches whole as a regex.

    Raises ValueError when nothing matches, listing the names.
    """
    if not pattern:
        raise ValueError(f"an empty {what} pattern matches nothing; {owner} has {list(names)}")
    if pattern in names:
        return [names.index(pattern)]
    try:
        regex = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{what} pattern {pattern!r} is no valid regex: {error}") from error
    found = [index for index, name in enumerate(names) if regex.fullmatch(name)]
    if not found:
        raise ValueError(f"{pattern!r} matches no {what} of {owner}; it has {list(names)}")
    return found
