"""collision.json's bytes: equal entries give equal text, with one vertex per line so that a diff can be read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulo.description.files import BoxEntry, CollisionFile, GeometryEntry, PieceEntry
from simulo.description.load import NANOMETRE
from simulo.description.schema import ConvexPiece, LinkGeometry


def collision_text(collision: CollisionFile) -> str:
    return _render(collision.model_dump(mode="json", exclude_none=True), 0) + "\n"


def geometry_entry(geometry: LinkGeometry) -> GeometryEntry:
    single = len(geometry.pieces) == 1
    pieces = [piece_entry(piece) for piece in geometry.pieces]
    return GeometryEntry(pieces=pieces, hull=None if single else piece_entry(geometry.hull))


def piece_entry(piece: ConvexPiece) -> PieceEntry:
    pose = piece.box_pose
    return PieceEntry(
        box=BoxEntry(position=pose.position, orientation_wxyz=pose.orientation_wxyz, half=piece.box_half),
        dop_nm=[(low, high) for low, high in _nanometres(piece.dop)],
        vertices_nm=[(x, y, z) for x, y, z in _nanometres(piece.vertices)],
        radius_nm=round(piece.radius / NANOMETRE) or None,
    )


def _nanometres(values: NDArray[np.float64]) -> list[list[int]]:
    """Values that already lie on the 1 nm grid, as whole numbers."""
    return np.rint(values / NANOMETRE).astype(np.int64).tolist()


def _render(value: Any, depth: int) -> str:
    """JSON with every list of numbers, and every small entry, on one line."""
    pad, inner = " " * min(depth, 3), " " * min(depth + 1, 3)
    if _fits_one_line(value):
        return json.dumps(value, allow_nan=False, separators=(",", ": ") if depth < 4 else (",", ":"))
    if isinstance(value, dict):
        rows = [f"{inner}{json.dumps(key)}: {_render(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{pad}}}"
    if isinstance(value, list):
        rows = [inner + _render(item, depth + 1) for item in value]
        return "[\n" + ",\n".join(rows) + f"\n{pad}]"
    return json.dumps(value, allow_nan=False)


def _fits_one_line(value: Any) -> bool:
    if isinstance(value, list):
        return not any(isinstance(item, list | dict) for item in value)
    if isinstance(value, dict):
        return not any(isinstance(item, list) and len(item) > 4 for item in value.values()) and all(
            not isinstance(item, dict | list) or _fits_one_line(item) for item in value.values()
        )
    return True
