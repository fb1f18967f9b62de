"""One answer per configuration, bit for bit, whatever surrounds it in the batch; and refusals that name their input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from simulo.collision import (
    CollisionChecker,
    CollisionModel,
    ConvexShape,
    Kind,
    Payload,
    Primitives,
    VoxelGrid,
    build_clearance,
    build_model,
)
from simulo.description import Gripper, PadPoint, RobotDescription
from simulo.errors import BackendError, CollisionModelError
from tests.collision.robots import IDENTITY, box_piece, describe, joint, link, piece
from tests.collision.test_fk import uniform
from tests.collision.worlds import grid, pose, poses

N = 32


def scene(model: CollisionModel, num_envs: int, horizon: int = 1, repeat: int = 1, **options) -> CollisionChecker:
    """A checker whose environments e and e + N/repeat... see the same map, obstacle and payload."""
    checker = CollisionChecker(model, num_envs, horizon, clearance=build_clearance(model), **options)
    kinds = np.arange(num_envs) % (N // repeat)
    cells = np.zeros((num_envs, 60, 80, 40), bool)
    for env, kind in enumerate(kinds):
        rng = np.random.default_rng(int(kind))
        for x, y, z in rng.integers(0, (56, 76, 36), (120, 3)):
            cells[env, x : x + 4, y : y + 4, z : z + 3] = True
    checker.set_voxels(grid(cells, 0.02, (0.1, -0.8, 0.2)))
    at = torch.tensor([pose((0.3 + 0.01 * k, -0.1, 0.5)) for k in kinds], dtype=torch.float32)
    checker.set_primitives(Primitives.of(["ball"], [ConvexShape.sphere(0.05)], at[:, None]))
    held = torch.tensor([pose((0.0, 0.0, -0.165 - 0.002 * k)) for k in kinds], dtype=torch.float32)
    checker.attach(Payload("right", ConvexShape.box((0.04, 0.3, 0.04)), held))
    return checker


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a, b)


@pytest.fixture(scope="module")
def q(openarm) -> torch.Tensor:
    return torch.from_numpy(uniform(openarm, N, 99))


@pytest.mark.parametrize("distances", [False, True])
def test_bitwise_equal_in_every_arrangement(openarm_model: CollisionModel, q: torch.Tensor, distances: bool) -> None:
    """Alone, reversed, repeated, as rows, on two threads, through env_ids: the same block of verdicts."""
    checker = scene(openarm_model, N)
    whole = checker.check(q, distances=distances).block
    assert len(set(whole[0].tolist())) >= 3, "several kinds of verdict must be in the sample"
    assert same(checker.check(q, distances=distances).block, whole), "run twice"
    backwards = torch.arange(N - 1, -1, -1)
    assert same(checker.check(q[backwards], env_ids=backwards, distances=distances).block, whole.flip(1))
    one_by_one = [checker.check(q[i : i + 1], env_ids=[i], distances=distances).block for i in range(N)]
    assert same(torch.cat(one_by_one, dim=1), whole)
    twice = torch.cat([torch.arange(N), torch.arange(N)])
    assert same(checker.check(q[twice], env_ids=twice, distances=distances).block, whole[:, twice]), "over capacity"
    threads = scene(openarm_model, N, split_at=2)
    assert same(threads.check(q, distances=distances).block, whole), "two threads"
    rows = scene(openarm_model, N, horizon=4, split_at=2)
    repeated = q[:, None].expand(N, 4, -1)
    by_rows = rows.check(repeated, distances=distances).block
    assert same(by_rows[[0, 1, 2, 3, 4, 5]], whole[[0, 1, 2, 3, 4, 5]]), "equal rows: the first is named"
    short = rows.check(q[:, None].expand(N, 3, -1), distances=distances).block
    assert same(short[:6], whole[:6]), "fewer rows than planned, on two threads"


def test_row_and_kind_precedence(openarm_model: CollisionModel, openarm: RobotDescription, q: torch.Tensor) -> None:
    """The least kind wins over rows, then the lowest row; the distance belongs to the parties named."""
    checker = scene(openarm_model, N, horizon=3)
    single = checker.check(q)
    world = int(torch.nonzero(single.kind == Kind.WORLD)[0])
    many = torch.from_numpy(uniform(openarm, 200, 5))
    kinds = checker.check(many, env_ids=[world] * 200).kind
    self_hit, clear = many[kinds == Kind.SELF][0], many[kinds == Kind.CLEAR][0]
    chunk = torch.stack([clear, q[world], self_hit, q[world]])

    def ask(*rows: int) -> tuple[int, int]:
        verdict = checker.check(chunk[list(rows)][None], env_ids=[world])
        return int(verdict.kind[0]), int(verdict.row[0])

    assert ask(0, 0, 0) == (Kind.CLEAR, -1)
    assert ask(0, 1, 1) == (Kind.WORLD, 1)
    assert ask(1, 0, 2) == (Kind.SELF, 2), "self outranks world in an earlier row"
    assert ask(2, 1, 2) == (Kind.SELF, 0)
    verdict = checker.check(chunk[[0, 1, 2]][None], env_ids=[world])
    alone = checker.check(self_hit[None], env_ids=[world])
    assert torch.equal(verdict.block[2:6], alone.block[2:6])
    chunk[3, 0] = float("nan")
    assert ask(2, 1, 3) == (Kind.NON_FINITE, 2)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_non_finite_stops_its_environment_only(openarm_model: CollisionModel, q: torch.Tensor, value: float) -> None:
    checker = scene(openarm_model, N)
    base, measured, active = poses(N), torch.zeros(N, 2), torch.ones(N, 2, dtype=torch.bool)
    truth = checker.check(q, base, measured, active).block
    for name in ("q", "base position", "base orientation", "measured"):
        bad_q, bad_base, bad_measured = q.clone(), base.clone(), measured.clone()
        {"q": bad_q, "base position": bad_base, "base orientation": bad_base[:, 3:], "measured": bad_measured}[name][
            5, -1 if name != "base position" else 0
        ] = value
        verdict = checker.check(bad_q, bad_base, bad_measured, active)
        others = torch.arange(N) != 5
        assert int(verdict.kind[5]) == Kind.NON_FINITE and not verdict.clear[5], name
        assert float(verdict.distance[5]) == -np.inf and bool(verdict.bound[5])
        assert same(verdict.block[:, others], truth[:, others]), name
    inactive = active.clone()
    inactive[5] = False
    bad_measured = measured.clone()
    bad_measured[5] = value
    assert int(checker.check(q, base, bad_measured, inactive).kind[5]) != Kind.NON_FINITE, "nobody reads it"


def test_non_finite_world_stops_its_environment_only(openarm_model: CollisionModel, q: torch.Tensor) -> None:
    checker = scene(openarm_model, N)
    truth = checker.check(q).block
    others = torch.arange(N) != 3
    nan = float("nan")
    spoil = {
        "grid": lambda: checker._grid.pose.__setitem__((3, 1), nan),
        "primitive": lambda: checker._world.primitive_pose.__setitem__((3, 0, 2), nan),
        "payload": lambda: checker._world.payload_pose.__setitem__((3, 2, 0), nan),
        "zero quaternion": lambda: checker._grid.pose[3, 3:].zero_(),
    }
    for name, act in spoil.items():
        saved = [t.clone() for t in (checker._grid.pose, checker._world.primitive_pose, checker._world.payload_pose)]
        act()
        verdict = checker.check(q)
        assert int(verdict.kind[3]) == Kind.NON_FINITE, name
        assert same(verdict.block[:, others], truth[:, others]), name
        for tensor, old in zip(
            (checker._grid.pose, checker._world.primitive_pose, checker._world.payload_pose), saved, strict=True
        ):
            tensor.copy_(old)
    assert same(checker.check(q).block, truth)


def test_b43_views_are_read_right_and_never_written(openarm_model: CollisionModel, q: torch.Tensor) -> None:
    checker = scene(openarm_model, N)
    truth = checker.check(q).block
    wide = torch.full((N, 40), 7.0)
    wide[:, 3:35:2] = q
    views = {
        "strided": wide[:, 3:35:2],
        "transposed": q.t().contiguous().t(),
        "flipped twice": q.flip(0).flip(0),
        "offset": torch.cat([torch.zeros(1, 16), q])[1:],
    }
    for name, tensor in views.items():
        before = tensor.clone()
        assert same(checker.check(tensor).block, truth), name
        assert torch.equal(tensor, before), name
    expanded = q[:1].expand(N, -1)
    before = expanded.clone()
    assert same(checker.check(expanded).block, checker.check(q[:1].repeat(N, 1)).block)
    assert torch.equal(expanded, before)
    base = torch.tensor(pose((0.0, 0.0, 0.0)), dtype=torch.float32).expand(N, 7)
    assert same(checker.check(q, base).block, truth)


def test_a_verdict_is_a_snapshot(openarm_model: CollisionModel, q: torch.Tensor) -> None:
    checker = scene(openarm_model, N)
    first = checker.check(q)
    kept = first.block.clone()
    checker.check(q.flip(0))
    assert same(first.block, kept)


Q = torch.zeros(2, 6)
REFUSED = {
    "wrong dtype": ({"q": Q.double()}, "q must be a float32 tensor"),
    "a list": ({"q": [[0.0] * 6] * 2}, "q must be a float32 tensor on cpu, got list"),
    "wrong columns": ({"q": torch.zeros(2, 7)}, r"columns left_shoulder.*got \(2, 7\)"),
    "wrong count": ({"q": torch.zeros(3, 6)}, "3 entries and this checker 2 environments"),
    "no entries": ({"q": torch.zeros(0, 6)}, "K >= 1"),
    "too many rows": ({"q": torch.zeros(2, 3, 6)}, "horizon >= 3"),
    "ids of another length": ({"q": Q, "env_ids": [0]}, "one id per entry"),
    "base of another shape": ({"q": Q, "base_pose": torch.zeros(2, 6)}, r"base_pose must be .*\(2, 7\)"),
    "base in double": ({"q": Q, "base_pose": torch.zeros(2, 7).double()}, "base_pose"),
    "status in int64": ({"q": Q, "map_status": torch.zeros(2).long()}, "map_status"),
    "unknown link": ({"q": Q, "links": "left_thumb"}, "left_thumb.*gripper:left.*pedestal"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_inputs_are_refused_by_name(pincer_model: CollisionModel, case: str) -> None:
    arguments, said = REFUSED[case]
    with pytest.raises(CollisionModelError, match=said):
        CollisionChecker(pincer_model, 2).check(**arguments)


def test_bad_ids_are_named_before_anything_runs(pincer_model: CollisionModel) -> None:
    checker = CollisionChecker(pincer_model, 2)
    for ids in ([0, 2], [-1, 0]):
        with pytest.raises(IndexError, match="outside"):
            checker.check(torch.zeros(2, 6), env_ids=ids)


def test_maps_and_primitives_that_do_not_fit_are_refused(pincer_model: CollisionModel) -> None:
    checker = CollisionChecker(pincer_model, 2, max_primitives=1)
    with pytest.raises(CollisionModelError, match="3 environments"):
        checker.set_voxels(grid(np.zeros((3, 4, 4, 4), bool), 0.1, (0, 0, 0)))
    two = Primitives.of(["a", "b"], [ConvexShape.sphere(0.1)] * 2, poses(2)[:, None].expand(2, 2, 7))
    with pytest.raises(CollisionModelError, match="max_primitives=1"):
        checker.set_primitives(two)
    with pytest.raises(CollisionModelError, match="distinct name"):
        replace(two, names=("a", "a"))
    for margins in ((-0.001, 0.0), (0.0, float("nan"))):
        with pytest.raises(CollisionModelError, match="margins"):
            checker.set_margins(*margins)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_b42_a_missing_gpu_is_an_error_and_auto_says_so(pincer_model: CollisionModel, capsys) -> None:
    with pytest.raises(BackendError, match="cuda:0"):
        CollisionChecker(pincer_model, 2, device="cuda:0")
    checker = CollisionChecker(pincer_model, 2, device="auto")
    assert checker.device.type == "cpu"
    output = capsys.readouterr()
    assert "auto" in output.out + output.err


def test_a_map_of_another_size_is_taken_up(pincer_model: CollisionModel) -> None:
    """Replanned memory is what the recorded launches see, and a cleared map is gone."""
    checker = CollisionChecker(pincer_model, 1)
    q = torch.zeros(1, 6)
    for size in (8, 12, 8):
        cells = np.zeros((1, size, size, size), bool)
        cells[0, 4, 4, 4] = True
        checker.set_voxels(grid(cells, 0.01, (0.5, 0.46, -0.045)))
        assert checker.check(q).kind[0] == Kind.WORLD
        checker.set_voxels(grid(np.zeros_like(cells), 0.01, (0.5, 0.46, -0.045)))
        assert checker.check(q).clear.all()
    checker.set_voxels(grid(cells, 0.01, (0.5, 0.46, -0.045)))
    checker.clear_voxels()
    assert checker.check(q).clear.all()


def test_self_test_refuses_broken_constants(pincer_model: CollisionModel) -> None:
    """A model whose arrays say something else than its kinematics, or whose pairs are not seen, gets no checker."""
    edges = replace(pincer_model.edges, origin=np.full_like(pincer_model.edges.origin, np.nan))
    with pytest.raises(CollisionModelError, match="self-test"):
        CollisionChecker(replace(pincer_model, edges=edges), 1)
    shrunk = replace(pincer_model.pair_arrays, reach=np.full_like(pincer_model.pair_arrays.reach, -1.0))
    with pytest.raises(CollisionModelError, match="known SELF came out as CLEAR"):
        CollisionChecker(replace(pincer_model, pair_arrays=shrunk), 1)


@pytest.mark.parametrize("pieces", [1, 5])
def test_a_box_whose_middle_the_link_leaves_free_is_no_broken_kernel(pieces: int) -> None:
    """A corner of a cube, and a frame of five bars: what is put in the middle of their boxes touches nothing."""
    corner = piece(0.3 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    bars = [box_piece((0.3, 0.02, 0.02), (0.0, y, 0.0)) for y in (-0.15, 0.15)]
    bars += [box_piece((0.02, 0.3, 0.02), (x, 0.0, 0.0)) for x in (-0.15, 0.15)]
    frame = [*bars, box_piece((0.02, 0.02, 0.1), (0.15, 0.15, 0.05))]
    hollow = link("b", *([corner] if pieces == 1 else frame))
    slide = joint("slide", "a", "b", axis=(1.0, 0.0, 0.0), kind="prismatic", lower=-9, upper=9)
    ball = link("a", piece([[0.0, 0.0, 0.0]], radius=0.01))
    robot = describe("hollow", ["a", "b"], [slide], geometry=[ball, hollow])
    for q, clear in ((0.0, pieces == 5), (0.15 if pieces == 5 else 0.005, False), (1.0, True)):
        found = CollisionChecker(build_model(robot), 1).check(torch.tensor([[q]]), world=False)
        assert bool(found.clear[0]) == clear, q


def test_a_row_with_an_unasked_pair_is_not_clear(pincer_model: CollisionModel) -> None:
    """The count of evaluated pairs is compared with what the model has, inside the check."""
    checker = CollisionChecker(pincer_model, 2)
    q = torch.zeros(2, 6)
    assert checker.check(q).clear.all()
    checker._query.expected_pairs.add_(1)
    assert checker.check(q).kind.tolist() == [Kind.NOT_EVALUATED] * 2


def test_near_stage_skips_nothing_that_matters(openarm_model: CollisionModel, q: torch.Tensor) -> None:
    """Against every pair searched, which is what least distances take: the same verdicts and parties, and bounds."""
    culled, exhaustive = CollisionChecker(openarm_model, N), CollisionChecker(openarm_model, N)
    quick, full = culled.check(q, world=False), exhaustive.check(q, world=False, distances=True)
    assert (exhaustive._launches.near.num.numpy()[:N] == openarm_model.pair_arrays.num_plain).all(), "all were left"
    assert culled._launches.near.num.numpy()[:N].mean() < 0.05 * openarm_model.pair_arrays.num_plain
    assert same(quick.block[:2], full.block[:2])
    refused = ~quick.clear
    assert same(quick.block[2:4, refused], full.block[2:4, refused])
    passed = culled._launches.near.lower.numpy()[:N][quick.clear.numpy()]
    assert (passed > 0.0).all() and (quick.distance <= full.distance + 1e-5).all()


def test_boxes_alone_leave_no_less_than_spheres_and_boxes(openarm_model: CollisionModel, q: torch.Tensor) -> None:
    """Bounding spheres blown up until they reject nothing."""
    arrays = openarm_model.pair_arrays
    blown = replace(openarm_model, pair_arrays=replace(arrays, reach=arrays.reach + np.float32(100.0)))
    both, boxes = CollisionChecker(openarm_model, N), CollisionChecker(blown, N)
    assert same(both.check(q, world=False).block[:4], boxes.check(q, world=False).block[:4])
    left, more = (checker._launches.near.pairs.numpy() for checker in (both, boxes))
    assert not (left & ~more).any()


@pytest.mark.parametrize("distances", [False, True])
def test_bitwise_equal_for_batches_of_1_7_256_and_1000(openarm_model: CollisionModel, openarm, distances: bool) -> None:
    """The same configurations, each with the same world, in batches of these sizes, on one thread and on two."""
    poses = torch.from_numpy(uniform(openarm, 1000, 11))[: 60 if distances else 1000]
    envs = torch.arange(len(poses)) % N
    whole = scene(openarm_model, N).check(poses, env_ids=envs, distances=distances).block  # 24 at a time
    for size, split_at in ((1, 10**9), (7, 10**9), (256, 10**9), (256, 2), (1000, 2)):
        checker = scene(openarm_model, max(size, N), split_at=split_at)
        for first in range(0, min(20 * size, len(poses)), size):
            rows = slice(first, first + size)
            answer = checker.check(poses[rows], env_ids=envs[rows], distances=distances)
            assert same(answer.block, whole[:, rows]), (size, split_at)


def test_reach_stage_skips_nothing_that_matters(openarm_model: CollisionModel, q: torch.Tensor) -> None:
    """Every body looked at, whatever is in reach of its box: the same verdicts, parties and refused distances."""
    checker = scene(openarm_model, N)
    quick = checker.check(q).block
    reach, launches = checker._launches._reach, checker._launches
    looked_at = np.unpackbits(reach.bodies.numpy().view(np.uint8), axis=1).sum(1)
    asked = len(checker._question.asked.bodies)
    cleared = (quick[0] == int(Kind.CLEAR)) | (quick[0] == int(Kind.WORLD))
    assert looked_at[cleared.numpy()].mean() < 0.6 * asked, "it must have culled"
    for stage in ("fk", "near", "self", "payload", "reach"):
        launches.launch(stage)
    hit = (launches.by_self.hit.numpy() + launches.by_payload.hit.numpy() > 0)[:, None]
    everything = np.zeros_like(reach.bodies.numpy())
    for body in checker._question.asked.bodies.tolist():
        if openarm_model.bodies.gate[body] == 0:
            everything[:, body // 32] |= np.uint32(1 << (body % 32))
    reach.bodies.assign(np.where(hit, 0, everything).astype(np.uint32))
    launches.launch("world")
    launches.launch("verdict")
    slow = checker._query.verdicts
    refused = quick[0] != int(Kind.CLEAR)
    assert same(quick[:4], slow[:4]) and same(quick[:, refused], slow[:, refused])


@pytest.mark.parametrize("num_pieces", [2, 3, 4, 5])
@pytest.mark.parametrize("against", ["self", "payload", "primitive", "cell"])
def test_a_refused_links_distance_is_that_of_its_nearest_piece(num_pieces: int, against: str) -> None:
    small = [box_piece((0.02, 0.02, 0.02), (-0.08 - 0.001 * k, 0.0, 0.0)) for k in range(num_pieces - 1)]
    limits = {"axis": (1.0, 0.0, 0.0), "kind": "prismatic", "lower": -9.0, "upper": 9.0}
    joints = [joint(f"slide{i}", "base", name, **limits) for i, name in enumerate(("palm", "comb"))]
    joints.append(joint("finger", "palm", "jaw", role="gripper", **limits))
    hand = Gripper(
        "hand", "finger", "palm", ("jaw",), (), 0.04, 0.0, IDENTITY, (PadPoint("jaw", (0, 0, 0)),) * 2
    )  # fmt: skip
    cube = box_piece((0.1, 0.1, 0.1))
    robot = describe(
        "comb", ["base", "palm", "comb", "jaw"], joints, grippers=[hand], disabled=[("palm", "jaw")],
        geometry=[link("palm", cube), link("comb", cube, *small), link("jaw", cube)],
    )  # fmt: skip
    checker = CollisionChecker(build_model(robot), 1, self_margin=0.2, world_margin=0.2)
    q = torch.tensor([[0.0 if against == "self" else -5.0, 0.2, -8.0]])  # palm, comb, and the jaw out of the way
    box, at = ConvexShape.box((0.1, 0.1, 0.1)), torch.tensor([[[5.0, 0, 0, 1, 0, 0, 0], [0.0, 0, 0, 1, 0, 0, 0]]])
    if against == "payload":
        checker.attach(Payload("hand", box, torch.tensor([[5.0, 0, 0, 1, 0, 0, 0]])))
    elif against == "primitive":
        checker.set_primitives(Primitives.of(["other", "box"], [box, box], at))
    elif against == "cell":
        filled = torch.zeros(1, 5, 5, 5, dtype=torch.bool)
        filled[0, 4, 4, 4] = True
        checker.set_voxels(
            VoxelGrid.from_cells(filled, 0.1, torch.tensor([[-0.45] * 3]), torch.tensor([[1.0, 0, 0, 0]]))
        )
    truth = 0.2 - 0.09 - 0.001 * (num_pieces - 2) - 0.05
    for distances in (False, True):
        verdict = checker.check(q, distances=distances)
        assert not verdict.clear[0]
        assert not verdict.bound[0]
        assert truth - 1e-5 <= float(verdict.distance[0]) <= truth, checker.describe(verdict, 0)
