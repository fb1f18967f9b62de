"""URDF files that are malformed or mean harm: each refused with file, element and remedy, within bounds."""

import os
from pathlib import Path

import pytest
import trimesh

from simulo.lowering.urdf import read_urdf
from tests.lowering.hostile import LAUGHS, refusal, sparse
from tests.lowering.urdf_text import BOX, gripper, joint, link, robot, shape


def two(kind: str, inside: str = "", **entries: str) -> str:
    """Links a and b, joined by joint j."""
    return robot(link("a"), link("b"), joint("j", kind, "a", "b", inside, **entries))


def limit(words: str) -> str:
    return two("revolute", f"<limit {words}/>")


def mesh(name: str, scale: str = "1 1 1") -> str:
    return robot(link("a", shape(f"<mesh filename='{name}' scale='{scale}'/>")))


def chain(count: int) -> str:
    links = [link(f"l{index}", "") for index in range(count)]
    joints = [joint(f"j{index}", "fixed", f"l{index}", f"l{index + 1}") for index in range(count - 1)]
    return robot(*links, *joints)


def mimics(*attributes: str) -> str:
    return gripper("".join(f"<mimic {words}/>" for words in attributes))


EXTERNAL = "<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><robot name='&x;'><link name='a'/></robot>"
NESTED = "<robot name='r'>" + "<a>" * 100_000 + "</a>" * 100_000 + "</robot>"

XML = {
    "entity-bomb": (LAUGHS + "<robot name='r'><link name='a'>&i;</link></robot>", "DOCTYPE", "remove the declaration"),
    "entity-bomb-in-an-attribute": (LAUGHS + "<robot name='&i;'><link name='a'/></robot>", "DOCTYPE", "remove"),
    "external-entity": (EXTERNAL, "DOCTYPE", "remove the declaration"),
    "external-document-type": (
        "<!DOCTYPE robot SYSTEM 'file:///etc/passwd'>" + robot(link("a")), "DOCTYPE", "remove the declaration",
    ),
    "parameter-entity": (
        "<!DOCTYPE r [<!ENTITY % x SYSTEM 'http://localhost/x'>%x;]>" + robot(link("a")), "DOCTYPE", "remove",
    ),
    "cut-short": (robot(link("a"))[:-12], "line 1", "repair the XML"),
    "empty": ("", "empty", "restore it"),
    "blank": ("  \n ", "empty", "restore it"),
    "file-included": (
        "<robot xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include href='/etc/passwd' parse='text'/>" + link("a")
        + "</robot>",
        "<xi:include>", "put the file's text there",
    ),
    "second-robot-after-the-first": (robot(link("a")) + robot(link("b")), "Extra content", "repair the XML"),
    "no-xml": ("links: [a, b]", "Start tag expected", "repair the XML"),
    "other-root": ("<sdf version='1.9'/>", "<sdf>", "give a URDF file"),
    "namespaced-root": ("<robot xmlns='urn:x'><link name='a'/></robot>", "{urn:x}robot", "give a URDF file"),
    "nul-byte": ("<robot name='r\0'/>", "line 1", "repair the XML"),
    "control-character": ("<robot name='&#1;'/>", "line 1", "repair the XML"),
    "attribute-twice": ("<robot name='a' name='b'/>", "name", "repair the XML"),
    "deep": (NESTED, "depth", "repair the XML"),
    "deep-under-the-parsers-cap": (
        "<robot name='r'>" + "<a>" * 220 + "</a>" * 220 + "</robot>", "<a> is nested", "no URDF needs",
    ),
    "many-elements": ("<robot>" + "<a/>" * 300_000 + "</robot>", "300001 XML elements", "no URDF needs as many"),
    "many-instructions": ("<?a?>" * 100_000 + "x", "line 1", "repair the XML"),
    "many-comments": ("<!---->" * 100_000 + "<robot/>", "<robot>", "with links"),
    "macro": (
        "<robot xmlns:xacro='http://x/xacro'><xacro:macro name='arm'/></robot>", "<macro>", "run xacro first",
    ),
    "macro-undeclared": ("<robot><xacro:include filename='x'/></robot>", "<include>", "run xacro first"),
}  # fmt: skip

TREE = {
    "no-link": (robot(), "<robot>", "with links"),
    "many-links": (chain(2_001), "2001 links", "lower one robot"),
    "link-without-name": (robot("<link/>"), "<link>", "name it"),
    "joint-without-name": (
        robot(link("a"), link("b"), "<joint type='fixed'><parent link='a'/><child link='b'/></joint>"), "<joint>",
        "name it",
    ),
    "link-twice": (robot(link("a"), link("a")), "link 'a'", "names are unique"),
    "joint-twice": (
        robot(link("a"), link("b"), link("c"), joint("j", "fixed", "a", "b"), joint("j", "fixed", "a", "c")),
        "joint 'j'", "names are unique",
    ),
    "two-roots": (robot(link("a"), link("b")), "a, b", "one tree"),
    "unknown-link": (robot(link("a"), joint("j", "fixed", "a", "ghost")), "'ghost'", "links: a"),
    "no-parent": (
        robot(link("a"), link("b"), "<joint name='j' type='fixed'><child link='b'/></joint>"), "'j'", "name both links",
    ),
    "two-children": (
        robot(link("a"), link("b"), joint("j", "fixed", "a", "b", "<child link='a'/>")), "2 <child>", "keep one",
    ),
    "two-parents": (
        robot(link("a"), link("b"), joint("j", "fixed", "a", "b"), joint("k", "fixed", "a", "b")), "'b'", "remove one",
    ),
    "circle-of-all": (
        robot(link("a"), link("b"), joint("j", "fixed", "a", "b"), joint("k", "fixed", "b", "a")), "0: none",
        "one tree",
    ),
    "circle-beside-the-root": (
        robot(link("a"), link("b"), link("c"), joint("j", "fixed", "b", "c"), joint("k", "fixed", "c", "b")),
        "b, c", "remove one joint",
    ),
    "joint-onto-itself": (robot(link("a"), link("b"), joint("j", "fixed", "b", "b")), "b", "remove one joint"),
    "link-name-blank": (robot(link(" ")), "link ' '", "rename it"),
    "link-name-with-blanks-around": (
        robot(link("a"), link("a "), joint("j", "fixed", "a", "a ")), "link 'a '", "rename it",
    ),
    "link-name-of-two-lines": (robot(link("a&#10;b")), r"'a\nb'", "rename it"),
    "link-name-turned-round": (robot(link("a\u202eb")), r"'a\u202eb'", "rename it"),
    "link-name-endless": (robot(link(100_000 * "a")), "of over 200 characters", "rename it"),
    "joint-name-of-two-lines": (
        robot(link("a"), link("b"), joint("j&#9;", "continuous", "a", "b")), r"'j\t'", "rename it",
    ),
    "two-parent-elements": (
        robot(link("a"), link("b"), joint("j", "fixed", "a", "b", "<parent link='b'/>")), "2 <parent>", "keep one",
    ),
    "link-inside-a-link": (robot(link("a", "<link name='b'>" + BOX + "</link>")), "link/link", "shapes belong in"),
}  # fmt: skip

JOINTS = {
    "floating": (two("floating"), "'j'", "use revolute"),
    "planar": (two("planar"), "'j'", "use revolute"),
    "no-type": (two("").replace("type=''", ""), "'j'", "use revolute"),
    "no-limit": (two("revolute"), "'j'", "give it one"),
    "no-limit-slide": (two("prismatic"), "'j'", "give it one"),
    "two-limits": (two("revolute", "<limit upper='1'/><limit upper='2'/>"), "2 <limit>", "keep one"),
    "limits-reversed": (limit("lower='1' upper='-1'"), "'j'", "must not exceed"),
    "limit-nan": (limit("lower='nan' upper='1'"), "'j'", "write 1 finite number"),
    "limit-inf": (limit("lower='-inf' upper='inf'"), "'j'", "write 1 finite number"),
    "limit-absurd": (limit("lower='-1e16' upper='1e16'"), "'j'", "make it continuous"),
    "limit-too-long-a-number": (limit("lower='0' upper='1e999'"), "'j'", "write 1 finite number"),
    "limit-word": (limit("upper='wide'"), "'j'", "write 1 number"),
    "limit-macro": (limit("upper='${pi}'"), "'j'", "xacro"),
    "velocity-nan": (limit("upper='1' velocity='nan'"), "velocity", "write 1 finite number"),
    "axis-zero": (two("continuous").replace("xyz='1 0 0'", "xyz='0 0 0'"), "'j'", "give the direction"),
    "axis-nan": (two("continuous").replace("xyz='1 0 0'", "xyz='nan 0 0'"), "'j'", "3 finite numbers"),
    "axis-flat": (two("continuous").replace("xyz='1 0 0'", "xyz='1 0'"), "'j'", "3 finite numbers"),
    "axis-empty": (two("continuous").replace("<axis xyz='1 0 0'/>", "<axis/>"), "'j'", "3 finite numbers"),
    "origin-inf": (two("fixed", xyz="0 0 inf"), "'j'", "3 finite numbers"),
    "origin-absurd": (two("fixed", xyz="0 0 1e300"), "'j'", "correct its unit"),
    "origin-short": (two("fixed", xyz="0 0"), "'j'", "3 finite numbers"),
    "two-origins": (two("fixed", "<origin xyz='1 0 0'/>"), "2 <origin>", "keep one"),
    "mimic-of-nobody": (mimics("joint='ghost'"), "'ghost'", "name one of"),
    "mimic-without-leader": (mimics(""), "'follower'", "name one of"),
    "mimic-of-itself": (mimics("joint='follower'"), "follower -> follower", "name an actuated leader"),
    "mimics-in-a-circle": (
        robot(
            *map(link, "abcd"),
            joint("j", "continuous", "a", "b", "<mimic joint='k'/>"),
            joint("k", "continuous", "a", "c", "<mimic joint='l'/>"),
            joint("l", "continuous", "a", "d", "<mimic joint='j'/>"),
        ),
        "j -> k -> l -> j",
        "name an actuated leader",
    ),
    "two-axes": (two("continuous", "<axis xyz='0 1 0'/>"), "2 <axis>", "keep one"),
    "axis-tiny": (two("continuous").replace("xyz='1 0 0'", "xyz='1e-300 0 0'"), "'j'", "give the direction"),
    "limit-comma": (limit("lower='-1,5' upper='1'"), "'j'", "write 1 number"),
    "limit-hexadecimal": (limit("lower='-1' upper='0x1p3'"), "'j'", "write 1 number"),
    "limit-in-other-digits": (limit("lower='-1' upper='\uff11'"), "'j'", "write 1 number"),
    "mimic-0": (mimics("joint='leader' multiplier='0'"), "'follower'", "other than 0"),
    "mimic-almost-0": (mimics("joint='leader' multiplier='1e-30'"), "'follower'", "make it fixed"),
    "mimic-absurd": (mimics("joint='leader' multiplier='1e30'"), "'follower'", "correct its unit"),
    "mimic-nan": (mimics("joint='leader' multiplier='nan'"), "'follower'", "write 1 finite number"),
    "mimic-offset-inf": (mimics("joint='leader' offset='inf'"), "'follower'", "write 1 finite number"),
    "two-mimics": (mimics("joint='leader'", "joint='leader' multiplier='2'"), "2 <mimic>", "keep one"),
}

SHAPES = {
    "no-shape": (robot(link("a", shape(""))), "link 'a', collision 0", "give it one"),
    "two-shapes": (robot(link("a", shape("<box size='1 1 1'/><sphere radius='1'/>"))), "link 'a'", "give it one"),
    "no-geometry": (robot(link("a", "<visual/>")), "link 'a', visual 0", "give it one"),
    "size-with-underscore": (robot(link("a", shape("<box size='1_0 1 1'/>"))), "'1_0 1 1'", "write 3 numbers"),
    "size-in-other-digits": (robot(link("a", shape("<box size='\u0661 1 1'/>"))), "box size", "write 3 numbers"),
    "two-geometries": (
        robot(link("a", BOX.replace("</collision>", "<geometry><sphere radius='1'/></geometry></collision>"))),
        "2 <geometry>", "keep one",
    ),
    "geometry-in-words": (robot(link("a", shape("box"))), "link 'a', collision 0", "give it one"),
    "origin-by-quaternion": (
        robot(link("a", BOX.replace("<geometry>", "<origin quat_xyzw='0 0 1 0'/><geometry>", 1))), "'quat_xyzw'",
        "write xyz and rpy",
    ),
    "unknown-shape": (robot(link("a", shape("<torus/>"))), "<torus>", "are lowered"),
    "misspelt-collision": (robot(link("a", BOX.replace("collision", "Collision"))), "link/Collision", "shapes belong"),
    "shape-beside-geometry": (
        robot(link("a", "<collision><box size='1 1 1'/></collision>")), "collision/box", "shapes belong",
    ),
    "shapes-in-a-group": (robot(link("a"), "<group>" + link("b") + "</group>"), "group/link", "shapes belong"),
    "box-negative": (robot(link("a", shape("<box size='1 -1 1'/>"))), "box size", "above 0"),
    "box-nan": (robot(link("a", shape("<box size='1 nan 1'/>"))), "box size", "3 finite numbers"),
    "box-huge": (robot(link("a", shape("<box size='1 1 1e9'/>"))), "box size", "correct its unit"),
    "sphere-no-radius": (robot(link("a", shape("<sphere/>"))), "sphere radius", "1 finite number"),
    "sphere-tiny": (robot(link("a", shape("<sphere radius='1e-300'/>"))), "sphere radius", "above 0"),
    "cylinder-no-length": (robot(link("a", shape("<cylinder radius='1'/>"))), "cylinder radius", "2 finite numbers"),
    "origin-nan": (
        robot(link("a", "<visual><origin rpy='nan 0 0'/><geometry><sphere radius='1'/></geometry></visual>")),
        "visual 0", "3 finite numbers",
    ),
    "mesh-nameless": (robot(link("a", shape("<mesh/>"))), "collision 0", "give it a filename"),
    "mesh-missing": (mesh("gone.stl"), "collision 0", "Restore it"),
    "mesh-is-a-folder": (mesh("../"), "collision 0", "Restore it"),
    "mesh-name-endless": (mesh(5_000 * "a" + ".stl"), "cannot be looked for", "correct it"),
    "mesh-name-of-two-lines": (mesh("cube&#10;.stl"), r"'cube\n.stl'", "Restore it"),
    "mesh-name-with-nul-escaped": (mesh("file://cube.stl%00.png"), "r.urdf: link 'a'", "correct"),
    "mesh-of-a-users-home": (mesh("~/cube.stl"), "'~/cube.stl'", "Restore it"),
    "mesh-of-a-variable": (mesh("$HOME/cube.stl"), "'$HOME/cube.stl'", "Restore it"),
    "mesh-of-windows": (mesh("C:\\cube.stl"), "C:", "Restore it"),
    "mesh-in-its-own-name": (mesh("data:model/stl;base64,AAAA"), "'data:model/stl;base64,AAAA'", "Restore it"),
    "mesh-on-the-net": (mesh("https://localhost/cube.stl"), "collision 0", "download it"),
    "mesh-macro": (mesh("$(find arm)/cube.stl"), "collision 0", "xacro"),
    "mesh-of-another-kind": (mesh("r.urdf"), "collision 0", "export it again"),
    "mesh-escape": (mesh("../" * 40 + "etc/passwd"), "/etc/passwd", "move it there"),
    "mesh-absolute": (mesh("/etc/passwd"), "/etc/passwd", "move it there"),
    "mesh-file-url": (mesh("file:///etc/passwd"), "/etc/passwd", "move it there"),
    "mesh-package-escape": (mesh("package://arm/../../../../etc/passwd"), "'arm'", "inside the package"),
    "mesh-package-nobody": (mesh("package:///"), "collision 0", "inside the package"),
    "mesh-package-above": (mesh("package://../cube.stl"), "'..'", "inside the package"),
    "scale-0": (mesh("cube.stl", "1 0 1"), "scale", "other than 0"),
    "scale-nan": (mesh("cube.stl", "1 nan 1"), "scale", "3 finite numbers"),
    "scale-one-number": (mesh("cube.stl", "1"), "scale", "3 finite numbers"),
    "scale-absurd": (mesh("cube.stl", "1e300 1 1"), "scale", "correct its unit"),
    "scale-large": (mesh("cube.stl", "999 999 999"), "cube.stl", "scale it"),
}  # fmt: skip

CASES = {**XML, **TREE, **JOINTS, **SHAPES}


@pytest.mark.parametrize(("text", "element", "remedy"), CASES.values(), ids=CASES.keys())
def test_a_hostile_urdf_is_refused(tmp_path: Path, text: str, element: str, remedy: str) -> None:
    trimesh.creation.box(extents=[10.0, 10.0, 10.0]).export(tmp_path / "cube.stl")
    path = tmp_path / "r.urdf"
    path.write_text(text)
    refusal(lambda: read_urdf(path), "r.urdf", element, remedy)


@pytest.mark.parametrize(
    ("data", "element", "remedy"),
    [
        pytest.param(robot(link("arm")).encode().replace(b"arm", b"\xffrm"), "line 1", "UTF-8", id="not-utf8"),
        pytest.param(robot(link("a")).encode("utf-16"), "line 1", "UTF-8", id="utf16"),
        pytest.param(b"<?xml version='1.0' encoding='latin-1'?><robot name='\xe9'/>", "byte", "UTF-8", id="latin1"),
        pytest.param(
            b"<?xml version='1.0' encoding='utf-7'?>+ADwAIQ-DOCTYPE r [+ADwAIQ-ENTITY a 'x'>]><robot/>",
            "line 1",
            "repair the XML",
            id="document-type-hidden-by-utf7",
        ),
        pytest.param(robot(link("a")).encode("utf-32"), "line 1", "UTF-8", id="utf32"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, "line 1", "UTF-8", id="picture"),
        pytest.param(b"\x1f\x8b\x08\x00" + bytes(64), "line 1", "UTF-8", id="gzip"),
    ],
)
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, data: bytes, element: str, remedy: str) -> None:
    path = tmp_path / "r.urdf"
    path.write_bytes(data)
    refusal(lambda: read_urdf(path), "r.urdf", element, remedy)


def test_what_is_no_file_of_reasonable_size_is_refused_unread(tmp_path: Path) -> None:
    """A pipe would block for ever, a device never end, and a large file fill the memory."""
    os.mkfifo(tmp_path / "pipe.urdf")
    large = sparse(tmp_path / "large.urdf", 40 << 30, b"<robot>")
    refusal(lambda: read_urdf(tmp_path / "pipe.urdf"), "pipe.urdf", "no regular file", "give the path")
    refusal(lambda: read_urdf(Path("/dev/zero")), "/dev/zero", "no regular file", "give the path")
    refusal(lambda: read_urdf(tmp_path), tmp_path.name, "no regular file", "give the path")
    refusal(lambda: read_urdf(tmp_path / "gone.urdf"), "gone.urdf", "does not exist", "give the path")
    refusal(lambda: read_urdf(large), "large.urdf", "42949.7 MB", "right file")


def test_files_that_lead_to_each_other_are_refused(tmp_path: Path) -> None:
    """Links of the file system that go round in a circle."""
    for name, other in (("r.urdf", "s.urdf"), ("s.urdf", "r.urdf"), ("a.stl", "b.stl"), ("b.stl", "a.stl")):
        os.symlink(other, tmp_path / name)
    refusal(lambda: read_urdf(tmp_path / "r.urdf"), "r.urdf", "does not exist", "give the path")
    (tmp_path / "t.urdf").write_text(mesh("a.stl"))
    refusal(lambda: read_urdf(tmp_path / "t.urdf"), "t.urdf", "collision 0: mesh 'a.stl'", "Restore it")


def test_no_file_outside_is_read_for_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entity cannot bring a file of this machine into the model or into the error."""
    secret = tmp_path / "secret.txt"
    secret.write_text("xyzzy")
    path = tmp_path / "r.urdf"
    path.write_text(EXTERNAL.replace("/etc/passwd", str(secret)))
    assert "xyzzy" not in refusal(lambda: read_urdf(path), "r.urdf", "DOCTYPE", "remove")


def test_a_robot_of_too_many_triangles_is_refused_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Meshes that each pass add up; the count is taken as they are read."""
    monkeypatch.setattr("simulo.lowering.urdf.MAX_MODEL_TRIANGLES", 30)
    trimesh.creation.box(extents=[1.0, 1.0, 1.0]).export(tmp_path / "cube.stl")
    path = tmp_path / "r.urdf"
    path.write_text(robot(link("a", 3 * shape("<mesh filename='cube.stl'/>"))))
    refusal(lambda: read_urdf(path), "r.urdf", "link 'a', collision 2", "simplify")
