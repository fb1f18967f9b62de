"""The prepared run for a GPU: it refuses where there is none, and its comparison sees what differs."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def cuda():
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("gate_cuda")
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so() -> None:
    result = subprocess.run(
        [sys.executable, str(BENCHMARKS / "gate_cuda.py")], capture_output=True, text=True, timeout=100
    )
    assert result.returncode == 1 and result.stderr.startswith("no CUDA device")


def test_one_device_agrees_with_itself_and_another_margin_does_not(cuda, openarm, openarm_model, monkeypatch) -> None:
    found = cuda.agreement(openarm, openarm_model, "cpu", envs=64, rows=2)
    assert found["verdicts"] == 128 and 0 < found["refused"] < 128
    assert found["differ"] == found["distances_beyond_10_um"] == 0
    assert found["distances"] > 30
    make, made = cuda.CollisionChecker, []

    def wider(*arguments, **options):
        made.append(None)
        return make(*arguments, **{**options, "world_margin": 0.03 if len(made) == 2 else 0.005})

    monkeypatch.setattr(cuda, "CollisionChecker", wider)
    found = cuda.agreement(openarm, openarm_model, "cpu", envs=64, rows=2)
    assert found["differ"] >= found["differ_beyond_10_um"] > 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_agrees_with_the_cpu(cuda, openarm, openarm_model) -> None:
    found = cuda.agreement(openarm, openarm_model, "cuda:0", envs=256, rows=2)
    assert found["differ_beyond_10_um"] == found["distances_beyond_10_um"] == 0
