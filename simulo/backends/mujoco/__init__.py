"""MuJoCo, embedded: every environment an MjData of one model, stepped in this process by a pool of threads."""

from simulo.backends.mujoco.backend import MujocoBackend

__all__ = ["MujocoBackend"]
