"""Gates of one robot share its collision model in these tests: it never changes, and making it takes a while."""

from collections.abc import Iterator

import pytest

import simulo.gate.gate
from simulo.collision import CollisionModel, build_model
from simulo.description import RobotDescription


@pytest.fixture(autouse=True, scope="package")
def shared_models() -> Iterator[None]:
    models: dict[tuple[int, str], CollisionModel] = {}

    def shared(description: RobotDescription, finger_model: str = "mimic") -> CollisionModel:
        key = (id(description), finger_model)
        if key not in models:
            models[key] = build_model(description, finger_model)
        return models[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulo.gate.gate, "build_model", shared)
        yield
