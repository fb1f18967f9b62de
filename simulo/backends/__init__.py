"""Simulators that run a scene, by name."""

from __future__ import annotations

from importlib import import_module

from simulo.backends.base import Backend, BackendOptions, Capability, Contacts
from simulo.errors import BackendError
from simulo.scene import Scene

_BACKENDS = {"mujoco": ("simulo.backends.mujoco", "MujocoBackend")}


def build_backend(name: str, scene: Scene, options: BackendOptions) -> Backend:
    """Build `scene` on the named backend, and attach its robots, props and cameras.

    Raises BackendError for an unknown name, or for what this backend cannot do for the scene.
    """
    if name not in _BACKENDS:
        raise BackendError(f"backend={name!r} is not known; choose from {sorted(_BACKENDS)}")
    module, factory = _BACKENDS[name]
    return getattr(import_module(module), factory)(scene, options)


__all__ = ["Backend", "BackendOptions", "Capability", "Contacts", "build_backend"]
