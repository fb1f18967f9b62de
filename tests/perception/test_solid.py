"""Which cells a shape fills, against distances of cubes and shapes from coal."""

from __future__ import annotations

import coal
import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simulo.collision.shapes import ConvexShape
from simulo.perception.solid import filled_cells
from simulo.pose import Pose
from tests.perception.box_scenes import cells_of

CELL, COUNT = 0.01, 16


def coal_shape(name: str):
    return {
        "box": (ConvexShape.box((0.05, 0.03, 0.02)), coal.Box(0.05, 0.03, 0.02)),
        "sphere": (ConvexShape.sphere(0.03), coal.Sphere(0.03)),
        "capsule": (ConvexShape.capsule(0.01, 0.06), coal.Capsule(0.01, 0.06)),
    }[name]


@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from(["box", "sphere", "capsule"]), tolerance=st.sampled_from([0.0, 0.005]),
    x=st.floats(0.0, 0.16), y=st.floats(0.0, 0.16), z=st.floats(0.0, 0.16), roll=st.floats(-3, 3), yaw=st.floats(-3, 3),
)  # fmt: skip
def test_filled_cells_are_those_whose_cube_is_within_the_tolerance(name, tolerance, x, y, z, roll, yaw):
    shape, truth = coal_shape(name)
    pose = Pose.from_rpy((x, y, z), (roll, 0.4, yaw))
    row = torch.tensor([[*pose.position, *pose.orientation_wxyz]], dtype=torch.float32)
    got = cells_of(filled_cells(shape, row, CELL, (COUNT // 4,) * 3, tolerance)[0])
    where, cube, request = (
        coal.Transform3s(pose.rotation, np.asarray(pose.position)),
        coal.Box(CELL, CELL, CELL),
        coal.DistanceRequest(),
    )
    gaps = np.empty(got.shape)
    for index in np.ndindex(*got.shape):
        result = coal.DistanceResult()
        centre = (np.array(index) + 0.5) * CELL
        gaps[index] = coal.distance(truth, where, cube, coal.Transform3s(np.eye(3), centre), request, result)
    decided = np.abs(gaps - tolerance) > 2e-5
    assert (got == (gaps <= tolerance))[decided].all()
