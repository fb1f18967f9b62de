"""Cuts that were asked for on the command line and those of robot.yaml: which of them a loaded robot was lowered to."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from simulo.cli import app
from simulo.description import load_description
from simulo.errors import DescriptionError
from tests.lowering.test_fitted_links import declare


def lowered(folder: Path, *options: str) -> str:
    result = CliRunner().invoke(app, ["lower", str(folder), *options], env={"COLUMNS": "250"})
    assert result.exit_code == 0, result.output
    return (folder / "collision.json").read_text()


def pieces(folder: Path) -> dict[str, int]:
    return {link: len(geometry.pieces) for link, geometry in load_description(folder).geometry.items()}


def edit(folder: Path, **entries: object) -> None:
    path = folder / "robot.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | entries))


def test_what_the_command_line_asked_for_loads_and_is_on_record(tmp_path: Path) -> None:
    folder = declare(tmp_path, decompose={"bend": 2})
    options = ("--decompose", "bend=3", "--fit", "tip=box", "--tight-link", "rod=2")
    text = lowered(folder, *options)
    assert pieces(folder) == {"base": 1, "bend": 3, "rod": 2, "tip": 1}
    assert list(json.loads(text)["asked_cuts"]) == ["bend", "rod", "tip"]
    assert lowered(folder, *options[4:], *options[:4]) == text, "in any order"
    lowered(folder, *options, "--check")
    result = CliRunner().invoke(app, ["lower", str(folder), "--check"], env={"COLUMNS": "250"})
    assert result.exit_code == 1 and "asked_cuts differ" in result.output
    assert "asked_cuts" not in lowered(folder)
    assert pieces(folder)["bend"] == 2


def test_what_robot_yaml_says_too_is_no_override(tmp_path: Path) -> None:
    folder = declare(tmp_path, decompose={"bend": 2}, fitted_links={"tip": "box"})
    assert lowered(folder, "--decompose", "bend=2", "--fit", "tip=box", "--tight-link", "rod=1") == lowered(folder)


@pytest.fixture(scope="module")
def cut_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """collision.json where robot.yaml cuts the bend in two pieces, and the command line the rod in two slabs."""
    folder = declare(tmp_path_factory.mktemp("cut"), decompose={"bend": 2})
    text = lowered(folder, "--tight-link", "rod=2")
    assert pieces(folder) == {"base": 1, "bend": 2, "rod": 2, "tip": 1}
    return text


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"decompose": {"bend": 3}}, r"'bend' was lowered to 2 piece\(s\), but robot.yaml now asks for it as 3 pieces"),
        ({"decompose": {}}, r"'bend' was lowered to 2 piece\(s\), .* as one hull; run `simulo lower elbows` again"),
        ({"decompose": {}, "tight_links": {"bend": 3}}, "as 3 slabs"),
        ({"decompose": {}, "fitted_links": {"bend": "chain2"}}, "'bend' .* as fitted with chain2"),
        ({"fitted_links": {"base": "capsule"}}, "'base' .* as fitted with capsule"),
        ({"fitted_links": {"tip": "box"}}, "'tip' .* as fitted with box"),
    ],
)
def test_a_cut_that_robot_yaml_was_given_later_is_refused(
    tmp_path: Path, cut_text: str, entries: dict[str, object], words: str
) -> None:
    folder = declare(tmp_path, **({"decompose": {"bend": 2}} | entries))
    (folder / "collision.json").write_text(cut_text)
    with pytest.raises(DescriptionError, match=words):
        load_description(folder)


def test_primitives_other_than_those_asked_for_are_refused(tmp_path: Path) -> None:
    folder = declare(tmp_path, fitted_links={"rod": "capsule", "bend": "M"})
    lowered(folder)
    load_description(folder)
    for kind in ("box", "chain2", "chain3"):
        edit(folder, fitted_links={"rod": kind, "bend": "M"})
        with pytest.raises(DescriptionError, match=f"'rod' .* as fitted with {kind}"):
            load_description(folder)
    edit(folder, fitted_links={"bend": "M"})
    with pytest.raises(DescriptionError, match="'rod' .* as one hull"):
        load_description(folder)


def test_a_record_that_the_geometry_does_not_bear_out_is_refused(tmp_path: Path, cut_text: str) -> None:
    folder, data = declare(tmp_path, decompose={"bend": 2}), json.loads(cut_text)
    path = folder / "collision.json"
    path.write_text(json.dumps(data | {"asked_cuts": {"rod": {"slabs": 4}}}))
    with pytest.raises(DescriptionError, match=r"'rod' was lowered to 2 piece\(s\), but the command line asked"):
        load_description(folder)
    path.write_text(json.dumps(data | {"asked_cuts": {"rod": {"parts": 2}}}))
    with pytest.raises(DescriptionError, match="parts"):
        load_description(folder)
