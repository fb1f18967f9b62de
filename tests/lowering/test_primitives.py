"""The one fitter: solids whose best primitive is known, and what every candidate must hold."""

from dataclasses import replace

import numpy as np
import pytest
import trimesh

from simulo.lowering.capsules import FittedCapsule, fit_capsule
from simulo.lowering.model import concatenate
from simulo.lowering.primitives import RULES, Candidate, candidates, choose
from simulo.lowering.sampling import sphere

TURN = trimesh.transformations.rotation_matrix(0.7, [0.3, -0.5, 0.8], [0.1, 0.02, 0.0])


def of(mesh: trimesh.Trimesh) -> dict[str, Candidate]:
    found = candidates(np.asarray(mesh.vertices, dtype=np.float64), np.asarray(mesh.faces, dtype=np.int64))
    return {candidate.kind: candidate for candidate in found}


def bent_pipe() -> trimesh.Trimesh:
    """Two rods of radius 10 mm at a right angle, each 0.2 m long."""
    along = trimesh.creation.cylinder(0.01, segment=[[0, 0, 0], [0.2, 0, 0]], sections=24)
    across = trimesh.creation.cylinder(0.01, segment=[[0, 0, 0], [0, 0.2, 0]], sections=24)
    return concatenate([along, across])


def inside(candidate: Candidate, points: np.ndarray) -> np.ndarray:
    """Depth [m] of each point in the candidate, by formulas of this test's own."""
    depths = []
    for solid in candidate.solids:
        if solid.radius > 0.0:
            start, end = solid.vertices
            t = np.clip((points - start) @ (end - start) / ((end - start) @ (end - start)), 0, 1)
            depths.append(solid.radius - np.linalg.norm(points - (start + t[:, None] * (end - start)), axis=1))
        else:
            box = trimesh.convex.convex_hull(solid.vertices)
            depths.append(-((points[:, None] - box.triangles_center[None]) * box.face_normals[None]).sum(2).max(axis=1))
    return np.max(depths, axis=0)


def test_a_capsules_own_capsule() -> None:
    """Points on a capsule of radius 50 mm and length 0.23 m: nothing smaller holds them all."""
    ends = np.array([[0.1, 0.2, 0.3], [0.3, 0.1, 0.25]])
    points = np.concatenate([ends[0] + 0.05 * sphere(2000), ends[1] + 0.05 * sphere(2000)])
    fitted = fit_capsule(points)
    assert fitted.radius == pytest.approx(0.05, abs=1e-4)
    assert np.sort(fitted.ends[:, 0]) == pytest.approx([0.1, 0.3], abs=2e-4)
    assert fitted.stand_out(points) <= 1e-12
    assert fitted.volume == pytest.approx(np.pi * 0.05**2 * (np.sqrt(0.0525) + 0.2 / 3), rel=1e-3)


def test_a_balls_capsule_is_a_ball() -> None:
    fitted = fit_capsule(0.03 * sphere(3000) + 0.5)
    assert fitted.radius == pytest.approx(0.03, rel=2e-3)
    assert np.linalg.norm(fitted.ends[1] - fitted.ends[0]) < 3e-4
    assert FittedCapsule(np.zeros((2, 3)), 1.0).volume == pytest.approx(4 / 3 * np.pi)


def test_a_block_is_a_box_with_a_millimetre_of_headroom() -> None:
    """40 x 60 x 100 mm, turned: the box is 2 mm wider everywhere; the capsule's ball spans the 72.1 mm diagonal."""
    found = of(trimesh.creation.box(extents=[0.04, 0.06, 0.10], transform=TURN))
    assert found["box"].volume == pytest.approx(0.042 * 0.062 * 0.102, rel=1e-6)
    assert found["box"].volume_ratio == pytest.approx(0.042 * 0.062 * 0.102 / (0.04 * 0.06 * 0.10), rel=1e-6)
    assert found["box"].largest_protrusion == pytest.approx(np.sqrt(3) * 1e-3, abs=1e-5)
    assert 1e-3 < found["box"].mean_protrusion < np.sqrt(3) * 1e-3
    assert found["capsule"].solids[0].radius >= np.hypot(0.02, 0.03) + 1e-3 - 1e-9
    assert {rule: choose(tuple(found.values()), rule).kind for rule in RULES} == dict.fromkeys(RULES, "box")


def test_a_rod_is_a_capsule() -> None:
    """1 mm of headroom all round, and the ball's bulge at the ends of a cylinder."""
    found = of(trimesh.creation.capsule(height=0.2, radius=0.03, count=[24, 24], transform=TURN))
    assert found["capsule"].mean_protrusion == pytest.approx(1e-3, abs=2e-4)
    assert choose(tuple(found.values())).kind == "capsule"


def test_a_bent_pipe_is_a_chain_unless_chains_are_not_allowed() -> None:
    found = tuple(of(bent_pipe()).values())
    assert choose(found, "M").kind in ("chain of 2", "chain of 3")
    assert choose(found, "A").kind in ("chain of 2", "chain of 3")
    assert choose(found, "M1").kind in ("capsule", "box")


def test_ties_go_to_the_cheaper_kind() -> None:
    found = of(trimesh.creation.icosphere(radius=0.1, subdivisions=1))

    def candidate(kind: str, mean: float) -> Candidate:
        return replace(found[kind], mean_protrusion=mean)

    capsule, chain, box = candidate("capsule", 0.01029), candidate("chain of 2", 0.0101), candidate("box", 0.01)
    assert choose((capsule, chain, box)) is capsule
    worse = candidate("capsule", 0.01031)
    assert choose((worse, chain, box)) is chain
    assert choose((worse, chain, box), "M1") is box


@pytest.mark.parametrize(
    "mesh", [bent_pipe(), trimesh.creation.annulus(0.02, 0.05, 0.08, transform=TURN)], ids=["pipe", "ring"]
)
def test_every_candidate_holds_every_vertex_and_triangle_with_headroom(mesh: trimesh.Trimesh) -> None:
    points = np.concatenate([mesh.vertices, trimesh.sample.sample_surface(mesh, 3000, seed=3)[0]])
    for candidate in of(mesh).values():
        assert inside(candidate, np.asarray(mesh.vertices)).min() >= 1e-3 - 2e-9
        assert inside(candidate, points).min() >= 1e-3 - 2e-9, candidate.kind


@pytest.mark.parametrize("mesh", [bent_pipe()], ids=["pipe"])
def test_a_chains_volume_is_its_unions(mesh: trimesh.Trimesh) -> None:
    """Against points drawn at random in the same bounds."""
    for kind in ("chain of 2", "chain of 3"):
        candidate = of(mesh)[kind]
        points = np.random.default_rng(0).uniform([-0.1] * 3, [0.3, 0.3, 0.1], size=(400_000, 3))
        drawn = (inside(candidate, points) > 0).mean() * 0.4 * 0.4 * 0.2
        assert candidate.volume == pytest.approx(drawn, rel=0.06)
