"""Links that primitives stand for: what they hold, what is written of them, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from typer.testing import CliRunner

from simulo.cli import app
from simulo.cli.fitting import show_fitted
from simulo.cli.lower import lower_command
from simulo.description import ConvexPiece, LinkGeometry, load_description
from simulo.description.certificate import refuse_unproven_geometry
from simulo.description.cuts import Asked, merged_cuts
from simulo.description.files import CollisionFile, LinkCut, parse_collision_file
from simulo.description.load import load_robot_file
from simulo.errors import DescriptionError, LoweringError
from simulo.evaluation.auto import choose_pieces
from simulo.evaluation.coverage import coverage
from simulo.evaluation.sweep import sweep
from simulo.evaluation.sweep_report import robot_page
from simulo.lowering import LoweredRobot, link_meshes, lower_robot
from simulo.lowering.compare import differences
from simulo.lowering.fit import fitted_link
from simulo.lowering.pieces import ball_piece, fit_piece
from simulo.lowering.primitives import RULES, choose
from simulo.lowering.rules import link_candidates
from tests.lowering.urdf_text import joint, link, robot, shape

KINDS = {"base": "box", "bend": "chain2", "rod": "capsule", "tip": "M"}
ROOM = 1e-3 - 2e-9
LIMIT = "<limit lower='-2.8' upper='2.8'/>"


def tube(length: float, place: str, turn: str = "0 0 0") -> str:
    cylinder = f"<cylinder radius='0.02' length='{length}'/>"
    return f"<collision><origin xyz='{place}' rpy='{turn}'/><geometry>{cylinder}</geometry></collision>"


MODEL = robot(
    link("base", shape("<box size='0.2 0.14 0.06'/>")),
    link("bend", tube(0.3, "0 0 0.15") + tube(0.2, "0 0.1 0.3", "1.5707963 0 0")),
    link("rod", tube(0.25, "0 0 0.14")),
    link("tip", shape("<sphere radius='0.03'/>")),
    joint("first", "revolute", "base", "bend", LIMIT, xyz="0 0 0.05"),
    joint("second", "revolute", "bend", "rod", LIMIT, xyz="0 0.22 0.3"),
    joint("third", "revolute", "rod", "tip", LIMIT, xyz="0 0 0.3"),
)


def declare(folder: Path, **entries: object) -> Path:
    """The folder of a box, a pipe that bends, a rod and a ball on three joints; its robot.yaml with these entries."""
    (folder / "r.urdf").write_text(MODEL)
    source = {"path": "r.urdf", "licence": "CC0-1.0", "format": "urdf"}
    joints = [{"name": name, "role": "arm"} for name in ("first", "second", "third")]
    declared = {"name": "elbows", "root_link": "base", "joints": joints, "source": source, **entries}
    (folder / "robot.yaml").write_text(yaml.safe_dump(declared))
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LoweredRobot]:
    """The arm with KINDS, lowered: not to be written to."""
    folder = declare(tmp_path_factory.mktemp("elbows"), fitted_links=KINDS)
    lowered = lower_robot(folder)
    (folder / "collision.json").write_text(lowered.text)
    return folder, lowered


def depth(geometry: LinkGeometry, points: np.ndarray) -> np.ndarray:
    """How deep [m] each point lies in the piece that holds it best, by formulas of this test's own."""
    depths = []
    for piece in geometry.pieces:
        if piece.radius:
            start, end = piece.vertices[0], piece.vertices[-1]
            along = (end - start) @ (end - start)
            share = np.clip((points - start) @ (end - start) / along, 0, 1) if along else np.zeros(len(points))
            depths.append(piece.radius - np.linalg.norm(points - start - share[:, None] * (end - start), axis=1))
        else:
            hull = trimesh.convex.convex_hull(piece.vertices)
            outward = np.einsum("pk,tk->pt", points, hull.face_normals)
            outward -= np.einsum("tk,tk->t", hull.triangles[:, 0], hull.face_normals)
            depths.append(-outward.max(axis=1))
    return np.max(depths, axis=0)


def samples(mesh: trimesh.Trimesh, count: int = 20_000) -> np.ndarray:
    return np.asarray(trimesh.sample.sample_surface(mesh, count, seed=3)[0])


def test_an_arm_of_primitives_holds_all_of_itself(built: tuple[Path, LoweredRobot]) -> None:
    folder, lowered = built
    description, meshes = load_description(folder), link_meshes(lowered.description)
    kinds = {name: [piece.kind for piece in geometry.pieces] for name, geometry in description.geometry.items()}
    assert kinds["base"] == ["hull"] and len(description.geometry["base"].hull.vertices) == 8
    assert (kinds["bend"], kinds["rod"]) == (["capsule", "capsule"], ["capsule"])
    assert kinds["tip"][0] in ("sphere", "capsule")
    for name, mesh in meshes.items():
        geometry = description.geometry[name]
        assert depth(geometry, np.asarray(mesh.vertices)).min() >= ROOM, name
        assert depth(geometry, samples(mesh)).min() >= ROOM, name
    across = [len({int(k) for k in parts}) for parts in _nearest_piece(description.geometry["bend"], meshes["bend"])]
    assert max(across) == 2, "no triangle lies across the two capsules: the test says nothing of seams"
    found = coverage(meshes, description.geometry)
    assert found["vertices_outside"] == found["triangles_outside"] == 0 and found["triangles"] > 800
    assert lowered.chosen["bend"].kind == "chain of 2" and len(lowered.fitted["bend"]) == 4


def _nearest_piece(geometry: LinkGeometry, mesh: trimesh.Trimesh) -> np.ndarray:
    """Number of the piece that holds each triangle's corners best, shape (T, 3)."""
    corners = np.asarray(mesh.triangles).reshape(-1, 3)
    alone = [LinkGeometry(geometry.link, (piece,), piece) for piece in geometry.pieces]
    return np.argmax([depth(one, corners) for one in alone], axis=0).reshape(-1, 3)


def test_a_candidate_that_does_not_hold_the_mesh_is_refused(built: tuple[Path, LoweredRobot]) -> None:
    """Balls 0.2 mm too small for the headroom; and two capsules that hold all the corners, but end 8 mm apart."""
    chosen, mesh = built[1].chosen, link_meshes(built[1].description)["rod"]
    (solid,) = chosen["rod"].solids
    small = replace(chosen["rod"], solids=(replace(solid, radius=solid.radius - 2e-4),))
    with pytest.raises(LoweringError, match="link 'rod': its capsule leaves a vertex 0.8"):
        fitted_link(small, "rod", mesh)
    ends, middle = solid.vertices, solid.vertices.mean(axis=0)
    step = 0.5 * (solid.radius + 0.004) * (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    torn = (
        replace(solid, vertices=np.stack([ends[0], middle - 2 * step])),
        replace(solid, vertices=np.stack([middle + 2 * step, ends[1]])),
    )
    with pytest.raises(LoweringError, match="headroom and [1-9][0-9]* triangles too little"):
        fitted_link(replace(chosen["rod"], solids=torn), "rod", mesh)


def test_the_hull_around_a_chain_holds_its_balls(built: tuple[Path, LoweredRobot]) -> None:
    geometry = built[1].description.geometry["bend"]
    planes = ConvexHull(geometry.hull.vertices).equations
    directions = np.random.default_rng(1).normal(size=(4000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for piece in geometry.pieces:
        points = (piece.vertices[:, None] + piece.radius * directions).reshape(-1, 3)
        assert (points @ planes[:, :3].T + planes[:, 3]).max() <= 0.0


def test_the_same_bytes_twice_and_check_agrees(
    built: tuple[Path, LoweredRobot], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, lowered = declare(tmp_path, fitted_links=KINDS), built[1]
    (folder / "collision.json").write_text(lowered.text)
    assert lower_command(str(folder), check=True) == 0
    said = capsys.readouterr().out
    assert "chain of 2" in said and "byte for byte" in said
    pieces = {name: entry["pieces"] for name, entry in json.loads(lowered.text)["geometry"].items()}
    assert len(pieces["rod"][0]["vertices_nm"]) == 2 and pieces["rod"][0]["radius_nm"] > 21_000_000
    assert "radius_nm" not in pieces["base"][0], "files without balls stay as they are"


def test_no_contact_is_missed_against_mujoco_or_the_triangles(built: tuple[Path, LoweredRobot]) -> None:
    folder = str(built[0])
    hull, mesh = sweep(folder, 2000).figures, sweep(folder, 1000, truth="mesh").figures
    assert hull["contacts"] > 100 and mesh["contacts"] > 50
    assert hull["missed"] == mesh["missed"] == hull["unjudged"] == 0
    assert hull["false_stops"] <= 2, "MuJoCo's and simulo's verdict on a capsule part by their tolerances alone"
    assert mesh["outside"]["vertices_outside"] == mesh["outside"]["triangles_outside"] == 0


def test_auto_leaves_the_primitives_that_robot_yaml_asks_for(built: tuple[Path, LoweredRobot]) -> None:
    """All four links are fitted: nothing is cut, whatever stops for nothing, and the counts are the primitives' own."""
    chosen = choose_pieces(str(built[0]), 300)
    assert chosen.pieces == {} and chosen.before == chosen.after
    found = sweep(str(built[0]), 300, truth="mesh").counts
    assert (chosen.before.refused, chosen.before.false_stops) == (found.refused, found.false_stops)
    assert found.false_stops > 0.1 * found.refused, "else there was nothing to cut for"


def test_the_command_fits_what_is_asked_and_reports_every_candidate(tmp_path: Path) -> None:
    folder, report = declare(tmp_path, decompose={"base": 2}), tmp_path / "report.json"
    fits = ["--fit", "all", "--fit", "bend=chain3", "--rule", "M1", "--decompose", "rod=2", "--tight-link", "base=1"]
    result = CliRunner().invoke(app, ["lower", str(folder), *fits, "--json", str(report)])
    assert result.exit_code == 0, result.output
    said = json.loads(report.read_text())
    assert set(said["chosen"]) == {"bend", "tip"} and said["chosen"]["bend"] == "chain of 3"
    assert said["chosen"]["tip"] in ("capsule", "box"), "M1 takes no chains"
    assert [row["kind"] for row in said["links"]["bend"]] == ["capsule", "chain of 2", "chain of 3", "box"]
    assert all(row["mean_protrusion_mm"] > 0.0 for rows in said["links"].values() for row in rows)
    figures = tmp_path / "inspect.json"
    assert CliRunner().invoke(app, ["inspect", str(folder), "--json", str(figures)]).exit_code == 0
    shapes = {row["name"]: row["shapes"] for row in json.loads(figures.read_text())["links"]}
    assert shapes["bend"] == {"capsule": 3} and shapes["base"] == {"hull": 1} and shapes["rod"] == {"hull": 2}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--fit", "rod=ball"], ("rod=ball", "capsule, chain2, chain3, box, auto")),
        (["--fit", "=box"], ("'=box'",)),
        (["--fit", "rod", "--auto"], ("--auto chooses pieces",)),
    ],
)
def test_the_command_refuses_what_it_cannot_fit(tmp_path: Path, options: list[str], words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, ["lower", str(declare(tmp_path)), *options], env={"COLUMNS": "250"})
    assert result.exit_code == 2
    assert all(word in result.output for word in words), result.output


def test_links_that_cannot_be_fitted_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"robot.yaml.*'ghost' has no geometry.*base, bend, rod, tip"):
        lower_robot(declare(tmp_path, fitted_links={"ghost": "M"}))
    with pytest.raises(DescriptionError, match="link 'rod' is to be cut in 2 ways.*--fit"):
        lower_robot(declare(tmp_path, fitted_links={"rod": "M"}, decompose={"rod": 2}))
    with pytest.raises(DescriptionError, match="link 'rod' is to be cut in 3 ways"):
        lower_robot(declare(tmp_path), Asked({"rod": 2}, {"rod": 2}, {"rod": "box"}))
    with pytest.raises(DescriptionError, match=r"robot.yaml: fitted_links.rod"):
        lower_robot(declare(tmp_path, fitted_links={"rod": "sphere"}))


def test_what_is_asked_for_goes_before_what_is_declared(tmp_path: Path) -> None:
    file = load_robot_file(declare(tmp_path, fitted_links={"rod": "M"}, decompose={"tip": 2}))
    links = ("base", "bend", "rod", "tip")
    assert merged_cuts(file, Asked(), links, "r") == {"rod": LinkCut(fit="M"), "tip": LinkCut(pieces=2)}
    over = merged_cuts(file, Asked({"rod": 3}, {}, {"all": "B", "base": "box"}), links, "r")
    assert over == {
        "base": LinkCut(fit="box"), "bend": LinkCut(fit="B"), "rod": LinkCut(slabs=3), "tip": LinkCut(fit="B"),
    }  # fmt: skip


def test_pairs_of_balls_that_always_overlap_are_proven_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Balls of 0.1 m about 0.12 m apart, with two joints between: proven on the balls themselves."""
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    ball, limit = shape("<sphere radius='0.1'/>"), "<limit lower='-0.3' upper='0.3'/>"
    (tmp_path / "r.urdf").write_text(
        robot(
            link("a", ball), link("b", ""), link("c", ball),
            joint("ab", "revolute", "a", "b", limit, xyz="0 0 0.05"),
            joint("bc", "revolute", "b", "c", limit, xyz="0 0 0.07"),
        )
    )  # fmt: skip
    (tmp_path / "robot.yaml").write_text(
        "{name: balls, root_link: a, joints: [{name: ab, role: arm}, {name: bc, role: arm}],"
        " fitted_links: {a: capsule, c: capsule},"
        " source: {package: none, version: '1', path: r.urdf, licence: CC0-1.0, format: urdf}}"
    )
    lowered = lower_robot(tmp_path)
    show_fitted(lowered, None)
    assert "a and c" in (said := capsys.readouterr().out) and "overlaps in every pose" in said
    description = lowered.description
    (row,) = description.disabled_pairs
    assert (row.link_a, row.link_b) == ("a", "c") and row.reason.startswith(
        "always overlapping: proven on the primitives"
    )
    assert {piece.kind for g in description.geometry.values() for piece in g.pieces} <= {"sphere", "capsule"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> CollisionFile:
    """The file of one link that a chain of two capsules stands for, and another of one."""
    folder = tmp_path_factory.mktemp("written")
    (folder / "r.urdf").write_text(
        robot(
            link("bend", tube(0.3, "0 0 0.15") + tube(0.2, "0 0.1 0.3", "1.5707963 0 0")),
            link("rod", tube(0.25, "0 0 0.14")),
            joint("turn", "revolute", "bend", "rod", LIMIT, xyz="0 0.3 0.3"),
        )
    )
    (folder / "robot.yaml").write_text(
        "{name: bent, root_link: bend, joints: [{name: turn, role: arm}], fitted_links: {bend: chain2, rod: capsule},"
        " source: {path: r.urdf, licence: CC0-1.0, format: urdf}}"
    )
    (folder / "collision.json").write_text(lower_robot(folder).text)
    return parse_collision_file((folder / "collision.json").read_text(), folder / "collision.json", "bent")


def changed(collision: CollisionFile, link_name: str, index: int, **parts: object) -> CollisionFile:
    entry = collision.geometry[link_name]
    pieces = [p.model_copy(update=parts) if k == index else p for k, p in enumerate(entry.pieces)]
    return collision.model_copy(
        update={"geometry": {**collision.geometry, link_name: entry.model_copy(update={"pieces": pieces})}}
    )


def test_a_smaller_ball_is_called_looser_by_how_much(written: CollisionFile) -> None:
    radius = written.geometry["rod"].pieces[0].radius_nm
    assert radius is not None and differences(written, written) == []
    (sentence,) = differences(changed(written, "rod", 0, radius_nm=radius - 2_000_000), written)
    assert "geometry of rod differs; looser: the committed pieces cover" in sentence
    assert float(sentence.split("cover ")[1].split(" mm less")[0]) == pytest.approx(2.0, abs=0.02)
    (back,) = differences(written, changed(written, "rod", 0, radius_nm=radius - 2_000_000))
    assert "looser" not in back and "cover 0.000000 mm less" in back
    (shorter,) = differences(
        changed(written, "rod", 0, vertices_nm=[written.geometry["rod"].pieces[0].vertices_nm[0]] * 2), written
    )
    assert "looser" in shorter


Edit = Callable[[dict[str, Any]], Any]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda piece: piece.update(radius_nm=-1), ("rod", "radius_nm", "greater than 0")),
        (lambda piece: piece.update(radius_nm=0), ("rod", "radius_nm", "greater than 0")),
        (lambda piece: piece.update(radius_nm=1.5), ("rod", "radius_nm", "integer")),
        (lambda piece: piece.update(radius_nm=10**400), ("rod", "radius_nm")),
        (lambda piece: piece["vertices_nm"].__setitem__(0, [10**400, 0, 0]), ("rod", "vertices_nm")),
        (lambda piece: piece.pop("radius_nm"), ("rod", "(4..1024, 3)", "(2, 3)")),
        (
            lambda piece: piece.update(vertices_nm=[[0, 0, 0], [1, 0, 0], [0, 1, 0]]),
            ("rod", "with a ball", "(1..2, 3)"),
        ),
        (lambda piece: piece.update(vertices_nm=[]), ("rod",)),
        (lambda piece: piece.update(vertices_nm=[piece["vertices_nm"][0]] * 2), ("rod", "one point", "sphere")),
        (lambda piece: piece.update(radius_nm=piece["radius_nm"] + 10), ("rod", "the capsule stands", "26-DOP")),
        (lambda piece: piece["box"]["half"].__setitem__(1, 0.01), ("rod", "out of its box")),
    ],
    ids=[
        "negative",
        "zero",
        "fraction",
        "huge",
        "far",
        "lost",
        "triangle",
        "none",
        "one-point",
        "out-of-dop",
        "out-of-box",
    ],
)
def test_a_damaged_ball_is_refused_by_file_and_element(
    built: tuple[Path, LoweredRobot], tmp_path: Path, edit: Edit, words: tuple[str, ...]
) -> None:
    folder, data = declare(tmp_path, fitted_links=KINDS), json.loads(built[1].text)
    path = folder / "collision.json"
    edit(data["geometry"]["rod"]["pieces"][0])
    path.write_text(json.dumps(data))
    with pytest.raises(DescriptionError) as caught:
        load_description(folder)
    assert all(word in str(caught.value) for word in words), caught.value
    assert str(folder) in str(caught.value) and "simulo lower" in str(caught.value)


def test_a_ball_out_of_the_hull_around_the_chain_is_refused() -> None:
    ends = np.array([[0.0, 0.0, 0.0], [0.2, 0.0, 0.0]])
    pieces = (ball_piece(ends, 0.05), ball_piece(ends + np.array([0.0, 0.1, 0.0]), 0.05))
    corners = np.array([[x, y, z] for x in (-0.06, 0.26) for y in (-0.06, 0.16) for z in (-0.06, 0.06)])
    refuse_unproven_geometry(LinkGeometry("l", pieces, fit_piece(corners, "l")), "l", "r")
    tight = fit_piece(corners * (1.0, 1.0, 49.0 / 60.0), "l")  # a millimetre less than the balls along z
    with pytest.raises(DescriptionError, match="piece 0 stands 99.* nm out of the link's hull"):
        refuse_unproven_geometry(LinkGeometry("l", pieces, tight), "l", "r")
    with pytest.raises(DescriptionError, match="a capsule is no hull of several pieces"):
        refuse_unproven_geometry(LinkGeometry("l", pieces, ball_piece(ends, 0.3)), "l", "r")
    for radius in (-0.05, float("nan"), float("inf")):
        broken = replace(pieces[0], radius=radius)
        with pytest.raises(DescriptionError, match="radius must be finite and not negative"):
            refuse_unproven_geometry(LinkGeometry("l", (broken,), broken), "l", "r")


def test_what_stands_out_of_balls_is_counted() -> None:
    """A bar whose corners lie in two balls and whose middle in none; a longer pair of capsules holds it."""
    bar = trimesh.creation.box(bounds=[[-0.2, -0.01, -0.01], [0.2, 0.01, 0.01]])

    def of(*pieces: ConvexPiece) -> dict[str, int]:
        return coverage({"bar": bar}, {"bar": LinkGeometry("bar", pieces, pieces[0])})

    balls = [ball_piece(np.array([[x, 0.0, 0.0]]), 0.05) for x in (-0.19, 0.19)]
    assert of(*balls) == {"vertices": 8, "vertices_outside": 0, "triangles": 12, "triangles_outside": 8}
    assert of(balls[0])["vertices_outside"] == 4 and of(balls[0])["triangles_outside"] == 10

    def half(low: float, high: float) -> ConvexPiece:
        return ball_piece(np.array([[low, 0.0, 0.0], [high, 0.0, 0.0]]), 0.02)

    assert of(half(-0.19, 0.0), half(0.0, 0.19))["triangles_outside"] == 0
    assert of(half(-0.19, 0.01), half(-0.01, 0.19))["triangles_outside"] == 0
    # The balls meet in a circle of 14.1 mm about the bar where they are 28.3 mm apart, the bar's corners' own distance.
    assert of(half(-0.19, -0.014), half(0.014, 0.19))["triangles_outside"] == 0
    assert of(half(-0.19, -0.0144), half(0.0144, 0.19))["triangles_outside"] == 8


def test_the_page_of_a_fitted_robot_shows_its_balls(built: tuple[Path, LoweredRobot]) -> None:
    assert "5 convex pieces" in robot_page(load_description(built[0]))


corner = st.tuples(*[st.floats(-0.15, 0.15, allow_subnormal=False)] * 3)


@settings(max_examples=6, deadline=None)
@given(st.lists(corner, min_size=5, max_size=9, unique=True), st.sampled_from(list(RULES)))
def test_whatever_is_fitted_holds_the_mesh_and_its_own_certificate(corners, rule) -> None:
    points = np.array(corners)
    centred = points - points.mean(axis=0)
    if np.linalg.svd(centred)[1][-1] < 5e-3:  # flat: refused before it is fitted
        return
    mesh = trimesh.convex.convex_hull(points)
    found = link_candidates(mesh)
    assert choose(found, rule) in found
    for candidate in found:
        geometry = fitted_link(candidate, "any", mesh)
        refuse_unproven_geometry(geometry, "any", "r")
        assert depth(geometry, np.asarray(mesh.vertices)).min() >= ROOM
        assert depth(geometry, samples(mesh, 2000)).min() >= ROOM
        assert coverage({"any": mesh}, {"any": geometry})["triangles_outside"] == 0
