"""`simulo robots`: what there is."""

from __future__ import annotations

from rich.table import Table

from simulo.cli.output import PREPARING, JsonFile, err, out, quiet_warp, write_figures


def robots(json: JsonFile = None) -> None:
    """List the robots that can be loaded by name."""
    from simulo.evaluation.configuration import all_robot_facts

    quiet_warp()
    with err.status(PREPARING):
        facts = all_robot_facts()
    table = Table("robot", "links", "joints", "mimic", "pairs", "rest pose", "licence", "source")
    for row in facts:
        counts = (str(row[key]) for key in ("links", "joints", "mimic_joints", "pairs_checked"))
        rest = "clear" if row["rest_clear"] else "[red]not clear[/]"
        table.add_row(row["name"], *counts, rest, row["licence"], row["source"].split(",")[0])
    out.print(table)
    write_figures(facts, json)
