"""Triangles of a COLLADA file, through pycollada, in metres.

Everything but geometry and its placement is taken out first, so that no image is opened, and a broken material, which
matters to nobody here, cannot hide a broken shape: whatever pycollada complains about then is geometry that would be
lost. The file's axes are kept as they are, whatever its `up_axis` says: URDF viewers do so, and models rely on it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import collada
import numpy as np
from collada.common import DaeError
from lxml import etree
from numpy.typing import NDArray

from simulo.errors import LoweringError
from simulo.lowering.limits import MAX_DEPTH, MAX_TRIANGLES
from simulo.lowering.xml import Element, local_name, parse_xml

_KEPT = ("asset", "library_geometries", "library_nodes", "library_visual_scenes", "scene")

_NO_SURFACE = ("bind_material", "extra", "lines", "linestrips", "instance_camera", "instance_light")

_NO_TURN = ("lookat", "skew")
"""Placements that pycollada does not read, or reads as another."""

_POLYGONS = ("triangles", "polylist", "polygons", "trifans", "tristrips")


def read_collada(data: bytes, label: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Vertices [m], shape (V, 3), and triangles, shape (T, 3), of the file's scene. Raises LoweringError."""
    root = parse_xml(data, label, "COLLADA", long_text=True)
    if local_name(root) != "COLLADA":
        raise LoweringError(f"{label} is not COLLADA: its root element is <{local_name(root)}>; export it again")
    unit = _unit(root, label)
    _refuse_unread(root, label)
    declared = _declared(root, label)
    _refuse_multitude(root, label)
    _strip(root)
    try:
        document = collada.Collada(io.BytesIO(etree.tostring(root)))
        parts = [] if document.scene is None else list(_parts(document))
    except (DaeError, ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise LoweringError(f"{label} cannot be read as COLLADA ({error}); export it again as STL or OBJ") from error
    for name, _, triangles in parts:
        if len(triangles) < declared.get(name, 0):
            raise LoweringError(
                f"{label}: of {declared[name]} triangles of geometry {name!r} {len(triangles)} can be read; it is "
                "damaged, export it again"
            )
    placed = {part[0] for part in parts}
    for geometry in document.geometries:
        if geometry.id not in placed and geometry.primitives:
            raise LoweringError(
                f"{label}: geometry {geometry.id!r} is placed nowhere in the scene; place it or remove it, then export"
            )
    starts = np.cumsum([0, *(len(vertices) for _, vertices, _ in parts)])
    vertices = [part[1] for part in parts] or [np.empty((0, 3))]
    faces = [part[2] + start for part, start in zip(parts, starts[:-1], strict=True)] or [np.empty((0, 3), np.int64)]
    return np.concatenate(vertices) * unit, np.concatenate(faces).astype(np.int64)


def _unit(root: Element, label: str) -> float:
    """[m] What one unit of the file is long; a metre where it does not say."""
    texts = [element.get("meter", "1") for element in root.iterfind("{*}asset/{*}unit")]
    try:
        unit = float(texts[0]) if texts else 1.0
    except ValueError:
        unit = math.nan
    if not (math.isfinite(unit) and unit > 0.0):
        raise LoweringError(f"{label}: <unit meter={texts[0]!r}> is no length above 0; write the metres of one unit")
    return unit


def _refuse_unread(root: Element, label: str) -> None:
    """Surfaces that pycollada knows no triangles of."""
    for element in root.iter("{*}instance_controller", "{*}convex_mesh", "{*}spline", "{*}brep"):
        raise LoweringError(
            f"{label}, line {element.sourceline}: <{local_name(element)}> is not read; bake it into a plain mesh and "
            "export again"
        )
    for node in root.iter("{*}node"):
        if any(True for _ in node.iter("{*}instance_geometry", "{*}instance_node")):
            _refuse_bad_placement(node, label)
    for vertices in root.iter("{*}vertices"):
        for source in (element.get("source", "") for element in vertices.iterfind("{*}input[@semantic='POSITION']")):
            _refuse_bad_numbers(root, source.removeprefix("#"), label)


def _refuse_bad_placement(node: Element, label: str) -> None:
    """A node that holds geometry places it by turns, shifts, scales and affine matrices."""
    for element in node.iterfind("{*}*"):
        kind = local_name(element)
        if kind in _NO_TURN or (kind == "matrix" and not _is_affine((element.text or "").split())):
            raise LoweringError(
                f"{label}, line {element.sourceline}: <{kind}> is no placement that is read; apply it to the mesh and "
                "export again"
            )


def _is_affine(words: Sequence[str]) -> bool:
    try:
        return [float(word) for word in words[12:]] == [0.0, 0.0, 0.0, 1.0]
    except ValueError:
        return False


def _refuse_bad_numbers(root: Element, source: str, label: str) -> None:
    """pycollada takes 0 for a number that is none, and its word for how many there are from the file."""
    sources = [element for element in root.iter("{*}source") if element.get("id") == source]
    for accessor in (found for element in sources for found in element.iterfind("{*}technique_common/{*}accessor")):
        axes = [param.get("name") for param in accessor.iterfind("{*}param")]
        steps = accessor.get("stride", "1"), accessor.get("offset", "0")
        if axes not in (["X", "Y", "Z"], [None] * 3) or steps != ("3", "0"):
            raise LoweringError(
                f"{label}, line {accessor.sourceline}: the <accessor> of source {source!r} does not read X, Y and Z "
                "one after the other; export it again"
            )
    for array in (array for element in sources for array in element.iterfind("{*}float_array")):
        words = (array.text or "").split()
        try:
            if "_" in (array.text or ""):
                raise ValueError("'_' in a number")
            finite = np.isfinite(np.array(words, dtype=np.float64))
        except ValueError as error:
            raise LoweringError(
                f"{label}: source {source!r} holds a word that is no number; export it again"
            ) from error
        if not finite.all():
            first = int(np.flatnonzero(~finite)[0])
            raise LoweringError(f"{label} has a vertex that is not finite (number {first // 3}); repair the mesh")
        if str(len(words)) != (array.get("count") or "").strip():
            raise LoweringError(
                f"{label}: source {source!r} holds {len(words)} numbers and announces {array.get('count')}; "
                "export it again"
            )


def _refuse_multitude(root: Element, label: str) -> None:
    """Nodes that hold nodes that hold nodes multiply: the triangles that they place are counted before any is."""
    triangles = {f"#{geometry.get('id')}": _declared_triangles(geometry) for geometry in root.iter("{*}geometry")}
    nodes = {f"#{node.get('id')}": node for node in root.iter("{*}node") if node.get("id")}
    known: dict[Element, int] = {}

    def count(node: Element, inside: tuple[Element, ...]) -> int:
        if node in inside or len(inside) > MAX_DEPTH:
            raise LoweringError(f"{label}: node {node.get('id')!r} holds itself; export it again")
        if node not in known:
            within = (*inside, node)
            placed = sum(triangles.get(child.get("url"), 0) + 1 for child in node.iterfind("{*}instance_geometry"))
            placed += sum(count(child, within) for child in node.iterfind("{*}node"))
            urls = [child.get("url") for child in node.iterfind("{*}instance_node")]
            known[node] = placed + sum(count(nodes[url], within) for url in urls if url in nodes)
        return known[node]

    for scene in root.iter("{*}visual_scene"):
        total = sum(count(node, ()) for node in scene.iterfind("{*}node"))
        if total > MAX_TRIANGLES:
            raise LoweringError(
                f"{label} places {total} triangles, over the limit of {MAX_TRIANGLES}; simplify it and export again"
            )


def _declared_triangles(geometry: Element) -> int:
    """How many triangles a geometry's polygons make, from their lists of corners."""
    return sum(_polygon_triangles(polygons) for polygons in geometry.iter(*(f"{{*}}{tag}" for tag in _POLYGONS)))


def _polygon_triangles(polygons: Element) -> int:
    offsets = [offset for element in polygons.iterfind("{*}input") for offset in _decimals(element.get("offset"))]
    stride = max(offsets, default=0) + 1
    corners = [len((p.text or "").split()) // stride for p in polygons.iter("{*}p")]
    kind = local_name(polygons)
    if kind == "triangles":  # what it announces counts too: offsets that do not fit would halve it
        return max(sum(corners) // 3, *_decimals(polygons.get("count")), 0)
    if kind == "polylist":
        sides = [word for counts in polygons.iterfind("{*}vcount") for word in _decimals(counts.text)]
        return max(sum(max(count - 2, 0) for count in sides), sum(corners) - 2 * len(sides))
    return sum(max(count - 2, 0) for count in corners)


def _decimals(text: str | None) -> list[int]:
    """The whole numbers in a text; what is none is pycollada's to refuse."""
    return [int(word) for word in (text or "").split() if word.isdecimal() and len(word) < 10]


def _strip(root: Element) -> None:
    for child in list(root):
        if local_name(child) not in _KEPT:
            root.remove(child)
    for element in list(root.iter(*(f"{{*}}{tag}" for tag in _NO_SURFACE))):
        parent = element.getparent()
        if parent is not None:
            parent.remove(element)
    for element in list(root.iter(*(f"{{*}}{tag}" for tag in _POLYGONS))):  # an exporter's empty group of triangles
        indices = [text for p in element.iter("{*}p") for text in (p.text or "").split(None, 1)[:1]]
        parent = element.getparent()
        if not indices and element.get("count", "0").strip() == "0" and parent is not None:
            parent.remove(element)


def _parts(document: collada.Collada):
    """(geometry id, vertices, triangles) of each placed geometry, in the scene's frame."""
    for geometry in document.scene.objects("geometry"):
        vertices, faces, count = [np.empty((0, 3))], [np.empty((0, 3), np.int64)], 0
        for primitive in geometry.primitives():
            if hasattr(primitive, "triangleset"):
                primitive = primitive.triangleset()
            faces.append(np.asarray(primitive.vertex_index).reshape(-1, 3) + count)
            vertices.append(np.asarray(primitive.vertex, dtype=np.float64))
            count += len(vertices[-1])
        yield geometry.original.id, np.concatenate(vertices), np.concatenate(faces)


def _declared(root: Element, label: str) -> dict[str, int]:
    """Triangles of each geometry, by its id. Two of one id would hide each other."""
    declared: dict[str, int] = {}
    for geometry in root.iter("{*}geometry"):
        name = geometry.get("id") or ""
        if name in declared:
            raise LoweringError(f"{label} has two geometries {name!r}; give each an id of its own and export again")
        declared[name] = _declared_triangles(geometry)
    return declared
