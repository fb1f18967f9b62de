"""Surface grippers in MuJoCo: one weld per gripper, made where the cup touches and broken where it is overloaded.

Whether a weld is active is part of MuJoCo's data. What it joins, and which bodies do not collide, is part of the model;
so these are kept here per environment, and written into the model that a thread owns before it steps the environment.

What runs at every physics step keeps to Python's floats and to NumPy's sums: a product of small matrices gives up the
interpreter's lock, and then waits for it longer than it takes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulo.errors import BackendError
from simulo.handles import NO_BODY, BondLimits, SurfaceTool
from simulo.pose import Vector

_FILTER_TIME = 0.010  # s: a bond breaks by its mean force over this long
_LIP_YIELD = 0.005  # m: how far inside the lip, which gives way, a surface may be and still be caught
_TIME_CONSTANT = 0.005  # s: of a weld (solref); the engine wants two physics steps or more
_IMPEDANCE = (0.95, 0.99, 0.001, 0.5, 2.0)  # of a weld (solimp)


@dataclass(frozen=True)
class CupMap:
    """Addresses of one surface gripper. body: of its link. own: that and what is rigidly one with it. equality: its
    weld. origin [m] and axis of its lip in the link's frame."""

    body: int
    own: tuple[int, ...]
    equality: int
    origin: Vector
    axis: Vector


# --- in the model ----------------------------------------------------------------------------------------------------


def declare_weld(spec: mujoco.MjSpec, name: str, body: str) -> None:
    """An idle weld from a link's body to what it will hold, and room for that to be kept from colliding with the link.

    Raises BackendError where the model has no such body.
    """
    link = spec.body(body)
    if link is None:
        raise BackendError(
            f"the MuJoCo model has no body {body!r} for a surface gripper to hang on; lower the robot again"
        )
    spec.add_equality(
        name=name,
        type=mujoco.mjtEq.mjEQ_WELD,
        objtype=mujoco.mjtObj.mjOBJ_BODY,
        name1=link.name,
        active=False,
        solref=[max(_TIME_CONSTANT, 2.0 * spec.option.timestep), 1.0],
        solimp=_IMPEDANCE,
    )
    for place, _ in enumerate(_rigidly_one_with(link)):
        # A body never collides with itself, so this excludes nothing until something is written over it.
        spec.add_exclude(name=f"{name}/{place}", bodyname1=link.name, bodyname2=link.name)


def _rigidly_one_with(link: mujoco.MjsBody) -> Iterator[mujoco.MjsBody]:
    top = link
    while len(top.joints) == 0 and top.parent is not None and top.parent.parent is not None:
        top = top.parent
    bodies = [top]
    while bodies:
        body = bodies.pop()
        yield body
        bodies += [child for child in body.bodies if len(child.joints) == 0]


def find_cup(model: mujoco.MjModel, name: str, link: str, tool: SurfaceTool) -> CupMap:
    """The addresses of the gripper whose weld was declared as `name`."""
    body, cup = model.body(link).id, tool.cup()
    rigid = (model.body_weldid == model.body_weldid[body]) & (model.body_rootid == model.body_rootid[body])
    own = tuple(np.flatnonzero(rigid).tolist())
    return CupMap(body, own, model.equality(name).id, cup.origin, cup.axis)


# --- in every environment --------------------------------------------------------------------------------------------


class Bonds:
    """The bonds of every surface gripper in every environment, arrays of shape (grippers, num_envs).

    wanted: where a bond is sought or kept. barred: the body not to be caught. bonded: the one that is held. broken: one
    that came off and was not reported yet. Bodies are ids, -1 none.
    """

    def __init__(self, model: mujoco.MjModel, cups: Sequence[CupMap], prop_bodies: Collection[int], count: int):
        shape = (len(cups), count)
        self.cups = tuple(cups)
        self.wanted = np.zeros(shape, dtype=bool)
        self.barred = np.full(shape, NO_BODY, dtype=np.int32)
        self.bonded = np.full(shape, NO_BODY, dtype=np.int32)
        self.broken = np.full(shape, NO_BODY, dtype=np.int32)
        self.limits = [BondLimits(0.0, 0.0, 0.0) for _ in cups]
        self._geoms = np.flatnonzero(np.isin(model.geom_bodyid, sorted(prop_bodies)))
        self._radius = model.geom_rbound[self._geoms]
        self._rows = _ModelRows(model, self.cups, count)
        self._window = max(1, round(_FILTER_TIME / model.opt.timestep))  # physics steps
        self._loads = [[_MeanForce(self._window) for _ in range(count)] for _ in cups]

    def busy(self) -> NDArray[np.bool_]:
        """Where there is something to do at every physics step, shape (num_envs,)."""
        return np.any(self.wanted | (self.bonded >= 0), axis=0)

    def load(self, model: mujoco.MjModel, env: int) -> None:
        """Make a thread's model that of one environment."""
        self._rows.load(model, env)

    def before_step(self, model: mujoco.MjModel, data: mujoco.MjData, env: int) -> None:
        """Let go of what is not wanted, and look for what is. `model` is loaded."""
        for gripper in range(len(self.cups)):
            if self.bonded[gripper, env] >= 0:
                if not self.wanted[gripper, env]:
                    self.release(data, gripper, env)
                    self._rows.load(model, env)
            elif self.wanted[gripper, env] and self.broken[gripper, env] < 0:
                self._seek(model, data, gripper, env)

    def after_step(self, model: mujoco.MjModel, data: mujoco.MjData, env: int) -> None:
        """Break the bonds whose mean force is above a limit."""
        for gripper, cup in enumerate(self.cups):
            if self.bonded[gripper, env] < 0:
                continue
            force = self._loads[gripper][env].add(_weld_force(data, cup))
            coaxial = sum(f * a for f, a in zip(force, cup.axis, strict=True))
            shear = math.dist(force, [coaxial * a for a in cup.axis])
            limits = self.limits[gripper]
            if coaxial > limits.coaxial or shear > limits.shear:
                self.broken[gripper, env] = self.bonded[gripper, env]
                self.release(data, gripper, env)
                self._rows.load(model, env)

    def release(self, data: mujoco.MjData, gripper: int, env: int) -> None:
        data.eq_active[self.cups[gripper].equality] = 0
        self.bonded[gripper, env] = NO_BODY
        self._rows.allow(gripper, env)

    def moved(self, data: mujoco.MjData, env: int, bodies: Collection[int]) -> None:
        """Bodies were put elsewhere: what held them, or what they held, was left behind."""
        for gripper, cup in enumerate(self.cups):
            held = int(self.bonded[gripper, env])
            if held >= 0 and (held in bodies or cup.body in bodies):
                self.broken[gripper, env] = held
                self.release(data, gripper, env)

    def forget(self, data: mujoco.MjData, gripper: int, env: int) -> None:
        """As if this gripper had never been told anything in this environment."""
        self.release(data, gripper, env)
        self.wanted[gripper, env] = False
        self.barred[gripper, env] = self.broken[gripper, env] = NO_BODY

    def _seek(self, model: mujoco.MjModel, data: mujoco.MjData, gripper: int, env: int) -> None:
        cup, limits = self.cups[gripper], self.limits[gripper]
        mujoco.mj_kinematics(model, data)  # the last step left the poses that it started from
        rotation = data.xmat[cup.body].reshape(3, 3)
        lip, axis = data.xpos[cup.body] + (rotation * cup.origin).sum(axis=1), (rotation * cup.axis).sum(axis=1)
        body, distance = self._nearest(model, data, lip - _LIP_YIELD * axis, axis, _LIP_YIELD + limits.reach)
        if body in (NO_BODY, self.barred[gripper, env]):
            return
        self._loads[gripper][env] = _MeanForce(self._window)
        self.bonded[gripper, env] = body
        self._rows.join(data, gripper, env, body, lip + (distance - _LIP_YIELD) * axis)
        self._rows.load(model, env)
        data.eq_active[cup.equality] = 1

    def _nearest(
        self, model: mujoco.MjModel, data: mujoco.MjData, start: NDArray, axis: NDArray, length: float
    ) -> tuple[int, float]:
        """The prop whose surface, facing the ray, is the nearest along it, and how far [m]; `NO_BODY` within length."""
        found, nearest, normal = NO_BODY, length, np.zeros(3)
        apart = data.geom_xpos[self._geoms] - start
        along = (apart * axis).sum(axis=1)
        aside = (apart * apart).sum(axis=1) - along * along
        near = (aside <= self._radius**2) & (along >= -self._radius) & (along <= length + self._radius)
        for geom in self._geoms[near].tolist():
            if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
                distance = mujoco.mj_rayMesh(model, data, geom, start, axis, normal)
            else:
                place = (data.geom_xpos[geom], data.geom_xmat[geom], model.geom_size[geom])
                distance = mujoco.mju_rayGeom(*place, start, axis, model.geom_type[geom], normal)
            if 0.0 <= distance <= nearest and normal @ axis < 0.0:
                found, nearest = int(model.geom_bodyid[geom]), distance
        return found, nearest


class _MeanForce:
    """Mean of a force [N] over the last `window` physics steps; before the first it was zero."""

    def __init__(self, window: int):
        self._recent = deque([(0.0, 0.0, 0.0)] * window, maxlen=window)

    def add(self, force: Vector) -> list[float]:
        self._recent.append(force)
        return [sum(component) / len(self._recent) for component in zip(*self._recent, strict=True)]


def _weld_force(data: mujoco.MjData, cup: CupMap) -> Vector:
    """What the weld pulls at the link with [N], in the link's frame: along the axis when the load hangs.

    The first three of a weld's rows are the position error's, along the world's axes.
    """
    rows = data.efc_id[: data.ne].tolist()
    if cup.equality not in rows:  # the engine starts a world over that blew up
        return (0.0, 0.0, 0.0)
    row = rows.index(cup.equality)
    x, y, z = data.efc_force[row : row + 3].tolist()
    m = data.xmat[cup.body].tolist()
    return (m[0] * x + m[3] * y + m[6] * z, m[1] * x + m[4] * y + m[7] * z, m[2] * x + m[5] * y + m[8] * z)


class _ModelRows:
    """What of the model differs between environments: the second body and relative pose of each weld, and the pairs of
    bodies that do not collide, which the engine wants in ascending order."""

    def __init__(self, model: mujoco.MjModel, cups: Sequence[CupMap], count: int):
        self._cups = cups
        self._welds = np.array([cup.equality for cup in cups], dtype=np.int64)
        self._second = np.tile(model.eq_obj2id[self._welds], (count, 1))
        self._relative = np.tile(model.eq_data[self._welds], (count, 1, 1))
        self._anchors = np.array([cup.body for cup in cups], dtype=np.int64)
        idle = (self._anchors << 16) + self._anchors
        self._permanent = model.exclude_signature[~np.isin(model.exclude_signature, idle)].copy()
        self._idle = [np.full(len(cup.own), idle[k], dtype=np.int32) for k, cup in enumerate(cups)]
        assert len(self._permanent) + sum(map(len, self._idle)) == model.nexclude, "room was declared for every pair"
        self._pairs = [list(self._idle) for _ in range(count)]
        self._excluded = np.tile(model.exclude_signature, (count, 1))

    def load(self, model: mujoco.MjModel, env: int) -> None:
        model.eq_obj2id[self._welds] = self._second[env]
        model.eq_data[self._welds] = self._relative[env]
        model.exclude_signature[:] = self._excluded[env]

    def join(self, data: mujoco.MjData, gripper: int, env: int, body: int, point: NDArray) -> None:
        """Weld a body to the cup as they now are, about a point of the world, and let them not collide: what presses
        a lip on its load is no load, and the two cannot move against each other."""
        cup = self._cups[gripper]
        link_rotation, rotation = (data.xmat[b].reshape(3, 3) for b in (cup.body, body))
        turn = np.empty(4)
        mujoco.mju_negQuat(turn, data.xquat[cup.body])
        mujoco.mju_mulQuat(turn, turn.copy(), data.xquat[body])
        row = self._relative[env, gripper]
        row[0:3] = (point - data.xpos[body]) @ rotation
        row[3:6] = (point - data.xpos[cup.body]) @ link_rotation
        row[6:10] = turn  # what follows stays as it was compiled
        self._second[env, gripper] = body
        pairs = [(min(own, body) << 16) + max(own, body) for own in cup.own]
        self._exclude(gripper, env, np.array(pairs, dtype=np.int32))

    def allow(self, gripper: int, env: int) -> None:
        """Let the cup and what it held collide again."""
        self._exclude(gripper, env, self._idle[gripper])

    def _exclude(self, gripper: int, env: int, pairs: NDArray[np.int32]) -> None:
        self._pairs[env][gripper] = pairs
        self._excluded[env] = np.sort(np.concatenate([self._permanent, *self._pairs[env]]))


class MujocoBonds:
    """One surface gripper's part of `Bonds`: see `simulo.handles.Bonds`."""

    def __init__(self, bonds: Bonds, gripper: int, data: Sequence[mujoco.MjData], prop_bodies: Mapping[str, int]):
        self.prop_bodies = dict(prop_bodies)
        self._bonds, self._gripper, self._data = bonds, gripper, data

    def sample(self) -> tuple[Tensor, Tensor]:
        bonded, broken = self._bonds.bonded[self._gripper], self._bonds.broken[self._gripper]
        out = torch.from_numpy(bonded.copy()), torch.from_numpy(broken.copy())
        broken.fill(NO_BODY)
        return out

    def command(self, wanted: Tensor, barred: Tensor, limits: BondLimits) -> None:
        self._bonds.wanted[self._gripper] = wanted.numpy()
        self._bonds.barred[self._gripper] = barred.numpy()
        self._bonds.limits[self._gripper] = limits

    def reset(self, env_ids: Tensor) -> None:
        for env in env_ids.tolist():
            self._bonds.forget(self._data[env], self._gripper, env)
