"""Devices are explicit (B42)."""

import subprocess
import sys

import pytest
import torch

from simulo.device import resolve_device
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
