"""Numbers and worlds that are none, and what a failed call leaves behind: nothing may pass for clear by accident."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import simulo
from simulo.collision import ConvexShape, Primitives, VoxelGrid
from simulo.errors import CollisionModelError, GateError, SimuloError
from simulo.gate import CollisionGate, Region
from simulo.pose import Pose
from tests.gate.arm import empty_map, openarm, placed, rest, single_cell
from tests.gate.tasks import JointTargets


@pytest.fixture
def gate() -> CollisionGate:
    gate = CollisionGate(openarm(), device="cpu", max_age=float("inf"))
    gate.set_world(empty_map())
    return gate


@pytest.mark.parametrize("row", [[np.nan, 0, 0, 1, 0, 0, 0], [0, np.inf, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]])
def test_a_base_pose_that_is_none_stops_its_environment_and_no_other(row):
    env = simulo.LearningEnv(JointTargets({}), num_envs=3, gate=CollisionGate(openarm(), world="none"))
    env.reset(seed=0)
    gate = env.gate
    base = torch.tensor([[0.3, 0.1, 0.0, 0.8, 0.0, 0.0, 0.6]]).repeat(3, 1)
    q = np.stack([rest()] * 3)
    good = gate.check(q, base_pose=base)
    base[1] = torch.tensor(row, dtype=torch.float32)
    verdict = gate.check(q, base_pose=base)
    assert [verdict.kind_name(i) for i in range(3)] == ["clear", "non_finite", "clear"]
    assert torch.equal(verdict.distance[[0, 2]], good.distance[[0, 2]])


def test_a_grid_whose_pose_is_no_number_stops_its_environment(gate):
    grid = empty_map()
    grid.position[0, 2] = torch.nan
    gate.set_world(grid)
    assert gate.check(rest()).kind_name(0) == "non_finite"
    assert gate.check(rest(), world=False).clear[0]


def test_a_map_of_unknown_age_is_not_fresh(gate):
    with pytest.raises(GateError, match="stamp holds NaN"):
        gate.set_world(empty_map(), stamp=torch.tensor([torch.nan], dtype=torch.float64))


@pytest.mark.parametrize("late", [1e-3, 1.7e9, np.inf])
def test_a_map_that_was_seen_later_than_now_would_never_grow_old(gate, late):
    """As the time of day is, or another clock."""
    with pytest.raises(GateError, match="is later than now"):
        gate.set_world(empty_map(), stamp=torch.tensor([late], dtype=torch.float64))


def test_a_stamp_is_copied_as_the_map_is():
    gate = CollisionGate(openarm(), device="cpu")
    stamp = torch.tensor([-9.0], dtype=torch.float64)
    gate.set_world(empty_map(), stamp=stamp)
    stamp.zero_()
    gate.set_configuration(rest())
    assert gate.check(rest()).kind_name(0) == "stale_map"
    gate._session._judge_age(0.0)
    assert gate.check(rest()).kind_name(0) == "stale_map"


@pytest.mark.parametrize("stamp", [torch.tensor([True]), torch.tensor([1])])
def test_a_stamp_that_is_no_float_is_refused(gate, stamp):
    with pytest.raises(GateError, match="stamp must hold floats"):
        gate.set_world(empty_map(), stamp=stamp)


@pytest.mark.parametrize("stamp", [0.0, [0.0]])
def test_a_stamp_that_is_no_tensor_is_refused_by_name(gate, stamp):
    with pytest.raises(GateError, match=r"stamp must be a tensor of shape \(1,\)"):
        gate.set_world(empty_map(), stamp=stamp)


@pytest.mark.parametrize(("options", "said"), [({"widen": torch.zeros(3)}, "widen"), ({"links": 3}, "links")])
def test_questions_of_another_shape_are_refused_by_name(gate, options, said):
    with pytest.raises(ValueError, match=f"{said} must be"):
        gate.check(rest(), **options)


@pytest.mark.parametrize("world", [None, "none", 7])
def test_what_is_no_world_is_refused_by_name(gate, world):
    with pytest.raises(GateError, match=r"VoxelGrid, Primitives or a perception.*world='none'"):
        gate.set_world(world)


@pytest.mark.parametrize("q", ["abc", np.zeros(16, bool), np.zeros(16, complex), None])
def test_configurations_that_are_no_numbers_are_refused(gate, q):
    with pytest.raises(TypeError, match="q must be integers or floats"):
        gate.check(q)


def row_of(*places: tuple[float, float, float]) -> torch.Tensor:
    return torch.tensor([[[*place, 1.0, 0.0, 0.0, 0.0] for place in places]], dtype=torch.float32)


CLOUD = ConvexShape(np.random.default_rng(0).normal(size=(257, 3)))
BALL = ConvexShape.sphere(0.05)
UNFIT = {
    "65 of them": lambda: Primitives.of([f"Ball{k}" for k in range(65)], [BALL] * 65, row_of(*[(3.0, 0.0, 0.0)] * 65)),
    "too many vertices": lambda: Primitives.of(
        ["Post", "Other", "Cloud"], [ConvexShape.sphere(0.5), BALL, CLOUD], row_of(*[(3.0, 0.0, 0.0)] * 3)
    ),
    "float64": lambda: Primitives.of(["Post"], [ConvexShape.sphere(0.5)], row_of((3.0, 0.0, 0.0)).double()),
    "two environments": lambda: Primitives.of(["Post"], [BALL], row_of((3.0, 0.0, 0.0)).repeat(2, 1, 1)),
    "another kind": empty_map,
}


@pytest.mark.parametrize("why", UNFIT)
def test_a_world_that_does_not_fit_leaves_the_one_before(why):
    """A post in the right forearm, and a grasp region that names it."""
    gate = CollisionGate(openarm(), world="primitives", device="cpu")
    with pytest.raises((GateError, CollisionModelError)):
        gate.set_world(UNFIT[why]())
    assert gate.check(rest()).kind_name(0) == "no_map", "nor is it half there"
    forearm = placed("openarm_right_link5", rest()).center_mass
    gate.set_world(Primitives.of(["Post", "Other"], [BALL, BALL], row_of(tuple(forearm), (3.0, 0.0, 0.0))))
    gate.declare_grasp("right", Pose((3.0, 0.0, 0.0)), (0.1, 0.1, 0.1), 1.0, object="Other")
    before, regions = gate.check(rest()), gate._session.checker.regions(0)
    assert before.parties(0)[1] == "Post"
    with pytest.raises((GateError, CollisionModelError)):
        gate.set_world(UNFIT[why]())
    after = gate.check(rest())
    assert torch.equal(after.raw.block, before.raw.block) and after.describe(0) == before.describe(0)
    for name, values in gate._session.checker.regions(0).items():
        assert torch.equal(values, regions[name]), name
    gate.set_world(Primitives.of(["Post"], [BALL], row_of((3.0, 0.0, 0.0))))
    assert gate.check(rest()).clear[0], "and one that fits takes its place whole"


def test_a_grid_is_copied_with_its_pose(gate):
    centre = np.array([0.3, -0.2, 0.3])
    grid: VoxelGrid = single_cell(centre, 0.02)
    gate.set_world(grid)
    grid.position.add_(5.0)
    grid.bricks[:] = 0
    gate.set_configuration(rest())
    gate.attach("right", ConvexShape.sphere(0.01), Pose((0.0, 0.0, -0.2)))  # makes the gate load its grid again
    kept = gate._session.checker._grid
    assert torch.allclose(kept.pose[0, :3], torch.tensor(centre - 0.03, dtype=torch.float32), atol=1e-6)
    assert bool(kept.bricks.any())


@pytest.mark.parametrize("fault", ["too many vertices", "no such link"])
def test_an_attach_that_fails_leaves_the_hand_empty(gate, fault):
    gate.set_configuration(rest())
    many = ConvexShape(np.random.default_rng(0).normal(size=(300, 3)) * 0.01)
    shape = many if fault == "too many vertices" else ConvexShape.sphere(0.01)
    touching = ("openarm_tail",) if fault == "no such link" else ()
    for _ in range(3):
        with pytest.raises(CollisionModelError):
            gate.attach("right", shape, Pose((0.0, 0.0, -0.2)), touch_links=touching)
    assert not gate._session.payloads.present.any()
    gate.attach("right", ConvexShape.sphere(0.01), Pose((0.0, 0.0, -0.2)))
    gate.attach("right", ConvexShape.sphere(0.01), Pose((0.0, 0.0, -0.25)))


@pytest.mark.parametrize(("edge", "kept"), [(0.06, False), (0.10, True)])
def test_a_grasp_box_with_room_for_a_neighbour_does_not_free_the_neighbour(gate, edge, kept):
    """30 mm beside a 40 mm object. A box declared by the aperture alone says nothing of what else lies in it."""
    cells = torch.zeros((1, 24, 24, 24), dtype=torch.bool)
    cells[0, 16, 12, 12] = True  # centre 45 mm from the box's
    cells[0, 14, 12, 12] = True  # 25 mm: the object's own, as it was last seen
    centre = np.array([0.6, -0.6, 1.2])
    corner = torch.tensor(centre - 0.125, dtype=torch.float32)[None]
    gate.set_world(VoxelGrid.from_cells(cells, 0.01, corner, torch.tensor([[1.0, 0, 0, 0]])))
    gate.set_configuration(rest())
    gate.declare_grasp("right", Pose(tuple(centre)), (edge, edge, edge), 1.0)
    gate.attach("right", ConvexShape.box((0.04, 0.04, 0.04)), Pose((0.0, 0.0, -0.15)))
    left = gate._session.checker._grid.bricks
    assert bool(left.any()), "the neighbour stays"
    alone = VoxelGrid.from_cells(
        cells & (torch.arange(24)[None, :, None, None] == 16), 0.01, corner, corner.new_tensor([[1.0, 0, 0, 0]])
    )
    assert torch.equal(left.reshape(alone.bricks.shape), alone.bricks) is not kept


def test_a_start_in_self_collision_raises_before_any_map_was_given():
    gate = CollisionGate(openarm(), world="voxels")
    env = simulo.LearningEnv(JointTargets({}), num_envs=2, gate=gate)
    env.reset(seed=0)  # nothing wrong with the rest pose, and no map yet is no collision
    crossed = rest()
    names = openarm().joint_names
    for value in np.linspace(0.0, 1.5, 31):
        crossed = rest()
        for side in ("left", "right"):
            column = names.index(f"openarm_{side}_joint1")
            joint = openarm().joints[column]
            crossed[column] = np.clip(value * (1 if side == "left" else -1), joint.lower, joint.upper)
            column = names.index(f"openarm_{side}_joint4")
            crossed[column] = min(2.0, openarm().joints[column].upper)
            column = names.index(f"openarm_{side}_joint3")
            crossed[column] = 1.2 if side == "left" else -1.2
        if not gate.check(np.stack([crossed] * 2), world=False).clear.any():
            break
    assert gate.check(np.stack([crossed] * 2), world=False).kind_name(0) == "self"
    env.task.robot._initial[:] = torch.tensor(crossed, dtype=torch.float32)
    with pytest.raises(GateError, match=r"refused \(self\)"):
        env.reset(seed=0)


def test_a_gate_that_judged_no_step_describes_none() -> None:
    gate = CollisionGate("openarm", world="none")
    verdict = gate.check(gate.description.rest_pose)
    assert "clear" in verdict.describe(0)
    with pytest.raises(GateError, match="judged no step"):
        gate.describe(0)


POSE, REGION = Pose((0.0, 0.0, -0.3)), Region(Pose((0.0, 0.0, -0.3)), (0.1, 0.1, 0.1))
SIZE = (0.02, 0.02, 0.02)
MISUSED = {
    "a hand that is a number": (lambda g: g.attach(3, BALL, POSE), "no gripper 3; it has: left, right"),
    "a shape that is text": (lambda g: g.attach("right", "ball", POSE), "no convex form of a str"),
    "a pose that is text": (lambda g: g.attach("right", BALL, "here"), "pose must be integers or floats"),
    "a pose that is nothing": (lambda g: g.attach("right", BALL, None), "pose must be integers or floats"),
    "a pose without a turn": (lambda g: g.attach("right", BALL, [0.0, 0.0, 1.0]), "position and wxyz of shape"),
    "a pose of bools": (lambda g: g.attach("right", BALL, [False] * 7), "pose must be integers or floats"),
    "a region that is a pair": (lambda g: g.attach("right", BALL, POSE, support=(POSE, SIZE)), "must be a .*Region"),
    "no region": (lambda g: g.declare_place(None, 1.0), "must be a .*Region|holds nothing"),
    "one name as many": (lambda g: g.attach("right", BALL, POSE, touch_links="openarm_right_link5"), "alone"),
    "an unknown link": (lambda g: g.attach("right", BALL, POSE, touch_links=("tail",)), "no link 'tail'"),
    "an object by number": (lambda g: g.attach("right", BALL, POSE, object=3), "no object 3 in the world"),
    "an environment past the last": (lambda g: g.attach("right", BALL, POSE, env_ids=[1]), "id 1 is outside"),
    "an environment from the end": (lambda g: g.attach("right", BALL, POSE, env_ids=[-1]), "id -1 is outside"),
    "a time that is text": (lambda g: g.declare_grasp("right", POSE, SIZE, "1"), "duration must be a finite time"),
    "a time that is true": (lambda g: g.declare_grasp("right", POSE, SIZE, True), "duration must be a finite time"),
    "a box that is text": (lambda g: g.declare_grasp("right", POSE, "big", 1.0), "size must be integers or floats"),
    "a box that is nothing": (lambda g: g.declare_grasp("right", POSE, None, 1.0), "size must be integers or floats"),
    "a flag that is text": (lambda g: g.check(rest(), world="no"), "world must be True or False, got 'no'"),
    "another flag": (lambda g: g.check(rest(), distances=1), "distances must be True or False, got 1"),
    "a narrower margin": (lambda g: g.check(rest(), widen=-0.001), "widen must be >= 0 m"),
    "a margin that is text": (lambda g: g.check(rest(), widen="1"), "widen must be integers or floats"),
    "a base that is text": (lambda g: g.check(rest(), base_pose="home"), "base_pose must be integers or floats"),
    "a robot that is text": (lambda g: g.set_configuration("rest"), "a configuration must be integers or floats"),
    "a robot of bools": (lambda g: g.set_configuration(np.zeros(16, bool)), "must be integers or floats"),
    "an entry past the last": (lambda g: g.check(rest()).describe(1), r"entry 1 is outside \[0, 1\)"),
    "an entry from the end": (lambda g: g.check(rest()).describe(-1), r"entry -1 is outside \[0, 1\)"),
}


@pytest.fixture(scope="module")
def used() -> CollisionGate:
    gate = CollisionGate(openarm(), world="primitives", device="cpu")
    gate.set_configuration(rest())
    gate.set_world(Primitives.of(["Post"], [BALL], row_of((3.0, 0.0, 0.0))))
    return gate


@pytest.mark.parametrize("misuse", MISUSED)
def test_a_call_that_is_misused_is_refused_by_name_and_changes_nothing(used: CollisionGate, misuse: str) -> None:
    call, said = MISUSED[misuse]
    before = used.check(rest())
    with pytest.raises((SimuloError, ValueError, TypeError, IndexError), match=said):
        call(used)
    assert torch.equal(used.check(rest()).raw.block, before.raw.block)
    assert not used._session.payloads.present.any()
    assert not any(used._session.checker.regions(0)["active"].tolist())
