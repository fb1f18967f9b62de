"""Both grippers on simulators that do what a test says, behind one face: what the shared contract is asked through."""

from collections.abc import Callable

import torch
from torch import Tensor

from simulo.actuators import ParallelGripperActuator, SurfaceGripperActuator
from simulo.handles import BondLimits
from simulo.robot import Robot
from tests.sdk.fakes import FakeArticulation, attached, two_finger_description

NOTHING, BLOCK = -1, 7


class FakeBonds:
    """See `simulo.handles.Bonds`. within_reach: the body before each cup, int32 (num_envs,); a test sets it."""

    def __init__(self, num_envs: int):
        self.prop_bodies = {"Block": BLOCK}
        self.within_reach = torch.full((num_envs,), BLOCK, dtype=torch.int32)
        self.wanted = torch.zeros(num_envs, dtype=torch.bool)
        self.barred = torch.full((num_envs,), NOTHING, dtype=torch.int32)
        self.bonded, self.broken = self.barred.clone(), self.barred.clone()

    def command(self, wanted: Tensor, barred: Tensor, limits: BondLimits) -> None:
        self.wanted, self.barred = wanted.clone(), barred.clone()

    def step(self, overloaded: Tensor | None = None) -> None:
        """One physics step; overloaded, bool (num_envs,): bonds there break."""
        free = (self.bonded == NOTHING) & (self.broken == NOTHING) & (self.within_reach != self.barred)
        self.bonded = torch.where(self.wanted & free, self.within_reach, self.bonded)
        self.bonded[~self.wanted] = NOTHING
        if overloaded is not None:
            breaks = overloaded & (self.bonded != NOTHING)
            self.broken = torch.where(breaks, self.bonded, self.broken)
            self.bonded[breaks] = NOTHING

    def sample(self) -> tuple[Tensor, Tensor]:
        told = self.bonded.clone(), self.broken.clone()
        self.broken.fill_(NOTHING)
        return told

    def reset(self, env_ids: Tensor) -> None:
        for values in (self.bonded, self.broken):
            values[env_ids] = NOTHING
        self.wanted[env_ids] = False


class ParallelRig:
    """Fingers come to rest half-way two steps after a close, and everywhere they rest."""

    def __init__(self, num_envs: int, attached: bool = True, **options):
        self.robot = Robot(two_finger_description(coupled=False))
        self.articulation = FakeArticulation(self.robot, num_envs)
        self.gripper = ParallelGripperActuator(self.robot, "finger.", **options)
        if attached:
            self.attach()

    def attach(self) -> None:
        self.robot.attach(self.articulation, control_dt=0.02)
        self.robot.reset()
        self.articulation.positions[:, 1:] = 0.02

    def step(self) -> None:
        """Physics, without an update."""
        self.robot.flush()
        self.articulation.physics_tick += 1


class SurfaceRig:
    """A cup with a block before it in every environment, which is caught in the first step after a close."""

    def __init__(self, num_envs: int, attached: bool = True, **options):
        self.robot = Robot(two_finger_description(coupled=False))
        self.articulation = FakeArticulation(self.robot, num_envs)
        self.bonds = FakeBonds(num_envs)
        self.gripper = SurfaceGripperActuator(**options)
        self.robot.add_actuator(self.gripper, attach_to="hand")
        if attached:
            self.attach()

    def attach(self) -> None:
        self.robot.attach(self.articulation, control_dt=0.02)
        self.gripper.attach(self.bonds)
        self.robot.reset()

    def step(self, overloaded: Tensor | None = None) -> None:
        """Physics, without an update."""
        self.robot.flush()
        self.bonds.step(overloaded)
        self.articulation.physics_tick += 1


Rig = ParallelRig | SurfaceRig
RIGS: dict[str, Callable[..., Rig]] = {"parallel": ParallelRig, "surface": SurfaceRig}


def tick(rig: Rig, times: int = 1) -> list[int]:
    """Physics and an update, `times` over; the states after it."""
    for _ in range(times):
        rig.step()
        rig.gripper.update(0.02)
    return rig.gripper.state.tolist()


class Jaws:
    """A parallel gripper whose fingers are where a test says: one `sample` is one physics step and one update."""

    def __init__(self, num_envs: int = 1, **options):
        self.robot, self.articulation = attached(two_finger_description(coupled=False), num_envs)
        self.gripper = ParallelGripperActuator(self.robot, "finger.", **options)

    def sample(self, positions, speeds, dt: float = 0.02) -> list[int]:
        self.articulation.positions[:, 1:] = torch.as_tensor(positions, dtype=torch.float32)
        self.articulation.velocities[:, 1:] = torch.as_tensor(speeds, dtype=torch.float32)
        self.articulation.physics_tick += 1
        self.gripper.update(dt)
        return self.gripper.state.tolist()

    @property
    def targets(self) -> list[list[float]]:
        return [[round(value, 5) for value in row] for row in self.robot.joint_position_targets[:, 1:].tolist()]
