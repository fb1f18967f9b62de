"""What a map and its cameras are, before any memory is allocated."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral

import numpy as np

from simulo.errors import PerceptionError
from simulo.pose import Pose
from simulo.tensors import real_number


@dataclass(frozen=True)
class Evidence:
    """How fast a cell's mind changes: log-odds in whole units of 0.28 (Hornung et al. 2013 use 0.85 and -0.4).

    An unseen cell stands at 0, a hit adds `hit`, a ray that passes takes `miss`, both clamped to [floor, ceiling]; the
    cell is occupied from `occupied` up. Two hits in a row must occupy any cell, one hit alone must not, and ten rays
    that pass must clear any cell: what isolated speckle and removed objects need. Checked here.
    """

    hit: int = 3
    miss: int = 1
    occupied: int = 5
    floor: int = -1
    ceiling: int = 8

    def __post_init__(self) -> None:
        units = (self.hit, self.miss, self.occupied, self.floor, self.ceiling)
        if not all(isinstance(n, Integral) and not isinstance(n, bool) for n in units):
            raise PerceptionError(f"{self}: evidence is counted in whole units")
        if not (-100 <= self.floor <= 0 < self.occupied <= self.ceiling <= 100 and self.hit > 0 and self.miss > 0):
            raise PerceptionError(f"{self}: need -100 <= floor <= 0 < occupied <= ceiling <= 100, hit > 0 and miss > 0")
        if self.floor + 2 * self.hit < self.occupied:
            raise PerceptionError(f"{self}: two hits leave a free cell at {self.floor + 2 * self.hit}, too low")
        if self.hit >= self.occupied:
            raise PerceptionError(f"{self}: a single hit would occupy an unseen cell, and speckle would stop the robot")
        if self.frames_to_clear > 10:
            raise PerceptionError(f"{self}: a removed object would stay {self.frames_to_clear} frames; at most 10 may")

    @property
    def frames_to_occupy(self) -> int:
        """Frames of hits that occupy the surest free cell."""
        return -(-(self.occupied - self.floor) // self.hit)

    @property
    def frames_to_clear(self) -> int:
        """Frames of passing rays that clear the surest cell."""
        return (self.ceiling - self.occupied) // self.miss + 1


DEFAULT_EVIDENCE = Evidence()


@dataclass(frozen=True)
class Intrinsics:
    """A pinhole camera [px]; the centre of column i lies at u = i, that of row j at v = j."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float

    @staticmethod
    def from_fovy(width: int, height: int, fovy: float) -> Intrinsics:
        """Square pixels and a centred axis; fovy [rad] is the vertical field of view, edge to edge."""
        focal = 0.5 * height / float(np.tan(0.5 * fovy))
        return Intrinsics(width, height, focal, focal, 0.5 * (width - 1), 0.5 * (height - 1))


@dataclass(frozen=True)
class GridSpec:
    """Where a map lies: the pose of its corner in the environment frame, cells along each axis, cell edge [m].

    The cell counts are rounded up to whole bricks of 4.
    """

    corner: Pose
    shape: tuple[int, int, int]
    cell: float = 0.01
    bricks: tuple[int, int, int] = field(init=False)

    def __post_init__(self) -> None:
        whole = all(isinstance(n, Integral) and not isinstance(n, bool) and n >= 1 for n in self.shape)
        if not (0.0 < real_number(self.cell) < np.inf and len(self.shape) == 3 and whole):
            raise PerceptionError(
                f"a map needs a finite cell > 0 m and three cell counts >= 1, got {self.cell!r:.60}, {self.shape}"
            )
        object.__setattr__(self, "bricks", tuple((int(n) + 3) // 4 for n in self.shape))

    @staticmethod
    def around(low: tuple[float, float, float], high: tuple[float, float, float], cell: float = 0.01) -> GridSpec:
        """The map of an axis-aligned box [m, environment frame]."""
        corners = np.array([low, high], dtype=np.float64)
        if corners.shape != (2, 3) or not np.isfinite(corners).all() or not (corners[0] < corners[1]).all():
            raise PerceptionError(f"a map's box needs a low and a high corner, three numbers each, got {low}, {high}")
        if not 0.0 < real_number(cell) < np.inf:
            raise PerceptionError(f"a map needs a finite cell > 0 m, got {cell!r:.60}")
        x, y, z = np.ceil((corners[1] - corners[0]) / cell - 1e-6).astype(int).tolist()
        return GridSpec(Pose(low), (x, y, z), cell)
