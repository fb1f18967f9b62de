"""The robots that travel with simulo, and where a name or a path leads."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

from simulo.errors import DescriptionError
from simulo.paths import data_path

ROBOT_FILE = "robot.yaml"
COLLISION_FILE = "collision.json"


def list_robots() -> list[str]:
    """Names that `load_description` knows, sorted."""
    return sorted(path.parent.name for path in data_path("robots").glob(f"*/{ROBOT_FILE}"))


def cache_folder() -> Path:
    """Where geometry goes that is lowered on request: the user's cache, as the XDG base directories have it."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "simulo" / "robots"


def robot_folder(name_or_path: str | Path) -> Path:
    """The folder of a robot given by name, by folder or by its robot.yaml.

    Raises DescriptionError, listing the known robots, when there is none.
    """
    name = str(name_or_path)
    if name in list_robots():
        return data_path("robots") / name
    path = Path(name_or_path).expanduser()
    folder = path.parent if path.name == ROBOT_FILE else path
    if (folder / ROBOT_FILE).is_file():
        return folder
    known = list_robots()
    guess = get_close_matches(name, known, n=1)
    hint = f"did you mean {guess[0]!r}? " if guess else ""
    raise DescriptionError(
        f"unknown robot {name!r}: {hint}known robots are {', '.join(known) or 'none'}; "
        f"or give the folder that holds its {ROBOT_FILE}"
    )
