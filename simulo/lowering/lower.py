"""A model file and robot.yaml to collision.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import trimesh

from simulo.description.files import (
    CollisionFile,
    DisabledPairEntry,
    EdgeEntry,
    JointEdgeEntry,
    MimicEdgeEntry,
    PoseEntry,
    RobotFile,
    parse_robot_file,
)
from simulo.description.load import assemble, declared_relations
from simulo.description.mimics import MimicRelation
from simulo.description.registry import ROBOT_FILE, robot_folder
from simulo.description.schema import LinkGeometry, RobotDescription, Source
from simulo.description.sources import resolve_model
from simulo.description.validate import validate
from simulo.errors import LoweringError
from simulo.lowering.exemptions import exempt_pairs
from simulo.lowering.mjcf import read_mjcf
from simulo.lowering.model import ModelJoint, RobotModel, link_mesh
from simulo.lowering.pieces import fit_piece
from simulo.lowering.slabs import split_points
from simulo.lowering.swept import swept_piece
from simulo.lowering.urdf import read_urdf
from simulo.lowering.write import collision_text, geometry_entry
from simulo.pose import Pose

RELATION_TOLERANCE = 1e-6
"""[1, rad or m] A declared mimic relation may differ from the file's by rounding only."""


@dataclass(frozen=True)
class LoweredRobot:
    """What `simulo lower` makes of a robot: its description and the text of collision.json."""

    description: RobotDescription
    text: str


def lower_robot(
    name_or_path: str | Path,
    tight_links: Mapping[str, int] | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> LoweredRobot:
    """Lower a robot given by name, folder or robot.yaml. tight_links: pieces per link, over robot.yaml's own.

    progress: called with the name of each step. Raises DescriptionError, ModelSourceError or LoweringError.
    """
    folder = robot_folder(name_or_path)
    path = folder / ROBOT_FILE
    robot = parse_robot_file(path.read_text(encoding="utf-8"), path)
    progress("read the model")
    model = read_model(robot, resolve_model(Source(**robot.source.model_dump())))
    where = str(path)
    _refuse_disagreement(robot, model, where)
    meshes = {link: link_mesh(shapes) for link, shapes in model.shapes.items() if shapes}
    pieces = {**robot.tight_links, **(tight_links or {})}
    for link in pieces:
        if link not in meshes:
            raise LoweringError(f"{where}: tight link {link!r} has no geometry in {model.path}; links: {', '.join(meshes)}")
    geometry: dict[str, LinkGeometry] = {}
    for link, mesh in meshes.items():
        progress(f"fit {link}")
        geometry[link] = fit_link(link, mesh, pieces.get(link, 1))
    return _finished(robot, model, meshes, geometry, where, progress)


def read_model(robot: RobotFile, path: Path) -> RobotModel:
    """The model file that robot.yaml names. A URDF's root must be robot.yaml's root_link."""
    if robot.source.format == "mjcf":
        return read_mjcf(path, robot.root_link)
    model = read_urdf(path)
    if model.links[0] != robot.root_link:
        raise LoweringError(f"{path}: the root link is {model.links[0]!r}, but {ROBOT_FILE} says {robot.root_link!r}")
    return model


def fit_link(link: str, mesh: trimesh.Trimesh, count: int) -> LinkGeometry:
    """One certified piece, or `count` slabs under the link's own hull."""
    label = f"link {link!r}"
    pieces = tuple(fit_piece(points, label) for points in split_points(mesh, count, label))
    if len(pieces) == 1:
        return LinkGeometry(link, pieces, pieces[0])
    everything = np.concatenate([np.asarray(mesh.vertices), *(piece.vertices for piece in pieces)])
    return LinkGeometry(link, pieces, fit_piece(everything, label))


def _refuse_disagreement(robot: RobotFile, model: RobotModel, where: str) -> None:
    """robot.yaml declares every moving joint of the file, and every relation as the file has it."""
    relations = declared_relations(robot, where)
    for name in (*(joint.name for joint in robot.joints), *relations):
        model.joint(name)
    for joint in model.joints:
        declared = joint.name in relations or any(joint.name == entry.name for entry in robot.joints)
        if not declared and joint.name in model.mimics:
            relation = model.mimics[joint.name]
            raise LoweringError(
                f"{where}: joint {joint.name!r} follows {relation.leader!r} in {model.path}; declare it under mimic_joints"
            )
        if not declared:
            raise LoweringError(f"{where}: joint {joint.name!r} of {model.path} is under neither joints nor mimic_joints; list it")
        if (joint.name in relations) != (joint.name in model.mimics):
            states = ("follows no joint", f"follows {model.mimics[joint.name].leader!r}" if joint.name in model.mimics else "")
            raise LoweringError(
                f"{where}: {joint.name!r} is declared under {'mimic_joints' if joint.name in relations else 'joints'}, "
                f"but in {model.path} it {states[joint.name in model.mimics]}; move the entry"
            )
    for name, relation in relations.items():
        _refuse_relation(relation, model.mimics[name], model.path, where)


def _refuse_relation(declared: MimicRelation, lowered: MimicRelation, path: Path, where: str) -> None:
    same = (
        declared.leader == lowered.leader
        and abs(declared.multiplier - lowered.multiplier) <= RELATION_TOLERANCE
        and abs(declared.offset - lowered.offset) <= RELATION_TOLERANCE
    )
    if not same:
        raise LoweringError(
            f"{where}: mimic joint {declared.joint!r} is declared as {declared.multiplier} * {declared.leader} + "
            f"{declared.offset}, but {path} has {lowered.multiplier} * {lowered.leader} + {lowered.offset}; correct robot.yaml"
        )


def _finished(
    robot: RobotFile,
    model: RobotModel,
    meshes: Mapping[str, trimesh.Trimesh],
    geometry: Mapping[str, LinkGeometry],
    where: str,
    progress: Callable[[str], None],
) -> LoweredRobot:
    """The file in two passes: swept fingers and exemptions are made from the description that the first pass gives."""
    entries = {link: geometry_entry(value) for link, value in geometry.items()}
    bare = CollisionFile(
        format=1,
        robot=robot.name,
        generator=f"simulo lower {robot.name}",
        source=robot.source,
        links=list(model.links),
        joints=[_joint_entry(model.joint(joint.name)) for joint in robot.joints],
        mimic_joints=[_mimic_entry(model.joint(r.joint), r) for r in declared_relations(robot, where).values()],
        fixed_attachments=[
            EdgeEntry(parent=edge.parent, child=edge.child, origin=_pose_entry(edge.origin)) for edge in model.attachments
        ],
        exempt_pairs=[],
        geometry=entries,
        swept={},
    )
    draft = assemble(robot, bare, "", where)
    swept = {}
    for gripper in draft.grippers:
        if gripper.follower_links:
            progress(f"sweep gripper {gripper.name}")
            piece = swept_piece(gripper, draft.joints, draft.mimic_joints, meshes)
            swept[gripper.name] = geometry_entry(LinkGeometry(gripper.jaw_links[0], (piece,), piece))
    with_swept = bare.model_copy(update={"swept": swept})
    draft = assemble(robot, with_swept, "", where)
    validate(draft, where)
    rows = [DisabledPairEntry(links=(r.link_a, r.link_b), reason=r.reason) for r in exempt_pairs(draft, progress)]
    final = with_swept.model_copy(update={"exempt_pairs": rows})
    description = assemble(robot, final, "", where)
    validate(description, where)
    return LoweredRobot(replace(description, digest=""), collision_text(final))


def _joint_entry(joint: ModelJoint) -> JointEdgeEntry:
    return JointEdgeEntry(
        name=joint.name,
        type=joint.type,
        parent=joint.parent,
        child=joint.child,
        origin=_pose_entry(joint.origin),
        axis=joint.axis,
        lower=_finite(joint.lower),
        upper=_finite(joint.upper),
        velocity_limit=_finite(joint.velocity_limit),
    )


def _mimic_entry(joint: ModelJoint, relation: MimicRelation) -> MimicEdgeEntry:
    return MimicEdgeEntry(
        name=joint.name,
        type=joint.type,
        parent=joint.parent,
        child=joint.child,
        origin=_pose_entry(joint.origin),
        axis=joint.axis,
        mimics=relation.leader,
        multiplier=relation.multiplier,
        offset=relation.offset,
    )


def _pose_entry(pose: Pose) -> PoseEntry:
    return PoseEntry(position=pose.position, orientation_wxyz=pose.orientation_wxyz)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def link_meshes(description: RobotDescription) -> dict[str, trimesh.Trimesh]:
    """Each link's collision and visual triangles in the link frame: the geometry that is true, not the one checked.

    Read from the model file, which must be on this machine. Raises ModelSourceError or LoweringError.
    """
    path = resolve_model(description.source)
    if description.source.format == "mjcf":
        model = read_mjcf(path, description.root_link)
    else:
        model = read_urdf(path)
    return {link: link_mesh(shapes) for link, shapes in model.shapes.items() if shapes}
