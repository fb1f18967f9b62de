"""MJCF to `RobotModel`, through MuJoCo's own compiler.

MuJoCo resolves classes, defaults, frames, attached files, angles and signs; from the compiled model come the tree
and the poses, from the mesh files the vertices in float64 (the compiled ones are float32 and moved to each mesh's
centre of mass).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path

import mujoco
import numpy as np
import trimesh
from scipy.spatial import KDTree

from simulo.description.kinematics import joint_motion
from simulo.description.mimics import MimicRelation, flatten_mimics
from simulo.description.schema import JointType
from simulo.description.sources import ModelFiles
from simulo.errors import LoweringError
from simulo.lowering import meshes
from simulo.lowering.mjcf_check import refuse_bad_model
from simulo.lowering.mjcf_guard import refuse_hostile_mjcf
from simulo.lowering.model import ModelAttachment, ModelJoint, RobotModel, Shape, placed, warn_of_wide_links
from simulo.mjspec import actuators_on, engine_warnings, read_spec, tendon_joints
from simulo.pose import Pose

PLACEMENT_TOLERANCE = 1e-6
"""[m] Largest distance between a vertex from the file and MuJoCo's own float32 copy of it."""

_TYPES: dict[int, JointType] = {
    int(mujoco.mjtJoint.mjJNT_HINGE): "revolute",
    int(mujoco.mjtJoint.mjJNT_SLIDE): "prismatic",
}


def read_mjcf(files: Path | ModelFiles, root_link: str, columns: Collection[str] = ()) -> RobotModel:
    """Every body as a link; every geom in its body's frame. root_link: see `_root_body`.

    columns: the joints that are to take commands. Of two coupled joints that are both driven they tell the leader.
    Raises LoweringError for what has no place in a robot description: free and ball joints, several joints on one
    body, planes, height fields, couplings that are not linear.
    """
    files = ModelFiles(files) if isinstance(files, Path) else files
    model, path = _compiled(files), files.path
    refuse_bad_model(model, path)
    root = _root_body(model, root_link, path)
    names = [root_link, *(model.body(i).name or f"body_{i}" for i in range(root + 1, model.nbody))]
    names = [""] * root + names
    joints, attachments = [], []
    for body in range(root + 1, model.nbody):
        edge = _edge(model, body, names, path)
        (joints if isinstance(edge, ModelJoint) else attachments).append(edge)
    robot_model = RobotModel(
        path=path,
        format="mjcf",
        links=tuple(names[root:]),
        joints=tuple(joints),
        attachments=tuple(attachments),
        mimics=_mimics(model, joints, columns, path),
        shapes={names[body]: _shapes(model, body, names[body], path) for body in range(root, model.nbody)},
        linkage=_linkage(model),
        floating=root > 0 and bool(model.body_jntnum[root]),
    )
    warn_of_wide_links(robot_model)
    return robot_model


def root_link_of(path: Path) -> str:
    """What to call the root link of a file about which nothing else is known: its only body's name, or `world`."""
    model = _compiled(ModelFiles(path))
    tops = [model.body(body).name for body in range(1, model.nbody) if model.body_parentid[body] == 0]
    if len(tops) == 1 and tops[0]:
        try:
            _root_body(model, tops[0], path)
        except LoweringError:  # the world is needed, since it holds something or places the body
            return "world"
        return tops[0]
    return "world"


def _root_body(model: mujoco.MjModel, root_link: str, path: Path) -> int:
    """The body that `root_link` names: the world, which the file does not name, or the one body that is the robot's.

    The second has a free joint, or stands at the world's origin: any other placement would be lost with the world.
    """
    body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, root_link)
    if body <= 0:  # no body's name, or MuJoCo's own for the world
        return 0
    alone = list(model.body_parentid[1:]).count(0) == 1 and model.body_geomnum[0] == 0
    free = model.body_jntnum[body] == 1 and model.jnt_type[model.body_jntadr[body]] == mujoco.mjtJoint.mjJNT_FREE
    placement = np.concatenate([model.body_pos[body], model.body_quat[body]])
    stands = model.body_jntnum[body] == 0 and np.array_equal(placement, [0, 0, 0, 1, 0, 0, 0])
    if model.body_parentid[body] != 0 or not alone or not (free or stands):
        raise LoweringError(
            f"{path}: root_link {root_link!r} is a body of the file, but not its only one on a bare world, with a free "
            "joint or at the world's origin: give root_link another name, which then stands for the file's world"
        )
    return body


def _compiled(files: ModelFiles) -> mujoco.MjModel:
    path = files.path
    for file in (path, *(part.path for part in files.attached)):
        refuse_hostile_mjcf(file)
    with engine_warnings():
        try:
            spec = read_spec(files)
        except (ValueError, OSError) as error:
            raise LoweringError(f"{path} cannot be read as MJCF: {error}; repair what it names") from error
        spec.compiler.discardvisual = False  # what is seen is part of a link, whatever a simulator leaves out
        wearers = _mesh_wearers(spec)  # before compiling: a spec that failed to compile answers nothing more
        try:
            return spec.compile()
        except ValueError as error:
            blamed = [text for (name, file), text in wearers.items() if f"'{name}'" in str(error) or file in str(error)]
            remedy = f"repair {'; '.join(blamed) or 'what it names'}"
            raise LoweringError(f"{path}: MuJoCo refuses the model: {error}; {remedy}") from error
        except (RuntimeError, mujoco.FatalError) as error:
            raise LoweringError(f"{path}: MuJoCo breaks down on the model: {error}; use a simpler one") from error


def _mesh_wearers(spec: mujoco.MjSpec) -> dict[tuple[str, str], str]:
    """MuJoCo's errors name a mesh; a person looks for its file and the links that wear it. By mesh name and file."""
    files = {mesh.name: mesh.file for mesh in spec.meshes}
    wearers: dict[str, set[str]] = {name: set() for name in files}
    for body in spec.bodies:
        for geom in body.geoms:
            wearers.get(geom.meshname, set()).add(body.name)
    return {
        (name, file): f"mesh file {file} of {f'link {links}' if links else 'no link: remove it'}"
        for name, file in files.items()
        for links in [", ".join(sorted(wearers[name]))]
        if file
    }


def _edge(model: mujoco.MjModel, body: int, names: list[str], path: Path) -> ModelJoint | ModelAttachment:
    name, parent = names[body], names[model.body_parentid[body]]
    origin = Pose(tuple(model.body_pos[body]), tuple(model.body_quat[body]))
    if model.body_mocapid[body] >= 0:
        raise LoweringError(f"{path}: body {name!r} is a mocap body; a robot's links hang on joints: remove mocap")
    if model.body_jntnum[body] == 0:
        return ModelAttachment(parent, name, origin)
    if model.body_jntnum[body] > 1:
        raise LoweringError(
            f"{path}: body {name!r} carries {model.body_jntnum[body]} joints; split it into one body per joint"
        )
    index = int(model.body_jntadr[body])
    joint = model.joint(index).name or f"joint_{index}"
    kind = _TYPES.get(int(model.jnt_type[index]))
    if kind is None:
        raise LoweringError(
            f"{path}: joint {joint!r} of body {name!r} is free or a ball; only hinges and slides are lowered: use those"
        )
    limited = bool(model.jnt_limited[index])
    if kind == "prismatic" and not limited:
        raise LoweringError(f"{path}: slide joint {joint!r} has no range; give it one")
    reference = float(model.qpos0[model.jnt_qposadr[index]])
    x, y, z = (float(v) for v in model.jnt_axis[index])
    axis = (x, y, z)
    lower, upper = model.jnt_range[index] if limited else (-math.inf, math.inf)
    return ModelJoint(
        name=joint,
        type=kind if limited else "continuous",
        parent=parent,
        child=name,
        origin=origin if reference == 0.0 else Pose.from_matrix(origin.matrix @ joint_motion(kind, axis, -reference)),
        axis=axis,
        lower=float(lower),
        upper=float(upper),
        velocity_limit=math.inf,
        actuated=bool(actuators_on(model, index)),
    )


def _mimics(
    model: mujoco.MjModel, joints: list[ModelJoint], columns: Collection[str], path: Path
) -> dict[str, MimicRelation]:
    """Joint equalities as relations on actuated leaders. An equality holds about each joint's reference position.

    Either joint may come first in the file. Where both are driven, each by itself or both through a tendon, the one
    among `columns` leads. Else the first one is the follower, as the equality is written.
    """
    actuated = {joint.name for joint in joints if joint.actuated}
    tendons = model.actuator_trnid[model.actuator_trntype == mujoco.mjtTrn.mjTRN_TENDON, 0]
    together = {model.joint(joint).name for tendon in tendons for joint in tendon_joints(model, int(tendon))}
    leaders = (actuated | together).intersection(columns) or actuated
    relations = []
    for index in range(model.neq):
        couples = int(model.eq_type[index]) == int(mujoco.mjtEq.mjEQ_JOINT) and model.eq_obj2id[index] >= 0
        if not couples or not model.eq_active0[index]:
            continue
        first, second = (int(model.eq_obj1id[index]), int(model.eq_obj2id[index]))
        names = (model.joint(first).name, model.joint(second).name)
        constant, slope, *higher = (float(v) for v in model.eq_data[index, :5])
        if any(higher) or slope == 0.0:
            raise LoweringError(
                f"{path}: the equality of joints {names[0]!r} and {names[1]!r} has polycoef "
                f"{model.eq_data[index, :5]}; "
                "only q1 = c0 + c1 * q2 with c1 other than 0 can be a mimic joint"
            )
        references = [float(model.qpos0[model.jnt_qposadr[joint]]) for joint in (first, second)]
        offset = references[0] + constant - slope * references[1]
        if names[0] in leaders and names[1] not in leaders:
            relations.append(MimicRelation(names[1], names[0], 1.0 / slope, 0.0 - offset / slope))
        else:
            relations.append(MimicRelation(names[0], names[1], slope, offset))
    followers = {relation.joint for relation in relations}
    return flatten_mimics(relations, [joint.name for joint in joints if joint.name not in followers], str(path))


def _linkage(model: mujoco.MjModel) -> frozenset[str]:
    """Names of the joints on the way from one body of a connection to the other."""
    names = set()
    for index in np.flatnonzero((model.eq_type == mujoco.mjtEq.mjEQ_CONNECT) & model.eq_active0):
        if model.eq_objtype[index] == mujoco.mjtObj.mjOBJ_BODY:
            ways = [_way_up(model, int(body)) for body in (model.eq_obj1id[index], model.eq_obj2id[index])]
            for body in set(ways[0]).symmetric_difference(ways[1]):
                first = int(model.body_jntadr[body])
                names |= {model.joint(j).name for j in range(first, first + int(model.body_jntnum[body]))}
    return frozenset(names)


def _way_up(model: mujoco.MjModel, body: int) -> list[int]:
    way = [body]
    while way[-1]:
        way.append(int(model.body_parentid[way[-1]]))
    return way


def _shapes(model: mujoco.MjModel, body: int, link: str, path: Path) -> tuple[Shape, ...]:
    first = int(model.body_geomadr[body])
    return tuple(_shape(model, geom, link, path) for geom in range(first, first + int(model.body_geomnum[body])))


def _shape(model: mujoco.MjModel, geom: int, link: str, path: Path) -> Shape:
    label = f"link {link!r}, geom {model.geom(geom).name or geom!r}"
    collides = bool(model.geom_contype[geom] or model.geom_conaffinity[geom])
    pose = Pose(tuple(model.geom_pos[geom]), tuple(model.geom_quat[geom]))
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    if kind == int(mujoco.mjtGeom.mjGEOM_MESH):
        return Shape(label, collides, _mesh(model, int(model.geom_dataid[geom]), pose, label, path), cad=True)
    primitives = {
        int(mujoco.mjtGeom.mjGEOM_BOX): lambda: meshes.box(size),
        int(mujoco.mjtGeom.mjGEOM_SPHERE): lambda: meshes.ellipsoid([size[0]] * 3),
        int(mujoco.mjtGeom.mjGEOM_ELLIPSOID): lambda: meshes.ellipsoid(size),
        int(mujoco.mjtGeom.mjGEOM_CYLINDER): lambda: meshes.cylinder(size[0], size[1]),
        int(mujoco.mjtGeom.mjGEOM_CAPSULE): lambda: meshes.capsule(size[0], size[1]),
    }
    if kind not in primitives:
        name = mujoco.mjtGeom(kind).name
        raise LoweringError(
            f"{path}: {label} is a {name}, which has no bounded convex geometry; use a model file without it"
        )
    return Shape(label, collides, placed(primitives[kind](), pose))


def _mesh(model: mujoco.MjModel, mesh: int, pose_link_centred: Pose, label: str, path: Path) -> trimesh.Trimesh:
    """The mesh file's vertices in the link frame, checked against MuJoCo's compiled copy of them.

    MuJoCo centres a mesh and writes that shift into both the mesh's and the geom's pose; taking one back from the
    other leaves the placement that the file asks for.
    """
    start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    compiled = pose_link_centred.apply(model.mesh_vert[start : start + count])
    file = _mesh_file(model, mesh, path)
    if file is None:
        first, faces = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
        return trimesh.Trimesh(compiled, model.mesh_face[first : first + faces], process=False)
    centring = Pose(tuple(model.mesh_pos[mesh]), tuple(model.mesh_quat[mesh]))
    drawn = meshes.load_mesh(file, model.mesh_scale[mesh], f"{path}: {label}")
    result = placed(drawn, pose_link_centred @ centring.inverse())
    apart = max(
        float(KDTree(compiled).query(result.vertices)[0].max()),
        float(KDTree(result.vertices).query(compiled)[0].max()),
    )
    if apart > PLACEMENT_TOLERANCE:
        raise LoweringError(
            f"{path}: {label}: the vertices of {file} and MuJoCo's differ by {apart * 1e3:.4f} mm; "
            "a mesh feature in use here (such as a reference pose) is not understood: bake it into the mesh file"
        )
    return result


def _mesh_file(model: mujoco.MjModel, mesh: int, path: Path) -> Path | None:
    """None for a mesh whose vertices stand in the MJCF itself."""
    start = int(model.mesh_pathadr[mesh])
    if start < 0:
        return None
    name = model.paths[start : model.paths.index(b"\0", start)].decode()
    return (path.parent / name).resolve()
