"""A robot in a scene: declared in `build`, commanded and read after it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from simulo.binding import Binding, RobotState
from simulo.commands import CommandMode, JointCoupling
from simulo.description import RobotDescription, load_description
from simulo.handles import Articulation, CommandLatch, LivePositions, SurfaceTool
from simulo.indexing import EnvIds, resolve_env_ids, resolve_joint_ids
from simulo.names import match_names
from simulo.pose import Pose, checked_pose
from simulo.tensors import real_rows, real_tensor


class Robot:
    """A robot of the registry (or of a description's path), its base fixed, or floating where its model's is.

    asset: a name of `simulo.list_robots()`, a folder with robot.yaml, or a loaded description. initial_pose: of the
    base in the environment's frame. initial_joint_positions: joint name to [rad or m]; joints left out start in the
    description's rest pose.
    gravity_compensation: the controller cancels the robot's own weight, as real ones do; nothing bears that of a
    floating base. refuses_bad_commands: False,
    set by an environment that does not validate actions, has actuators turn a command that is not finite into targets
    that are not, for a gate to stop that environment alone.
    """

    def __init__(
        self,
        asset: str | RobotDescription,
        initial_pose: Pose | None = None,
        initial_joint_positions: Mapping[str, float] | None = None,
        gravity_compensation: bool = True,
    ):
        self.description = asset if isinstance(asset, RobotDescription) else load_description(asset)
        self.initial_pose = checked_pose(initial_pose, "Robot(initial_pose=...)")
        self.gravity_compensation = gravity_compensation
        self.refuses_bad_commands = True
        self.name = ""
        self._tools: list[SurfaceTool] = []
        self._coupling = JointCoupling.of(self.description)
        self._initial = self._rest_positions(initial_joint_positions or {})
        self._known_columns: dict[range | tuple, Tensor] = {}
        self._bound: Binding | _Unattached = _Unattached()

    # --- names -------------------------------------------------------------------------------------------------------

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The actuated joints in the description's order, then the mimic joints."""
        return self.description.joint_names + tuple(joint.name for joint in self.description.mimic_joints)

    @property
    def num_actuated(self) -> int:
        """How many leading columns of `joint_names` take commands."""
        return len(self.description.joints)

    @property
    def link_names(self) -> tuple[str, ...]:
        return self.description.links

    @property
    def coupling(self) -> JointCoupling:
        """How the mimic joints hang on their leaders."""
        return self._coupling

    def find_joints(self, pattern: str) -> list[int]:
        """Columns of the joints that `pattern` names exactly or matches whole as a regex, mimic joints included.

        Raises ValueError, listing the robot's joints, when there are none.
        """
        return match_names(pattern, self.joint_names, f"robot {self.description.name!r}", "joint")

    def find_links(self, pattern: str) -> list[int]:
        """Indices into `link_names`; the rules of `find_joints`."""
        return match_names(pattern, self.link_names, f"robot {self.description.name!r}", "link")

    # --- life --------------------------------------------------------------------------------------------------------

    def add_actuator(self, gripper: SurfaceTool, attach_to: str) -> None:
        """Put a surface gripper on the link named `attach_to`; what resets the robot resets it too. Call it in build.

        Raises ValueError for what is no link, TypeError for an actuator that is no part of the scene.
        """
        if not isinstance(gripper, SurfaceTool):
            raise TypeError(
                f"add_actuator takes a surface gripper, not {type(gripper).__name__}: a parallel gripper drives joints "
                "that the robot has already, so build it in on_start from the robot"
            )
        if self.is_attached:
            raise RuntimeError(f"robot {self.name!r}: the scene is built already; add every actuator in build")
        if attach_to not in self.link_names:
            raise ValueError(
                f"a surface gripper cannot hang on {attach_to!r}, which is no rigid body of robot "
                f"{self.description.name!r}; its links are {list(self.link_names)}"
            )
        gripper.mount(self, attach_to)
        self._tools.append(gripper)

    @property
    def surface_tools(self) -> tuple[SurfaceTool, ...]:
        """What `add_actuator` put on this robot."""
        return tuple(self._tools)

    @property
    def is_attached(self) -> bool:
        return isinstance(self._bound, Binding)

    def attach(self, articulation: Articulation, control_dt: float) -> None:
        """Called once by the environment that builds the scene. control_dt [s]: how long one command is held."""
        if self.is_attached:
            raise RuntimeError(f"robot {self.name!r} already belongs to an environment; declare a new one in build")
        self._bound = Binding(articulation, control_dt, self._coupling, bool(self._tools))

    @property
    def state(self) -> RobotState:
        """Raises RuntimeError before the environment is built."""
        return RobotState(self._attached.articulation)

    @property
    def num_envs(self) -> int:
        return self._attached.articulation.num_envs

    @property
    def device(self) -> torch.device:
        return self._attached.articulation.device

    @property
    def physics_tick(self) -> int:
        """Advances with physics: readings at one tick are one sample."""
        return self._attached.articulation.physics_tick

    @property
    def joint_limits(self) -> Tensor:
        """Lower and upper [rad or m], shape (num_joints, 2); infinite where there is none."""
        actuated = [(joint.lower, joint.upper) for joint in self.description.joints]
        limits = torch.tensor(actuated, dtype=torch.float32).reshape(-1, 2)
        follower = self._coupling.extend(limits.T).T
        return torch.stack([follower.amin(dim=1), follower.amax(dim=1)], dim=1)

    def contact_forces(self, prop: str) -> tuple[Tensor, Tensor]:
        """How each link presses on the named prop, at the last physics step.

        Returns the summed normal force [N], shape (num_envs, num_links), and the sum of the force vectors [N] on the
        prop in the environment's frame, shape (num_envs, num_links, 3).
        """
        return self._attached.articulation.contact_forces(prop)

    def reset(self, env_ids: EnvIds | None = None) -> None:
        """Initial joint positions, at rest, targets with them, surface grippers open. None means all environments,
        empty means none."""
        ids = resolve_env_ids(env_ids, self.num_envs)
        positions = self._coupling.extend(self._initial.expand(len(ids), -1))
        self._attached.write_state(positions, torch.zeros_like(positions), ids)
        for tool in self._tools:
            tool.reset(ids)

    def set_joint_positions(self, values: Tensor | ArrayLike, env_ids: EnvIds | None = None) -> None:
        """Teleport the actuated joints [rad or m], (num_actuated,) or (M, num_actuated), at rest; targets follow."""
        ids = resolve_env_ids(env_ids, self.num_envs)
        positions = real_rows(values, len(ids), self.num_actuated, "joint positions")
        if not torch.isfinite(positions).all():
            raise ValueError(f"robot {self.name!r}: joint positions to set are not finite")
        positions = self._coupling.extend(positions)
        self._attached.write_state(positions, torch.zeros_like(positions), ids)

    # --- commands ----------------------------------------------------------------------------------------------------

    @property
    def joint_position_targets(self) -> Tensor:
        """The buffered position targets [rad or m], shape (num_envs, num_joints): live, written through the setters."""
        return self._attached.commands.position

    def set_joint_position_target(
        self, values: Tensor | ArrayLike, joint_ids: EnvIds | None = None, env_ids: EnvIds | None = None
    ) -> None:
        """Buffer position targets [rad or m]; the environment hands them over once per step.

        values: shape (K,), broadcast over environments, or (M, K), for K joint_ids and M env_ids. Without joint_ids,
        K is num_actuated, or num_joints with the followers in. A follower's target must come with its leader's and
        agree with it, since only the leader is driven: ValueError names the leader.
        """
        bound = self._attached
        if joint_ids is None:
            width = np.shape(values)[-1] if np.ndim(values) else self.num_actuated
            joint_ids = range(len(self.joint_names) if width == len(self.joint_names) else self.num_actuated)
        columns = self._columns(joint_ids)
        driven = columns < self.num_actuated
        bound.articulation.check_mode(CommandMode.POSITION, columns[driven].tolist())
        ids = resolve_env_ids(env_ids, self.num_envs)
        rows = real_rows(values, len(ids), len(columns), "position targets")
        if not driven.all():
            self._coupling.check_followers(rows, columns, self.joint_names)
            rows, columns = rows[:, driven], columns[driven]
        bound.commands.write(CommandMode.POSITION, rows, columns, ids)
        bound.commands.position[:, self.num_actuated :] = self._coupling.follow(bound.commands.position)

    def set_joint_position_chunk(
        self, values: Tensor | ArrayLike, joint_ids: EnvIds | None = None, env_ids: EnvIds | None = None
    ) -> None:
        """Buffer the first row of a chunk of position targets, and announce the others: (H, K) or (M, H, K).

        The rows after the first are where the task means to go in the steps after this one. A gate judges them with it
        (its horizon must reach) and refuses the chunk whole; otherwise they do nothing, and are forgotten after the
        step: what is still meant, the next call says again. joint_ids: actuated joints, all when left out.
        """
        ids = resolve_env_ids(env_ids, self.num_envs)
        columns = self._columns(range(self.num_actuated) if joint_ids is None else joint_ids)
        chunk = real_tensor(values, "a chunk of joint position targets").to(torch.float32)
        if chunk.ndim not in (2, 3) or chunk.shape[-1] != len(columns) or 0 in chunk.shape[-2:]:
            raise ValueError(f"a chunk for {len(columns)} joints is (H, K) or (M, H, K), got {tuple(chunk.shape)}")
        if chunk.ndim == 3 and len(chunk) != len(ids):
            raise ValueError(f"the chunk has {len(chunk)} environments and {len(ids)} are commanded")
        self._refuse_followers(columns)
        rows = chunk.expand(len(ids), *chunk.shape[-2:])
        self.set_joint_position_target(rows[:, 0], joint_ids=columns, env_ids=ids)
        if rows.shape[1] > 1:
            self._attached.coming.announce(rows[:, 1:], columns, ids)

    def set_joint_velocity_target(
        self, values: Tensor | ArrayLike, joint_ids: EnvIds | None = None, env_ids: EnvIds | None = None
    ) -> None:
        """Buffer velocity targets [rad/s or m/s], shapes as for positions. On position servos the target position
        travels at this velocity from the measured one. BackendError where a joint cannot be driven so."""
        self._set_other(CommandMode.VELOCITY, values, joint_ids, env_ids)

    def set_joint_effort_target(
        self, values: Tensor | ArrayLike, joint_ids: EnvIds | None = None, env_ids: EnvIds | None = None
    ) -> None:
        """Buffer efforts [N m or N], shapes as for positions. BackendError where a joint has no force actuator."""
        self._set_other(CommandMode.EFFORT, values, joint_ids, env_ids)

    def _set_other(self, mode: CommandMode, values, joint_ids: EnvIds | None, env_ids: EnvIds | None) -> None:
        bound = self._attached
        ids = resolve_env_ids(env_ids, self.num_envs)
        columns = self._columns(range(self.num_actuated) if joint_ids is None else joint_ids)
        self._refuse_followers(columns)
        bound.articulation.check_mode(mode, columns.tolist())
        rows = real_rows(values, len(ids), len(columns), f"{mode.name.lower()} targets")
        bound.commands.write(mode, rows, columns, ids)

    def _refuse_followers(self, columns: Tensor) -> None:
        for column in columns[columns >= self.num_actuated].tolist():
            leader = self.joint_names[self._coupling.leader[column - self.num_actuated]]
            raise ValueError(
                f"joint {self.joint_names[column]!r} follows {leader!r} and takes no command; drive {leader!r}"
            )

    def commanded_chunk(self) -> Tensor:
        """`commanded_positions`, and the rows that were announced after them, shape (num_envs, H, num_actuated)."""
        bound = self._attached
        return bound.coming.after(self.commanded_positions(), bound.position_limits)

    def loosen(self, metres: Tensor, env_ids: EnvIds | None = None) -> None:
        """Say that in this step the robot may end `metres` [m], shape (M,), from where its targets would have it.

        For a robot that follows something else, such as a pose, for which its joint targets stand in: a gate keeps that
        much more distance. It is forgotten after the step.
        """
        ids = resolve_env_ids(env_ids, self.num_envs)
        slack = self._attached.slack
        slack[ids] = torch.maximum(slack[ids], metres.to(slack))
        self._attached.loosened = True

    @property
    def is_loosened(self) -> bool:
        """Whether anything was loosened in this step."""
        return self._attached.loosened

    @property
    def command_slack(self) -> Tensor:
        """How much was loosened in this step [m], shape (num_envs,)."""
        return self._attached.slack

    @property
    def positions_only(self) -> bool:
        """Whether no joint was ever driven by velocity or effort."""
        return self._attached.commands.positions_only

    def driven_by_effort(self) -> Tensor:
        """Which actuated joints are under effort, and so judged where measured; bool, (num_envs, num_actuated)."""
        return self._attached.commands.mode == CommandMode.EFFORT

    def commanded_positions(self) -> Tensor:
        """Where the buffered commands will send the actuated joints, shape (num_envs, num_actuated).

        Position and velocity targets after the simulator's own clamp, the latter carried on for one control step from
        the measured positions; joints under effort where they are measured. NaN where what is commanded, be it an
        effort, is not finite.
        """
        return self._attached.commanded_positions()

    @property
    def commands_positions_alone(self) -> bool:
        """Whether `joint_position_targets` are all that is commanded: neither velocities nor efforts, no targets of
        later steps, and nothing loosened."""
        bound = self._attached
        return bound.commands.positions_only and not bound.loosened and not bound.coming

    @property
    def target_limits(self) -> Tensor:
        """The simulator's own clamp of position targets [rad or m], shape (num_actuated, 2); infinite where none."""
        return self._attached.position_limits

    @property
    def spoiled(self) -> Tensor:
        """Where targets count as not finite, bool, shape (num_envs,), live: see `spoil_commands`."""
        return self._attached.spoiled

    def live_positions(self) -> LivePositions | None:
        """The simulator's own memory of joint positions, for kernels to read; None where it keeps none on `device`."""
        return self._attached.articulation.live_positions()

    def flush(self) -> None:
        """Hand the buffered targets to the simulator. Raises ValueError for a command that is not finite."""
        bound = self._attached
        if self._tools and bound.spoiled.any():
            raise ValueError(
                f"robot {self.name!r}: a surface gripper's command in environment {int(bound.spoiled.nonzero()[0])} is "
                "not finite; a collision gate stops such an environment instead"
            )
        wrong = bound.commands.not_finite()
        if wrong.any():
            env, column = (int(v) for v in wrong.nonzero()[0])
            raise ValueError(
                f"robot {self.name!r}: the target of joint {self.joint_names[column]!r} in environment {env} is not "
                "finite; a collision gate stops such an environment instead"
            )
        bound.articulation.write_commands(bound.commands)
        bound.end_step()
        for tool in self._tools:
            tool.flush()

    # --- what a gate needs to refuse a command -----------------------------------------------------------------------

    def spoil_commands(self, envs: Tensor) -> None:
        """Have the targets of these environments, bool (num_envs,), count as not finite until they are restored.

        For an actuator that drives no joint, whose command was not finite: whatever joint targets come after it.
        """
        self._attached.spoiled |= envs

    def add_latch(self, latch: CommandLatch) -> None:
        """Have an actuator's memory accepted and restored together with the targets it writes."""
        self._attached.latches.append(latch)

    @property
    def latches(self) -> tuple[CommandLatch, ...]:
        """The actuators that have joined this robot: a gate asks them which hands are closed."""
        return tuple(self._attached.latches)

    @property
    def num_latches(self) -> int:
        """How many there are of `latches`."""
        return len(self._attached.latches)

    @property
    def has_accepted_commands(self) -> Tensor:
        """Where a gate has let commands through since the last reset or teleport, bool, shape (num_envs,), live."""
        return self._attached.has_accepted

    def accept_commands(self, envs: Tensor | None) -> None:
        """Remember the buffered commands of these environments, bool (num_envs,), or of all (None), as the last
        accepted ones.

        Of a velocity, what was accepted is the place that it leads to in this step: there a refused robot waits.
        """
        self._attached.accept(envs)

    def restore_commands(self, envs: Tensor) -> None:
        """Replace the buffered commands of these environments, bool (num_envs,), by the last accepted ones.

        Before any were accepted, that is to stay where the robot is measured. Actuators take their latches back.
        """
        self._attached.restore(envs)

    # --- private -----------------------------------------------------------------------------------------------------

    def _columns(self, joint_ids: EnvIds) -> Tensor:
        """Joint ids as a tensor, shape (K,); remembered for a range or a tuple, which controllers repeat every step."""
        if not isinstance(joint_ids, (range, tuple)):
            return resolve_joint_ids(joint_ids, len(self.joint_names))
        if joint_ids not in self._known_columns:
            self._known_columns[joint_ids] = resolve_joint_ids(joint_ids, len(self.joint_names))
        return self._known_columns[joint_ids]

    @property
    def _attached(self) -> Binding:
        if isinstance(self._bound, _Unattached):
            raise RuntimeError(
                f"robot {self.description.name!r} is not attached to a simulation yet: read and command it in on_start "
                "or later, not in build"
            )
        return self._bound

    def _rest_positions(self, chosen: Mapping[str, float]) -> Tensor:
        positions = torch.as_tensor(np.array(self.description.rest_pose), dtype=torch.float32)
        names = self.description.joint_names
        for name, value in chosen.items():
            if name not in names:
                raise ValueError(f"initial_joint_positions names {name!r}; the robot's joints are {list(names)}")
            joint = self.description.joints[names.index(name)]
            if not joint.lower - 1e-6 <= value <= joint.upper + 1e-6:
                raise ValueError(f"initial position {value} of {name!r} is outside [{joint.lower}, {joint.upper}]")
            positions[names.index(name)] = value
        return positions


class _Unattached:
    """Stands in for the binding before an environment builds the robot."""
