"""Convex decomposition of a link: cells cut by planes, each the hull of the link's surface that lies in it.

What the pieces together hold is all that the link's own hull is asked to hold: its vertices, its triangles (each is
clipped to the cells that it reaches, seams included) and, where its shapes are closed, the matter inside them. A
cell's share of a closed shape is the hull of its corners; they are corners of clipped triangles, or corners of the
cell itself that lie inside the shape, and both kinds are given to the piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, KDTree, QhullError

from simulo.description.schema import DOP_DIRECTIONS
from simulo.errors import LoweringError
from simulo.lowering.clip import Plane, Surface, cut, sides
from simulo.lowering.closed import Matter
from simulo.lowering.hull import convex_hull, is_whole
from simulo.lowering.sampling import on_triangles, thinned

OFFSETS = 9
"""Planes tried along each direction, equally spaced over the piece."""

THINNEST = 2e-4
"""[m] A piece thinner than this anywhere is no piece: its hull would grow out of proportion when it is rounded."""

_FINEST = 1e-3
_SAMPLES_ACROSS = 150
_TIE = 1e-9


@dataclass(frozen=True)
class Cell:
    """The part of a link below every one of its planes. corners [m], shape (C, 3): the cell's own, inside the link.

    spacing [m]: of the samples by which its piece is compared with others; no proof rests on it.
    """

    surface: Surface
    planes: tuple[Plane, ...]
    corners: NDArray[np.float64]
    spacing: float

    @property
    def points(self) -> NDArray[np.float64]:
        """What the piece is the hull of [m], shape (P, 3)."""
        return np.concatenate([self.surface.vertices, self.corners])

    @cached_property
    def hull(self) -> ConvexHull:
        return ConvexHull(self.points)

    @cached_property
    def samples(self) -> NDArray[np.float64]:
        """Points spread over the piece's surface [m], shape (S, 3)."""
        return thinned(on_triangles(self.hull.points[self.hull.simplices], 2.0 * self.spacing), self.spacing)


def decompose(vertices: NDArray[np.float64], faces: NDArray[np.int64], count: int, label: str) -> list[Cell]:
    """`count` cells of a link's mesh; the piece that stands off the link most is cut in two until there are as many.

    The cut is the plane, of 13 directions along the piece's principal axes and 9 offsets, that leaves the least total
    volume of hulls. No random number is drawn. Raises LoweringError when no piece can be cut any further.
    """
    matter = Matter(vertices, faces)
    spacing = max(_FINEST, float(np.linalg.norm(np.ptp(vertices, axis=0))) / _SAMPLES_ACROSS)
    whole = Cell(Surface(vertices, faces), (), np.empty((0, 3)), spacing)
    convex_hull(vertices, label)
    surface = KDTree(thinned(on_triangles(vertices[faces], spacing), spacing))
    cells = [whole]
    distances = [_stand_off(whole, surface)]
    whole_for_good: set[int] = set()
    while len(cells) < count:
        worst = _worst(cells, distances, whole_for_good)
        if worst is None:
            raise LoweringError(f"{label} cannot be cut into more than {len(cells)} pieces; ask for fewer")
        halves = _halves(cells[worst], matter)
        if halves is None:
            whole_for_good.add(id(cells[worst]))
            continue
        cells[worst : worst + 1] = halves
        distances[worst : worst + 1] = [_stand_off(half, surface) for half in halves]
    return cells


def _stand_off(cell: Cell, surface: KDTree) -> NDArray[np.float64]:
    """Distance of each of the cell's samples to the link's surface [m], shape (S,)."""
    return surface.query(cell.samples)[0]


def _worst(cells: Sequence[Cell], distances: Sequence[NDArray[np.float64]], done: set[int]) -> int | None:
    """The cell whose piece stands furthest off the link where no other piece covers it; None when all are done."""
    worst, furthest = None, -1.0
    for index, cell in enumerate(cells):
        if id(cell) in done:
            continue
        covered = np.zeros(len(cell.samples), dtype=bool)
        for other in cells:
            if other is not cell:
                covered |= _inside(cell.samples, other.hull)
        reach = float(distances[index][~covered].max(initial=0.0))
        if reach > furthest + _TIE:
            worst, furthest = index, reach
    return worst


def _inside(points: NDArray[np.float64], hull: ConvexHull) -> NDArray[np.bool_]:
    near = np.all((points >= hull.min_bound - _TIE) & (points <= hull.max_bound + _TIE), axis=1)
    planes = np.unique(hull.equations, axis=0)
    near[near] = (points[near] @ planes[:, :3].T + planes[:, 3]).max(axis=1) <= 10.0 * _TIE
    return near


def _halves(cell: Cell, matter: Matter) -> tuple[Cell, Cell] | None:
    """The cell cut by the best plane whose two pieces are sound, or None when there is none."""
    for plane in _planes_by_volume(cell):
        below, above = cut(cell.surface, plane)
        if not (len(below.faces) and len(above.faces)):
            continue
        opposite = Plane(-plane.normal, -plane.offset)
        halves = _cell(cell, below, plane, matter), _cell(cell, above, opposite, matter)
        if all(is_whole(half.points, THINNEST) for half in halves):
            return halves
    return None


def _planes_by_volume(cell: Cell) -> list[Plane]:
    """The candidate planes, the one that leaves the least total volume first."""
    surface, edges = cell.surface, cell.surface.edges
    outline = cell.hull.points[cell.hull.vertices]
    found = []
    for normal in _directions(outline):
        along = outline @ normal
        for offset in np.linspace(along.min(), along.max(), OFFSETS + 2)[1:-1]:
            plane = Plane(normal, float(offset))
            try:
                total = sum(ConvexHull(points).volume for points in sides(surface, edges, plane))
            except (QhullError, ValueError):  # a side that is flat, or empty, is no piece
                continue
            found.append((total, len(found), plane))
    return [plane for _, _, plane in sorted(found, key=lambda entry: entry[:2])]


def _directions(outline: NDArray[np.float64]) -> NDArray[np.float64]:
    """The 26-DOP's 13 axes turned onto the principal axes of the outline, shape (13, 3)."""
    centred = outline - outline.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1].T[::-1]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    units = DOP_DIRECTIONS / np.linalg.norm(DOP_DIRECTIONS, axis=1, keepdims=True)
    return (units @ (axes * np.sign(largest))).round(9)


def _cell(whole: Cell, surface: Surface, plane: Plane, matter: Matter) -> Cell:
    planes = (*whole.planes, plane)
    return Cell(surface, planes, matter.holding(cell_corners(planes)), whole.spacing)


def cell_corners(planes: Sequence[Plane]) -> NDArray[np.float64]:
    """Corners [m], shape (C, 3), of the region below all the planes: where three meet and none other cuts off."""
    found = []
    for three in combinations(planes, 3):
        normals = np.array([plane.normal for plane in three])
        if abs(np.linalg.det(normals)) < 1e-6:  # two of them are parallel
            continue
        corner = np.linalg.solve(normals, np.array([plane.offset for plane in three]))
        if all(plane.normal @ corner <= plane.offset + _TIE for plane in planes):
            found.append(corner)
    return np.array(found).reshape(-1, 3)
