"""Simulators that run a scene, by name."""

from __future__ import annotations

from importlib import import_module

import torch

from simulo.backends.base import Backend, BackendFactory, BackendOptions, Capability, Contacts
from simulo.errors import BackendError
from simulo.scene import Scene

_BACKENDS = {"mujoco": ("simulo.backends.mujoco", "MujocoBackend")}


def build_backend(name: str, scene: Scene, options: BackendOptions) -> Backend:
    """Build `scene` on the named backend, and attach its robots, props and cameras.

    Raises BackendError for an unknown name, or for what this backend cannot do for the scene.
    """
    if name not in _BACKENDS:
        raise BackendError(f"backend={name!r} is not known; choose from {sorted(_BACKENDS)}")
    module, attribute = _BACKENDS[name]
    factory: BackendFactory = getattr(import_module(module), attribute)
    _refuse_surface_grippers(name, factory, scene, options.device)
    return factory(scene, options)


def _refuse_surface_grippers(name: str, factory: BackendFactory, scene: Scene, device: torch.device) -> None:
    """BackendError where the scene has some and this backend has no such bond: they would stay open, saying nothing."""
    tools = {tool.cup().link: robot for robot in scene.robots.values() for tool in robot.surface_tools}
    if not tools or Capability.SURFACE_GRIPPERS in factory.capabilities_on(device):
        return
    where = ", ".join(f"{link!r} of robot {robot.name!r}" for link, robot in tools.items())
    on_cpu = Capability.SURFACE_GRIPPERS in factory.capabilities_on(torch.device("cpu"))
    remedy = "pass device='cpu'" if on_cpu else "use backend='mujoco' with device='cpu'"
    raise BackendError(
        f"backend {name!r} has no surface grippers on device '{device}', and the scene has one on {where}; {remedy}"
    )


__all__ = ["Backend", "BackendOptions", "Capability", "Contacts", "build_backend"]
