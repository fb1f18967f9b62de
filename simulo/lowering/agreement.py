"""robot.yaml against the model file: every moving joint is declared, every mimic relation is the file's own.

But for the joints of a linkage: the file has no relation for those, and `linkage` measures the declared one.
"""

from __future__ import annotations

from pathlib import Path

from simulo.description.files import RobotFile
from simulo.description.load import declared_relations
from simulo.description.mimics import MimicRelation
from simulo.errors import LoweringError
from simulo.lowering.model import ModelJoint, RobotModel

RELATION_TOLERANCE = 1e-6
"""[1, rad or m] A declared mimic relation may differ from the file's by rounding only."""


def refuse_disagreement(robot: RobotFile, model: RobotModel, where: str) -> None:
    """Raise LoweringError at the first joint that robot.yaml (`where`) and the model file tell differently."""
    relations = declared_relations(robot, where)
    for name in (*(entry.name for entry in robot.joints), *relations):
        model.joint(name)
    actuated = {entry.name for entry in robot.joints}
    for joint in model.joints:
        _refuse_undeclared(joint, actuated, relations, model, where)
    for name, relation in relations.items():
        if name in model.mimics:
            _refuse_relation(relation, model.mimics[name], model.path, where)


def _refuse_undeclared(
    joint: ModelJoint, actuated: set[str], relations: dict[str, MimicRelation], model: RobotModel, where: str
) -> None:
    lowered = model.mimics.get(joint.name)
    if lowered is not None and joint.name not in relations:
        raise LoweringError(
            f"{where}: joint {joint.name!r} follows {lowered.leader!r} in {model.path}; declare it under mimic_joints"
        )
    if lowered is None and joint.name in relations and joint.name not in model.linkage:
        raise LoweringError(
            f"{where}: joint {joint.name!r} is under mimic_joints, but follows no joint in {model.path}; "
            "move it to joints, or use a model whose fingers are coupled"
        )
    if lowered is None and joint.name not in actuated and joint.name not in relations:
        raise LoweringError(
            f"{where}: joint {joint.name!r} of {model.path} is neither under joints nor under mimic_joints; list it"
        )


def _refuse_relation(declared: MimicRelation, lowered: MimicRelation, path: Path, where: str) -> None:
    same = (
        declared.leader == lowered.leader
        and abs(declared.multiplier - lowered.multiplier) <= RELATION_TOLERANCE
        and abs(declared.offset - lowered.offset) <= RELATION_TOLERANCE
    )
    if not same:
        raise LoweringError(
            f"{where}: mimic joint {declared.joint!r} is declared as {declared}, "
            f"but {path} has {lowered}; correct robot.yaml"
        )
