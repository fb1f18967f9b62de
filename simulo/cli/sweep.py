"""`simulo sweep`: seeded poses against what really touches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from simulo.cli.output import JsonFile, figure, out, progress, quiet_warp, write_figures

KEPT = Path("benchmarks/results/fleet")
"""In the checkout, from its root."""


def sweep(
    robots: Annotated[list[str], typer.Argument(metavar="ROBOT...", help="Names of `simulo robots`, folders, or all.")],
    poses: Annotated[int, typer.Option(min=1, help="Uniform poses within the joint limits.")] = 3000,
    seed: Annotated[int, typer.Option(min=0)] = 20260924,
    truth: Annotated[
        Literal["hull", "mesh"],
        typer.Option(help="MuJoCo on the pieces that are checked, or the links' own triangles."),
    ] = "hull",
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write pages here; keeps the sweeps' state.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep each robot's figures here, for `simulo fleet`.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with killed sweeps in --report DIR.")] = False,
    one_hull: Annotated[bool, typer.Option("--one-hull", help="Check each link's own hull, not its pieces.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the poses.")] = 1,
    json: JsonFile = None,
) -> None:
    """Contacts, missed contacts and false stops over seeded poses.

    Exit code 1 when a contact was missed, or when a dispute between the checker and the truth has no answer.
    """
    from simulo.description import list_robots, load_description
    from simulo.evaluation.fleet import keep as keep_figures
    from simulo.evaluation.fleet import kind_of
    from simulo.evaluation.sweep import sweep as run_sweep
    from simulo.evaluation.sweep_report import write_sweep_pages

    if resume and report is None:
        raise typer.BadParameter("needs --report DIR, where the killed sweeps are", param_hint="--resume")
    names = list_robots() if robots == ["all"] else robots
    quiet_warp()
    done = []
    with progress() as moved:
        for name in names:
            file = f"{Path(name).name}-{kind_of(truth, one_hull)}-{seed}.state.json"
            state = None if report is None else report / file
            if state is not None and not resume:
                state.unlink(missing_ok=True)
            found = run_sweep(name, poses, seed, truth, state, moved, one_hull=one_hull, jobs=jobs)
            done.append(found)
            if keep is not None:
                keep_figures(found.figures, keep)
    title = f"{poses} poses against {truth} truth, seed {seed}{', one hull a link' if one_hull else ''}"
    out.print(_table([sweep.figures for sweep in done], title, compared=truth == "hull"))
    if report is not None:
        page = write_sweep_pages(done, [load_description(name) for name in names], report)
        out.print(f"report page: {page}", highlight=False, soft_wrap=True)
    figures = [sweep.figures for sweep in done]
    write_figures(figures[0] if len(figures) == 1 else figures, json)
    if any(row["missed"] or row["unjudged"] for row in figures):
        raise typer.Exit(1)


def fleet(
    kept: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where `simulo sweep --keep` put its figures.")] = KEPT,
) -> None:
    """Print the fleet's tables, as Markdown, from kept sweeps. A row of geometry that has changed since says stale."""
    from simulo.evaluation.fleet import fleet_tables

    out.print(fleet_tables(kept), markup=False, highlight=False, soft_wrap=True)


def _table(rows: list[dict[str, Any]], title: str, compared: bool) -> Table:
    """compared: with the reference's false stops, which are known against hulls only."""
    from simulo.evaluation.fleet import REFERENCE

    table = Table(Column("robot", no_wrap=True), title=title, box=SIMPLE_HEAD, show_edge=False, padding=0)  # 80 columns
    for column in ("refused", "slop", "contacts", "missed", "false", "un-\njudged", "rest\nmm", "pairs", "exempt"):
        table.add_column(column, justify="right", no_wrap=True)
    if compared:
        table.add_column("ref.\nfalse", justify="right", no_wrap=True)
    for row in rows:
        rest = figure(row["rest"]["min_distance_mm"])
        counts = (row[key] for key in ("refused", "slop_only", "contacts", "missed", "false_stops", "unjudged"))
        table.add_row(
            row["robot"],
            *map(str, counts),
            rest if row["rest"]["clear"] else f"[red]{rest}[/]",
            str(row["pairs_checked"]),
            str(row["pairs_exempt"]),
            *([REFERENCE.get(row["robot"], "")] if compared else []),
        )
    return table
