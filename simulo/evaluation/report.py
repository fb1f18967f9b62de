"""The report page of a stop count: one HTML file that needs nothing else, table, plots and pictures of stops."""

from __future__ import annotations

import html
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from simulo.evaluation.counting import JudgedEpisode, StopClass, StopEvent
from simulo.evaluation.page import figure_of, page, png
from simulo.evaluation.records import JudgeName
from simulo.evaluation.stop_count import StopCount, StopCountOptions
from simulo.evaluation.stop_pictures import picture_of_stop
from simulo.files import write_text

COLOURS = {"mimic": "#2a6f97", "swept": "#c8553d"}
_CLASS_COLOURS = {
    StopClass.TRUE: "#3a7d44",
    StopClass.WITHIN_RESOLUTION: "#d9a441",
    StopClass.FALSE: "#b23a48",
    StopClass.MAP: "#7d5ba6",
    StopClass.UNJUDGED: "#888888",
}
_ROWS = (
    ("episodes", "episodes_completed"),
    ("stops", "stops"),
    ("&nbsp;&nbsp;true", "true_stops"),
    ("&nbsp;&nbsp;within resolution", "within_resolution"),
    ("&nbsp;&nbsp;<b>false</b>", "false_stops"),
    ("&nbsp;&nbsp;&nbsp;&nbsp;of these, by the map", "map_stops"),
    ("&nbsp;&nbsp;unjudged", "unjudged"),
    ("real contacts", "real_contacts"),
    ("&nbsp;&nbsp;<b>missed</b>", "missed_contacts"),
    ("contacts of the engine's stand-ins only", "proxy_contacts"),
    ("contacts with what moved unseen", "dynamic"),
    ("invalid episodes", "invalid"),
)


def write_report(result: StopCount, path: Path, pictures: int = 6) -> Path:
    """Write the page. pictures: how many stops are drawn at most. Returns where it is."""
    first = result.figures[0]
    parts = [
        f"<h1>Stop count: {html.escape(first['robot'])}, {html.escape(Path(first['task']).stem)}</h1>",
        f"<p><small>{_settings(result)}</small></p>",
        f"<p class=say>{_headline(result)}</p>",
    ]
    for figures in result.figures:
        parts += [f"<h2>{_world_title(figures)}</h2>", _table(figures), _plots(result, figures)]
    parts += ["<h2>Some of the stops</h2>", _legend(), *_pictures(result, pictures)]
    parts += ["<h2>What the words mean</h2>", _GLOSSARY]
    return write_text(path, page("simulo stop count", parts))


def _clearance(options: StopCountOptions) -> str:
    return "" if options.clearance is None else f" at {1000 * options.clearance:g} mm and more"


def _settings(result: StopCount) -> str:
    first, o = result.figures[0], result.options
    versions = ", ".join(f"{name} {version}" for name, version in first["versions"].items())
    return (
        f"{o.episodes} episodes, seed {o.seed}, a share of {o.hazards:g} made to collide, "
        f"neighbours {o.neighbours}{_clearance(o)}, margin {1000 * o.margin:g} mm; "
        f"links at most {first['max_tracking_error_mm']:.0f} mm from "
        f"where they were commanded. "
        f"{html.escape(versions)}"
    )


def _headline(result: StopCount) -> str:
    first = result.figures[0]
    sentences = []
    for row in first["results"]:
        clean, rate = row["clean"], row["success_rate"]
        task = "" if rate is None else f", and lets it finish {100 * rate:.0f} % of {row['success_episodes']} episodes"
        caught = row["real_contacts"] - row["missed_contacts"]
        sentences.append(
            f"The <b>{row['finger_model']}</b> finger model stops the robot falsely {clean['false_stops']} times in "
            f"{clean['episodes_completed']} hazard-free episodes, catches {caught} of "
            f"{row['real_contacts']} real contacts{task}."
        )
    return " ".join(sentences)


def _world_title(figures: dict[str, Any]) -> str:
    if figures["world"] == "voxels":
        return f"World: depth cameras, cells of {1000 * figures['cell_m']:g} mm"
    return "World: the task's exact shapes"


def _table(figures: dict[str, Any]) -> str:
    models = figures["results"]
    head = "".join(f"<th colspan=2>{html.escape(row['finger_model'])}</th>" for row in models)
    sub = "<th>hazard-free</th><th>hazards</th>" * len(models)
    body = []
    for label, key in _ROWS:
        cells = "".join(f"<td>{row['clean'][key]}</td><td>{row['hazard'][key]}</td>" for row in models)
        body.append(f"<tr><td>{label}</td>{cells}</tr>")
    body.append(
        f"<tr><td>success where a stop ends the episode</td>{''.join(_success_cells(row) for row in models)}</tr>"
    )
    return (
        f"<table><thead><tr><th></th>{head}</tr><tr><th></th>{sub}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


def _success_cells(row: dict[str, Any]) -> str:
    if row["success_rate"] is None:
        return "<td>n/a</td><td></td>"
    low, high = row["success_wilson95"]
    return f"<td>{100 * row['success_rate']:.0f} % <small>[{100 * low:.0f}, {100 * high:.0f}]</small></td><td></td>"


# --- plots -----------------------------------------------------------------------------------------------------------


def _plots(result: StopCount, figures: dict[str, Any]) -> str:
    events = {
        row["finger_model"]: [
            event
            for episode in result.judged[JudgeName(row["finger_model"], figures["world"], figures["cell_m"])]
            for event in episode.events
        ]
        for row in figures["results"]
    }
    return figure_of(_pairs_plot(events), "Stop events by pair and what they were worth.") + figure_of(
        _clearance_plot(events), "How far apart the real surfaces were at the closest moment of each stop."
    )


def _pairs_plot(events: dict[str, list[StopEvent]]) -> bytes:
    from matplotlib.figure import Figure

    rows = Counter((model, event.pair) for model, found in events.items() for event in found)
    figure = Figure(figsize=(6.6, 0.9 + 0.34 * max(2, min(len(rows), 14))), layout="constrained")
    axes = figure.subplots()
    labels = []
    for position, ((model, pair), _) in enumerate(rows.most_common(14)):
        left = 0
        for kind, colour in _CLASS_COLOURS.items():
            count = sum(event.pair == pair and event.kind is kind for event in events[model])
            axes.barh(
                position, count, left=left, color=colour, label=kind.value.replace("_", " ") if position == 0 else None
            )
            left += count
        labels.append(f"{model}: {_short(pair[0])} | {_short(pair[1])}")
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("stop events")
    handles = [_patch(colour, kind.value.replace("_", " ")) for kind, colour in _CLASS_COLOURS.items()]
    axes.legend(handles=handles, fontsize=7, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    return png(figure)


def _clearance_plot(events: dict[str, list[StopEvent]]) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 2.9), layout="constrained")
    axes = figure.subplots()
    found = {model: [1000 * e.clearance for e in rows if np.isfinite(e.clearance)] for model, rows in events.items()}
    top = max((max(values, default=0.0) for values in found.values()), default=0.0)
    bins = np.linspace(0.0, max(10.0, top), 25).tolist()
    for model, values in found.items():
        axes.hist(values, bins=bins, color=COLOURS.get(model, "#666"), alpha=0.7, label=f"{model} ({len(values)})")
    axes.set_xlabel("real clearance at the stop [mm]")
    axes.set_ylabel("stop events")
    axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return png(figure)


def _patch(colour: str, label: str):
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)


def _short(name: str) -> str:
    return name.removeprefix("openarm_")


# --- pictures --------------------------------------------------------------------------------------------------------


def _pictures(result: StopCount, most: int) -> list[str]:
    out = []
    for judge, episode, event in _worth_drawing(result, most):
        step = (event.first + event.last) // 2 if event.kind is not StopClass.TRUE else event.first
        image = picture_of_stop(result, judge, episode.number, step)
        clearance = f"{1000 * event.clearance:.1f} mm" if np.isfinite(event.clearance) else "n/a"
        caption = (
            f"<b>{judge.finger_model}</b>, {judge.world}, episode {episode.number}"
            f"{'' if episode.hazard == 'none' else f' (hazard: {html.escape(episode.hazard)})'}, step {step}: "
            f"{html.escape(_short(event.pair[0]))} against {html.escape(_short(event.pair[1]))}, "
            f"<b>{event.kind.value.replace('_', ' ')}</b>; the real surfaces were {clearance} apart at the closest."
        )
        out.append(figure_of(image, caption, width=500))
    return out


def _worth_drawing(result: StopCount, most: int) -> list[tuple[JudgeName, JudgedEpisode, StopEvent]]:
    """False stops first, and of every hazard one true stop, each of another episode."""
    pool = [
        (j, e, v) for j, episodes in result.judged.items() for e in episodes for v in e.events if j.world == "voxels"
    ]
    wrong = [item for item in pool if item[2].kind in (StopClass.FALSE, StopClass.WITHIN_RESOLUTION, StopClass.MAP)]
    right = [item for item in pool if item[2].kind is StopClass.TRUE and item[0].finger_model == "mimic"]
    chosen: list[tuple[JudgeName, JudgedEpisode, StopEvent]] = []
    seen: set[Any] = set()
    for items, key, limit in ((wrong, "number", most // 3), (right, "hazard", most)):
        for item in items:
            mark = getattr(item[1], key)
            if mark not in seen and len(chosen) < limit:
                seen.add(mark)
                chosen.append(item)
    return chosen


def _legend() -> str:
    return (
        "<p>Grey: the robot's real surface at the judged targets. Red: the checked geometry of the stopped link, "
        "strong where it stands outside everything real. Yellow: the cell that stopped it.</p>"
    )


_GLOSSARY = """<p>A <b>stop event</b> is a maximal run of steps that a gate refused for one pair. It is <b>true</b> when
the real surfaces of that pair come within 1 mm in it, or touch within half a second; <b>within resolution</b> when they
do not, but the link's own triangles are within the margin of the same map cells, so that any finger model would have
stopped; <b>false</b> otherwise. A <b>real contact</b> is one that the physics engine found, that nobody allowed, and
where the real surfaces are within 1 mm. It is <b>missed</b> when no stop on that link was open then or had begun in the
second before. The swept model's one finger stands for both. Here the gates only watched: nothing they said changed the
motion. Success comes from a second run, without hazards, in which a stop ends the episode.</p>"""
