"""pinocchio with coal on the same pieces, pairs and cells, for `simulo bench gate`; both come with the dev extras."""

# Neither has stubs.
# pyright: reportAttributeAccessIssue=false, reportMissingImports=false

from __future__ import annotations

from typing import Any

import coal
import numpy as np
import pinocchio
from numpy.typing import ArrayLike, NDArray

from simulo.collision import CollisionModel
from simulo.description import RobotDescription
from simulo.description.kinematics import edges_from_root
from simulo.description.schema import ConvexPiece, FixedAttachment, MimicJoint

VERSION = f"pinocchio {pinocchio.__version__}, coal {coal.__version__}"


class CoalPeer:
    """One robot whose questions are whole calls: the loop over pairs is pinocchio's own, in C++.

    cells: centres [m], shape (K, 3), and full edge [m] of occupied cells of a lattice with a corner at the base frame's
    origin. With them the moving links are asked against coal's octree of them, without them the links against each
    other. whole_links: one hull a link, where the description may have pieces. link_order: ask the pairs as the links
    are numbered, as a model comes, instead of the largest links first, as simulo does. warm: start each search at the
    direction where this pair's last one ended, as pinocchio does unless told otherwise.
    """

    def __init__(
        self,
        description: RobotDescription,
        model: CollisionModel,
        cells: tuple[NDArray[np.float64], float] | None = None,
        whole_links: bool = False,
        link_order: bool = False,
        warm: bool = True,
    ) -> None:
        self._description = description
        self._robot, placed = _tree(description)
        self._hulls = pinocchio.GeometryModel()
        numbers: dict[str, list[int]] = {}
        for link, geometry in description.geometry.items():
            joint, placement = placed[link]
            for index, piece in enumerate((geometry.hull,) if whole_links else geometry.pieces):
                shape, place = _shape(piece)
                part = pinocchio.GeometryObject(f"{link}_{index}", joint, placement * place, shape)
                numbers.setdefault(link, []).append(self._hulls.addGeometryObject(part))
        if cells is None:
            pairs = model.pairs
            if link_order:
                pairs = sorted(pairs, key=lambda pair: sorted(model.link_index(name) for name in pair))
            asked = [(a, b) for first, second in pairs for a in numbers[first] for b in numbers[second]]
        else:
            tree = pinocchio.GeometryObject("cells", 0, pinocchio.SE3.Identity(), coal.makeOctree(*cells))
            world = self._hulls.addGeometryObject(tree)
            asked = [(part, world) for link in numbers if link not in model.static_links for part in numbers[link]]
        for pair in asked:
            self._hulls.addCollisionPair(pinocchio.CollisionPair(*pair))
        self._data, self._hull_data = self._robot.createData(), self._hulls.createData()
        if not warm:
            for number in range(len(asked)):
                self._hull_data.collisionRequests[number] = coal.CollisionRequest(coal.NO_REQUEST, 1)

    def positions(self, q: NDArray) -> NDArray[np.float64]:
        """Commanded positions, shape (M, num_joints), as pinocchio's, followers included."""
        columns = dict(zip(self._description.joint_names, q.T.astype(np.float64), strict=True))
        for edge in edges_from_root(self._description):
            if isinstance(edge, MimicJoint):
                columns[edge.name] = edge.multiplier * columns[edge.mimics] + edge.offset
        return np.column_stack([columns[name] for name in list(self._robot.names)[1:]])

    def collides(self, position: NDArray) -> bool:
        """Kinematics and the pairs up to the first that meets."""
        return pinocchio.computeCollisions(self._robot, self._data, self._hulls, self._hull_data, position, True)

    def meetings(self, position: NDArray) -> NDArray[np.bool_]:
        """Kinematics and the answer of every pair of shapes, in the order in which they are asked."""
        pinocchio.computeCollisions(self._robot, self._data, self._hulls, self._hull_data, position, False)
        return np.array([result.isCollision() for result in self._hull_data.collisionResults])

    def distances(self, position: NDArray) -> Any:
        """Kinematics and the distance of every pair."""
        return pinocchio.computeDistances(self._robot, self._data, self._hulls, self._hull_data, position)


def _tree(description: RobotDescription) -> tuple[Any, dict[str, tuple[int, Any]]]:
    """pinocchio's model, and every link's joint and placement on it."""
    robot = pinocchio.Model()
    placed = {description.root_link: (0, pinocchio.SE3.Identity())}
    for edge in edges_from_root(description):
        joint, placement = placed[edge.parent]
        here = placement * pinocchio.SE3(np.array(edge.origin.rotation), np.array(edge.origin.position))
        if isinstance(edge, FixedAttachment):
            placed[edge.child] = (joint, here)
            continue
        slides = edge.type == "prismatic"
        kind = pinocchio.JointModelPrismaticUnaligned if slides else pinocchio.JointModelRevoluteUnaligned
        number = robot.addJoint(joint, kind(np.asarray(edge.axis, np.float64)), here, edge.name)
        placed[edge.child] = (number, pinocchio.SE3.Identity())
    return robot, placed


def _shape(piece: ConvexPiece) -> tuple[Any, Any]:
    """coal's shape of a piece, and where its frame lies in the link's: a ball is its own, not a polyhedron."""
    if piece.kind == "hull":
        return _hull(piece.vertices), pinocchio.SE3.Identity()
    start, end = piece.vertices[0], piece.vertices[-1]
    length = float(np.linalg.norm(end - start))
    if piece.kind == "sphere":
        return coal.Sphere(piece.radius), pinocchio.SE3(np.eye(3), start)
    turn = pinocchio.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), end - start).matrix()
    return coal.Capsule(piece.radius, length), pinocchio.SE3(turn, 0.5 * (start + end))


def _hull(vertices: ArrayLike) -> Any:
    points = coal.StdVec_Vec3s()
    for vertex in np.asarray(vertices, np.float64):
        points.append(vertex)
    return coal.Convex.convexHull(points, True, "Qt")
