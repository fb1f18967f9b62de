"""Shared models: built once per session."""

from __future__ import annotations

import pytest

from simulo.collision import CollisionModel, build_model
from simulo.description import RobotDescription, load_description
from tests.collision.robots import pincer


@pytest.fixture(scope="session")
def openarm() -> RobotDescription:
    return load_description("openarm")


@pytest.fixture(scope="session")
def openarm_model(openarm: RobotDescription) -> CollisionModel:
    return build_model(openarm)


@pytest.fixture(scope="session")
def pincer_model() -> CollisionModel:
    return build_model(pincer())
