"""`simulo lower`: a robot's model file to its certified collision geometry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simulo.cli.output import err, out, progress


def lower(
    robot: Annotated[str, typer.Argument(help="A name of `simulo robots`, or the folder of a robot.yaml.")],
    tight_link: Annotated[
        list[str] | None, typer.Option("--tight-link", metavar="LINK=N", help="Cut a link into N slabs. Repeatable.")
    ] = None,
    decompose: Annotated[
        list[str] | None,
        typer.Option("--decompose", metavar="LINK=N", help="Cut a link into N convex pieces. Repeatable."),
    ] = None,
    out_dir: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write here, not beside robot.yaml.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing: compare with what is committed.")] = False,
) -> None:
    """Make a robot's collision.json from its model file. With --check, exit code 1 when it is not what is committed."""
    code = lower_command(robot, _counts(tight_link, "--tight-link"), out_dir, check, _counts(decompose, "--decompose"))
    if code:
        raise typer.Exit(code)


def lower_command(
    robot: str,
    tight_links: dict[str, int],
    out_dir: Path | None,
    check: bool,
    decompose: dict[str, int] | None = None,
) -> int:
    """Lower, then write or compare. Returns the exit code: 0, or 1 when --check finds a difference."""
    from simulo.description.files import parse_collision_file
    from simulo.description.registry import COLLISION_FILE, robot_folder
    from simulo.files import write_text
    from simulo.lowering import lower_robot
    from simulo.lowering.compare import differences

    path = (out_dir or robot_folder(robot)) / COLLISION_FILE
    with progress() as report:
        lowered = lower_robot(robot, tight_links, report, decompose)
    if not check:
        write_text(path, lowered.text)
        out.print(
            f"wrote {path}: {len(lowered.collision.geometry)} links with geometry", highlight=False, soft_wrap=True
        )
        return 0
    if not path.is_file():
        err.print(f"{path} is missing: run `simulo lower {robot}`", highlight=False, soft_wrap=True)
        return 1
    committed = path.read_text(encoding="utf-8")
    if committed == lowered.text:
        out.print(f"{path} is what the lowering gives, byte for byte", highlight=False, soft_wrap=True)
        return 0
    found = differences(parse_collision_file(committed, path, robot), lowered.collision) or ["its layout differs"]
    for sentence in found:
        err.print(f"{path}: {sentence}", highlight=False, soft_wrap=True)
    err.print(f"run `simulo lower {robot}` and review the change", highlight=False, soft_wrap=True)
    return 1


def _counts(options: list[str] | None, option: str) -> dict[str, int]:
    counts = {}
    for text in options or []:
        link, _, count = text.partition("=")
        if not link or not count.isdecimal() or not 1 <= int(count) <= 64:
            raise typer.BadParameter(f"{text!r} is not LINK=N with N from 1 to 64", param_hint=option)
        counts[link] = int(count)
    return counts
