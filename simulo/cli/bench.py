"""`simulo bench ...`: what the finger models cost and catch, and what the gate costs."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from simulo.cli.output import JsonFile, figure, out, progress, quiet_warp, write_figures

app = typer.Typer(help="Measure finger models and the gate.", no_args_is_help=True)

RobotName = Annotated[str, typer.Option(help="A name of `simulo robots`, or the folder of a robot.yaml.")]


@app.command()
def overhang(
    robot: RobotName = "openarm",
    openings: Annotated[int, typer.Option(min=2, help="Gripper openings, equally spaced over the stroke.")] = 49,
    json: JsonFile = None,
) -> None:
    """How far the checked finger geometry stands off the real fingers."""
    from simulo.evaluation.overhang import bench_overhang

    quiet_warp()
    with progress() as report:
        figures = bench_overhang(robot, openings, report)
    table = Table("finger model", "max (mm)", "mean (mm)", "proven bound (mm)", title=f"{robot}, {openings} openings")
    for model, row in figures["models"].items():
        table.add_row(model, *(figure(row[key]) for key in ("max_mm", "mean_mm", "upper_bound_mm")))
    out.print(table)
    write_figures(figures, json)
