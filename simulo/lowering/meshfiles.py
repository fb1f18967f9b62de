"""Vertices and triangles of a mesh file, all of them or none.

General mesh libraries keep what they can of a damaged file, which suits a viewer; here a part that is lost is a
collision that is missed. So the plain formats are read strictly, and where a library reads one it is held to the count
that the file declares.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import trimesh
from numpy.typing import NDArray

from simulo.errors import LoweringError
from simulo.lowering.collada import read_collada
from simulo.lowering.limits import MAX_MESH_BYTES, MAX_TRIANGLES, refuse_large_file

Triangles = tuple[NDArray[np.float64], NDArray[np.int64]]
"""Vertices, shape (V, 3), and the rows of each triangle's corners, shape (T, 3)."""

_STL_HEADER, _STL_TRIANGLE = 84, 50
"""Bytes of a binary STL's head and of each triangle."""


def read_mesh_file(path: Path, label: str) -> Triangles:
    """The file's triangles in its own units, COLLADA's unit applied. label: file and element, for errors.

    Raises LoweringError when the file is missing, too large, of an unknown kind, damaged or empty.
    """
    label = f"{label}: mesh file {path}"
    if not path.is_file():
        raise LoweringError(f"{label} does not exist as a file; restore it, or correct the path in the model")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(_READERS)
        raise LoweringError(f"{label} cannot be read: {path.suffix or 'no suffix'} is none of {known}; export it again")
    refuse_large_file(path, MAX_MESH_BYTES, label, "simplify the mesh")
    try:
        vertices, faces = reader(path.read_bytes(), label)
    except OSError as error:
        raise LoweringError(f"{label} cannot be read ({error}); make the file readable") from error
    if len(faces) == 0:
        raise LoweringError(f"{label} is empty: it has no triangle; remove the shape or export it again")
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise LoweringError(f"{label} has a triangle with a corner that is no vertex of it; export it again")
    return vertices, faces


def _refuse_many(count: int, label: str) -> None:
    if count > MAX_TRIANGLES:
        raise LoweringError(f"{label} has {count} triangles, over the limit of {MAX_TRIANGLES}; simplify the mesh")


def _read_stl(data: bytes, label: str) -> Triangles:
    count = int.from_bytes(data[80:84], "little")
    if len(data) >= _STL_HEADER and len(data) == _STL_HEADER + _STL_TRIANGLE * count:
        _refuse_many(count, label)
        rows = np.frombuffer(data, dtype=np.uint8, offset=_STL_HEADER).reshape(count, _STL_TRIANGLE)
        corners = rows[:, 12:48].copy().view("<f4").astype(np.float64).reshape(-1, 3)  # 12 bytes of normal before them
        return corners, np.arange(3 * count).reshape(-1, 3)
    if data[:512].lstrip()[:5].lower() == b"solid" and b"facet" in data[:4096].lower():
        return _read_ascii_stl(data, label)
    if not data:
        raise LoweringError(f"{label} is empty; restore it, or export it again")
    raise LoweringError(
        f"{label} cannot be read as STL: its {len(data)} bytes are no text that starts with 'solid', nor the {count} "
        "triangles that its head announces; it is cut short or of another kind, export it again"
    )


def _read_ascii_stl(data: bytes, label: str) -> Triangles:
    count = len(re.findall(rb"\bfacet\s+normal\b", data, re.IGNORECASE))
    _refuse_many(count, label)
    corners = re.findall(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)", data, re.IGNORECASE)
    ended = len(re.findall(rb"\bendfacet\b", data, re.IGNORECASE))
    closed = data.rstrip().rpartition(b"\n")[2].lstrip().lower().startswith(b"endsolid")
    if len(corners) != 3 * count or ended != count or not closed:
        raise LoweringError(
            f"{label} cannot be read as STL: {count} facets begin, {ended} end, with {len(corners)} corners; it is cut "
            "short or damaged, export it again"
        )
    return _floats(corners, label), np.arange(len(corners)).reshape(-1, 3)


def _floats(words: object, label: str) -> NDArray[np.float64]:
    texts = np.array(words, dtype=np.bytes_)
    if b"_" in texts.tobytes():  # which Python alone reads as a number
        raise LoweringError(f"{label} has a vertex that is not three numbers (with '_'); export it again")
    try:
        return texts.astype(np.float64).reshape(-1, 3)
    except ValueError as error:
        raise LoweringError(f"{label} has a vertex that is not three numbers ({error}); export it again") from error


_OBJ_IGNORED = frozenset(
    b"vt vn vp g o s l p mtllib usemtl mg bevel lod c_interp d_interp shadow_obj trace_obj".split()
)
"""Keywords of an OBJ file that add no surface."""


def _read_obj(data: bytes, label: str) -> Triangles:
    """Faces of more than three corners become fans: where one is not convex they cover it and a little more."""
    vertices: list[list[bytes]] = []
    faces: list[tuple[int, int, int]] = []
    for number, line in enumerate(data.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").split(b"\n"), start=1):
        words = line.partition(b"#")[0].split()
        if not words or words[0] in _OBJ_IGNORED:
            continue
        if words[0] == b"v" and len(words) >= 4:
            vertices.append(words[1:4])
        elif words[0] == b"f" and len(words) >= 4:
            first, *rest = (_obj_index(word, len(vertices), label, number) for word in words[1:])
            faces.extend((first, second, third) for second, third in pairwise(rest))
            _refuse_many(len(faces), label)
        else:
            raise LoweringError(
                f"{label} cannot be read as OBJ: line {number} is {line[:60]!r}; it is damaged, or of a kind other "
                "than polygons: export it again"
            )
    return _floats(vertices, label), np.array(faces, dtype=np.int64).reshape(-1, 3)


def _obj_index(word: bytes, known: int, label: str, line: int) -> int:
    """`7`, `7/1`, `7//3` or a count back from the last vertex so far, as a row from 0."""
    try:
        index = int(word.partition(b"/")[0])
    except ValueError:
        index = 0
    row = index - 1 if index > 0 else known + index
    if index == 0 or not 0 <= row < MAX_MESH_BYTES:
        raise LoweringError(f"{label} cannot be read as OBJ: line {line} names vertex {word[:20]!r}; export it again")
    return row


def _read_msh(data: bytes, label: str) -> Triangles:
    """MuJoCo's own: counts of vertices, normals, texture coordinates and triangles, then their numbers."""
    head = np.frombuffer(data[:16], dtype="<i4") if len(data) >= 16 else np.array([-1, -1, -1, -1], dtype=np.int32)
    vertices, normals, texcoords, faces = (int(count) for count in head)
    size = 16 + 12 * vertices + 12 * normals + 8 * texcoords + 12 * faces
    if head.min() < 0 or size != len(data):
        raise LoweringError(f"{label} cannot be read as MSH: its length is not what its head says; export it again")
    _refuse_many(faces, label)
    corners = np.frombuffer(data, dtype="<f4", offset=16, count=3 * vertices).astype(np.float64)
    rows = np.frombuffer(data, dtype="<i4", offset=len(data) - 12 * faces, count=3 * faces).astype(np.int64)
    return corners.reshape(-1, 3), rows.reshape(-1, 3)


_SLIPS = (ValueError, OSError, LookupError, TypeError, AttributeError, NameError, OverflowError, EOFError)
"""What trimesh's PLY reader raises on damaged files, as the fuzz run found them."""


def _read_ply(data: bytes, label: str) -> Triangles:
    """Through trimesh, held to the counts in the head."""
    head = data[: data.find(b"end_header")]
    declared = {
        kind: [int(number) for number in re.findall(rb"^element\s+" + kind + rb"\s+(\d{1,12})\s*$", head, re.MULTILINE)]
        for kind in (b"vertex", b"face")
    }
    if not data.startswith(b"ply") or any(len(found) != 1 for found in declared.values()):
        raise LoweringError(
            f"{label} cannot be read as PLY: its head does not declare vertices and faces; export it again"
        )
    (vertices,), (faces,) = declared.values()
    _refuse_many(max(faces, vertices // 3), label)
    try:
        mesh = trimesh.load_mesh(io.BytesIO(data), file_type="ply", process=False)
    except _SLIPS as error:
        raise LoweringError(f"{label} cannot be read as PLY ({error}); it is damaged, export it again") from error
    if not isinstance(mesh, trimesh.Trimesh) or len(mesh.vertices) != vertices or len(mesh.faces) < faces:
        raise LoweringError(f"{label} does not hold the {faces} faces that its head declares; export it again")
    _refuse_many(len(mesh.faces), label)
    if mesh.vertices.shape[1:] != (3,):
        raise LoweringError(f"{label} has vertices that are not three numbers; export it again")
    return np.asarray(mesh.vertices, dtype=np.float64), np.asarray(mesh.faces, dtype=np.int64)


def _read_dae(data: bytes, label: str) -> Triangles:
    vertices, faces = read_collada(data, label)
    _refuse_many(len(faces), label)
    return vertices, faces


_READERS: dict[str, Callable[[bytes, str], Triangles]] = {
    ".stl": _read_stl,
    ".obj": _read_obj,
    ".dae": _read_dae,
    ".ply": _read_ply,
    ".msh": _read_msh,
}
