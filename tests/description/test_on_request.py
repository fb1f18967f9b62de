"""Geometry that each user lowers into a cache, since no package ships the model; and who ships the rest."""

from importlib import metadata
from pathlib import Path

import pytest

from simulo.description import list_robots, load_description
from simulo.description.load import geometry_path, load_robot_file
from simulo.description.registry import robot_folder
from simulo.description.sources import resolve_files, resolve_model
from simulo.errors import DescriptionError, ModelSourceError, NotLoweredError
from simulo.lowering import lower_robot

ON_REQUEST = {"ur10e", "rizon4", "openarm_v1"}

URDF = """<robot name="r"><link name="base"><visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual></link>
<link name="arm"><visual><origin xyz="0 0 0.3"/><geometry><box size="0.1 0.1 0.4"/></geometry></visual></link>
<link name="tip"><visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual></link>
<joint name="turn" type="continuous"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.1"/></joint>
<joint name="nod" type="continuous"><parent link="arm"/><child link="tip"/><origin xyz="0 0 0.6"/></joint></robot>"""
YAML = """
name: r
source: {package: none, version: "0", path: r/r.urdf, licence: none, format: urdf}
root_link: base
geometry: on_request
joints: [{name: turn, role: arm}, {name: nod, role: arm}]
"""


@pytest.fixture
def robot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "r.urdf").write_text(URDF)
    (tmp_path / "r" / "robot.yaml").write_text(YAML)
    return tmp_path / "r"


def lower_into_its_place(robot: Path) -> Path:
    place = geometry_path(robot)
    place.parent.mkdir(parents=True)
    place.write_text(lower_robot(robot).text)
    return place


def test_it_is_refused_until_it_is_lowered_and_then_read_from_the_cache(robot: Path) -> None:
    with pytest.raises(NotLoweredError, match=f"'r' is not lowered .*run `simulo lower {robot}`") as caught:
        load_description(robot)
    assert caught.value.robot == str(robot)
    place = lower_into_its_place(robot)
    assert robot not in place.parents
    assert place.is_relative_to(robot.parent / "cache" / "simulo")
    assert load_description(robot).links == ("base", "arm", "tip")


def test_a_changed_description_makes_it_unlowered_again(robot: Path) -> None:
    lower_into_its_place(robot)
    (robot / "robot.yaml").write_text(YAML + "tight_links: {arm: 2}\n")
    with pytest.raises(NotLoweredError):
        load_description(robot)


def test_a_relative_cache_is_no_cache(robot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The XDG base directories say so: it would depend on the working directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    assert geometry_path(robot).is_relative_to(Path.home() / ".cache" / "simulo")


def test_no_geometry_is_committed_of_what_no_package_ships() -> None:
    on_request = {name for name in list_robots() if load_robot_file(name).geometry == "on_request"}
    assert on_request == ON_REQUEST
    for name in on_request:
        assert not (robot_folder(name) / "collision.json").exists()


@pytest.mark.parametrize("name", sorted(set(list_robots()) - ON_REQUEST - {"gantry"}))
def test_every_committed_robot_says_where_it_is_from_and_under_what_licence(name: str) -> None:
    text = (robot_folder(name) / "README.md").read_text()
    description = load_description(name)
    for source in (description.source, *(part.source for part in description.source.attached)):
        assert source.package in text
        assert source.version in text
        assert source.licence in text


def test_a_package_of_the_right_version_is_found_by_the_files_in_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("SIMULO_MODEL_PATH", "MENAGERIE_ROOT"):
        monkeypatch.delenv(variable, raising=False)
    for name in ("franka_panda", "h1", "g1", "ur5e_2f85", "so100", "robotiq_2f85_urdf"):
        source = load_description(name).source
        files = resolve_files(source)
        assert metadata.version(source.package) == source.version
        assert files.path.as_posix().endswith(source.path)
        assert [file.path.name for file in files.attached] == ["2f85.xml"] * (name == "ur5e_2f85")


def test_an_unknown_attachment_is_refused_by_name(robot: Path) -> None:
    wrong = YAML.replace("format: urdf}", "format: urdf, attached: [{site: s, prefix: p_}]}")
    (robot / "robot.yaml").write_text(wrong)
    with pytest.raises(DescriptionError, match=r"source\.attached\[0\]\.source: Field required"):
        load_description(robot)


def test_the_root_variables_come_before_a_package(robot: Path) -> None:
    assert resolve_model(lower_robot(robot).description.source) == robot / "r.urdf"


def test_a_lowering_takes_the_pinned_package_before_a_copy_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies may be rounded otherwise. A simulation, and whoever sets SIMULO_MODEL_PATH, take the copy."""
    source = load_description("robotiq_2f85").source
    monkeypatch.delenv("SIMULO_MODEL_PATH", raising=False)
    monkeypatch.delenv("MENAGERIE_ROOT", raising=False)
    packaged = resolve_model(source)
    copy = tmp_path / source.path
    copy.parent.mkdir()
    copy.write_bytes(packaged.read_bytes())
    monkeypatch.setenv("MENAGERIE_ROOT", str(tmp_path))
    assert resolve_model(source) == copy
    assert resolve_model(source, pinned=True) == packaged
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    assert resolve_model(source, pinned=True) == copy


def test_a_repository_that_is_not_there_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIMULO_MODEL_PATH", raising=False)
    monkeypatch.delenv("MENAGERIE_ROOT", raising=False)
    with pytest.raises(ModelSourceError, match=r"(?s)396c88d.*Put that repository's files into a folder 'openarm_v1'"):
        lower_robot("openarm_v1")
