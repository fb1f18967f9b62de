"""robot.yaml and collision.json to one validated `RobotDescription`."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from simulo.description.cuts import UNCUT, could_give, own_cuts, told
from simulo.description.files import (
    CollisionFile,
    GeometryEntry,
    GripperEntry,
    PieceEntry,
    PoseEntry,
    RobotFile,
    SourceEntry,
    finite_or,
    parse_collision_file,
    parse_robot_file,
)
from simulo.description.mimics import MimicRelation, flatten_mimics
from simulo.description.registry import COLLISION_FILE, ROBOT_FILE, cache_folder, robot_folder
from simulo.description.schema import (
    Attachment,
    ConvexPiece,
    DisabledPair,
    FixedAttachment,
    Gripper,
    Joint,
    LinkGeometry,
    MimicJoint,
    PadPoint,
    RobotDescription,
    Source,
    Twin,
)
from simulo.description.validate import validate
from simulo.errors import DescriptionError, NotLoweredError
from simulo.pose import Pose

NANOMETRE = 1e-9


def load_description(name_or_path: str | Path) -> RobotDescription:
    """The robot of that name, or in that folder, validated as a whole.

    Raises DescriptionError naming file, element and remedy; a robot without collision.json is refused, naming the
    command that makes it.
    """
    folder = robot_folder(name_or_path)
    robot_path, collision_path = folder / ROBOT_FILE, geometry_path(name_or_path)
    robot_text = read_text(robot_path)
    robot = parse_robot_file(robot_text, robot_path)
    if not collision_path.is_file():
        raise NotLoweredError(
            f"robot {robot.name!r} is not lowered ({collision_path} is missing): run `simulo lower {name_or_path}`",
            str(name_or_path),
        )
    collision_text = read_text(collision_path)
    collision = parse_collision_file(collision_text, collision_path, str(name_or_path))
    _refuse_disagreement(robot, collision, collision_path)
    _refuse_another_srdf(robot, collision, collision_path)
    digest = hashlib.sha256(robot_text.encode() + b"\0" + collision_text.encode()).hexdigest()
    description = assemble(robot, collision, digest, str(folder))
    validate(description, str(folder))
    _refuse_lost_geometry(robot, collision, collision_path)
    _refuse_other_cuts(robot, collision, collision_path)
    return description


def load_robot_file(name_or_path: str | Path) -> RobotFile:
    """A robot's robot.yaml alone, which it has before it is lowered. Raises DescriptionError as `load_description`."""
    path = robot_folder(name_or_path) / ROBOT_FILE
    return parse_robot_file(read_text(path), path)


def geometry_path(name_or_path: str | Path) -> Path:
    """Where the robot's collision.json belongs, whether it is there or not.

    Beside its robot.yaml; or, made on request, in the user's cache, under a name that changes with robot.yaml.
    """
    folder = robot_folder(name_or_path)
    robot = load_robot_file(name_or_path)
    if robot.geometry == "committed":
        return folder / COLLISION_FILE
    mark = hashlib.sha256((folder / ROBOT_FILE).read_bytes()).hexdigest()[:12]
    return cache_folder() / f"{robot.name}-{mark}" / COLLISION_FILE


def read_text(path: Path) -> str:
    """A description's file. Raises DescriptionError when it cannot be read, or is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(f"{path} cannot be read: {error}") from error


def _refuse_disagreement(robot: RobotFile, collision: CollisionFile, path: Path) -> None:
    """Both files must speak of one robot: a hand edit of robot.yaml after lowering makes collision.json stale."""
    relations = declared_relations(robot, str(path.parent / ROBOT_FILE))
    facts = {
        "name": (robot.name, collision.robot),
        "source": (robot.source, collision.source),
        "root_link": (robot.root_link, collision.links[0] if collision.links else None),
        "joints": ([j.name for j in robot.joints], [j.name for j in collision.joints]),
        "mimic_joints": (sorted(j.name for j in robot.mimic_joints), sorted(j.name for j in collision.mimic_joints)),
    }
    for field, (declared, lowered) in facts.items():
        if declared != lowered:
            raise DescriptionError(
                f"{path}: {field} is {lowered!r}, but {ROBOT_FILE} says {declared!r}; "
                f"run `simulo lower {robot.name}` again"
            )
    for edge in collision.mimic_joints:
        lowered = MimicRelation(edge.name, edge.mimics, edge.multiplier, edge.offset)
        if relations[edge.name] != lowered:
            raise DescriptionError(
                f"{path}: mimic joint {edge.name!r} was lowered as {lowered}, "
                f"but {ROBOT_FILE} now declares {relations[edge.name]}; run `simulo lower {robot.name}` again"
            )


def _refuse_another_srdf(robot: RobotFile, collision: CollisionFile, path: Path) -> None:
    """The SRDF that robot.yaml names is an input of the lowering too: its pairs are exempt only as they stand in it."""
    if robot.srdf is None:
        return
    srdf = robot.folder / robot.srdf
    try:
        found = hashlib.sha256(srdf.read_bytes()).hexdigest()
    except OSError as error:
        raise DescriptionError(
            f"{robot.folder / ROBOT_FILE}: srdf {srdf} cannot be read: {error}; restore or correct it"
        ) from error
    if found != collision.srdf_sha256:
        raise DescriptionError(
            f"{path} was not lowered with the SRDF that robot.yaml names as it now is ({srdf}); "
            f"run `simulo lower {robot.name}` again"
        )


def _refuse_lost_geometry(robot: RobotFile, collision: CollisionFile, path: Path) -> None:
    """Every link has geometry or is said to have none: what is missing would never be checked."""
    bare = collision.bare_links or []
    for link in collision.links:
        if (link in collision.geometry) == (link in bare):
            problem = "has geometry and is listed as bare" if link in bare else "has no geometry"
            raise DescriptionError(f"{path}: link {link!r} {problem}; run `simulo lower {robot.name}` again")


def _refuse_other_cuts(robot: RobotFile, collision: CollisionFile, path: Path) -> None:
    """Each link must have been cut as robot.yaml now says, but where a command line asked otherwise, and it says so."""
    own = own_cuts(robot, collision.geometry, str(robot.folder / ROBOT_FILE))
    asked = collision.asked_cuts or {}
    for link, entry in collision.geometry.items():
        cut = asked.get(link) or own.get(link, UNCUT)
        if not could_give(cut, entry.pieces):
            says = "the command line asked" if link in asked else f"{ROBOT_FILE} now asks"
            raise DescriptionError(
                f"{path}: link {link!r} was lowered to {len(entry.pieces)} piece(s), but {says} for it as {told(cut)}; "
                f"run `simulo lower {robot.name}` again"
            )


def declared_relations(robot: RobotFile, where: str) -> dict[str, MimicRelation]:
    """robot.yaml's mimic relations, each on its actuated leader. Raises DescriptionError as `flatten_mimics` does."""
    relations = [MimicRelation(m.name, m.mimics, m.multiplier, m.offset) for m in robot.mimic_joints]
    return flatten_mimics(relations, [joint.name for joint in robot.joints], where)


def assemble(robot: RobotFile, collision: CollisionFile, digest: str, where: str) -> RobotDescription:
    """Both files' entries as one description, not yet validated."""
    declared = [DisabledPair(*entry.links, entry.reason) for entry in robot.disabled_pairs]
    generated = [DisabledPair(*entry.links, entry.reason) for entry in collision.exempt_pairs]
    return RobotDescription(
        name=robot.name,
        source=to_source(robot.source, robot.folder),
        root_link=robot.root_link,
        links=tuple(collision.links),
        joints=_joints(robot, collision),
        fixed_attachments=tuple(
            FixedAttachment(edge.parent, edge.child, to_pose(edge.origin)) for edge in collision.fixed_attachments
        ),
        mimic_joints=_mimic_joints(robot, collision),
        grippers=tuple(_gripper(entry) for entry in robot.grippers),
        rest_pose=_rest_pose(robot, where),
        disabled_pairs=(*generated, *declared),
        touch_links=tuple(robot.touch_links),
        geometry={link: _geometry(link, entry) for link, entry in collision.geometry.items()},
        swept={name: _geometry(_swept_link(robot, name), entry) for name, entry in collision.swept.items()},
        digest=digest,
        swept_disabled_pairs=tuple(DisabledPair(*entry.links, entry.reason) for entry in robot.swept_disabled_pairs),
        held_joints=dict(robot.held_joints),
        floating_base=bool(collision.floating_base),
        twin=to_twin(robot),
    )


def to_source(entry: SourceEntry, folder: Path) -> Source:
    """folder: robot.yaml's, where the path of a file without a package starts."""
    attached = tuple(
        Attachment(part.site, part.prefix, to_source(part.source, folder)) for part in entry.attached or ()
    )
    path = entry.path if entry.package else os.path.abspath(folder / entry.path)
    return Source(entry.package or "", entry.version or "", path, entry.licence, entry.format, attached)


def to_twin(robot: RobotFile) -> Twin | None:
    if robot.twin is None:
        return None
    return Twin(to_source(robot.twin.source, robot.folder), robot.twin.root_link, dict(robot.twin.links))


def to_pose(entry: PoseEntry) -> Pose:
    return Pose(entry.position, entry.orientation_wxyz)


def _joints(robot: RobotFile, collision: CollisionFile) -> tuple[Joint, ...]:
    declared = {entry.name: entry for entry in robot.joints}
    return tuple(
        Joint(
            name=edge.name,
            type=edge.type,
            parent=edge.parent,
            child=edge.child,
            origin=to_pose(edge.origin),
            axis=edge.axis,
            lower=finite_or(edge.lower, -math.inf),
            upper=finite_or(edge.upper, math.inf),
            velocity_limit=finite_or(edge.velocity_limit, math.inf),
            role=declared[edge.name].role,
            sim_name=declared[edge.name].sim_name or edge.name,
        )
        for edge in collision.joints
    )


def _mimic_joints(robot: RobotFile, collision: CollisionFile) -> tuple[MimicJoint, ...]:
    sim_names = {entry.name: entry.sim_name or entry.name for entry in robot.mimic_joints}
    return tuple(
        MimicJoint(
            name=edge.name,
            type=edge.type,
            parent=edge.parent,
            child=edge.child,
            origin=to_pose(edge.origin),
            axis=edge.axis,
            mimics=edge.mimics,
            multiplier=edge.multiplier,
            offset=edge.offset,
            sim_name=sim_names[edge.name],
        )
        for edge in collision.mimic_joints
    )


def _gripper(entry: GripperEntry) -> Gripper:
    first, second = (PadPoint(point.link, point.position) for point in entry.pad_points)
    return Gripper(
        name=entry.name,
        joint=entry.joint,
        hand_link=entry.hand_link,
        jaw_links=tuple(entry.jaw_links),
        follower_links=tuple(entry.follower_links),
        open_position=entry.open_position,
        closed_position=entry.closed_position,
        grasp_frame=to_pose(entry.grasp_frame),
        pad_points=(first, second),
    )


def _rest_pose(robot: RobotFile, where: str) -> np.ndarray:
    names = [joint.name for joint in robot.joints]
    for name in robot.rest_pose:
        if name not in names:
            raise DescriptionError(
                f"{where}/{ROBOT_FILE}: rest_pose names {name!r}, which is not a joint; joints: {', '.join(names)}"
            )
    return _frozen([robot.rest_pose.get(name, 0.0) for name in names])


def _swept_link(robot: RobotFile, gripper: str) -> str:
    """The swept model rides on the leader; an unknown gripper is left for `validate` to name."""
    jaws = [entry.jaw_links[0] for entry in robot.grippers if entry.name == gripper and entry.jaw_links]
    return jaws[0] if jaws else gripper


def _geometry(link: str, entry: GeometryEntry) -> LinkGeometry:
    pieces = tuple(to_piece(piece) for piece in entry.pieces)
    return LinkGeometry(link, pieces, pieces[0] if entry.hull is None else to_piece(entry.hull))


def to_piece(entry: PieceEntry) -> ConvexPiece:
    return ConvexPiece(
        vertices=_frozen(entry.vertices_nm, NANOMETRE),
        box_pose=Pose(entry.box.position, entry.box.orientation_wxyz),
        box_half=entry.box.half,
        dop=_frozen(entry.dop_nm, NANOMETRE),
        radius=(entry.radius_nm or 0) * NANOMETRE,
    )


def _frozen(values: Sequence[object], unit: float = 1.0) -> np.ndarray:
    array = np.array(values, dtype=np.float64) * unit
    array.flags.writeable = False
    return array
