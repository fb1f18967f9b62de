"""URDF to `RobotModel`.

The XML is lxml's business, its meaning is read here. yourdfpy, the library for it, goes on where this must stop: it
parses broken XML in recovery mode, takes the first of several roots, hangs an unconnected link on the base, leaves out
a mesh that it does not find, and lets a mimic joint without its leader stand still, each with a line in a log at most.
A guard for each of these would have read the whole file before it, so nothing would be left for it to do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import trimesh

from simulo.description.mimics import MimicRelation, flatten_mimics
from simulo.description.schema import JointType
from simulo.errors import LoweringError
from simulo.lowering import meshes
from simulo.lowering.limits import (
    MAX_JOINT_VALUE,
    MAX_LENGTH,
    MAX_LINKS,
    MAX_MODEL_TRIANGLES,
    MAX_MULTIPLIER,
    MAX_SHAPES,
)
from simulo.lowering.model import ModelAttachment, ModelJoint, RobotModel, Shape, placed, warn_of_wide_links
from simulo.lowering.resources import named_file
from simulo.lowering.xml import Element, local_name, numbers, only, read_xml
from simulo.pose import Pose, Vector

_TYPES: dict[str, JointType] = {"revolute": "revolute", "continuous": "continuous", "prismatic": "prismatic"}

_SHAPES = ("mesh", "box", "sphere", "cylinder", "capsule")

_EXTENSIONS = ("gazebo", "transmission", "sensor", "ros2_control", "mujoco", "self_filter", "collision_checking")
"""Elements that speak to another tool and add no geometry to the robot that the file describes."""


def read_urdf(path: Path, package_roots: Sequence[Path] = ()) -> RobotModel:
    """Every link and joint of a URDF file.

    `package://name/...` is looked for in `package_roots`, then as `resources.named_file` says.
    Raises LoweringError naming file, element and remedy.
    """
    robot = read_xml(path, "URDF", ("robot",))
    for element in robot.iter("{*}*"):
        if "xacro" in str(element.tag):
            raise LoweringError(
                f"{path}, line {element.sourceline}: <{local_name(element)}> is a macro; run xacro first"
            )
    links, elements = robot.findall("link"), robot.findall("joint")
    if not links:
        raise LoweringError(f"{path} has no <link> in <robot>; give the file of a robot with links")
    for kind, found in (("link", links), ("joint", elements)):
        if len(found) > MAX_LINKS:
            raise LoweringError(f"{path} has {len(found)} {kind}s, over the limit of {MAX_LINKS}; lower one robot")
        names = [_name(element, kind, path) for element in found]
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise LoweringError(f"{path}: {kind} {repeated[0]!r} is defined more than once; names are unique")
    _refuse_strayed_shapes(robot, path)
    ordered = _ordered_links([_name(link, "link", path) for link in links], elements, path)
    mimics = _mimics(elements, path)
    joints = [_joint(element, mimics, path) for element in elements if element.get("type") != "fixed"]
    attachments = [
        ModelAttachment(*_ends(element, path), _origin(element, _joint_label(element, path)))
        for element in elements
        if element.get("type") == "fixed"
    ]
    model = RobotModel(
        path=path,
        format="urdf",
        links=ordered,
        joints=tuple(_follower_limits(joint, mimics, joints) for joint in joints),
        attachments=tuple(attachments),
        mimics=mimics,
        shapes=_shapes(links, path, package_roots),
    )
    warn_of_wide_links(model)
    return model


def _name(element: Element, kind: str, path: Path) -> str:
    name = element.get("name")
    if not name:
        raise LoweringError(f"{path}, line {element.sourceline}: a <{kind}> has no name; name it")
    return name


def _joint_label(element: Element, path: Path) -> str:
    return f"{path}: joint {element.get('name')!r}"


def _ends(element: Element, path: Path) -> tuple[str, str]:
    label = _joint_label(element, path)
    found = [only(element, tag, label) for tag in ("parent", "child")]
    parent, child = (None if end is None else end.get("link") for end in found)
    if not parent or not child:
        raise LoweringError(f"{label} lacks <parent link=...> or <child link=...>; name both links")
    return parent, child


def _refuse_strayed_shapes(robot: Element, path: Path) -> None:
    """A shape that stands where no reader looks would be left out without a word."""
    read = {
        shape
        for link in robot.findall("link")
        for tag in ("collision", "visual")
        for element in link.findall(tag)
        for geometry in element.findall("geometry")
        for shape in geometry
    }
    foreign = {shape for tag in _EXTENSIONS for extension in robot.iter(tag) for shape in extension.iter(*_SHAPES)}
    for shape in robot.iter(*_SHAPES):
        if shape not in read and shape not in foreign:
            inside = "/".join(str(parent.tag) for parent in (*reversed(list(shape.iterancestors())), shape))
            raise LoweringError(
                f"{path}, line {shape.sourceline}: the <{shape.tag}> in {inside} would be left out; shapes belong in "
                "robot/link/collision/geometry or robot/link/visual/geometry"
            )


def _ordered_links(names: list[str], elements: list[Element], path: Path) -> tuple[str, ...]:
    """Parents before children. Refuses unknown and doubly defined links, several roots and cycles."""
    known = set(names)
    parents: dict[str, tuple[str, str]] = {}
    for element in elements:
        joint, (parent, child) = _name(element, "joint", path), _ends(element, path)
        for link in (parent, child):
            if link not in known:
                raise LoweringError(
                    f"{path}: joint {joint!r} names link {link!r}, which is not defined; links: {', '.join(names)}"
                )
        if child in parents:
            raise LoweringError(
                f"{path}: link {child!r} is the child of two joints, {parents[child][1]!r} and {joint!r}; remove one"
            )
        parents[child] = (parent, joint)
    roots = [name for name in names if name not in parents]
    if len(roots) != 1:
        raise LoweringError(
            f"{path}: a robot has one root link, this file has {len(roots)}: {', '.join(roots) or 'none'}; "
            "join its links by joints into one tree"
        )
    children: dict[str, list[str]] = {name: [] for name in names}
    for name in names:
        if name in parents:
            children[parents[name][0]].append(name)
    ordered = list(roots)
    for name in ordered:  # grows while it is walked: breadth first
        ordered += children[name]
    if len(ordered) < len(names):
        lost = ", ".join(sorted(known - set(ordered)))
        raise LoweringError(
            f"{path}: links {lost} are unreachable from {roots[0]!r}: their joints form a circle; remove one joint"
        )
    return tuple(ordered)


def _joint(element: Element, mimics: dict[str, MimicRelation], path: Path) -> ModelJoint:
    name, (parent, child) = _name(element, "joint", path), _ends(element, path)
    label = _joint_label(element, path)
    kind = _TYPES.get(element.get("type", ""))
    if kind is None:
        raise LoweringError(f"{label} has type {element.get('type')!r}; use revolute, continuous, prismatic or fixed")
    limit = only(element, "limit", label)
    lower, upper = -math.inf, math.inf
    if kind != "continuous" and limit is not None:
        lower, upper = (_number(limit, side, 0.0, label, math.inf) for side in ("lower", "upper"))
    elif kind != "continuous" and name not in mimics:
        raise LoweringError(f"{label} is {kind} and has no <limit>; give it one, or make it continuous")
    if lower > upper:
        raise LoweringError(f"{label} has limits [{lower}, {upper}]; lower must not exceed upper")
    if kind != "continuous" and limit is not None and max(abs(lower), abs(upper)) > MAX_JOINT_VALUE:
        raise LoweringError(
            f"{label} has limits [{lower}, {upper}], over the limit of {MAX_JOINT_VALUE:g}; give those it really has, "
            "or make it continuous"
        )
    velocity = math.inf if limit is None else _number(limit, "velocity", math.inf, label, math.inf)
    return ModelJoint(
        name=name,
        type=kind,
        parent=parent,
        child=child,
        origin=_origin(element, label),
        axis=_axis(element, label),
        lower=lower,
        upper=upper,
        velocity_limit=velocity if velocity > 0.0 else math.inf,
        actuated=name not in mimics,
    )


def _mimics(elements: list[Element], path: Path) -> dict[str, MimicRelation]:
    types = {element.get("name"): element.get("type") for element in elements}
    relations = []
    for element in elements:
        mimic = only(element, "mimic", _joint_label(element, path))
        if mimic is None:
            continue
        name, leader = _name(element, "joint", path), mimic.get("joint", "")
        label = f"{path}: joint {name!r} mimics {leader!r}"
        if element.get("type") == "fixed":
            raise LoweringError(f"{label}, but is fixed and cannot move; remove its <mimic>")
        if leader not in types:
            raise LoweringError(
                f"{label}, which is not a joint of this file; name one of: {', '.join(map(str, types))}"
            )
        if types[leader] == "fixed":
            raise LoweringError(f"{label}, which is a fixed joint and never moves; name a moving leader")
        multiplier = _number(mimic, "multiplier", 1.0, label, MAX_MULTIPLIER)
        if 0.0 < abs(multiplier) < 1.0 / MAX_MULTIPLIER:
            raise LoweringError(f"{label} by a multiplier of {multiplier}, which hardly moves it; make it fixed")
        relations.append(MimicRelation(name, leader, multiplier, _number(mimic, "offset", 0.0, label, MAX_JOINT_VALUE)))
    followers = {relation.joint for relation in relations}
    moving = [str(name) for name, kind in types.items() if kind in _TYPES and name not in followers]
    return flatten_mimics(relations, moving, str(path))


def _follower_limits(joint: ModelJoint, mimics: dict[str, MimicRelation], joints: list[ModelJoint]) -> ModelJoint:
    """A follower's range is its leader's, taken through the relation; limits of its own are never needed."""
    if joint.name not in mimics:
        return joint
    relation = mimics[joint.name]
    leader = next(other for other in joints if other.name == relation.leader)
    ends = sorted(relation.multiplier * value + relation.offset + 0.0 for value in (leader.lower, leader.upper))
    return ModelJoint(
        joint.name, joint.type, joint.parent, joint.child, joint.origin, joint.axis, ends[0], ends[1],
        joint.velocity_limit, joint.actuated,
    )  # fmt: skip


def _number(element: Element, attribute: str, default: float, label: str, largest: float) -> float:
    text = element.get(attribute)
    return default if text is None else numbers(text, 1, f"{label}: <{element.tag}> {attribute}", largest)[0]


def _origin(element: Element, label: str) -> Pose:
    origin = only(element, "origin", label)
    if origin is None:
        return Pose()
    xyz = numbers(origin.get("xyz", "0 0 0"), 3, f"{label}: <origin> xyz", MAX_LENGTH)
    for attribute in set(origin.attrib) - {"xyz", "rpy"}:  # such as quat_xyzw of some tools: the turn would be lost
        raise LoweringError(f"{label}: <origin> has {attribute!r}, which is no attribute of it; write xyz and rpy")
    rpy = numbers(origin.get("rpy", "0 0 0"), 3, f"{label}: <origin> rpy", MAX_JOINT_VALUE)
    return Pose.from_rpy(xyz, rpy)


def _axis(element: Element, label: str) -> Vector:
    axis = only(element, "axis", label)
    text = "1 0 0" if axis is None else axis.get("xyz", "")
    values = np.array(numbers(text, 3, f"{label}: <axis> xyz", MAX_LENGTH))
    length = float(np.linalg.norm(values))
    if length < 1e-9:
        raise LoweringError(f"{label} has a zero <axis>; give the direction it moves along")
    x, y, z = (float(value) for value in values / length)
    return x, y, z


def _shapes(links: Sequence[Element], path: Path, roots: Sequence[Path]) -> dict[str, tuple[Shape, ...]]:
    """Every shape of every link, in the link's frame; one whose total is too large is refused before it is kept."""
    count = sum(len(link.findall(tag)) for link in links for tag in ("collision", "visual"))
    if count > MAX_SHAPES:
        raise LoweringError(f"{path} has {count} shapes, over the limit of {MAX_SHAPES}; lower one robot")
    shapes: dict[str, tuple[Shape, ...]] = {}
    triangles = 0
    for link in links:
        name, found = _name(link, "link", path), []
        for tag in ("collision", "visual"):
            for index, element in enumerate(link.findall(tag)):
                found.append(_shape(element, f"link {name!r}, {tag} {element.get('name') or index}", path, roots))
                triangles += len(found[-1].mesh.faces)
                if triangles > MAX_MODEL_TRIANGLES:
                    raise LoweringError(
                        f"{path}: {found[-1].label}: the robot has over {MAX_MODEL_TRIANGLES} triangles; simplify its "
                        "meshes"
                    )
        shapes[name] = tuple(found)
    return shapes


def _shape(element: Element, name: str, path: Path, roots: Sequence[Path]) -> Shape:
    label = f"{path}: {name}"
    geometry = only(element, "geometry", label)
    if geometry is None or len(geometry) != 1:
        raise LoweringError(f"{label} has no single shape in <geometry>; give it one")
    mesh = _triangles(geometry[0], label, path, roots)
    cad = geometry[0].tag == "mesh"
    return Shape(name, element.tag == "collision", placed(mesh, _origin(element, label)), cad)


def _triangles(shape: Element, label: str, path: Path, roots: Sequence[Path]) -> trimesh.Trimesh:
    if shape.tag == "mesh":
        scale = numbers(shape.get("scale", "1 1 1"), 3, f"{label}: scale", MAX_LENGTH)
        if 0.0 in scale:
            raise LoweringError(f"{label}: a scale of {scale} leaves no volume; give three numbers other than 0")
        return meshes.load_mesh(named_file(shape.get("filename", ""), label, path, roots), scale, label)
    if shape.tag == "box":
        return meshes.box([0.5 * value for value in _sizes(shape.get("size", ""), 3, f"{label}: box size")])
    if shape.tag == "sphere":
        return meshes.ellipsoid(_sizes(shape.get("radius", ""), 1, f"{label}: sphere radius") * 3)
    if shape.tag in ("cylinder", "capsule"):
        words = f"{shape.get('radius', '')} {shape.get('length', '')}"
        radius, length = _sizes(words, 2, f"{label}: {shape.tag} radius and length")
        return getattr(meshes, str(shape.tag))(radius, 0.5 * length)
    raise LoweringError(f"{label} is a <{shape.tag}>; mesh, box, sphere, cylinder and capsule are lowered")


def _sizes(text: str, count: int, label: str) -> list[float]:
    values = numbers(text, count, label, MAX_LENGTH)
    if min(values) < 2.0 * meshes.FLATNESS:
        raise LoweringError(f"{label} is {text!r}; sizes are above 0 ({2.0 * meshes.FLATNESS} m at least)")
    return values
