"""From depth images to what the gate checks against: points, self-filter, occupancy map."""

from simulo.errors import PerceptionError
from simulo.perception.deploy_sim import DeploySimPerception
from simulo.perception.occupancy import OccupancyMapper
from simulo.perception.self_filter import SelfFilter
from simulo.perception.spec import Evidence, GridSpec, Intrinsics

__all__ = [
    "DeploySimPerception",
    "Evidence",
    "GridSpec",
    "Intrinsics",
    "OccupancyMapper",
    "PerceptionError",
    "SelfFilter",
]
