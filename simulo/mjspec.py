"""A robot's MJCF files as one MuJoCo specification, what its actuators move, and pieces as geoms: the same for the
lowering, the backend and the evaluation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np

from simulo.description.schema import ConvexPiece
from simulo.description.sources import AttachedFile, ModelFiles
from simulo.errors import ModelSourceError

# What a model file may ask of the engine as a whole. Attaching one model to another drops all of it.
GLOBAL_OPTIONS = tuple(
    option
    for option in (
        "cone",
        "impratio",
        "integrator",
        "solver",
        "jacobian",
        "iterations",
        "tolerance",
        "ls_iterations",
        "ls_tolerance",
        "noslip_iterations",
        "noslip_tolerance",
        "ccd_iterations",
        "ccd_tolerance",
        "o_margin",
        "o_solref",
        "o_solimp",
        "o_friction",
        "density",
        "viscosity",
        "wind",
        "magnetic",
        "disableflags",
        "enableflags",
    )
    if hasattr(type(mujoco.MjSpec().option), option)  # some are newer than others
)


DIRECT = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
"""Transmissions onto a joint itself; they are one and the same for a hinge or a slide."""


def actuators_on(model: mujoco.MjModel, joint: int) -> list[int]:
    """The actuators that are on a joint itself."""
    return [a for a in range(model.nu) if int(model.actuator_trntype[a]) in DIRECT and _target(model, a) == joint]


def actuators_through_tendons(model: mujoco.MjModel, joint: int) -> list[int]:
    """The actuators that pull on a fixed tendon over a joint."""
    tendon = int(mujoco.mjtTrn.mjTRN_TENDON)
    pulling = [a for a in range(model.nu) if int(model.actuator_trntype[a]) == tendon]
    return [a for a in pulling if joint in tendon_joints(model, _target(model, a))]


def tendon_joints(model: mujoco.MjModel, tendon: int) -> dict[int, float]:
    """Joint id to coefficient of a fixed tendon; empty for a spatial one."""
    first = int(model.tendon_adr[tendon])
    wraps = range(first, first + int(model.tendon_num[tendon]))
    joints = [w for w in wraps if model.wrap_type[w] == mujoco.mjtWrap.mjWRAP_JOINT]
    return {int(model.wrap_objid[w]): float(model.wrap_prm[w]) for w in joints}


def _target(model: mujoco.MjModel, actuator: int) -> int:
    return int(model.actuator_trnid[actuator, 0])


@contextmanager
def engine_warnings() -> Iterator[list[str]]:
    """MuJoCo's warnings, gathered in the list instead of a log file in the working directory and on stderr.

    That a file attached without a prefix might not be saved again is of no interest: nothing is saved here.
    """
    previous = mujoco.get_mju_user_warning()
    texts: list[str] = []
    mujoco.set_mju_user_warning(lambda text: None if "empty prefix" in text else texts.append(text))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Attaching a spec with an empty prefix")
            yield texts
    finally:
        mujoco.set_mju_user_warning(previous)


def read_spec(files: ModelFiles) -> mujoco.MjSpec:
    """The first file with every other one attached where it belongs, each hinge's body moved onto its hinge.

    Raises ValueError as MuJoCo does for a file that it cannot parse, ModelSourceError for an attachment that does not
    fit.
    """
    spec = mujoco.MjSpec.from_file(str(files.path))
    for part in files.attached:
        _attach(spec, part)
    for body in spec.bodies[1:]:
        _move_onto_hinge(spec, body)
    return spec


def merge_options(scene: mujoco.MjSpec, files: dict[str, mujoco.MjSpec]) -> None:
    """Give `scene` what the named files ask of the engine, and make the files agree with it, so that they can be
    attached. What a file leaves at the engine's default it does not ask for. Raises ModelSourceError, naming the two,
    for files that ask for different things.
    """
    standard = mujoco.MjSpec().option
    asked: dict[str, str] = {}
    for name, child in files.items():
        for option in GLOBAL_OPTIONS:
            value = getattr(child.option, option)
            if np.array_equal(value, getattr(standard, option)):
                continue
            if option in asked and not np.array_equal(getattr(scene.option, option), value):
                raise ModelSourceError(f"{asked[option]!r} and {name!r} ask for different engine {option!r}")
            setattr(scene.option, option, value)
            asked[option] = name
    for child in files.values():
        for option in ("timestep", "gravity", *GLOBAL_OPTIONS):
            setattr(child.option, option, getattr(scene.option, option))


def _attach(spec: mujoco.MjSpec, part: AttachedFile) -> None:
    sites = {site.name: site for site in spec.sites}
    if part.site not in sites:
        raise ModelSourceError(
            f"{part.path} cannot be attached at site {part.site!r}, which the robot's first file has not; it has: "
            f"{', '.join(sorted(sites)) or 'none'}"
        )
    child = mujoco.MjSpec.from_file(str(part.path))
    merge_options(spec, {spec.modelname: spec, child.modelname: child})
    spec.attach(child, site=sites[part.site], prefix=part.prefix)


def _move_onto_hinge(spec: mujoco.MjSpec, body: mujoco.MjsBody) -> None:
    """Put a body's origin where it turns; everything on it stays where it is in space.

    A link's frame is then its joint's, as in a URDF, whichever point of it the file gave the name to. The old frame
    stays between the parent and the body: its orientation may be written in any of MJCF's ways.
    """
    hinges = [joint for joint in body.joints if joint.type == mujoco.mjtJoint.mjJNT_HINGE]
    if len(body.joints) != 1 or len(hinges) != 1 or not np.any(hinges[0].pos):
        return
    shift = np.array(hinges[0].pos)
    old = body.parent.add_frame(body.frame, pos=body.pos, quat=body.quat)
    for way in ("type", "axisangle", "xyaxes", "zaxis", "euler"):
        setattr(old.alt, way, getattr(body.alt, way))
    body.set_frame(old)
    body.pos, body.quat, body.alt.type = shift, [1.0, 0.0, 0.0, 0.0], mujoco.mjtOrientation.mjORIENTATION_QUAT
    hinges[0].pos = np.zeros(3)
    if body.explicitinertial:
        body.ipos = np.array(body.ipos) - shift
    for item in (*body.frames, *body.geoms, *body.sites, *body.cameras, *body.lights, *body.bodies):
        if item.frame is not None:
            continue
        if isinstance(item, mujoco.MjsGeom | mujoco.MjsSite) and not np.isnan(item.fromto[0]):
            item.fromto = np.array(item.fromto) - np.tile(shift, 2)
        else:
            item.pos = np.array(item.pos) - shift
    for equality in spec.equalities:
        _shift_anchor(equality, body.name, shift)


def _shift_anchor(equality: mujoco.MjsEquality, body: str, shift: np.ndarray) -> None:
    """A connection's anchor is written in its first body's frame."""
    if equality.objtype != mujoco.mjtObj.mjOBJ_BODY or body not in (equality.name1, equality.name2):
        return
    if equality.type != mujoco.mjtEq.mjEQ_CONNECT:
        raise ModelSourceError(
            f"body {body!r} turns beside its origin and is welded to another; move its origin onto its joint"
        )
    if equality.name1 == body:
        equality.data = np.concatenate([equality.data[:3] - shift, equality.data[3:]])


def add_piece(
    spec: mujoco.MjSpec, body: mujoco.MjsBody, name: str, piece: ConvexPiece, **options: Any
) -> mujoco.MjsGeom:
    """A piece as a geom of that name on its link's body: a hull as a mesh, a sphere or a capsule as itself. options: of
    the geom."""
    if piece.kind == "sphere":
        size = [piece.radius, 0.0, 0.0]
        return body.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_SPHERE, pos=piece.vertices[0], size=size, **options)
    if piece.kind == "capsule":
        size, ends = [piece.radius, 0.0, 0.0], piece.vertices.ravel()
        return body.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_CAPSULE, fromto=ends, size=size, **options)
    mesh = spec.add_mesh(name=name)
    mesh.uservert = np.asarray(piece.vertices, np.float64).ravel().tolist()
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # of a sliver's volume MuJoCo may make nothing
    return body.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name, **options)
