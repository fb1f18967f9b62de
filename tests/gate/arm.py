"""The OpenArm in the gate's tests: where its links really are, and worlds placed by hand."""

from __future__ import annotations

from functools import cache

import coal
import numpy as np
import torch
import trimesh

from simulo.collision import VoxelGrid
from simulo.description import RobotDescription, load_description, reference_fk
from simulo.lowering import link_meshes


@cache
def openarm() -> RobotDescription:
    return load_description("openarm")


@cache
def meshes() -> dict[str, trimesh.Trimesh]:
    """The links' own triangles, in their frames."""
    return dict(link_meshes(openarm()))


def rest(**joints: float) -> np.ndarray:
    """The rest pose, some joints changed."""
    q = np.array(openarm().rest_pose)
    for name, value in joints.items():
        q[openarm().joint_names.index(f"openarm_{name}")] = value
    return q


def poses(q: np.ndarray) -> dict[str, np.ndarray]:
    return reference_fk(openarm(), q)


def placed(link: str, q: np.ndarray) -> trimesh.Trimesh:
    """A link's triangles in the base frame."""
    return meshes()[link].copy().apply_transform(poses(q)[link])


def mesh_gap(mesh: trimesh.Trimesh, shape: coal.ShapeBase, pose: np.ndarray) -> float:
    """Distance [m] between triangles and a shape at a 4 x 4 pose; zero or less where they meet. From coal."""
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(mesh.faces), len(mesh.vertices))
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    points.extend(np.asarray(mesh.vertices))
    triangles.extend([coal.Triangle(*(int(v) for v in face)) for face in mesh.faces])
    model.addSubModel(points, triangles)
    model.endModel()
    result = coal.DistanceResult()
    where = coal.Transform3s(pose[:3, :3], pose[:3, 3])
    coal.distance(model, coal.Transform3s.Identity(), shape, where, coal.DistanceRequest(), result)
    return float(result.min_distance)


def single_cell(centre: np.ndarray, cell: float, num_envs: int = 1) -> VoxelGrid:
    """A map of which one cell is occupied, a cube of edge `cell` [m] at `centre`, and whose others are free."""
    occupied = torch.zeros((num_envs, 4, 4, 4), dtype=torch.bool)
    occupied[:, 1, 1, 1] = True
    corner = torch.tensor(np.asarray(centre) - 1.5 * cell, dtype=torch.float32).repeat(num_envs, 1)
    return VoxelGrid.from_cells(occupied, cell, corner, torch.tensor([[1.0, 0, 0, 0]]).repeat(num_envs, 1))


def empty_map(num_envs: int = 1) -> VoxelGrid:
    occupied = torch.zeros((num_envs, 4, 4, 4), dtype=torch.bool)
    return VoxelGrid.from_cells(
        occupied, 0.01, torch.zeros(num_envs, 3), torch.tensor([[1.0, 0, 0, 0]]).repeat(num_envs, 1)
    )
