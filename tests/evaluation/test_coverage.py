"""What stands out of the pieces that are checked: blocks whose parts are known."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from simulo.description import LinkGeometry
from simulo.evaluation.coverage import coverage
from simulo.lowering.pieces import fit_piece


def block(low: float, high: float) -> trimesh.Trimesh:
    """A bar of 0.1 x 0.1 m along z."""
    return trimesh.creation.box(bounds=[[-0.05, -0.05, low], [0.05, 0.05, high]])


def pieces(*ends: tuple[float, float]) -> LinkGeometry:
    fitted = tuple(fit_piece(np.asarray(block(*end).vertices), "part") for end in ends)
    whole = fit_piece(np.asarray(block(min(e[0] for e in ends), max(e[1] for e in ends)).vertices), "whole")
    return LinkGeometry("bar", fitted, whole)


@pytest.mark.parametrize(
    ("ends", "vertices", "triangles"),
    [
        ([(-0.2, 0.2)], 0, 0),
        ([(-0.2, 0.03), (0.03, 0.2)], 0, 0),  # the long sides' triangles lie in two pieces
        ([(-0.2, 0.03), (0.01, 0.2)], 0, 0),
        ([(-0.2, 0.03), (0.031, 0.2)], 0, 8),  # a gap of 1 mm: every triangle of the long sides crosses it
        ([(-0.2, 0.03), (0.03 + 1e-7, 0.2)], 0, 8),
        ([(-0.2, 0.1), (0.1, 0.19)], 4, 10),  # 10 mm short: the end, and the sides that reach it
    ],
)
def test_a_bar_in_pieces(ends, vertices: int, triangles: int) -> None:
    found = coverage({"bar": block(-0.2, 0.2)}, {"bar": pieces(*ends)})
    assert found == {
        "vertices": 8, "vertices_outside": vertices, "triangles": 12, "triangles_outside": triangles,
    }  # fmt: skip


def test_three_pieces_that_meet_in_a_corner_cover_a_plate() -> None:
    """Two squares above, a strip below: the plate's own triangles reach into all three."""
    plate = trimesh.creation.box(bounds=[[0, 0, 0], [0.2, 0.2, 0.01]])
    parts = [[(0, 0.1), (0.1, 0.2)], [(0.1, 0.2), (0.1, 0.2)], [(0, 0.2), (0, 0.1)]]

    def fitted(x, y):
        return fit_piece(np.array([(a, b, c) for a in x for b in y for c in (0, 0.01)], float), "part")

    whole = fit_piece(np.asarray(plate.vertices), "whole")
    covered = LinkGeometry("plate", tuple(fitted(x, y) for x, y in parts), whole)
    assert coverage({"plate": plate}, {"plate": covered})["triangles_outside"] == 0
    holed = LinkGeometry("plate", tuple(fitted(x, y) for x, y in parts[1:]), whole)
    found = coverage({"plate": plate}, {"plate": holed})
    assert found["vertices_outside"] == 2 and 0 < found["triangles_outside"] < 12
