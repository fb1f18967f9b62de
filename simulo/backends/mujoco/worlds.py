"""N copies of MuJoCo's changing data beside one constant model, and the threads that step them."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import mujoco
import numpy as np
from numpy.typing import NDArray

from simulo.backends.mujoco.bonds import Bonds, CupMap
from simulo.backends.mujoco.contacts import ContactLog

# Warnings after which a world is not what it should be: no memory for contacts, or a state or control that blew up.
_FATAL = np.array(
    [
        int(warning)
        for warning in (
            mujoco.mjtWarning.mjWARN_CONTACTFULL,
            mujoco.mjtWarning.mjWARN_CNSTRFULL,
            mujoco.mjtWarning.mjWARN_BADQPOS,
            mujoco.mjtWarning.mjWARN_BADQVEL,
            mujoco.mjtWarning.mjWARN_BADQACC,
            mujoco.mjtWarning.mjWARN_BADCTRL,
        )
    ]
)


class Worlds:
    """One MjData per environment, with their states mirrored in arrays that are gathered while stepping.

    qpos (N, nq), qvel (N, nv): the present state. ctrl (N, nu): read at the next step. ramp, lead (N, nu): per
    actuator, how fast its control moves while a step lasts [1/s], and what is added after its clamp; zero for position
    targets. stale: environments whose state was written, and whose poses and contacts are therefore those of before.
    bonds: of the surface grippers. An environment's outcome depends on nothing but its own rows, whichever thread steps
    it: where environments need models that differ, each thread owns one and is given the environment's rows first.
    """

    def __init__(self, model: mujoco.MjModel, count: int, cups: Sequence[CupMap] = (), prop_bodies: Sequence[int] = ()):
        self.model = model
        self.count = count
        self.data = [mujoco.MjData(model) for _ in range(count)]
        self.qpos = np.tile(model.qpos0, (count, 1))
        self.qvel = np.zeros((count, model.nv))
        self.ctrl = np.zeros((count, model.nu))
        self.ramp = np.zeros((count, model.nu))
        self.lead = np.zeros((count, model.nu))
        self.ramping = False
        self.stale: set[int] = set()
        self.contact_logs = [ContactLog(model) for _ in range(count)]
        clamped = model.actuator_ctrllimited.astype(bool)[:, None]
        self._control_limits = np.where(clamped, model.actuator_ctrlrange, [-np.inf, np.inf]).T
        self._views = [(d.ctrl, d.qpos, d.qvel) for d in self.data]
        self._warnings = [d.warning.number for d in self.data]  # live counts, which a reset clears
        self._threads = min(_cores(), count)
        self.bonds = Bonds(model, cups, prop_bodies, count)
        others = [copy.copy(model) if cups else model for _ in range(self._threads - 1)]
        self._models = [model, *others]
        self._pool = ThreadPoolExecutor(max(1, self._threads - 1), "simulo-mujoco")  # starts threads when first used

    def step(self, physics_steps: int, log_contacts: bool) -> NDArray[np.bool_]:
        """Advance every environment. Returns where the engine warned that the world is no longer sound, shape (N,)."""
        failed = np.zeros(self.count, dtype=bool)
        bonding = self.bonds.busy()

        def advance(lane: int, env: int) -> None:
            data = self.data[env]
            model = self._model_of(env, lane)
            self._views[env][0][:] = self.ctrl[env]
            if log_contacts or self.ramping or bonding[env]:
                self._step_singly(model, env, physics_steps, log_contacts, bonding[env])
            else:
                mujoco.mj_step(model, data, physics_steps)
            failed[env] = self._warnings[env][_FATAL].any()
            mujoco.mj_kinematics(model, data)
            self._gather(env)

        self._share(range(self.count), advance)
        self.stale.clear()
        return failed

    def reset(self, envs: Sequence[int]) -> None:
        """Forget velocities, controls, applied forces and the solver's warm start: an episode starts from nothing."""
        for env in envs:
            mujoco.mj_resetData(self.model, self.data[env])
            self.ctrl[env] = self.ramp[env] = self.lead[env] = 0.0
            self.contact_logs[env].clear()
            for gripper in range(len(self.bonds.cups)):
                self.bonds.forget(self.data[env], gripper, env)
            self._gather(env)
            self.stale.add(env)

    def moved(self, env: int, bodies: Collection[int]) -> None:
        """Bodies of one environment were put elsewhere: poses are old, and bonds with them are gone."""
        self.stale.add(env)
        self.bonds.moved(self.data[env], env, bodies)

    def refresh(self) -> None:
        """Bring poses and contacts up to date where the state was written since the last step.

        Their forces are zero: they are known once physics has run.
        """
        for env in self.stale:
            mujoco.mj_fwdPosition(self._model_of(env, lane=0), self.data[env])
            self.data[env].efc_force[:] = 0.0
        self.stale.clear()

    def for_each(self, envs: Sequence[int], work: Callable[[int], None]) -> None:
        """Run `work` for each environment on all threads, this one too. Errors come back to the caller."""
        self._share(envs, lambda lane, env: work(env))

    def _share(self, envs: Sequence[int], work: Callable[[int, int], None]) -> None:
        """Run `work(lane, env)` for each environment; no two threads share a lane.

        The threads draw from one iterator (whose `next` is atomic), so that one which is done early takes over more.
        """
        waiting = iter(envs)

        def drain(lane: int) -> None:
            for env in waiting:
                work(lane, env)

        others = [self._pool.submit(drain, lane) for lane in range(1, min(self._threads, len(envs)))]
        try:
            drain(0)
        finally:
            wait(others)  # no thread may touch a world after this returns
        for other in others:
            other.result()

    def close(self) -> None:
        self._pool.shutdown()

    def _model_of(self, env: int, lane: int) -> mujoco.MjModel:
        """The lane's model, made that of one environment."""
        model = self._models[lane]
        if self.bonds.cups:
            self.bonds.load(model, env)
        return model

    def _step_singly(
        self, model: mujoco.MjModel, env: int, physics_steps: int, log_contacts: bool, bonding: bool
    ) -> None:
        data, log = self.data[env], self.contact_logs[env]
        log.clear()
        for substep in range(physics_steps):
            if self.ramping:
                self._set_moving_controls(env, (substep + 1) * model.opt.timestep)
            if bonding:
                self.bonds.before_step(model, data, env)
            mujoco.mj_step(model, data)
            if bonding:
                self.bonds.after_step(model, data, env)
            if log_contacts:
                log.record(data, substep)

    def _set_moving_controls(self, env: int, elapsed: float) -> None:
        low, high = self._control_limits
        self._views[env][0][:] = np.clip(self.ctrl[env] + elapsed * self.ramp[env], low, high) + self.lead[env]

    def _gather(self, env: int) -> None:
        _, qpos, qvel = self._views[env]
        self.qpos[env] = qpos
        self.qvel[env] = qvel


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
