"""Result files are written whole or not at all."""

import json
from pathlib import Path

import pytest

from simulo.files import write_json, write_text


def test_written_with_the_folder_it_needs(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a" / "b.json", {"rate": None, "n": [1, 2.5]})
    assert json.loads(path.read_text()) == {"rate": None, "n": [1, 2.5]}
    assert [p.name for p in path.parent.iterdir()] == ["b.json"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_a_value_json_has_no_name_for_leaves_the_old_file(tmp_path: Path, value: object) -> None:
    path = write_json(tmp_path / "figures.json", {"old": 1})
    with pytest.raises((ValueError, TypeError)):
        write_json(path, {"new": value})
    assert json.loads(path.read_text()) == {"old": 1}


def test_a_failed_write_leaves_the_old_file_and_no_scrap(tmp_path: Path) -> None:
    path = write_text(tmp_path / "page.html", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new " * 100_000 + "\ud800")  # a lone surrogate: fails after megabytes were written
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
