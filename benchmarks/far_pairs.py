"""Placed pairs asked of the whole checker, far from the environment's origin, for `shape_pairs.py`.

Shape a is a payload in the hand of a robot of three slides, shape b a primitive of the world. The robot's base stands
100 to 1000 m from the origin, where float32 positions are 8 to 61 um apart: base and primitive are put first, the
slides then bring the payload to where the pair wants it.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from placed_shapes import Answers, Array, Draw, Kind, Rng, draw
from scipy.spatial.transform import Rotation

from simulo.collision import CollisionChecker, CollisionModel, Payload, Primitives, build_model
from simulo.description import (
    DOP_DIRECTIONS,
    ConvexPiece,
    Gripper,
    Joint,
    LinkGeometry,
    PadPoint,
    RobotDescription,
    Source,
)
from simulo.pose import Pose

ENVS = 512
EACH = 3  # shapes of either kind: a payload of another shape is put into every environment
OUT_OF_THE_WAY = 60.0  # m: where the robot's own two bodies are


def far_answers(first: Kind, second: Kind, count: int, rng: Rng) -> tuple[Draw, Answers, Array, Array]:
    """Pairs, what the checker says of them, and the poses of b in a's frame that the inputs came to."""
    drawn = draw(first, second, "far", count, rng, EACH)
    rotation, position, base, place, slides = _encoded(drawn, rng)
    lower, exact, capped = np.empty(count), np.zeros(count, bool), np.zeros(count, np.int32)
    checker = CollisionChecker(_gantry(), ENVS, world_margin=0.0, max_payloads=1, max_primitives=1)
    level = torch.tensor([[0.0, 0, 0, 1, 0, 0, 0]]).repeat(ENVS, 1)
    for a, b in np.unique(np.stack([drawn.a, drawn.b], axis=1), axis=0):
        rows = np.flatnonzero((drawn.a == a) & (drawn.b == b))
        checker.attach(Payload("hand", drawn.pool[a].shape, level))
        checker.set_primitives(Primitives.of(["other"], [drawn.pool[b].shape], level[:, None].clone()))
        for part in np.array_split(rows, -(-len(rows) // ENVS)):
            full = np.resize(part, ENVS)
            present = torch.ones(ENVS, 1, dtype=torch.bool)
            checker.move_primitives(torch.from_numpy(place[full])[:, None], present)
            found = checker.check(torch.from_numpy(slides[full]), torch.from_numpy(base[full]), distances=True)
            lower[full], exact[full] = found.distance.numpy(), ~found.bound.numpy()
            capped[full] = found.gjk_capped.numpy()
    return drawn, Answers(lower, exact, capped), rotation, position


def _encoded(drawn: Draw, rng: Rng) -> tuple[Array, Array, NDArray, NDArray, NDArray]:
    """Float32 base poses, primitive poses and joint values, and what they make of the pairs' poses in double."""
    count = len(drawn.a)
    turn = Rotation.random(count, random_state=int(rng.integers(1 << 31)))
    where = rng.normal(size=(count, 3))
    where *= rng.uniform(100.0, 1000.0, (count, 1)) / np.linalg.norm(where, axis=1, keepdims=True)
    base = _poses(where, turn)
    base_turn = _rotation(base)
    reach = rng.uniform(-0.5, 0.5, (count, 3))  # where the payload is in the base's frame, about
    place = _poses(
        base[:, :3] + base_turn.apply(reach + drawn.position), base_turn * Rotation.from_matrix(drawn.rotation)
    )
    relative = base_turn.inv() * _rotation(place)
    apart = base_turn.inv().apply(place[:, :3].astype(np.float64) - base[:, :3])
    slides = np.full((count, 5), OUT_OF_THE_WAY, np.float32)
    slides[:, 4] *= -1.0
    slides[:, :3] = apart - drawn.position
    return relative.as_matrix(), apart - slides[:, :3].astype(np.float64), base, place, slides


def _poses(position: Array, turn: Rotation) -> NDArray[np.float32]:
    return np.concatenate([position, turn.as_quat()[:, [3, 0, 1, 2]]], axis=1).astype(np.float32)


def _rotation(pose: NDArray[np.float32]) -> Rotation:
    return Rotation.from_quat(pose[:, [4, 5, 6, 3]].astype(np.float64))


def _gantry() -> CollisionModel:
    """A hand on three slides whose jaw, and a second body, stand far off; nothing else has geometry."""
    corners = 0.01 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)
    along = corners @ DOP_DIRECTIONS.T
    cube = ConvexPiece(corners, Pose(), (0.01,) * 3, np.stack([along.min(0), along.max(0)], axis=1))
    chain = [("x", "root", "on_x"), ("y", "on_x", "on_y"), ("z", "on_y", "palm")]
    chain += [("jaw_slide", "palm", "jaw"), ("post_slide", "root", "post")]
    axes = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0)}
    joints = tuple(
        Joint(
            name, "prismatic", parent, child, Pose(), axes.get(name, (0.0, 0.0, 1.0)),
            lower=-1e4, upper=1e4, velocity_limit=1.0, role="gripper" if name == "jaw_slide" else "arm", sim_name=name,
        )
        for name, parent, child in chain
    )  # fmt: skip
    return build_model(
        RobotDescription(
            name="gantry",
            source=Source("benchmarks", "0", "far_pairs.py", "Apache-2.0", "mjcf"),
            root_link="root",
            links=("root", "on_x", "on_y", "palm", "jaw", "post"),
            joints=joints,
            fixed_attachments=(),
            mimic_joints=(),
            grippers=(
                Gripper("hand", "jaw_slide", "palm", ("jaw",), (), 1.0, 0.0, Pose(), (PadPoint("jaw", (0, 0, 0)),) * 2),
            ),
            rest_pose=np.zeros(5),
            disabled_pairs=(),
            touch_links=(),
            geometry={name: LinkGeometry(name, (cube,), cube) for name in ("jaw", "post")},
            swept={},
            digest="benchmarks:gantry",
        )
    )
