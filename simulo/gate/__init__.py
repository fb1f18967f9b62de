"""The gate between a policy's commands and physics."""

from simulo.gate.declarations import Region
from simulo.gate.gate import CollisionGate
from simulo.gate.verdict import Verdict

__all__ = ["CollisionGate", "Region", "Verdict"]
