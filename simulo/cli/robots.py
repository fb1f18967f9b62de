"""`simulo robots`: what there is."""

from __future__ import annotations

from rich import box
from rich.table import Column, Table

from simulo.cli.output import PREPARING, JsonFile, err, out, quiet_warp, write_figures


def robots(json: JsonFile = None) -> None:
    """List the robots that can be loaded by name."""
    from simulo.evaluation.configuration import all_robot_facts

    quiet_warp()
    with err.status(PREPARING):
        facts = all_robot_facts()
    table = Table(Column("robot", no_wrap=True), box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("links", "joints", "mimic", "pairs"):
        table.add_column(title, justify="right")
    table.add_column("rest pose", no_wrap=True)
    for row in facts:
        counts = ("-" if row[k] is None else str(row[k]) for k in ("links", "joints", "mimic_joints", "pairs_checked"))
        rest = {True: "clear", False: "[red]not clear[/]", None: "not lowered"}[row["rest_clear"]]
        table.add_row(row["name"], *counts, rest)
    out.print(table)
    for row in facts:
        out.print(f"{row['name']}: {row['source']} ({row['licence']})", highlight=False, soft_wrap=True)
    write_figures(facts, json)
