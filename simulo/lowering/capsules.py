"""The capsule of least volume around a set of points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.spatial import ConvexHull

from simulo.lowering.sampling import hemisphere

_STARTS = 4
_DIRECTIONS = 64
_FATTER = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 24)])


@dataclass(frozen=True)
class FittedCapsule:
    """A segment swept by a ball: ends [m], shape (2, 3), and the ball's radius [m]."""

    ends: NDArray[np.float64]
    radius: float

    @property
    def volume(self) -> float:
        length = float(np.linalg.norm(self.ends[1] - self.ends[0]))
        return float(np.pi * self.radius**2 * (length + 4.0 / 3.0 * self.radius))

    def stand_out(self, points: NDArray[np.float64]) -> float:
        """How far [m] the worst of the points stands out of the capsule; negative when all are inside."""
        return float(distance_to_segment(points, self.ends).max()) - self.radius


def fit_capsule(points: NDArray[np.float64]) -> FittedCapsule:
    """A capsule of locally least volume that holds the points [m], shape (P, 3), which span a volume.

    For an axis and a radius the caps' best places follow; the axis is searched from the best of 64 directions, by
    the simplex method. Nothing is drawn at random.
    """
    corners = points[ConvexHull(points).vertices]
    middle = corners.mean(axis=0)
    outline = corners - middle
    starts = sorted(
        (_along(outline, frame_along(axis), np.zeros(2))[0], k) for k, axis in enumerate(hemisphere(_DIRECTIONS))
    )
    best = None
    for _, k in starts[:_STARTS]:
        frame = frame_along(hemisphere(_DIRECTIONS)[k])
        scale = float(np.ptp(outline, axis=0).max())

        def volume(x: NDArray[np.float64], frame: NDArray[np.float64] = frame, scale: float = scale) -> float:
            return _along(outline, _tilted(frame, x[:2]), scale * x[2:])[0]

        found = minimize(
            volume, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-12, "maxiter": 400}
        )
        if best is None or found.fun < best[0] * (1.0 - 1e-9):
            best = (float(found.fun), _tilted(frame, found.x[:2]), scale * found.x[2:])
    assert best is not None
    _, frame, centre = best
    _, radius, low, high = _along(outline, frame, centre)
    base = middle + frame[:, :2] @ centre
    return FittedCapsule(np.stack([base + low * frame[:, 2], base + high * frame[:, 2]]), radius)


def distance_to_segment(points: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance [m] of each point (P, 3) to the segment between two ends (2, 3), which may coincide."""
    along = ends[1] - ends[0]
    length = float(along @ along)
    share = np.clip((points - ends[0]) @ along / length, 0.0, 1.0) if length > 0.0 else np.zeros(len(points))
    return np.linalg.norm(points - ends[0] - share[:, None] * along, axis=1).astype(np.float64)


def _along(
    outline: NDArray[np.float64], frame: NDArray[np.float64], centre: NDArray[np.float64]
) -> tuple[float, float, float, float]:
    """Least volume with the axis along the frame's z through `centre`, and its radius and cap positions [m].

    A fatter capsule than needed may be a shorter one, so a few radii above the least are tried.
    """
    local = outline @ frame
    across = np.linalg.norm(local[:, :2] - centre, axis=1)
    least = float(across.max())
    radii = least * (1.0 + _FATTER[:, None])
    reach = np.sqrt(np.maximum(radii**2 - across**2, 0.0))
    low, high = (local[:, 2] + reach).min(axis=1), (local[:, 2] - reach).max(axis=1)
    middle = 0.5 * (low + high)
    low, high = np.where(low > high, middle, low), np.where(low > high, middle, high)  # the balls' caps meet: a sphere
    volumes = np.pi * radii[:, 0] ** 2 * (high - low + 4.0 / 3.0 * radii[:, 0])
    k = int(np.argmin(volumes))
    return float(volumes[k]), float(radii[k, 0]), float(low[k]), float(high[k])


def frame_along(axis: NDArray[np.float64]) -> NDArray[np.float64]:
    """A rotation whose z is the unit axis, shape (3, 3)."""
    x = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis]).astype(np.float64)


def _tilted(frame: NDArray[np.float64], tilt: NDArray[np.float64]) -> NDArray[np.float64]:
    """The frame with its z leaning towards x and y by the tangents `tilt`."""
    axis = frame @ np.array([tilt[0], tilt[1], 1.0])
    z = axis / np.linalg.norm(axis)
    x = frame[:, 0] - (frame[:, 0] @ z) * z
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z]).astype(np.float64)
