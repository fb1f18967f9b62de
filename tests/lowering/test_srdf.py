"""SRDF: disabled pairs with their reasons, states, and files that do not fit the robot."""

from pathlib import Path

import pytest

from simulo.lowering.model import RobotModel
from simulo.lowering.srdf import Srdf, read_srdf
from simulo.lowering.urdf import read_urdf
from tests.lowering.hostile import LAUGHS, refusal
from tests.lowering.urdf_text import gripper


@pytest.fixture
def hand(tmp_path: Path) -> RobotModel:
    path = tmp_path / "hand.urdf"
    path.write_text(gripper("<mimic joint='leader' multiplier='-1'/>"))
    return read_urdf(path)


def srdf(*elements: str) -> str:
    return f"<robot name='r'>{''.join(elements)}</robot>"


def pair(first: str, second: str, reason: str = "reason='Adjacent'") -> str:
    return f"<disable_collisions link1='{first}' link2='{second}' {reason}/>"


def state(joint: str, value: str) -> str:
    return f"<group_state name='home' group='g'><joint name='{joint}' value='{value}'/></group_state>"


def read(hand: RobotModel, text: str) -> Srdf:
    path = hand.path.with_name("hand.srdf")
    path.write_text(text)
    return read_srdf(path, hand)


def test_pairs_keep_their_reasons_and_the_models_order(hand: RobotModel) -> None:
    rows = read(
        hand, srdf(pair("other", "jaw", "reason='Never'"), pair("jaw", "palm"), pair("palm", "jaw", ""))
    ).disabled
    assert [(row.link_a, row.link_b, row.reason) for row in rows] == [
        ("jaw", "palm", "SRDF: Adjacent"),
        ("other", "jaw", "SRDF: Never"),
    ]
    assert read(hand, srdf(pair("palm", "jaw", ""))).disabled[0].reason == "SRDF: no reason given"


def test_states_leave_out_followers_and_the_base(hand: RobotModel) -> None:
    base = "<virtual_joint name='world' type='floating' parent_frame='world' child_link='palm'/>"
    state = (
        "<group_state name='open' group='g'><joint name='leader' value='0.03'/><joint name='follower' value='-0.03'/>"
        "<joint name='world' value='0'/><joint name='root_joint' value='0 0 1 0 0 0 1'/></group_state>"
    )
    assert read(hand, srdf(base, state)).states == {"open": {"leader": 0.03}}


def test_a_link_disabled_by_default_meets_only_what_is_enabled(hand: RobotModel) -> None:
    rows = read(
        hand,
        srdf("<disable_default_collisions link='palm'/>", "<enable_collisions link1='palm' link2='other'/>"),
    ).disabled
    assert [{row.link_a, row.link_b} for row in rows] == [{"palm", "jaw"}]


CASES = {
    "unknown-link": (srdf(pair("palm", "ghost")), "'ghost'", "remove the row"),
    "no-link": (srdf("<disable_collisions link1='palm'/>"), "link2", "name one of: palm"),
    "pair-with-itself": (srdf(pair("palm", "palm")), "'palm'", "name two links"),
    "default-of-nobody": (srdf("<disable_default_collisions link='ghost'/>"), "'ghost'", "name one of: palm"),
    "enabled-of-nobody": (srdf("<enable_collisions link1='palm' link2='ghost'/>"), "'ghost'", "name one of: palm"),
    "unknown-joint": (srdf(state("ghost", "0")), "'ghost'", "name one of: follower, leader"),
    "value-nan": (srdf(state("leader", "nan")), "'leader'", "write 1 finite number"),
    "value-word": (srdf(state("leader", "open")), "'leader'", "write 1 number"),
    "value-missing": (srdf(state("leader", "")), "'leader'", "1 finite number"),
    "value-absurd": (srdf(state("leader", "1e300")), "'leader'", "correct its unit"),
    "state-without-name": (srdf("<group_state group='g'/>"), "<group_state>", "name the state"),
    "entity-bomb": (LAUGHS + srdf(), "DOCTYPE", "remove the declaration"),
    "cut-short": (srdf(pair("palm", "jaw"))[:-9], "line 1", "repair the XML"),
    "other-root": ("<mujoco/>", "<mujoco>", "give a SRDF file"),
    "empty": ("", "empty", "restore it"),
    "many-rows": (srdf(pair("palm", "jaw") * 250_000), "XML elements", "no SRDF needs as many"),
}


@pytest.mark.parametrize(("text", "element", "remedy"), CASES.values(), ids=CASES.keys())
def test_a_hostile_srdf_is_refused(hand: RobotModel, text: str, element: str, remedy: str) -> None:
    refusal(lambda: read(hand, text), "hand.srdf", element, remedy)


def test_a_missing_srdf_is_refused(hand: RobotModel) -> None:
    refusal(lambda: read_srdf(hand.path.with_name("gone.srdf"), hand), "gone.srdf", "does not exist", "give the path")
