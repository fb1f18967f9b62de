"""The URDF reader: what other importers drop or guess."""

import math
from pathlib import Path

import numpy as np
import pytest
import trimesh

from simulo.errors import DescriptionError, LoweringError
from simulo.lowering.model import RobotModel
from simulo.lowering.urdf import read_urdf
from tests.lowering.urdf_text import gripper, joint, link, robot, shape


def read(tmp_path: Path, text: str) -> RobotModel:
    path = tmp_path / "r.urdf"
    path.write_text(text)
    return read_urdf(path)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises((LoweringError, DescriptionError)) as caught:
        read(tmp_path, text)
    assert "r.urdf" in str(caught.value)
    return str(caught.value)


def relation(model: RobotModel, name: str = "follower") -> tuple[str, float, float]:
    mimic = model.mimics[name]
    return mimic.leader, mimic.multiplier, mimic.offset


def test_b08a_prismatic_pair_has_one_actuated_joint(tmp_path: Path) -> None:
    model = read(tmp_path, gripper("<mimic joint='leader' multiplier='-1'/>"))
    assert relation(model) == ("leader", -1.0, 0.0)
    assert [j.name for j in model.joints if j.name not in model.mimics] == ["leader"]


def test_b08b_mimic_defaults_are_1_and_0(tmp_path: Path) -> None:
    assert relation(read(tmp_path, gripper("<mimic joint='leader'/>"))) == ("leader", 1.0, 0.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(gripper("<mimic joint='ghost'/>"), ("follower", "ghost"), id="c-leader-absent"),
        pytest.param(
            robot(link("palm"), link("jaw"), link("other"), joint("leader", "fixed", "palm", "jaw"),
                  joint("follower", "prismatic", "palm", "other", "<mimic joint='leader'/>")),
            ("follower", "leader", "fixed"), id="e-leader-fixed",
        ),
        pytest.param(gripper("<mimic joint='leader' multiplier='0'/>"), ("follower", "leader", "0"), id="f-0"),
        pytest.param(gripper("<mimic joint='leader' multiplier='nan'/>"), ("follower", "not finite"), id="nan"),
        pytest.param(gripper("<mimic joint='follower'/>"), ("follower", "circle"), id="itself"),
        pytest.param(gripper("<mimic joint='leader'/>", "fixed"), ("follower", "fixed"), id="fixed-follower"),
    ],
)  # fmt: skip
def test_b08_bad_relations_are_refused_naming_both_joints(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    message = refusal(tmp_path, text)
    for word in words:
        assert word in message


def test_b08d_continuous_followers_are_kept(tmp_path: Path) -> None:
    """One prismatic and four continuous followers; the last two follow followers."""
    parts = [link("palm"), link("jaw"), joint("leader", "revolute", "palm", "jaw", "<limit lower='0' upper='1'/>")]
    leaders = ["leader", "leader", "leader", "f1", "f3"]
    kinds = ["prismatic", *["continuous"] * 4]
    for index, (leader, kind) in enumerate(zip(leaders, kinds, strict=True)):
        parts.append(link(f"l{index}"))
        mimic = f"<mimic joint='{leader}' multiplier='2' offset='0.5'/>"
        parts.append(joint(f"f{index}", kind, "palm", f"l{index}", mimic))
    model = read(tmp_path, robot(*parts))
    assert len(model.mimics) == 5
    assert relation(model, "f1") == ("leader", 2.0, 0.5)
    assert relation(model, "f3") == ("leader", 4.0, 1.5)  # 2 (2 q + 0.5) + 0.5
    assert relation(model, "f4") == ("leader", 8.0, 3.5)


def test_mimic_circles_are_refused_by_name(tmp_path: Path) -> None:
    text = robot(
        link("palm"), link("a"), link("b"),
        joint("one", "continuous", "palm", "a", "<mimic joint='two'/>"),
        joint("two", "continuous", "palm", "b", "<mimic joint='one'/>"),
    )  # fmt: skip
    assert "one -> two -> one" in refusal(tmp_path, text)


def test_b21_placement_of_a_fixed_root_body_is_kept(tmp_path: Path) -> None:
    model = read(
        tmp_path,
        robot(
            link("world", ""), link("base"), link("arm"),
            joint("stand", "fixed", "world", "base", xyz="0 0 0.7"),
            joint("turn", "continuous", "base", "arm", xyz="0 0 0.333"),
        ),
    )  # fmt: skip
    assert model.links == ("world", "base", "arm")
    assert model.attachments[0].origin.position == (0.0, 0.0, 0.7)
    assert (model.attachments[0].origin @ model.joint("turn").origin).position == pytest.approx((0.0, 0.0, 1.033))


def test_b22_revolute_without_limit_is_refused(tmp_path: Path) -> None:
    text = robot(link("a"), link("b"), joint("elbow", "revolute", "a", "b"))
    assert "elbow" in refusal(tmp_path, text)


def test_b22_limit_without_numbers_is_zero_to_zero(tmp_path: Path) -> None:
    model = read(tmp_path, robot(link("a"), link("b"), joint("elbow", "revolute", "a", "b", "<limit effort='1'/>")))
    assert (model.joint("elbow").lower, model.joint("elbow").upper) == (0.0, 0.0)


def test_b22_continuous_is_unbounded(tmp_path: Path) -> None:
    model = read(tmp_path, robot(link("a"), link("b"), joint("wheel", "continuous", "a", "b")))
    assert (model.joint("wheel").lower, model.joint("wheel").upper) == (-math.inf, math.inf)


def test_b22_follower_needs_no_limit_of_its_own(tmp_path: Path) -> None:
    follower = read(tmp_path, gripper("<mimic joint='leader' multiplier='-1'/>")).joint("follower")
    assert (follower.lower, follower.upper) == (-0.04, 0.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("<robot name='r'><link", ("cannot be read",), id="cut-short"),
        pytest.param("<model/>", ("not <robot>",), id="no-urdf"),
        pytest.param(robot(link("a"), link("b")), ("2", "a, b"), id="two-roots"),
        pytest.param(robot(link("a"), joint("j", "fixed", "a", "ghost")), ("'j'", "'ghost'"), id="unknown-link"),
        pytest.param(
            robot(link("a"), link("b"), joint("j", "fixed", "a", "b"), joint("k", "fixed", "a", "b")),
            ("'b'", "'j'", "'k'"), id="two-parents",
        ),
        pytest.param(
            robot(link("a"), link("b"), link("c"), joint("j", "fixed", "b", "c"), joint("k", "fixed", "c", "b")),
            ("b, c", "circle"), id="circle",
        ),
        pytest.param(robot(link("a"), link("a")), ("link 'a'", "more than once"), id="link-twice"),
        pytest.param(
            robot(link("a"), link("b"), link("c"), joint("j", "fixed", "a", "b"), joint("j", "fixed", "a", "c")),
            ("joint 'j'", "more than once"), id="joint-twice",
        ),
        pytest.param(robot(link("a"), link("b"), joint("j", "floating", "a", "b")), ("'j'", "floating"), id="floating"),
        pytest.param(robot(link("a"), link("b"), joint("j", "fixed", "a", "b", xyz="0 nan 0")), ("'j'",), id="nan"),
        pytest.param(robot(link("a", shape("<box size='1 0 1'/>"))), ("'a'", "size"), id="flat-box"),
        pytest.param(robot(link("a", shape("<torus/>"))), ("'a'", "<torus>"), id="unknown-shape"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_by_name(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    message = refusal(tmp_path, text)
    for word in words:
        assert word in message


def mesh_link(filename: str, scale: str = "1 1 1") -> str:
    shape = f"<visual><origin xyz='0 0 1'/><geometry><mesh filename='{filename}' scale='{scale}'/></geometry></visual>"
    return robot(link("a", shape))


def test_mesh_scale_units_and_placement(tmp_path: Path) -> None:
    """A 100 mm cube in millimetres, mirrored: 0.1 m wide, shifted by its origin, faces still turned outwards."""
    trimesh.creation.box(extents=[100, 100, 100]).export(tmp_path / "cube.stl")
    (shape,) = read(tmp_path, mesh_link("cube.stl", "0.001 -0.001 0.001")).shapes["a"]
    np.testing.assert_allclose(shape.mesh.bounds, [[-0.05, -0.05, 0.95], [0.05, 0.05, 1.05]], atol=1e-9)
    assert shape.mesh.volume == pytest.approx(1e-3)
    assert not shape.collides
    with pytest.warns(UserWarning, match="cube.stl is over 10 m wide"):
        read(tmp_path, mesh_link("cube.stl"))


def test_package_names_do_not_depend_on_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my_robot" / "meshes"
    folder.mkdir(parents=True)
    trimesh.creation.box(extents=[0.1, 0.1, 0.1]).export(folder / "cube.stl")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    for place in (tmp_path, folder, Path("/")):
        monkeypatch.chdir(place)
        assert len(read(tmp_path, mesh_link("package://my_robot/meshes/cube.stl")).shapes["a"]) == 1
    (folder / "cube.stl").unlink()
    message = refusal(tmp_path, mesh_link("package://my_robot/meshes/cube.stl"))
    assert "link 'a'" in message
    assert str(folder / "cube.stl") in message


def test_b19_bad_meshes_are_refused_naming_link_and_file(tmp_path: Path) -> None:
    quad = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]], process=False)
    quad.export(tmp_path / "flat.stl")
    (tmp_path / "empty.stl").write_bytes(b"")
    (tmp_path / "three.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (tmp_path / "plane.obj").write_text("v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n")
    (tmp_path / "cornerless.ply").write_text(
        "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n"
        "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
        "0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 170\n"
    )
    (tmp_path / "no_zip.3mf").write_bytes(b"PK no more")
    (tmp_path / "nan.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 nan\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n")
    expected = {
        "flat.stl": "flat",
        "empty.stl": "",
        "three.obj": "flat",
        "plane.obj": "export it again",
        "cornerless.ply": "export it again",
        "no_zip.3mf": "cannot be read",
        "nan.obj": "not finite",
        "no.stl": "does not exist",
    }
    for name, word in expected.items():
        message = refusal(tmp_path, mesh_link(name))
        assert "link 'a'" in message and name in message and word in message
