"""The readers on the cases of public bug reports, and on the same kinds in other clothes."""

import math
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh

from simulo.description.mimics import MimicRelation
from simulo.errors import LoweringError
from simulo.lowering import meshes
from simulo.lowering.mjcf import read_mjcf
from simulo.lowering.model import RobotModel, link_mesh
from simulo.lowering.placing import model_poses
from simulo.lowering.urdf import read_urdf
from tests.lowering.test_hostile_meshes import dae
from tests.lowering.urdf_text import gripper, joint, link, robot, shape


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def urdf(tmp_path: Path, text: str) -> RobotModel:
    return read_urdf(write(tmp_path / "r.urdf", text))


def mesh(name: str, scale: str = "1 1 1") -> str:
    return shape(f"<mesh filename='{name}' scale='{scale}'/>")


def cube_dae(half: float, unit: str, scene: str = "") -> str:
    corners = [[x, y, z] for x in (-half, half) for y in (-half, half) for z in (-half, half)]
    faces = trimesh.convex.convex_hull(np.array(corners)).faces
    text = dae(
        numbers=" ".join(str(v) for corner in corners for v in corner), indices=" ".join(map(str, faces.ravel())),
        count=str(len(faces)), unit=unit, **({"scene": scene} if scene else {}),
    )  # fmt: skip
    return text.replace("id='f' count='12'", "id='f' count='24'").replace("count='4' stride", "count='8' stride")


def width(model: RobotModel, name: str = "a") -> float:
    return float(np.ptp(link_mesh(model.shapes[name]).bounds, axis=0).max())


# --- B08: mimic joints


PAIR = {
    "<mimic joint='leader' multiplier='-1'/>": (-1.0, 0.0),
    "<mimic joint='leader'/>": (1.0, 0.0),
    "<mimic joint='leader' offset='0.01'/>": (1.0, 0.01),
    "<mimic multiplier='2' joint='leader' offset='-0.5'/>": (2.0, -0.5),
}


@pytest.mark.parametrize("kind", ["prismatic", "revolute", "continuous"])
@pytest.mark.parametrize("words", PAIR)
def test_b08_every_kind_of_follower_follows(tmp_path: Path, words: str, kind: str) -> None:
    """Whatever the follower's type, with no limits of its own: one actuated joint, and the other jaw where it belongs,
    0.1 m up and aside of the palm and along or about x by what the relation says."""
    model = urdf(tmp_path, gripper(words, kind))
    multiplier, offset = PAIR[words]
    assert [j.name for j in model.joints if j.name not in model.mimics] == ["leader"]
    assert (model.mimics["follower"].multiplier, model.mimics["follower"].offset) == (multiplier, offset)
    pose = model_poses(model, {"leader": 0.03})["other"]
    moved = multiplier * 0.03 + offset
    assert pose[:3, 3] == pytest.approx([moved if kind == "prismatic" else 0.0, 0.1, 0.1])
    assert pose[2, 1] == pytest.approx(0.0 if kind == "prismatic" else math.sin(moved))


def test_b08_a_leader_defined_after_its_followers_and_a_chain_of_them(tmp_path: Path) -> None:
    parts = [link(name) for name in ("palm", "a", "b", "c")]
    parts += [
        joint("third", "continuous", "palm", "c", "<mimic joint='second' multiplier='-3' offset='1'/>"),
        joint("second", "revolute", "palm", "b", "<mimic joint='first' multiplier='2' offset='0.5'/>"),
        joint("first", "revolute", "palm", "a", "<limit lower='-0.1' upper='0.2'/>"),
    ]
    model = urdf(tmp_path, robot(*parts))
    assert str(model.mimics["third"]) == "-6.0 * first + -0.5"
    assert (model.joint("third").lower, model.joint("third").upper) == pytest.approx((-1.7, 0.1))


# --- B12: conventions of couplings


def test_b12_physx_has_the_opposite_sign_and_degrees() -> None:
    """q + gearing * leader + offset = 0."""
    slide = MimicRelation.from_physx("f", "l", 0.5, -0.2, revolute=False)
    assert (slide.multiplier, slide.offset) == (-0.5, 0.2)
    assert slide.to_physx(revolute=False) == (0.5, -0.2)
    gearing, degrees = MimicRelation("f", "l", 1.0, 0.5).to_physx(revolute=True)
    assert gearing == -1.0 and degrees == pytest.approx(-28.648, abs=1e-3)
    for leader in (-1.0, 0.0, 0.7):
        turn = MimicRelation.from_physx("f", "l", 2.0, 90.0, revolute=True)
        follower = turn.multiplier * leader + turn.offset
        assert follower + 2.0 * leader + math.radians(90.0) == pytest.approx(0.0)


def test_b12_a_urdf_offset_is_radians_and_metres(tmp_path: Path) -> None:
    for kind in ("revolute", "prismatic"):
        model = urdf(tmp_path, gripper("<mimic joint='leader' offset='0.5'/>", kind))
        assert model.mimics["follower"].offset == 0.5


@pytest.mark.parametrize("angle", ["degree", "radian"])
@pytest.mark.parametrize("kind", ["hinge", "slide"])
def test_b12_an_mjcf_coupling_is_what_mujoco_solves(tmp_path: Path, angle: str, kind: str) -> None:
    """polycoef is never degrees: at leader 0.1 the follower's constraint is met at 0.7, whatever <compiler angle>."""
    range_ = "-1 1" if angle == "radian" or kind == "slide" else "-57 57"
    text = f"""<mujoco><compiler angle="{angle}"/><worldbody><body name="p"><geom size="0.1"/>
    <body name="x"><joint name="l" type="{kind}" range="{range_}"/><geom size="0.1"/></body>
    <body name="y"><joint name="f" type="{kind}" range="{range_}"/><geom size="0.1"/></body></body></worldbody>
    <equality><joint joint1="f" joint2="l" polycoef="0.5 2 0 0 0"/></equality>
    <actuator><position joint="l"/></actuator></mujoco>"""
    mimic = read_mjcf(write(tmp_path / "r.xml", text), "base").mimics["f"]
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    data.joint("l").qpos[0] = 0.1
    data.joint("f").qpos[0] = mimic.multiplier * 0.1 + mimic.offset
    mujoco.mj_forward(theirs, data)
    assert data.joint("f").qpos[0] == pytest.approx(0.7)
    assert data.efc_pos[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY] == pytest.approx(0.0, abs=1e-12)


# --- B17: units


@pytest.mark.parametrize(
    ("file", "text", "scale", "expected"),
    [
        pytest.param("a.dae", cube_dae(5.0, "0.01"), "1 1 1", 0.1, id="centimetres"),
        pytest.param("a.dae", cube_dae(5.0, "0.01"), "2 2 2", 0.2, id="centimetres-times-2"),
        pytest.param("a.dae", cube_dae(50.0, "0.001"), "1 -1 1", 0.1, id="millimetres-mirrored"),
        pytest.param("a.dae", cube_dae(0.05, "1"), "1 1 1", 0.1, id="metres"),
        pytest.param("a.dae", cube_dae(1.0, "0.0254"), "1 1 1", 0.0508, id="inches"),
        pytest.param("A.DAE", cube_dae(0.05, "1").replace("<unit meter='1'/>", ""), "1 1 1", 0.1, id="no-unit"),
        pytest.param(
            "a.dae",
            cube_dae(
                5.0, "0.01",
                "<node><scale>2 2 2</scale><node><translate>9 0 0</translate><instance_geometry url='#g'/></node>"
                "</node>",
            ),
            "1 1 1", 0.2, id="scaled-in-a-node",
        ),
    ],
)  # fmt: skip
def test_b17_the_unit_of_a_collada_file_counts(
    tmp_path: Path, file: str, text: str, scale: str, expected: float
) -> None:
    write(tmp_path / file, text)
    model = urdf(tmp_path, robot(link("a", mesh(file, scale))))
    assert width(model) == pytest.approx(expected)
    assert link_mesh(model.shapes["a"]).volume == pytest.approx(expected**3)


def test_b17_millimetres_by_scale_and_a_warning_without(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    trimesh.creation.box(extents=[100.0, 100.0, 100.0]).export(tmp_path / "cube.stl")
    assert width(urdf(tmp_path, robot(link("a", mesh("cube.stl", "0.001 0.001 0.001"))))) == pytest.approx(0.1)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="r.urdf: link 'a', collision 0: mesh file .*cube.stl is over 10 m wide"):
        urdf(tmp_path, robot(link("a", mesh("cube.stl"))))
    text = """<mujoco><asset><mesh name="m" file="cube.stl"/></asset><worldbody><body name="arm">
    <geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    with pytest.warns(UserWarning, match="r.xml: link 'arm', geom 0: mesh file .*cube.stl is over 10 m wide"):
        read_mjcf(write(tmp_path / "r.xml", text), "base")


@pytest.mark.parametrize(
    ("inside", "warns"),
    [
        (shape("<box size='10.1 1 1'/>"), True),
        (shape("<box size='9.9 1 1'/>"), False),
        (
            shape("<sphere radius='1'/>")
            + "<visual><origin xyz='0 9 0'/><geometry><sphere radius='1'/></geometry></visual>",
            True,
        ),
    ],
)  # fmt: skip
def test_b17_a_wide_link_of_primitives_is_warned_of_too(
    tmp_path: Path, inside: str, warns: bool, recwarn: pytest.WarningsRecorder
) -> None:
    urdf(tmp_path, robot(link("a", inside)))
    assert [("r.urdf: link 'a' is" in str(w.message)) for w in recwarn.list] == [True] * warns


# --- B19: meshes without a volume; the hostile files hold the rest


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "dae"])
def test_b19_a_flat_mesh_is_refused_naming_link_and_file(tmp_path: Path, suffix: str) -> None:
    """Tilted, so that no axis gives it away."""
    turn = trimesh.transformations.rotation_matrix(0.7, [1, 2, 3])
    quad = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]], process=False)
    quad.apply_transform(turn)
    (tmp_path / f"flat.{suffix}").write_bytes(_bytes(quad.export(file_type=suffix)))
    with pytest.raises(LoweringError, match=rf"r.urdf: link 'a', collision 0: .*flat.{suffix} is flat .* remove the"):
        urdf(tmp_path, robot(link("a", mesh(f"flat.{suffix}"))))


def _bytes(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else data


# --- B20: classes, defaults, compiler settings


def test_b20_an_explicit_class_replaces_the_childclass(tmp_path: Path) -> None:
    text = """<mujoco><default><geom friction="1" size="0.03"/><default class="amb"><geom friction="0.7" margin="0.02"/>
    </default><default class="exp"><geom size="0.2"/></default></default>
    <worldbody><body name="a" childclass="amb"><geom class="exp"/><geom pos="1 0 0"/></body></worldbody></mujoco>"""
    shapes = read_mjcf(write(tmp_path / "r.xml", text), "base").shapes["a"]
    radii = [0.5 * float(np.ptp(one.mesh.bounds, axis=0).max()) for one in shapes]
    assert radii == pytest.approx([0.2, 0.03], rel=0.02)


def test_b20_compiler_settings_are_honoured(tmp_path: Path) -> None:
    """meshdir, degrees, an euler sequence, and visual geometry that a simulator would discard."""
    trimesh.creation.box(extents=[0.2, 0.1, 0.05]).export(write(tmp_path / "meshes" / "x", "").with_name("bar.stl"))
    text = """<mujoco><compiler meshdir="meshes" angle="degree" eulerseq="ZYX" discardvisual="true"/>
    <asset><mesh name="m" file="bar.stl"/></asset><worldbody><body name="a">
    <geom type="mesh" mesh="m" euler="90 0 0" contype="0" conaffinity="0"/><geom size="0.01"/></body>
    </worldbody></mujoco>"""
    visual, solid = read_mjcf(write(tmp_path / "r.xml", text), "base").shapes["a"]
    assert np.ptp(visual.mesh.bounds, axis=0) == pytest.approx([0.1, 0.2, 0.05])
    assert (visual.collides, solid.collides) == (False, True)


@pytest.mark.parametrize(
    ("attributes", "collides"),
    [
        ("group='3'", True),
        ("group='2'", True),
        ("contype='0' conaffinity='0' group='3'", False),
        ("contype='0' conaffinity='1'", True),
        ("contype='2' conaffinity='0'", True),
    ],
)
def test_b20_what_collides_is_told_by_its_bits_and_not_by_its_group(
    tmp_path: Path, attributes: str, collides: bool
) -> None:
    text = f"<mujoco><worldbody><body name='a'><geom size='1' {attributes}/></body></worldbody></mujoco>"
    assert read_mjcf(write(tmp_path / "r.xml", text), "base").shapes["a"][0].collides is collides


# --- B21: where a model stands


def test_b21_a_floating_or_placed_root_keeps_its_placement(tmp_path: Path) -> None:
    """A jointless root at z = 0.7, whose child is 0.333 above it; in both formats, by a frame, and turned."""
    frame = """<mujoco><worldbody><frame pos="0 0 0.7"><body name="stand"><geom size="0.05"/>
    <body name="arm" pos="0 0 0.333"><joint name="turn"/><geom size="0.05"/></body></body></frame></worldbody>
    </mujoco>"""
    model = read_mjcf(write(tmp_path / "r.xml", frame), "base")
    assert model_poses(model, {})["arm"][:3, 3] == pytest.approx([0, 0, 1.033])
    turned = robot(
        link("world", ""), link("stand"), link("arm"),
        "<joint name='j' type='fixed'><parent link='world'/><child link='stand'/>"
        "<origin xyz='0 0 0.7' rpy='3.14159265358979 0 0'/></joint>",
        joint("turn", "continuous", "stand", "arm", xyz="0 0 0.333"),
    )  # fmt: skip
    assert model_poses(urdf(tmp_path, turned), {})["arm"][:3, 3] == pytest.approx([0, 0, 0.367])


# --- B22: limits


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_b22_limits_are_the_files_or_refused(tmp_path: Path, kind: str) -> None:
    def limits(inside: str) -> tuple[float, float]:
        found = urdf(tmp_path, robot(link("a"), link("b"), joint("elbow", kind, "a", "b", inside))).joint("elbow")
        return found.lower, found.upper

    assert limits("<limit effort='1' velocity='1'/>") == (0.0, 0.0)
    assert limits("<limit upper='2'/>") == (0.0, 2.0)
    assert limits("<limit lower='-2'/>") == (-2.0, 0.0)
    with pytest.raises(LoweringError, match="joint 'elbow'.*no <limit>; give it one"):
        limits("")


@pytest.mark.parametrize(
    ("multiplier", "offset", "expected"), [(-1, 0, (-0.04, 0)), (2, 0.1, (0.1, 0.18)), (-0.5, 1, (0.98, 1))]
)
def test_b22_a_follower_takes_its_leaders_range(
    tmp_path: Path, multiplier: float, offset: float, expected: tuple[float, float]
) -> None:
    text = gripper(f"<mimic joint='leader' multiplier='{multiplier}' offset='{offset}'/>")
    follower = urdf(tmp_path, text).joint("follower")
    assert (follower.lower, follower.upper) == pytest.approx(expected)


# --- B23: names of files


def test_b23_equal_names_in_two_folders_and_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, size in (("arm/visual", 0.1), ("arm/collision", 0.2), ("hand/visual", 0.3)):
        trimesh.creation.box(extents=[size] * 3).export(write(tmp_path / place / "x", "").with_name("finger.stl"))
    inside = mesh("package://arm/visual/finger.stl") + mesh("../collision/finger.stl")
    text = robot(link("a", inside + mesh("package://hand/visual/finger.stl")))
    path = write(tmp_path / "arm" / "urdf" / "r.urdf", text)
    for place in (tmp_path, tmp_path / "hand" / "visual", Path("/")):
        monkeypatch.chdir(place)
        sizes = [float(np.ptp(one.mesh.bounds, axis=0).max()) for one in read_urdf(path).shapes["a"]]
        assert sizes == pytest.approx([0.1, 0.2, 0.3])
    (tmp_path / "hand" / "visual" / "finger.stl").unlink()
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/opt/one:{tmp_path / 'two'}")
    with pytest.raises(LoweringError) as caught:
        read_urdf(path)
    for root in (
        "/opt/one/hand",
        str(tmp_path / "two" / "hand"),
        str(tmp_path / "arm" / "hand"),
        str(tmp_path / "hand"),
    ):
        assert f"{root}/visual/finger.stl" in str(caught.value)
    assert "'package://hand/visual/finger.stl'" in str(caught.value) and "ROS_PACKAGE_PATH" in str(caught.value)


def test_b23_a_missing_mesh_is_not_taken_from_another_package(tmp_path: Path) -> None:
    """The same path inside the robot's own package holds another finger."""
    trimesh.creation.box(extents=[0.1] * 3).export(write(tmp_path / "arm" / "visual" / "x", "").with_name("finger.stl"))
    path = write(tmp_path / "arm" / "urdf" / "r.urdf", robot(link("a", mesh("package://hand/visual/finger.stl"))))
    with pytest.raises(LoweringError, match="does not exist"):
        read_urdf(path)


def test_b23_a_package_is_known_by_its_manifest_too(tmp_path: Path) -> None:
    """A clone in a folder of another name."""
    write(tmp_path / "clone-of-arm" / "package.xml", "<package format='3'><name>arm</name></package>")
    trimesh.creation.box(extents=[0.1] * 3).export(write(tmp_path / "clone-of-arm" / "x", "").with_name("finger.stl"))
    path = write(tmp_path / "clone-of-arm" / "urdf" / "r.urdf", robot(link("a", mesh("package://arm/finger.stl"))))
    assert width(read_urdf(path)) == pytest.approx(0.1)


# --- primitives hold what they stand for


def _in_cylinder(points: np.ndarray) -> np.ndarray:
    return (np.hypot(points[:, 0], points[:, 1]) <= 0.1) & (abs(points[:, 2]) <= 0.2)


def _in_capsule(points: np.ndarray) -> np.ndarray:
    return np.hypot(np.hypot(points[:, 0], points[:, 1]), abs(points[:, 2]).clip(0.2) - 0.2) <= 0.1


@pytest.mark.parametrize(("mesh", "inside"), [("cylinder", _in_cylinder), ("capsule", _in_capsule)])
def test_primitives_are_circumscribed(mesh: str, inside: Callable[[np.ndarray], np.ndarray]) -> None:
    points = np.random.default_rng(0).uniform(-0.35, 0.35, size=(20_000, 3))
    solid = points[inside(points)]
    hull = getattr(meshes, mesh)(0.1, 0.2)
    planes = np.einsum("ij,ij->i", hull.face_normals, hull.triangles_center)
    assert len(solid) > 500 and (solid @ hull.face_normals.T - planes).max() <= 1e-9
