"""Triangles of a COLLADA file, through pycollada, in metres.

Everything but geometry and its placement is taken out first, so that no image is opened, and a broken material, which
matters to nobody here, cannot hide a broken shape: whatever pycollada complains about then is geometry that would be
lost. The file's axes are kept as they are, whatever its `up_axis` says: URDF viewers do so, and models rely on it.
"""

from __future__ import annotations

import io
import math

import collada
import numpy as np
from collada.common import DaeError
from lxml import etree
from numpy.typing import NDArray

from simulo.errors import LoweringError
from simulo.lowering.limits import MAX_TRIANGLES
from simulo.lowering.xml import Element, local_name, parse_xml

_KEPT = ("asset", "library_geometries", "library_nodes", "library_visual_scenes", "scene")

_NO_SURFACE = ("bind_material", "extra", "lines", "linestrips", "instance_camera", "instance_light")

_POLYGONS = ("triangles", "polylist", "polygons", "trifans", "tristrips")


def read_collada(data: bytes, label: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Vertices [m], shape (V, 3), and triangles, shape (T, 3), of the file's scene. Raises LoweringError."""
    root = parse_xml(data, label, "COLLADA", long_text=True)
    if local_name(root) != "COLLADA":
        raise LoweringError(f"{label} is not COLLADA: its root element is <{local_name(root)}>; export it again")
    unit = _unit(root, label)
    _refuse_unread(root, label)
    _strip(root)
    try:
        document = collada.Collada(io.BytesIO(etree.tostring(root)))
        parts = [] if document.scene is None else list(_parts(document))
    except (DaeError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise LoweringError(f"{label} cannot be read as COLLADA ({error}); export it again as STL or OBJ") from error
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
    corners = sum(int(text) for text in root.xpath("//@count") if str(text).isdecimal() and len(str(text)) < 12)
    if corners > 100 * MAX_TRIANGLES:
        raise LoweringError(f"{label} declares {corners} numbers, over the limit; simplify the mesh")


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
    """(geometry id, vertices, triangles) of each placed primitive, in the scene's frame."""
    for geometry in document.scene.objects("geometry"):
        for primitive in geometry.primitives():
            if hasattr(primitive, "triangleset"):
                primitive = primitive.triangleset()
            faces = np.asarray(primitive.vertex_index).reshape(-1, 3)
            yield geometry.original.id, np.asarray(primitive.vertex, dtype=np.float64), faces
