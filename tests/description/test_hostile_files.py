"""A robot's two files from anybody: what would hang a reader or end it is refused by file and remedy, at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulo.description.files import parse_collision_file, parse_robot_file
from simulo.errors import DescriptionError

HERE = Path("somewhere") / "robot.yaml"
LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(9 * [f'*{a}'])}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)

YAML = {
    "nested": (100_000 * "[", "not valid YAML", "correct the entry"),
    "large": ("# " + 2_000_000 * "x" + "\nname: arm\n", "over the limit", "right file"),
    "laughs": (LAUGHS, "a: Extra inputs", "correct the entry"),
    "runs-a-program": ("x: !!python/object/apply:os.system ['true']\n", "not valid YAML", "correct the entry"),
    "a-tab": ("name: arm\n\tsource: x\n", "not valid YAML", "correct the entry"),
    "a-list": ("- name\n", "the whole file", "correct the entry"),
    "empty": ("", "the whole file", "correct the entry"),
}
JSON = {
    "nested": (200_000 * "[", "corrupt or cut short", "simulo lower arm"),
    "nan": ('{"format": 1, "links": NaN}', "NaN is not a finite number", "simulo lower arm"),
    "twice": ('{"format": 1, "format": 1}', "'format' is given twice", "simulo lower arm"),
    "another-format": ('{"format": 99}', "format is 99", "simulo lower arm"),
    "a-list": ("[]", "the whole file", "simulo lower arm"),
}


@pytest.mark.parametrize(("text", "element", "remedy"), YAML.values(), ids=YAML.keys())
def test_a_hostile_robot_yaml_is_refused(text: str, element: str, remedy: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        parse_robot_file(text, HERE)
    assert all(words in str(caught.value) for words in (str(HERE), element, remedy))


@pytest.mark.parametrize(("text", "element", "remedy"), JSON.values(), ids=JSON.keys())
def test_a_hostile_collision_json_is_refused(text: str, element: str, remedy: str) -> None:
    path = HERE.with_name("collision.json")
    with pytest.raises(DescriptionError) as caught:
        parse_collision_file(text, path, "arm")
    assert all(words in str(caught.value) for words in (str(path), element, remedy))
