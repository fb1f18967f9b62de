"""From a recorded episode to judged stops and contacts, measured on the links' own triangles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from simulo.collision import Kind, unpack_bricks
from simulo.evaluation.counting import (
    HELD,
    MAP_PARTY,
    TOUCHING,
    Contact,
    ContactClass,
    JudgedEpisode,
    Pair,
    RefusedStep,
    stop_events,
)
from simulo.evaluation.records import EpisodeRecord, JudgeName, MapFrames, Refusals
from simulo.evaluation.truth import Truth, link_poses, matrix_of

Array = NDArray[np.float64]
MOVED = 0.005
"""[m] A body that moved farther than this since its last depth frame is `dynamic`: no map can show it."""
_INFRASTRUCTURE = {Kind.NON_FINITE, Kind.STALE_MAP, Kind.NO_MAP, Kind.NOT_EVALUATED}


@dataclass(frozen=True)
class Adjudicator:
    """margin [m]: of the gates against the world. per_second: policy steps in a second."""

    truth: Truth
    margin: float
    per_second: float

    def contacts(self, record: EpisodeRecord) -> tuple[Contact, ...]:
        """The first contact of every pair that is no allowed touch, with the real clearance as its step ended."""
        first: dict[Pair, Contact] = {}
        found = record.contacts
        for k in np.flatnonzero(~found.allowed):
            step, pair = int(found.step[k]), (str(found.a[k]), str(found.b[k]))
            known = first.get(pair)
            if known is not None and known.kind is not ContactClass.PROXY:
                continue
            clearance = min(self._measured_clearance(record, pair, at) for at in (step, step + 1))
            if clearance > TOUCHING:
                kind = ContactClass.PROXY
            else:
                kind = ContactClass.DYNAMIC if _moved_unseen(record, pair, step) else ContactClass.REAL
            if known is None or kind is not ContactClass.PROXY:
                first[pair] = Contact(step, pair, kind, clearance)
        return tuple(sorted(first.values(), key=lambda contact: contact.step))

    def judge(
        self, record: EpisodeRecord, judge: JudgeName, cells: str, contacts: tuple[Contact, ...]
    ) -> JudgedEpisode:
        """One episode under one gate. cells: key of the map that the gate had in `record.maps`, "" for none.

        The swept model has one party for both fingers of a hand, the leader: a contact of either is its own, and its
        clearance is that of the nearer.
        """
        refusals = record.refusals[str(judge)]
        failure = record.failure or _broken(refusals)
        frames = record.maps.get(cells)
        leaders = self._leaders() if judge.finger_model == "swept" else {}
        contacts = tuple(replace(c, pair=_renamed(c.pair, leaders)) for c in contacts)
        measured = [] if failure else self._refused(record, refusals, frames, leaders)
        events = stop_events(measured, contacts, self.margin, self.per_second)
        return JudgedEpisode(record.number, record.hazard, record.steps, None, events, contacts, failure)

    def _leaders(self) -> dict[str, str]:
        """Leader of every follower finger."""
        grippers = self.truth.description.grippers
        return {follower: gripper.jaw_links[0] for gripper in grippers for follower in gripper.follower_links}

    def _refused(
        self, record: EpisodeRecord, refusals: Refusals, frames: MapFrames | None, leaders: dict[str, str]
    ) -> list[RefusedStep]:
        out = []
        decoded: tuple[int, Array] = (-1, np.empty((0, 3)))
        for k, step in enumerate(refusals.step.tolist()):
            a, b = str(refusals.a[k]), str(refusals.b[k])
            scene = _Scene(self.truth, record, step, step)
            ours, theirs = _stands_for(a, leaders), _stands_for(b, leaders)
            if b != MAP_PARTY or frames is None:
                clearance = min(scene.between(x, y) for x in ours for y in theirs)
                # A prop given as it is stands for the cells of a map: any model would stop within the margin of it.
                obstacle = clearance if b in record.props and not np.isnan(clearance) else np.inf
                out.append(RefusedStep(step, (a, b), clearance, obstacle))
                continue
            frame = int(np.searchsorted(frames.step, step, side="right")) - 1
            if frame != decoded[0]:
                decoded = (frame, cell_centres(frames, frame))
            clearance = min(scene.to_world(x) for x in ours)
            near = min(scene.to_cells(x, decoded[1], frames.cell, 2.0 * self.margin) for x in ours)
            beyond = scene.nearest_body(refusals.cell_centre[k], exclude=scene.held) - np.sqrt(3.0) * frames.cell
            out.append(RefusedStep(step, (a, b), clearance, near, beyond))
        return out

    def _measured_clearance(self, record: EpisodeRecord, pair: Pair, at: int) -> float:
        """Between the real surfaces of a pair where the engine had them, `at` an index of `record.measured`."""
        step = min(at, record.steps - 1)
        return _Scene(self.truth, record, step, at, measured=True).between(*pair)


class _Scene:
    """Where everything is at one step: links where they are commanded, or measured; props where the engine has them."""

    def __init__(self, truth: Truth, record: EpisodeRecord, step: int, at: int, measured: bool = False):
        self.truth = truth
        q = record.measured[at] if measured else record.commanded[step]
        self.poses = link_poses(truth.description, q)
        self.props = {
            name: matrix_of(record.prop_poses[at, i].astype(np.float64))
            for i, name in enumerate(record.props)
            if record.present[i]
        }
        self.held = str(record.held[step])
        hand = next(g for g in truth.description.grippers if g.hand_link == record.hand)
        self.allowed = {link: {str(record.touchable[step])} for link in hand.grasp_contact_links}
        self.allowed[self.held] = set(str(record.supports[step]).split("|"))
        if self.held and not measured:
            self.props[self.held] = self.poses[record.hand] @ matrix_of(record.held_pose[step].astype(np.float64))

    def between(self, a: str, b: str) -> float:
        """Real clearance [m] of two named parties, nan where one of them has no real surface."""
        a, b = self._party(a), self._party(b)
        poses = self.poses | self.props
        if not (self.truth.has(a) and self.truth.has(b) and a in poses and b in poses):
            return np.nan
        return self.truth.distance(a, poses[a], b, poses[b])

    def to_world(self, party: str) -> float:
        """Real clearance [m] of a party from the nearest body of the scene that it is not allowed to touch."""
        name = self._party(party)
        left_out = {name, self.held} | self.allowed.get(name, set())
        others = [prop for prop in self.props if prop not in left_out]
        return min((self.between(name, prop) for prop in others), default=np.inf)

    def to_cells(self, party: str, centres: Array, cell: float, reach: float) -> float:
        name = self._party(party)
        pose = (self.poses | self.props).get(name)
        return np.inf if pose is None else self.truth.to_cells(name, pose, centres, cell, reach)

    def nearest_body(self, point: Array, exclude: str) -> float:
        """From a point to the nearest body of the scene [m]."""
        distances = [
            self.truth.point_distance(name, pose, point) for name, pose in self.props.items() if name != exclude
        ]
        return min(distances, default=np.inf)

    def _party(self, name: str) -> str:
        return self.held if name == HELD else name


def _stands_for(party: str, leaders: dict[str, str]) -> list[str]:
    """The links whose real surfaces a party stands for."""
    return [party, *(follower for follower, leader in leaders.items() if leader == party)]


def _renamed(pair: Pair, leaders: dict[str, str]) -> Pair:
    return leaders.get(pair[0], pair[0]), leaders.get(pair[1], pair[1])


def cell_centres(frames: MapFrames, frame: int) -> Array:
    """Centres of a map's occupied cells in the environment's frame [m], shape (K, 3)."""
    bricks = torch.from_numpy(frames.bricks[frame : frame + 1])
    counts = tuple(4 * n for n in bricks.shape[1:])
    occupied = unpack_bricks(bricks, counts)[0].numpy()  # type: ignore[arg-type]
    return frames.corner + (np.argwhere(occupied) + 0.5) * frames.cell


def _moved_unseen(record: EpisodeRecord, pair: Pair, step: int) -> bool:
    """Whether a prop of the pair had moved since the newest depth frame."""
    for party in pair:
        if party in record.props:
            place = record.prop_poses[:, record.props.index(party), :3]
            if np.linalg.norm(place[step] - place[record.frame_step[step]]) > MOVED:
                return True
    return False


def _broken(refusals: Refusals) -> str:
    """Why a gate could not judge, or an empty string: what it refused for is then no stop of the robot's."""
    for kind, step in zip(refusals.kind.tolist(), refusals.step.tolist(), strict=True):
        if Kind(kind) in _INFRASTRUCTURE:
            return f"the gate answered {Kind(kind).name.lower()} at step {step}"
    return ""
