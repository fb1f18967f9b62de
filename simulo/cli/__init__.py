"""`simulo ...`: parse, call one function, print.

Exit codes: 0 ran to the end, 1 a check failed, 2 wrong use.
"""

from __future__ import annotations

import sys

import typer

from simulo import __version__
from simulo.cli import bench, check, exempt, inspect, lower, robots, run, stop_count, sweep, view
from simulo.cli.output import err
from simulo.errors import NotLoweredError, SimuloError

app = typer.Typer(
    name="simulo",
    help="One task file on many simulators, every policy step checked with the robot's real finger geometry.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"simulo {__version__}")
        raise typer.Exit()


@app.callback()
def _root(version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print it.")) -> None:
    pass


app.command()(stop_count.demo)
app.command()(run.run)
bench.app.command()(stop_count.stop_count)
app.add_typer(bench.app, name="bench")
app.command()(lower.lower)
app.command()(sweep.sweep)
app.command()(sweep.fleet)
app.command()(exempt.exempt)
app.command()(check.check)
app.command()(inspect.inspect)
app.command()(robots.robots)
app.command()(view.view)


def main() -> None:
    try:
        _run()
    except SimuloError as error:
        err.print("[bold red]simulo:[/]", end=" ")
        err.print(str(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)


def _run() -> None:
    """The command; where a robot is not lowered yet and a person can answer, lower it first."""
    try:
        app()
    except NotLoweredError as error:
        if not sys.stdin.isatty():
            raise
        err.print(str(error), markup=False, highlight=False, soft_wrap=True)
        if not typer.confirm(f"Run `simulo lower {error.robot}` now?", default=True, err=True):
            raise
        lower.lower_command(error.robot)
        app()
