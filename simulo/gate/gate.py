"""`CollisionGate`: nothing that the policy commands reaches physics before it has been checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from simulo.collision import ConvexShape, Kind, Primitives, VoxelGrid, build_model
from simulo.decision import GateDecision
from simulo.description import RobotDescription, load_description
from simulo.device import resolve_device
from simulo.errors import GateError
from simulo.gate.audit import Audit
from simulo.gate.body import LoneBody, SimulatedBody
from simulo.gate.declarations import Region
from simulo.gate.hands import Hands
from simulo.gate.primitives import SceneWorld, as_convex
from simulo.gate.rigid import any_pose_rows
from simulo.gate.session import Session
from simulo.gate.settings import GateSettings
from simulo.gate.sources import as_world
from simulo.gate.verdict import Verdict
from simulo.indexing import EnvIds, resolve_env_ids
from simulo.perception import DeploySimPerception
from simulo.pose import Pose
from simulo.props import Prop, Shape
from simulo.tensors import real_tensor

if TYPE_CHECKING:
    from simulo.env import LearningEnv

_COLLISIONS = (Kind.NON_FINITE, Kind.SELF, Kind.PAYLOAD, Kind.WORLD, Kind.NOT_EVALUATED)


def _described(robot: str | Path | RobotDescription) -> RobotDescription:
    if isinstance(robot, RobotDescription):
        return robot
    if not isinstance(robot, (str, Path)):
        raise GateError(f"robot must be a name, a robot's folder or its description, got {robot!r:.60}")
    return load_description(robot)


def _collisions(verdict: Verdict) -> list[int]:
    """Entries that were refused for what the robot does, not for want of a map."""
    return [i for i in (~verdict.clear).nonzero().flatten().tolist() if int(verdict.kind[i]) in _COLLISIONS]


class CollisionGate:
    """Checks every step's joint targets against the robot itself, what it holds, and the world.

    Give it to `LearningEnv(..., gate=...)`, or use it alone through `check`. What it does not know is refused.

    robot: a name of `simulo.list_robots()`, a folder, or a description. on_stop: "hold" replaces a refused
    environment's whole row by its last accepted targets (where it is measured, before any), "terminate" ends its
    episode with them, "report" only tells (but holds what is not a number). self_margin, world_margin [m]: a distance
    of a margin or less is refused. world: "voxels" (a map: see `set_world`), "primitives" (exact shapes: the scene's
    own props unless others are set) or "none". finger_model: "mimic", each finger's own geometry, or "swept", the old
    hull of a whole stroke, kept to compare with. horizon: the most rows of an action chunk (see
    `Robot.set_joint_position_chunk`); one that is refused in any row is refused whole. max_age [s]: an older map
    refuses. unknown: whether what no camera ever saw is "free" or "occupied": cells of the map that no ray has reached,
    and everything past the map's edges, so that a map must hold all that moves. When free, the verdict counts the cells
    in reach, and the bodies that reach past the edges.
    tracking_margin [m]: widens both margins for how far the robot strays from its commands. motion_check: the way to
    each configuration is certified too, straight in joint space from where the robot is measured. audit: a folder for
    one record of every stop in an environment, which `simulo check --replay` judges again. device: of a gate that is
    used alone; "auto" in an environment is the environment's.
    """

    def __init__(
        self,
        robot: str | Path | RobotDescription,
        on_stop: Literal["hold", "terminate", "report"] = "hold",
        self_margin: float = 0.0,
        world_margin: float = 0.005,
        world: Literal["voxels", "primitives", "none"] = "voxels",
        finger_model: Literal["mimic", "swept"] = "mimic",
        horizon: int = 1,
        motion_check: bool = False,
        max_age: float = 0.5,
        unknown: Literal["free", "occupied"] = "free",
        device: str = "auto",
        tracking_margin: float = 0.0,
        audit: str | Path | None = None,
    ) -> None:
        self.settings = GateSettings(
            on_stop,
            self_margin,
            world_margin,
            world,
            finger_model,
            horizon,
            motion_check,
            max_age,
            unknown,
            tracking_margin,
        )
        if not (audit is None or isinstance(audit, (str, Path))):
            raise GateError(f"audit must be a folder to write to, or None, got {audit!r:.60}")
        self.description = _described(robot)
        self.model = build_model(self.description, finger_model)
        self._device = device
        self._asked_for = None if device == "auto" else resolve_device(device)
        self._last: Verdict | None = None  # of an environment's steps
        self._audit = None if audit is None else Audit(audit)

    @cached_property
    def _session(self) -> Session:
        """Of the robot alone; `bind` puts an environment's in its place."""
        body = LoneBody(self.description, self.model, resolve_device(self._device))
        return Session(self.model, self.settings, body)

    @cached_property
    def _hands(self) -> Hands:
        return Hands(self._session, self.description, {})

    @property
    def num_envs(self) -> int:
        """1 for a gate that is used alone."""
        return self._session.body.num_envs

    @property
    def device(self) -> torch.device:
        return self._session.body.device

    # --- asking ------------------------------------------------------------------------------------------------------

    def check(
        self,
        q: Tensor | ArrayLike,
        base_pose: Pose | Tensor | ArrayLike | None = None,
        env_ids: EnvIds | None = None,
        links: str | None = None,
        world: bool = True,
        distances: bool = False,
        widen: float | Tensor = 0.0,
    ) -> Verdict:
        """Judge candidate configurations without touching anything.

        q [rad or m], columns in `description.joints` order (followers excluded): (dof,) for one environment; (M, dof)
        with env_ids of length M; (num_envs, dof); (num_envs, H, dof) for chunks of H rows. A gate without an
        environment takes any number of candidates. base_pose: the robot's base in its environment, one for all or
        (num_envs, 7); where it stands, when left out. links: ask only of one link, or of "gripper:<hand>", followers
        included. world=False leaves the world out. distances=True returns least distances instead of stopping at a
        bound above the margin. widen [m]: how much wider both margins are, one for all or (num_envs,): what a
        controller that the robot follows in q's stead leaves open (see `Residual.reach`). Numbers that are not finite
        stop their environment; shapes that do not fit raise ValueError.
        """
        for name, flag in (("world", world), ("distances", distances)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} must be True or False, got {flag!r:.60}")
        session = self._session
        candidates = real_tensor(q, "q").to(session.body.device, torch.float32)
        dof = self.model.num_joints
        if candidates.ndim == 1:
            candidates = candidates[None]
            env_ids = [0] if env_ids is None else env_ids
        if candidates.ndim not in (2, 3) or candidates.shape[-1] != dof or 0 in candidates.shape:
            raise ValueError(
                f"q must have shape (dof,), (M, dof) or (N, H, dof), got {tuple(candidates.shape)}; the dof = {dof} "
                f"columns are {', '.join(self.model.joint_names)}"
            )
        ids = self._entries(len(candidates), env_ids)
        base = session.body.base_pose()
        if base_pose is not None:
            base = any_pose_rows(base_pose, self.num_envs, "base_pose").to(base)
        session.refresh()
        wider = real_tensor(widen, "widen").to(base.device, torch.float32)
        if bool((wider < 0.0).any()):
            raise ValueError(f"widen must be >= 0 m, got {widen!r:.60}; margins are set when the gate is made")
        if tuple(wider.shape) not in ((), (1,), (self.num_envs,)):
            raise ValueError(f"widen must be one length or ({self.num_envs},) of them, got {tuple(wider.shape)}")
        wider = wider.expand(self.num_envs)
        return session.check(candidates.contiguous(), base, ids, links, world, distances, wider)

    def describe(self, env_id: int) -> str:
        """A sentence on one environment's part of the last step's verdict. Raises GateError before there was one."""
        if self._last is None:
            raise GateError("this gate has judged no step of an environment; `check` returns a verdict to describe")
        return self._last.describe(env_id)

    def set_configuration(self, q: ArrayLike | Tensor) -> None:
        """Where the robot is measured to be, shape (dof,): for a gate that is used alone and attaches objects."""
        body = self._session.body
        if not isinstance(body, LoneBody):
            raise GateError("this gate belongs to an environment, which measures the robot itself")
        body.place(q)

    # --- the world ---------------------------------------------------------------------------------------------------

    def set_world(self, world: VoxelGrid | Primitives | DeploySimPerception, stamp: Tensor | None = None) -> None:
        """Check against this from now on, and against nothing that was there before.

        world: of the kind that the gate was made for, with the gate's number of environments. A `VoxelGrid` (poses of
        its lattice in the environment's frame, cells in metres) is copied and ages from `stamp` on. `Primitives` (one
        list of named shapes, poses (num_envs, K, 7) in the environment's frame) are copied and do not age unless a
        stamp is given. A `DeploySimPerception` is asked for frames as they fall due, and tells its own age. stamp [s]:
        environment time at which the world was seen, float64, shape (num_envs,), not later than now; now, when left
        out. Make the gate with max_age=inf for a map that never changes.

        What a hand holds stays held: a primitive of its name is no obstacle, and a grid must not show it. A declared
        grasp ends where it named an object and the names are others now.
        Raises GateError for another kind or number of environments and stamps that are none, CollisionModelError for
        more shapes or larger ones than fit (64, of at most 256 vertices); the world is then as it was.
        """
        session = self._session
        now = torch.full((self.num_envs,), session.body.time, dtype=torch.float64, device=self.device)
        session.use_world(as_world(world, self.settings, now, stamp))
        self._hands.take_again()

    # --- what is held and what is allowed ----------------------------------------------------------------------------

    def attach(
        self,
        hand: str,
        shape: ConvexShape | Shape,
        pose: Pose | Tensor | ArrayLike,
        support: Region | None = None,
        env_ids: EnvIds | None = None,
        touch_links: Sequence[str] = (),
        object: str | Prop = "",
    ) -> None:
        """From now on a hand holds a shape: it is checked like a link, and what it filled in the world is free at once.

        hand: a name of the robot's grippers. shape: a prop's, or a `ConvexShape`. pose: the shape's frame in the hand
        link's frame, position [m] and wxyz: a Pose, (7,) for all or (M, 7). support: a box in which the payload, and
        only it, may touch what is there (see `declare_place`), until it has been clear of it once. env_ids: M of them,
        all when left out; empty for none. touch_links: links it may touch beside the hand's own fingers. object: its
        name in the world, when it has one (else what was declared to be grasped, or lies in its place, is it).

        Attaching an object that the hand holds already, by its name, says that it has moved in the hand: it is now at
        `pose`, and what was allowed to it stays. Cameras see a thing that slips unnoticed as an obstacle beside itself.
        Two hands that are given one object, by its name, hold it together: it is checked where either of them has it,
        and against no finger of theirs.

        Raises GateError, with nothing changed, where the hand holds as much as it can, for poses that are none, names
        that nothing in the world has, and where nobody knows where the hand is; CollisionModelError for hands and links
        that the robot lacks.
        """
        self._hands.attach(hand, shape, pose, support, env_ids, touch_links, object)

    def detach(self, hand: str, env_ids: EnvIds | None = None) -> None:
        """A hand lets go of all it holds: each object is an obstacle again where it now is.

        env_ids: all when left out; those in which the hand holds nothing are left alone. The fingers still touch what
        they let go: declare a grasp for as long as they open, or, where another hand holds on, open them before. Raises
        CollisionModelError for a hand that the robot lacks.
        """
        self._hands.detach(hand, env_ids)

    def declare_grasp(
        self,
        hand: str,
        pose: Pose | Tensor | ArrayLike,
        size: ArrayLike,
        duration: float,
        object: str | Prop | Shape | None = None,
        env_ids: EnvIds | None = None,
    ) -> None:
        """For `duration` [s], the hand's fingers may touch what lies in a box. Declare it when closing begins.

        Exempt are the hand's jaws and every link that moves with them, from cells whose centre lies in the box, from
        primitives wholly in it, and from the named object wherever it is. All other links stay checked, and so do the
        fingers against everything else.

        hand: a name of the robot's grippers. pose: of the box's centre in the environment's frame, position [m] and
        wxyz: a Pose, (7,) for all or (M, 7). size [m]: full edges, three. duration: finite and positive. object: what
        is grasped, by name (of a prop or primitive), prop or shape; the box may exceed its box by a cell on each side
        and no more. Without it, no edge may exceed the open hand's aperture plus a cell on each side. env_ids: M of
        them, all when left out; a hand has one grasp at a time in each.

        Raises GateError, with nothing changed, for boxes that are too large or none, for durations that do not end and
        for names that nothing in the world has; CollisionModelError for a hand that the robot lacks.
        """
        self._hands.declare_grasp(hand, pose, size, duration, object, env_ids)

    def declare_place(
        self, region: Region, duration: float, hand: str | None = None, env_ids: EnvIds | None = None
    ) -> None:
        """For `duration` [s], what a hand holds may touch what lies in a box; nothing else may.

        Exempt are cells whose centre lies in the box, and primitives wholly in it. It ends early once the payload has
        been a margin and a cell diagonal clear of the box. region: pose in the environment's frame (one or (M, 7)) and
        full edges [m]. duration: finite and positive. hand: one, or every hand that holds something. env_ids: M of
        them, all when left out; empty for none.

        Raises GateError where the hand holds nothing in all of them, and for regions and durations that are none;
        CollisionModelError for a hand that the robot lacks.
        """
        self._hands.declare_place(region, duration, hand, env_ids)

    # --- called by the environment: see `simulo.env.Gate` ------------------------------------------------------------

    def bind(self, env: LearningEnv) -> None:
        """Take an environment's robot and scene. Raises GateError where the model is not the simulator's robot."""
        if self._asked_for not in (None, env.device):
            raise GateError(
                f"this gate was made for device {str(self._asked_for)!r} and the environment runs on "
                f"{str(env.device)!r}; give both the same, or leave the gate's out"
            )
        body = SimulatedBody(env, self.model)
        body.refuse_other_model(self.description)
        self._body = body
        self._session = Session(self.model, self.settings, body)
        props = {name: as_convex(prop.shape) for name, prop in env.scene.props.items()}
        self._hands = Hands(self._session, self.description, props)
        self._nobody = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
        if self.settings.world == "primitives":
            self._session.use_world(SceneWorld(env.scene.props, env.num_envs, env.device))
        self._last = self._session.check(body.joint_positions(), body.base_pose(), None, None, True, False)

    def filter(self, env: LearningEnv) -> GateDecision:
        """Judge the buffered commands of every environment, with the targets announced after them, and take back those
        that are refused. Raises GateError where more rows were announced than the gate's horizon holds."""
        session, robot = self._session, self._body.robot
        session.refresh()
        quick = session.check_step() if self._audit is None else None
        verdict, all_clear = (self._check_commands(), None) if quick is None else quick
        self._last = verdict
        if all_clear:
            robot.accept_commands(None)
            return GateDecision(verdict, self._nobody)
        # Physics can have no target that is not a number, so even "report" holds those.
        passed = verdict.kind != int(Kind.NON_FINITE) if self.settings.on_stop == "report" else verdict.clear
        robot.accept_commands(passed)
        if bool(passed.all()):
            return GateDecision(verdict, self._nobody)
        refused = ~passed
        robot.restore_commands(refused)
        return GateDecision(verdict, refused if self.settings.on_stop == "terminate" else self._nobody)

    def _check_commands(self) -> Verdict:
        """The verdict on the buffered commands and the targets announced after them, whatever they are."""
        session, robot = self._session, self._body.robot
        commanded = robot.commanded_chunk()
        if commanded.shape[1] > self.settings.horizon:
            raise GateError(
                f"the task commands a chunk of {commanded.shape[1]} rows, and this gate looks {self.settings.horizon} "
                f"ahead; make it with CollisionGate(..., horizon={commanded.shape[1]})"
            )
        slack = robot.command_slack if robot.is_loosened else None
        verdict = session.check(commanded, session.body.base_pose(), None, None, True, False, slack)
        if not robot.positions_only:
            verdict = replace(verdict, by_effort=robot.driven_by_effort(), joint_names=self.model.joint_names)
        if self._audit is not None:
            self._audit.note(session, self.settings, verdict, commanded)
        return verdict

    def reset(self, env_ids: Tensor) -> None:
        """Forget what was declared, held and seen in these environments."""
        self._session.forget(env_ids)
        self._hands.forget(env_ids)
        if self._audit is not None:
            self._audit.forget(env_ids)

    def check_reset(self, env: LearningEnv, env_ids: Tensor) -> None:
        """Look at the world anew and judge the configuration that new episodes start in. GateError on a collision."""
        session = self._session
        session.world.look()
        session.refresh()
        start = session.body.joint_positions()[env_ids].contiguous()
        verdict = session.check(start, session.body.base_pose(), env_ids, None, True, False)
        wrong = _collisions(verdict)
        if not wrong and not bool(verdict.clear.all()):
            # A map that is missing or stale outranks what the robot does to itself, and would hide it.
            verdict = session.check(start, session.body.base_pose(), env_ids, None, False, False)
            wrong = _collisions(verdict)
        if wrong:
            raise GateError(
                f"{len(wrong)} of {len(verdict)} environments start in a configuration that the gate refuses: "
                f"{verdict.describe(wrong[0])}; change the initial pose, or move what is in the way in reset_idx"
            )

    # --- private -----------------------------------------------------------------------------------------------------

    def _entries(self, count: int, env_ids: EnvIds | None) -> Tensor | None:
        """Environment of each of `count` candidates; None stands for every environment in order."""
        if env_ids is not None:
            ids = resolve_env_ids(env_ids, self.num_envs, self.device)
            if len(ids) != count:
                raise ValueError(f"q has {count} candidates, env_ids {len(ids)}; there must be one id for each")
            return ids
        if count == self.num_envs:
            return None
        if isinstance(self._session.body, LoneBody):
            return torch.zeros(count, dtype=torch.int64, device=self.device)
        raise ValueError(f"q has {count} candidates for {self.num_envs} environments; pass env_ids, one for each")
