"""From a scene to one MuJoCo model, and the maps from simulo's names to its addresses."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from simulo.backends.mujoco.bonds import CupMap, declare_weld, find_cup
from simulo.backends.mujoco.drives import Column, Drives, drives_of
from simulo.backends.mujoco.urdf_robot import urdf_robot
from simulo.description.sources import resolve_files
from simulo.errors import BackendError, ModelSourceError
from simulo.handles import SurfaceTool
from simulo.mjspec import engine_warnings, merge_options, read_spec
from simulo.props import Box, Capsule, Cylinder, Hull, Prop, Sphere
from simulo.robot import Robot
from simulo.scene import Scene


@dataclass(frozen=True)
class RobotMap:
    """Addresses of one robot in the model. Joint arrays are in `Robot.joint_names` order.

    link_bodies: body id per link. qpos, dof: address per joint. drives: of the actuated joints. held_qpos, held_dof,
    held: of the joints that the description holds, addresses and values.
    """

    link_bodies: NDArray[np.int64]
    qpos: NDArray[np.int64]
    dof: NDArray[np.int64]
    drives: Drives
    held_qpos: NDArray[np.int64]
    held_dof: NDArray[np.int64]
    held: NDArray[np.float64]


@dataclass(frozen=True)
class PropMap:
    """Addresses of one prop. mocap is -1 for a prop that moves, qpos and dof are -1 for a fixed one."""

    body: int
    mocap: int
    qpos: int
    dof: int


@dataclass(frozen=True)
class CompiledScene:
    """body_names: per body id, as contacts report it: a link's name, a prop's name, or "world". cups: of the surface
    grippers, robot by robot."""

    model: mujoco.MjModel
    robots: dict[str, RobotMap]
    props: dict[str, PropMap]
    body_names: tuple[str, ...]
    cups: tuple[CupMap, ...]


def compile_scene(scene: Scene, physics_dt: float) -> CompiledScene:
    """Compile `scene`. Raises BackendError for what MuJoCo cannot build, naming the item."""
    spec = mujoco.MjSpec()
    with engine_warnings() as texts:
        files = {name: _read_model(robot) for name, robot in scene.robots.items()}
        spec.option.timestep = physics_dt
        try:
            merge_options(spec, files)
        except ModelSourceError as error:
            raise BackendError(f"robots {error}; give each a scene of its own") from error
        for name, robot in scene.robots.items():
            _add_robot(spec, robot, files[name])
        try:
            for prop in scene.props.values():
                _add_prop(spec, prop)
            for weld, robot, tool in _surface_tools(scene):
                declare_weld(spec, weld, model_prefix(robot) + tool.cup().link)
            model = spec.compile()
        except ValueError as error:
            raise BackendError(f"MuJoCo cannot compile the scene: {error}") from error
    for text in texts:
        warnings.warn(f"MuJoCo: {text}", stacklevel=2)
    _group_by_visibility(model, scene)
    robots = {name: _robot_map(model, robot) for name, robot in scene.robots.items()}
    props = {name: _prop_map(model, prop) for name, prop in scene.props.items()}
    cups = tuple(
        find_cup(model, weld, model_prefix(robot) + tool.cup().link, tool)
        for weld, robot, tool in _surface_tools(scene)
    )
    return CompiledScene(model, robots, props, _body_names(model, robots, props, scene), cups)


def _surface_tools(scene: Scene) -> list[tuple[str, Robot, SurfaceTool]]:
    """Every surface gripper under a name of its own, with its robot."""
    return [
        (f"{model_prefix(robot)}bond{place}", robot, tool)
        for robot in scene.robots.values()
        for place, tool in enumerate(robot.surface_tools)
    ]


def model_prefix(robot: Robot) -> str:
    """What stands before the robot's own names in the model, so that two robots can share a scene."""
    return f"{robot.name}/"


def _read_model(robot: Robot) -> mujoco.MjSpec:
    files = resolve_files(robot.description.source)
    return read_spec(files) if robot.description.source.format == "mjcf" else urdf_robot(robot.description, files.path)


def _add_robot(spec: mujoco.MjSpec, robot: Robot, child: mujoco.MjSpec) -> None:
    """Attach the robot's model at its base pose. Geoms of the file's world body become the root link's."""
    if robot.gravity_compensation and not robot.description.floating_base:  # else nothing would bear the weight
        for body in child.bodies[1:]:
            body.gravcomp = 1.0
    prefix, root = model_prefix(robot), robot.description.root_link
    position, orientation = robot.initial_pose.position, robot.initial_pose.orientation_wxyz
    bodies = {body.name: body for body in child.bodies[1:]}  # without the world: as a root link it becomes a body
    if robot.description.floating_base:  # the base pose is the root link's, wherever the file starts it
        bodies[root].pos, bodies[root].quat = [0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
    if root in bodies:
        frame = spec.worldbody.add_frame(pos=position, quat=orientation)
    else:
        frame = spec.worldbody.add_body(name=prefix + root, pos=position, quat=orientation).add_frame()
    spec.attach(child, frame=frame, prefix=prefix)


def _add_prop(spec: mujoco.MjSpec, prop: Prop) -> None:
    body = spec.worldbody.add_body(
        name=prop.name,
        pos=prop.initial_pose.position,
        quat=prop.initial_pose.orientation_wxyz,
        mocap=prop.fixed,  # a fixed prop's place is then part of each environment's state, not of the shared model
    )
    if not prop.fixed:
        body.add_freejoint(name=prop.name)
    geom = body.add_geom(name=prop.name, friction=prop.friction, rgba=prop.rgba, **_shape_fields(spec, prop))
    if not prop.fixed:
        geom.mass = prop.mass


def _shape_fields(spec: mujoco.MjSpec, prop: Prop) -> dict:
    shape, geom_type = prop.shape, mujoco.mjtGeom
    match shape:
        case Box(size):
            return {"type": geom_type.mjGEOM_BOX, "size": [0.5 * edge for edge in size]}
        case Sphere(radius):
            return {"type": geom_type.mjGEOM_SPHERE, "size": [radius, 0, 0]}
        case Cylinder(radius, height):
            return {"type": geom_type.mjGEOM_CYLINDER, "size": [radius, 0.5 * height, 0]}
        case Capsule(radius, length):
            return {"type": geom_type.mjGEOM_CAPSULE, "size": [radius, 0.5 * length, 0]}
        case Hull(vertices):
            mesh = spec.add_mesh(name=prop.name, uservert=vertices.flatten())
            return {"type": geom_type.mjGEOM_MESH, "meshname": mesh.name}


def _group_by_visibility(model: mujoco.MjModel, scene: Scene) -> None:
    """Group 0: what a camera sees. Group 5: collision shapes of links that have shapes made for looking at."""
    visual = (model.geom_contype == 0) & (model.geom_conaffinity == 0)
    bodies_with_visuals = set(model.geom_bodyid[visual].tolist())
    prop_bodies = {model.body(name).id for name in scene.props}
    for geom in range(model.ngeom):
        body = int(model.geom_bodyid[geom])
        seen = body in prop_bodies or visual[geom] or body not in bodies_with_visuals
        model.geom_group[geom] = 0 if seen else 5


def _robot_map(model: mujoco.MjModel, robot: Robot) -> RobotMap:
    prefix, description = model_prefix(robot), robot.description
    sim_joints = [joint.sim_name for joint in (*description.joints, *description.mimic_joints)]
    joints = np.array([_find(model, mujoco.mjtObj.mjOBJ_JOINT, prefix + name, "joint") for name in sim_joints])
    held = [_find(model, mujoco.mjtObj.mjOBJ_JOINT, prefix + name, "joint") for name in description.held_joints]
    ids = dict(zip(robot.joint_names, joints.tolist(), strict=True))
    columns = [
        Column(
            name,
            ids[name],
            {ids[m.name]: (m.multiplier, m.offset) for m in description.mimic_joints if m.mimics == name},
        )
        for name in description.joint_names
    ]
    links = [_find(model, mujoco.mjtObj.mjOBJ_BODY, prefix + link, "body") for link in description.links]
    return RobotMap(
        link_bodies=np.array(links, dtype=np.int64),
        qpos=model.jnt_qposadr[joints].astype(np.int64),
        dof=model.jnt_dofadr[joints].astype(np.int64),
        drives=drives_of(model, columns),
        held_qpos=model.jnt_qposadr[held].astype(np.int64),
        held_dof=model.jnt_dofadr[held].astype(np.int64),
        held=np.array(list(description.held_joints.values()), dtype=np.float64),
    )


def _prop_map(model: mujoco.MjModel, prop: Prop) -> PropMap:
    body = model.body(prop.name).id
    if prop.fixed:
        return PropMap(body, int(model.body_mocapid[body]), -1, -1)
    joint = int(model.body_jntadr[body])
    return PropMap(body, -1, int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint]))


def _find(model: mujoco.MjModel, kind: mujoco.mjtObj, name: str, what: str) -> int:
    index = mujoco.mj_name2id(model, kind, name)
    if index < 0:
        raise BackendError(
            f"the MuJoCo model has no {what} {name!r}, which the description names; lower the robot again"
        )
    return index


def _body_names(
    model: mujoco.MjModel, robots: dict[str, RobotMap], props: dict[str, PropMap], scene: Scene
) -> tuple[str, ...]:
    names = [model.body(i).name for i in range(model.nbody)]
    for prop, addresses in props.items():
        names[addresses.body] = prop
    if len(robots) == 1:  # with several, links keep their robot's name in front
        ((robot, addresses),) = robots.items()
        for link, body in zip(scene.robots[robot].link_names, addresses.link_bodies, strict=True):
            names[body] = link
    return tuple(names)
