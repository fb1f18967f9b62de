"""Adjudication of hand-made records: one finger of OpenArm, one cup, distances set by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulo.collision import Kind, pack_bricks
from simulo.description import load_description
from simulo.evaluation.adjudication import Adjudicator, cell_centres
from simulo.evaluation.counting import HELD, MAP_PARTY, ContactClass, StopClass
from simulo.evaluation.meshes import true_meshes
from simulo.evaluation.records import EngineContacts, EpisodeRecord, JudgeName, MapFrames, Refusals
from simulo.evaluation.truth import Truth, link_poses
from simulo.props import Box

INNER, OUTER = "openarm_right_ee_inner_finger", "openarm_right_ee_outer_finger"
HAND = "openarm_right_ee_base_link"
MIMIC, SWEPT = JudgeName("mimic", "primitives", 0.01), JudgeName("swept", "primitives", 0.01)
VOXELS = JudgeName("mimic", "voxels", 0.01)
CUP, STEPS, EDGE = "Cup", 40, 0.04


@pytest.fixture(scope="module")
def adjudicator():
    return Adjudicator(Truth(load_description("openarm"), {CUP: Box((EDGE, EDGE, EDGE))}), 0.005, 50.0)


@pytest.fixture(scope="module")
def lowest():
    """The lowest points of both fingers as the arm hangs with its jaws half open, (inner, outer), shape (3,) each."""
    description = load_description("openarm")
    poses = link_poses(description, half_open())
    found = []
    for link in (INNER, OUTER):
        points = np.asarray(true_meshes(description)[link].vertices) @ poses[link][:3, :3].T + poses[link][:3, 3]
        found.append(points[points[:, 2].argmin()])
    return tuple(found)


def half_open():
    q = np.zeros(16)
    q[-1] = -0.5
    return q


def below(point, gap):
    """Centre of a cup whose top is `gap` below a point, off to where only that finger is near."""
    side = np.sign(point[1] + 0.154)
    return np.array([point[0], point[1] + side * 0.015, point[2] - gap - EDGE / 2])


def record(cup, contacts=(), refusals=(), judge=MIMIC, **changes):
    """An arm that stands still for STEPS steps over a cup at `cup`, shape (3,)."""
    poses = np.zeros((STEPS + 1, 1, 7), dtype=np.float32)
    poses[:, 0, :3], poses[:, 0, 3] = cup, 1.0
    rows = list(zip(*contacts, strict=True)) if contacts else [(), (), (), ()]
    names = np.array([""] * STEPS)
    base = EpisodeRecord(
        number=0, seed=0, hazard="none", reason="placed", success=True, joint_names=(), props=(CUP,),
        present=np.array([True]),
        commanded=np.tile(half_open(), (STEPS, 1)).astype(np.float32),
        measured=np.tile(half_open(), (STEPS + 1, 1)).astype(np.float32),
        prop_poses=poses,
        frame_step=np.arange(STEPS, dtype=np.int32),
        held=names, held_pose=np.tile([0, 0, 0, 1, 0, 0, 0], (STEPS, 1)).astype(np.float32),
        touchable=names, supports=names, hand=HAND,
        contacts=EngineContacts(
            np.array(rows[0], dtype=np.int32), np.array(rows[1], dtype=np.str_), np.array(rows[2], dtype=np.str_),
            np.zeros(len(rows[0])), np.zeros((len(rows[0]), 3)), np.array(rows[3], dtype=np.bool_),
        ),
        refusals={str(judge): refused(refusals)},
    )  # fmt: skip
    return replace(base, **changes)


def refused(rows):
    """rows: (step, a, b, cell centre or None)."""
    centres = [np.full(3, np.nan) if row[3] is None else row[3] for row in rows]
    return Refusals(
        np.array([row[0] for row in rows], dtype=np.int32),
        np.full(len(rows), int(Kind.WORLD), dtype=np.int8),
        np.array([row[1] for row in rows], dtype=np.str_),
        np.array([row[2] for row in rows], dtype=np.str_),
        np.array(centres, dtype=np.float64).reshape(len(rows), 3),
    )


@pytest.mark.parametrize(("gap", "kind"), [(-0.002, "real"), (0.0008, "real"), (0.013, "proxy")])
def test_an_engine_contact_counts_where_the_real_surfaces_touch(adjudicator, lowest, gap, kind):
    found = adjudicator.contacts(record(below(lowest[0], gap), [(5, INNER, CUP, False)]))
    assert [contact.kind for contact in found] == [ContactClass(kind)]
    assert found[0].clearance == pytest.approx(max(gap, 0.0), abs=2e-4)


def test_an_allowed_touch_is_no_contact(adjudicator, lowest):
    assert adjudicator.contacts(record(below(lowest[0], -0.002), [(5, INNER, CUP, True)])) == ()


def test_a_body_that_moved_since_its_last_frame_is_dynamic(adjudicator, lowest):
    still = record(below(lowest[0], -0.002), [(5, INNER, CUP, False)])
    moved = still.prop_poses.copy()
    moved[:5, 0, 0] -= 0.006
    unseen = np.minimum(still.frame_step, 4)
    found = adjudicator.contacts(replace(still, prop_poses=moved, frame_step=unseen))
    assert [contact.kind for contact in found] == [ContactClass.DYNAMIC]
    seen = adjudicator.contacts(replace(still, prop_poses=moved))
    assert [contact.kind for contact in seen] == [ContactClass.REAL]


def test_a_stop_is_judged_by_the_real_clearance_of_its_pair(adjudicator, lowest):
    stops = [(3, INNER, CUP, None), (4, INNER, CUP, None)]
    kinds = ((-0.001, StopClass.TRUE), (0.0045, StopClass.WITHIN_RESOLUTION), (0.010, StopClass.FALSE))
    for gap, kind in kinds:  # the margin is 5 mm
        judged = adjudicator.judge(record(below(lowest[0], gap), refusals=stops), MIMIC, "", ())
        assert [event.kind for event in judged.events] == [kind]
        assert judged.events[0].clearance == pytest.approx(max(gap, 0.0), abs=2e-4)


def test_the_swept_model_has_one_party_for_both_fingers(adjudicator, lowest):
    """The cup is under the follower: a stop that names the leader is true, and a contact of the follower is its own."""
    stops = [(3, INNER, CUP, None)]
    contacts = [(4, OUTER, CUP, False)]
    episode = record(below(lowest[1], 0.0), contacts, stops, SWEPT)
    judged = adjudicator.judge(episode, SWEPT, "", adjudicator.contacts(episode))
    assert [event.kind for event in judged.events] == [StopClass.TRUE]
    assert judged.contacts[0].pair == (INNER, CUP)
    as_mimic = replace(episode, refusals={str(MIMIC): episode.refusals[str(SWEPT)]})
    assert adjudicator.judge(as_mimic, MIMIC, "", ()).events[0].kind is StopClass.FALSE


def test_a_pair_without_a_real_surface_is_unjudged(adjudicator, lowest):
    judged = adjudicator.judge(record(below(lowest[0], 0.1), refusals=[(3, INNER, "Ghost", None)]), MIMIC, "", ())
    assert [event.kind for event in judged.events] == [StopClass.UNJUDGED]


def test_a_gate_that_had_no_map_makes_the_episode_invalid(adjudicator, lowest):
    episode = record(below(lowest[0], 0.1), refusals=[(3, INNER, CUP, None)])
    stale = replace(episode.refusals[str(MIMIC)], kind=np.array([int(Kind.STALE_MAP)], dtype=np.int8))
    judged = adjudicator.judge(replace(episode, refusals={str(MIMIC): stale}), MIMIC, "", ())
    assert "stale_map at step 3" in judged.failure
    assert judged.events == ()


def one_cell(centre):
    """A map of one occupied cell of 10 mm, its corner placed so that the cell has this centre."""
    cells = np.zeros((1, 4, 4, 4), dtype=bool)
    cells[0, 1, 2, 3] = True
    import torch

    bricks = pack_bricks(torch.from_numpy(cells)).numpy()
    return MapFrames(np.array([0], dtype=np.int32), bricks, centre - np.array([0.015, 0.025, 0.035]), 0.01)


@pytest.mark.parametrize(
    ("cell_gap", "cup_gap", "kind"),
    [
        (0.004, 0.010, StopClass.WITHIN_RESOLUTION),  # triangles within the margin of the very cell
        (0.012, 0.014, StopClass.FALSE),  # a body is there, and only the checked geometry reaches the cell
        (0.012, 0.100, StopClass.MAP),  # nothing is within a diagonal of the cell
    ],
)
def test_a_stop_by_the_map_is_judged_on_the_same_cells(adjudicator, lowest, cell_gap, cup_gap, kind):
    centre = lowest[0] - [0.0, 0.0, cell_gap + 0.005]
    frames = one_cell(centre)
    np.testing.assert_allclose(cell_centres(frames, 0), [centre], atol=1e-9)
    cup = np.array([lowest[0][0], lowest[0][1], lowest[0][2] - cup_gap - EDGE / 2])
    episode = record(cup, refusals=[(3, INNER, MAP_PARTY, centre)], judge=VOXELS, maps={"10mm": frames})
    judged = adjudicator.judge(episode, VOXELS, "10mm", ())
    assert [event.kind for event in judged.events] == [kind]


def test_what_the_hand_may_touch_makes_no_stop_true(adjudicator, lowest):
    """Within its grasp the finger is on the object: only other bodies count for what the map stopped it by."""
    centre = lowest[0] - [0.0, 0.0, 0.03]
    episode = record(below(lowest[0], 0.0), refusals=[(3, INNER, MAP_PARTY, centre)], judge=VOXELS)
    episode = replace(episode, maps={"10mm": one_cell(centre)}, touchable=np.array([CUP] * STEPS))
    judged = adjudicator.judge(episode, VOXELS, "10mm", ())
    assert judged.events[0].kind is not StopClass.TRUE


def test_a_held_object_is_measured_where_the_commanded_hand_has_it(adjudicator, lowest):
    """The engine has the cup elsewhere; in the hand it is 0.3 m below it, 0 mm from nothing it may not touch."""
    held = np.tile([0.0, 0.0, -0.3, 1.0, 0.0, 0.0, 0.0], (STEPS, 1)).astype(np.float32)
    episode = record(np.array([1.0, 1.0, 1.0]), refusals=[(3, HELD, OUTER, None)], held=np.array([CUP] * STEPS))
    judged = adjudicator.judge(replace(episode, held_pose=held), MIMIC, "", ())
    hand = link_poses(adjudicator.truth.description, half_open())[HAND]
    top = (hand[:3, :3] @ [0.0, 0.0, -0.3] + hand[:3, 3])[2] + EDGE / 2
    assert judged.events[0].clearance == pytest.approx(abs(lowest[1][2] - top), abs=0.03)
    assert judged.events[0].kind is StopClass.FALSE
