"""`simulo check`: one configuration of a robot, or a recorded stop judged again."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from simulo.cli.output import PREPARING, JsonFile, err, figure, out, quiet_warp, write_figures

if TYPE_CHECKING:
    from simulo.gate.replay import Replay

FingerModel = Literal["mimic", "swept"]


def check(
    robot: Annotated[
        str | None, typer.Argument(help="A name of `simulo robots`, or the folder of a robot.yaml.", show_default=False)
    ] = None,
    pose: Annotated[str | None, typer.Option(metavar="rest", help="A pose of the robot's description.")] = None,
    q: Annotated[str | None, typer.Option("--q", help="All joint values (rad or m), separated by commas.")] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The record of a stop (a gate's audit=FOLDER), judged again; name the folder of a robot of your own.",
        ),
    ] = None,
    finger_model: Annotated[
        FingerModel, typer.Option(help="Each finger where it is, or one hull around their stroke.")
    ] = "mimic",
    json: JsonFile = None,
) -> None:
    """Check one configuration against the robot itself, or a recorded stop again.

    Exit code 1 when the configuration is not clear, or the stop does not come out as it was recorded.
    """
    quiet_warp()
    if replay is not None:
        if pose is not None or q is not None:
            raise typer.BadParameter("a record holds its own configuration; leave --pose and --q out")
        _replay(replay, robot, json)
        return
    if robot is None:
        raise typer.BadParameter("name a robot of `simulo robots`, or give --replay FILE", param_hint="ROBOT")
    if pose is not None and q is not None:
        raise typer.BadParameter("give --pose or --q, not both")
    if pose not in (None, "rest"):
        raise typer.BadParameter(f"{pose!r} is not a pose of the description; there is: rest", param_hint="--pose")
    _configuration(robot, q, finger_model, json)


def _configuration(robot: str, q: str | None, finger_model: FingerModel, json: Path | None) -> None:
    from simulo.description import load_description
    from simulo.evaluation.configuration import check_configuration, configuration, outside_limits

    description = load_description(robot)
    values = configuration(description, list(map(float, description.rest_pose)) if q is None else _numbers(q))
    for remark in outside_limits(description, values):
        err.print(f"{remark}; it is checked as it is", highlight=False, soft_wrap=True)
    with err.status(PREPARING):
        answer = check_configuration(description, values, finger_model)
    out.print(_sentence(answer), highlight=False, soft_wrap=True)
    write_figures(answer, json)
    if not answer["clear"]:
        raise typer.Exit(1)


def _replay(file: Path, robot: str | None, json: Path | None) -> None:
    from simulo.gate.audit import StopRecord
    from simulo.gate.replay import replay

    record = StopRecord.read(file)
    with err.status(PREPARING):
        found = replay(record, robot)
    for line in _story(found):
        out.print(line, highlight=False, soft_wrap=True)
    write_figures(_figures(found), json)
    if not found.same:
        raise typer.Exit(1)


def _story(found: Replay) -> list[str]:
    header, opinion = found.record.header, found.opinion
    lines = [f"recorded {header['time']:.3f} s into a run: {header['sentence']}"]
    if found.same:
        lines.append("replayed: the same verdict, pair and distance, bit for bit")
    else:
        distance = figure(1000.0 * float(found.verdict.distance[0]), 4)
        lines.append(f"replayed: NOT the same: {found.kind}, distance {distance} mm")
    changed = [f"{name} {then} then and {now} now" for name, (then, now) in found.other_versions.items()]
    if changed:
        lines.append(f"recorded elsewhere: {'; '.join(changed)}")
    if opinion is not None:
        agrees = "refuses too" if opinion.refuses else "would let it pass"
        millimetres = (figure(1000.0 * value, 4) for value in (opinion.distance, opinion.margin))
        lines.append("in float64 the two are {} mm apart at a margin of {} mm: it {}".format(*millimetres, agrees))
    return lines


def _figures(found: Replay) -> dict[str, Any]:
    header, opinion, distance = found.record.header, found.opinion, float(found.verdict.distance[0])
    return {
        "robot": header["robot"],
        "clear": bool(found.verdict.clear[0]),
        "kind": header["kind"],
        "parties": header["parties"],
        "distance_mm": 1000.0 * distance if math.isfinite(distance) else None,
        "bound": bool(found.verdict.bound[0]),
        "same": found.same,
        "replayed_kind": found.kind,
        "other_versions": {name: list(pair) for name, pair in found.other_versions.items()},
        "float64_distance_mm": None if opinion is None else 1000.0 * opinion.distance,
        "margin_mm": None if opinion is None else 1000.0 * opinion.margin,
        "float64_refuses": None if opinion is None else opinion.refuses,
    }


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.replace(",", " ").split()]
    except ValueError as error:
        raise typer.BadParameter(f"{error}; give numbers separated by commas", param_hint="--q") from error


def _sentence(answer: dict[str, Any]) -> str:
    millimetres, a_bound = answer["distance_mm"], "at least " if answer["bound"] else ""
    distance = "" if millimetres is None else f", distance {a_bound}{figure(millimetres)} mm"
    between = "" if None in answer["parties"] else ": {} and {}".format(*answer["parties"])
    return f"{'clear of itself' if answer['clear'] else 'refused (' + answer['kind'] + ')'}{between}{distance}"
