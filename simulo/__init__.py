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
    "SurfaceGripperActuator": "simulo.actuators",
    "CollisionGate": "simulo.gate",
    "Verdict": "simulo.gate",
    "grippers": "simulo",  # a module: simulo.grippers.preset(...)
}

__all__ = ["__version__", *_HOME]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from simulo import grippers as grippers
    from simulo.actuators import GripperCommand as GripperCommand
    from simulo.actuators import GripperState as GripperState
    from simulo.actuators import ParallelGripperActuator as ParallelGripperActuator
    from simulo.actuators import SurfaceGripperActuator as SurfaceGripperActuator
    from simulo.controllers import DifferentialIKController as DifferentialIKController
    from simulo.description import RobotDescription as RobotDescription
    from simulo.description import list_robots as list_robots
    from simulo.description import load_description as load_description
    from simulo.env import LearningEnv as LearningEnv
    from simulo.errors import BackendError as BackendError
    from simulo.errors import CollisionModelError as CollisionModelError
    from simulo.errors import DescriptionError as DescriptionError
    from simulo.errors import GateError as GateError
    from simulo.errors import LoweringError as LoweringError
    from simulo.errors import ModelSourceError as ModelSourceError
    from simulo.errors import SimuloError as SimuloError
    from simulo.gate import CollisionGate as CollisionGate
    from simulo.gate import Verdict as Verdict
    from simulo.pose import Pose as Pose
    from simulo.props import Prop as Prop
    from simulo.robot import Robot as Robot
    from simulo.scene import Scene as Scene
    from simulo.sensors import DepthCamera as DepthCamera
    from simulo.simulation import Simulation as Simulation
    from simulo.task import Task as Task


def _refuse_other_product() -> None:
    """The distribution named `simulo` is another product writing the same folder: mixed files would run silently."""
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
    home = _HOME[name]
    value = import_module(f"simulo.{name}") if home == "simulo" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
