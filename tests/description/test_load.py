"""Loading a robot, and everything that keeps a bad one from loading."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pytest import param as case

from simulo.description import load_description
from simulo.description.sources import resolve_model
from simulo.errors import DescriptionError, ModelSourceError
from simulo.paths import data_path

LEFT = "openarm_left"
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of OpenArm to damage."""
    return Path(shutil.copytree(data_path("robots") / "openarm", tmp_path / "openarm"))


def edit_yaml(folder: Path, edit: Edit) -> None:
    path = folder / "robot.yaml"
    data = yaml.safe_load(path.read_text())
    edit(data)
    path.write_text(yaml.safe_dump(data))


def edit_json(folder: Path, edit: Edit) -> None:
    path = folder / "collision.json"
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))


def refusal(folder: Path) -> str:
    with pytest.raises(DescriptionError) as caught:
        load_description(folder)
    return str(caught.value)


def test_openarm_is_as_published() -> None:
    robot = load_description("openarm")
    sides = [f"openarm_{side}_" for side in ("left", "right")]
    arm = [*(f"joint{i}" for i in range(1, 8)), "finger_joint1"]
    assert robot.joint_names == tuple(side + name for side in sides for name in arm)
    assert [m.name for m in robot.mimic_joints] == [side + "finger_joint2" for side in sides]
    links = ["base_link", *(f"link{i}" for i in range(1, 7)), "ee_base_link", "ee_inner_finger", "ee_outer_finger"]
    assert robot.links == ("openarm_body_link0", *(side + name for side in sides for name in links))
    assert [g.name for g in robot.grippers] == ["left", "right"]
    assert robot.gripper("left").grasp_contact_links == (f"{LEFT}_ee_inner_finger", f"{LEFT}_ee_outer_finger")
    assert (robot.gripper("left").open_position, robot.gripper("right").open_position) == (0.7854, -0.7854)
    with pytest.raises(KeyError, match="it has: left, right"):
        robot.gripper("middle")


def test_a_description_cannot_be_changed() -> None:
    robot = load_description("openarm")
    with pytest.raises(AttributeError):
        robot.name = "other"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        robot.geometry["openarm_body_link0"].hull.vertices[0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        robot.rest_pose[0] = 1.0


def test_digest_follows_both_files(copy: Path) -> None:
    before = load_description(copy).digest
    assert before == load_description("openarm").digest
    (copy / "robot.yaml").write_text((copy / "robot.yaml").read_text() + "# a remark\n")
    assert load_description(copy).digest != before


def test_a_folder_and_a_file_name_the_same_robot(copy: Path) -> None:
    assert load_description(copy).digest == load_description(copy / "robot.yaml").digest


def test_unknown_robot_lists_the_known_ones() -> None:
    with pytest.raises(DescriptionError, match=r"unknown robot 'openram': did you mean 'openarm'\?.*known robots are"):
        load_description("openram")


def test_a_robot_that_is_not_lowered_names_the_command(copy: Path) -> None:
    (copy / "collision.json").unlink()
    assert "run `simulo lower" in refusal(copy)


@pytest.mark.parametrize("kept", [0, 1, 1000, 300_000])
def test_a_truncated_file_is_refused(copy: Path, kept: int) -> None:
    path = copy / "collision.json"
    path.write_text(path.read_text()[:kept])
    message = refusal(copy)
    assert str(path) in message and "simulo lower" in message


def test_a_file_that_is_not_text_is_refused(copy: Path) -> None:
    (copy / "collision.json").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in refusal(copy)


def piece(data: dict[str, Any], link: str = f"{LEFT}_link4") -> dict[str, Any]:
    return data["geometry"][link]["pieces"][0]


def elbow(data: dict[str, Any]) -> dict[str, Any]:
    return data["joints"][3]


def pull_a_piece_out_of_the_torso(data: dict[str, Any]) -> None:
    torso = data["geometry"]["openarm_body_link0"]
    torso["hull"] = torso["pieces"][1]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        case(lambda d: d.update(format=2), ("format is 2",), id="format"),
        case(lambda d: d.update(surprise=1), ("surprise",), id="unknown-field"),
        case(lambda d: d.pop("joints"), ("joints", "required"), id="missing-field"),
        case(lambda d: elbow(d).update(lower=float("nan")), ("NaN",), id="nan"),
        case(lambda d: elbow(d).update(upper=float("inf")), ("Infinity",), id="infinity"),
        case(lambda d: elbow(d).update(type="ball"), (f"{LEFT}_joint4", "type"), id="joint-type"),
        case(lambda d: elbow(d).update(axis=[0, 1]), (f"{LEFT}_joint4", "axis"), id="axis-shape"),
        case(lambda d: elbow(d).update(axis=[0, 2, 0]), (f"{LEFT}_joint4", "unit"), id="axis-length"),
        case(lambda d: elbow(d).update(lower=3.0), (f"{LEFT}_joint4", "limits"), id="limits"),
        case(lambda d: elbow(d).pop("upper"), (f"{LEFT}_joint4", "finite"), id="no-limit"),
        case(lambda d: elbow(d).update(child="ghost"), (f"{LEFT}_joint4", "'ghost'"), id="unknown-link"),
        case(
            lambda d: elbow(d).update(child=f"{LEFT}_link3"),
            (f"{LEFT}_link3", f"{LEFT}_joint3", f"{LEFT}_joint4", "two edges"), id="two-edges",
        ),
        case(lambda d: d["fixed_attachments"].pop(), ("openarm_right_base_link", "unreachable"), id="unreachable"),
        case(lambda d: d["links"].append("island"), ("'island'", "no edge"), id="island"),
        case(lambda d: d["links"].append(d["links"][3]), (f"{LEFT}_link2", "unique"), id="link-twice"),
        case(lambda d: d["mimic_joints"][0].update(multiplier=0.5), ("finger_joint2", "0.5"), id="relation"),
        case(lambda d: d.update(robot="other"), ("name", "'other'", "'openarm'"), id="another-robot"),
        case(lambda d: d["source"].update(version="1"), ("source",), id="another-source"),
        case(lambda d: d["joints"].pop(), ("joints", "simulo lower"), id="joint-lost"),
        case(lambda d: d["exempt_pairs"][0].update(links=["a", "b"]), ("'a'",), id="pair-unknown"),
        case(lambda d: d["exempt_pairs"].append(d["exempt_pairs"][0]), ("twice",), id="pair-twice"),
        case(lambda d: d["exempt_pairs"][0].update(reason=""), ("reason",), id="pair-unreasoned"),
        case(lambda d: d["geometry"].pop(f"{LEFT}_ee_outer_finger"), ("ee_outer_finger", "no geometry"), id="bare"),
        case(lambda d: d["swept"].pop("left"), ("'left'", "swept"), id="no-swept"),
        case(lambda d: d["geometry"][f"{LEFT}_link4"].update(pieces=[]), ("pieces",), id="no-pieces"),
        case(lambda d: piece(d).update(vertices_nm=[[0, 0]]), ("vertices_nm",), id="vertex-shape"),
        case(lambda d: piece(d).update(vertices_nm=[[0, 0, 0]] * 3), ("link4", "(4..1024, 3)"), id="few-vertices"),
        case(
            lambda d: piece(d).update(vertices_nm=[[0, 0, 0], [9, 0, 0], [0, 9, 0], [9, 9, 0]]),
            ("link4", "no volume"), id="flat",
        ),
        case(lambda d: piece(d)["dop_nm"].pop(), ("link4", "(13, 2)"), id="dop-shape"),
        case(lambda d: piece(d)["vertices_nm"][7].__setitem__(0, 10**9), ("link4", "26-DOP"), id="hull-out-of-dop"),
        case(lambda d: piece(d)["box"]["half"].__setitem__(1, 0.001), ("link4", "box"), id="dop-out-of-box"),
        case(
            lambda d: d["geometry"].pop(f"{LEFT}_link3"), (f"{LEFT}_link3", "has no geometry", "simulo lower"),
            id="geometry-lost",
        ),
        case(lambda d: d.update(bare_links=[f"{LEFT}_link3"]), (f"{LEFT}_link3", "bare"), id="bare-with-geometry"),
        case(
            lambda d: elbow(d)["origin"].update(orientation_wxyz=[0, 0, 0, 0]),
            (f"{LEFT}_joint4", "orientation_wxyz", "names no rotation"), id="no-rotation",
        ),
        case(pull_a_piece_out_of_the_torso, ("openarm_body_link0", "piece 0", "link's hull"), id="piece-out-of-hull"),
    ],
)  # fmt: skip
def test_a_damaged_collision_file_is_refused_by_name(copy: Path, edit: Edit, words: tuple[str, ...]) -> None:
    edit_json(copy, edit)
    message = refusal(copy)
    for word in (*words, str(copy)):
        assert word in message


def gripper(data: dict[str, Any]) -> dict[str, Any]:
    return data["grippers"][0]


def mimic(data: dict[str, Any]) -> dict[str, Any]:
    return data["mimic_joints"][0]


def pad(data: dict[str, Any]) -> dict[str, Any]:
    return gripper(data)["pad_points"][0]


def pair(a: str, b: str, reason: str = "measured") -> Edit:
    return lambda data: data.update(disabled_pairs=[{"links": [a, b], "reason": reason}])


MIMIC = f"{LEFT}_finger_joint2"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        case(lambda d: d["joints"][0].update(role="wing"), (f"{LEFT}_joint1", "role"), id="role"),
        case(lambda d: d.pop("source"), ("source", "required"), id="missing-field"),
        case(lambda d: d.update(colour="red"), ("colour",), id="unknown-field"),
        case(lambda d: d["joints"].append(d["joints"][0]), ("joints",), id="joint-twice"),
        case(lambda d: mimic(d).update(multiplier=0.0), (MIMIC, "multiplier 0.0"), id="mimic-zero"),
        case(lambda d: mimic(d).update(multiplier=float("nan")), (MIMIC, "multiplier"), id="mimic-nan"),
        case(lambda d: mimic(d).update(offset=float("inf")), (MIMIC, "offset"), id="mimic-infinite"),
        case(lambda d: mimic(d).update(mimics=MIMIC), (MIMIC, "circle"), id="mimic-itself"),
        case(lambda d: mimic(d).update(mimics="ghost"), (MIMIC, "'ghost'", "not an actuated"), id="mimic-ghost"),
        case(lambda d: mimic(d).update(name=f"{LEFT}_joint1"), (f"{LEFT}_joint1", "not both"), id="mimic-and-joint"),
        case(lambda d: gripper(d).update(joint="ghost"), ("'left'", "'ghost'", "no joint"), id="gripper-joint"),
        case(lambda d: gripper(d).update(hand_link="ghost"), ("'left'", "'ghost'", "no link"), id="hand-link"),
        case(lambda d: gripper(d).update(jaw_links=[f"{LEFT}_link6"]), ("link6", "not moved"), id="jaw-link"),
        case(lambda d: gripper(d).update(follower_links=[f"{LEFT}_link6"]), ("link6", "mimic"), id="follower-link"),
        case(lambda d: gripper(d).update(follower_links=[]), ("ee_outer_finger", "follower_links"), id="follower-lost"),
        case(lambda d: gripper(d).update(open_position=2.0), ("'left'", "open_position", "2.0"), id="too-open"),
        case(lambda d: gripper(d).update(open_position=0.0), ("'left'", "both"), id="no-stroke"),
        case(lambda d: gripper(d)["pad_points"].pop(), ("pad_points",), id="one-pad"),
        case(lambda d: pad(d).update(link=f"{LEFT}_link1"), ("link1", "this hand"), id="pad-link"),
        case(lambda d: pad(d).update(position=[0, float("nan"), 0]), ("position",), id="pad-nan"),
        case(lambda d: d.update(rest_pose={"ghost": 1.0}), ("'ghost'", "not a joint"), id="rest-name"),
        case(lambda d: d.update(rest_pose={f"{LEFT}_joint4": -1.0}), (f"{LEFT}_joint4", "-1.0"), id="rest-limit"),
        case(pair("ghost", f"{LEFT}_link1"), ("'ghost'",), id="pair-unknown"),
        case(pair(f"{LEFT}_link1", f"{LEFT}_link1"), ("itself",), id="pair-self"),
        case(
            pair(f"{LEFT}_link1", f"{LEFT}_link2"), ("twice",), id="pair-generated-too"
        ),
        case(pair("a", "b", " "), ("a", "b"), id="pair-blank-reason"),
        case(lambda d: d.update(touch_links=["ghost"]), ("touch_links", "'ghost'"), id="touch-links"),
        case(lambda d: d.update(tight_links={"ghost": 2}), ("robot.yaml", "'ghost'", "no geometry"), id="tight-ghost"),
        case(lambda d: d.update(decompose={"ghost": 2}), ("'ghost'", "no geometry"), id="decompose-ghost"),
        case(
            lambda d: d["decompose"].update({f"{LEFT}_ee_inner_finger": 8}),
            (f"{LEFT}_ee_inner_finger", "to 10 piece(s)", "now asks for it as 8 pieces", "simulo lower openarm"),
            id="pieces-not-lowered",
        ),
        case(
            lambda d: d.update(tight_links={"openarm_body_link0": 3}),
            ("openarm_body_link0", "4 piece(s)", "as 3 slabs"), id="slabs-not-lowered",
        ),
        case(
            lambda d: d["decompose"].pop(f"{LEFT}_ee_inner_finger"),
            (f"{LEFT}_ee_inner_finger", "10 piece(s)", "as one hull"), id="pieces-dropped",
        ),
        case(
            lambda d: d.update(fitted_links={f"{LEFT}_link1": "M"}),
            (f"{LEFT}_link1", "1 piece(s)", "as fitted with M"), id="fit-not-lowered",
        ),
        case(
            lambda d: d.update(fitted_links={"openarm_body_link0": "box"}),
            ("openarm_body_link0", "cut in 2 ways"), id="two-ways",
        ),
        case(
            lambda d: gripper(d).update(hand_link="openarm_right_ee_base_link"),
            ("'left'", "openarm_right_ee_base_link", "does not hang on"), id="hand-of-the-other-arm",
        ),
        case(
            lambda d: pad(d).update(link=f"{LEFT}_ee_outer_finger"), ("'left'", "both pad_points"), id="pads-one-side"
        ),
        case(
            lambda d: gripper(d)["grasp_frame"].update(orientation_wxyz=[0, 0, 0, 0]),
            ("'left'", "grasp_frame", "names no rotation"), id="grasp-frame",
        ),
        case(lambda d: d.update(tight_links={"openarm_body_link0": 0}), ("tight_links",), id="no-slabs"),
    ],
)  # fmt: skip
def test_a_bad_robot_file_is_refused_by_name(copy: Path, edit: Edit, words: tuple[str, ...]) -> None:
    edit_yaml(copy, edit)
    message = refusal(copy)
    for word in (*words, str(copy)):
        assert word in message


def test_yaml_that_is_not_yaml_is_refused(copy: Path) -> None:
    (copy / "robot.yaml").write_text("joints: [")
    assert "not valid YAML" in refusal(copy)


def test_what_is_given_twice_is_refused(copy: Path) -> None:
    """Both formats keep the last of two equal keys, and so would forget limits or exemptions without a word."""
    path = copy / "robot.yaml"
    whole = path.read_text()
    path.write_text(whole + f"rest_pose: {{{LEFT}_joint4: 0.5}}\n")
    assert "'rest_pose' is given twice" in refusal(copy)
    path.write_text(whole)
    path = copy / "collision.json"
    path.write_text(path.read_text().rstrip().removesuffix("}") + ', "exempt_pairs": []}')
    assert "'exempt_pairs' is given twice" in refusal(copy)


def test_chains_of_mimics_are_flattened(copy: Path) -> None:
    """The right follower declared through the left one: 2 (3 q + 0.1) + 0.5 on the left finger's leader."""

    def through_the_left(data: dict[str, Any]) -> None:
        left, right = data["mimic_joints"]
        left.update(multiplier=3.0, offset=0.1)
        right.update(mimics=left["name"], multiplier=2.0, offset=0.5)

    edit_yaml(copy, through_the_left)
    leader = f"{LEFT}_finger_joint1"
    edit_json(copy, lambda d: mimic(d).update(multiplier=3.0, offset=0.1))
    edit_json(copy, lambda d: d["mimic_joints"][1].update(mimics=leader, multiplier=6.0, offset=0.7))
    edit_yaml(copy, lambda d: d["grippers"].pop())
    edit_json(copy, lambda d: d["swept"].pop("right"))
    edit_yaml(copy, lambda d: gripper(d)["follower_links"].append("openarm_right_ee_outer_finger"))
    edit_yaml(copy, lambda d: gripper(d).update(hand_link="openarm_body_link0"))  # the one that carries both
    last = load_description(copy).mimic_joints[1]
    assert (last.mimics, last.multiplier, last.offset) == (leader, 6.0, pytest.approx(0.7))


def test_model_sources_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Explicit path, SIMULO_MODEL_PATH, MENAGERIE_ROOT, installed package: each hides the ones after it."""
    source = load_description("openarm").source
    for variable in ("SIMULO_MODEL_PATH", "MENAGERIE_ROOT"):
        monkeypatch.delenv(variable, raising=False)
    packaged = resolve_model(source)
    assert packaged.name == "openarm_pedestal.xml" and packaged.is_file()
    places = [tmp_path / name / source.path for name in ("menagerie", "second", "first")]
    for place, variable in zip(places, ("MENAGERIE_ROOT", "SIMULO_MODEL_PATH", "SIMULO_MODEL_PATH"), strict=True):
        place.parent.mkdir(parents=True)
        place.touch()
        root = str(tmp_path / place.relative_to(tmp_path).parts[0])
        monkeypatch.setenv(variable, root, prepend=":" if variable == "SIMULO_MODEL_PATH" else None)
        assert resolve_model(source) == place
    assert resolve_model(source, explicit=packaged) == packaged


def test_another_version_of_the_package_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits and meshes differ between revisions: the robot is pinned to the one it was lowered from."""
    from dataclasses import replace

    for variable in ("SIMULO_MODEL_PATH", "MENAGERIE_ROOT"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelSourceError) as caught:
        resolve_model(replace(load_description("openarm").source, version="0.0.1"))
    message = str(caught.value)
    assert "is installed, the robot is pinned to 0.0.1" in message
    for place in ("SIMULO_MODEL_PATH: not set", "MENAGERIE_ROOT: not set", "mujoco-menagerie", "robot_descriptions"):
        assert place in message


def test_a_package_that_is_there_without_the_file_is_not_to_be_installed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    for variable in ("SIMULO_MODEL_PATH", "MENAGERIE_ROOT"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelSourceError) as caught:
        resolve_model(replace(load_description("openarm").source, path="openarm_mujoco/nothing.xml"))
    assert "holds no file" in str(caught.value)
    assert "pip install" not in str(caught.value)
    assert str(caught.value).endswith("a folder that holds openarm_mujoco/nothing.xml.")


def test_reference_kinematics_refuse_another_width() -> None:
    from simulo.description import reference_fk

    with pytest.raises(ValueError, match=r"\(\.\.\., 16\)"):
        reference_fk(load_description("openarm"), np.zeros(18))
