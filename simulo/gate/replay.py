"""A recorded stop judged again: by the kernels, bit for bit, and in float64 as a second opinion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from simulo.collision import (
    CollisionChecker,
    CollisionModel,
    Kind,
    Payload,
    Primitives,
    RawVerdict,
    VoxelGrid,
    build_clearance,
    build_model,
    build_motion_bounds,
)
from simulo.description import RobotDescription, load_description
from simulo.errors import GateError
from simulo.gate.audit import StopRecord, shape_of, versions
from simulo.gate.opinion import Opinion, second_opinion
from simulo.gate.session import MAX_PRIMITIVES, SLOTS_PER_HAND


@dataclass(frozen=True)
class Replay:
    """verdict: as it comes out now. same: to the last bit what was recorded. other_versions: package -> (then, now),
    where they differ, which may be why it is not the same. opinion: None where nothing was measured."""

    record: StopRecord
    verdict: RawVerdict
    same: bool
    other_versions: dict[str, tuple[str, str]]
    opinion: Opinion | None

    @property
    def kind(self) -> str:
        return Kind(int(self.verdict.kind[0])).name.lower()


def replay(record: StopRecord, robot: str | RobotDescription | None = None) -> Replay:
    """Judge a record anew. robot: the recorded one's name is taken when left out.

    Raises GateError where the model here is not the recorded one: its answers would be about another robot.
    """
    header = record.header
    description = robot if isinstance(robot, RobotDescription) else load_description(robot or header["robot"])
    model = build_model(description, header["finger_model"])
    if model.content_digest != header["model"]:
        raise GateError(
            f"the stop was recorded with model {header['model'][:12]} of robot {header['robot']!r}, and "
            f"{description.name!r} is model {model.content_digest[:12]} here; replay it with the version of simulo and "
            "of the robot that recorded it"
        )
    verdict = _judge(record, model)
    now, then = versions(), header["versions"]
    return Replay(
        record,
        verdict,
        bool(np.array_equal(verdict.block[:, 0].numpy(), record.arrays["verdict"])),
        {name: (then[name], now[name]) for name in now if then[name] != now[name]},
        second_opinion(record, description, model, verdict),
    )


def _judge(record: StopRecord, model: CollisionModel) -> RawVerdict:
    arrays = {name: torch.from_numpy(np.array(values)) for name, values in record.arrays.items()}
    rows, settings = arrays["q"], record.header["settings"]
    self_margin, world_margin = (float(value) for value in record.arrays["margins"])
    checker = CollisionChecker(
        model,
        1,
        len(rows),
        max_payloads=SLOTS_PER_HAND,
        max_primitives=MAX_PRIMITIVES,
        self_margin=self_margin,
        world_margin=world_margin,
        motion=build_motion_bounds(model) if settings["motion_check"] else None,
        clearance=build_clearance(model),
    )
    _restore(record, model, checker)
    return checker.check(
        rows[None],
        arrays["base_pose"][None],
        arrays["measured"][None],
        arrays["active"][None],
        map_status=arrays["map_status"].reshape(1),
        world=record.header["world"] != "none",
        start=arrays["start"][None] if settings["motion_check"] else None,
        widen=arrays["widened"].reshape(1),
    )


def _restore(record: StopRecord, model: CollisionModel, checker: CollisionChecker) -> None:
    """Put what surrounded a recorded environment into a checker of one environment, and what its hands held."""
    arrays = {name: torch.from_numpy(np.array(values)) for name, values in record.arrays.items()}
    if "grid_bricks" in arrays:
        unknown = arrays["grid_unknown"][None] if "grid_unknown" in arrays else torch.empty(0, dtype=torch.int64)
        checker.set_voxels(
            VoxelGrid(
                arrays["grid_bricks"][None],
                float(arrays["grid_cell"]),
                arrays["grid_position"][None],
                arrays["grid_orientation_wxyz"][None],
                unknown,
                bool(record.arrays.get("grid_closed", False)),
            )
        )
    if "primitive_pose" in arrays:
        names = tuple(record.header["primitives"])
        shapes = tuple(shape_of(record, f"primitive_{k}") for k in range(len(names)))
        checker.set_primitives(
            Primitives(names, shapes, arrays["primitive_pose"][None], arrays["primitive_valid"][None])
        )
    for held in record.header["payloads"]:
        shape, pose = shape_of(record, f"payload_{held['column']}"), arrays[f"payload_{held['column']}_pose"]
        rows = pose[None].to(torch.float32)
        one_with = tuple((model.grippers[hand].name, slot) for hand, slot in held.get("one_with", ()))
        checker.attach(
            Payload(held["hand"], shape, rows, held["slot"], held["link"], tuple(held["touch_links"]), one_with)
        )
    _restore_regions(record, arrays, model, checker)


def _restore_regions(
    record: StopRecord, arrays: dict[str, Tensor], model: CollisionModel, checker: CollisionChecker
) -> None:
    hands, per_hand = [gripper.name for gripper in model.grippers], checker.sizes.payloads_per_gripper
    for region in arrays["region_active"].nonzero().flatten().tolist():
        box = (arrays["region_pose"][None, region], 2.0 * arrays["region_half"][None, region])
        primitive = int(arrays["region_primitive"][region])
        name = record.header["primitives"][primitive] if primitive >= 0 else None
        if region < len(hands):
            checker.set_grasp_region(hands[region], *box, primitive=name)
        else:
            hand, slot = divmod(region - len(hands), per_hand)
            checker.set_support_region(hands[hand], slot, *box, primitive=name)
