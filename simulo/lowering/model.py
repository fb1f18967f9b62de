"""A model file after reading: the same plain tree and shapes, whether it was MJCF or URDF."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import trimesh
from numpy.typing import NDArray

from simulo.description.mimics import MimicRelation
from simulo.description.schema import JointType
from simulo.errors import LoweringError
from simulo.lowering.limits import MAX_NAME
from simulo.lowering.meshes import SUSPICIOUS_SIZE
from simulo.pose import Pose, Vector


@dataclass(frozen=True)
class Shape:
    """One geometry of a link, its triangles in the link frame [m]. label: what to call it in an error. cad: drawn as a
    mesh, and not as one of a format's primitives."""

    label: str
    collides: bool
    mesh: trimesh.Trimesh
    cad: bool = False


@dataclass(frozen=True)
class ModelJoint:
    """A moving edge as the file gives it. Limits [rad or m] are infinite where the file sets none."""

    name: str
    type: JointType
    parent: str
    child: str
    origin: Pose
    axis: Vector
    lower: float
    upper: float
    velocity_limit: float
    actuated: bool


@dataclass(frozen=True)
class ModelAttachment:
    """A rigid edge."""

    parent: str
    child: str
    origin: Pose


@dataclass(frozen=True)
class RobotModel:
    """One model file. links: parents before children, the root first. mimics: by follower, leaders actuated.

    linkage: the joints in loops that connections close. floating: the root moves freely.
    """

    path: Path
    format: Literal["mjcf", "urdf"]
    links: tuple[str, ...]
    joints: tuple[ModelJoint, ...]
    attachments: tuple[ModelAttachment, ...]
    mimics: Mapping[str, MimicRelation]
    shapes: Mapping[str, tuple[Shape, ...]]
    linkage: frozenset[str] = frozenset()
    floating: bool = False

    def __post_init__(self) -> None:
        """Names go into files, tables and sentences. Raises LoweringError for one that would be misread there."""
        for kind, names in (("link", self.links), ("joint", [joint.name for joint in self.joints])):
            for name in names:
                if not name.isprintable() or name != name.strip() or len(name) > MAX_NAME:
                    raise LoweringError(
                        f"{self.path}: {kind} {name[:80]!r} has a name with unprintable characters, with blanks around "
                        f"it, or of over {MAX_NAME} characters; rename it"
                    )

    def joint(self, name: str) -> ModelJoint:
        for joint in self.joints:
            if joint.name == name:
                return joint
        known = ", ".join(joint.name for joint in self.joints) or "none"
        raise LoweringError(f"{self.path} has no moving joint {name!r}; it has: {known}")


def warn_of_wide_links(model: RobotModel) -> None:
    """A link wider than SUSPICIOUS_SIZE is more likely in millimetres; for one mesh `load_mesh` has said so already."""
    for link, shapes in model.shapes.items():
        meshes = [shape.mesh for shape in shapes if len(shape.mesh.vertices)]
        said = any(shape.cad and np.ptp(shape.mesh.bounds, axis=0).max() > SUSPICIOUS_SIZE for shape in shapes)
        if said or not meshes:
            continue
        bounds = np.array([mesh.bounds for mesh in meshes])
        width = float((bounds[:, 1].max(axis=0) - bounds[:, 0].min(axis=0)).max())
        if width > SUSPICIOUS_SIZE:
            warnings.warn(f"{model.path}: link {link!r} is {width:.3g} m wide; are its units right?", stacklevel=2)


def link_mesh(shapes: tuple[Shape, ...]) -> trimesh.Trimesh:
    """All triangles of a link, collision and visual, as one mesh in the link frame."""
    return concatenate([shape.mesh for shape in shapes])


def concatenate(meshes: list[trimesh.Trimesh]) -> trimesh.Trimesh:
    """Meshes as one, vertices and triangles unchanged."""
    counts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    vertices = np.concatenate([mesh.vertices for mesh in meshes])
    faces = np.concatenate([mesh.faces + start for mesh, start in zip(meshes, counts[:-1], strict=True)])
    return trimesh.Trimesh(vertices, faces, process=False)


def placed(mesh: trimesh.Trimesh, pose: Pose) -> trimesh.Trimesh:
    """The mesh taken to the parent frame."""
    return trimesh.Trimesh(pose.apply(mesh.vertices), mesh.faces, process=False)


def triangles_of(mesh: trimesh.Trimesh) -> NDArray[np.float64]:
    """Triangle corners [m], shape (T, 3, 3)."""
    return np.asarray(mesh.vertices, dtype=np.float64)[np.asarray(mesh.faces)]
