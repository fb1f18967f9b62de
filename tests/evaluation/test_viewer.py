"""The browser's robot: where its links stand, what is said of it, and stops from either kind of record."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import viser

from simulo.description import load_description
from simulo.description.sources import resolve_model
from simulo.evaluation.configuration import uniform
from simulo.evaluation.recorded_stops import read_run
from simulo.evaluation.records import RecordError
from simulo.evaluation.viewer import RobotViewer
from tests.gate.test_audit import environment
from tests.gate.test_in_environment import NEAR, REACH, action, wall


@pytest.fixture
def server():
    made = viser.ViserServer("127.0.0.1", 8231, verbose=False)
    yield made
    made.stop()


def test_links_stand_where_mujoco_has_them(server: viser.ViserServer) -> None:
    gantry = load_description("gantry")
    viewer = RobotViewer(server, gantry)
    model = mujoco.MjModel.from_xml_path(str(resolve_model(gantry.source)))
    data = mujoco.MjData(model)
    for q in uniform(gantry, np.random.default_rng(5).random((4, len(gantry.joints)))):
        for slider, value in zip(viewer.sliders, q.tolist(), strict=True):
            slider.value = value
        for joint, value in zip(gantry.joint_names, q.tolist(), strict=True):
            data.joint(joint).qpos = value
        mujoco.mj_kinematics(model, data)
        for link in gantry.links:
            frame = viewer.links[link]
            if link != gantry.root_link:
                np.testing.assert_allclose(frame.position, data.body(link).xpos, atol=1e-6)
                assert abs(np.dot(frame.wxyz, data.body(link).xquat)) == pytest.approx(1.0, abs=1e-9)
    assert viewer.sentence.startswith("**Clear of itself.** Nearest: ")


def test_stops_of_an_audit_stand_among_what_stopped_them(server: viser.ViserServer, tmp_path) -> None:
    environment(tmp_path).step(action(REACH, NEAR))
    run = read_run(tmp_path)
    assert run is not None and run.robot == "openarm"
    (stop,) = run.stops
    np.testing.assert_array_equal(stop.q, action(REACH).numpy()[0])
    assert "Wall" in stop.parties and stop.parties[0].startswith("openarm_right_")
    viewer = RobotViewer(server, load_description("openarm"), stops=run.stops)
    viewer.show_stop(stop)
    assert viewer.reddened == {stop.parties[0]}
    assert "Wall" in viewer.sentence
    (solid,) = stop.around(load_description("openarm")).solids
    corners = solid.triangles.reshape(-1, 3)
    np.testing.assert_allclose(np.ptp(corners, axis=0), 0.2, atol=1e-6)
    middle = 0.5 * (corners.min(axis=0) + corners.max(axis=0))
    np.testing.assert_allclose(middle, wall().initial_pose.position, atol=1e-6)
    viewer.sliders[0].value = 0.1
    assert viewer.reddened == set() and viewer.sentence.startswith("**Clear of itself.**")


def test_a_target_that_is_no_number_is_shown_where_its_joint_was(tmp_path) -> None:
    env = environment(tmp_path)
    measured = float(env.task.robot.state.joint_positions[0, 3])
    targets = action(NEAR, NEAR)
    targets[0, 3] = float("nan")
    env.task.apply_actions = lambda _: env.task.robot.joint_position_targets[:, :16].copy_(targets)
    env.step(action(NEAR, NEAR))
    run = read_run(tmp_path)
    assert run is not None
    (stop,) = run.stops
    expected = action(NEAR)[0].numpy().copy()
    expected[3] = measured
    np.testing.assert_array_equal(stop.q, expected)
    assert "non_finite" in stop.title


def test_the_swept_model_shows_one_hull_for_a_hand_and_leaves_its_follower_out(server: viser.ViserServer) -> None:
    viewer = RobotViewer(server, load_description("franka_panda"), "swept")
    shown = [part for part in viewer.checked if part.handle.visible]
    fingers = [part for part in shown if "finger" in part.link]
    assert len(fingers) == 1 and fingers[0].models == {"swept"}
    assert len(shown) == len(load_description("franka_panda").geometry) - 1


def test_what_is_no_run_is_none_and_damage_is_named(tmp_path) -> None:
    assert read_run(tmp_path) is None
    assert read_run(tmp_path / "openarm") is None
    (tmp_path / "run.json").write_text("{}x")
    with pytest.raises(RecordError, match=str(tmp_path)):
        read_run(tmp_path)
