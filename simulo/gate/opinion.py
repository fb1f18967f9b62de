"""What the float64 reference makes of the two parties of a recorded stop: slow, plain, and written apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulo.collision import CollisionModel, PartyCodes, RawVerdict
from simulo.collision.parties import cell_indices
from simulo.collision.reference import cell_corners, signed_distance
from simulo.description import RobotDescription, reference_fk
from simulo.gate.audit import StopRecord, shape_of
from simulo.gate.session import SLOTS_PER_HAND
from simulo.pose import Pose

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Opinion:
    """distance [m], signed, of the two parties in float64; margin [m]: what has to lie between them."""

    distance: float
    margin: float

    @property
    def refuses(self) -> bool:
        return self.distance <= self.margin


@dataclass(frozen=True)
class _Solid:
    """One convex part: vertices (V, 3) [m] in the base frame, and the ball around each."""

    vertices: Matrix
    ball: float


def second_opinion(
    record: StopRecord, description: RobotDescription, model: CollisionModel, verdict: RawVerdict
) -> Opinion | None:
    """The distance of the verdict's two parties where it found them; None where it names none that has a shape.

    A hand that is posed as measured and as commanded counts where it is nearer.
    """
    codes = PartyCodes(model, SLOTS_PER_HAND)
    a, b = int(verdict.party_a[0]), int(verdict.party_b[0])
    if {codes.kind_of(a), codes.kind_of(b)} & {"nobody", "edge"}:
        return None
    on_robot = codes.kind_of(b) in ("link", "payload")
    least = min(_between(record, description, model, codes, q, a, b) for q in _configurations(record, model, verdict))
    margin = record.arrays["margins"][0 if on_robot else 1] + record.arrays["widened"]
    return Opinion(least, float(margin))


def _configurations(record: StopRecord, model: CollisionModel, verdict: RawVerdict) -> list[Matrix]:
    """The offending configuration, and the same with the hands as measured."""
    rows, row, share = record.arrays["q"].astype(np.float64), int(verdict.row[0]), float(verdict.between[0])
    q = rows[row]
    if share > 0.0:
        before = rows[row - 1] if row else record.arrays["start"].astype(np.float64)
        q = before + share * (q - before)
    out = [q]
    for gripper, value, active in zip(model.grippers, record.arrays["measured"], record.arrays["active"], strict=True):
        if active:
            out += [np.where(np.arange(len(q)) == gripper.column, np.float64(value), each) for each in out]
    return out


def _between(
    record: StopRecord,
    description: RobotDescription,
    model: CollisionModel,
    codes: PartyCodes,
    q: Matrix,
    a: int,
    b: int,
) -> float:
    links = reference_fk(description, q)
    first, second = (_solids(record, description, model, codes, links, code) for code in (a, b))
    return min(signed_distance(x.vertices, y.vertices) - x.ball - y.ball for x in first for y in second)


def _solids(
    record: StopRecord,
    description: RobotDescription,
    model: CollisionModel,
    codes: PartyCodes,
    links: dict[str, Matrix],
    code: int,
) -> list[_Solid]:
    """The convex parts of a party, in the base frame."""
    kind = codes.kind_of(code)
    if kind == "link":
        name = model.link_names[code]
        geometry = description.geometry[name]
        if model.finger_model == "swept":
            geometry = next((g for g in description.swept.values() if g.link == name), geometry)
        return [_Solid(_placed(piece.vertices, links[name]), piece.radius) for piece in geometry.pieces]
    if kind == "payload":
        column = code - codes.first_payload
        held = next(each for each in record.header["payloads"] if each["column"] == column)
        shape, pose = shape_of(record, f"payload_{column}"), _matrix(record.arrays[f"payload_{column}_pose"])
        return [_Solid(_placed(shape.vertices, links[held["link"]] @ pose), shape.radius)]
    base = np.linalg.inv(_matrix(record.arrays["base_pose"]))
    if kind == "primitive":
        index = code - codes.first_primitive
        shape, pose = shape_of(record, f"primitive_{index}"), _matrix(record.arrays["primitive_pose"][index])
        return [_Solid(_placed(shape.vertices, base @ pose), shape.radius)]
    cell, counts = float(record.arrays["grid_cell"]), record.arrays["grid_bricks"].shape
    lattice = base @ _matrix([*record.arrays["grid_position"], *record.arrays["grid_orientation_wxyz"]])
    centre = (np.array(cell_indices(code, (counts[0], counts[1], counts[2]))) + 0.5) * cell
    return [_Solid(_placed(cell_corners(centre, cell, np.eye(3)), lattice), 0.0)]


def _placed(vertices: Matrix, pose: Matrix) -> Matrix:
    return np.asarray(vertices) @ pose[:3, :3].T + pose[:3, 3]


def _matrix(pose: ArrayLike) -> Matrix:
    """4 x 4 of position and wxyz, normalised."""
    x, y, z, *quaternion = np.asarray(pose, np.float64).tolist()
    qw, qx, qy, qz = np.array(quaternion) / np.linalg.norm(quaternion)
    return Pose((x, y, z), (float(qw), float(qx), float(qy), float(qz))).matrix
