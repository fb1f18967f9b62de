"""A robot as published comparisons of collision checkers take it: what its own description knows better is left out."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from simulo.description import DisabledPair, RobotDescription
from simulo.description.kinematics import edges_from_root


def plain(description: RobotDescription) -> RobotDescription:
    """One hull a link, no fingers, and of all pairs only the neighbours exempt.

    Fingers are what grippers move; neighbours are links with nothing but links without geometry between them.
    """
    fingers = {link for gripper in description.grippers for link in gripper.grasp_contact_links}
    geometry = {
        link: replace(shape, pieces=(shape.hull,))
        for link, shape in description.geometry.items()
        if link not in fingers
    }
    parent = {edge.child: edge.parent for edge in edges_from_root(description)}

    def above(link: str) -> str | None:
        over = parent.get(link)
        while over is not None and over not in geometry:
            over = parent.get(over)
        return over

    exempt = tuple(
        DisabledPair(a, b, "adjacent")
        for a, b in combinations([link for link in description.links if link in geometry], 2)
        if above(a) == b or above(b) == a
    )
    return replace(
        description,
        geometry=geometry,
        grippers=(),
        swept={},
        disabled_pairs=exempt,
        digest=f"{description.digest}:plain",
    )
