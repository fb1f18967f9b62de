"""The two files that describe a robot, as they stand on disk: robot.yaml (by hand) and collision.json (generated).

Only shapes, types and finiteness are checked here; whether the parts fit together is `validate`'s business.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from simulo.description.schema import JointRole, JointType
from simulo.errors import DescriptionError

FORMAT = 1
"""Layout version of collision.json; raised when a reader of the old layout would go wrong."""

FitChoice = Literal["A", "M", "B", "M1", "capsule", "chain2", "chain3", "box"]
"""What stands for a link: a primitive, a chain of capsules, or the fitter's choice by one of its rules."""

Count = Annotated[int, Field(ge=1, le=64)]
"""Parts that a link is cut into."""

Number = Annotated[float, Field(allow_inf_nan=False)]
Triple = tuple[Number, Number, Number]


def _refuse_no_rotation(wxyz: tuple[float, ...]) -> tuple[float, ...]:
    if math.hypot(*wxyz) < 1e-9:
        raise ValueError("a quaternion of length zero names no rotation; the identity is [1, 0, 0, 0]")
    return wxyz


Nanometres = Annotated[int, Field(ge=-(10**13), le=10**13)]
"""Up to 10 km: what float64 holds exactly, and no robot exceeds."""

Quaternion = Annotated[tuple[Number, Number, Number, Number], AfterValidator(_refuse_no_rotation)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PoseEntry(_Part):
    position: Triple = (0.0, 0.0, 0.0)
    orientation_wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)


class SourceEntry(_Part):
    """path: inside the package, or, where no package is named, of a file on this machine, from robot.yaml's folder."""

    package: str | None = None
    version: str | None = None
    path: str
    licence: str
    format: Literal["mjcf", "urdf"]
    attached: Annotated[list[AttachmentEntry], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _refuse_half_a_package(self) -> SourceEntry:
        if (self.package is None) != (self.version is None):
            raise ValueError("package and version go together: the package is pinned; a file of your own has neither")
        return self


class AttachmentEntry(_Part):
    site: str
    prefix: str
    source: SourceEntry


class TwinEntry(_Part):
    """Another model of the same robot. root_link: as robot.yaml's own. links: the twin's name of a link, by this
    robot's, where the two differ."""

    source: SourceEntry
    root_link: str
    links: dict[str, str] = {}


class JointEntry(_Part):
    name: str
    role: JointRole
    sim_name: str | None = None


class MimicEntry(_Part):
    name: str
    mimics: str
    multiplier: Number = 1.0
    offset: Number = 0.0
    sim_name: str | None = None


class PadPointEntry(_Part):
    link: str
    position: Triple


class GripperEntry(_Part):
    name: str
    joint: str
    hand_link: str
    jaw_links: list[str]
    follower_links: list[str] = []
    open_position: Number
    closed_position: Number
    grasp_frame: PoseEntry
    pad_points: tuple[PadPointEntry, PadPointEntry]


class DisabledPairEntry(_Part):
    links: tuple[str, str]
    reason: Annotated[str, Field(min_length=1)]


class LinkCut(_Part):
    """How a link is cut: into `slabs` across its longest axis, or into `pieces` by planes in any direction; 1: not.
    fit: what is put around it instead."""

    slabs: Count = 1
    pieces: Count = 1
    fit: FitChoice | None = None


class RobotFile(_Part):
    """robot.yaml. rest_pose: joints that are not named rest at 0. tight_links: slabs a link is cut into; decompose:
    convex pieces it is cut into; fitted_links: links that primitives stand for, and which, or the rule that chooses.

    held_joints: joints of the model that nothing moves and a stop or a spring keeps at a value [rad or m]: rigid.
    srdf: a file, from this one's folder, whose disabled pairs hold. twin: see TwinEntry. geometry: "on_request" where
    no package ships the model, so that each user lowers it into a cache of their own.
    """

    name: str
    source: SourceEntry
    twin: TwinEntry | None = None
    srdf: str | None = None
    root_link: str
    geometry: Literal["committed", "on_request"] = "committed"
    joints: list[JointEntry]
    mimic_joints: list[MimicEntry] = []
    held_joints: dict[str, Number] = {}
    grippers: list[GripperEntry] = []
    rest_pose: dict[str, Number] = {}
    tight_links: dict[str, Count] = {}
    decompose: dict[str, Count] = {}
    fitted_links: dict[str, FitChoice] = {}
    disabled_pairs: list[DisabledPairEntry] = []
    swept_disabled_pairs: list[DisabledPairEntry] = []
    touch_links: list[str] = []

    _folder: Path = PrivateAttr(default=Path())

    @property
    def folder(self) -> Path:
        """Where the file lies: relative paths in it start there."""
        return self._folder


class EdgeEntry(_Part):
    parent: str
    child: str
    origin: PoseEntry


class MovingEdgeEntry(_Part):
    name: str
    type: JointType
    parent: str
    child: str
    origin: PoseEntry
    axis: Triple


class JointEdgeEntry(MovingEdgeEntry):
    """lower, upper: absent for continuous joints. velocity_limit: absent when the source gives none."""

    lower: Number | None = None
    upper: Number | None = None
    velocity_limit: Number | None = None


class MimicEdgeEntry(MovingEdgeEntry):
    mimics: str
    multiplier: Number
    offset: Number


class BoxEntry(_Part):
    position: Triple
    orientation_wxyz: Quaternion
    half: Triple


class PieceEntry(_Part):
    """Lengths in whole nanometres: exact, and half as long as decimals of a metre. radius_nm: of the ball around one
    vertex (a sphere) or two (a capsule); absent for a hull, which has none."""

    box: BoxEntry
    dop_nm: list[tuple[Nanometres, Nanometres]]
    vertices_nm: list[tuple[Nanometres, Nanometres, Nanometres]]
    radius_nm: Annotated[Nanometres, Field(gt=0)] | None = None


class GeometryEntry(_Part):
    """hull: absent when the link has one piece, which then is its hull."""

    pieces: Annotated[list[PieceEntry], Field(min_length=1)]
    hull: PieceEntry | None = None


class CollisionFile(_Part):
    """collision.json, as `simulo lower` writes it. bare_links: those whose model gives them no shape; absent when
    there are none. Any other link must have its geometry, or the file has lost some. linkage_stray [m]: per gripper,
    how far its linkage is from the declared relations at most. floating_base: given where the root link moves
    freely. twin_offsets [m]: how far each link of the twin is from this robot's; its CAD is in where within 1 mm.
    srdf_sha256: of the SRDF whose pairs are among the exempt ones. asked_cuts: by link, what the command line asked
    for and robot.yaml did not; absent where every cut is robot.yaml's own."""

    format: Literal[1]
    robot: str
    generator: str
    source: SourceEntry
    links: list[str]
    joints: list[JointEdgeEntry]
    mimic_joints: list[MimicEdgeEntry]
    fixed_attachments: list[EdgeEntry]
    exempt_pairs: list[DisabledPairEntry]
    bare_links: list[str] | None = None
    geometry: dict[str, GeometryEntry]
    swept: dict[str, GeometryEntry]
    linkage_stray: dict[str, Number] | None = None
    floating_base: Literal[True] | None = None
    twin_offsets: dict[str, Number] | None = None
    srdf_sha256: str | None = None
    asked_cuts: dict[str, LinkCut] | None = None


_MOST_YAML = 1_000_000
"""Characters of a robot.yaml; those in use have up to 4,000. It takes two seconds to read, and more the longer."""

_FileT = TypeVar("_FileT", bound=_Part)


def parse_robot_file(text: str, path: Path) -> RobotFile:
    """robot.yaml's text to its entries. Raises DescriptionError naming the file, the element and what is wrong."""
    if len(text) > _MOST_YAML:
        raise DescriptionError(
            f"{path} has {len(text)} characters, over the limit of {_MOST_YAML}; is it the right file?"
        )
    try:
        data = yaml.load(text, Loader=_StrictLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise DescriptionError(f"{path} is not valid YAML: {error}; correct the entry in this file") from error
    robot = _validated(RobotFile, data, path, "correct the entry in this file")
    robot._folder = path.parent
    return robot


def parse_collision_file(text: str, path: Path, robot: str) -> CollisionFile:
    """collision.json's text to its entries. Raises DescriptionError naming the file, the element and the command."""
    remedy = f"this file is generated, do not edit it: run `simulo lower {robot}`"
    try:
        data = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_named_once)
    except (ValueError, RecursionError) as error:
        raise DescriptionError(f"{path} is corrupt or cut short ({error}); {remedy}") from error
    if isinstance(data, dict) and data.get("format") != FORMAT:
        raise DescriptionError(f"{path}: format is {data.get('format')!r}, this simulo reads {FORMAT}; {remedy}")
    return _validated(CollisionFile, data, path, remedy)


class _StrictLoader(yaml.SafeLoader):
    """Of a key that is given twice YAML keeps the last; here one of the two is a mistake, and which is not known."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for (key, _), name in zip(node.value, keys, strict=True):
            if keys.count(name) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{name!r} is given twice", key.start_mark)
        return super().construct_mapping(node, deep)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r} is given twice")
    return named


def _refuse_constant(token: str) -> float:
    raise ValueError(f"{token} is not a finite number")


def _validated(model: type[_FileT], data: Any, path: Path, remedy: str) -> _FileT:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = [f"{_location(data, e['loc'])}: {e['msg']}" for e in error.errors()[:5]]
        raise DescriptionError(f"{path}: {'; '.join(problems)}; {remedy}") from error


def _location(data: Any, location: tuple[int | str, ...]) -> str:
    """`joints[3] 'openarm_left_joint4'.role`: the index a parser sees and the name a person looks for."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            data = None
        if isinstance(step, int) and isinstance(data, dict) and isinstance(data.get("name"), str):
            text += f" {data['name']!r}"
    return text or "the whole file"


def finite_or(value: float | None, default: float) -> float:
    """A limit that the file leaves out is unbounded."""
    return default if value is None else value
