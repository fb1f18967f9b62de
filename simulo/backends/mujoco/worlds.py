"""N copies of MuJoCo's changing data beside one constant model, and the threads that step them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

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
    targets. An environment's outcome depends on nothing but its own rows, whichever thread steps it.
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
        self.contact_logs = [ContactLog(model) for _ in range(count)]
        self._views = [(d.ctrl, d.qpos, d.qvel) for d in self.data]
        self._warnings = [d.warning.number for d in self.data]  # live counts, which a reset clears
        self._threads = min(
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, count
        )
        self._pool = ThreadPoolExecutor(self._threads - 1, "simulo-mujoco") if self._threads > 1 else _NoPool()

    def step(self, physics_steps: int, log_contacts: bool) -> NDArray[np.bool_]:
        """Advance every environment. Returns where the engine warned that the world is no longer sound, shape (N,)."""
        failed = np.zeros(self.count, dtype=bool)

        def advance(env: int) -> None:
            data = self.data[env]
            if log_contacts or self.ramping:
                self._step_singly(env, physics_steps, log_contacts)
            else:
                self._views[env][0][:] = self.ctrl[env]
                mujoco.mj_step(self.model, data, physics_steps)
            failed[env] = self._warnings[env][_FATAL].any()
            mujoco.mj_kinematics(self.model, data)
            self._gather(env)

        self.for_each(range(self.count), advance)
        return failed

    def reset(self, envs: Sequence[int]) -> None:
        """Forget velocities, controls, applied forces and the solver's warm start: an episode starts from nothing."""
        for env in envs:
            mujoco.mj_resetData(self.model, self.data[env])
            self.ctrl[env] = self.ramp[env] = self.lead[env] = 0.0
            self.contact_logs[env].clear()
            self._gather(env)

    def settle(self, envs: Sequence[int]) -> None:
        """Poses and contacts of a state that was written."""
        for env in envs:
            mujoco.mj_fwdPosition(self.model, self.data[env])
            self._gather(env)

    def for_each(self, envs: Sequence[int], work: Callable[[int], None]) -> None:
        """Run `work` for each environment, spread over the threads in equal blocks. Errors come back to the caller."""
        blocks = [block for block in np.array_split(np.asarray(envs, dtype=np.int64), self._threads) if len(block)]

        def run(block: NDArray[np.int64]) -> None:
            for env in block.tolist():
                work(env)

        pending = [self._pool.submit(run, block) for block in blocks[1:]]
        try:
            if blocks:
                run(blocks[0])
        finally:
            for future in pending:
                future.exception()  # wait: no thread may touch a world after this returns
        for future in pending:
            future.result()

    def close(self) -> None:
        self._pool.shutdown()

    def _step_singly(self, env: int, physics_steps: int, log_contacts: bool) -> None:
        model, data, log = self.model, self.data[env], self.contact_logs[env]
        control = self._views[env][0]
        low, high = np.where(model.actuator_ctrllimited[:, None], model.actuator_ctrlrange, [-np.inf, np.inf]).T
        log.clear()
        for substep in range(physics_steps):
            elapsed = (substep + 1) * model.opt.timestep
            control[:] = np.clip(self.ctrl[env] + elapsed * self.ramp[env], low, high) + self.lead[env]
            mujoco.mj_step(model, data)
            if log_contacts:
                log.record(data, substep)

    def _gather(self, env: int) -> None:
        _, qpos, qvel = self._views[env]
        self.qpos[env] = qpos
        self.qvel[env] = qvel


class _NoPool:
    """A pool for one thread: the caller does all the work."""

    def submit(self, *_: object):
        raise AssertionError("one thread makes one block, which the caller runs")

    def shutdown(self) -> None: ...
