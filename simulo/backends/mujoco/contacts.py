"""Reading MuJoCo's contacts as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from simulo.backends.base import Contacts


@dataclass(frozen=True, slots=True)
class ContactRows:
    """Contacts of one physics step. geoms: ids, shape (K, 2). normal: from the first to the second, shape (K, 3)."""

    geoms: NDArray[np.int32]
    distance: NDArray[np.float64]
    position: NDArray[np.float64]
    normal: NDArray[np.float64]
    normal_force: NDArray[np.float64]


def read_contacts(model: mujoco.MjModel, data: mujoco.MjData) -> ContactRows:
    """Copy the contacts that the engine found at its last step: its own arrays are overwritten by the next."""
    contact = data.contact
    return ContactRows(
        geoms=contact.geom.copy(),
        distance=contact.dist.copy(),
        position=contact.pos.copy(),
        normal=contact.frame[:, :3].copy(),
        normal_force=_normal_force(model, data, contact.efc_address, contact.dim),
    )


def _normal_force(model: mujoco.MjModel, data: mujoco.MjData, address: NDArray, dim: NDArray) -> NDArray[np.float64]:
    """Elliptic cones have the normal force in a contact's first row; pyramids spread it over all their edges."""
    force = np.zeros(len(address))
    active = address >= 0
    if model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC:
        force[active] = data.efc_force[address[active]]
        return force
    for k in np.flatnonzero(active):
        edges = 1 if dim[k] == 1 else 2 * (dim[k] - 1)
        force[k] = data.efc_force[address[k] : address[k] + edges].sum()
    return force


class ContactLog:
    """The contacts of one environment over the physics steps of one environment step."""

    def __init__(self, model: mujoco.MjModel):
        self._model = model
        self._rows: list[tuple[int, ContactRows]] = []

    def clear(self) -> None:
        self._rows.clear()

    def record(self, data: mujoco.MjData, substep: int) -> None:
        if data.ncon:
            self._rows.append((substep, read_contacts(self._model, data)))

    @property
    def rows(self) -> Sequence[tuple[int, ContactRows]]:
        return self._rows


def collect(logs: Sequence[ContactLog], geom_bodies: NDArray[np.int32], body_names: tuple[str, ...]) -> Contacts:
    """One structure of arrays of what the environments logged. geom_bodies: body per geom."""
    entries = [(env, substep, rows) for env, log in enumerate(logs) for substep, rows in log.rows]
    if not entries:
        none, points = np.zeros(0), np.zeros((0, 3))
        ids = np.zeros(0, dtype=np.int32)
        return Contacts(body_names, ids, ids, ids, ids, none, points, points, none)
    counts = [len(rows.distance) for _, _, rows in entries]
    bodies = geom_bodies[np.concatenate([rows.geoms for _, _, rows in entries])].astype(np.int32)
    return Contacts(
        body_names=body_names,
        env=np.repeat(np.array([env for env, _, _ in entries], dtype=np.int32), counts),
        substep=np.repeat(np.array([substep for _, substep, _ in entries], dtype=np.int32), counts),
        body_a=bodies[:, 0],
        body_b=bodies[:, 1],
        distance=np.concatenate([rows.distance for _, _, rows in entries]),
        position=np.concatenate([rows.position for _, _, rows in entries]),
        normal=np.concatenate([rows.normal for _, _, rows in entries]),
        normal_force=np.concatenate([rows.normal_force for _, _, rows in entries]),
    )
