"""Devices are explicit (B42)."""

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
import warp

import simulo
from simulo.device import resolve_device, start_warp
from simulo.errors import BackendError

no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")


@no_gpu
@pytest.mark.parametrize("name", ["cuda:0", "cuda", "cuda:3"])
def test_b42_an_explicit_gpu_that_is_not_there_is_an_error(name):
    with pytest.raises(BackendError, match="0 CUDA devices"):
        resolve_device(name)


@no_gpu
def test_b42_auto_says_that_it_falls_back(capsys):
    assert resolve_device("auto") == torch.device("cpu")
    assert capsys.readouterr().err.count("\n") == 1


def test_cpu_is_the_cpu():
    assert resolve_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["tpu", "mps", ""])
def test_unknown_devices_are_refused(name):
    with pytest.raises(ValueError, match="device="):
        resolve_device(name)


def test_b42_a_mujoco_task_starts_no_gpu_runtime_and_prints_nothing():
    script = """
import sys, simulo
class Fall(simulo.Task):
    observation_dim, action_dim = 7, 1
    def build(self, scene):
        self.ball = simulo.Prop.sphere(0.1, mass=1.0)
        scene.add(self.ball, at="/World/Ball")
    def apply_actions(self, actions): ...
    def get_observations(self): return self.ball.state.pose
env = simulo.LearningEnv(Fall(), num_envs=2)
env.reset(seed=0)
env.step([[0.0], [0.0]])
assert "warp" not in sys.modules, "Warp was started"
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_b42_starting_warp_leaves_out_the_missing_driver_and_nothing_else(monkeypatch, capfd):
    """Warp's own words, written past sys.stderr as its native code does."""

    def init():
        os.write(
            2, b"Warp CUDA warning: Could not find or load the NVIDIA CUDA driver. GPU execution will not be ...\n"
        )
        os.write(2, b"Warp CUDA error: Failed to get driver entry point 'cuInit' (CUDA error 34)\n")
        print("and a line of Python's", file=sys.__stderr__)
        if fails:
            raise RuntimeError("native library is broken")

    monkeypatch.setattr(warp, "init", init)
    for fails in (False, True):
        if fails:
            with pytest.raises(RuntimeError, match="broken"):
                start_warp.__wrapped__()
        else:
            start_warp.__wrapped__()
        said = capfd.readouterr().err
        assert "driver entry point 'cuInit'" in said
        assert "a line of Python's" in said
        assert "Could not find or load" not in said
    os.write(2, b"standard error is back\n")
    assert capfd.readouterr().err == "standard error is back\n"


def test_b42_a_gate_on_the_cpu_leaves_standard_error_clean():
    script = """
import simulo
gate = simulo.CollisionGate("openarm", world="none", device="cpu")
assert gate.check([[0.0] * 16]).clear.tolist() == [True]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")


def test_warp_starts_without_standard_error_or_a_place_for_files(monkeypatch):
    started = []
    monkeypatch.setattr(warp, "init", lambda: started.append(True))
    monkeypatch.setattr(sys, "stderr", None)
    start_warp.__wrapped__()

    def missing(*_):
        raise OSError("not here")

    for module, name in ((os, "dup"), (tempfile, "TemporaryFile")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, missing)
            start_warp.__wrapped__()
    assert started == [True, True, True]


def test_b42_every_call_of_warp_that_takes_a_device_is_given_one():
    """Warp's own default is the GPU where there is one, which a run on the CPU must not claim memory of."""
    launches, makers = {"launch", "load_module"}, {"array", "zeros", "empty", "full", "ones"}
    checked, without = 0, []
    for file in sorted(Path(simulo.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if ast.unparse(node.func.value) != "wp" or node.func.attr not in launches | makers:
                continue
            if node.func.attr in makers and not node.args:
                continue  # a type in an annotation, rather than an array
            checked += 1
            if "device" not in {keyword.arg for keyword in node.keywords}:
                without.append(f"{file.name}:{node.lineno}: {ast.unparse(node)[:60]}")
    assert without == []
    assert checked > 20
