"""Mesh files that are damaged or mean harm: each refused with mesh file, link and remedy, within bounds."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest
import trimesh

from simulo.lowering import lower_robot
from simulo.lowering.draft import draft_folder
from simulo.lowering.meshfiles import read_mesh_file
from simulo.lowering.urdf import read_urdf
from tests.lowering.hostile import LAUGHS, refusal, sparse
from tests.lowering.urdf_text import link, robot, shape

CUBE = trimesh.creation.box(extents=[0.1, 0.1, 0.1])
STL = CUBE.export(file_type="stl")
ASCII_STL = CUBE.export(file_type="stl_ascii").encode()
OBJ = CUBE.export(file_type="obj").encode()
PLY = CUBE.export(file_type="ply")
ASCII_PLY = CUBE.export(file_type="ply", encoding="ascii")


def dae(
    scene: str = "<node><instance_geometry url='#g'/></node>", unit: str = "1", count: str = "4", **parts: str
) -> str:
    """A tetrahedron."""
    indices = parts.get("indices", "0 1 2 0 1 3 0 2 3 1 2 3")
    numbers = parts.get("numbers", "0 0 0 1 0 0 0 1 0 0 0 1")
    geometry = parts.get(
        "geometry",
        f"<mesh><source id='s'><float_array id='f' count='12'>{numbers}</float_array><technique_common>"
        "<accessor source='#f' count='4' stride='3'><param name='X' type='float'/><param name='Y' type='float'/>"
        "<param name='Z' type='float'/></accessor></technique_common></source>"
        "<vertices id='v'><input semantic='POSITION' source='#s'/></vertices>"
        f"<triangles count='{count}'><input semantic='VERTEX' source='#v' offset='0'/><p>{indices}</p></triangles>"
        "</mesh>",
    )
    return (
        f"{parts.get('head', '')}<COLLADA xmlns='http://www.collada.org/2005/11/COLLADASchema' version='1.4.1'>"
        f"<asset><unit meter='{unit}'/></asset><library_geometries><geometry id='g'>{geometry}</geometry>"
        f"</library_geometries>{parts.get('nodes', '')}<library_visual_scenes><visual_scene id='w'>{scene}"
        "</visual_scene></library_visual_scenes><scene><instance_visual_scene url='#w'/></scene></COLLADA>"
    )


def placed(placement: str) -> str:
    return dae(f"<node>{placement}<instance_geometry url='#g'/></node>")


def stl(*triangles: list[list[float]], count: int | None = None) -> bytes:
    rows = b"".join(struct.pack("<12fH", 0, 0, 0, *np.ravel(triangle), 0) for triangle in triangles)
    return bytes(80) + struct.pack("<I", len(triangles) if count is None else count) + rows


def ply(vertices: int, faces: int, body: str) -> bytes:
    return (
        f"ply\nformat ascii 1.0\nelement vertex {vertices}\nproperty float x\nproperty float y\nproperty float z\n"
        f"element face {faces}\nproperty list uchar int vertex_indices\nend_header\n{body}"
    ).encode()


def msh(*counts: int, body: bytes = b"") -> bytes:
    return struct.pack("<4i", *counts) + body


NAN, FAR = float("nan"), 1e30
TETRA = [[[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 0, 0], [1, 0, 0], [0, 0, 1]]]
CORNERS = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
XINCLUDE = "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='/etc/passwd' parse='text'/>"
NODE_CIRCLE = "<library_nodes><node id='n'><instance_node url='#n'/></node></library_nodes>"
NODE_BOMB = (
    "<library_nodes>"
    + "".join(f"<node id='n{i}'>" + 10 * f"<instance_node url='#n{i + 1}'/>" + "</node>" for i in range(8))
    + "<node id='n8'><instance_geometry url='#g'/></node></library_nodes>"
)

CASES: dict[str, tuple[str, bytes | str, str, str]] = {
    "stl-empty": ("m.stl", b"", "empty", "restore"),
    "stl-cut-short": ("m.stl", STL[:-30], "12 triangles", "export it again"),
    "stl-too-long": ("m.stl", STL + b"more", "12 triangles", "export it again"),
    "stl-head-only": ("m.stl", bytes(84), "no triangle", "export it again"),
    "stl-count-lies": ("m.stl", stl(*TETRA, count=4_000_000_000), "4000000000 triangles", "export it again"),
    "stl-nan": ("m.stl", stl(*TETRA, [[0, 0, 0], [1, 0, 0], [0, NAN, 1]]), "not finite (number 8)", "repair"),
    "stl-inf": ("m.stl", stl(*TETRA, [[0, 0, 0], [1, 0, 0], [0, np.inf, 1]]), "not finite", "repair"),
    "stl-far": ("m.stl", stl(*TETRA, [[0, 0, 0], [1, 0, 0], [0, FAR, 1]]), "1e+30 m", "scale it"),
    "stl-flat": ("m.stl", stl(TETRA[0]), "flat", "give it a thickness"),
    "stl-a-line": ("m.stl", stl([[0, 0, 0], [1, 1, 1], [2, 2, 2]]), "flat", "give it a thickness"),
    "stl-a-point": ("m.stl", stl([[1, 1, 1]] * 3), "flat", "give it a thickness"),
    "stl-is-a-picture": ("m.stl", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, "triangles", "export it again"),
    "stl-is-a-zip": ("m.stl", b"PK\x03\x04" + bytes(200), "triangles", "export it again"),
    "stl-text-cut-short": ("m.stl", ASCII_STL[: len(ASCII_STL) // 2], "facets begin", "export it again"),
    "stl-text-without-end": ("m.stl", ASCII_STL.replace(b"endsolid", b""), "facets begin", "export it again"),
    "stl-text-lost-corner": ("m.stl", ASCII_STL.replace(b"vertex", b"corner", 1), "35 corners", "export it again"),
    "stl-text-words": ("m.stl", ASCII_STL.replace(b"0.05", b"half"), "three numbers", "export it again"),
    "stl-text-spaces": ("m.stl", b"solid a\nfacet normal\nendsolid" + b" " * 2_000_000 + b"x", "facets", "export it"),
    "obj-empty": ("m.obj", b"", "no triangle", "export it again"),
    "obj-points-only": ("m.obj", CORNERS, "no triangle", "export it again"),
    "obj-index-0": ("m.obj", CORNERS + "f 0 1 2\n", "line 5", "export it again"),
    "obj-index-past-the-end": ("m.obj", CORNERS + "f 1 2 5\n", "no vertex of it", "export it again"),
    "obj-index-huge": ("m.obj", CORNERS + "f 1 2 99999999999999999999\n", "m.obj", "export it again"),
    "obj-index-back-too-far": ("m.obj", CORNERS + "f -1 -2 -5\n", "line 5", "export it again"),
    "obj-index-word": ("m.obj", CORNERS + "f a b c\n", "line 5", "export it again"),
    "obj-face-of-two": ("m.obj", CORNERS + "f 1 2\n", "line 5", "export it again"),
    "obj-vertex-of-two": ("m.obj", "v 0 0\n" + CORNERS + "f 1 2 3\n", "line 1", "export it again"),
    "obj-vertex-words": ("m.obj", CORNERS + "v a b c\nf 1 2 3\n", "three numbers", "export it again"),
    "obj-nan": ("m.obj", CORNERS + "v 0 0 nan\nf 1 2 3\nf 1 2 5\n", "not finite (number 4)", "repair"),
    "obj-number-with-underscore": ("m.obj", CORNERS + "v 1_0 0 0\nf 1 2 5\n", "'_'", "export it again"),
    "obj-capital-keywords": ("m.obj", CORNERS + "F 1 2 3\n", "line 5", "export it again"),
    "obj-old-line-ends": ("m.obj", (CORNERS + "f 1 2 3\n").replace("\n", "\r"), "m.obj", "export it again"),
    "obj-utf16": ("m.obj", (CORNERS + "f 1 2 3\n").encode("utf-16"), "line 1", "export it again"),
    "obj-calls-a-file": ("m.obj", "call /etc/passwd\n" + CORNERS + "f 1 2 3\n", "line 1", "export it again"),
    "obj-runs-a-program": ("m.obj", "csh true\n" + CORNERS + "f 1 2 3\n", "line 1", "export it again"),
    "obj-endless-line": ("m.obj", "v 0 0 \\\n" * 100_000 + CORNERS, "three numbers", "export it again"),
    "obj-curves": ("m.obj", CORNERS + "f 1 2 3\nsurf 0 1 0 1 1 2 3\n", "line 6", "export it again"),
    "obj-is-binary": ("m.obj", bytes(range(256)) * 8, "line 1", "export it again"),
    "ply-no-head": ("m.ply", b"ply\n", "head", "export it again"),
    "ply-cut-short": ("m.ply", PLY[:-20], "m.ply", "export it again"),
    "ply-text-cut-short": ("m.ply", ASCII_PLY[:-40], "m.ply", "export it again"),
    "ply-count-lies": ("m.ply", ply(4, 400_000, "0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n"), "m.ply", "export it again"),
    "ply-count-absurd": ("m.ply", ply(4, 999_999_999_999, ""), "999999999999 triangles", "simplify"),
    "ply-index": ("m.ply", ply(4, 1, "0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 170\n"), "corner", "export it again"),
    "ply-list-huge": (
        "m.ply",
        ply(4, 1, "").replace(b"ascii", b"binary_little_endian").replace(b"list uchar", b"list uint")
        + np.zeros(12, "<f4").tobytes() + struct.pack("<I3i", 4_000_000_000, 0, 1, 2),
        "m.ply", "export it again",
    ),
    "ply-list-negative": (
        "m.ply", ply(4, 1, "0 0 0\n1 0 0\n0 1 0\n0 0 1\n-3 0 1 2\n").replace(b"uchar", b"int"), "1 faces", "export it",
    ),
    "ply-count-negative": ("m.ply", ply(-4, 1, "3 0 1 2\n"), "head", "export it again"),
    "ply-face-of-two": ("m.ply", ply(4, 2, "0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n2 0 1\n"), "2 faces", "export it"),
    "ply-middle-endian": ("m.ply", ply(4, 1, "").replace(b"ascii", b"binary_middle_endian"), "m.ply", "export it"),
    "ply-strips": ("m.ply", ply(4, 1, "5 0 1 2 3 0\n").replace(b"element face", b"element strip"), "head", "export it"),
    "ply-is-another": ("m.ply", STL, "head", "export it again"),
    "msh-cut-short": ("m.msh", b"\1\0\0", "length", "export it again"),
    "msh-negative": ("m.msh", msh(-1, 0, 0, 1, body=bytes(0)), "length", "export it again"),
    "msh-huge": ("m.msh", msh(2**31 - 1, 0, 0, 2**31 - 1), "length", "export it again"),
    "dae-entity-bomb": ("m.dae", dae(head=LAUGHS), "DOCTYPE", "remove the declaration"),
    "dae-cut-short": ("m.dae", dae()[:-40], "COLLADA", "repair the XML"),
    "dae-other-root": ("m.dae", "<robot/>", "<robot>", "export it again"),
    "dae-unit-0": ("m.dae", dae(unit="0"), "<unit meter='0'>", "write the metres"),
    "dae-unit-negative": ("m.dae", dae(unit="-1"), "<unit meter='-1'>", "write the metres"),
    "dae-unit-nan": ("m.dae", dae(unit="nan"), "<unit meter='nan'>", "write the metres"),
    "dae-unit-word": ("m.dae", dae(unit="inch"), "<unit meter='inch'>", "write the metres"),
    "dae-nowhere": ("m.dae", dae(scene=""), "'g'", "place it or remove it"),
    "dae-no-scene": ("m.dae", dae().replace("<scene>", "<x>").replace("</scene>", "</x>"), "'g'", "place it"),
    "dae-ghost": ("m.dae", dae(scene="<node><instance_geometry url='#h'/></node>"), "COLLADA", "export it again"),
    "dae-index": ("m.dae", dae(indices="0 1 2 0 1 3 0 2 3 1 2 9"), "m.dae", "export it again"),
    "dae-index-negative": ("m.dae", dae(indices="0 1 2 0 1 3 0 2 3 1 2 -9"), "m.dae", "export it again"),
    "dae-index-words": ("m.dae", dae(indices="0 1 two"), "COLLADA", "export it again"),
    "dae-count-lies": ("m.dae", dae().replace("count='12'", "count='999999999999'"), "12 numbers", "export it again"),
    "dae-offset-shifted": (
        "m.dae", dae(indices=18 * "0 ").replace("offset='0'", "offset='2'"), "of 4 triangles", "export it again",
    ),
    "dae-semantic": ("m.dae", dae().replace("'VERTEX'", "'VERTEXES'"), "COLLADA", "export it again"),
    "dae-few-numbers": ("m.dae", dae(numbers="0 0 0 1"), "m.dae", "export it again"),
    "dae-number-words": ("m.dae", dae(numbers="0 0 0 1 0 0 0 1 0 0 0 x"), "m.dae", "export it again"),
    "dae-nan": ("m.dae", dae(numbers="0 0 0 1 0 0 0 1 0 0 0 nan"), "not finite", "repair"),
    "dae-spline": ("m.dae", dae(geometry="<spline/>"), "<spline>", "export again"),
    "dae-convex-of": ("m.dae", dae(geometry="<convex_mesh convex_hull_of='#x'/>"), "<convex_mesh>", "export again"),
    "dae-skin": ("m.dae", dae(scene="<node><instance_controller url='#c'/></node>"), "instance_controller", "export"),
    "dae-accessor-other-axes": (
        "m.dae", dae().replace("name='X'", "name='Z'", 1), "<accessor> of source 's'", "export it again",
    ),
    "dae-accessor-stride": ("m.dae", dae().replace("stride='3'", "stride='2'"), "<accessor>", "export it again"),
    "dae-accessor-offset": (
        "m.dae", dae().replace("stride='3'", "stride='3' offset='3'"), "<accessor>", "export it again",
    ),
    "dae-number-with-underscore": ("m.dae", dae(numbers="0 0 0 1_0 0 0 0 1 0 0 0 1"), "no number", "export it again"),
    "dae-lookat": ("m.dae", placed("<lookat>0 0 1 0 0 0 0 1 0</lookat>"), "<lookat>", "apply it to the mesh"),
    "dae-skew": ("m.dae", placed("<skew>45 0 1 0 1 0 0</skew>"), "<skew>", "apply it to the mesh"),
    "dae-matrix-projective": (
        "m.dae", placed("<matrix>1 0 0 0 0 1 0 0 0 0 1 0 0 0 1 1</matrix>"), "<matrix>", "apply it to the mesh",
    ),
    "dae-matrix-short": ("m.dae", placed("<matrix>1 0 0 0 0 1 0 0</matrix>"), "<matrix>", "apply it to the mesh"),
    "dae-matrix-words": ("m.dae", placed(f"<matrix>{15 * '0 '}one</matrix>"), "<matrix>", "apply it to the mesh"),
    "dae-matrix-0": (
        "m.dae", placed("<matrix>0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1</matrix>"), "flat", "give it a thickness",
    ),
    "dae-included": (
        "m.dae", dae(head="", scene=f"<node>{XINCLUDE}<instance_geometry url='#g'/></node>"), "<xi:include>",
        "put the file's text there",
    ),
    "dae-of-another-file": (
        "m.dae", dae(scene="<node><instance_geometry url='other.dae#g'/></node>"), "other.dae#g", "export it again",
    ),
    "dae-node-circle": (
        "m.dae", dae(scene="<node><instance_node url='#n'/></node>", nodes=NODE_CIRCLE), "m.dae", "export it again",
    ),
    "dae-node-bomb": (
        "m.dae", dae(scene="<node><instance_node url='#n0'/></node>", nodes=NODE_BOMB), "m.dae", "export",
    ),
    "glb": ("m.glb", b"glTF\2\0\0\0", ".glb is none of .stl", "export it again"),
    "no-suffix": ("m", STL, "no suffix is none of .stl", "export it again"),
    "zip-of-meshes": ("m.3mf", b"PK\x03\x04", ".3mf is none of .stl", "export it again"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "data", "element", "remedy"), CASES.values(), ids=CASES.keys())
def test_a_hostile_mesh_is_refused(tmp_path: Path, name: str, data: bytes | str, element: str, remedy: str) -> None:
    (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    path = tmp_path / "r.urdf"
    path.write_text(robot(link("arm", shape(f"<mesh filename='{name}'/>"))))
    message = refusal(lambda: read_urdf(path), str(tmp_path / name), element, remedy)
    assert "r.urdf: link 'arm', collision 0" in message


def test_meshes_of_a_million_triangles_are_refused_unread(tmp_path: Path) -> None:
    million = 1_000_000
    sparse(tmp_path / "a.stl", 84 + 50 * million, bytes(80) + struct.pack("<I", million))
    (tmp_path / "b.obj").write_bytes(CORNERS.encode() + b"f 1 2 3\n" * million)
    (tmp_path / "c.ply").write_bytes(ply(4, million, "0 0 0\n1 0 0\n0 1 0\n0 0 1\n" + "3 0 1 2\n" * million))
    sparse(tmp_path / "d.msh", 16 + 12 * (4 + million), msh(4, 0, 0, million))
    facet = b"facet normal 0 0 1 outer loop vertex 0 0 0 vertex 1 0 0 vertex 0 1 0 endloop endfacet\n"
    (tmp_path / "e.stl").write_bytes(b"solid s\n" + facet * million + b"endsolid s\n")
    for name in ("a.stl", "b.obj", "c.ply", "d.msh", "e.stl"):
        refusal(lambda name=name: read_mesh_file(tmp_path / name, "link 'arm'"), name, "link 'arm'", "simplify")


def test_a_hull_of_too_many_corners_is_refused(tmp_path: Path) -> None:
    """A fine sphere under the cap of triangles: every vertex is extreme, and fitting them would take minutes."""
    points = np.random.default_rng(0).normal(size=(12_000, 3))
    ball = trimesh.convex.convex_hull(0.1 * points / np.linalg.norm(points, axis=1, keepdims=True))
    ball.export(tmp_path / "ball.stl")
    path = tmp_path / "r.urdf"
    path.write_text(robot(link("arm", shape("<mesh filename='ball.stl'/>"))))
    draft_folder(path)
    refusal(lambda: lower_robot(tmp_path), "r.urdf", "link 'arm': the hull of its meshes has 12000", "simplify")


def test_meshes_of_many_gigabytes_and_endless_ones_are_refused_unread(tmp_path: Path) -> None:
    for suffix in ("stl", "obj", "ply", "dae", "msh"):
        path = sparse(tmp_path / f"large.{suffix}", 40 << 30)
        refusal(lambda path=path: read_mesh_file(path, "link 'arm'"), path.name, "link 'arm'", "simplify the mesh")
    os.mkfifo(tmp_path / "pipe.stl")
    os.symlink("/dev/zero", tmp_path / "zero.stl")
    for name in ("pipe.stl", "zero.stl"):
        refusal(lambda name=name: read_mesh_file(tmp_path / name, "link 'arm'"), name, "link 'arm'", "restore it")


def test_a_healthy_file_of_every_kind_is_read_whole(tmp_path: Path) -> None:
    """The files that the hostile ones above are made from: it is their damage that is refused."""
    words = msh(8, 0, 0, 12, body=np.asarray(CUBE.vertices, "<f4").tobytes() + np.asarray(CUBE.faces, "<i4").tobytes())
    healthy = {"a.stl": STL, "b.stl": ASCII_STL, "c.obj": OBJ, "d.ply": PLY, "e.ply": ASCII_PLY, "f.msh": words}
    for name, data in healthy.items():
        (tmp_path / name).write_bytes(data)
        vertices, faces = read_mesh_file(tmp_path / name, "link 'arm'")
        mesh = trimesh.Trimesh(vertices, faces)
        assert mesh.volume == pytest.approx(1e-3, rel=1e-6), name
        assert len(faces) == 12
    (tmp_path / "g.dae").write_text(dae(unit="0.01"))
    vertices, faces = read_mesh_file(tmp_path / "g.dae", "link 'arm'")
    assert vertices.max() == pytest.approx(0.01) and len(faces) == 4


def test_obj_indices_count_from_either_end_and_faces_have_any_number_of_corners(tmp_path: Path) -> None:
    """A cube of quads written face by face, each counting back to its own four corners, over two lines."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    lines = []
    for quad in quads:
        lines += [f"v {x} {y} {z}" for x, y, z in corners[list(quad)]] + ["f -4//1 -3/2 -2/1/1 \\", "-1  # the last"]
    (tmp_path / "m.obj").write_text("mtllib none.mtl\n" + "\r\n".join(lines))
    vertices, faces = read_mesh_file(tmp_path / "m.obj", "link 'arm'")
    mesh = trimesh.Trimesh(vertices, faces)
    assert len(faces) == 12 and mesh.is_watertight and mesh.volume == pytest.approx(1.0)
