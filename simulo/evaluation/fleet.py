"""The fleet's tables: what sweeps found of each robot, kept as files with the digest of what was swept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simulo.description import list_robots, load_description
from simulo.errors import NotLoweredError, SimuloError
from simulo.files import write_json

REFERENCE = {
    "franka_panda": "2/3000",
    "ur5e": "3/3000",
    "ur10e": "14/3000",
    "rizon4": "1/3000",
    "so100": "0/3000",
    "openarm": "1/3000",
    "h1": "241/3000",
    "g1": "999/1000",
}
"""False stops / poses of the design that simulo started from: one hull or a few capsules a link, against its hulls."""

STALE = "**stale**"

_KINDS = ("hull", "mesh", "mesh-one_hull", "exempt")


class FleetError(SimuloError, ValueError):
    """A folder does not hold the kept figures of sweeps."""


def kind_of(truth: str, one_hull: bool) -> str:
    """What a sweep's files are named by, after the robot."""
    return f"{truth}-one_hull" if one_hull else truth


def keep(figures: dict[str, Any], folder: Path) -> Path:
    """Keep the JSON of a sweep as ROBOT-KIND.json; one that is there already is replaced."""
    return write_json(folder / f"{figures['robot']}-{kind_of(figures['truth'], figures['one_hull'])}.json", figures)


def fleet_tables(folder: Path) -> str:
    """The fleet as Markdown, from kept sweeps: what is checked and how it rests, against hulls, against meshes, and
    what the pairs that are left out would show.

    A row whose geometry is not the robot's any more says `stale`; that of a robot that is not lowered on this machine
    cannot be told. Raises FleetError when there is nothing to print, or a file is no sweep's.
    """
    kept = {name: {kind: _read(folder / f"{name}-{kind}.json") for kind in _KINDS} for name in list_robots()}
    robots = {name: {kind: row for kind, row in rows.items() if row} for name, rows in kept.items()}
    robots = {name: rows for name, rows in robots.items() if rows}
    if not robots:
        raise FleetError(f"{folder} has no kept sweeps; make them by `simulo sweep ROBOT --keep {folder}`")
    stale = {name: {kind for kind, row in rows.items() if _is_stale(name, row)} for name, rows in robots.items()}
    return "\n\n".join(
        [
            _table(
                _GEOMETRY,
                [_geometry_row(n, rows, stale[n]) for n, rows in robots.items() if "hull" in rows or "mesh" in rows],
            ),
            _table(_HULL, [_hull_row(n, r["hull"], stale[n]) for n, r in robots.items() if "hull" in r]),
            _table(_MESH, [_mesh_row(name, rows, stale[name]) for name, rows in robots.items() if "mesh" in rows]),
            _table(
                _EXEMPT,
                [
                    cells
                    for name, rows in robots.items()
                    if "exempt" in rows
                    for cells in _exempt_rows(_named(name, stale[name] & {"exempt"}), rows["exempt"])
                ],
            ),
        ]
    )


def _read(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        figures = json.loads(path.read_text(encoding="utf-8"))
        _ = figures["digest"], figures["poses"]
    except (ValueError, KeyError, TypeError) as error:
        raise FleetError(f"{path} does not hold a sweep's figures ({error!r}); sweep the robot again") from error
    return figures


def _is_stale(name: str, figures: dict[str, Any]) -> bool:
    try:
        return load_description(name).digest != figures["digest"]
    except NotLoweredError:
        return False


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


_GEOMETRY = (
    "robot", "links", "pieces", "pairs checked / exempt", "vertices outside", "triangles outside", "at rest",
)  # fmt: skip


def _geometry_row(name: str, rows: dict[str, Any], stale: set[str]) -> list[str]:
    facts = next(rows[kind] for kind in ("hull", "mesh") if kind in rows)
    rest, outside = facts["rest"], rows.get("mesh", {}).get("outside")
    distance = "" if rest["min_distance_mm"] is None else f", {rest['min_distance_mm']:.1f} mm"
    return [
        _named(name, stale & {"hull", "mesh"}),
        str(facts["links"]),
        str(facts["pieces"]),
        f"{facts['pairs_checked']} / {facts['pairs_exempt']}",
        *("" if outside is None else _outside(outside, what) for what in ("vertices", "triangles")),
        ("clear" if rest["clear"] else "**refused**") + distance,
    ]


def _outside(outside: dict[str, int], what: str) -> str:
    return f"{_number(outside[f'{what}_outside'])} of {_number(outside[what])}"


_HULL = (
    "robot", "poses", "refused", "contacts", "missed", "unjudged", "false stops", "in 3000 poses", "reference",
)  # fmt: skip


def _hull_row(name: str, row: dict[str, Any], stale: set[str]) -> list[str]:
    numbers = (row[key] for key in ("poses", "refused", "contacts", "missed", "unjudged", "false_stops"))
    scaled = f"{3000 * row['false_stops'] / row['poses']:.1f}"
    reference = REFERENCE.get(name, "").replace("/", " in ")
    return [_named(name, stale & {"hull"}), *map(_number, numbers), scaled, reference]


_MESH = (
    "robot", "poses", "contacts", "missed", "refused", "nothing touching", "false stops",
    "one hull a link: poses", "refused", "nothing touching", "false stops",
)  # fmt: skip


def _mesh_row(name: str, rows: dict[str, Any], stale: set[str]) -> list[str]:
    row, hull = rows["mesh"], rows.get("mesh-one_hull")
    return [
        _named(name, stale & {"mesh", "mesh-one_hull"}),
        *(_number(row[key]) for key in ("poses", "contacts", "missed")),
        *_shares(row),
        *([""] * 4 if hull is None else [_number(hull["poses"]), *_shares(hull)]),
    ]


def _shares(row: dict[str, Any]) -> list[str]:
    """Refused poses, those of them in which nothing touches, and false stops with their share of all stops."""
    stops = row["contacts"] - row["missed"] + row["false_stops"]
    return [_number(row["refused"]), _of(row["slop_only"], row["refused"]), _of(row["false_stops"], stops)]


_EXEMPT = ("robot", "left out", "rule", "configurations", "touching", "would trip")


def _exempt_rows(name: str, figures: dict[str, Any]) -> list[list[str]]:
    """A row for each pair, but one for all fingers of a robot's hands: these are made to meet."""
    poses, jaws = figures["poses"], [row for row in figures["rows"] if row["rule"] == "jaws"]
    out = [
        [
            name,
            " and ".join(row["links"]),
            row["rule"],
            _number(poses),
            _of(row["touching"], poses),
            _of(row["tripped"], poses),
        ]
        for row in figures["rows"]
        if row["rule"] != "jaws"
    ]
    if jaws:
        always, some = (sum(row["says"] == word for row in jaws) for word in ("needed", "hides"))
        trips = sum(row["tripped"] > 0 for row in jaws)
        pairs = f"{len(jaws)} pair{'s' if len(jaws) > 1 else ''} of fingers"
        out.append([name, pairs, "jaws", _number(poses), f"{always} always, {some} at times", f"{trips} of them"])
    return out


def _named(name: str, stale: set[str]) -> str:
    return f"{name} {STALE}" if stale else name


def _number(value: int) -> str:
    return f"{value:,}".replace(",", " ")


def _of(part: int, whole: int) -> str:
    """A part, and its share where there is something to have a share of."""
    return _number(part) if part == 0 or whole == 0 else f"{_number(part)} ({100 * part / whole:.1f} %)"
