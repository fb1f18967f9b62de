"""What a model refuses, and what it makes of a description."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulo.collision import build_model
from simulo.description import DisabledPair, RobotDescription
from simulo.errors import CollisionModelError
from tests.collision.robots import box_piece, link, pincer, sliders

HAND = pincer().mimic_joints[0]


def with_mimic(**changes: object) -> RobotDescription:
    robot = pincer()
    return replace(robot, mimic_joints=(replace(HAND, **changes), *robot.mimic_joints[1:]))


def with_geometry(name: str, geometry) -> RobotDescription:
    robot = sliders()
    return replace(robot, geometry={**robot.geometry, name: geometry})


BROKEN_PIECE = box_piece((0.1, 0.1, 0.1))
BROKEN = {
    "mimic without a column": (with_mimic(mimics="left_finger2"), "no command column"),
    "zero multiplier": (with_mimic(multiplier=0.0), "multiplier"),
    "infinite multiplier": (with_mimic(multiplier=float("inf")), "multiplier"),
    "non-finite offset": (with_mimic(offset=float("nan")), "offset"),
    "unknown joint type": (with_mimic(type="screw"), "unknown type"),
    "two edges to a link": (with_mimic(child="left_jaw"), "child of more than one edge"),
    "short rest pose": (replace(sliders(), rest_pose=np.zeros(1)), "rest_pose"),
    "NaN rest pose": (replace(sliders(), rest_pose=np.array([0.0, np.nan])), "rest_pose"),
    "no pairs": (replace(sliders(), disabled_pairs=(DisabledPair("box0", "box1", "all"),)), "no link pair left"),
    "unknown disabled link": (replace(sliders(), disabled_pairs=(DisabledPair("box0", "nobody", "x"),)), "nobody"),
    "unreached link": (replace(sliders(), links=("base", "box0", "box1", "lost")), "lost"),
    "bad axis": (with_mimic(axis=(0.0, 0.5, 0.0)), "unit axis"),
    "no pieces": (with_geometry("box0", replace(link("box0", BROKEN_PIECE), pieces=())), "no pieces"),
    "NaN vertex": (
        with_geometry(
            "box0",
            replace(
                link("box0", BROKEN_PIECE),
                pieces=(replace(BROKEN_PIECE, vertices=np.full((8, 3), np.nan)),),
            ),
        ),
        "not finite",
    ),
    "vertex outside its box": (
        with_geometry(
            "box0", replace(link("box0", BROKEN_PIECE), pieces=(replace(BROKEN_PIECE, box_half=(0.01, 0.05, 0.05)),))
        ),
        "leaves its own box",
    ),
    "two-column vertices": (
        with_geometry(
            "box0", replace(link("box0", BROKEN_PIECE), pieces=(replace(BROKEN_PIECE, vertices=np.zeros((8, 2))),))
        ),
        "shape",
    ),
    "geometry of no link": (with_geometry("ghost", link("ghost", BROKEN_PIECE)), "ghost"),
    "bare finger": (
        replace(pincer(), geometry={k: v for k, v in pincer().geometry.items() if k != "left_follower"}),
        "left_follower",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_refused_by_name(case: str) -> None:
    robot, said = BROKEN[case]
    with pytest.raises(CollisionModelError, match=said) as caught:
        build_model(robot)
    assert robot.name in str(caught.value)


def test_unknown_finger_model_and_missing_swept_geometry() -> None:
    with pytest.raises(CollisionModelError, match="finger_model"):
        build_model(pincer(), "rigid")  # type: ignore[arg-type]
    with pytest.raises(CollisionModelError, match="swept geometry"):
        build_model(pincer(), "swept")


def test_swept_model_drops_the_followers() -> None:
    robot = pincer()
    swept = {side: link(f"{side}_jaw", box_piece((0.08, 0.1, 0.02), (0.04, 0.0, 0.0))) for side in ("left", "right")}
    model = build_model(replace(robot, swept=swept), "swept")
    assert not any("follower" in name for name in model.link_names)
    assert not any("follower" in name for pair in model.pairs for name in pair)
    assert model.grippers[0].contact_links == ("left_jaw",)
    assert model.digest != build_model(robot).digest


def test_pairs_exemptions_and_static_links() -> None:
    robot = pincer()
    model = build_model(robot)
    links = [name for name in robot.links if name in robot.geometry]
    assert len(model.pairs) == len(links) * (len(links) - 1) // 2 - len(robot.disabled_pairs)
    assert {frozenset((p.link_a, p.link_b)) for p in model.exempt}.isdisjoint(frozenset(p) for p in model.pairs)
    assert set(model.static_links) == {"pedestal", "left_mount", "right_mount"}
    assert all("static" in reason for reason in model.static_links.values())
    assert build_model(robot, fixed_base=False).static_links == {}


def test_measured_copies_follow_the_measured_value_and_nothing_else() -> None:
    """Each hand's two fingers get a copy, with the pairs of the originals but none of one hand with itself."""
    model = build_model(pincer())
    copies = [model.link_names[i] for i in model.posed_links[len(model.link_names) :]]
    assert copies == ["left_jaw", "left_follower", "right_jaw", "right_follower"]
    arrays = model.pair_arrays
    for pair, names in zip(arrays.pair[arrays.num_plain :], arrays.links[arrays.num_plain :], strict=True):
        sides = {model.link_names[i].split("_")[0] for i in names}
        gates = {int(model.bodies.gate[b]) for b in pair[:2]}
        assert pair[2] != 0 and len(sides) + len(gates) > 2, "a hand is in one place at a time"


def test_a_link_of_many_pieces_stays_one_body() -> None:
    robot = sliders()
    rng = np.random.default_rng(0)
    many = link("box0", *(box_piece((0.02, 0.02, 0.02), rng.uniform(-0.04, 0.04, 3)) for _ in range(6)))
    few = link("box1", *(box_piece((0.02, 0.02, 0.02), rng.uniform(-0.04, 0.04, 3)) for _ in range(3)))
    model = build_model(replace(robot, geometry={"box0": many, "box1": few}))
    assert model.bodies.body[:, 3].tolist() == [6, 1, 1, 1]
    assert model.pairs == (("box0", "box1"),)
