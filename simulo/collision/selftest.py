"""What every checker proves before its first answer: kinematics in place, a known hit hit, a known clear clear.

A kernel that was built wrongly must not get as far as calling a pose clear, so the stages run here on poses whose
answers are known without them: bodies set out in a row, then two of them in one place, then an obstacle on one.
"""

from __future__ import annotations

import numpy as np
import torch
import warp as wp
from numpy.typing import NDArray

from simulo.collision.buffers import (
    ASK_WORLD,
    COUNT,
    NUM_BODIES,
    NUM_PAIRS,
    NUM_PLAIN_PAIRS,
    ROWS,
    QueryBuffers,
    WorldBuffers,
)
from simulo.collision.kinds import Kind
from simulo.collision.launches import SELF_STAGES, Launches
from simulo.collision.library import ShapeLibrary
from simulo.collision.live import LiveRobot
from simulo.collision.model import CollisionModel
from simulo.collision.selection import Selection
from simulo.collision.shapes import ConvexShape
from simulo.errors import CollisionModelError

_SPACING = 100.0  # m, more than any robot link's size
_FK_TOLERANCE = 1e-4  # m: a broken kernel is off by far more, float32 by far less


def self_test(
    launches: Launches,
    query: QueryBuffers,
    world: WorldBuffers,
    model: CollisionModel,
    library: ShapeLibrary,
    everything: Selection,
    primitive_slot: int,
) -> None:
    """Run the stages on known answers in environment 0; raise CollisionModelError when one comes out wrong."""
    query.settings[COUNT] = query.settings[ROWS] = 1
    query.settings[NUM_PAIRS] = len(everything.pairs)
    query.settings[NUM_PLAIN_PAIRS] = everything.num_plain
    query.settings[NUM_BODIES] = len(everything.bodies)
    query.settings[ASK_WORLD] = 1
    launches.launch("fk")
    found = launches.poses.links.numpy()[0, : len(model.link_names), 9:, 0]
    if not np.abs(found - _positions_at_zero(model)).max() < _FK_TOLERANCE:
        raise _broken("forward kinematics", model)
    inside = _points_inside(model, launches.poses.hulls.numpy()[0, : len(model.bodies.body), :9, 0])
    row = np.zeros((len(model.bodies.body), 3), np.float32)
    row[:, 0] = _SPACING * np.arange(len(row))
    _expect(launches, query, model, row, Kind.CLEAR, (-1, -1))
    a, b, _gate = (int(v) for v in model.pair_arrays.pair[0])
    together = row.copy()
    together[b] = together[a] + inside[a] - inside[b]
    _expect(launches, query, model, together, Kind.SELF, tuple(int(v) for v in model.pair_arrays.links[0]))
    commanded = [int(b) for b in everything.bodies if model.bodies.gate[int(b)] == 0]
    if commanded:
        body = commanded[-1]
        library.put(primitive_slot, ConvexShape.sphere(0.01), "the self-test's ball")
        world.primitive_shape[0, 0] = library.shape_index(primitive_slot)
        world.primitive_count[0] = 1
        positions = launches.poses.primitive_position
        within = row[body] + inside[body]
        obstacle = np.broadcast_to(within, (*positions.shape, 3))
        positions.assign(wp.array(obstacle, dtype=wp.vec3f, device=positions.device))
        world.primitive_pose[0, 0, :3] = torch.from_numpy(within)
        first_primitive = len(model.link_names) + launches.num_payloads
        _expect(launches, query, model, row, Kind.WORLD, (int(model.bodies.link[body]), first_primitive))
        world.primitive_count[0] = 0
        world.primitive_shape[0, 0] = -1
    if launches.at_once:
        _prove_at_once(launches, model)
    query.settings.zero_()
    query.verdicts.zero_()
    query.verdicts[0] = int(Kind.NOT_EVALUATED)


def _expect(
    launches: Launches, query: QueryBuffers, model: CollisionModel, hulls: NDArray, kind: Kind, parties: tuple[int, ...]
) -> None:
    poses = launches.poses.hulls.numpy()
    poses[0, :, 9:, 0] = hulls
    launches.poses.hulls.assign(poses)
    launches.poses.columns.fill_(np.nan)  # of no configuration: what clearance maps say is not for these poses
    wp.synchronize_device(launches.poses.hulls.device)  # Warp wrote the poses, torch's stream will read them
    for stage in ("near", "self", "payload", "reach", "world", "verdict"):
        launches.launch(stage)
    got = query.verdicts[:, 0].tolist()
    if got[0] != kind or tuple(got[2:4]) != parties:
        raise _broken(f"a known {kind.name} came out as {Kind(got[0]).name}, parties {got[2:4]} not {parties}", model)


def _points_inside(model: CollisionModel, rotations: NDArray[np.float32]) -> NDArray[np.float32]:
    """From each hull's origin to a point that its body fills [m], shape (B, 3): the middle of the vertices of its first
    piece. The origin, the middle of a box, may lie outside a wedge, and between a link's pieces.

    rotations, shape (B, 9): of the hulls.
    """
    bodies, shapes = model.bodies, model.shapes
    ends = np.append(shapes.header[1:, 1], len(shapes.points))

    def middle(shape: int) -> NDArray[np.float32]:
        points = shapes.points[shapes.header[shape, 1] : ends[shape]]
        return points.mean(axis=0) if len(points) else np.zeros(3, np.float32)  # a box has its origin in its middle

    found = np.zeros((len(bodies.body), 3), np.float32)
    for b, (_posed, hull, first, count) in enumerate(bodies.body.tolist()):
        if count == 1:
            local = middle(hull)
        else:
            local = bodies.piece_rotation[first] @ middle(int(bodies.piece_shape[first])) + bodies.piece_origin[first]
        found[b] = rotations[b].reshape(3, 3) @ local
    return found


def _prove_at_once(launches: Launches, model: CollisionModel) -> None:
    """The launch that does all of a self check must find what its stages find, to the bit."""
    poses, near, found = launches.poses, launches.near, launches.by_self
    results: list[list[NDArray]] = []
    for stages in (SELF_STAGES, ("self at once",)):
        for stage in stages:
            launches.launch(stage)
        arrays = (poses.links, poses.hulls, near.pairs, near.num, near.asked, near.lower, found.hit, found.party_a,
                  found.party_b, found.lower, found.exact, found.cleared, found.asked, found.capped)  # fmt: skip
        results.append([array.numpy().copy() for array in arrays])
    if not all(np.array_equal(one, other) for one, other in zip(*results, strict=True)):
        raise _broken("kinematics and the self check are another in one launch than in three", model)


def _positions_at_zero(model: CollisionModel) -> NDArray[np.float64]:
    """Link positions [m] with every column at zero, from the model's arrays in float64, shape (L, 3)."""
    edges, poses = model.edges, {-1: (np.eye(3), np.zeros(3))}
    for e, (parent, child, column, _gate) in enumerate(edges.ends):
        value = 0.0 if column < 0 else float(edges.relation[e, 1])
        local = edges.still[e] + edges.cos[e] * np.cos(value) + edges.sin[e] * np.sin(value)
        rotation, position = poses[int(parent)]
        poses[int(child)] = (rotation @ local, rotation @ (edges.origin[e] + edges.slide[e] * value) + position)
    return np.array([poses[i][1] for i in range(len(model.link_names))])


def _broken(what: str, model: CollisionModel) -> CollisionModelError:
    return CollisionModelError(
        f"self-test of the collision kernels failed for robot {model.name!r}: {what}. "
        "The compiled kernels cannot be trusted; clear Warp's kernel cache (warp.clear_kernel_cache()) and try again"
    )


def prove_live(launches: Launches, query: QueryBuffers, robot: LiveRobot, gripper_columns: tuple[int, ...]) -> None:
    """Raise CollisionModelError unless the kernels read of the robot what torch reads."""
    for name in launches.live_stages:
        launches.launch(name)
    wrong = robot.spoiled[:, None] | ~torch.isfinite(robot.targets)
    q = robot.targets.clamp(*robot.limits.T).masked_fill(wrong, torch.nan)
    start = robot.positions[:, robot.columns].to(torch.float32)
    active = robot.holding.clone()
    for closing in robot.closing:
        active[:, closing.gripper] |= closing.progress >= closing.done
    hands = len(gripper_columns)
    for name, expected, found in (
        ("targets", q, query.q[: len(q)]),
        ("positions", start, query.start),
        ("fingers", start[:, list(gripper_columns)], query.measured[:, :hands]),
        ("closed hands", active, query.measured_active[:, :hands].bool()),
        ("base poses", robot.base_pose, query.base_pose),
        ("ages of maps", robot.map_status, query.map_status),
    ):
        if not torch.allclose(expected.double(), found.double(), rtol=0.0, atol=0.0, equal_nan=True):
            raise CollisionModelError(f"the kernels that read a live robot read other {name} than torch does")
