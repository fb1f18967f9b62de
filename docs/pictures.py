"""Draw the README's picture, docs/images/fingers.png: the same hand as two finger models see it.

use: python docs/pictures.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Polygon, Rectangle
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from simulo.description import LinkGeometry, load_description, reference_fk
from simulo.lowering import link_meshes

IMAGE = Path(__file__).parent / "images" / "fingers.png"
INK, REAL, SWEPT, MIMIC, THING = "#22272e", "#8b949e", "#d1495b", "#2a9d8f", "#e9c46a"


def draw() -> None:
    robot = load_description("openarm")
    hand = robot.gripper("right")
    q = np.array(robot.rest_pose)
    q[robot.joint_names.index(hand.joint)] = hand.open_position
    poses = reference_fk(robot, q)
    to_hand = np.linalg.inv(poses[hand.hand_link])
    (leader,), (follower,) = hand.jaw_links, hand.follower_links
    meshes = link_meshes(robot)

    figure, axes = plt.subplots(1, 2, figsize=(10, 5.2), sharex=True, sharey=True)
    models: Sequence[tuple[str, str, dict[str, LinkGeometry]]] = (
        ("Before: one hull around the fingers' whole stroke", SWEPT, {leader: robot.swept[hand.name]}),
        ("simulo: each finger where it is", MIMIC, {link: robot.geometry[link] for link in (leader, follower)}),
    )
    for panel, (title, colour, checked) in zip(axes, models, strict=True):
        panel.add_patch(Rectangle((-20, -185), 40, 65, color=THING, zorder=0))
        panel.text(0, -193, "object to pick", ha="center", va="top", color=INK, fontsize=9)
        for link in (hand.hand_link, leader, follower):
            triangles = _flat(meshes[link].triangles.reshape(-1, 3), to_hand @ poses[link]).reshape(-1, 3, 2)
            panel.add_collection(PolyCollection(list(triangles), facecolor=REAL, edgecolor="none", zorder=1))
        for link, geometry in checked.items():
            for piece in geometry.pieces:
                _outline(panel, _flat(piece.vertices, to_hand @ poses[link]), colour)
        panel.set_title(title, color=INK, fontsize=11)
        panel.set_aspect("equal")
        panel.axis("off")
    axes[0].autoscale_view()
    figure.tight_layout()
    IMAGE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGE, dpi=110, facecolor="white", metadata={"Software": None})


def _flat(points: NDArray[np.float64], pose: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points [m], shape (M, 3), posed in the hand and seen along the fingers' axis (the hand's x): (M, 2) in mm."""
    return 1000.0 * (points @ pose[:3, :3].T + pose[:3, 3])[:, 1:]


def _outline(panel: Axes, points: NDArray[np.float64], colour: str) -> None:
    corners = points[ConvexHull(points).vertices]
    panel.add_patch(Polygon(corners, facecolor=colour, alpha=0.25, zorder=2))
    panel.add_patch(Polygon(corners, fill=False, edgecolor=colour, linewidth=1.8, zorder=3))


if __name__ == "__main__":
    draw()
