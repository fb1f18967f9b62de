"""What really touches: hulls by MuJoCo, meshes by their triangles, parts inside closed parts."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from simulo.description import reference_fk
from simulo.evaluation import contact_truth
from simulo.evaluation.contact_truth import HullTruth, MeshTruth, Separation, separation
from tests.collision.robots import box_piece, describe, joint, link, pincer, sliders

PAIR = ("box0", "box1")


def corners(size, centre=(0.0, 0.0, 0.0)) -> np.ndarray:
    return box_piece((size,) * 3, centre).vertices


def test_boxes_on_slides_touch_where_arithmetic_says() -> None:
    """Boxes of 0.1 m that start 1 m apart: at slides (q, 0) the gap is 0.9 - q."""
    robot = sliders()
    truth = HullTruth(robot, {name: [g.hull] for name, g in robot.geometry.items()}, [PAIR])
    gaps = np.array([0.2, 1e-3, 1e-6, -1e-6, -1e-3, -0.05, -0.1])
    q = np.stack([0.9 - gaps, np.zeros_like(gaps)], axis=1)
    assert truth.touching(q)[:, 0].tolist() == (gaps < 0).tolist()
    assert [truth.separation(row, PAIR) is Separation.PROVEN for row in q] == (gaps > 0).tolist()


def test_a_contact_is_told_by_its_own_pair_and_followers_follow() -> None:
    """The pincer's left arm folded back on itself, so that its fingers end in its mount: nothing of the right side."""
    robot = pincer()
    pairs = [("left_mount", "left_jaw"), ("left_mount", "left_follower"), ("right_mount", "right_jaw")]
    pieces = {name: g.pieces for name, g in robot.geometry.items()}
    truth = HullTruth(robot, pieces, pairs)
    folded = np.zeros((2, 6))
    folded[1, 1] = np.pi
    assert truth.touching(folded).tolist() == [[False] * 3, [True, True, False]]


def test_a_plane_separates_or_does_not() -> None:
    a = corners(0.1)
    assert separation(a, corners(0.1, (0.1 + 1e-6, 0.0, 0.0))) is Separation.PROVEN
    assert separation(a, corners(0.1, (0.1, 0.05, 0.0))) is Separation.NONE, "faces that touch are not apart"
    assert separation(a, corners(0.02)) is Separation.NONE
    far = np.array([1000.0, -500.0, 20.0])
    assert separation(a + far, corners(0.1, (0.1001, 0.0, 0.0)) + far) is Separation.PROVEN


def test_a_program_that_fails_says_nothing(monkeypatch) -> None:
    """Out of iterations at once: neither apart nor touching, however the solids lie. One that touches is enough."""
    solve = contact_truth.linprog
    monkeypatch.setattr(
        contact_truth, "linprog", lambda *args, **kw: solve(*args, **kw, options={"maxiter": 0, "presolve": False})
    )
    assert separation(corners(0.1), corners(0.1, (0.5, 0.2, 0.1))) is Separation.UNJUDGED
    assert separation(corners(0.1), corners(0.1, (0.05, 0.0, 0.0))) is Separation.UNJUDGED
    answers = iter([Separation.PROVEN, Separation.UNJUDGED, Separation.NONE, Separation.PROVEN])
    monkeypatch.setattr(contact_truth, "separation", lambda a, b: next(answers))
    robot = sliders()
    halves = {name: [g.hull, g.hull] for name, g in robot.geometry.items()}
    assert HullTruth(robot, halves, [PAIR]).separation([0.0, 0.0], PAIR) is Separation.NONE


def nested(inner: float) -> tuple:
    """A closed shell of 0.2 m and a cube that slides through it along x."""
    robot = describe(
        "shell",
        ["shell", "cube"],
        [joint("slide", "shell", "cube", axis=(1.0, 0.0, 0.0), kind="prismatic", lower=-1.0, upper=1.0)],
        geometry=[link("shell", box_piece((0.2,) * 3)), link("cube", box_piece((inner,) * 3))],
    )
    meshes = {"shell": trimesh.creation.box((0.2,) * 3), "cube": trimesh.creation.box((inner,) * 3)}
    return robot, meshes


def clearance(robot, meshes, place: float, pair=("shell", "cube")) -> float:
    return MeshTruth(meshes).clearance(reference_fk(robot, np.array([place])), pair)


@pytest.mark.parametrize(
    ("place", "touches"),
    [(0.0, True), (0.05, True), (0.0851, True), (0.1, True), (0.1149, True), (0.1151, False), (0.9, False)],
)
def test_a_part_inside_a_closed_part_is_a_contact(place: float, touches: bool) -> None:
    """Triangles of a cube of 0.03 m cross the shell's only between 0.085 and 0.115; within it, it is inside."""
    robot, meshes = nested(0.03)
    assert (clearance(robot, meshes, place) == 0.0) == touches


def test_inside_an_open_shell_is_no_contact() -> None:
    robot, meshes = nested(0.03)
    open_shell = trimesh.Trimesh(meshes["shell"].vertices, meshes["shell"].faces[2:], process=False)
    assert not open_shell.is_watertight
    assert clearance(robot, {**meshes, "shell": open_shell}, 0.0) == pytest.approx(0.085, abs=1e-9)


def test_a_shell_that_is_drawn_and_collides_as_well_is_closed() -> None:
    """The same triangles twice, as a visual and a collision mesh: every edge has four sides."""
    robot, meshes = nested(0.03)
    twice = trimesh.util.concatenate([meshes["shell"], meshes["shell"]])
    assert clearance(robot, {**meshes, "shell": twice}, 0.0) == 0.0


def test_one_part_of_many_inside_is_enough() -> None:
    robot, meshes = nested(0.03)
    away = meshes["cube"].copy()
    away.apply_translation((0.0, 3.0, 0.0))
    both = trimesh.util.concatenate([away, meshes["cube"]])
    assert clearance(robot, {**meshes, "cube": both}, 0.0, ("cube", "shell")) == 0.0
    assert clearance(robot, {**meshes, "cube": away}, 0.0, ("cube", "shell")) > 2.0


def test_the_distance_is_the_gap() -> None:
    robot, meshes = nested(0.03)
    assert clearance(robot, meshes, 0.2) == pytest.approx(0.085, abs=1e-9)
