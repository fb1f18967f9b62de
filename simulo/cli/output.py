"""What every command says and writes the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from simulo.files import write_json

out = Console()
err = Console(stderr=True)  # progress and complaints: standard output stays clean for figures

JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the figures here, as JSON.")]


def quiet_warp() -> None:
    """Keep Warp's greeting and its line per loaded kernel out of a command's output. Call it before kernels load.

    A program may set this; the library never does.
    """
    import warp

    from simulo.device import start_warp

    warp.config.log_level = 40  # errors only
    setattr(warp.config, "quiet", True)  # noqa: B010 - the same, before Warp had levels
    start_warp()


def write_figures(data: Any, file: Path | None) -> None:
    if file is not None:
        write_json(file, data)


def _known_device(name: str) -> str:
    if not re.fullmatch(r"cpu|auto|cuda:\d+", name):
        raise typer.BadParameter(f"{name!r} is not cpu, auto or cuda:0 and so on")
    return name


Device = Annotated[str, typer.Option(callback=_known_device, help="cpu, cuda:0 and so on, or auto.")]

PREPARING = "preparing; collision kernels are compiled once, in a minute or so"


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on standard error. Yields what moves it: report(label, done, total)."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TimeRemainingColumn(), console=err, transient=True) as bars:
        bar = bars.add_task(PREPARING, total=None)
        yield lambda label, done, total: bars.update(bar, description=label, completed=done, total=total)


def figure(value: float | None, digits: int = 1) -> str:
    """A number for a table; a rate with nothing under it is not 0."""
    return "n/a" if value is None else f"{value:.{digits}f}"
