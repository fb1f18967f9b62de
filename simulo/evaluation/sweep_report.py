"""The pages of a sweep: the fleet in one table with plots, and each robot's meshes against its geometry in 3D."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import trimesh
from matplotlib.figure import Figure
from numpy.typing import NDArray
from trimesh.viewer.notebook import scene_to_html
from trimesh.visual import TextureVisuals
from trimesh.visual.material import PBRMaterial

from simulo.description import RobotDescription, reference_fk
from simulo.evaluation.meshes import true_meshes
from simulo.evaluation.overhang import stands_off
from simulo.evaluation.page import figure_of, page, png
from simulo.evaluation.sweep import Sweep
from simulo.files import write_text
from simulo.lowering.solids import points_around

# glTF materials, linear RGBA: opaque grey, and a red that one can see through.
_MESH = PBRMaterial(baseColorFactor=[0.62, 0.64, 0.67, 1.0], metallicFactor=0.0, roughnessFactor=0.8, doubleSided=True)
_CHECKED = PBRMaterial(
    baseColorFactor=[0.85, 0.25, 0.15, 0.3], metallicFactor=0.0, roughnessFactor=1.0, alphaMode="BLEND"
)
_STAND_OFF_WITHIN = 1e-3
_HEAD = ("robot", "truth", "poses", "refused", "of these, nothing touching", "contacts (pairs)", "<b>missed</b>",
         "<b>false stops</b> (pairs)", "unjudged", "at rest [mm]", "pairs checked", "exempt")  # fmt: skip


def write_sweep_pages(sweeps: Sequence[Sweep], descriptions: Sequence[RobotDescription], folder: Path) -> Path:
    """Write index.html and a 3D page per robot into a folder. Returns the index."""
    for description in descriptions:
        write_text(folder / f"{description.name}.html", robot_page(description))
    parts = [
        "<h1>Contact sweeps</h1>",
        "<p class=say>Uniform poses within the joint limits. A pose is refused when a checked pair trips. Contacts, "
        "missed contacts and false stops are counted per pair and pose.</p>",
        _table(sweeps),
        figure_of(png(_refusals(sweeps)), "Refused poses: with a real contact of some checked pair, and without."),
    ]
    if any(sweep.counts.false_by_pair for sweep in sweeps):
        parts.append(figure_of(png(_false_pairs(sweeps)), "The pairs with most false stops."))
    if any(sweep.counts.false_clearance_mm for sweep in sweeps):
        parts.append(figure_of(png(_clearances(sweeps)), "How far apart the real surfaces were at false stops."))
    parts.append("<h2>How far each link's checked surface stands off its own triangles</h2>")
    parts += [figure_of(png(_stand_offs(description)), html.escape(description.name)) for description in descriptions]
    return write_text(folder / "index.html", page("simulo contact sweeps", parts))


def robot_page(description: RobotDescription) -> str:
    """The robot at rest: its own triangles in grey, what is checked translucent over them. Turn it with the mouse."""
    poses = reference_fk(description, np.asarray(description.rest_pose, np.float64))
    scene = trimesh.Scene()
    for link, mesh in true_meshes(description).items():
        real = trimesh.Trimesh(mesh.vertices, mesh.faces, visual=TextureVisuals(material=_MESH), process=False)
        scene.add_geometry(real, node_name=f"{link} mesh", transform=_UPRIGHT @ poses[link])
    for link, geometry in description.geometry.items():
        for k, piece in enumerate(geometry.pieces):
            hull = trimesh.convex.convex_hull(points_around(piece))
            checked = trimesh.Trimesh(hull.vertices, hull.faces, visual=TextureVisuals(material=_CHECKED))
            scene.add_geometry(checked, node_name=f"{link} piece {k}", transform=_UPRIGHT @ poses[link])
    scene.camera_transform = scene.camera.look_at(trimesh.bounds.corners(scene.bounds), rotation=_from_the_front())
    title = f"{html.escape(description.name)}: meshes and checked geometry"
    shown = scene_to_html(scene).replace("<title>trimesh: threejs viewer</title>", f"<title>{title}</title>", 1)
    return shown.replace("<body>", f"<body>{_legend(description)}", 1)


def _legend(description: RobotDescription) -> str:
    """Over the upper left corner of the 3D view."""
    pieces = sum(len(geometry.pieces) for geometry in description.geometry.values())
    triangles = sum(len(mesh.faces) for mesh in true_meshes(description).values())
    return (
        "<div style='position:fixed;left:14px;top:12px;padding:8px 12px;background:#fffd;border:1px solid #ccd;"
        "font:14px/1.6 system-ui,sans-serif;color:#22252b'>"
        f"<b>{html.escape(description.name)}</b> at rest<br>"
        f"{_swatch('#9ea3ab', 1.0)} the model's own {triangles:,} triangles, {len(description.geometry)} links<br>"
        f"{_swatch('#d94026', 0.45)} what is checked: {pieces} convex pieces<br>"
        "<small>drag: turn &middot; wheel: zoom &middot; right drag: move &middot; <a href='index.html'>all robots</a>"
        "</small></div>"
    )


def _swatch(colour: str, opacity: float) -> str:
    return f"<span style='display:inline-block;width:13px;height:13px;background:{colour};opacity:{opacity}'></span>"


# The viewer's up is y: z to y, y to -z.
_UPRIGHT = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])


def _from_the_front() -> NDArray[np.float64]:
    """A camera that stands before the upright robot, to its right and a little above, looking along its own -z."""
    back = np.array([1.0, 0.5, 0.7]) / np.linalg.norm([1.0, 0.5, 0.7])
    right = np.cross([0.0, 1.0, 0.0], back)
    right /= np.linalg.norm(right)
    out = np.eye(4)
    out[:3, :3] = np.column_stack([right, np.cross(back, right), back])
    return out


def _table(sweeps: Sequence[Sweep]) -> str:
    rows = []
    for sweep in sweeps:
        f = sweep.figures
        distance = f["rest"]["min_distance_mm"]
        rest = "n/a" if distance is None else f"{distance:.1f}"
        cells = (
            f["truth"], f["poses"], f["refused"], f["slop_only"], f["contacts"], f["missed"], f["false_stops"],
            f["unjudged"], rest if f["rest"]["clear"] else f"<b>{rest}</b>", f["pairs_checked"], f["pairs_exempt"],
        )  # fmt: skip
        name = html.escape(f["robot"])
        rows.append(f"<tr><td><a href='{name}.html'>{name}</a></td>{''.join(f'<td>{c}</td>' for c in cells)}</tr>")
    head = "".join(f"<th>{title}</th>" for title in _HEAD)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _refusals(sweeps: Sequence[Sweep]) -> Figure:
    figure = Figure(figsize=(5.2, 0.9 + 0.34 * len(sweeps)), layout="constrained")
    axes = figure.subplots()
    for k, sweep in enumerate(sweeps):
        share = 100.0 / sweep.counts.poses
        real = (sweep.counts.refused - sweep.counts.slop_only) * share
        axes.barh(k, real, color="#3a7d44", label="real contact" if k == 0 else None)
        axes.barh(k, sweep.counts.slop_only * share, left=real, color="#b23a48", label="none" if k == 0 else None)
    axes.set_yticks(range(len(sweeps)), [f"{s.figures['robot']} ({s.figures['truth']})" for s in sweeps], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("refused poses [%]")
    axes.legend(fontsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _stand_offs(description: RobotDescription) -> Figure:
    """By link, those that stand off most first."""
    meshes = true_meshes(description)
    rows = [
        (1000.0 * stands_off(geometry, meshes[link], _STAND_OFF_WITHIN), link, len(geometry.pieces))
        for link, geometry in description.geometry.items()
    ]
    rows.sort(key=lambda row: -row[0])
    figure = Figure(figsize=(5.2, 0.9 + 0.2 * len(rows)), layout="constrained")
    axes = figure.subplots()
    axes.barh(range(len(rows)), [value for value, _, _ in rows], color="#2a6f97")
    labels = [link if pieces == 1 else f"{link} ({pieces} pieces)" for _, link, pieces in rows]
    axes.set_yticks(range(len(rows)), labels, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("at most [mm]")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _false_pairs(sweeps: Sequence[Sweep]) -> Figure:
    rows = [
        (f"{sweep.figures['robot']}: {pair}", 1000.0 * count / sweep.counts.poses)
        for sweep in sweeps
        for pair, count in sweep.counts.false_by_pair.most_common(5)
    ]
    rows = sorted(rows, key=lambda row: -row[1])[:16]
    figure = Figure(figsize=(6.6, 0.9 + 0.3 * max(1, len(rows))), layout="constrained")
    axes = figure.subplots()
    axes.barh(range(len(rows)), [value for _, value in rows], color="#b23a48")
    axes.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("false stops per 1000 poses")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _clearances(sweeps: Sequence[Sweep]) -> Figure:
    figure = Figure(figsize=(5.2, 2.9), layout="constrained")
    axes = figure.subplots()
    for sweep in sweeps:
        values = sweep.counts.false_clearance_mm
        if values:
            axes.hist(values, bins=25, histtype="step", label=f"{sweep.figures['robot']} ({len(values)})")
    axes.set_xlabel("real clearance [mm]")
    axes.set_ylabel("false stops")
    axes.legend(fontsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
