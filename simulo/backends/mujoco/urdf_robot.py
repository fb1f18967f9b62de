"""A robot whose model is a URDF, as a MuJoCo specification.

A URDF says nothing of actuators or contacts, and MuJoCo collides only convex shapes, so that one mesh of a hand would
fill the space between its jaws. Tree, limits and couplings are the description's, shapes its certified pieces, masses
the file's, and every actuated joint gets a position servo.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import mujoco
import numpy as np

from simulo.description import Joint, MimicJoint, RobotDescription
from simulo.description.kinematics import edges_from_root
from simulo.errors import BackendError
from simulo.mjspec import add_piece

ARMATURE = 0.005
"""[kg m^2 or kg] Inertia of a drive as its joint feels it: that of a geared hobby servo, so that light fingers do not
shiver."""

STIFFNESS_RATE = 40.0
"""[rad/s] A servo's stiffness is its joint's inertia times this squared: it settles in about a tenth of a second."""

_SOLREF, _SOLIMP = [0.005, 1.0], [0.95, 0.99, 0.001, 0.5, 2.0]  # of a stiff coupling, as hands in MJCF have it


def urdf_robot(description: RobotDescription, path: Path) -> mujoco.MjSpec:
    """The description's robot with the masses of the URDF at `path`.

    Raises BackendError for a link that moves without a mass.
    """
    try:
        file = mujoco.MjSpec.from_file(str(path))  # its meshes are looked for when it is compiled, which it never is
    except ValueError as error:
        raise BackendError(f"MuJoCo cannot read the masses in {path}: {error}") from error
    masses = {body.name: body for body in file.bodies}
    spec = mujoco.MjSpec()
    spec.modelname = description.name
    spec.compiler.degree = False
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone, spec.option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0  # pinched objects creep otherwise
    _add_links(spec, description, masses, path)
    for mimic in description.mimic_joints:
        coupling = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, solref=_SOLREF, solimp=_SOLIMP)
        coupling.objtype = mujoco.mjtObj.mjOBJ_JOINT
        coupling.name1, coupling.name2 = mimic.sim_name, _sim_name(description, mimic.mimics)
        coupling.data = [mimic.offset, mimic.multiplier, *np.zeros(len(coupling.data) - 2)]
    for pair in description.disabled_pairs:  # links that nest would push each other apart
        spec.add_exclude(bodyname1=pair.link_a, bodyname2=pair.link_b)
    _add_servos(spec, description)
    return spec


def _add_links(
    spec: mujoco.MjSpec, description: RobotDescription, masses: Mapping[str, mujoco.MjsBody], path: Path
) -> None:
    bodies = {description.root_link: spec.worldbody.add_body(name=description.root_link)}
    for edge in edges_from_root(description):
        body = bodies[edge.parent].add_body(
            name=edge.child, pos=edge.origin.position, quat=edge.origin.orientation_wxyz
        )
        bodies[edge.child] = body
        if isinstance(edge, Joint | MimicJoint):
            _add_joint(body, edge)
    for link, body in bodies.items():
        _copy_mass(masses[link], body)
        geometry = description.geometry.get(link)
        for place, piece in enumerate(geometry.pieces if geometry else ()):
            add_piece(spec, body, f"{link}_{place}", piece, mass=0.0)
    moved = [edge for edge in edges_from_root(description) if isinstance(edge, Joint | MimicJoint)]
    for edge in moved:
        if not _weighs(description, edge.child, masses):
            raise BackendError(
                f"{path}: link {edge.child!r} moves and has no mass, nor has a link that is fixed to it; give it an "
                "<inertial>"
            )


def _add_joint(body: mujoco.MjsBody, edge: Joint | MimicJoint) -> None:
    kind = mujoco.mjtJoint.mjJNT_SLIDE if edge.type == "prismatic" else mujoco.mjtJoint.mjJNT_HINGE
    joint = body.add_joint(name=edge.sim_name, type=kind, axis=edge.axis, armature=ARMATURE)
    if isinstance(edge, Joint) and np.isfinite([edge.lower, edge.upper]).all():
        joint.limited, joint.range = mujoco.mjtLimited.mjLIMITED_TRUE, [edge.lower, edge.upper]


def _copy_mass(source: mujoco.MjsBody, target: mujoco.MjsBody) -> None:
    if not source.explicitinertial:
        return
    target.explicitinertial = True
    target.mass, target.ipos, target.iquat = source.mass, source.ipos, source.iquat
    target.inertia, target.fullinertia = source.inertia, source.fullinertia


def _weighs(description: RobotDescription, link: str, masses: Mapping[str, mujoco.MjsBody]) -> bool:
    """Whether the link or one that is rigid on it has a mass."""
    rigid = {link}
    for edge in description.fixed_attachments:
        if edge.parent in rigid:
            rigid.add(edge.child)
    return any(masses[name].mass > 0.0 for name in rigid)


def _add_servos(spec: mujoco.MjSpec, description: RobotDescription) -> None:
    """Critically damped position servos, as stiff as their joint is heavy in the rest pose."""
    inertias = _joint_inertias(spec, description)
    for joint in description.joints:
        stiffness = inertias[joint.sim_name] * STIFFNESS_RATE**2
        servo = spec.add_actuator(name=joint.sim_name, target=joint.sim_name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        servo.set_to_position(kp=stiffness, kv=2.0 * stiffness / STIFFNESS_RATE)
        if np.isfinite([joint.lower, joint.upper]).all():
            servo.ctrllimited, servo.ctrlrange = mujoco.mjtLimited.mjLIMITED_TRUE, [joint.lower, joint.upper]


def _joint_inertias(spec: mujoco.MjSpec, description: RobotDescription) -> dict[str, float]:
    """What each actuated joint must move, followers in, [kg m^2 or kg], at the rest pose."""
    model = spec.copy().compile()
    data = mujoco.MjData(model)
    at = {joint.sim_name: int(model.joint(joint.sim_name).dofadr[0]) for joint in description.joints}
    motion = {name: np.zeros(model.nv) for name in at}
    for joint, value in zip(description.joints, description.rest_pose, strict=True):
        data.joint(joint.sim_name).qpos[0] = value
        motion[joint.sim_name][at[joint.sim_name]] = 1.0
    for mimic in description.mimic_joints:
        leader = _sim_name(description, mimic.mimics)
        data.joint(mimic.sim_name).qpos[0] = mimic.multiplier * data.joint(leader).qpos[0] + mimic.offset
        motion[leader][int(model.joint(mimic.sim_name).dofadr[0])] = mimic.multiplier
    mujoco.mj_forward(model, data)
    inertias, momentum = {}, np.zeros(model.nv)
    for name, step in motion.items():
        mujoco.mj_mulM(model, data, momentum, step)
        inertias[name] = float(step @ momentum)
    return inertias


def _sim_name(description: RobotDescription, joint: str) -> str:
    return next(entry.sim_name for entry in description.joints if entry.name == joint)
