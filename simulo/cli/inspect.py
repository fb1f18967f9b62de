"""`simulo inspect ROBOT`: what a robot is made of."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from simulo.cli.output import JsonFile, figure, out, write_figures


def inspect(
    robot: Annotated[str, typer.Argument(help="A name that `simulo robots` lists, or the folder of a robot.yaml.")],
    json: JsonFile = None,
) -> None:
    """Show a robot's links, joints with limits and units, followers, grippers and source."""
    from simulo.description import load_description
    from simulo.evaluation.inspection import inspect_robot

    facts = inspect_robot(load_description(robot))
    counts = f"{len(facts['links'])} links, {len(facts['joints'])} joints, {len(facts['mimic_joints'])} that follow"
    root = f"root {facts['root_link']}, {'which floats' if facts['floating_base'] else 'fixed'}"
    out.print(f"[bold]{facts['name']}[/]: {counts}; {root}", highlight=False)
    for line in _sources(facts["source"], "from"):
        out.print(line, highlight=False, soft_wrap=True)
    for table in (_joints(facts), _mimics(facts), _grippers(facts), _links(facts)):
        if table.row_count:
            out.print()
            out.print(table)
    write_figures(facts, json)


def _sources(source: dict[str, Any], word: str) -> list[str]:
    package = f"{source['package']} {source['version']}, " if source["package"] else ""  # else a file of one's own
    line = f"{word} {package}{source['path']} (licence: {source['licence']})"
    parts = [_sources(part["source"], f"on its site {part['site']},") for part in source.get("attached", ())]
    return [line, *(below for part in parts for below in part)]


def _joints(facts: dict[str, Any]) -> Table:
    """What each moves is in the table of links."""
    table = _facts("Joints", "joint", "type", "role", "unit", "lower", "upper", "speed", "rest")
    for joint in facts["joints"]:
        numbers = (_value(joint[key]) for key in ("lower", "upper", "velocity_limit", "rest"))
        table.add_row(joint["name"], joint["type"], joint["role"], joint["unit"], *numbers)
    return table


def _mimics(facts: dict[str, Any]) -> Table:
    table = _facts("Joints that follow", "joint", "position", "lower", "upper", "moves")
    for joint in facts["mimic_joints"]:
        relation = f"{joint['multiplier']:g} x {joint['mimics']}"
        relation += f" {'-' if joint['offset'] < 0 else '+'} {abs(joint['offset']):g}" if joint["offset"] else ""
        lower, upper = (_value(joint[key], joint["unit"]) for key in ("lower", "upper"))
        table.add_row(joint["name"], relation, lower, upper, joint["child"])
    return table


def _grippers(facts: dict[str, Any]) -> Table:
    table = _facts("Grippers", "hand", "joint", "open", "closed", "opening (mm)", "pads", "preset")
    for hand in facts["grippers"]:
        opened, closed = (_value(hand[key], hand["unit"]) for key in ("open_position", "closed_position"))
        opening = f"{figure(hand['closed_aperture_mm'])} to {figure(hand['open_aperture_mm'])}"
        pads = "\n".join(pad["link"] for pad in hand["pad_points"])
        presets = "\n".join(hand["presets"]) or "none"
        table.add_row(hand["name"], hand["joint"], opened, closed, opening, pads, presets)
    return table


def _links(facts: dict[str, Any]) -> Table:
    table = _facts("Links", "link", "on", "by", "checked as", "vertices")
    for link in facts["links"]:
        by = link["joint"] or ("fixed" if link["parent"] else "root")
        shapes = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in link["shapes"].items())
        table.add_row(link["name"], link["parent"] or "", by, shapes or "nothing", str(link["vertices"]))
    return table


def _facts(title: str, *columns: str) -> Table:
    """Names are folded rather than cut: they are what a reader copies from here."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=0)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _value(value: float | None, unit: str = "") -> str:
    return "none" if value is None else f"{value:.4g} {unit}".rstrip()
