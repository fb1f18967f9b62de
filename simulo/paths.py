"""Where the files that travel with simulo are: robots, tasks and assets."""

from __future__ import annotations

from pathlib import Path

from simulo.errors import SimuloError

_PACKAGE = Path(__file__).resolve().parent


def data_path(kind: str) -> Path:
    """The folder `kind` ("robots", "tasks" or "assets").

    An installed wheel carries it as `simulo/data/<kind>`; a checkout has it at its top level. The packaged place is
    looked at first, because the folder above an installed package belongs to everyone.
    """
    places = (_PACKAGE / "data" / kind, _PACKAGE.parent / kind)
    for place in places:
        if place.is_dir():
            return place
    tried = " or ".join(str(place) for place in places)
    raise SimuloError(
        f"simulo's {kind!r} folder is not at {tried}; this installation is incomplete: reinstall simulo-sdk"
    )
