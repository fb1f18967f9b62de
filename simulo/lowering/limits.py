"""How large a model may be before it is refused unread.

Each cap is several times what the largest robot in use needs, and small enough that no file under it takes over 2 GB
or 30 s.
"""

from __future__ import annotations

from pathlib import Path

from simulo.errors import LoweringError

MAX_XML_BYTES = 16 << 20
"""A robot's XML file; the largest in use are under 1 MB."""

MAX_MESH_BYTES = 128 << 20
"""A mesh file; the largest in use (COLLADA) have 29 MB."""

MAX_ELEMENTS = 200_000
"""XML elements of a file, those of its included files counted too."""

MAX_DEPTH = 200
"""Elements inside one another. A chain of 200 links is no robot's, and recursion stays harmless."""

MAX_TRIANGLES = 500_000
"""Triangles of one mesh file. Visual meshes in use have up to 183,000; MuJoCo reads up to 200,000 from STL."""

MAX_MODEL_TRIANGLES = 5_000_000
"""Triangles of a whole robot, each shape counted."""

MAX_LINKS = 2_000
"""Links of a robot; humanoids with hands have about 100."""

MAX_SHAPES = 20_000
"""Shapes of a robot, collision and visual."""

MAX_NAME = 200
"""Characters of a link's or joint's name."""

MAX_HULL_VERTICES = 10_000
"""Extreme vertices of a link's meshes; links in use have up to 4,100. Few are left in the end, but finding
which takes a second for every thousand."""

MAX_LENGTH = 1_000.0
"""[m] Largest coordinate or size. The certificates' rounding (1e-12 m) is proven for lengths up to this."""

MAX_JOINT_VALUE = 1_000.0
"""[rad or m] Largest finite joint limit, follower offset or reference position."""

MAX_MULTIPLIER = 1_000.0
"""Largest ratio of a follower's motion to its leader's, and the inverse of the least."""


def refuse_large_file(path: Path, most: int, label: str, remedy: str) -> None:
    """Raise LoweringError for a file over `most` bytes."""
    size = path.stat().st_size
    if size > most:
        raise LoweringError(f"{label} has {size / 1e6:.1f} MB, over the limit of {most / 1e6:.1f} MB; {remedy}")
