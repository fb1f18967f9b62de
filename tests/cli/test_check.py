"""`simulo check` and `simulo robots`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from simulo.description import load_description


def test_rest_pose_of_openarm_is_clear(simulo: Callable, tmp_path: Path) -> None:
    run = simulo("check", "openarm", "--pose", "rest", "--json", str(tmp_path / "check.json"))
    assert run.code == 0
    answer = json.loads((tmp_path / "check.json").read_text())
    assert set(answer) == {"clear", "kind", "parties", "distance_mm", "bound"}
    assert answer["clear"] is True
    assert answer["kind"] == "clear"
    assert answer["distance_mm"] > 0


def test_an_arm_folded_into_the_torso_is_refused(simulo: Callable, tmp_path: Path) -> None:
    names = load_description("openarm").joint_names
    # An open right hand in the column, found by hand; with the jaws closed the same arm is clear.
    q = [0.0] * len(names)
    q[names.index("openarm_right_finger_joint1")] = -0.7854
    for joint, value in zip(range(1, 8), (0.397, 3.216, 0.984, 1.740, 1.471, 0.274, 1.471), strict=True):
        q[names.index(f"openarm_right_joint{joint}")] = value
    run = simulo("check", "openarm", "--q", ",".join(map(str, q)), "--json", str(tmp_path / "check.json"))
    assert run.code == 1
    answer = json.loads((tmp_path / "check.json").read_text())
    assert answer["clear"] is False
    assert answer["kind"] == "self"
    assert "openarm_body_link0" in answer["parties"]
    assert answer["distance_mm"] <= 0
    assert "openarm_body_link0" in run.out


def test_not_finite_joint_value_is_refused(simulo: Callable, tmp_path: Path) -> None:
    run = simulo("check", "openarm", "--q", ",".join(["nan"] + ["0"] * 15), "--json", str(tmp_path / "check.json"))
    assert run.code == 1
    answer = json.loads((tmp_path / "check.json").read_text())
    assert (answer["clear"], answer["kind"], answer["distance_mm"]) == (False, "non_finite", None)


def test_a_value_outside_the_limits_is_told_and_checked_as_it_is(simulo: Callable) -> None:
    run = simulo("check", "so101", "--q", "0,0,0,0,0,99")
    assert run.code == 0
    assert "gripper = 99 is outside its limits, -0.174533 to 1.74533" in run.err
    rest = ",".join(map(str, load_description("so101").rest_pose))
    assert "outside" not in simulo("check", "so101", "--q", rest).err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("openarm", "--q", "1,2"), "takes 16 joint values, got 2"),
        (("openarm", "--q", "one"), "could not convert string to float"),
        (("openarm", "--pose", "rest", "--q", "0"), "not both"),
        (("openarm", "--pose", "t-pose"), "there is: rest"),
        (("openram",), "unknown robot 'openram': did you mean 'openarm'?"),
        (("openarm", "--finger-model", "blob"), "'mimic', 'swept'"),
    ],
)
def test_wrong_use(simulo: Callable, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    run = simulo("check", *arguments, "--json", str(tmp_path / "check.json"))
    assert run.code == 2
    assert message in run.err
    assert "Traceback" not in run.err
    assert not list(tmp_path.iterdir())


def test_a_corrupt_collision_file_is_refused_by_name(simulo: Callable, tmp_path: Path) -> None:
    from simulo.paths import data_path

    folder = tmp_path / "broken"
    folder.mkdir()
    original = data_path("robots") / "openarm"
    (folder / "robot.yaml").write_bytes((original / "robot.yaml").read_bytes())
    text = (original / "collision.json").read_text()
    for corrupt in (text[: len(text) // 2], text.replace('"exempt_pairs"', '"exempt"', 1), "[]"):
        (folder / "collision.json").write_text(corrupt)
        run = simulo("check", str(folder))
        assert run.code == 2
        assert "collision.json" in run.err
        assert "simulo lower" in run.err
        assert "Traceback" not in run.err


def test_robots_lists_what_can_be_loaded(simulo: Callable, tmp_path: Path) -> None:
    run = simulo("robots", "--json", str(tmp_path / "robots.json"))
    assert run.code == 0
    assert "openarm" in run.out
    (openarm,) = (row for row in json.loads((tmp_path / "robots.json").read_text()) if row["name"] == "openarm")
    assert openarm["licence"] == "Apache-2.0"
    assert (openarm["links"], openarm["joints"], openarm["mimic_joints"]) == (21, 16, 2)
    assert openarm["rest_clear"] is True
    assert openarm["pairs_checked"] > 0
