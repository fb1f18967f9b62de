"""URDF to `RobotModel`.

Read directly: URDF importers drop or guess what decides a gripper's collision geometry (mimic joints, missing limits),
and every one of those must be either honoured or refused here.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from simulo.description.mimics import MimicRelation, flatten_mimics
from simulo.description.schema import JointType
from simulo.errors import LoweringError
from simulo.lowering import meshes
from simulo.lowering.model import ModelAttachment, ModelJoint, RobotModel, Shape, placed
from simulo.pose import Pose, Vector

PACKAGE_VARIABLES = ("ROS_PACKAGE_PATH", "SIMULO_MODEL_PATH", "MENAGERIE_ROOT")

_TYPES: dict[str, JointType] = {"revolute": "revolute", "continuous": "continuous", "prismatic": "prismatic"}


def read_urdf(path: Path, package_roots: Sequence[Path] = ()) -> RobotModel:
    """Every link and joint of a URDF file.

    `package://name/...` is looked for in `package_roots`, then in the roots of PACKAGE_VARIABLES, then in the folders
    above the file; relative names start at the file. Nothing depends on the working directory.
    Raises LoweringError naming file, element and remedy.
    """
    try:
        robot = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, OSError) as error:
        raise LoweringError(f"{path} cannot be read as URDF: {error}") from error
    if robot.tag != "robot":
        raise LoweringError(f"{path} is not a URDF file: its root element is <{robot.tag}>, not <robot>")
    elements = robot.findall("joint")
    for kind in ("link", "joint"):
        names = [_name(element, kind, path) for element in robot.findall(kind)]
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise LoweringError(f"{path}: {kind} {repeated[0]!r} is defined more than once; names are unique")
    links = _ordered_links([_name(link, "link", path) for link in robot.findall("link")], elements, path)
    mimics = _mimics(elements, path)
    joints = [_joint(element, mimics, path) for element in elements if element.get("type") != "fixed"]
    attachments = [
        ModelAttachment(*_ends(element, path), _origin(element, path))
        for element in elements
        if element.get("type") == "fixed"
    ]
    roots = (*package_roots, *_environment_roots(), *path.resolve().parents)
    return RobotModel(
        path=path,
        format="urdf",
        links=links,
        joints=tuple(_follower_limits(joint, mimics, joints) for joint in joints),
        attachments=tuple(attachments),
        mimics=mimics,
        shapes={_name(link, "link", path): _shapes(link, path, roots) for link in robot.findall("link")},
    )


def _name(element: ElementTree.Element, kind: str, path: Path) -> str:
    name = element.get("name")
    if not name:
        raise LoweringError(f"{path}: a <{kind}> has no name; name it")
    return name


def _ends(element: ElementTree.Element, path: Path) -> tuple[str, str]:
    ends = [end.get("link") if (end := element.find(tag)) is not None else None for tag in ("parent", "child")]
    if not all(ends):
        raise LoweringError(f"{path}: joint {element.get('name')!r} lacks <parent link=...> or <child link=...>")
    return str(ends[0]), str(ends[1])


def _ordered_links(names: list[str], elements: list[ElementTree.Element], path: Path) -> tuple[str, ...]:
    """Parents before children. Refuses unknown and doubly defined links, several roots and cycles."""
    parents: dict[str, tuple[str, str]] = {}
    for element in elements:
        joint, (parent, child) = _name(element, "joint", path), _ends(element, path)
        for link in (parent, child):
            if link not in names:
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
            f"{path}: a robot has one root link, this file has {len(roots)}: {', '.join(roots) or 'none'}"
        )
    ordered = roots
    while len(ordered) < len(names):
        ready = [name for name in names if name not in ordered and parents[name][0] in ordered]
        if not ready:
            lost = sorted(set(names) - set(ordered))
            raise LoweringError(
                f"{path}: links {', '.join(lost)} are unreachable from {roots[0]!r}: their joints form a circle"
            )
        ordered += ready
    return tuple(ordered)


def _joint(element: ElementTree.Element, mimics: dict[str, MimicRelation], path: Path) -> ModelJoint:
    name, (parent, child) = _name(element, "joint", path), _ends(element, path)
    kind = _TYPES.get(element.get("type", ""))
    if kind is None:
        raise LoweringError(
            f"{path}: joint {name!r} has type {element.get('type')!r}; use revolute, continuous, prismatic or fixed"
        )
    limit = element.find("limit")
    lower, upper = -math.inf, math.inf
    if kind != "continuous" and limit is not None:
        lower, upper = (_number(limit, side, 0.0, f"joint {name!r} <limit>", path) for side in ("lower", "upper"))
    elif kind != "continuous" and name not in mimics:
        raise LoweringError(f"{path}: {kind} joint {name!r} has no <limit>; give it one, or make it continuous")
    if lower > upper:
        raise LoweringError(f"{path}: joint {name!r} has limits [{lower}, {upper}]; lower must not exceed upper")
    velocity = math.inf if limit is None else _number(limit, "velocity", math.inf, f"joint {name!r} <limit>", path)
    return ModelJoint(
        name=name,
        type=kind,
        parent=parent,
        child=child,
        origin=_origin(element, path),
        axis=_axis(element, name, path),
        lower=lower,
        upper=upper,
        velocity_limit=velocity if velocity > 0.0 else math.inf,
        actuated=name not in mimics,
    )


def _mimics(elements: list[ElementTree.Element], path: Path) -> dict[str, MimicRelation]:
    types = {element.get("name"): element.get("type") for element in elements}
    relations = []
    for element in elements:
        mimic = element.find("mimic")
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
        where = f"joint {name!r} <mimic>"
        relations.append(
            MimicRelation(
                name, leader, _number(mimic, "multiplier", 1.0, where, path), _number(mimic, "offset", 0.0, where, path)
            )
        )
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


def _number(element: ElementTree.Element, attribute: str, default: float, label: str, path: Path) -> float:
    text = element.get(attribute)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError as error:
        raise LoweringError(f"{path}: {label} has {attribute}={text!r}, which is no number") from error
    if not math.isfinite(value):
        raise LoweringError(f"{path}: {label} has {attribute}={text!r}, which is not finite")
    return value


def _numbers(text: str, count: int, label: str, path: Path) -> list[float]:
    try:
        values = [float(word) for word in text.split()]
    except ValueError as error:
        raise LoweringError(f"{path}: {label} is {text!r}, which is not {count} numbers") from error
    if len(values) != count or not all(math.isfinite(value) for value in values):
        raise LoweringError(f"{path}: {label} is {text!r}; it must be {count} finite numbers")
    return values


def _origin(element: ElementTree.Element, path: Path) -> Pose:
    origin = element.find("origin")
    if origin is None:
        return Pose()
    label = f"<origin> of {element.tag} {element.get('name')!r}"
    xyz = _numbers(origin.get("xyz", "0 0 0"), 3, f"{label} xyz", path)
    rpy = _numbers(origin.get("rpy", "0 0 0"), 3, f"{label} rpy", path)
    return Pose.from_rpy(xyz, rpy)


def _axis(element: ElementTree.Element, name: str, path: Path) -> Vector:
    axis = element.find("axis")
    values = np.array(_numbers("1 0 0" if axis is None else axis.get("xyz", ""), 3, f"<axis> of joint {name!r}", path))
    length = float(np.linalg.norm(values))
    if length < 1e-9:
        raise LoweringError(f"{path}: joint {name!r} has a zero <axis>; give the direction it moves along")
    x, y, z = (float(value) for value in values / length)
    return x, y, z


def _shapes(link: ElementTree.Element, path: Path, roots: Sequence[Path]) -> tuple[Shape, ...]:
    shapes = []
    for tag in ("collision", "visual"):
        for index, element in enumerate(link.findall(tag)):
            label = f"link {link.get('name')!r}, {tag} {element.get('name') or index}"
            geometry = element.find("geometry")
            if geometry is None or len(geometry) != 1:
                raise LoweringError(f"{path}: {label} has no single shape in <geometry>; give it one")
            mesh = _shape(geometry[0], label, path, roots)
            shapes.append(Shape(label, tag == "collision", placed(mesh, _origin(element, path))))
    return tuple(shapes)


def _shape(shape: ElementTree.Element, label: str, path: Path, roots: Sequence[Path]):
    if shape.tag == "mesh":
        scale = _numbers(shape.get("scale", "1 1 1"), 3, f"{label} scale", path)
        return meshes.load_mesh(_mesh_path(shape.get("filename", ""), label, path, roots), scale, f"{path}: {label}")
    if shape.tag == "box":
        return meshes.box(
            [0.5 * v for v in _positive(_numbers(shape.get("size", ""), 3, f"{label} size", path), label, path)]
        )
    if shape.tag == "sphere":
        radius = _positive(_numbers(shape.get("radius", ""), 1, f"{label} radius", path), label, path)[0]
        return meshes.ellipsoid([radius] * 3)
    if shape.tag in ("cylinder", "capsule"):
        words = f"{shape.get('radius', '')} {shape.get('length', '')}"
        radius, length = _positive(_numbers(words, 2, f"{label} radius and length", path), label, path)
        return getattr(meshes, shape.tag)(radius, 0.5 * length)
    raise LoweringError(f"{path}: {label} is a <{shape.tag}>; mesh, box, sphere, cylinder and capsule are lowered")


def _positive(values: list[float], label: str, path: Path) -> list[float]:
    if min(values) <= 0.0:
        raise LoweringError(f"{path}: {label} has a size of {min(values)}; sizes are above 0")
    return values


def _environment_roots() -> tuple[Path, ...]:
    lists = [os.environ.get(variable, "") for variable in PACKAGE_VARIABLES]
    return tuple(Path(root).expanduser() for text in lists for root in text.split(os.pathsep) if root)


def _mesh_path(filename: str, label: str, path: Path, roots: Sequence[Path]) -> Path:
    name = filename.removeprefix("file://")
    if not name.startswith("package://"):
        return path.resolve().parent / name
    inside = name.removeprefix("package://")
    tried = [place for root in roots for place in (root / inside, root / inside.partition("/")[2])]
    for place in tried:
        if place.is_file():
            return place
    listing = "\n".join(f"  - {place}" for place in tried)
    raise LoweringError(
        f"{path}: {label}: mesh {filename!r} was not found. Tried:\n{listing}\nSet ROS_PACKAGE_PATH to its root"
    )
