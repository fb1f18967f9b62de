"""Episodes of picking from a table: what stands where, how a scripted hand moves, and how it is made to collide.

Of `tasks/pick_place.py`, with an OpenArm's right arm. Lengths in metres; the environment's frame is the robot's foot
plate on the floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulo.evaluation.clearance import RobotSurface, Solid, extent, least_distance
from simulo.evaluation.scripted import ArmPath, PolicyNoise, Route, ease
from simulo.pose import Pose
from simulo.props import Box, Capsule, Cylinder

Array = NDArray[np.float64]
Hazard = Literal["none", "neighbour", "bin", "torso", "other_arm"]
HAZARDS: tuple[Hazard, ...] = ("neighbour", "bin", "torso", "other_arm")

TABLE_TOP = 0.38
BOARD = 0.025  # the table board's thickness
TABLE = ((0.12, 0.50), (-0.54, 0.08))  # x and y extent
BIN_CENTRE = np.array([0.23, -0.37])
BIN_INSIDE, BIN_WALL, BIN_FLOOR, BIN_RIM = 0.20, 0.008, 0.006, 0.046  # edge of the square, thicknesses, rim above table
OBJECT_X, OBJECT_Y = (0.22, 0.28), (-0.16, -0.06)

# At most 40 mm wide and 80 to 120 mm tall, standing.
OBJECTS = {
    "BoxTall": Box((0.030, 0.030, 0.110)),
    "BoxFlat": Box((0.034, 0.024, 0.085)),
    "CylinderTall": Cylinder(0.015, 0.120),
    "CylinderThin": Cylinder(0.012, 0.090),
    "CapsuleTall": Capsule(0.016, 0.078),
    "CapsuleShort": Capsule(0.014, 0.054),
}
NEIGHBOURS = {
    "NeighbourBox": Box((0.040, 0.040, 0.100)),
    "NeighbourSlab": Box((0.060, 0.030, 0.080)),
    "NeighbourCylinder": Cylinder(0.020, 0.115),
}
# From the open fingers to the nearest neighbour: what the arithmetic of collision.md grants, less, and hardly any.
GAPS = {"wide": (0.045, 0.080), "medium": (0.025, 0.045), "tight": (0.010, 0.025)}

# The object's top relative to the hand at the moment of closing: 10 mm of finger straddle it, where the open jaws are
# still 90 mm and more from its sides, and the palm is 31 mm above it. The tips then close 23 mm below the top.
TOP_IN_HAND = -0.152 + 0.010
GRASP_IN_HAND = -0.165
BELOW_TOP = TOP_IN_HAND - GRASP_IN_HAND

POSTURE = np.array([-1.0, 2.6, 0.1, 1.75, 0.6, -0.05, 0.5])  # elbow high: top-down grasps in the middle of all limits
HOME = (np.array([0.26, -0.20, 0.64]), np.deg2rad(105.0))
# Right-arm configurations 20 mm and more inside what their name says, each reached from home on a straight line in
# joint space that touches nothing else on its way and meets it head on, where MuJoCo's convex hulls are no larger than
# the surfaces they stand for.
COLLISIONS: dict[Hazard, tuple[tuple[float, ...], ...]] = {
    "bin": (
        (0.079, 0.358, 0.354, 1.097, 0.882, -0.546, 0.827),
        (0.111, 0.163, 0.764, 1.171, 0.964, -0.062, 1.031),
    ),
    "torso": (
        (-0.199, 2.143, 1.471, 2.343, 1.190, -0.685, 1.275),
        (0.353, 2.185, 1.308, 2.343, 0.683, -0.685, 0.035),
        (0.417, 3.216, 1.085, 1.641, 1.471, 0.685, 1.471),
    ),
    "other_arm": ((-0.382, 3.216, 1.142, 1.861, 1.471, -0.685, -0.063),),
}
FINGERS = ("openarm_right_ee_inner_finger", "openarm_right_ee_outer_finger")
BEHIND_FINGERS = ("openarm_right_ee_base_link", "openarm_right_link6", "openarm_right_link5", "openarm_right_link4")
ARM_SPEED = 0.8  # rad/s, on average, on the way to a collision


@dataclass(frozen=True)
class Standing:
    """A prop on the table: its name, pose and height."""

    name: str
    pose: Pose
    height: float


@dataclass(frozen=True)
class Episode:
    """What one episode is made of.

    neighbours: those that stand on the table; the others are away. start: right-arm joint positions [rad].
    actions: the scripted policy's, shape (T, 8). phases: name of what each of its steps does.
    """

    hazard: Hazard
    target: Standing
    neighbours: tuple[Standing, ...]
    start: Array
    actions: NDArray[np.float32]
    phases: tuple[str, ...]


@dataclass(frozen=True)
class Planner:
    """Draws episodes: what stands where, and how the scripted policy moves."""

    arm: ArmPath
    surface: RobotSurface
    parked: Array  # all actuated joints where the task keeps them, shape (16,)
    gap: tuple[float, float]
    noise: PolicyNoise
    dt: float

    def draw(self, hazard: Hazard, rng: np.random.Generator) -> Episode:
        for _ in range(50):
            target = self._target(rng)
            route = self._pick_route(target)
            q = self._joints(route)
            if q is None:
                continue
            neighbours = self._neighbours(target, route, q, rng)
            if hazard == "neighbour" and neighbours:
                route, q = self._press_route(target, neighbours, rng)
            if not neighbours or q is None:
                continue
            grips, phases = np.array(route.grips), tuple(route.phases)
            if hazard in COLLISIONS:
                q = self._sweep(q[0], np.array(COLLISIONS[hazard][rng.integers(len(COLLISIONS[hazard]))]))
                grips, phases = np.full(len(q), -1.0), ("collide",) * len(q)
            noisy = self.arm.disturb(q, self.noise.sample(len(q), self.dt, rng))
            actions = np.column_stack([noisy, grips]).astype(np.float32)
            return Episode(hazard, target, neighbours, q[0], actions, phases)
        raise RuntimeError("no reachable layout in 50 draws; the table, the bin and the robot no longer fit together")

    def whole_arm(self, q: Array) -> Array:
        """All actuated joints, shape (T, 16), for right-arm positions (T, 7): fingers open, the other arm parked."""
        joints = np.tile(self.parked, (len(q), 1))
        joints[:, list(self.arm.columns)] = q
        joints[:, self.arm.columns[-1] + 1] = -0.7854
        return joints

    def _target(self, rng: np.random.Generator) -> Standing:
        name = list(OBJECTS)[rng.integers(len(OBJECTS))]
        xy = np.array([rng.uniform(*OBJECT_X), rng.uniform(*OBJECT_Y)])
        return _standing(name, OBJECTS[name], xy, _comfortable_yaw(xy) + rng.uniform(-0.1, 0.1))

    def _pick_route(self, target: Standing) -> Route:
        xy, yaw = np.array(target.pose.position[:2]), _comfortable_yaw(np.array(target.pose.position[:2]))
        grasp_z = TABLE_TOP + target.height - BELOW_TOP
        # The held object clears the tallest neighbour by 45 mm; it is set down on the bin's floor, or dropped on it
        # from as low as the fingers get over the rim.
        carry_z = TABLE_TOP + 0.165 + target.height - BELOW_TOP
        place_z = TABLE_TOP + max(BIN_FLOOR + 0.006 + target.height - BELOW_TOP, BIN_RIM + 0.035)
        bin_yaw = _comfortable_yaw(BIN_CENTRE)
        route = Route(*HOME, self.dt)
        route.go("transit", np.array([*xy, grasp_z + 0.10]), yaw, -1.0, 0.25)
        route.go("descend", np.array([*xy, grasp_z]), yaw, -1.0, 0.12)
        route.wait("close", 1.0, 0.7)
        route.go("lift", np.array([*xy, carry_z]), yaw, 1.0, 0.20)
        route.go("carry", np.array([*BIN_CENTRE, carry_z]), bin_yaw, 1.0, 0.28)
        route.go("lower", np.array([*BIN_CENTRE, place_z]), bin_yaw, 1.0, 0.15)
        route.wait("open", -1.0, 0.5)
        route.go("retreat", np.array([*BIN_CENTRE, place_z + 0.14]), bin_yaw, -1.0, 0.20)
        route.go("home", HOME[0], HOME[1], -1.0, 0.30)
        return route

    def _press_route(
        self, target: Standing, neighbours: tuple[Standing, ...], rng: np.random.Generator
    ) -> tuple[Route, Array | None]:
        """Down onto a neighbour with one open finger, 30 mm too deep and not slowly, with nothing else in the way."""
        for _ in range(20):
            hit = neighbours[rng.integers(len(neighbours))]
            xy = np.array(hit.pose.position[:2])
            yaw = _comfortable_yaw(xy) + rng.uniform(-0.4, 0.4)
            finger = rng.choice([-0.077, 0.077]) * np.array([-np.sin(yaw), np.cos(yaw)])
            if (xy - finger)[0] < 0.20:  # MuJoCo's hull of the torso stands out to there above the table
                continue
            touch_z = TABLE_TOP + hit.height + (GRASP_IN_HAND + 0.152)
            route = Route(*HOME, self.dt)
            route.go("transit", np.array([*(xy - finger), touch_z + 0.09]), yaw, -1.0, 0.25)
            route.go("collide", np.array([*(xy - finger), touch_z - 0.030]), yaw, -1.0, 0.13)
            route.wait("collide", -1.0, 0.8)
            q = self._joints(route)
            if q is None:
                continue
            pressing = np.array([phase == "collide" for phase in route.phases])
            fastest = np.abs(np.diff(q[pressing], axis=0)).max() / self.dt
            if fastest > 1.1:  # rad/s: a joint that lags turns the finger where no command was
                continue
            path = self.whole_arm(q)[::4]
            everything = [(s.pose, (OBJECTS | NEIGHBOURS)[s.name]) for s in (target, *neighbours)] + bin_solids()
            rest = [solid for solid in everything if solid[0] is not hit.pose]
            above = self.whole_arm(q[~pressing])[::4]
            clear = (
                least_distance(rest, self.surface.along(path, FINGERS + BEHIND_FINGERS)),
                least_distance(everything, self.surface.along(path, BEHIND_FINGERS)),
                least_distance(everything, self.surface.along(above, FINGERS)),
            )
            if min(clear) > 0.03:
                return route, q
        return Route(*HOME, self.dt), None

    def _sweep(self, start: Array, end: Array) -> Array:
        """Straight to a configuration in joint space, ever faster, then staying there, shape (T, 7).

        What is commanded runs ahead of the arm, as far as it is fast: it collides first, and the arm after it.
        """
        steps = int(np.ceil(np.abs(end - start).max() / ARM_SPEED / self.dt))
        progress = np.concatenate([[0.0], 2.0 * ease(2 * steps)[:steps], np.ones(round(0.8 / self.dt))])
        return start + progress[:, None] * (end - start)

    def _joints(self, route: Route) -> Array | None:
        """The route in joint space, shape (T, 7), or None where the arm does not reach along all of it."""
        q, error = self.arm.solve(route.poses, POSTURE)
        return q if error.max() < 1e-3 else None

    def _neighbours(self, target: Standing, route: Route, q: Array, rng: np.random.Generator) -> tuple[Standing, ...]:
        """Up to three, the gap away from the open fingers on their way to the object, clear of the rest of the arm."""
        near = [p in ("transit", "descend", "close", "lift") for p in route.phases]
        fingers = self.surface.along(self.whole_arm(q[near])[::4], FINGERS)
        others = self.surface.along(self.whole_arm(q)[::8], BEHIND_FINGERS)
        taken = [(target.pose, OBJECTS[target.name]), *bin_solids()]
        chosen: list[Standing] = []
        for name, shape in NEIGHBOURS.items():
            for _ in range(40):
                bearing, reach = rng.uniform(-np.pi, np.pi), rng.uniform(0.07, 0.22)
                xy = np.array(target.pose.position[:2]) + reach * np.array([np.cos(bearing), np.sin(bearing)])
                candidate = _standing(name, shape, xy, rng.uniform(-np.pi, np.pi))
                solid = [(candidate.pose, shape)]
                if not all(low + 0.04 < v < high - 0.04 for v, (low, high) in zip(xy, TABLE, strict=True)):
                    continue
                if min(np.linalg.norm(xy - np.array(pose.position[:2])) for pose, _ in taken) < 0.09:
                    continue
                if self.gap[0] < least_distance(solid, fingers) < self.gap[1] and least_distance(solid, others) > max(
                    self.gap[0], 0.045
                ):
                    chosen.append(candidate)
                    taken += solid
                    break
        return tuple(chosen)


def _comfortable_yaw(xy: Array) -> float:
    """Yaw of the hand at a place, with every joint of the arm away from its limits."""
    return float(np.deg2rad(np.interp(xy[1], [-0.37, -0.27, -0.17, -0.07, -0.02], [75.0, 98.0, 118.0, 132.0, 135.0])))


def _standing(name: str, shape: Box | Cylinder | Capsule, xy: Array, yaw: float) -> Standing:
    height = extent(shape)[2]
    pose = Pose((float(xy[0]), float(xy[1]), TABLE_TOP + height / 2), (np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)))
    return Standing(name, pose, height)


def bin_parts() -> list[tuple[str, tuple[float, float, float], Array]]:
    """Name, size and centre of the bin's floor and walls."""
    outer, inner = BIN_INSIDE + 2 * BIN_WALL, BIN_INSIDE
    low, high = np.array([*BIN_CENTRE, TABLE_TOP + BIN_FLOOR / 2]), np.array([*BIN_CENTRE, TABLE_TOP + BIN_RIM / 2])
    across, along = np.array([(inner + BIN_WALL) / 2, 0.0, 0.0]), np.array([0.0, (inner + BIN_WALL) / 2, 0.0])
    return [
        ("BinFloor", (outer, outer, BIN_FLOOR), low),
        ("BinFar", (BIN_WALL, outer, BIN_RIM), high + across),
        ("BinNear", (BIN_WALL, outer, BIN_RIM), high - across),
        ("BinLeft", (inner, BIN_WALL, BIN_RIM), high + along),
        ("BinRight", (inner, BIN_WALL, BIN_RIM), high - along),
    ]


def bin_solids() -> list[Solid]:
    return [(Pose(tuple(centre)), Box(size)) for _, size, centre in bin_parts()]
