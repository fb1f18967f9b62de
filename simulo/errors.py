"""The errors simulo raises. Each says what is wrong, where, and what to do about it."""


class SimuloError(Exception):
    """Base of every error simulo raises on purpose."""


class DescriptionError(SimuloError, ValueError):
    """A robot description (robot.yaml, collision.json, SRDF) is missing, corrupt or contradicts itself."""


class NotLoweredError(DescriptionError):
    """A robot has a description but no collision geometry yet. robot: what `simulo lower` takes."""

    def __init__(self, message: str, robot: str):
        super().__init__(message)
        self.robot = robot


class ModelSourceError(SimuloError, FileNotFoundError):
    """A robot's model file was not found in any of the places that were tried (all are listed)."""


class LoweringError(SimuloError, ValueError):
    """A model file cannot be lowered to collision geometry without losing some of it."""


class CollisionModelError(SimuloError, ValueError):
    """A collision model or one of the checker's inputs does not fit the robot or the batch."""


class GateError(SimuloError, RuntimeError):
    """The gate cannot vouch for anything in this set-up: a wrong model, no world, a bad declaration."""


class PerceptionError(SimuloError, ValueError):
    """Depth images, camera poses, link poses or a map's settings do not fit each other."""


class BackendError(SimuloError, RuntimeError):
    """A backend, or the device asked for, cannot do what the scene needs."""
