"""Controllers: from what a hand should do to joint targets."""

from simulo.controllers.differential_ik import DifferentialIKController

__all__ = ["DifferentialIKController"]
