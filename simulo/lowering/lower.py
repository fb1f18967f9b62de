"""A model file and robot.yaml to collision.json."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import trimesh

from simulo.description.cuts import UNCUT, Asked, merged_cuts, overrides, own_cuts
from simulo.description.files import (
    CollisionFile,
    DisabledPairEntry,
    EdgeEntry,
    JointEdgeEntry,
    LinkCut,
    MimicEdgeEntry,
    PoseEntry,
    RobotFile,
    parse_robot_file,
)
from simulo.description.load import assemble, declared_relations, read_text, to_source, to_twin
from simulo.description.mimics import MimicRelation
from simulo.description.registry import ROBOT_FILE, robot_folder
from simulo.description.schema import LinkGeometry, RobotDescription, Source, Twin
from simulo.description.sources import ModelFiles, resolve_files
from simulo.description.validate import validate
from simulo.errors import LoweringError
from simulo.lowering.agreement import refuse_disagreement
from simulo.lowering.exemptions import exempt_pairs
from simulo.lowering.fit import fit_link, fitted_link
from simulo.lowering.linkage import hold_joints, linkage_stray
from simulo.lowering.mjcf import read_mjcf
from simulo.lowering.model import ModelJoint, RobotModel, link_mesh
from simulo.lowering.primitives import Candidate, pick
from simulo.lowering.rules import link_candidates
from simulo.lowering.srdf import read_srdf
from simulo.lowering.swept import swept_piece
from simulo.lowering.twin import fold_twin
from simulo.lowering.urdf import read_urdf
from simulo.lowering.write import collision_text, geometry_entry
from simulo.pose import Pose

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class LoweredRobot:
    """What `simulo lower` makes of a robot: its description, and collision.json as entries and as text.

    fitted: by link that primitives stand for, all candidates there were; `chosen`: which of them stands for it.
    """

    description: RobotDescription
    collision: CollisionFile
    text: str
    fitted: Mapping[str, tuple[Candidate, ...]]
    chosen: Mapping[str, Candidate]


def lower_robot(
    name_or_path: str | Path,
    asked: Asked | None = None,
    progress: Progress = lambda step, done, total: None,
    srdf: Path | None = None,
) -> LoweredRobot:
    """Lower a robot given by name, folder or robot.yaml. asked: slabs, pieces and primitives of links, over
    robot.yaml's own. srdf: a file whose disabled pairs hold, instead of the one that robot.yaml names.

    progress: called with each step, the steps done and all steps. Raises DescriptionError, ModelSourceError or
    LoweringError.
    """
    folder = robot_folder(name_or_path)
    path = folder / ROBOT_FILE
    robot = parse_robot_file(read_text(path), path)
    progress("read the model", 0, 1)
    files, where = resolve_files(to_source(robot.source, folder), pinned=True), str(path)
    model = hold_joints(read_model(robot, files), robot.held_joints, where)
    refuse_disagreement(robot, model, where)
    model, twin_offsets = _with_twin(model, to_twin(robot), where)
    meshes = {link: link_mesh(shapes) for link, shapes in model.shapes.items() if shapes}
    cuts = merged_cuts(robot, asked or Asked(), meshes, where)
    geometry: dict[str, LinkGeometry] = {}
    fitted: dict[str, tuple[Candidate, ...]] = {}
    chosen: dict[str, Candidate] = {}
    for done, (link, mesh) in enumerate(meshes.items()):
        progress(f"fit {link}", done + 1, len(meshes) + 2)
        cut = cuts.get(link, UNCUT)
        if cut.fit is None:
            try:
                geometry[link] = fit_link(link, mesh, cut)
            except LoweringError as error:
                raise LoweringError(f"{model.path}: {error}") from error
        else:
            fitted[link] = link_candidates(mesh)
            chosen[link] = pick(fitted[link], cut.fit)
            geometry[link] = fitted_link(chosen[link], link, mesh)
    progress("sweep the fingers, prove the exemptions", len(meshes) + 1, len(meshes) + 2)
    srdf = folder / robot.srdf if srdf is None and robot.srdf is not None else srdf
    rows = [] if srdf is None else _srdf_rows(robot, srdf, model, geometry)
    digest = None if srdf is None else hashlib.sha256(srdf.read_bytes()).hexdigest()
    over = overrides(own_cuts(robot, meshes, where), cuts)
    read = _Read(files, model, meshes, rows, digest, twin_offsets, over, where)
    description, collision = _finished(robot, read, geometry)
    return LoweredRobot(description, collision, collision_text(collision), fitted, chosen)


def _with_twin(model: RobotModel, twin: Twin | None, where: str) -> tuple[RobotModel, dict[str, float] | None]:
    """The model with its twin's CAD, where one is declared, and the links' offsets [m], to 1 um."""
    if twin is None:
        return model, None
    other = _read_files(twin.source, twin.root_link)
    model, offsets = fold_twin(model, other, twin.links, where)
    return model, {link: round(offset, 6) for link, offset in offsets.items()}


def _read_files(source: Source, root_link: str, columns: Collection[str] = ()) -> RobotModel:
    files = resolve_files(source, pinned=True)
    return read_urdf(files.path) if source.format == "urdf" else read_mjcf(files, root_link, columns)


def _srdf_rows(
    robot: RobotFile, srdf: Path, model: RobotModel, geometry: Mapping[str, LinkGeometry]
) -> list[DisabledPairEntry]:
    """The SRDF's pairs of links that both have geometry, but for those that robot.yaml lists itself."""
    declared = {frozenset(entry.links) for entry in robot.disabled_pairs}
    return [
        DisabledPairEntry(links=(pair.link_a, pair.link_b), reason=pair.reason)
        for pair in read_srdf(srdf, model).disabled
        if {pair.link_a, pair.link_b} <= geometry.keys() and frozenset((pair.link_a, pair.link_b)) not in declared
    ]


def read_model(robot: RobotFile, files: ModelFiles) -> RobotModel:
    """The model file that robot.yaml names. A URDF's root must be robot.yaml's root_link."""
    if robot.source.format == "mjcf":
        return read_mjcf(files, robot.root_link, [joint.name for joint in robot.joints])
    model = read_urdf(files.path)
    if model.links[0] != robot.root_link:
        raise LoweringError(
            f"{files.path}: the root link is {model.links[0]!r}, but {ROBOT_FILE} says {robot.root_link!r}"
        )
    return model


@dataclass(frozen=True)
class _Read:
    """All that the files on this machine and the command line say about a robot. rows, srdf_sha256: the SRDF's;
    asked_cuts: those that are not robot.yaml's; where: robot.yaml, for errors."""

    files: ModelFiles
    model: RobotModel
    meshes: Mapping[str, trimesh.Trimesh]
    rows: list[DisabledPairEntry]
    srdf_sha256: str | None
    twin_offsets: dict[str, float] | None
    asked_cuts: dict[str, LinkCut]
    where: str


def _finished(
    robot: RobotFile, read: _Read, geometry: Mapping[str, LinkGeometry]
) -> tuple[RobotDescription, CollisionFile]:
    """The file in two passes: swept fingers and exemptions are made from the description that the first pass gives."""
    model, meshes, where = read.model, read.meshes, read.where
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
            EdgeEntry(parent=edge.parent, child=edge.child, origin=_pose_entry(edge.origin))
            for edge in sorted(model.attachments, key=lambda edge: model.links.index(edge.child))
        ],
        exempt_pairs=read.rows,
        bare_links=[link for link in model.links if link not in geometry] or None,
        geometry=entries,
        swept={},
        floating_base=True if model.floating else None,
        twin_offsets=read.twin_offsets,
        srdf_sha256=read.srdf_sha256,
        asked_cuts=read.asked_cuts or None,
    )
    draft = assemble(robot, bare, "", where)
    strays = linkage_stray(read.files, model, draft, meshes)
    swept = {}
    for gripper in draft.grippers:
        if gripper.follower_links:
            piece = swept_piece(gripper, draft, meshes)
            swept[gripper.name] = geometry_entry(LinkGeometry(gripper.jaw_links[0], (piece,), piece))
    with_swept = bare.model_copy(update={"swept": swept, "linkage_stray": strays or None})
    draft = assemble(robot, with_swept, "", where)
    validate(draft, where)
    rows = [DisabledPairEntry(links=(r.link_a, r.link_b), reason=r.reason) for r in exempt_pairs(draft)]
    proven = {frozenset(row.links) for row in rows}
    rows += [row for row in read.rows if frozenset(row.links) not in proven]
    final = with_swept.model_copy(update={"exempt_pairs": rows})
    description = assemble(robot, final, "", where)
    validate(description, where)
    return description, final


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
    model = _read_files(description.source, description.root_link, description.joint_names)
    model, _ = _with_twin(model, description.twin, description.name)
    return {link: link_mesh(shapes) for link, shapes in model.shapes.items() if shapes}
