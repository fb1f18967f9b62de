"""N copies of MuJoCo's changing data beside one constant model, and the threads that step them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import mujoco
import numpy as np
from numpy.typing import NDArray

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
    An environment's outcome depends on nothing but its own rows, whichever thread steps it.
    """

    def __init__(self, model: mujoco.MjModel, count: int):
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
        self._pool = ThreadPoolExecutor(max(1, self._threads - 1), "simulo-mujoco")  # starts threads when first used

    def step(self, physics_steps: int, log_contacts: bool) -> NDArray[np.bool_]:
        """Advance every environment. Returns where the engine warned that the world is no longer sound, shape (N,)."""
        failed = np.zeros(self.count, dtype=bool)

        def advance(env: int) -> None:
            data = self.data[env]
            self._views[env][0][:] = self.ctrl[env]
            if log_contacts or self.ramping:
                self._step_singly(env, physics_steps, log_contacts)
            else:
                mujoco.mj_step(self.model, data, physics_steps)
            failed[env] = self._warnings[env][_FATAL].any()
            mujoco.mj_kinematics(self.model, data)
            self._gather(env)

        self.for_each(range(self.count), advance)
        self.stale.clear()
        return failed

    def reset(self, envs: Sequence[int]) -> None:
        """Forget velocities, controls, applied forces and the solver's warm start: an episode starts from nothing."""
        for env in envs:
            mujoco.mj_resetData(self.model, self.data[env])
            self.ctrl[env] = self.ramp[env] = self.lead[env] = 0.0
            self.contact_logs[env].clear()
            self._gather(env)
            self.stale.add(env)

    def refresh(self) -> None:
        """Bring poses and contacts up to date where the state was written since the last step.

        Their forces are zero: they are known once physics has run.
        """
        for env in self.stale:
            mujoco.mj_fwdPosition(self.model, self.data[env])
            self.data[env].efc_force[:] = 0.0
        self.stale.clear()

    def for_each(self, envs: Sequence[int], work: Callable[[int], None]) -> None:
        """Run `work` for each environment on all threads, this one too. Errors come back to the caller.

        The threads draw from one iterator (whose `next` is atomic), so that one which is done early takes over more.
        """
        waiting = iter(envs)

        def drain() -> None:
            for env in waiting:
                work(env)

        helpers = [self._pool.submit(drain) for _ in range(min(self._threads, len(envs)) - 1)]
        try:
            drain()
        finally:
            wait(helpers)  # no thread may touch a world after this returns
        for helper in helpers:
            helper.result()

    def close(self) -> None:
        self._pool.shutdown()

    def _step_singly(self, env: int, physics_steps: int, log_contacts: bool) -> None:
        model, data, log = self.model, self.data[env], self.contact_logs[env]
        log.clear()
        for substep in range(physics_steps):
            if self.ramping:
                self._set_moving_controls(env, (substep + 1) * model.opt.timestep)
            mujoco.mj_step(model, data)
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
