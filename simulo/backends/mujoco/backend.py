"""The MuJoCo backend: builds a scene, steps it, and hands out its parts."""

from __future__ import annotations

import torch
from torch import Tensor

from simulo.backends.base import BackendOptions, Capability, Contacts
from simulo.backends.mujoco.articulation import Clock, MujocoArticulation
from simulo.backends.mujoco.bodies import MujocoBodies
from simulo.backends.mujoco.bonds import MujocoBonds
from simulo.backends.mujoco.builder import CompiledScene, compile_scene
from simulo.backends.mujoco.contacts import collect
from simulo.backends.mujoco.worlds import Worlds
from simulo.errors import BackendError
from simulo.scene import Scene


class MujocoBackend:
    """See `simulo.backends.base.Backend`. `model` and `data[i]` are MuJoCo's own, for whoever needs more."""

    name = "mujoco"
    capabilities = frozenset(
        {
            Capability.VELOCITY_TARGETS,
            Capability.EFFORT_TARGETS,
            Capability.GRAVITY_COMPENSATION,
            Capability.SUBSTEP_CONTACTS,
            Capability.DEPTH_WITHOUT_DISPLAY,
            Capability.BITWISE_DETERMINISM,
            Capability.SURFACE_GRIPPERS,
        }
    )

    @staticmethod
    def capabilities_on(device: torch.device) -> frozenset[Capability]:
        return MujocoBackend.capabilities if device.type == "cpu" else frozenset()

    def __init__(self, scene: Scene, options: BackendOptions):
        if options.device.type != "cpu":
            raise BackendError(
                f"backend 'mujoco' computes on the CPU, not on {options.device}; pass device='cpu' "
                "(a gate may still use the GPU)"
            )
        self.num_envs = options.num_envs
        self.device = options.device
        self.physics_dt = options.physics_dt
        self.watch_contacts = False
        compiled = compile_scene(scene, options.physics_dt)
        self.model = compiled.model
        self.body_names = compiled.body_names
        prop_bodies = [addresses.body for addresses in compiled.props.values()]
        self._worlds = Worlds(compiled.model, options.num_envs, compiled.cups, prop_bodies)
        self._clock = Clock()
        self._contacts_logged = False
        self._attach(scene, compiled, options.physics_dt * options.physics_steps_per_action)

    @property
    def data(self):
        """MuJoCo's MjData of each environment, up to date. What is written to one is simulo's to overwrite."""
        self._worlds.refresh()
        return self._worlds.data

    def step(self, physics_steps: int) -> Tensor:
        self._contacts_logged = self.watch_contacts
        failed = self._worlds.step(physics_steps, log_contacts=self.watch_contacts)
        self._clock.tick += physics_steps
        return torch.from_numpy(failed)

    def reset(self, env_ids: Tensor) -> None:
        self._worlds.reset(env_ids.tolist())

    def contacts(self) -> Contacts:
        if not self._contacts_logged:
            raise BackendError("the last step recorded no contacts; set backend.watch_contacts = True before stepping")
        return collect(self._worlds.contact_logs, self.model.geom_bodyid, self.body_names)

    def close(self) -> None:
        self._worlds.close()

    def _attach(self, scene: Scene, compiled: CompiledScene, control_dt: float) -> None:
        prop_bodies = {name: addresses.body for name, addresses in compiled.props.items()}
        for name, robot in scene.robots.items():
            addresses = compiled.robots[name]
            robot.attach(MujocoArticulation(self._worlds, addresses, prop_bodies, robot, self._clock), control_dt)
        for place, (name, prop) in enumerate(scene.props.items()):
            prop.attach(MujocoBodies(self._worlds, compiled.props[name], place))
        tools = [tool for robot in scene.robots.values() for tool in robot.surface_tools]
        for place, tool in enumerate(tools):
            tool.attach(MujocoBonds(self._worlds.bonds, place, self._worlds.data, prop_bodies))
        if scene.cameras:
            from simulo.backends.mujoco.depth import RayCaster  # here, so that only cameras start Warp

            caster = RayCaster(self._worlds)
            for camera in scene.cameras.values():
                camera.attach(caster)
        scene.reset()
