"""`simulo run TASK`: a task with its scripted policy, or one that is given."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from simulo.cli.output import Device, JsonFile, figure, out, progress, quiet_warp, write_figures


def run(
    task: Annotated[str, typer.Argument(help="Path of a task file: from here, else among the packaged tasks.")],
    envs: Annotated[int, typer.Option(min=1, help="Environments run at once; it changes no episode.")] = 8,
    episodes: Annotated[int, typer.Option(min=1)] = 64,
    steps: Annotated[int, typer.Option(min=0, help="Stop after so many environment steps; 0: no limit.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Of the first episode; the others count on from it.")] = 0,
    backend: Annotated[str, typer.Option(help="The simulator.")] = "mujoco",
    robot: Annotated[str | None, typer.Option(help="For a task that runs on several.")] = None,
    gripper: Annotated[str | None, typer.Option(help="For a task that runs with several: a preset's name.")] = None,
    gate: Annotated[
        bool | None,
        typer.Option(
            "--gate/--no-gate", help="Check every step before physics sees it. Default: where the robot has geometry."
        ),
    ] = None,
    on_stop: Annotated[
        Literal["terminate", "hold", "report"],
        typer.Option(help="What a refusal does: end the episode, wait, or count."),
    ] = "terminate",
    world: Annotated[
        Literal["voxels", "primitives", "none"] | None,
        typer.Option(help="A map from cameras, exact shapes, or the robot alone. Default: the task's choice."),
    ] = None,
    cell: Annotated[float, typer.Option(min=0.001, help="Edge of a map cell (m).")] = 0.01,
    policy: Annotated[
        str,
        typer.Option(metavar="P", help="scripted, or FILE.py:NAME, a function of the environment that makes a policy."),
    ] = "scripted",
    device: Device = "cpu",
    json: JsonFile = None,
) -> None:
    """Run a task with its scripted or a given policy, gated."""
    from simulo.evaluation.run_task import RunSettings, run_task

    quiet_warp()
    settings = RunSettings(
        task, envs, episodes, steps, seed, backend, robot, gripper, gate, on_stop, world, cell, device, policy
    )  # fmt: skip
    with progress() as report:
        figures = run_task(settings, report)
    rate, interval = figures["success_rate"], figures["success_wilson95"]
    shares = () if rate is None else (100 * rate, 100 * interval[0], 100 * interval[1])
    percent = "{:.0f} % (95 %: {:.0f} to {:.0f})".format(*shares) if shares else "n/a"
    stops = "no gate" if figures["stops"] is None else f"{figures['stops']} stops"
    counted = f"{figures['episodes']} episodes, success {percent}, {stops} in {figures['policy_steps']} policy steps"
    tracking = f"links within {figure(figures['max_tracking_error_mm'])} mm of their commands"
    hand = f" with {figures['gripper']}" if figures["gripper"] else ""
    out.print(f"{task} on {figures['robot']}{hand}: {counted}; {tracking}", highlight=False, soft_wrap=True)
    write_figures(figures, json)
