"""A bare model file becomes a robot folder that loads, and says what was guessed."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import simulo
from simulo.cli import app
from simulo.description import load_description, reference_fk
from simulo.description.files import parse_robot_file
from simulo.errors import DescriptionError, LoweringError, SimuloError
from simulo.lowering.draft import draft_folder, draft_robot
from simulo.lowering.urdf import read_urdf
from tests.lowering.urdf_text import joint, link, robot, shape

PALM = shape("<box size='0.1 0.2 0.04'/>")
FINGER = "<collision><origin xyz='0 0 0.05'/><geometry><box size='0.02 0.01 0.1'/></geometry></collision>"
TURN = "<limit lower='0.3' upper='2'/>"
STROKE = "<limit lower='0' upper='0.04'/>"


def jaw(name: str, child: str, axis: str, inside: str) -> str:
    return joint(name, "prismatic", "palm", child, inside, xyz="0 0 0.02").replace("1 0 0", axis)


ARM = robot(
    link("base"), link("palm", PALM), link("left", FINGER), link("right", FINGER),
    joint("turn", "revolute", "base", "palm", TURN, xyz="0 0 0.3"),
    jaw("grip", "left", "0 1 0", STROKE),
    jaw("grip_mirror", "right", "0 -1 0", "<mimic joint='grip'/>"),
)  # fmt: skip

MJCF = """<mujoco><worldbody><body name="base"><geom type="box" size="0.05 0.05 0.05"/>
  <body name="palm" pos="0 0 0.3"><joint name="turn" axis="1 0 0" range="-1 1"/><geom type="box" size="0.05 0.1 0.02"/>
    <body name="left" pos="0 0 0.02"><joint name="grip" type="slide" axis="0 1 0" range="0 0.04"/>
      <geom type="box" size="0.01 0.005 0.05" pos="0 0 0.05"/></body>
    <body name="right" pos="0 0 0.02"><joint name="mirror" type="slide" axis="0 -1 0" range="0 0.04"/>
      <geom type="box" size="0.01 0.005 0.05" pos="0 0 0.05"/></body></body></body></worldbody>
  <equality><joint joint1="mirror" joint2="grip" polycoef="0 1 0 0 0"/></equality>
  <actuator><position joint="turn"/><position joint="grip"/></actuator></mujoco>"""

SRDF = """<robot name="r"><disable_collisions link1="base" link2="left" reason="Never"/>
<group_state name="home" group="arm"><joint name="turn" value="1.5"/></group_state></robot>"""


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    path = tmp_path / "models" / "my-arm.urdf"
    path.parent.mkdir()
    path.write_text(ARM)
    return path


def lower(*words: object) -> str:
    result = CliRunner().invoke(app, ["lower", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_urdf_becomes_a_robot_that_loads(arm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One hand: its jaw, its follower, open at 0.04 m; a rest pose inside the limits; and it is lowered the same from
    anywhere, to the same digest."""
    said = lower(arm, "--out", tmp_path / "robot")
    assert "gripper" in said and "rest pose of turn" in said
    description = load_description(tmp_path / "robot")
    assert (description.name, description.root_link) == ("my_arm", "base")
    assert [(j.name, j.role) for j in description.joints] == [("turn", "arm"), ("grip", "gripper")]
    (hand,) = description.grippers
    assert (hand.joint, hand.hand_link, hand.jaw_links, hand.follower_links) == ("grip", "palm", ("left",), ("right",))
    assert (hand.open_position, hand.closed_position) == (0.04, 0.0)
    assert hand.grasp_frame.rotation[:, 2] == pytest.approx([0, 0, 1], abs=1e-6)  # out of the palm
    assert description.rest_pose == pytest.approx([0.3, 0.0])
    poses = reference_fk(description, [1.0, 0.04])
    pads = [poses[pad.link] @ [*pad.position, 1.0] for pad in hand.pad_points]
    assert 0.06 < np.linalg.norm(pads[0] - pads[1]) < 0.09  # 0.08 m between the joints, less the fingers' inner halves
    for place in (tmp_path, arm.parent, Path("/")):
        monkeypatch.chdir(place)
        lower(arm, "--out", tmp_path / "robot")
        assert load_description(tmp_path / "robot").digest == description.digest


def test_an_mjcf_becomes_a_robot_beside_itself(tmp_path: Path) -> None:
    """Named .xml, as a URDF may be: the root element tells. Its one body is the root link."""
    path = tmp_path / "hand.xml"
    path.write_text(MJCF)
    lower(path)
    description = load_description(tmp_path)
    assert (description.root_link, description.source.format) == ("base", "mjcf")
    assert description.joint_names == ("turn", "grip")
    assert [m.name for m in description.mimic_joints] == ["mirror"]
    assert [g.follower_links for g in description.grippers] == [("right",)]
    check = CliRunner().invoke(app, ["check", str(tmp_path)])
    assert check.exit_code == 0 and "clear" in check.output
    (tmp_path / "arm.xml").write_text(ARM)
    assert draft_folder(tmp_path / "arm.xml", tmp_path / "other")[0] == tmp_path / "other"
    assert "format: urdf" in (tmp_path / "other" / "robot.yaml").read_text()


def test_a_robot_yaml_that_is_there_is_kept(arm: Path, tmp_path: Path) -> None:
    """It may have been corrected by hand; of another model it is not overwritten."""
    lower(arm)
    path = arm.parent / "robot.yaml"
    path.write_text(path.read_text().replace("name: my_arm", "name: corrected"))
    assert "drafted" not in lower(arm)
    assert load_description(arm.parent).name == "corrected"
    (arm.parent / "second.urdf").write_text(ARM)
    with pytest.raises(LoweringError, match=r"robot.yaml is of another model \(my-arm.urdf\); .*--out"):
        draft_folder(arm.parent / "second.urdf")


def test_an_srdf_gives_pairs_and_the_rest_pose(arm: Path, tmp_path: Path) -> None:
    srdf = tmp_path / "my-arm.srdf"
    srdf.write_text(SRDF)
    lower(arm, "--out", tmp_path / "robot", "--srdf", srdf)
    description = load_description(tmp_path / "robot")
    assert description.rest_pose == pytest.approx([1.5, 0.0])
    rows = {frozenset((p.link_a, p.link_b)): p.reason for p in description.disabled_pairs}
    assert rows[frozenset(("base", "left"))] == "SRDF: Never"
    assert rows[frozenset(("base", "palm"))].startswith("adjacent")
    assert frozenset(("base", "right")) not in rows
    srdf.write_text(SRDF + "<!-- touched -->")
    with pytest.raises(DescriptionError, match=r"not lowered with the SRDF .*my-arm.srdf\); run `simulo lower"):
        load_description(tmp_path / "robot")
    lower(tmp_path / "robot")
    assert load_description(tmp_path / "robot").digest != description.digest
    srdf.write_text(SRDF.replace("'left'", "'ghost'").replace('"left"', '"ghost"'))
    with pytest.raises(LoweringError, match="my-arm.srdf, line 1.*'ghost'.*remove the row"):
        CliRunner().invoke(app, ["lower", str(tmp_path / "robot")], catch_exceptions=False)


def test_a_robot_that_moved_or_lost_its_model_says_so(arm: Path, tmp_path: Path) -> None:
    lower(arm)
    arm.unlink()
    with pytest.raises(SimuloError, match="my-arm.urdf does not exist; restore it, or correct `path`"):
        CliRunner().invoke(app, ["lower", str(arm.parent)], catch_exceptions=False)


@pytest.mark.parametrize(
    ("parts", "hands", "doubts"),
    [
        pytest.param([jaw("grip", "left", "0 1 0", STROKE)], 1, [], id="one-jaw-against-the-palm"),
        pytest.param(
            [jaw("grip", "left", "0 1 0", STROKE), jaw("mirror", "right", "0 1 0", "<mimic joint='grip'/>")],
            0, ["its fingers lie on one another"], id="fingers-that-move-together",
        ),
        pytest.param([joint("grip", "continuous", "palm", "left")], 0, ["no range"], id="endless"),
    ],
)  # fmt: skip
def test_what_is_no_hand_is_not_made_one(tmp_path: Path, parts: list[str], hands: int, doubts: list[str]) -> None:
    links = [link("palm", PALM), link("left", FINGER)] + ([link("right", FINGER)] if len(parts) > 1 else [])
    path = tmp_path / "r.urdf"
    path.write_text(robot(*links, *parts))
    draft = draft_robot(read_urdf(path), "r.urdf")
    entries = parse_robot_file(draft.text, tmp_path / "robot.yaml")
    assert len(entries.grippers) == hands
    for doubt in doubts:
        assert any(doubt in sentence for sentence in draft.guesses), draft.guesses


def test_two_jaws_with_a_drive_each_are_told_and_make_no_gripper(tmp_path: Path) -> None:
    """Each by itself would pass for a hand of one jaw that closes on the palm."""
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace("<mimic joint='grip'/>", STROKE))
    folder, guesses = draft_folder(path)
    told = next(text for text in guesses if text.startswith("grip and grip_mirror look like the jaws of palm"))
    assert "couple them in the model file" in told
    assert parse_robot_file((folder / "robot.yaml").read_text(), folder / "robot.yaml").grippers == []
    assert f"# open: {told}" in (folder / "robot.yaml").read_text()
    lower(path)
    assert load_description(folder).joint_names == ("turn", "grip", "grip_mirror")


def test_joints_of_a_closed_loop_are_pointed_out(tmp_path: Path) -> None:
    """Two bars pinned together at their ends: only the driven one can be a command column."""
    bar = "<body name='{0}' pos='{1}'><joint name='j{0}' range='-1 1'/><geom size='.01'/></body>"
    bars = bar.format("a", "0 0 0") + bar.format("b", ".1 0 0")
    (tmp_path / "r.xml").write_text(
        f"<mujoco><worldbody><body name='p'><geom size='.1'/>{bars}</body>"
        "</worldbody><equality><connect body1='a' body2='b' anchor='0 .1 0'/></equality>"
        "<actuator><position joint='ja'/></actuator></mujoco>"
    )
    _, guesses = draft_folder(tmp_path / "r.xml")
    assert [sentence for sentence in guesses if "closed loop" in sentence] == [
        "jb is in a closed loop: unless it leads, move it to mimic_joints or held_joints"
    ]


def test_odd_names_survive_yaml(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    names = ["yes", "1e3", "a: b", "- c", 'say "x"', "#d", "é", "null"]
    joints = [joint(name, "continuous", "base", f"l {name}").replace('"x"', "&quot;x&quot;") for name in names]
    links = [link(f"l {name}").replace('"x"', "&quot;x&quot;") for name in names]
    path.write_text(robot(link("base"), *links, *joints))
    entries = parse_robot_file(draft_robot(read_urdf(path), "r.urdf").text, tmp_path / "robot.yaml")
    assert [entry.name for entry in entries.joints] == names


def test_no_model_at_all_is_refused(tmp_path: Path) -> None:
    (tmp_path / "world.xml").write_text("<sdf/>")
    with pytest.raises(LoweringError, match="world.xml is no robot model: its root element is <sdf>.*export it"):
        draft_folder(tmp_path / "world.xml")
    with pytest.raises(LoweringError, match="gone.urdf.*does not exist; give the path"):
        draft_folder(tmp_path / "gone.urdf")
    assert not (tmp_path / "robot.yaml").exists()


def test_an_mjcf_whose_world_is_the_root_runs(tmp_path: Path) -> None:
    """A base that the file places is below its world, which becomes the root link, and in a scene a body."""
    (tmp_path / "arm.xml").write_text(MJCF.replace('name="base"', 'name="base" pos="0 0 0.2"'))
    lower(tmp_path / "arm.xml", "--out", tmp_path / "robot")

    class Alone(simulo.Task):
        observation_dim = action_dim = 1

        def build(self, scene):
            self.robot = simulo.Robot(str(tmp_path / "robot"), initial_pose=simulo.Pose((1.0, 0.0, 0.0)))
            scene.add(self.robot, at="/World/Robot")

    task = Alone()
    simulo.LearningEnv(task)
    assert task.robot.link_names[:2] == ("world", "base")
    places = task.robot.state.link_poses[0, :, :3].tolist()
    assert places[:3] == [[1.0, 0.0, 0.0], pytest.approx([1.0, 0.0, 0.2]), pytest.approx([1.0, 0.0, 0.5])]
