"""Certified collision checking of robot configurations, batched over environments and rows, on CPU and CUDA."""

from simulo.collision.checker import CollisionChecker
from simulo.collision.clearance import build_clearance, build_motion_bounds
from simulo.collision.clearance_maps import ClearanceMaps
from simulo.collision.kinds import Kind, MapStatus
from simulo.collision.live import Closing, LiveRobot, joints
from simulo.collision.model import CollisionModel, build_model
from simulo.collision.motion import MotionBounds, build_levers
from simulo.collision.parties import PartyCodes
from simulo.collision.raw_verdict import RawVerdict
from simulo.collision.shapes import ConvexShape
from simulo.collision.world import Payload, Primitives, VoxelGrid, pack_bricks, unpack_bricks

__all__ = [
    "ClearanceMaps",
    "Closing",
    "CollisionChecker",
    "CollisionModel",
    "ConvexShape",
    "Kind",
    "LiveRobot",
    "MapStatus",
    "MotionBounds",
    "PartyCodes",
    "Payload",
    "Primitives",
    "RawVerdict",
    "VoxelGrid",
    "build_clearance",
    "build_levers",
    "build_model",
    "build_motion_bounds",
    "joints",
    "pack_bricks",
    "unpack_bricks",
]
