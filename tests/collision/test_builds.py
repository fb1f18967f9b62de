"""The kernels under Warp's bounds checks, for CUDA without a GPU, and from a cold, shared or broken cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CHECK = """
import torch, warp as wp
from simulo.collision import CollisionChecker, build_model
from tests.collision.robots import pincer
checker = CollisionChecker(build_model(pincer()), 2)
q = torch.zeros(2, 6); q[1, 1] = 3.0
print("VERDICT", checker.check(q, distances=True).block.tolist())
"""

THREADS = """
import threading
from simulo.collision import CollisionChecker, build_model
from tests.collision.robots import pincer
import torch
q = torch.zeros(2, 6); q[1, 1] = 3.0
answers = []
def ask():
    answers.append(CollisionChecker(build_model(pincer()), 2).check(q, distances=True).block.tolist())
threads = [threading.Thread(target=ask) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for answer in answers: print("\\nVERDICT", answer)
"""
"""The same question from four threads of one process, each with a checker of its own."""

COMPILE = """
import importlib, sys, warp as wp
for name in sys.argv[2:]:
    module = importlib.import_module("simulo.collision.kernels." + name)
    wp.compile_aot_module(module, arch=90, module_dir=sys.argv[1], use_ptx=True)
"""
QUICKLY = "wp.config.optimization_level = 0"  # who compiles is in question here, not how well
CHECKS = ("fk", "self_check", "payload_check", "world_reach", "world_check", "verdict", "voxels")


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True, text=True, timeout=500,
    )  # fmt: skip


def verdict_of(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 0, result.stderr
    return next(line for line in result.stdout.splitlines() if line.startswith("VERDICT"))


@pytest.mark.slow
def test_debug_mode_finds_no_index_out_of_bounds(tmp_path: Path) -> None:
    """A representative part of this suite with Warp's bounds checks compiled in."""
    tests = ["test_checker.py", "test_payload.py"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/collision/{t}" for t in tests)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), "SIMULO_TEST_WARP_DEBUG": "1"},
        capture_output=True, text=True, timeout=550,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("modules", [CHECKS, ("motion", "motion_filter")], ids=["checks", "motion"])
def test_kernels_build_for_cuda(tmp_path: Path, modules: tuple[str, ...]) -> None:
    result = run(COMPILE, str(tmp_path), *modules)
    assert result.returncode == 0, result.stderr[-2000:]
    built = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert ".ptx" in built, built


@pytest.mark.slow
def test_b41_processes_sharing_a_cold_cache_agree(tmp_path: Path) -> None:
    """Eight processes on one empty cache, one of them with four threads, then one on the cache with every object file
    cut short."""
    cache = str(tmp_path / "cache")
    command, of_threads = (
        [sys.executable, "-c", f"import warp as wp; {QUICKLY}; wp.config.kernel_cache_dir = {cache!r}\n{code}"]
        for code in (CHECK, THREADS)
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    processes = [
        subprocess.Popen(each, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for each in (*[command] * 7, of_threads)
    ]
    verdicts = []
    for process in processes:
        output, errors = process.communicate(timeout=500)
        assert process.returncode == 0, errors[-2000:]
        verdicts += [line for line in output.splitlines() if line.startswith("VERDICT")]
    assert len(verdicts) == 7 + 4 and len(set(verdicts)) == 1
    objects = list(Path(cache).rglob("*.o"))
    assert objects
    for path in objects:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    again = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=500)
    if again.returncode == 0:
        assert verdict_of(again) == verdicts[0], "rebuilt, or refused: never another answer"
