"""`simulo lower --auto`: how many convex pieces each link needs, by the false stops that real meshes show and by cost.

Links start as one hull each (slabs and primitives that robot.yaml asks for stay). Seeded in-limit poses are judged by
the links' own triangles; while more than a tenth of the stops are false, both links of every pair that brings a fair
share of them are cut into more pieces. A cut that takes no false stop away is taken back, and in the end every cut that
the share can do without: they would only cost. The triangles are asked once, before the first cut: pieces lie in the
hulls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
import trimesh

from simulo.collision import CollisionChecker, build_clearance, build_model
from simulo.description import LinkGeometry, RobotDescription, load_description
from simulo.description.files import LinkCut
from simulo.description.load import load_robot_file
from simulo.evaluation.configuration import uniform
from simulo.evaluation.sweep import SEED, Counts, judged_poses, one_hull_each
from simulo.lowering import link_meshes
from simulo.lowering.fit import fit_link

MORE = {1: 4, 4: 8, 8: 16}
"""Pieces that a link is cut into next."""

ENOUGH = 0.10
"""The share of stops that may be false."""

FAIR_SHARE = 0.05
"""The share of the false stops above which a pair is worth cutting its links for."""

_TIMED = 1024

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Chosen:
    """pieces: by link, those above one. reasons: a sentence for each step. before, after: what one hull a link and
    the chosen pieces gave; self_check_us: of one configuration, before and after, on this machine."""

    pieces: Mapping[str, int]
    reasons: tuple[str, ...]
    before: Counts
    after: Counts
    self_check_us: tuple[float, float]


def choose_pieces(robot: str, poses: int = 1000, progress: Progress = lambda label, done, total: None) -> Chosen:
    """Choose by `poses` seeded poses of a lowered robot; the same poses give the same choice."""
    description = load_description(robot)
    meshes = link_meshes(description)
    file = load_robot_file(robot)
    stay = {*file.tight_links, *file.fitted_links}
    pieces = {link: 1 for link in description.geometry if link not in stay}
    current = replace(description, geometry=one_hull_each(description, stay))
    judged = judged_poses(description, poses, SEED, progress)
    before = counts = judged.counts(current)
    reasons = [f"one hull a link: {_stops(counts)}"]
    settled: set[str] = set()
    while _false_share(counts) > ENOUGH:
        cut = {
            link: MORE[pieces[link]] for link in _to_cut(counts, pieces) if link not in settled and pieces[link] in MORE
        }
        if not cut:
            reasons.append("no pair with a fair share of them has a link that can be cut further")
            break
        candidate = replace(current, geometry=dict(current.geometry) | _cut(meshes, cut, progress))
        found = judged.counts(candidate)
        names = ", ".join(f"{link} {pieces[link]} -> {count}" for link, count in cut.items())
        if found.false_stops >= counts.false_stops:
            reasons.append(f"not {names}: {_stops(found)}")
            settled |= set(cut)
            continue
        reasons.append(f"{names}: {_stops(found)}")
        pieces, current, counts = pieces | cut, candidate, found
    for link in [link for link, n in pieces.items() if n > 1] if _false_share(counts) <= ENOUGH else []:
        hull = current.geometry[link].hull
        candidate = replace(current, geometry={**current.geometry, link: LinkGeometry(link, (hull,), hull)})
        found = judged.counts(candidate)
        if _false_share(found) <= ENOUGH:
            reasons.append(f"{link} {pieces[link]} -> 1 again: {_stops(found)}")
            pieces, current, counts = pieces | {link: 1}, candidate, found
    costs = _self_check_us(replace(description, geometry=one_hull_each(description, stay))), _self_check_us(current)
    return Chosen({link: n for link, n in pieces.items() if n > 1}, tuple(reasons), before, counts, costs)


def _cut(meshes: Mapping[str, trimesh.Trimesh], cut: Mapping[str, int], progress: Progress) -> dict[str, LinkGeometry]:
    out = {}
    for done, (link, count) in enumerate(cut.items()):
        progress(f"cut {link} into {count}", done, len(cut))
        out[link] = fit_link(link, meshes[link], LinkCut(pieces=count))
    return out


def _false_share(counts: Counts) -> float:
    stops = counts.contacts - counts.missed + counts.false_stops
    return counts.false_stops / stops if stops else 0.0


def _stops(counts: Counts) -> str:
    stops = counts.contacts - counts.missed + counts.false_stops
    return f"{counts.false_stops} of {stops} stops false, {counts.missed} contacts missed, in {counts.poses} poses"


def _to_cut(counts: Counts, pieces: Mapping[str, int]) -> list[str]:
    """Links of the pairs with a fair share of the false stops, in the order of the stops."""
    worth = [pair for pair, n in counts.false_by_pair.most_common() if n >= FAIR_SHARE * counts.false_stops]
    return list(dict.fromkeys(link for pair in worth for link in pair.split("|") if link in pieces))


def _self_check_us(description: RobotDescription) -> float:
    """Median over five batches of the self check's time for one configuration, kinematics included [us]."""
    model = build_model(description)
    checker = CollisionChecker(model, _TIMED, clearance=build_clearance(model))
    seconds = []
    for seed in range(5):
        unit = np.random.default_rng(seed).random((_TIMED, len(description.joints)))
        q = torch.from_numpy(uniform(description, unit))
        started = time.process_time()
        checker.check(q, world=False)
        seconds.append(time.process_time() - started)
    return float(1e6 * np.median(seconds) / _TIMED)
