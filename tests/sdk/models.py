"""Robots whose model file no package carries are tested where it can be found, and skipped elsewhere."""

import pytest

from simulo.description import load_description
from simulo.description.sources import resolve_model
from simulo.errors import ModelSourceError


def needs_model(robot: str) -> None:
    """Skip the test that calls this when the robot's model file is nowhere."""
    try:
        resolve_model(load_description(robot).source)
    except ModelSourceError as error:
        pytest.skip(f"robot {robot!r}: {str(error).splitlines()[0]}")
