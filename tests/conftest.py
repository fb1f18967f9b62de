"""Settings of the whole suite."""

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # One pass of CI runs the kernels with Warp's bounds checks (.ci/run). The mode is part of a kernel's cache key.
    if os.environ.get("SIMULO_TEST_WARP_DEBUG") == "1":
        import warp

        warp.config.mode = "debug"
