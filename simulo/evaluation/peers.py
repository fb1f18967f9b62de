"""MuJoCo on the same pieces and pairs as the gate: is one configuration clear of itself."""

# MuJoCo's bindings have no stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import mujoco

from simulo.collision import CollisionModel
from simulo.description import RobotDescription
from simulo.evaluation.mujoco_tree import kinematic_tree
from simulo.mjspec import add_piece


def mujoco_model(description: RobotDescription, model: CollisionModel) -> mujoco.MjModel:
    """The description's links with their certified pieces as geoms; only the pairs that `model` checks may collide."""
    spec, bodies = kinematic_tree(description)
    for link, geometry in description.geometry.items():
        for index, piece in enumerate(geometry.pieces):
            name = f"{link}_{index}"
            add_piece(spec, bodies[link], name, piece)
    checked = {frozenset(pair) for pair in model.pairs}
    names = list(bodies)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            if frozenset((first, second)) not in checked:
                spec.add_exclude(bodyname1=first, bodyname2=second)
    return spec.compile()
