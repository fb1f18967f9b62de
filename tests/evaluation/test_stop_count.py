"""A whole stop count, small: what it finds, that it survives being killed, and that it can be judged again."""

from __future__ import annotations

import json

import numpy as np
import pytest

from simulo.description import load_description
from simulo.evaluation.recorded_stops import read_run
from simulo.evaluation.records import RecordError, load_record, save_record
from simulo.evaluation.report import write_report
from simulo.evaluation.stop_count import StopCountOptions, bench_stop_count, replay_stop_count

# Episode 0 is hazard-free, in episode 1 a finger presses on a neighbour.
OPTIONS = StopCountOptions(episodes=2, hazards=0.5, worlds=("voxels", "primitives"), success_episodes=0, envs=2)
KEYS = {
    "finger_model", "policy_steps", "stops", "true_stops", "within_resolution", "false_stops", "map_stops", "unjudged",
    "invalid", "real_contacts", "missed_contacts", "proxy_contacts", "dynamic", "episodes_completed", "success_rate",
    "success_wilson95", "stops_by_pair", "false_stop_clearance_mm", "clean", "hazard",
}  # fmt: skip

pytestmark = pytest.mark.slow


class Killed(Exception):
    pass


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return bench_stop_count(OPTIONS, tmp_path_factory.mktemp("whole"))


def test_the_mimic_model_stops_for_what_is_real_and_the_swept_one_for_nothing_too(finished):
    for figures in finished.figures:
        mimic, swept = figures["results"]
        assert (mimic["finger_model"], swept["finger_model"]) == ("mimic", "swept")
        assert mimic["clean"]["stops"] == 0
        assert swept["clean"]["false_stops"] >= 1
        for row in (mimic, swept):
            assert row["real_contacts"] >= 1
            assert row["missed_contacts"] == 0
            assert row["unjudged"] == row["invalid"] == 0


def test_the_stops_to_look_at_are_the_ones_that_were_counted(finished):
    run = read_run(finished.folder)
    assert run is not None and run.robot == "openarm"
    counted = {
        f"episode {episode.number}, step {event.first}: {judge}": (event.pair, judge.finger_model)
        for judge, episodes in finished.judged.items()
        for episode in episodes
        for event in episode.events
    }
    assert {stop.title: (stop.parties, stop.finger_model) for stop in run.stops} == counted
    stop = next(stop for stop in run.stops if "voxels" in stop.title)
    around = stop.around(load_description("openarm"))
    record = load_record(finished.folder, int(stop.title.split()[1].rstrip(",")))
    refusals = record.refusals[stop.title.split(": ")[1]]
    struck = refusals.cell_centre[refusals.step == int(stop.title.split()[3].rstrip(":"))][0]
    assert np.linalg.norm(around.centres - struck, axis=1).min() < 1e-5, "the cell that stopped it is among those shown"


def test_the_json_has_the_published_keys(finished):
    assert [figures["world"] for figures in finished.figures] == ["voxels", "primitives"]
    for figures in finished.figures:
        assert KEYS <= set(figures["results"][0])
        assert figures["benchmark"] == "stop-count"
        assert figures["results"][0]["success_rate"] is None, "no second run was asked for"
        json.dumps(figures, allow_nan=False)


def test_a_killed_run_goes_on_with_nothing_lost_whatever_runs_beside_it(finished, tmp_path):
    alone = StopCountOptions(**{**OPTIONS.__dict__, "envs": 1})

    def kill(label, done, total):
        if label == "shadow run" and (tmp_path / "episode-00000.npz").is_file():
            raise Killed

    with pytest.raises(Killed):
        bench_stop_count(alone, tmp_path, progress=kill)
    assert not (tmp_path / "episode-00001.npz").exists()
    with pytest.raises(RecordError, match="--resume"):
        bench_stop_count(alone, tmp_path)
    with pytest.raises(RecordError, match="other options"):
        bench_stop_count(StopCountOptions(**{**OPTIONS.__dict__, "seed": 3}), tmp_path, resume=True)
    assert bench_stop_count(alone, tmp_path, resume=True).figures == finished.figures


def test_a_recorded_run_is_judged_again_to_the_same_figures(finished):
    assert replay_stop_count(finished.folder).figures == finished.figures


def test_an_incomplete_or_missing_run_is_refused(finished, tmp_path):
    with pytest.raises(RecordError, match="holds no recorded run"):
        replay_stop_count(tmp_path)
    (tmp_path / "run.json").write_text((finished.folder / "run.json").read_text())
    with pytest.raises(RecordError, match=r"lacks episodes \[0, 1\]"):
        replay_stop_count(tmp_path)
    (tmp_path / "episode-00000.npz").write_bytes(b"half a file")
    with pytest.raises(RecordError, match="is no recorded episode"):
        load_record(tmp_path, 0)


def test_records_come_back_as_they_were(finished, tmp_path):
    record = load_record(finished.folder, 1)
    save_record(record, tmp_path)
    again = load_record(tmp_path, 1)
    assert again.refusals.keys() == record.refusals.keys()
    assert (again.commanded == record.commanded).all()
    assert again.hazard == record.hazard == "neighbour"


def test_the_report_needs_nothing_else(finished, tmp_path):
    page = write_report(finished, tmp_path / "report.html", pictures=2).read_text()
    assert "src='data:image/png;base64," in page
    assert "http" not in page
    for word in ("mimic", "swept", "real contacts", "missed"):
        assert word in page
