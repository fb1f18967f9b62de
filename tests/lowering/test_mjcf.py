"""The MJCF reader against hand values and against MuJoCo's own kinematics."""

from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh

from simulo.description.kinematics import joint_motion
from simulo.errors import DescriptionError, LoweringError
from simulo.lowering.mjcf import read_mjcf
from simulo.lowering.model import RobotModel, link_mesh


def read(tmp_path: Path, text: str) -> RobotModel:
    path = tmp_path / "r.xml"
    path.write_text(text)
    return read_mjcf(path, "base")


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises((LoweringError, DescriptionError)) as caught:
        read(tmp_path, text)
    assert "r.xml" in str(caught.value)
    return str(caught.value)


def fingers(equality: str, driven: str = "lead", compiler: str = "angle='radian'", joint: str = "range='-1 1'") -> str:
    """Two hinged fingers side by side, one driven, coupled as `equality` says."""
    return f"""
    <mujoco><compiler {compiler}/><worldbody><body name="palm"><geom size="0.05"/>
      <body name="jaw" pos="0 0.05 0"><joint name="lead" axis="1 0 0" {joint}/><geom size="0.01"/></body>
      <body name="other" pos="0 -0.05 0"><joint name="follow" axis="-1 0 0" {joint}/><geom size="0.01"/></body>
    </body></worldbody>
    <equality><joint {equality}/></equality>
    <actuator><position joint="{driven}" kp="1"/></actuator></mujoco>"""


def relation(model: RobotModel) -> tuple[str, str, float, float]:
    ((name, mimic),) = model.mimics.items()
    return name, mimic.leader, mimic.multiplier, mimic.offset


def test_the_driven_joint_leads_whichever_comes_first(tmp_path: Path) -> None:
    """follow = 0.5 + 2 lead, written either way round: lead = -0.25 + 0.5 follow."""
    either = [
        "joint1='follow' joint2='lead' polycoef='0.5 2 0 0 0'",
        "joint1='lead' joint2='follow' polycoef='-0.25 0.5 0 0 0'",
    ]
    for equality in either:
        assert relation(read(tmp_path, fingers(equality))) == ("follow", "lead", 2.0, 0.5)
    assert relation(read(tmp_path, fingers(either[0], driven="follow"))) == ("lead", "follow", 0.5, -0.25)


def test_b12_angles_in_degrees_do_not_touch_polycoef(tmp_path: Path) -> None:
    """The coefficients stay radians: a leader at 0.1 rad puts the follower at 0.7."""
    text = fingers(
        "joint1='follow' joint2='lead' polycoef='0.5 2 0 0 0'", compiler="angle='degree'", joint="range='-40 40'"
    )
    _, _, multiplier, offset = relation(read(tmp_path, text))
    assert multiplier * 0.1 + offset == pytest.approx(0.7)


def test_relations_hold_about_the_reference_positions(tmp_path: Path) -> None:
    """MuJoCo solves follow - 0.3 = 2 (lead - 0.1): at lead 0.2 the follower settles at 0.5."""
    text = fingers("joint1='follow' joint2='lead' polycoef='0 2 0 0 0'")
    text = text.replace('name="lead"', 'name="lead" ref="0.1"').replace('name="follow"', 'name="follow" ref="0.3"')
    model = read(tmp_path, text)
    _, _, multiplier, offset = relation(model)
    assert multiplier * 0.2 + offset == pytest.approx(0.5)
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    data.joint("lead").qpos[0], data.joint("follow").qpos[0] = 0.2, 0.5
    mujoco.mj_forward(theirs, data)
    assert data.efc_pos[0] == pytest.approx(0.0, abs=1e-12)  # the constraint is satisfied there
    joint = model.joint("lead")  # and the zero pose of a joint with a reference is turned back by it
    pose = joint.origin.matrix @ joint_motion(joint.type, joint.axis, 0.2)
    np.testing.assert_allclose(pose[:3, :3], data.body("jaw").xmat.reshape(3, 3), atol=1e-12)


def test_b21_placement_of_a_fixed_root_body_is_kept(tmp_path: Path) -> None:
    model = read(
        tmp_path,
        """<mujoco><worldbody><body name="stand" pos="0 0 0.7"><geom size="0.05"/>
        <body name="arm" pos="0 0 0.333"><joint name="turn" axis="0 0 1"/><geom size="0.05"/></body></body></worldbody>
        </mujoco>""",
    )
    assert model.links == ("base", "stand", "arm")
    assert (model.attachments[0].origin @ model.joint("turn").origin).position == pytest.approx((0.0, 0.0, 1.033))


def test_b20_defaults_and_fromto_are_honoured(tmp_path: Path) -> None:
    """An explicit class replaces the childclass; a capsule from its class's size ends at both points."""
    model = read(
        tmp_path,
        """<mujoco><default><geom size="0.03"/><default class="amb"/><default class="exp"><geom size="0.2"/></default>
        <default class="bar"><geom type="capsule" size="0.01"/></default></default>
        <worldbody><body name="a" childclass="amb"><geom class="exp"/><geom/>
        <geom class="bar" fromto="0 0 0 0 0 -0.25"/>
        </body></worldbody></mujoco>""",
    )
    big, small, bar = (shape.mesh for shape in model.shapes["a"])
    assert 0.2 - 1e-12 <= big.bounds[1].max() < 0.21
    assert small.bounds[1].max() < 0.032
    assert bar.bounds[0][2] == pytest.approx(-0.26, abs=2e-4) and bar.bounds[0][2] <= -0.26
    assert bar.bounds[1][2] >= 0.01


@pytest.mark.parametrize("geom", ["box", "sphere", "capsule", "cylinder", "ellipsoid"])
def test_primitives_are_circumscribed(tmp_path: Path, geom: str) -> None:
    """Points of the true surface, found by MuJoCo's own rays, lie inside the polyhedron that stands for it."""
    text = f"""<mujoco><worldbody><body name="a">
    <geom type="{geom}" size="0.03 0.05 0.02" pos="0.1 0 0" euler="30 20 10"/></body></worldbody></mujoco>"""
    mesh = link_mesh(read(tmp_path, text).shapes["a"])
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    directions = np.random.default_rng(1).normal(size=(500, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    planes = np.einsum("ij,ij->i", mesh.face_normals, mesh.triangles_center)
    for direction in directions:
        origin = np.array([0.1, 0.0, 0.0]) - direction
        reach = mujoco.mj_ray(model, data, origin, direction, None, 1, -1, np.zeros(1, np.int32), None)
        point = origin + reach * direction
        assert (mesh.face_normals @ point - planes).max() <= 1e-9
    assert np.ptp(mesh.bounds, axis=0).max() < 0.25


def body(inside: str) -> str:
    return f"<mujoco><worldbody><body name='hand'>{inside}</body></worldbody></mujoco>"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("<mujoco><worldbody>", ("cannot be read",), id="cut-short"),
        pytest.param(body("<freejoint/><geom size='1'/>"), ("'hand'", "free"), id="free-joint"),
        pytest.param(
            "<mujoco><worldbody><body name='base' pos='0 0 0.7'><geom size='1'/></body></worldbody></mujoco>",
            ("'base'", "another name"), id="b21-root-and-world",
        ),
        pytest.param(body("<joint name='j' type='ball'/><geom size='1'/>"), ("'j'", "ball"), id="ball-joint"),
        pytest.param(
            body("<joint name='j'/><joint name='k' axis='1 0 0'/><geom size='1'/>"), ("'hand'", "2 joints"), id="two"
        ),
        pytest.param(body("<joint name='j' type='slide'/><geom size='1'/>"), ("'j'", "range"), id="endless-slide"),
        pytest.param(
            "<mujoco><worldbody><geom name='floor' type='plane' size='1 1 1'/></worldbody></mujoco>",
            ("'base'", "'floor'", "PLANE"), id="plane",
        ),
        pytest.param(fingers("joint1='follow' joint2='lead' polycoef='0 1 1 0 0'"), ("lead", "c1"), id="curved"),
        pytest.param(fingers("joint1='follow' joint2='lead' polycoef='1 0 0 0 0'"), ("lead", "c1"), id="flat"),
    ],
)  # fmt: skip
def test_what_has_no_place_is_refused_by_name(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    message = refusal(tmp_path, text)
    for word in words:
        assert word in message


def test_b19_bad_meshes_are_refused_naming_link_and_file(tmp_path: Path) -> None:
    quad = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]], process=False)
    quad.export(tmp_path / "flat.stl")
    (tmp_path / "empty.stl").write_bytes(b"")
    for name in ("flat.stl", "empty.stl", "missing.stl"):
        text = f"""<mujoco><asset><mesh name="m" file="{name}"/></asset>
        <worldbody><body name="hand"><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
        message = refusal(tmp_path, text)
        assert name in message and "hand" in message


def test_a_placed_and_scaled_mesh_is_where_the_file_says(tmp_path: Path) -> None:
    """A wedge, mirrored, turned by 90 degrees about z and shifted; MuJoCo keeps it about its centre of mass."""
    wedge = trimesh.convex.convex_hull(np.array([[0, 0, 0], [100, 0, 0], [0, 40, 0], [0, 0, 20.0]]))
    wedge.export(tmp_path / "wedge.stl")
    text = """<mujoco><asset><mesh name="m" file="wedge.stl" scale="0.001 -0.001 0.001"/></asset>
    <worldbody><body name="hand"><geom type="mesh" mesh="m" pos="0 0 1" euler="0 0 90"/></body></worldbody></mujoco>"""
    (shape,) = read(tmp_path, text).shapes["hand"]
    # (x, y, z) in mm -> scaled (x, -y, z) / 1000 -> turned to (y, x, z) / 1000 -> lifted by 1
    expected = [[0, 0, 1], [0, 0.1, 1], [0.04, 0, 1], [0, 0, 1.02]]
    found = np.asarray(shape.mesh.vertices)
    for corner in expected:
        assert np.linalg.norm(found - corner, axis=1).min() < 1e-9
    assert len(found) == 4
    assert shape.mesh.volume > 0.0
