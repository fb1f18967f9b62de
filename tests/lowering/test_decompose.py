"""Decomposition: what the pieces hold, against the meshes' own points and solids whose parts are known."""

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull

from simulo.description.cuts import Asked, merged_cuts
from simulo.description.files import LinkCut, RobotFile
from simulo.errors import DescriptionError, LoweringError
from simulo.lowering.clip import Plane, Surface, cut, sides
from simulo.lowering.closed import Matter
from simulo.lowering.decompose import cell_corners, decompose
from simulo.lowering.fit import fit_link
from simulo.lowering.hull import is_closed, is_whole
from simulo.lowering.model import concatenate


def arrays(mesh: trimesh.Trimesh) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(mesh.vertices, dtype=np.float64), np.asarray(mesh.faces, dtype=np.int64)


def channel() -> trimesh.Trimesh:
    """A U of three plates as one closed mesh: 60 x 40 x 30 mm with a 40 x 30 mm notch along y."""
    parts = [(-0.03, 0.03, 0.0, 0.01), (-0.03, -0.02, 0.01, 0.04), (0.02, 0.03, 0.01, 0.04)]
    mesh = concatenate([trimesh.creation.box(bounds=[[x0, y0, -0.015], [x1, y1, 0.015]]) for x0, x1, y0, y1 in parts])
    return mesh


def holds(pieces: list[np.ndarray], points: np.ndarray) -> np.ndarray:
    """Whether each point lies in one of the pieces, to 1 nm."""
    found = np.zeros(len(points), dtype=bool)
    for vertices in pieces:
        planes = ConvexHull(vertices).equations
        found |= (points @ planes[:, :3].T + planes[:, 3]).max(axis=1) <= 1e-9
    return found


@pytest.mark.parametrize("seed", range(4))
def test_a_cut_loses_no_area_and_shares_its_seam(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mesh = trimesh.creation.annulus(0.02, 0.05, 0.08)
    normal = rng.normal(size=3)
    plane = Plane(normal / np.linalg.norm(normal), float(rng.uniform(-0.02, 0.02)))
    below, above = cut(Surface(*arrays(mesh)), plane)
    areas = [trimesh.Trimesh(part.vertices, part.faces, process=False).area for part in (below, above)]
    kept = trimesh.intersections.slice_mesh_plane(mesh, -plane.normal, plane.offset * plane.normal)
    assert kept is not None
    assert areas[0] == pytest.approx(kept.area, rel=1e-9)
    assert sum(areas) == pytest.approx(mesh.area, rel=1e-12)
    assert (below.vertices @ plane.normal).max() <= plane.offset + 1e-9
    assert (above.vertices @ plane.normal).min() >= plane.offset - 1e-9
    seams = [
        {tuple(p) for p in part.vertices if abs(p @ plane.normal - plane.offset) < 1e-12} for part in (below, above)
    ]
    assert seams[0] == seams[1]
    assert len(seams[0]) > 3


def test_a_cut_through_vertices_and_faces() -> None:
    """A box cut where its middle ring of vertices lies, and one cut along its own lid."""
    box = trimesh.creation.box(extents=[1, 1, 1]).slice_plane([0, 0, 0], [0, 0, 1], cap=True)
    stack = concatenate([box, box.copy().apply_transform(np.diag([1, 1, -1, 1]))])
    below, above = cut(Surface(*arrays(stack)), Plane(np.array([0.0, 0.0, 1.0]), 0.0))
    for part in (below, above):
        assert trimesh.Trimesh(part.vertices, part.faces, process=False).area == pytest.approx(4 * 0.5 + 2)
    lid, nothing = cut(Surface(*arrays(box)), Plane(np.array([0.0, 0.0, 1.0]), 0.5))
    assert len(lid.faces) == len(box.faces)
    assert len(nothing.faces) == 0


def test_the_points_that_score_a_cut_have_the_cut_parts_hulls() -> None:
    surface = Surface(*arrays(trimesh.creation.torus(0.05, 0.02)))
    plane = Plane(np.array([0.6, 0.0, 0.8]), 0.004)
    for points, part in zip(sides(surface, surface.edges, plane), cut(surface, plane), strict=True):
        assert ConvexHull(points).volume == pytest.approx(ConvexHull(part.vertices).volume, rel=1e-12)


def test_a_channel_in_three_pieces_leaves_its_notch_free() -> None:
    """The notch's middle is 15 mm from all plates; the hull fills it, three pieces do not."""
    mesh = channel()
    whole, three = fit_link("u", mesh), fit_link("u", mesh, cut=LinkCut(pieces=3))
    middle = np.array([[0.0, 0.03, 0.0]])
    assert holds([whole.hull.vertices], middle).all()
    assert not holds([piece.vertices for piece in three.pieces], middle).any()
    assert (
        sum(ConvexHull(piece.vertices).volume for piece in three.pieces) < 0.75 * ConvexHull(whole.hull.vertices).volume
    )


@pytest.mark.parametrize("pieces", [2, 9])
def test_pieces_hold_every_vertex_triangle_and_all_that_is_inside(pieces: int) -> None:
    """A torus with a rod through it: points drawn on and in both shapes by trimesh, which knows nothing of cells."""
    shapes = [
        trimesh.creation.torus(0.05, 0.02, 24, 12).apply_translation([0.01, 0, 0]),
        trimesh.creation.cylinder(0.015, 0.14, sections=24).apply_translation([0.0, 0.002, 0.01]),
    ]
    mesh = concatenate(shapes)
    geometry = fit_link("ring", mesh, cut=LinkCut(pieces=pieces))
    assert len(geometry.pieces) == pieces
    vertices = [piece.vertices for piece in geometry.pieces]
    assert holds(vertices, np.asarray(mesh.vertices)).all()
    assert holds(vertices, trimesh.sample.sample_surface(mesh, 1000, seed=1)[0]).all()
    for shape in shapes:
        assert holds(vertices, trimesh.sample.volume_mesh(shape, 500)).all()
    planes = ConvexHull(geometry.hull.vertices).equations
    assert max((v @ planes[:, :3].T + planes[:, 3]).max() for v in vertices) <= 1e-12


def test_a_solid_cube_in_many_pieces_has_no_hollow() -> None:
    """Where three cuts meet inside the matter no triangle is near; the cells' own corners hold what is there."""
    vertices, faces = arrays(trimesh.creation.box(extents=[0.1, 0.1, 0.1]).subdivide())
    cells = decompose(vertices, faces, 12, "cube")
    assert any(len(cell.corners) for cell in cells)
    points = np.random.default_rng(5).uniform(-0.05, 0.05, size=(4000, 3))
    assert holds([cell.points for cell in cells], points).all()
    assert not holds([cell.surface.vertices for cell in cells], points).all()


def test_corners_of_cells() -> None:
    """An octant has its own corner; a slab has none."""
    axes = np.eye(3)
    octant = [Plane(axis, 0.2) for axis in axes]
    assert cell_corners(octant) == pytest.approx(np.array([[0.2, 0.2, 0.2]]))
    assert len(cell_corners([*octant, Plane(-np.ones(3) / np.sqrt(3), -1.0)])) == 0  # cut off: nothing is left of it
    assert len(cell_corners([Plane(axes[0], 0.1), Plane(-axes[0], 0.1)])) == 0


def test_matter_is_told_from_holes_and_from_the_outside() -> None:
    """Two nested shells as CAD has them, and an open one: winding numbers of each shape by itself."""
    solid, inner = trimesh.creation.box(extents=[2, 2, 2]), trimesh.creation.icosphere(radius=0.5)
    mesh = concatenate([solid, inner])
    points = np.array([[0, 0, 0], [0.9, 0, 0], [1.1, 0, 0], [0, 0, 5.0]])
    assert Matter(*arrays(mesh)).holding(points) == pytest.approx(points[:2])
    turned = solid.copy()
    turned.invert()
    assert Matter(*arrays(turned)).holding(points) == pytest.approx(points[:2])
    lid = solid.slice_plane([0, 0, 0.9], [0, 0, 1])
    assert len(Matter(*arrays(lid)).holding(np.array([[0, 0, -0.5]]))) == 0


def test_the_same_mesh_gives_the_same_pieces() -> None:
    mesh = trimesh.creation.annulus(0.02, 0.05, 0.08)
    first, second = (fit_link("pipe", mesh, cut=LinkCut(pieces=6)) for _ in range(2))
    for a, b in zip(first.pieces, second.pieces, strict=True):
        assert np.array_equal(a.vertices, b.vertices)
        assert a.box_pose == b.box_pose


def test_a_mesh_too_small_to_be_cut_so_often_is_refused() -> None:
    vertices, faces = arrays(trimesh.creation.box(extents=[5e-4, 5e-4, 5e-4]))
    with pytest.raises(LoweringError, match=r"link 'grain' cannot be cut into more than \d+ pieces; ask for fewer"):
        decompose(vertices, faces, 64, "link 'grain'")


def test_slivers_and_defective_hulls_are_no_pieces() -> None:
    rng = np.random.default_rng(2)
    plate = rng.uniform(-0.05, 0.05, size=(200, 3)) * (1, 1, 1e-4)
    assert not is_whole(plate, 2e-4)
    assert not is_whole(np.zeros((8, 3)), 2e-4)
    assert is_whole(rng.uniform(-0.05, 0.05, size=(200, 3)), 2e-4)
    hull = ConvexHull(trimesh.creation.icosphere(subdivisions=2).vertices)
    assert is_closed(hull.points, hull.simplices, hull.equations)
    assert not is_closed(hull.points, hull.simplices[1:], hull.equations[1:])
    dented = hull.points.copy()
    dented[hull.simplices[0, 0]] *= 0.5
    assert not is_closed(dented, hull.simplices, hull.equations)


def test_a_link_is_cut_one_way_or_the_other() -> None:
    robot = RobotFile.model_validate(
        {
            "name": "r",
            "root_link": "a",
            "joints": [],
            "source": {"package": "p", "version": "1", "path": "r.urdf", "licence": "CC0-1.0", "format": "urdf"},
            "tight_links": {"a": 3},
            "decompose": {"b": 4},
        }
    )
    assert merged_cuts(robot, Asked(), "abc", "r") == {"a": LinkCut(slabs=3), "b": LinkCut(pieces=4)}
    assert merged_cuts(robot, Asked(decompose={"a": 5}), "abc", "r") == {"a": LinkCut(pieces=5), "b": LinkCut(pieces=4)}
    assert merged_cuts(robot, Asked({"b": 2}), "abc", "r")["b"] == LinkCut(slabs=2)
    with pytest.raises(
        DescriptionError, match="link 'c' is to be cut in 2 ways; give it one of --tight-link, --decompose"
    ):
        merged_cuts(robot, Asked({"c": 2}, {"c": 2}), "abc", "robot.yaml")
