"""`simulo lower --check`: committed files are what the lowering gives, and a looser geometry is called looser."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from simulo.cli.lower import check_all, lower_command
from simulo.description.files import BoxEntry, CollisionFile, GeometryEntry, PieceEntry, parse_collision_file
from simulo.lowering.compare import differences
from simulo.paths import data_path
from tests.lowering.urdf_text import link, robot

COMMITTED = data_path("robots") / "openarm" / "collision.json"


@pytest.fixture(scope="module")
def committed() -> CollisionFile:
    return parse_collision_file(COMMITTED.read_text(), COMMITTED, "openarm")


def changed(collision: CollisionFile, **parts: object) -> CollisionFile:
    return collision.model_copy(update=parts)


@pytest.mark.slow
def test_committed_openarm_is_what_the_lowering_gives(tmp_path: Path) -> None:
    assert lower_command("openarm", None, tmp_path) == 0
    assert (tmp_path / "collision.json").read_bytes() == COMMITTED.read_bytes()


def test_check_says_what_is_missing_the_same_or_looser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A robot of one box, lowered, checked, and checked again after a corner of its hull was pulled in."""
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    (tmp_path / "r.urdf").write_text(robot(link("a")))
    (tmp_path / "robot.yaml").write_text(
        "{name: tiny, root_link: a, joints: [],"
        " source: {package: none, version: '1', path: r.urdf, licence: CC0-1.0, format: urdf}}"
    )
    folder, written = str(tmp_path), tmp_path / "collision.json"
    assert lower_command(folder, check=True) == 1
    assert "is missing" in capsys.readouterr().err
    assert lower_command(folder, check=False) == 0
    assert lower_command(folder, check=True) == 0
    assert "byte for byte" in capsys.readouterr().out
    before = written.read_text()
    written.write_text(before.replace("[10000004,10000004,50000020]", "[10000004,10000004,49000020]"))
    damaged = written.read_text()
    assert damaged != before
    assert lower_command(folder, check=True) == 1
    assert "geometry of a differs; looser: the committed pieces cover" in capsys.readouterr().err
    assert written.read_text() == damaged


def test_nothing_differs_from_itself(committed: CollisionFile) -> None:
    assert differences(committed, committed) == []


def test_a_shrunken_hull_is_called_looser(committed: CollisionFile) -> None:
    """One vertex of the forearm pulled 10 mm inwards: the committed hull would lose part of the mesh."""
    link = "openarm_left_link4"
    piece = committed.geometry[link].pieces[0]
    corners = np.array(piece.vertices_nm)
    tip = int(np.argmin(corners[:, 2]))
    corners[tip, 2] += 10_000_000
    shrunk = piece.model_copy(update={"vertices_nm": [tuple(row) for row in corners.tolist()]})
    entry = committed.geometry[link].model_copy(update={"pieces": [shrunk]})
    loose = changed(committed, geometry={**committed.geometry, link: entry})
    (sentence,) = differences(loose, committed)
    assert f"geometry of {link} differs" in sentence
    lost = float(sentence.split("cover ")[1].split(" mm less")[0])
    assert 0.0 < lost <= 10.0


def box_entry(low: tuple[float, float, float], high: tuple[float, float, float]) -> PieceEntry:
    """A piece of which only the corners matter, from metres."""
    corners = [tuple(round(1e9 * x) for x in corner) for corner in product(*zip(low, high, strict=True))]
    box = BoxEntry(position=(0, 0, 0), orientation_wxyz=(1, 0, 0, 0), half=(1, 1, 1))
    return PieceEntry(box=box, dop_nm=[], vertices_nm=corners)


@pytest.mark.parametrize("gap", [0.0, 0.004], ids=["whole", "gap"])
def test_a_gap_between_pieces_is_looser_though_their_hull_is_the_same(committed: CollisionFile, gap: float) -> None:
    """Two halves of a bar 200 mm long, and the same pulled apart: its middle is then gap / 2 from either."""
    link = "openarm_left_link4"
    halves = [box_entry((-0.1, -0.01, -0.01), (0, 0.01, 0.01)), box_entry((0, -0.01, -0.01), (0.1, 0.01, 0.01))]
    apart = [
        box_entry((-0.1, -0.01, -0.01), (-gap / 2, 0.01, 0.01)),
        box_entry((gap / 2, -0.01, -0.01), (0.1, 0.01, 0.01)),
        box_entry((-0.1, -0.01, -0.01), (-0.09, 0.01, 0.01)),
    ]
    whole, torn = (
        changed(committed, geometry={**committed.geometry, link: GeometryEntry(pieces=pieces)})
        for pieces in (halves, apart)
    )
    (sentence,) = differences(torn, whole)
    assert sentence.endswith("3 pieces against 2")
    assert ("looser" in sentence) == (gap > 0)
    assert f"cover {500 * gap:.6f} mm less" in sentence
    (back,) = differences(whole, torn)
    assert "looser" not in back and "cover 0.000000 mm less" in back


def test_missing_links_rows_and_joints_are_named(committed: CollisionFile) -> None:
    link = "openarm_left_link4"
    fewer = changed(committed, geometry={k: v for k, v in committed.geometry.items() if k != link})
    assert differences(fewer, committed) == [f"geometry of {link} is missing"]
    assert differences(committed, fewer) == [f"geometry of {link} should not be there"]
    row = committed.exempt_pairs[0]
    named = f"pair {row.links[0]}, {row.links[1]} ({row.reason})"
    fewer_rows = changed(committed, exempt_pairs=committed.exempt_pairs[1:])
    assert differences(committed, fewer_rows) == [f"looser: {named} is exempt and should be checked"]
    assert differences(fewer_rows, committed) == [f"{named} should be exempt"]
    turned = changed(committed, exempt_pairs=committed.exempt_pairs[::-1])
    assert differences(turned, committed) == ["exempt_pairs are in another order"]
    assert differences(changed(committed, joints=committed.joints[1:]), committed) == ["joints differ"]


def test_all_robots_are_checked_and_one_difference_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    (tmp_path / "r.urdf").write_text(robot(link("a")))
    folders = [tmp_path / name for name in ("first", "second", "third")]
    for folder, geometry in zip(folders, ("committed", "committed", "on_request"), strict=True):
        folder.mkdir()
        (folder / "robot.yaml").write_text(
            f"{{name: {folder.name}, root_link: a, joints: [], geometry: {geometry},"
            " source: {package: none, version: '1', path: r.urdf, licence: CC0-1.0, format: urdf}}"
        )
    for folder in folders[:2]:
        assert lower_command(str(folder), check=False) == 0
    monkeypatch.setattr("simulo.description.list_robots", lambda: [str(folder) for folder in folders])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert check_all() == 0
    said = capsys.readouterr().out
    assert said.count("byte for byte") == 2 and "third: made on request, and not here" in said
    (folders[0] / "collision.json").unlink()
    assert check_all() == 1
    assert "first" in capsys.readouterr().err
