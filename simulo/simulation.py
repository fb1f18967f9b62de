"""Simulation: the scripted loop, for a scene that a script drives rather than a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from simulo.backends import BackendOptions, build_backend
from simulo.device import resolve_device
from simulo.scene import Scene


class Script(Protocol):
    """What a simulation runs. `simulation` is set before `on_start`.

    build declares the scene; on_start runs once, when its handles are live; on_step runs before every physics step.
    """

    simulation: Simulation

    def build(self, scene: Scene) -> None: ...

    def on_start(self) -> None: ...

    def on_step(self) -> None: ...


class Simulation:
    """Runs a script's scene, one `on_step` per physics step. physics_dt, dt [s]: one physics step."""

    def __init__(
        self, script: Script, num_envs: int = 1, backend: str = "mujoco", physics_dt: float = 0.002, device: str = "cpu"
    ):
        self.script = script
        self.num_envs = num_envs
        self.dt = physics_dt
        self.device = resolve_device(device)
        options = BackendOptions(num_envs, physics_dt, 1, self.device)
        self.scene = Scene()
        script.build(self.scene)
        self.backend = build_backend(backend, self.scene, options)
        self.scene.close()
        self.step_count = 0
        script.simulation = self
        script.on_start()

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.step_count * self.dt

    def step(self) -> None:
        """One `on_step` and one physics step. Raises RuntimeError, naming environments, where physics failed."""
        self.script.on_step()
        self.scene.flush()
        failed = self.backend.step(1)
        self.step_count += 1
        if failed.any():
            envs = failed.nonzero().flatten().tolist()
            raise RuntimeError(f"physics failed in environments {envs} at {self.time:.3f} s")

    def run(self, duration: float) -> None:
        """Step for `duration` [s]."""
        for _ in range(round(duration / self.dt)):
            self.step()

    def run_until(self, condition: Callable[[], bool], timeout: float) -> float:
        """Step until `condition()` holds, such as `script.gripper.is_closed`, and return how long that took [s].

        Raises TimeoutError where it does not hold after `timeout` [s].
        """
        start = self.time
        while not condition():
            if self.time - start >= timeout - 0.5 * self.dt:
                raise TimeoutError(f"what was waited for did not happen in {timeout:g} s, by {self.time:.3f} s")
            self.step()
        return self.time - start

    def close(self) -> None:
        """Release the simulator."""
        self.backend.close()
