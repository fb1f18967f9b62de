"""`simulo view`: a robot, or the stops of a run, in the browser."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from simulo.cli.output import PREPARING, err, out, quiet_warp
from simulo.errors import SimuloError


def view(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="ROBOT_OR_RUN",
            help="A name of `simulo robots`, the folder of a robot.yaml, the folder of `bench stop-count --report` or "
            "`simulo demo`, or a gate's audit=FOLDER or one of its files.",
        ),
    ],
    robot: Annotated[str | None, typer.Option(help="Of a run: the folder of a robot of your own.")] = None,
    finger_model: Annotated[
        Literal["mimic", "swept"], typer.Option(help="Each finger where it is, or one hull around their stroke.")
    ] = "mimic",
    host: Annotated[str, typer.Option(help="0.0.0.0: for other machines too.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The next free one is taken.")] = 8080,
) -> None:
    """Real meshes and checked geometry in the browser, a slider per joint, recorded stops to choose from.

    Serves until interrupted.
    """
    if find_spec("viser") is None:
        raise SimuloError("`simulo view` needs viser: pip install 'simulo-sdk[viewer]', or pip install viser")
    quiet_warp()
    import viser

    from simulo.description import load_description
    from simulo.evaluation.recorded_stops import read_run
    from simulo.evaluation.viewer import RobotViewer

    with err.status(PREPARING):
        run = read_run(Path(subject))
        description = load_description(robot or (subject if run is None else run.robot))
        stops = () if run is None else run.stops
        server = viser.ViserServer(host, port, label=f"simulo: {description.name}", verbose=False)
        RobotViewer(server, description, finger_model, stops)
    out.print(
        f"{description.name}, {len(stops)} stops: http://{host}:{server.get_port()} (Ctrl-C ends it)",
        highlight=False,
        soft_wrap=True,
    )
    try:
        server.sleep_forever()
    except KeyboardInterrupt:
        server.stop()
