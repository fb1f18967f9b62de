"""`simulo demo` and `simulo bench stop-count`: how often each finger model stops the robot, and for what."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer
from rich.table import Table

from simulo.cli.output import JsonFile, err, figure, out, progress, quiet_warp, write_figures

if TYPE_CHECKING:
    from simulo.evaluation.stop_count import StopCount

ROWS = {
    "episodes": "episodes_completed",
    "invalid episodes": "invalid",
    "policy steps": "policy_steps",
    "stops": "stops",
    "  true": "true_stops",
    "  within resolution": "within_resolution",
    "  false": "false_stops",
    "    of these: map": "map_stops",
    "  unjudged": "unjudged",
    "real contacts": "real_contacts",
    "  missed": "missed_contacts",
    "proxy contacts": "proxy_contacts",
    "dynamic": "dynamic",
}

FINGER_MODELS: tuple[Literal["mimic", "swept"], ...] = ("mimic", "swept")
WORLDS: tuple[Literal["voxels", "primitives"], ...] = ("voxels", "primitives")

Name = TypeVar("Name", bound=str)

Episodes = Annotated[int, typer.Option(min=1, help="Episodes of the shadow run.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the first episode; the others count on from it.")]
SuccessEpisodes = Annotated[int, typer.Option(min=0, help="Of the second run, in which a stop ends it.")]
Envs = Annotated[int, typer.Option(min=1, help="Environments run at once; it changes no figure.")]


def demo(
    episodes: Episodes = 40,
    success_episodes: SuccessEpisodes = 20,
    seed: Seed = 0,
    envs: Envs = 8,
    report: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: reports/demo-<time>.")] = None,
    json: JsonFile = None,
) -> None:
    """The main job: stop counts of both finger models on the OpenArm pick-and-place, with a report page."""
    from simulo.evaluation.stop_count import StopCountOptions, bench_stop_count

    quiet_warp()
    folder = report or Path("reports") / f"demo-{datetime.now():%Y%m%d-%H%M%S}"
    options = StopCountOptions(
        episodes=episodes,
        success_episodes=success_episodes,
        seed=seed,
        envs=envs,
        finger_models=("swept", "mimic"),
        worlds=("voxels", "primitives"),
    )
    with progress() as moved:
        result = bench_stop_count(options, folder, progress=moved)
    _conclude(result, folder, json)


def stop_count(
    robot: Annotated[str, typer.Option(help="A name of `simulo robots`.")] = "openarm",
    task: Annotated[str, typer.Option(help="Path of a task file.")] = "tasks/pick_place.py",
    episodes: Episodes = 40,
    seed: Seed = 0,
    finger_model: Annotated[str, typer.Option(metavar="mimic,swept", help="One or more, with commas.")] = "mimic,swept",
    hazards: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of episodes made to collide.")] = 0.25,
    neighbours: Annotated[
        Literal["wide", "medium", "tight"], typer.Option(help="How near other objects stand to the open fingers.")
    ] = "wide",
    clearance: Annotated[
        float | None, typer.Option(min=0.001, metavar="M", help="Their least distance, instead of --neighbours' own.")
    ] = None,
    cell: Annotated[str, typer.Option(metavar="M", help="Edge of a map cell (m); several with commas.")] = "0.01",
    world: Annotated[str, typer.Option(metavar="voxels,primitives", help="One or more, with commas.")] = "voxels",
    success_episodes: SuccessEpisodes = 20,
    envs: Envs = 8,
    report: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the run and its report page here.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a killed run in --report DIR.")] = False,
    replay: Annotated[Path | None, typer.Option(metavar="RUN", help="Count a kept run again, without running.")] = None,
    json: JsonFile = None,
) -> None:
    """Deploy-sim stop counts, adjudicated. Exit code 1 when a real contact was missed."""
    from simulo.evaluation.stop_count import StopCountOptions, bench_stop_count, replay_stop_count

    if resume and report is None:
        raise typer.BadParameter("needs --report DIR, where the killed run is", param_hint="--resume")
    quiet_warp()
    with progress() as moved:
        if replay is not None:
            result, folder = replay_stop_count(replay, moved), replay
        else:
            options = StopCountOptions(
                robot=robot,
                task=task,
                episodes=episodes,
                seed=seed,
                finger_models=_chosen(finger_model, FINGER_MODELS, "--finger-model"),
                hazards=hazards,
                neighbours=neighbours,
                clearance=clearance,
                cells=_lengths(cell),
                worlds=_chosen(world, WORLDS, "--world"),
                success_episodes=success_episodes,
                envs=envs,
            )
            result, folder = bench_stop_count(options, report, resume, moved), report
    _conclude(result, folder, json)


def _conclude(result: StopCount, folder: Path | None, json: Path | None) -> None:
    """Print the tables, write the page and the figures; exit code 1 when anything real was missed."""
    for figures in result.figures:
        out.print(_table(figures))
    if folder is not None:
        from simulo.evaluation.report import write_report

        with err.status("drawing the report page"):
            page = write_report(result, folder / "index.html")
        out.print(f"report: {page.resolve()}", highlight=False, soft_wrap=True)
    write_figures(result.figures[0] if len(result.figures) == 1 else list(result.figures), json)
    if any(row["missed_contacts"] for figures in result.figures for row in figures["results"]):
        raise typer.Exit(1)


def _table(figures: dict[str, Any]) -> Table:
    cells = f", {1000 * figures['cell_m']:g} mm cells" if figures["world"] == "voxels" else ""
    title = f"{figures['robot']}, {Path(figures['task']).stem}: world of {figures['world']}{cells}"
    table = Table(title=title)
    table.add_column("")
    for row in figures["results"]:
        for part in ("hazard-free", "hazards"):
            table.add_column(f"{row['finger_model']}\n{part}", justify="right")
    parts = [row[part] for row in figures["results"] for part in ("clean", "hazard")]
    for label, key in ROWS.items():
        table.add_row(label, *(str(part[key]) for part in parts))
    table.add_section()
    success = [value for row in figures["results"] for value in (_success(row), "")]
    table.add_row("success, ended by stops", *success)
    return table


def _success(row: dict[str, Any]) -> str:
    rate = row["success_rate"]
    return "n/a" if rate is None else f"{figure(100 * rate, 0)} % of {row['success_episodes']}"


def _chosen(text: str, known: tuple[Name, ...], option: str) -> tuple[Name, ...]:
    asked = dict.fromkeys(part.strip() for part in text.split(","))
    if wrong := [name for name in asked if name not in known]:
        raise typer.BadParameter(f"{wrong[0]!r} is none of {', '.join(known)}", param_hint=option)
    return tuple(name for text in asked for name in known if name == text)


def _lengths(text: str) -> tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise typer.BadParameter(f"{error}; give metres, with commas", param_hint="--cell") from error
    if not all(0.001 <= value <= 0.2 for value in values):
        raise typer.BadParameter(f"{text} is not between 0.001 and 0.2 m", param_hint="--cell")
    return tuple(dict.fromkeys(values))
