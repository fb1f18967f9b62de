"""`simulo exempt`: what the pairs that the self check leaves out would show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from simulo.cli.output import JsonFile, out, progress, quiet_warp, write_figures

SAYS = {
    "needed": "touch in every configuration",
    "hides": "touch in some: contact that is not seen",
    "clear": "touched in none",
}


def exempt(
    robots: Annotated[list[str], typer.Argument(metavar="ROBOT...", help="Names of `simulo robots`, folders, or all.")],
    poses: Annotated[int, typer.Option(min=1, help="Uniform configurations within the joint limits.")] = 1000,
    seed: Annotated[int, typer.Option(min=0)] = 20260924,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep each robot's figures here, for `simulo fleet`.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Review the pairs that the self check leaves out, but for neighbours and what is rigid: how often they touch."""
    from simulo.description import list_robots
    from simulo.evaluation.exempt import review_exempt
    from simulo.evaluation.fleet import keep as keep_figures

    names = list_robots() if robots == ["all"] else robots
    quiet_warp()
    done = []
    with progress() as moved:
        for name in names:
            done.append(review_exempt(name, poses, seed, moved))
            if keep is not None:
                keep_figures(done[-1], keep)
    for figures in done:
        if figures["rows"]:
            out.print(_table(figures))
        left_out = f"{figures['robot']}: {'and' if figures['rows'] else 'no pairs left out but'}"
        out.print(f"{left_out} {figures['structural']} of neighbours and rigid links", highlight=False)
    write_figures(done[0] if len(done) == 1 else done, json)


def _table(figures: dict[str, Any]) -> Table:
    title = f"{figures['robot']}: pairs left out, {figures['poses']} configurations, seed {figures['seed']}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=0)
    for column in ("link", "and", "rule"):
        table.add_column(column, overflow="fold")
    for column in ("touch", "trip"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("the links")
    for row in figures["rows"]:
        table.add_row(*row["links"], row["rule"], str(row["touching"]), str(row["tripped"]), SAYS[row["says"]])
    return table
