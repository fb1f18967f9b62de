"""The scene: what a task declares in `build`, under names, before any physics exists."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from simulo.handles import SurfaceTool
from simulo.indexing import EnvIds
from simulo.props import Prop, Shape
from simulo.robot import Robot
from simulo.sensors import DepthCamera

WORLD = "/World/"


@dataclass(frozen=True)
class ScenePrimitive:
    """One prop as an exact obstacle.

    pose: position [m], quaternion wxyz in the environment's frame, shape (num_envs, 7).
    present: bool, shape (num_envs,); an absent prop is in no environment's world.
    """

    name: str
    shape: Shape
    fixed: bool
    pose: Tensor
    present: Tensor


class Scene:
    """Robots, props, cameras and surface grippers by name: the path given to `add`, without its leading "/World/"."""

    def __init__(self) -> None:
        self.robots: dict[str, Robot] = {}
        self.props: dict[str, Prop] = {}
        self.cameras: dict[str, DepthCamera] = {}
        self.grippers: dict[str, SurfaceTool] = {}
        self._closed = False

    def add(self, item: Robot | Prop | DepthCamera | SurfaceTool, at: str, per_environment: bool = True) -> None:
        """Declare `item` under the path `at`, such as "/World/Cube".

        A surface gripper goes below the link that carries it, such as "/World/Robot/wrist/Cup".
        per_environment=False declares one that all environments share, which only a fixed prop can be.
        Raises ValueError for a path that is taken or malformed, TypeError for what is not an item of a scene.
        """
        if self._closed:
            raise RuntimeError(f"scene.add(at={at!r}): the scene is built already; declare everything in build")
        name = self._name(at)
        if not per_environment and not (isinstance(item, Prop) and item.fixed):
            raise ValueError(f"{at}: only a fixed prop can be shared by all environments; leave per_environment=True")
        if isinstance(item, SurfaceTool):
            self._add_tool(item, name, at)
            return
        if isinstance(item, Robot):
            shelf = self.robots
        elif isinstance(item, Prop):
            shelf = self.props
        elif isinstance(item, DepthCamera):
            shelf = self.cameras
        else:
            raise TypeError(
                f"{at}: a scene holds Robot, Prop, DepthCamera and SurfaceGripperActuator, not {type(item).__name__}; "
                "a parallel gripper or a controller is built in on_start from the robot it drives"
            )
        if item.name:
            raise ValueError(f"{at}: this {type(item).__name__} is in a scene already, as {item.name!r}")
        item.name = name
        shelf[name] = item  # type: ignore[assignment]

    def close(self) -> None:
        """Called by the environment once the backend has built the scene."""
        self._closed = True

    def flush(self) -> None:
        """Hand every robot's buffered targets to the simulator. The environment calls it once per step."""
        for robot in self.robots.values():
            robot.flush()

    def reset(self, env_ids: EnvIds | None = None) -> None:
        """Robots and props back to what was declared, in these environments. None means all, empty means none."""
        for prop in self.props.values():
            prop.reset(env_ids)
        for robot in self.robots.values():
            robot.reset(env_ids)

    def primitives(self) -> tuple[ScenePrimitive, ...]:
        """Every prop as an exact obstacle at its present pose: the world without a sensor in between."""
        return tuple(
            ScenePrimitive(name, prop.shape, prop.fixed, prop.state.pose, prop.state.present)
            for name, prop in self.props.items()
        )

    def _add_tool(self, tool: SurfaceTool, name: str, at: str) -> None:
        """Below a link of a robot. Raises ValueError, naming the anchor, where that is no rigid body of a robot."""
        anchor, _, label = name.rpartition("/")
        owner = next((robot for robot in self.robots if anchor.startswith(f"{robot}/")), None)
        if owner is None or not label:
            what = "which is no link but a whole robot" if anchor in self.robots else "which is no link of a robot"
            raise ValueError(
                f"at={at!r} would hang a surface gripper on {WORLD + anchor!r}, {what}; add the robot first and give "
                f"'/World/<robot>/<link>/<name>'. Robots: {list(self.robots)}"
            )
        self.robots[owner].add_actuator(tool, attach_to=anchor.removeprefix(f"{owner}/"))
        tool.path = tool.path or at
        self.grippers[name] = tool

    def _name(self, at: str) -> str:
        name = at.removeprefix(WORLD)
        if not name or name == at or name.startswith("/") or name.endswith("/"):
            raise ValueError(f"at={at!r} must be a path below /World, such as '/World/Cube'")
        if any(name in shelf for shelf in (self.robots, self.props, self.cameras, self.grippers)):
            raise ValueError(f"at={at!r} is taken by another item of the scene")
        return name
