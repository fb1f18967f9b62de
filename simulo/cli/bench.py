"""`simulo bench ...`: what the finger models cost and catch, and what the gate costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from simulo.cli.output import Device, JsonFile, figure, out, progress, quiet_warp, write_figures

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


@app.command()
def gate(
    robot: RobotName = "openarm",
    envs: Annotated[int, typer.Option(min=1, help="Environments checked at once.")] = 16,
    horizon: Annotated[int, typer.Option(min=1, help="Rows of an action chunk.")] = 1,
    device: Device = "cpu",
    steps: Annotated[int, typer.Option(min=1, help="Policy steps that are timed.")] = 400,
    worlds: Annotated[
        bool, typer.Option(help="Cells beside coal's octree, and whole checks of all sizes, too.")
    ] = True,
    as_published: Annotated[
        bool,
        typer.Option("--as-published", help="One hull a link, no fingers, only neighbours exempt, as others compare."),
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Picture of cost against batch size.")] = None,
    json: JsonFile = None,
) -> None:
    """What the gate costs: its share of a policy step without perception, per stage, beside other checkers."""
    from simulo.evaluation.gate_speed import bench_gate
    from simulo.evaluation.kernel_speed import plot_batches

    quiet_warp()
    with progress() as report:
        figures = bench_gate(
            robot, envs, horizon, device, steps, report=report, worlds=worlds, as_published=as_published
        )
    title = f"{robot}, {envs} environments, horizon {horizon}, {figures['device']}"
    table = Table("stage", "p50 (us)", "p95 (us)", title=f"{title}: microseconds per configuration")
    for stage, row in figures["stages"].items():
        table.add_row(stage, *(figure(row["us_per_configuration"][key], 2) for key in ("p50", "p95")))
    out.print(table)
    kernel = Table("fk + self, one core", "p50 (us)", "p95 (us)", "ratio", title=f"{robot}, {figures['pairs']} pairs")
    spread = [(f"batch {row['batch']}", row, "") for row in figures["batches"]]
    spread.append(("least distance of all pairs", figures["distances"], ""))
    spread += [(f"{n} ({p['version']})", p, figure(figures["ratio"][n])) for n, p in figures["peers"].items()]
    for name, row, ratio in spread:
        kernel.add_row(name, *(figure(row["us_per_configuration"][key], 2) for key in ("p50", "p95")), ratio)
    out.print(kernel)
    for world in figures["worlds"]:
        out.print(_world_table(world))
    if worlds:
        out.print(_check_table(figures["checks"]))
    if plot is not None:
        plot_batches(figures, plot)
    write_figures(figures, json)
    if figures["share_of_step"] is None:
        out.print(f"there is no task to measure {robot}'s share of a policy step on", highlight=False)
        return
    gate_us, physics_us = figures["gate_us"]["p50"], figures["physics_us"]["p50"]
    share = f"the gate takes {figure(100 * figures['share_of_step'])} % of physics"
    medians = f"{figure(gate_us, 0)} us in a policy step, physics {figure(physics_us, 0)} us (medians)"
    out.print(f"{share}: {medians}", highlight=False, soft_wrap=True)


def _world_table(world: dict[str, Any]) -> Table:
    title = f"{world['occupied']} cells of {1000 * world['cell_m']:.0f} mm in 2 m, {100 * world['hit']:.0f} % touching"
    table = Table("fk + world, one core", "p50 (us)", "p95 (us)", "ratio", title=title)
    rows = [("simulo", world, ""), *((n, p, figure(world["ratio"][n])) for n, p in world["peers"].items())]
    for name, row, ratio in rows:
        table.add_row(name, *(figure(row["us_per_configuration"][key], 2) for key in ("p50", "p95")), ratio)
    if world["verdicts"] is not None:
        compared = world["verdicts"]
        table.caption = f"{compared['differ']} of {compared['poses']} verdicts differ from coal's"
    return table


def _check_table(checks: dict[str, Any]) -> Table:
    columns = "environments", "rows", "occupied", "refused", "CPU us / configuration", "seconds"
    table = Table(*columns, title="whole checks, robot and world, as many threads as they take")
    for row in (*checks["sizes"], *checks["densities"]):
        share = f"{100 * row['density']:.1f} %", f"{100 * row['refused']:.0f} %"
        cost = figure(row["cpu_us_per_configuration"]["p50"], 2), figure(row["seconds"], 4)
        table.add_row(str(row["envs"]), str(row["horizon"]), *share, *cost)
    return table
