"""`simulo lower`: a robot's model file to its certified collision geometry."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from simulo.cli.fitting import show_auto, show_fitted, show_rules
from simulo.cli.output import JsonFile, err, out, progress

if TYPE_CHECKING:
    from simulo.description.cuts import Asked

_FIT = (
    "Put primitives around a link, or around all: capsule, box, chain2 or chain3 (of capsules), or auto, by --rule. "
    "Repeatable; fitted_links in robot.yaml keeps it."
)
_RULE = (
    "The rule that --fit chooses by, else M. Without --fit, write nothing: show the primitives that could stand for "
    "each link, and the four rules."
)


def lower(
    robot: Annotated[
        str,
        typer.Argument(
            help="A name of `simulo robots`, the folder of a robot.yaml, a bare .urdf or .xml file; all, with --check."
        ),
    ],
    tight_link: Annotated[
        list[str] | None, typer.Option("--tight-link", metavar="LINK=N", help="Cut a link into N slabs. Repeatable.")
    ] = None,
    decompose: Annotated[
        list[str] | None,
        typer.Option("--decompose", metavar="LINK=N", help="Cut a link into N convex pieces. Repeatable."),
    ] = None,
    fit: Annotated[list[str] | None, typer.Option("--fit", metavar="LINK[=KIND]", help=_FIT)] = None,
    out_dir: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write here, not beside robot.yaml or the model file.")
    ] = None,
    srdf: Annotated[
        Path | None, typer.Option("--srdf", metavar="FILE", help="Exempt the pairs that this SRDF disables.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing: compare with what is committed.")] = False,
    rule: Annotated[
        Literal["A", "M", "B", "M1"] | None,
        typer.Option(help=_RULE),
    ] = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="Choose the pieces of a lowered robot by the false stops its meshes show.")
    ] = False,
    poses: Annotated[int, typer.Option(min=1, help="Poses that --auto judges by.")] = 1000,
    json: JsonFile = None,
) -> None:
    """Make a robot's collision.json from its model file. With --check, exit code 1 when it is not what is committed."""
    if robot == "all":
        if not check or auto or rule is not None or tight_link or decompose or fit or out_dir or srdf:
            raise typer.BadParameter("all goes with --check alone", param_hint="ROBOT")
        if check_all():
            raise typer.Exit(1)
        return
    if rule is not None and not fit:
        show_rules(robot, rule, json)
        return
    if auto and fit:
        raise typer.BadParameter("--auto chooses pieces of hulls; do one after the other", param_hint="--fit")
    from simulo.description.cuts import Asked

    pieces = _counts(decompose, "--decompose")
    if auto:
        pieces = show_auto(robot, poses, json) | pieces
    asked = Asked(_counts(tight_link, "--tight-link"), pieces, _choices(fit, rule or "M"))
    code = lower_command(robot, asked, out_dir, check, srdf, None if auto else json)
    if code:
        raise typer.Exit(code)


def check_all() -> int:
    """--check of every packaged robot, but for those that are made on request and are not lowered here. Returns the
    exit code, and prints what each took."""
    from simulo.description import list_robots
    from simulo.description.load import geometry_path, load_robot_file

    code = 0
    for name in list_robots():
        if load_robot_file(name).geometry == "on_request" and not geometry_path(name).is_file():
            out.print(f"{name}: made on request, and not here: nothing to check", highlight=False, soft_wrap=True)
            continue
        started = time.perf_counter()
        code = max(code, lower_command(name, check=True))
        out.print(f"{name}: {time.perf_counter() - started:.0f} s", highlight=False, soft_wrap=True)
    return code


def lower_command(
    robot: str,
    asked: Asked | None = None,
    out_dir: Path | None = None,
    check: bool = False,
    srdf: Path | None = None,
    json: Path | None = None,
) -> int:
    """Lower, then write or compare. Returns the exit code: 0, or 1 when --check finds a difference. asked: of links,
    over robot.yaml's own. json: gets what primitives could stand for the links that are fitted.

    A bare model file first gets a robot.yaml, drafted from it, in `out_dir` or beside it.
    """
    from simulo.description.files import parse_collision_file
    from simulo.description.load import geometry_path
    from simulo.description.registry import COLLISION_FILE
    from simulo.files import write_text
    from simulo.lowering import lower_robot
    from simulo.lowering.compare import differences
    from simulo.lowering.draft import is_model_file

    if is_model_file(robot):
        robot, out_dir = _drafted(Path(robot), out_dir, srdf, check), None
    path = out_dir / COLLISION_FILE if out_dir else geometry_path(robot)
    with progress() as report:
        lowered = lower_robot(robot, asked, report, srdf)
    show_fitted(lowered, json)
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


def _drafted(model_file: Path, out_dir: Path | None, srdf: Path | None, check: bool) -> str:
    """The robot folder of a bare model file; a new robot.yaml in it is announced with all that was guessed."""
    from simulo.description.registry import ROBOT_FILE
    from simulo.lowering.draft import draft_folder

    path = (out_dir or model_file.parent) / ROBOT_FILE
    new = not path.is_file()
    if check and new:
        raise typer.BadParameter(
            f"{path} is missing, so nothing was lowered from {model_file} yet", param_hint="--check"
        )
    folder, guesses = draft_folder(model_file, out_dir, srdf)
    if new:
        out.print(f"drafted {path}; look at what was guessed:", highlight=False, soft_wrap=True)
        for sentence in guesses:
            out.print(f"  {sentence}", markup=False, highlight=False, soft_wrap=True)
    return str(folder.absolute())  # a relative name might be a packaged robot's


def _counts(options: list[str] | None, option: str) -> dict[str, int]:
    counts = {}
    for text in options or []:
        link, _, count = text.partition("=")
        if not link or not count.isdecimal() or not 1 <= int(count) <= 64:
            raise typer.BadParameter(f"{text!r} is not LINK=N with N from 1 to 64", param_hint=option)
        counts[link] = int(count)
    return counts


def _choices(options: list[str] | None, rule: str) -> dict[str, Any]:
    """--fit's links and what is put around them."""
    from simulo.description.files import FitChoice

    known = (*get_args(FitChoice), "auto")
    choices = {}
    for text in options or []:
        link, _, kind = text.partition("=")
        if not link or (kind or "auto") not in known:
            raise typer.BadParameter(
                f"{text!r} is not LINK or LINK=KIND; kinds: {', '.join(known)}", param_hint="--fit"
            )
        choices[link] = rule if kind in ("", "auto") else kind
    return choices
