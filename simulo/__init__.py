"""simulo: one task file on many simulators, gated by the robot's real finger geometry.

Only names live here, each loaded from its module on first use, so that `import simulo` stays light: it loads no
simulator, no tensor library and starts no GPU runtime.
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "BackendError": "simulo.errors",
    "CollisionModelError": "simulo.errors",
    "DescriptionError": "simulo.errors",
    "GateError": "simulo.errors",
    "LoweringError": "simulo.errors",
    "ModelSourceError": "simulo.errors",
    "SimuloError": "simulo.errors",
    "Pose": "simulo.pose",
    "RobotDescription": "simulo.description",
    "list_robots": "simulo.description",
    "load_description": "simulo.description",
    "Task": "simulo.task",
    "LearningEnv": "simulo.env",
    "Simulation": "simulo.simulation",
    "Scene": "simulo.scene",
    "Robot": "simulo.robot",
    "Prop": "simulo.props",
    "DepthCamera": "simulo.sensors",
    "DifferentialIKController": "simulo.controllers",
    "GripperCommand": "simulo.actuators",
    "GripperState": "simulo.actuators",
    "ParallelGripperActuator": "simulo.actuators",
    "CollisionGate": "simulo.gate",
    "Verdict": "simulo.gate",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from simulo.actuators import GripperCommand, GripperState, ParallelGripperActuator
    from simulo.controllers import DifferentialIKController
    from simulo.description import RobotDescription, list_robots, load_description
    from simulo.env import LearningEnv
    from simulo.errors import (
        BackendError,
        CollisionModelError,
        DescriptionError,
        GateError,
        LoweringError,
        ModelSourceError,
        SimuloError,
    )
    from simulo.gate import CollisionGate, Verdict
    from simulo.pose import Pose
    from simulo.props import Prop
    from simulo.robot import Robot
    from simulo.scene import Scene
    from simulo.sensors import DepthCamera
    from simulo.simulation import Simulation
    from simulo.task import Task


def _refuse_other_product() -> None:
    """The distribution named `simulo` is another product that writes the same folder: mixed files would run silently."""
    try:
        other = metadata.distribution("simulo")
    except metadata.PackageNotFoundError:
        return
    raise ImportError(
        f"the distribution 'simulo' {other.version}, another product, is installed beside 'simulo-sdk' and both write "
        "the package folder 'simulo'. Remove both and install the one you want: "
        "pip uninstall -y simulo simulo-sdk && pip install simulo-sdk"
    )


_refuse_other_product()


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'simulo' has no attribute {name!r}; its public names are {sorted(_HOME)}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
