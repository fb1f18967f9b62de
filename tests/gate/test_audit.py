"""Records of stops: one per stop, whole, and judged again to the last bit."""

from __future__ import annotations

import json

import coal
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import simulo
from simulo.cli import app
from simulo.collision import ConvexShape, Primitives, VoxelGrid
from simulo.collision.reference import hull_distance, posed_pieces
from simulo.errors import GateError
from simulo.gate import CollisionGate, Region
from simulo.gate.audit import Audit, StopRecord, take_record
from simulo.gate.replay import replay
from simulo.pose import Pose
from tests.collision.robots import ball_arm
from tests.gate.arm import empty_map, mesh_gap, openarm, placed, poses, rest
from tests.gate.tasks import JointTargets
from tests.gate.test_in_environment import NEAR, REACH, action, wall

HAND = "openarm_right_ee_base_link"


def environment(folder, **options) -> simulo.LearningEnv:
    gate = CollisionGate(openarm(), **{"world": "primitives", "audit": folder, **options})
    env = simulo.LearningEnv(JointTargets({"Wall": wall()}), num_envs=2, gate=gate)
    env.reset(seed=0)
    return env


def test_a_stop_leaves_one_record_however_long_it_lasts(tmp_path):
    env = environment(tmp_path / "stops")
    for _ in range(3):
        *_, info = env.step(action(REACH, NEAR))
    (file,) = (tmp_path / "stops").iterdir()
    assert file.name == "stop-000000-env0-world.npz"
    record = StopRecord.read(file)
    assert record.header["robot"] == "openarm" and record.header["environment"] == 0
    assert record.header["sentence"].startswith("environment 0: refused (world): openarm_right_")
    assert set(record.header["versions"]) >= {"simulo-sdk", "warp-lang", "torch", "python"}
    np.testing.assert_array_equal(record.arrays["q"], action(REACH).numpy())
    env.step(action(NEAR, NEAR))
    env.step(action(REACH, NEAR))
    env.step(action(NEAR, REACH))
    names = sorted(file.name for file in (tmp_path / "stops").iterdir())
    assert [name.split("-")[2] for name in names] == ["env0", "env0", "env1"]
    assert info["gate"].kind_name(0) == "world"


def test_another_run_into_the_same_folder_overwrites_nothing(tmp_path):
    for _ in range(2):
        environment(tmp_path).step(action(REACH, NEAR))
    assert sorted(file.name[:11] for file in tmp_path.iterdir()) == ["stop-000000", "stop-000001"]


def test_a_replay_is_the_same_to_the_last_bit_and_float64_agrees(tmp_path):
    environment(tmp_path).step(action(REACH, NEAR))
    (file,) = tmp_path.iterdir()
    found = replay(StopRecord.read(file))
    assert found.same and not found.other_versions and found.kind == "world"
    link = found.record.header["parties"][0]
    pose = np.eye(4)
    pose[:3, 3] = found.record.arrays["primitive_pose"][0, :3]
    gap = mesh_gap(placed(link, REACH), coal.Box(0.2, 0.2, 0.2), pose)
    assert found.opinion is not None and found.opinion.refuses and found.opinion.margin == 0.005
    assert found.opinion.distance <= max(gap, 0.0) + 1e-6


def small_gate(kind: str) -> tuple[CollisionGate, np.ndarray]:
    """A gate alone, with everything that a record has to hold, and a configuration that it refuses."""
    gate = CollisionGate(
        openarm(), world="none" if kind == "self" else "voxels" if kind == "cell" else "primitives", device="cpu",
        motion_check=kind == "motion", max_age=float("inf"),
    )  # fmt: skip
    q = rest(right_finger_joint1=-0.5)
    gate.set_configuration(q)
    tip = placed("openarm_right_ee_outer_finger", q).vertices
    low = tip[tip[:, 2].argmin()]
    held = poses(q)[HAND] @ [0.0, 0.0, -0.25, 1.0]
    if kind == "self":
        rng = np.random.default_rng(0)
        limits = np.array([(j.lower, j.upper) for j in openarm().joints])
        samples = rng.uniform(limits[:, 0], limits[:, 1], (500, 16))
        return gate, samples[~gate.check(samples).clear.numpy()][0]
    if kind == "cell":
        cells = torch.zeros((1, 8, 8, 8), dtype=torch.bool)
        cells[0, 5, 4, 3] = True
        turn = Pose.from_rpy((0.0, 0.0, 0.0), (0.3, -0.2, 0.5))
        corner = low - turn.rotation @ (np.array([5.5, 4.5, 3.5]) * 0.01)
        wxyz = torch.tensor([turn.orientation_wxyz], dtype=torch.float32)
        at = torch.tensor(corner, dtype=torch.float32)[None]
        gate.set_world(VoxelGrid.from_cells(cells, 0.01, at, wxyz, unknown=~cells))
        return gate, q
    if kind == "motion":
        end = q.copy()
        end[openarm().joint_names.index("openarm_right_joint4")] += 1.2
        half = q.copy()
        half[openarm().joint_names.index("openarm_right_joint4")] += 0.6
        where, q = placed(HAND, half).centroid, end
    else:
        where = held[:3]
    pose = torch.tensor([[[*where, 1.0, 0.0, 0.0, 0.0], [*low, 1.0, 0.0, 0.0, 0.0]]], dtype=torch.float32)
    shapes = [ConvexShape.cylinder(0.01, 0.02), ConvexShape.capsule(0.004, 0.01)]
    gate.set_world(Primitives.of(["Post", "Thing"], shapes, pose))
    gate.declare_grasp("right", Pose(tuple(map(float, low))), (0.02, 0.02, 0.03), 1.0, object="Thing")
    if kind == "payload":
        region = Region(Pose((5.0, 0.0, 0.0)), (0.1, 0.1, 0.1))
        gate.attach("right", ConvexShape.sphere(0.03), Pose((0.0, 0.0, -0.25 + 0.031)), support=region)
        gate.attach("left", ConvexShape.box((0.02, 0.02, 0.02)), Pose((0.0, 0.0, -0.2)), touch_links=(HAND,))
    return gate, q


@pytest.mark.parametrize("kind", ["self", "cell", "payload", "motion"])
def test_every_input_of_a_verdict_is_in_its_record(tmp_path, kind):
    gate, q = small_gate(kind)
    verdict = gate.check(q)
    expected = {"cell": "world", "motion": "world"}.get(kind, kind)
    assert verdict.kind_name(0) == expected, verdict.describe(0)
    rows = torch.tensor(q, dtype=torch.float32)[None]
    record = take_record(gate._session, gate.settings, verdict, rows, 0)
    read = StopRecord.read(record.write(tmp_path / "stop.npz"))
    found = replay(read)
    assert found.same, (read.arrays["verdict"], found.verdict.block[:, 0])
    assert found.opinion is not None
    assert found.opinion.distance <= found.opinion.margin + (1e-4 if kind == "motion" else 0.0)
    assert abs(found.opinion.distance - float(verdict.distance[0])) < 0.03
    if kind == "motion":
        assert float(verdict.between[0]) > 0.0
    # What is left out or changed does not come out the same.
    for name in ("q",) if kind == "self" else ("q", "base_pose"):
        spoiled = StopRecord(read.header, {**read.arrays, name: read.arrays[name] + np.float32(0.37)})
        assert not replay(spoiled).same


def test_a_stop_by_unseen_space_is_replayed_and_float64_has_no_say(tmp_path):
    gate = CollisionGate(openarm(), unknown="occupied", max_age=float("inf"), device="cpu")
    gate.set_world(empty_map())
    verdict = gate.check(rest())
    assert verdict.parties(0)[1] == "the unseen space past the map's edge"
    rows = torch.tensor(rest(), dtype=torch.float32)[None]
    read = StopRecord.read(take_record(gate._session, gate.settings, verdict, rows, 0).write(tmp_path / "stop.npz"))
    found = replay(read)
    assert found.same and found.opinion is None
    assert not replay(StopRecord(read.header, {**read.arrays, "grid_closed": np.array(False)})).same


def test_environments_that_go_on_being_refused_for_another_reason_leave_another_record(tmp_path):
    gate, q = small_gate("self")
    audit = Audit(tmp_path)
    other = q.copy()
    other[0] = np.nan
    for each, new in ((q, 1), (q, 0), (other, 1), (rest(), 0), (q, 1)):
        rows = torch.tensor(each, dtype=torch.float32)[None]
        assert len(audit.note(gate._session, gate.settings, gate.check(each), rows)) == new
    audit.forget(torch.tensor([0]))
    assert len(audit.note(gate._session, gate.settings, gate.check(q), torch.tensor(q[None]))) == 1
    records = [StopRecord.read(file) for file in sorted(tmp_path.iterdir())]
    assert [record.header["kind"] for record in records] == ["self", "non_finite", "self", "self"]
    assert replay(records[1]).same and replay(records[1]).opinion is None


def test_the_command_tells_what_it_found_and_fails_where_it_differs(tmp_path):
    gate, q = small_gate("self")
    record = take_record(gate._session, gate.settings, gate.check(q), torch.tensor(q, dtype=torch.float32)[None], 0)
    file, figures = record.write(tmp_path / "stop.npz"), tmp_path / "figures.json"
    result = CliRunner().invoke(app, ["check", "--replay", str(file), "--json", str(figures)])
    assert result.exit_code == 0, result.output
    assert "refused (self)" in result.output and "bit for bit" in result.output and "refuses too" in result.output
    told = json.loads(figures.read_text())
    assert told["same"] is True and told["clear"] is False and told["kind"] == told["replayed_kind"] == "self"
    assert told["distance_mm"] <= told["float64_distance_mm"] + 1e-6 and told["bound"] in (True, False)
    spoiled = StopRecord(record.header, {**record.arrays, "verdict": record.arrays["verdict"] + 1})
    result = CliRunner().invoke(app, ["check", "openarm", "--replay", str(spoiled.write(tmp_path / "other.npz"))])
    assert result.exit_code == 1 and "NOT the same" in result.output


def test_records_of_other_models_and_files_that_are_none_are_refused_by_name(tmp_path):
    gate, q = small_gate("self")
    record = take_record(gate._session, gate.settings, gate.check(q), torch.tensor(q, dtype=torch.float32)[None], 0)
    other = StopRecord({**record.header, "model": "0" * 64}, record.arrays)
    with pytest.raises(GateError, match=r"model 000000000000 of robot 'openarm', and 'openarm' is model [0-9a-f]{12}"):
        replay(other)
    with pytest.raises(GateError, match="there is no file"):
        StopRecord.read(tmp_path / "nothing.npz")
    whole = record.write(tmp_path / "stop.npz").read_bytes()
    for cut in (0, 10, len(whole) // 2):
        (tmp_path / "cut.npz").write_bytes(whole[:cut])
        with pytest.raises(GateError, match="is not the record of a stop"):
            StopRecord.read(tmp_path / "cut.npz")
    np.savez(tmp_path / "array.npz", q=np.zeros(3))
    with pytest.raises(GateError, match="is not the record of a stop"):
        StopRecord.read(tmp_path / "array.npz")


def test_a_stop_between_balls_is_judged_with_their_radii(tmp_path):
    """Links of spheres and capsules whose axes are apart: the stop is the balls', and float64 knows their depth."""
    robot = ball_arm()
    gate = CollisionGate(robot, world="none", device="cpu")
    samples = np.random.default_rng(3).uniform(-3.0, 3.0, (400, 4))
    stops = np.flatnonzero(~gate.check(samples).clear.numpy())
    judged = 0
    for q in samples[stops[:40]]:
        verdict = gate.check(q)
        rows = torch.tensor(q, dtype=torch.float32)[None]
        record = take_record(gate._session, gate.settings, verdict, rows, 0)
        found = replay(StopRecord.read(record.write(tmp_path / "stop.npz")), robot)
        assert found.same and found.opinion is not None and found.opinion.refuses
        pieces = posed_pieces(robot, rows[0].numpy())
        a, b = verdict.parties(0)
        axes = min(hull_distance(p, r) for p in pieces[a] for r in pieces[b])
        judged += axes > 1e-6
    assert judged > 10, "too few of these are the balls' alone"
