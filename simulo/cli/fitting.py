"""`simulo lower --rule` and `--fit`: the primitives that could stand for links, and which do, or would by a rule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from simulo.cli.output import err, figure, out, progress, quiet_warp, write_figures

if TYPE_CHECKING:
    from simulo.evaluation.rules import Refusals
    from simulo.lowering import LoweredRobot
    from simulo.lowering.primitives import Candidate, Rule
    from simulo.lowering.rules import RuleTotals


def show_rules(robot: str, rule: Rule, json: Path | None) -> None:
    """Print every link's candidates with the rule's choice in bold, and the four rules side by side."""
    from simulo.description import load_description
    from simulo.evaluation.rules import refusals
    from simulo.lowering.lower import link_meshes
    from simulo.lowering.primitives import choose
    from simulo.lowering.rules import link_candidates, totals

    quiet_warp()
    description = load_description(robot)
    meshes = link_meshes(description)
    found = {}
    with progress() as report:
        for done, (link, mesh) in enumerate(meshes.items()):
            report(f"fit {link}", done, len(meshes))
            found[link] = link_candidates(mesh)
    out.print(_candidates_table(robot, f"rule {rule}", found, {link: choose(c, rule) for link, c in found.items()}))
    sides = totals(found)
    with err.status("checking 1000 poses under each rule"):
        measured = refusals(description, found)
    out.print(_rules_table(sides, measured))
    rules = {name: vars(side) | vars(measured[name]) for name, side in sides.items()}
    write_figures({"robot": robot, "links": _links(found), "rules": rules}, json)


def show_fitted(lowered: LoweredRobot, json: Path | None) -> None:
    """Print the candidates of the links that primitives stand for, if there are any, those that do in bold, and the
    pairs that these leave unchecked."""
    robot = lowered.description.name
    if lowered.fitted:
        out.print(_candidates_table(robot, "what is put around it", lowered.fitted, lowered.chosen))
    for pair in lowered.description.disabled_pairs:
        if pair.reason.startswith("always overlapping") and {pair.link_a, pair.link_b} & lowered.fitted.keys():
            said = (
                f"{pair.link_a} and {pair.link_b} will not be checked: what is put around them overlaps in every pose"
            )
            out.print(said, markup=False, highlight=False, soft_wrap=True)
    chosen = {link: candidate.kind for link, candidate in lowered.chosen.items()}
    write_figures({"robot": robot, "links": _links(lowered.fitted), "chosen": chosen}, json)


def _links(found: Mapping[str, tuple[Candidate, ...]]) -> dict[str, list[dict[str, object]]]:
    return {link: [_figures(candidate) for candidate in of_link] for link, of_link in found.items()}


def _candidates_table(
    robot: str, bold: str, found: Mapping[str, tuple[Candidate, ...]], chosen: Mapping[str, Candidate]
) -> Table:
    kinds = [candidate.kind for candidate in next(iter(found.values()))]
    table = Table("link", *kinds, title=f"{robot}: volume / hull, largest and mean protrusion (mm); bold: {bold}")
    for link, of_link in found.items():
        cells = []
        for candidate in of_link:
            text = f"{candidate.volume_ratio:.2f}  {_mm(candidate.largest_protrusion)} {_mm(candidate.mean_protrusion)}"
            cells.append(f"[bold green]{text}[/]" if candidate is chosen[link] else text)
        table.add_row(link, *cells)
    return table


def _rules_table(sides: dict[Rule, RuleTotals], measured: dict[Rule, Refusals]) -> Table:
    from simulo.lowering.primitives import RULES

    table = Table("", *sides, title="the four rules; slop: refused where one exact hull a link is clear")
    rows: dict[str, list[str]] = {
        "picks": [RULES[rule] for rule in sides],
        "kinds": [", ".join(f"{count} {kind}" for kind, count in side.kinds.items()) for side in sides.values()],
        "primitives": [str(side.solids) for side in sides.values()],
        "volume / hull": [figure(side.volume_ratio, 2) for side in sides.values()],
        "largest protrusion (mm)": [_mm(side.largest_protrusion) for side in sides.values()],
        "mean protrusion (mm)": [_mm(side.mean_protrusion) for side in sides.values()],
        "poses refused": [f"{found.refused} of {found.poses}" for found in measured.values()],
        "of these slop": [str(found.slop) for found in measured.values()],
    }
    for label, cells in rows.items():
        table.add_row(label, *cells)
    return table


def _mm(metres: float) -> str:
    return figure(1e3 * metres)


def _figures(candidate: Candidate) -> dict[str, object]:
    return {
        "kind": candidate.kind,
        "volume_ratio": candidate.volume_ratio,
        "largest_protrusion_mm": 1e3 * candidate.largest_protrusion,
        "mean_protrusion_mm": 1e3 * candidate.mean_protrusion,
        "solids": [{"vertices": s.vertices.tolist(), "radius": s.radius} for s in candidate.solids],
    }


def show_auto(robot: str, poses: int, json: Path | None) -> dict[str, int]:
    """Choose the pieces by measured false stops, print the reasons and the lines for robot.yaml; returns the pieces."""
    from simulo.evaluation.auto import choose_pieces

    quiet_warp()
    with progress() as report:
        chosen = choose_pieces(robot, poses, report)
    for reason in chosen.reasons:
        out.print(reason, highlight=False, soft_wrap=True)
    before, after = (figure(us, 2) for us in chosen.self_check_us)
    out.print(f"self check: {after} us a configuration, {before} with one hull a link", highlight=False, soft_wrap=True)
    lines = [f"  {link}: {count}" for link, count in chosen.pieces.items()]
    out.print("\n".join(["decompose:", *lines]) if lines else "decompose: {}", highlight=False, soft_wrap=True)
    write_figures({"robot": robot, "pieces": dict(chosen.pieces), "reasons": chosen.reasons,
                   "self_check_us": chosen.self_check_us}, json)  # fmt: skip
    return dict(chosen.pieces)
