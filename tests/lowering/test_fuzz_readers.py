"""A hundredth of the fuzz run, `benchmarks/fuzz_readers.py --minutes 30`, on cases of its own; and that it sees."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import trimesh

from simulo.lowering import meshfiles, urdf

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fuzz_readers.py"


@pytest.fixture(scope="module")
def fuzzer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_readers", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_readers"] = module
    spec.loader.exec_module(module)
    return module


def test_the_committed_run_was_long_and_found_nothing() -> None:
    run = json.loads((SCRIPT.parent / "results" / "fuzz_readers.json").read_text())
    assert run["seconds"] >= 1800.0 and run["cases"] > 10_000 and run["findings"] == []
    assert sum(run["outcomes"].values()) == run["cases"]


def test_no_damaged_file_crashes_hangs_or_loses_a_shape(fuzzer: ModuleType) -> None:
    report = fuzzer.fuzz(600.0, seed=2_000_000, cases=160)
    assert report["findings"] == []
    ways = [outcome.split()[1] for outcome in report["outcomes"]]
    assert "read" in ways and "refused" in ways and report["cases"] == 160


def test_a_lost_shape_a_lost_triangle_and_a_crash_are_seen(
    fuzzer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same run on readers that are broken on purpose."""
    workshop = fuzzer.Workshop(tmp_path)
    workshop.read("r.urdf")

    def forgetful(data: bytes, label: str):
        mesh = trimesh.creation.box(extents=[0.1, 0.1, 0.1])
        return mesh.vertices, mesh.faces[:-1]

    with monkeypatch.context() as patch, pytest.raises(AssertionError, match="triangles in the mesh files"):
        patch.setitem(meshfiles._READERS, ".obj", forgetful)
        workshop.read("r.urdf")
    with monkeypatch.context() as patch, pytest.raises(AssertionError, match="shapes in the file"):
        whole = urdf._shapes
        patch.setattr(urdf, "_shapes", lambda *args: {link: found[:1] for link, found in whole(*args).items()})
        workshop.read("r.urdf")
    monkeypatch.setattr(urdf, "_ordered_links", lambda *args: 1 // 0)
    seed = next(seed for seed in range(100) if fuzzer.run_case(workshop, seed)[1] == "crash")
    assert "ZeroDivisionError" in fuzzer.run_case(workshop, seed)[2].words
