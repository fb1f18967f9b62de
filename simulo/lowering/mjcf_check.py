"""What MuJoCo compiles without a word and no robot has: numbers that are none, absurd lengths, soft parts, crowds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from simulo.errors import LoweringError
from simulo.lowering.limits import (
    MAX_JOINT_VALUE,
    MAX_LENGTH,
    MAX_LINKS,
    MAX_MODEL_TRIANGLES,
    MAX_SHAPES,
)
from simulo.lowering.meshes import FLATNESS
from simulo.mjspec import tendon_joints

_MESH = int(mujoco.mjtGeom.mjGEOM_MESH)

_SIZES = {
    int(mujoco.mjtGeom.mjGEOM_SPHERE): 1,
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): 1,
    int(mujoco.mjtGeom.mjGEOM_CYLINDER): 2,
    int(mujoco.mjtGeom.mjGEOM_BOX): 3,
    int(mujoco.mjtGeom.mjGEOM_ELLIPSOID): 3,
}
"""How many numbers of a primitive's size are lengths that must not vanish; a capsule's straight part may."""


def refuse_bad_model(model: mujoco.MjModel, path: Path) -> None:
    """Raise LoweringError naming file, element and remedy."""
    _refuse_crowds(model, path)
    for kind, count, name, fields in (
        ("body", model.nbody, _names(model, mujoco.mjtObj.mjOBJ_BODY), ("body_pos", "body_quat")),
        ("geom", model.ngeom, _names(model, mujoco.mjtObj.mjOBJ_GEOM), ("geom_pos", "geom_quat", "geom_size")),
        ("joint", model.njnt, _names(model, mujoco.mjtObj.mjOBJ_JOINT), ("jnt_pos", "jnt_axis")),
    ):
        for index in range(count):
            for field in fields:
                value = getattr(model, field)[index]
                _refuse_number(value, MAX_LENGTH, f"{path}: {kind} {name(index)}", field.partition("_")[2])
    _refuse_joint_numbers(model, path)
    _refuse_unread_couplings(model, path)
    for geom in np.flatnonzero(np.isin(model.geom_type, list(_SIZES))):
        sizes = model.geom_size[geom, : _SIZES[int(model.geom_type[geom])]]
        if sizes.min() < FLATNESS:
            name = _names(model, mujoco.mjtObj.mjOBJ_GEOM)(int(geom))
            raise LoweringError(
                f"{path}: geom {name} has a size of {sizes.min():g} m; give it {FLATNESS} m at least, or remove it"
            )


def _names(model: mujoco.MjModel, kind: int) -> Callable[[int], str]:
    """A name in quotes, or, where there is none, the number and for a geom the body."""

    def name(index: int) -> str:
        given = mujoco.mj_id2name(model, kind, index)
        if given:
            return repr(given)
        if kind == mujoco.mjtObj.mjOBJ_GEOM:
            return f"{index} of body {model.body(int(model.geom_bodyid[index])).name!r}"
        return str(index)

    return name


def _refuse_crowds(model: mujoco.MjModel, path: Path) -> None:
    triangles = sum(int(model.mesh_facenum[mesh]) for mesh in model.geom_dataid[model.geom_type == _MESH] if mesh >= 0)
    for noun, count, most in (
        ("bodies", model.nbody, MAX_LINKS),
        ("geoms", model.ngeom, MAX_SHAPES),
        ("triangles", triangles, MAX_MODEL_TRIANGLES),
    ):
        if count > most:
            raise LoweringError(f"{path} has {count} {noun}, over the limit of {most}; lower one robot, or simplify it")
    for noun, count in (("flex", model.nflex), ("skin", model.nskin)):
        if count:
            raise LoweringError(f"{path} has a <{noun}>, which bends; only rigid links are lowered: remove it")


def _refuse_joint_numbers(model: mujoco.MjModel, path: Path) -> None:
    joint = _names(model, mujoco.mjtObj.mjOBJ_JOINT)
    for index in range(model.njnt):
        if model.jnt_limited[index]:
            _refuse_number(model.jnt_range[index], MAX_JOINT_VALUE, f"{path}: joint {joint(index)}", "range")
        reference = model.qpos0[model.jnt_qposadr[index]]
        _refuse_number(reference, MAX_JOINT_VALUE, f"{path}: joint {joint(index)}", "ref")
    for index in np.flatnonzero(model.eq_type == mujoco.mjtEq.mjEQ_JOINT):
        label = f"{path}: equality of joint {joint(int(model.eq_obj1id[index]))}"
        _refuse_number(model.eq_data[index, :5], MAX_JOINT_VALUE, label, "polycoef")


def _refuse_unread_couplings(model: mujoco.MjModel, path: Path) -> None:
    """Equalities that move or hold joints and are read as no relation: a joint would be a column that it is not."""
    joint = _names(model, mujoco.mjtObj.mjOBJ_JOINT)
    for index in np.flatnonzero(model.eq_active0):
        kind, first, second = (int(value[index]) for value in (model.eq_type, model.eq_obj1id, model.eq_obj2id))
        if kind == mujoco.mjtEq.mjEQ_TENDON:
            names = ", ".join(joint(number) for number in tendon_joints(model, first)) or "a spatial tendon"
            raise LoweringError(
                f"{path}: a <tendon> equality couples {names}; write the coupling as a <joint> equality, or set it "
                "active='false'"
            )
        if kind == mujoco.mjtEq.mjEQ_JOINT and second < 0:
            raise LoweringError(
                f"{path}: a <joint> equality holds joint {joint(first)} at one value; remove the joint, or the equality"
            )
        if kind == mujoco.mjtEq.mjEQ_WELD and model.eq_objtype[index] == mujoco.mjtObj.mjOBJ_BODY:
            bodies = [model.body(number).name for number in (first, second)]
            if model.body_weldid[first] != model.body_weldid[second] and 0 not in (first, second):
                raise LoweringError(
                    f"{path}: a <weld> equality holds bodies {bodies[0]!r} and {bodies[1]!r} together, between which "
                    "joints move; remove those joints, or the weld"
                )


def _refuse_number(value: ArrayLike, largest: float, label: str, attribute: str) -> None:
    numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if not np.isfinite(numbers).all():
        raise LoweringError(f"{label} has {attribute} {numbers}, which is not finite; write finite numbers")
    if np.abs(numbers).max() > largest:
        raise LoweringError(f"{label} has {attribute} {numbers}, over the limit of {largest:g}; correct its unit")
