"""Warp device code of the collision check: pure functions first, thin kernels on top of them."""
