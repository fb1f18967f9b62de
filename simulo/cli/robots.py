"""`simulo robots` and `simulo check`: what there is, and one configuration of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from simulo.cli.output import PREPARING, JsonFile, err, figure, out, quiet_warp, write_figures

FingerModel = Annotated[
    Literal["mimic", "swept"], typer.Option(help="Each finger where it is, or one hull around their stroke.")
]


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


def check(
    robot: Annotated[str, typer.Argument(help="A name of `simulo robots`, or the folder of a robot.yaml.")],
    pose: Annotated[str | None, typer.Option(metavar="rest", help="A pose of the robot's description.")] = None,
    q: Annotated[str | None, typer.Option("--q", help="All joint values (rad or m), separated by commas.")] = None,
    finger_model: FingerModel = "mimic",
    json: JsonFile = None,
) -> None:
    """Check one configuration against the robot itself. Exit code 1 when it is not clear."""
    from simulo.description import load_description
    from simulo.evaluation.configuration import check_configuration, configuration

    quiet_warp()
    if pose is not None and q is not None:
        raise typer.BadParameter("give --pose or --q, not both")
    if pose not in (None, "rest"):
        raise typer.BadParameter(f"{pose!r} is not a pose of the description; there is: rest", param_hint="--pose")
    description = load_description(robot)
    values = list(map(float, description.rest_pose)) if q is None else _numbers(q)
    with err.status(PREPARING):
        answer = check_configuration(description, configuration(description, values), finger_model)
    out.print(_sentence(answer), highlight=False, soft_wrap=True)
    write_figures(answer, json)
    if not answer["clear"]:
        raise typer.Exit(1)


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
