"""MJCF files that are malformed or mean harm: each refused with file, element and remedy, within bounds.

Most of them MuJoCo compiles without a word, crashes on or works at for minutes.
"""

import os
import struct
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import trimesh

from simulo.lowering import mjcf_guard
from simulo.lowering.mjcf import read_mjcf
from tests.lowering.hostile import LAUGHS, refusal, sparse


def model(world: str = "<geom size='1'/>", before: str = "", after: str = "") -> str:
    return f"<mujoco>{before}<worldbody>{world}</worldbody>{after}</mujoco>"


def body(inside: str, attributes: str = "") -> str:
    return model(f"<body name='arm' {attributes}>{inside}</body>")


def hinge(attributes: str) -> str:
    return body(f"<joint name='j' {attributes}/><geom size='1'/>")


def coupled(polycoef: str, first: str = "j", second: str = "k") -> str:
    bodies = "<body><joint name='j'/><geom size='1'/><body><joint name='k'/><geom size='1'/></body></body>"
    equality = f"<joint joint1='{first}' joint2='{second}' polycoef='{polycoef}'/>"
    return model(bodies, after=f"<equality>{equality}</equality>")


def held(equality: str, tendon: str = "") -> str:
    inner = "<body name='b'><joint name='k'/><geom size='1'/></body>"
    bodies = f"<body name='a'><joint name='j'/><geom size='1'/>{inner}</body>"
    return model(bodies, after=f"<tendon>{tendon}</tendon><equality>{equality}</equality>")


def mesh(attributes: str, compiler: str = "") -> str:
    asset = f"<compiler {compiler}/><asset><mesh name='m' {attributes}/></asset>"
    return model("<body name='arm'><geom type='mesh' mesh='m'/></body>", before=asset)


VERTICES = "vertex='0 0 0 1 0 0 0 1 0 0 0 1'"
ITSELF = "<asset><model name='x' file='r.xml'/></asset>"
DEEP = model("<body><geom size='1'/>" * 20_000 + "</body>" * 20_000)
CROWD = model("<replicate count='150'>" * 3 + "<geom size='1'/>" + "</replicate>" * 3)

XML = {
    "entity-bomb": (LAUGHS + model(), "DOCTYPE", "remove the declaration"),
    "external-entity": ("<!DOCTYPE m [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>" + model("&x;"), "DOCTYPE", "remove"),
    "cut-short": (model()[:-9], "line 1", "repair the XML"),
    "empty": ("", "empty", "restore it"),
    "nul-byte": (model("\0"), "line 1", "repair the XML"),
    "other-root": ("<robot name='r'><link name='a'/></robot>", "<robot>", "give a MJCF file"),
    "deep": (DEEP, "depth", "repair the XML"),
    "many-elements": (model("<geom size='1'/>" * 250_000), "XML elements", "no MJCF needs as many"),
    "unknown-element": (model("<gem size='1'/>"), "gem", "repair"),
    "unknown-attribute": (model("<geom sise='1'/>"), "sise", "repair"),
    "include-itself": ("<mujoco><include file='r.xml'/></mujoco>", "r.xml is included", "use it once"),
    "include-missing": ("<mujoco><include file='gone.xml'/></mujoco>", "gone.xml", "restore it"),
    "include-outside": ("<mujoco><include file='/etc/passwd'/></mujoco>", "/etc/passwd", "move it there"),
    "include-above": (f"<mujoco><include file='{'../' * 40}etc/passwd'/></mujoco>", "/etc/passwd", "move it there"),
    "include-a-folder": ("<mujoco><include file='.'/></mujoco>", "<include>", "name one"),
    "include-twice-on-two-ways": (
        "<mujoco><include file='a.xml'/><include file='b.xml'/></mujoco>", "c.xml is included", "use it once",
    ),
    "include-a-name-too-long": (f"<mujoco><include file='{5_000 * 'a'}'/></mujoco>", "<include>", "correct it"),
    "include-by-xinclude": (
        "<mujoco><xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='c.xml'/></mujoco>", "<xi:include>",
        "put the file's text there",
    ),
    "defaults-too-deep": (
        model(before="<default>" + 210 * "<default class='c'>" + 211 * "</default>"), "<default> is nested", "no",
    ),
    "attach-itself": (
        model("<attach model='x' body='b' prefix='p'/><body name='b'><geom size='1'/></body>", before=ITSELF),
        "r.xml is included or attached", "use it once",
    ),
}  # fmt: skip

COUNTS = {
    "replicate": (model("<replicate count='1000000000'><geom size='1'/></replicate>"), "<replicate>", "smaller"),
    "replicate-in-replicate": (CROWD, "<replicate>", "use fewer"),
    "flexcomp": (
        model("<flexcomp name='f' type='grid' dim='3' count='9999 9999 99' spacing='.1 .1 .1'/>"), "<flexcomp>",
        "smaller",
    ),
    "composite": (model("<composite type='cable' count='99999999 1 1'/>"), "<composite>", "smaller"),
    "keys": (model(before="<size nkey='2000000000'/>"), "<size> nkey", "smaller"),
    "user-data": (model(before="<size nuserdata='2000000000'/>"), "<size> nuserdata", "smaller"),
    "user-numbers": (model(before="<size nuser_geom='2000000000'/>"), "<size> nuser_geom", "smaller"),
    "height-field": (
        model(before="<asset><hfield name='h' nrow='99999' ncol='999999' size='1 1 1 1'/></asset>"), "<hfield> ncol",
        "smaller",
    ),
    "texture": (
        model(before="<asset><texture name='t' type='2d' builtin='flat' width='999999' height='9'/></asset>"),
        "<texture> width", "smaller",
    ),
    "memory": (model(before="<size memory='1000G'/>"), "MuJoCo needs over", "use a simpler one"),
    "picture-that-unpacks": (
        model(before="<asset><texture name='t' type='2d' file='large.png'/></asset>"), "MuJoCo needs over",
        "use a simpler one",
    ),
    "height-field-under-the-cap": (
        model("<geom type='hfield' hfield='h'/>",
              before="<asset><hfield name='h' nrow='99999' ncol='99999' size='1 1 1 1'/></asset>"),
        "MuJoCo needs over", "use a simpler one",
    ),
}  # fmt: skip

NUMBERS = {
    "position-nan": (body("<geom size='1'/>", "pos='nan 0 0'"), "body 'arm'", "write finite numbers"),
    "position-far": (body("<geom size='1'/>", "pos='1e200 0 0'"), "body 'arm'", "correct its unit"),
    "geom-size-inf": (body("<geom name='g' size='inf'/>"), "geom 'g'", "write finite numbers"),
    "geom-size-huge": (body("<geom size='1e300'/>"), "geom 0 of body 'arm'", "correct its unit"),
    "geom-size-tiny": (body("<geom name='g' size='1e-300'/>"), "geom 'g'", "or remove it"),
    "geom-size-negative": (body("<geom size='-1'/>"), "size 0 must be positive", "repair"),
    "geom-size-missing": (body("<geom type='box'/>"), "size", "repair"),
    "geom-fromto-a-point": (body("<geom type='capsule' size='.1' fromto='0 0 0 0 0 0'/>"), "fromto", "repair"),
    "geom-size-words": (body("<geom size='big'/>"), "size", "repair"),
    "axis-0": (hinge("axis='0 0 0'"), "axis", "repair"),
    "axis-nan": (hinge("axis='nan 0 0'"), "j", "finite"),
    "range-nan": (hinge("range='nan 1' limited='true'"), "joint 'j'", "write finite numbers"),
    "range-inf": (hinge("range='-inf inf' limited='true'"), "joint 'j'", "write finite numbers"),
    "range-absurd": (hinge("range='-1e16 1e16'"), "joint 'j'", "correct its unit"),
    "range-reversed": (hinge("range='1 -1' limited='true'"), "range[0]", "repair"),
    "reference-nan": (hinge("ref='nan'"), "joint 'j'", "write finite numbers"),
    "endless-slide": (hinge("type='slide'"), "'j'", "give it one"),
    "coupling-nan": (coupled("0 nan 0 0 0"), "joint 'j'", "write finite numbers"),
    "coupling-absurd": (coupled("0 1e9 0 0 0"), "joint 'j'", "correct its unit"),
    "coupling-of-nobody": (coupled("0 1 0 0 0", second="ghost"), "ghost", "repair"),
    "coupling-of-itself": (coupled("0 1 0 0 0", second="j"), "'j' is repeated", "repair"),
    "coupling-bent": (coupled("0 1 1 0 0"), "'j' and 'k'", "q1 = c0 + c1 * q2"),
    "coupling-twice": (
        held(2 * "<joint joint1='j' joint2='k' polycoef='0 1 0 0 0'/>"), "'j'", "keep one of the two",
    ),
    "coupling-in-a-circle": (
        held("<joint joint1='j' joint2='k' polycoef='0 1 0 0 0'/><joint joint1='k' joint2='j' polycoef='0 1 0 0 0'/>"),
        "in a circle", "name an actuated leader",
    ),
    "quaternion-0": (body("<geom size='1'/>", "quat='0 0 0 0'"), "quaternion", "repair"),
    "key-of-another-robot": (
        model("<body><joint name='j'/><geom size='1'/></body>", after="<keyframe><key qpos='0 0 0'/></keyframe>"),
        "qpos", "repair",
    ),
    "coupling-to-nothing": (held("<joint joint1='j' polycoef='.5 0 0 0 0'/>"), "'j' at one value", "remove the joint"),
    "coupling-by-a-tendon": (
        held("<tendon tendon1='t'/>", "<fixed name='t'><joint joint='j' coef='1'/><joint joint='k' coef='2'/></fixed>"),
        "couples 'j', 'k'", "<joint> equality",
    ),
    "welded-across-a-joint": (held("<weld body1='a' body2='b'/>"), "'a' and 'b'", "remove those joints"),
}  # fmt: skip

PARTS = {
    "two-bodies-of-a-name": (model("<body name='a'><geom size='1'/></body>" * 2), "'a'", "repair"),
    "two-joints-of-a-name": (
        model("<body><joint name='j'/><geom size='1'/><body><joint name='j'/><geom size='1'/></body></body>"), "'j'",
        "repair",
    ),
    "ball": (hinge("type='ball'"), "'j'", "use those"),
    "free-in-the-air": (model("<geom size='1'/><body><freejoint/><geom size='1'/></body>"), "free", "use those"),
    "mocap": (body("<geom size='1'/>", "mocap='true'"), "'arm'", "remove mocap"),
    "plane": (model("<geom name='floor' type='plane' size='1 1 1'/>"), "'floor'", "without it"),
    "two-joints-on-a-body": (
        body("<joint name='j'/><joint name='k' axis='0 1 0'/><geom size='1'/>"), "body 'arm' carries 2 joints",
        "one body per joint",
    ),
    "body-name-of-two-lines": (model("<body name='a&#10;b'><geom size='1'/></body>"), r"'a\nb'", "rename it"),
    "plugin-of-nobody": (
        model(before="<extension><plugin plugin='/tmp/evil.so'/></extension>"), "/tmp/evil.so", "repair",
    ),
    "flex": (
        model("<body><geom size='1'/></body>"
              "<flexcomp name='f' type='grid' dim='2' count='3 3 1' spacing='.1 .1 .1' radius='.01'/>"),
        "<flex>", "remove it",
    ),
    "class-of-nobody": (model("<geom class='ghost' size='1'/>"), "ghost", "repair"),
}  # fmt: skip

MESHES = {
    "picture-outside": (
        model(before="<asset><texture name='t' type='2d' file='/etc/passwd'/></asset>"),
        "<texture> file '/etc/passwd'",
        "move it there",
    ),
    "picture-of-a-cube-outside": (
        model(before="<asset><texture name='t' type='cube' fileup='/etc/passwd'/></asset>"),
        "/etc/passwd",
        "move it",
    ),
    "skin-outside": (model(before="<asset><skin name='s' file='/etc/passwd'/></asset>"), "/etc/passwd", "move it"),
    "mesh-name-too-long": (mesh(f"file='{5_000 * 'a'}.stl'"), "<mesh> file", "correct it"),
    "mesh-missing-and-worn-by-nobody": (
        model(before="<asset><mesh name='m' file='gone.stl'/></asset>"),
        "gone.stl",
        "no link: remove it",
    ),
    "mesh-missing": (mesh("file='gone.stl'"), "gone.stl", "repair"),
    "mesh-outside": (mesh("file='/etc/passwd'"), "<mesh> file '/etc/passwd'", "move it there"),
    "mesh-above": (mesh("file='" + "../" * 40 + "etc/passwd'"), "/etc/passwd", "move it there"),
    "mesh-above-by-meshdir": (mesh("file='etc/passwd'", "meshdir='" + "../" * 40 + "'"), "/etc/passwd", "move it"),
    "mesh-a-folder": (mesh("file='..'"), "<mesh>", "name one"),
    "mesh-empty": (mesh("file='empty.stl'"), "empty.stl", "repair"),
    "mesh-flat": (mesh("file='flat.stl'"), "flat.stl", "repair"),
    "mesh-nan": (mesh("file='nan.stl'"), "nan.stl", "repair"),
    "mesh-cut-short": (mesh("file='short.stl'"), "short.stl", "repair"),
    "mesh-of-another-kind": (mesh("file='r.xml'"), "r.xml", "repair"),
    "mesh-face-past-the-end": (mesh(VERTICES + " face='0 1 99'"), "99", "repair"),
    "mesh-face-negative": (mesh(VERTICES + " face='0 1 -7'"), "-7", "repair"),
    "mesh-vertex-nan": (mesh(VERTICES.replace("1'", "nan'")), "not finite", "repair"),
    "mesh-scale-0": (mesh("file='cube.stl' scale='0 1 1'"), "cube.stl", "repair"),
}


@cache
def picture(edge: int) -> bytes:
    """A black square that takes a thousandth of its size on the disk."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", edge, edge, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes((edge + 1) * edge), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


CASES = {**XML, **COUNTS, **NUMBERS, **PARTS, **MESHES}


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    cube = trimesh.creation.box(extents=[0.1, 0.1, 0.1])
    cube.export(tmp_path / "cube.stl")
    data = (tmp_path / "cube.stl").read_bytes()
    (tmp_path / "empty.stl").write_bytes(b"")
    for name in "ab":
        (tmp_path / f"{name}.xml").write_text("<mujoco><include file='c.xml'/></mujoco>")
    (tmp_path / "c.xml").write_text(model())
    (tmp_path / "large.png").write_bytes(picture(22_000))
    (tmp_path / "short.stl").write_bytes(data[:-30])
    flat = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]], process=False)
    flat.export(tmp_path / "flat.stl")
    (tmp_path / "nan.stl").write_bytes(data[:96] + np.float32(np.nan).tobytes() + data[100:])
    return tmp_path


@pytest.mark.parametrize(("text", "element", "remedy"), CASES.values(), ids=CASES.keys())
def test_a_hostile_mjcf_is_refused(workshop: Path, text: str, element: str, remedy: str) -> None:
    path = workshop / "r.xml"
    path.write_text(text)
    refusal(lambda: read_mjcf(path, "base"), "r.xml", element, remedy)


def test_what_is_no_file_of_reasonable_size_is_refused_unread(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.xml")
    large = sparse(tmp_path / "large.xml", 40 << 30, b"<mujoco>")
    refusal(lambda: read_mjcf(tmp_path / "pipe.xml", "base"), "pipe.xml", "no regular file", "give the path")
    refusal(lambda: read_mjcf(large, "base"), "large.xml", "42949.7 MB", "right file")
    (tmp_path / "r.xml").write_text(mesh("file='pipe.stl'"))
    os.mkfifo(tmp_path / "pipe.stl")
    refusal(lambda: read_mjcf(tmp_path / "r.xml", "base"), "r.xml", "pipe.stl", "name one")
    (tmp_path / "r.xml").write_text(mesh("file='large.stl'"))
    sparse(tmp_path / "large.stl", 40 << 30)
    refusal(lambda: read_mjcf(tmp_path / "r.xml", "base"), "r.xml", "large.stl", "simplify")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.xml"
    for data in (model().encode("utf-16"), model().encode().replace(b"geom", b"g\xffom"), b"\x7fELF" + bytes(99)):
        path.write_bytes(data)
        refusal(lambda: read_mjcf(path, "base"), "r.xml", "line 1", "UTF-8" if data[0] != 0x7F else "XML")


def test_a_compiler_that_crashes_or_never_ends_is_an_error_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial by itself, on files that a look at the XML would have refused: the first one kills MuJoCo's process,
    the second would take hours and all memory, of which it gets 2 GB."""
    monkeypatch.setattr(mjcf_guard, "TRIAL_SECONDS", 2)
    path = tmp_path / "r.xml"
    path.write_text(XML["attach-itself"][0])
    refusal(lambda: mjcf_guard.try_compiling(path), "r.xml", "signal 11", "repair what it attaches")
    path.write_text(COUNTS["replicate"][0])
    refusal(lambda: mjcf_guard.try_compiling(path), "r.xml", "MuJoCo needs over 2 s", "use a simpler one")


def test_a_crowd_of_links_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.xml"
    path.write_text(model("<body><geom size='1'/></body>" * 2_100))
    refusal(lambda: read_mjcf(path, "base"), "r.xml", "2101 bodies", "lower one robot")
