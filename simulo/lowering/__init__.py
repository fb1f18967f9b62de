"""Model files to certified collision geometry. Not imported at run time: robots are committed lowered."""

from simulo.lowering.lower import LoweredRobot, link_meshes, lower_robot

__all__ = ["LoweredRobot", "link_meshes", "lower_robot"]
