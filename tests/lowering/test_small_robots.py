"""`lower_robot` end to end on robots small enough to know by heart."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from simulo.description import load_description, reference_fk
from simulo.description.cuts import Asked
from simulo.errors import DescriptionError, LoweringError, ModelSourceError
from simulo.lowering import lower_robot
from tests.lowering.urdf_text import gripper, joint, link, robot, shape

SOURCE = {"package": "tiny-model", "version": "1", "path": "tiny/r.urdf", "licence": "CC0-1.0", "format": "urdf"}


class Workshop:
    """A folder with a model file and a robot.yaml, on the model path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def robot(self, text: str, root: str, joints: list[str], **entries: object) -> Path:
        (self.folder / "tiny").mkdir(exist_ok=True)
        (self.folder / "tiny" / "r.urdf").write_text(text)
        declared = {
            "name": "tiny",
            "source": {
                "package": "tiny-model",
                "version": "1",
                "path": "tiny/r.urdf",
                "licence": "CC0-1.0",
                "format": "urdf",
            },
            "root_link": root,
            "joints": [{"name": name, "role": "arm"} for name in joints],
            **entries,
        }
        (self.folder / "robot.yaml").write_text(yaml.safe_dump(declared))
        return self.folder

    def lowered(self) -> Path:
        (self.folder / "collision.json").write_text(lower_robot(self.folder).text)
        return self.folder


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    return Workshop(tmp_path)


HAND = {
    "name": "hand",
    "joint": "leader",
    "hand_link": "palm",
    "jaw_links": ["jaw"],
    "follower_links": ["other"],
    "open_position": 0.04,
    "closed_position": 0.0,
    "grasp_frame": {},
    "pad_points": [{"link": "jaw", "position": [0, 0, 0]}, {"link": "other", "position": [0, 0, 0]}],
}


def test_b08a_a_urdf_gripper_lowers_loads_and_moves(workshop: Workshop) -> None:
    """Multiplier -1 on the leader's own axis: the follower mirrors it, and only the leader has a column."""
    mimics = [{"name": "follower", "mimics": "leader", "multiplier": -1.0}]
    workshop.robot(
        gripper("<mimic joint='leader' multiplier='-1'/>"), "palm", ["leader"], mimic_joints=mimics, grippers=[HAND]
    )
    description = load_description(workshop.lowered())
    assert description.joint_names == ("leader",)
    poses = reference_fk(description, [0.03])
    assert poses["jaw"][:3, 3] == pytest.approx([0.03, 0.0, 0.1])
    assert poses["other"][:3, 3] == pytest.approx([-0.03, 0.1, 0.1])
    reasons = {frozenset((p.link_a, p.link_b)): p.reason for p in description.disabled_pairs}
    assert reasons[frozenset(("jaw", "other"))].startswith("jaws")
    assert len(reasons) == 3
    # the swept hull in the jaw's frame: the other jaw from 0 to -0.08 m along x, both 0.02 m wide, grown by nothing
    # since straight paths leave no hull of their samples
    bounds = description.swept["hand"].hull.vertices
    assert bounds.min(axis=0) == pytest.approx([-0.09, -0.01, -0.05], abs=2e-6)
    assert bounds.max(axis=0) == pytest.approx([0.01, 0.11, 0.05], abs=2e-6)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        pytest.param({"multiplier": 1.0}, ("follower", "1.0 * leader", "-1.0 * leader"), id="sign"),
        pytest.param({"multiplier": -1.0, "offset": 0.01}, ("follower", "0.01"), id="offset"),
    ],
)
def test_a_declared_relation_that_is_not_the_files_is_refused(
    workshop: Workshop, entries: dict, words: tuple[str, ...]
) -> None:
    workshop.robot(
        gripper("<mimic joint='leader' multiplier='-1'/>"), "palm", ["leader"],
        mimic_joints=[{"name": "follower", "mimics": "leader", **entries}],
    )  # fmt: skip
    with pytest.raises(LoweringError) as caught:
        lower_robot(workshop.folder)
    assert all(word in str(caught.value) for word in (*words, "robot.yaml", "r.urdf"))


def test_joints_that_robot_yaml_does_not_know_are_refused(workshop: Workshop) -> None:
    text = gripper("<mimic joint='leader' multiplier='-1'/>")
    with pytest.raises(LoweringError, match="'follower' follows 'leader'.*declare it under mimic_joints"):
        lower_robot(workshop.robot(text, "palm", ["leader"]))
    free = robot(link("a"), link("b"), joint("turn", "continuous", "a", "b"))
    with pytest.raises(LoweringError, match="'turn'.*neither under joints"):
        lower_robot(workshop.robot(free, "a", []))
    with pytest.raises(LoweringError, match="no moving joint 'ghost'; it has: turn"):
        lower_robot(workshop.robot(free, "a", ["turn", "ghost"]))
    with pytest.raises(LoweringError, match="'turn' is under mimic_joints, but follows no joint"):
        mimic = [{"name": "turn", "mimics": "other"}]
        both = robot(
            link("a"),
            link("b"),
            link("c"),
            joint("turn", "continuous", "a", "b"),
            joint("other", "continuous", "b", "c"),
        )
        lower_robot(workshop.robot(both, "a", ["other"], mimic_joints=mimic))


def chain(offset: str) -> str:
    """Four links in a row on hinges about x; link c reaches back over link a when `offset` is small."""
    ball = shape("<sphere radius='0.1'/>")
    limit = "<limit lower='-0.3' upper='0.3'/>"
    return robot(
        link("a", ball), link("b", shape("<sphere radius='0.02'/>")),
        link("c", ball), link("d", shape("<sphere radius='0.05'/>")),
        joint("ab", "revolute", "a", "b", limit, xyz="0 0 0.05"),
        joint("bc", "revolute", "b", "c", limit, xyz=f"0 0 {offset}"),
        joint("cd", "revolute", "c", "d", limit, xyz="0 0 0.4"),
    )  # fmt: skip


def test_b16_a_pair_that_always_overlaps_is_exempt_by_proof(workshop: Workshop) -> None:
    """a and c overlap by 0.1 m and more in every pose, d touches nobody. Twice the same bytes."""
    workshop.robot(chain("0.05"), "a", ["ab", "bc", "cd"])
    first, second = lower_robot(workshop.folder), lower_robot(workshop.folder)
    assert first.text == second.text
    rows = {(p.link_a, p.link_b): p.reason.split(":")[0] for p in first.description.disabled_pairs}
    assert rows == {
        ("a", "b"): "adjacent",
        ("b", "c"): "adjacent",
        ("c", "d"): "adjacent",
        ("a", "c"): "always overlapping",
    }


@pytest.mark.parametrize(("lower", "upper", "rest"), [(0.0, 1.5, 1.5), (-6.2832, -1.5, -1.5)])
def test_b16_a_pair_that_comes_clear_anywhere_stays_checked(
    workshop: Workshop, lower: float, upper: float, rest: float
) -> None:
    """The balls of a and c overlap at rest and over most of the range, and are 10 mm apart at its end.

    The second range is the first seen from a turn away: limits beyond half a turn are part of the range too.
    """
    text = chain("0.16").replace("lower='-0.3' upper='0.3'", f"lower='{lower}' upper='{upper}'", 1)
    lowered = lower_robot(workshop.robot(text, "a", ["ab", "bc", "cd"], rest_pose={"ab": rest}))
    assert ("a", "c") not in {(p.link_a, p.link_b) for p in lowered.description.disabled_pairs}
    apart = [np.linalg.norm(reference_fk(lowered.description, [q, 0.0, 0.0])["c"][:3, 3]) for q in (1.5, 0.75, 0.0)]
    assert apart == pytest.approx([0.171, 0.1995, 0.21], abs=1e-3)


def test_rigid_groups_are_exempt_and_their_neighbours_are_not(workshop: Workshop) -> None:
    text = robot(
        link("a"), link("b"), link("c"),
        joint("weld", "fixed", "a", "b"),
        joint("turn", "continuous", "b", "c"),
    )  # fmt: skip
    lowered = lower_robot(workshop.robot(text, "a", ["turn"]))
    rows = {(p.link_a, p.link_b): p.reason.split(":")[0] for p in lowered.description.disabled_pairs}
    assert rows == {("a", "b"): "rigid", ("b", "c"): "adjacent"}


def test_a_link_without_shapes_is_a_frame_and_nothing_else(workshop: Workshop) -> None:
    text = robot(link("world", ""), link("a"), joint("stand", "fixed", "world", "a", xyz="0 0 0.7"))
    with pytest.raises(DescriptionError, match="'world' has no geometry"):
        lower_robot(workshop.robot(text, "world", []), Asked({"world": 2}))
    description = load_description(workshop.robot(text, "world", []) and workshop.lowered())
    assert list(description.geometry) == ["a"]
    assert reference_fk(description, [])["a"][2, 3] == pytest.approx(0.7)
    entries = json.loads((workshop.folder / "collision.json").read_text())
    assert entries.pop("bare_links") == ["world"]
    (workshop.folder / "collision.json").write_text(json.dumps(entries))
    with pytest.raises(DescriptionError, match="link 'world' has no geometry; run `simulo lower tiny`"):
        load_description(workshop.folder)


def test_a_model_that_is_nowhere_lists_every_place(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop.robot(robot(link("a")), "a", [])
    (workshop.folder / "tiny" / "r.urdf").unlink()
    monkeypatch.setenv("MENAGERIE_ROOT", "/nowhere")
    with pytest.raises(ModelSourceError) as caught:
        lower_robot(workshop.folder)
    places = (
        "SIMULO_MODEL_PATH",
        str(workshop.folder / "tiny/r.urdf"),
        "/nowhere/tiny/r.urdf",
        "tiny-model: not installed",
        "mujoco-menagerie",
        "robot_descriptions",
    )
    for place in places:
        assert place in str(caught.value)


def test_a_robot_that_is_not_lowered_names_the_command(workshop: Workshop) -> None:
    workshop.robot(robot(link("a")), "a", [])
    with pytest.raises(DescriptionError, match="not lowered.*simulo lower"):
        load_description(workshop.folder)


def test_robot_yaml_edited_after_lowering_is_refused(workshop: Workshop) -> None:
    """A relation changed by hand no longer is what was checked against the model."""
    mimics = [{"name": "follower", "mimics": "leader", "multiplier": -1.0}]
    workshop.robot(gripper("<mimic joint='leader' multiplier='-1'/>"), "palm", ["leader"], mimic_joints=mimics)
    workshop.lowered()
    mimics[0]["multiplier"] = 1.0
    workshop.robot(gripper("<mimic joint='leader' multiplier='-1'/>"), "palm", ["leader"], mimic_joints=mimics)
    with pytest.raises(DescriptionError, match="'follower' was lowered as -1.0.*simulo lower tiny"):
        load_description(workshop.folder)


def test_infinite_limits_stay_out_of_the_file(workshop: Workshop) -> None:
    """JSON has no infinity: a continuous joint's limits are absent, and come back as infinite."""
    workshop.robot(robot(link("a"), link("b"), joint("turn", "continuous", "a", "b")), "a", ["turn"])
    workshop.lowered()
    entry = json.loads((workshop.folder / "collision.json").read_text())["joints"][0]
    assert not {"lower", "upper", "velocity_limit"} & entry.keys()
    loaded = load_description(workshop.folder).joints[0]
    assert (loaded.lower, loaded.upper, loaded.velocity_limit) == (-np.inf, np.inf, np.inf)
