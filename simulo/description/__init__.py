"""What a robot is made of: `load_description(name_or_path)` and the frozen types it returns."""

from simulo.description.kinematics import reference_fk
from simulo.description.load import load_description
from simulo.description.registry import list_robots
from simulo.description.schema import (
    DOP_DIRECTIONS,
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

__all__ = [
    "DOP_DIRECTIONS",
    "Attachment",
    "ConvexPiece",
    "DisabledPair",
    "FixedAttachment",
    "Gripper",
    "Joint",
    "LinkGeometry",
    "MimicJoint",
    "PadPoint",
    "RobotDescription",
    "Source",
    "Twin",
    "list_robots",
    "load_description",
    "reference_fk",
]
