"""What coal, MuJoCo and the float64 reference say of a sample of placed pairs, for `shape_pairs.py`."""

# Neither library has stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import coal
import mujoco
import numpy as np
from numpy.typing import NDArray
from placed_shapes import Solid

from simulo.collision.reference import hull_depth, hull_distance

if TYPE_CHECKING:
    from shape_pairs import Judged

APART = 1e-9  # m: what the reference calls less is a point in common
DEPTHS = 40  # hulls of all differences take their time
SMALLEST = 1e-3  # m: below it the libraries' own tolerances are as large as the shapes


def compare(block: Judged, sample: int) -> dict[str, Any]:
    """Of the first `sample` pairs, per judge: how many it measured, how far at most our truth's interval was from it
    [um], how many verdicts of ours it contradicts by more than 10 um, how many of our answers are above its."""
    found = {"reference": _distances(block, sample, _reference)}
    plain = [solid_of(s) for s in block.drawn.pool]
    if all(p is not None for p in plain):
        found["coal"] = _distances(block, sample, lambda block, i: _coal(plain, block, i))
        found["mujoco"] = _distances(block, sample, MujocoScene(block.drawn.pool).distance)
    found["depth"] = _depths(block, sample)
    return found


def _distances(block: Judged, sample: int, measure: Any) -> dict[str, Any]:
    told = np.array([measure(block, i) for i in range(sample)])
    low, high, lower = block.low[:sample], block.high[:sample], block.answers.lower[:sample]
    apart = (told > APART) & (low > 0.0)
    outside = np.maximum(low[apart] - told[apart], told[apart] - high[apart])
    return {
        "pairs": sample,
        "apart": int(apart.sum()),
        "worst_outside_truth_um": 1e6 * float(outside.max(initial=0.0)),
        "hits_it_calls_apart": int((block.drawn.sharing[:sample] & (told > 1e-6)).sum()),
        "apart_it_calls_hits": int(((low > 10e-6) & (told <= 0.0)).sum()),
        "above_it": int((lower > told)[apart].sum()),
    }


def _reference(block: Judged, i: int) -> float:
    """Signed, but for vertex hulls that meet: minus their balls."""
    return hull_distance(*block.posed(i)) - float(block.drawn.radii[i])


def _depths(block: Judged, sample: int) -> dict[str, Any]:
    """Depths of overlapping vertex hulls are overstated or exact, never understated."""
    understated, worst, measured = 0, 0.0, 0
    for i in range(sample):
        a, b = block.posed(i)
        small = len(a) * len(b) <= 3600 and min(_rank(a), _rank(b)) == 3
        if measured == DEPTHS or not small or block.answers.lower[i] >= 0.0 or hull_distance(a, b) > APART:
            continue
        measured += 1
        depth = hull_depth(a, b) + float(block.drawn.radii[i])
        understated += int(-block.answers.lower[i] < depth - 1e-9)
        if block.answers.exact[i]:
            worst = max(worst, -float(block.answers.lower[i]) - depth)
    return {"pairs": measured, "understated": understated, "worst_exact_above_um": 1e6 * worst}


def _rank(points: NDArray) -> int:
    spread = np.linalg.svd(points - points.mean(0), compute_uv=False)
    return int((spread > 1e-6 * spread[0]).sum()) if len(points) > 3 else len(points) - 1


# --- coal --------------------------------------------------------------------------------------------------------


def solid_of(solid: Solid) -> coal.CollisionGeometry | None:
    """The shape in coal's own words; None for one that its hulls are not made for."""
    half, radius = np.abs(solid.core).max(0), solid.radius
    if max(half.max(), radius) < SMALLEST or max(half.max(), radius) > 5.0:
        return None
    if solid.shape.is_box:
        return coal.Box(*(2.0 * half))
    if len(solid.core) == 1 and radius > 0.0:
        return coal.Sphere(radius)
    if len(solid.core) == 2 and radius > 0.0:
        return coal.Capsule(radius, 2.0 * half[2])
    if _rank(solid.core) < 3:
        return None
    points = coal.StdVec_Vec3s()
    for vertex in solid.core:
        points.append(vertex)
    return coal.Convex.convexHull(points, True, "Qt")


def _coal(plain: list[Any], block: Judged, i: int) -> float:
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance, request.gjk_max_iterations = 1e-9, 1000
    place = coal.Transform3s(block.rotation[i], block.position[i])
    a, b = plain[int(block.drawn.a[i])], plain[int(block.drawn.b[i])]
    return float(coal.distance(a, coal.Transform3s(), b, place, request, result))


# --- MuJoCo ------------------------------------------------------------------------------------------------------


class MujocoScene:
    """Every shape of a pool as a geom; a pair is asked by placing its two."""

    def __init__(self, pool: list[Solid]) -> None:
        spec = mujoco.MjSpec()
        spec.option.ccd_tolerance = 1e-9
        spec.option.ccd_iterations = 200
        for number, solid in enumerate(pool):
            self._add(spec, f"{number}", solid)
        self._model = spec.compile()
        self._data = mujoco.MjData(self._model)
        self._own = [self._pose_of(number) for number in range(len(pool))]

    @staticmethod
    def _add(spec: mujoco.MjSpec, name: str, solid: Solid) -> None:
        half, radius = np.abs(solid.core).max(0), solid.radius
        options = {"name": name, "contype": 0, "conaffinity": 0}
        if solid.shape.is_box:
            spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=half, **options)
        elif len(solid.core) == 1:
            spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[radius, 0, 0], **options)
        elif len(solid.core) == 2:
            spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_CAPSULE, size=[radius, half[2], 0], **options)
        else:
            mesh = spec.add_mesh(name=name, uservert=solid.core.ravel())
            mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
            spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name, **options)

    def _pose_of(self, number: int) -> tuple[NDArray, NDArray]:
        """Where the compiler put the geom's own frame."""
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, self._model.geom_quat[number])
        return turn.reshape(3, 3), np.array(self._model.geom_pos[number])

    def distance(self, block: Judged, i: int) -> float:
        places = ((np.eye(3), np.zeros(3)), (block.rotation[i], block.position[i]))
        numbers = int(block.drawn.a[i]), int(block.drawn.b[i])
        if numbers[0] == numbers[1]:
            return -np.inf  # one geom is in one place: not asked
        for number, (turn, at) in zip(numbers, places, strict=True):
            own_turn, own_at = self._own[number]
            self._data.geom_xmat[number] = (turn @ own_turn).ravel()
            self._data.geom_xpos[number] = turn @ own_at + at
        return mujoco.mj_geomDistance(self._model, self._data, *numbers, 100.0, None)
