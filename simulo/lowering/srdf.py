"""SRDF, MoveIt's companion of a URDF: the pairs of links that need no check, and named configurations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from simulo.description.schema import DisabledPair
from simulo.errors import LoweringError
from simulo.lowering.limits import MAX_JOINT_VALUE
from simulo.lowering.model import RobotModel
from simulo.lowering.xml import Element, numbers, read_xml

REST_NAMES = ("home", "rest", "ready", "default", "zero")
"""States that are likely to be a robot's rest pose, the likeliest first."""


@dataclass(frozen=True)
class Srdf:
    """disabled: pairs, each with the file's reason. states: joint values [rad or m] by state name and joint name."""

    disabled: tuple[DisabledPair, ...]
    states: Mapping[str, Mapping[str, float]]


def read_srdf(path: Path, model: RobotModel) -> Srdf:
    """The disabled pairs and states of an SRDF file about `model`.

    Refused by name (LoweringError): links and joints that the model lacks, pairs of one link, states of unreadable
    numbers. Of a pair that is listed twice the first reason counts. A state's values for followers are left out: they
    follow.
    """
    robot = read_xml(path, "SRDF", ("robot",))
    links = model.links
    reasons: dict[frozenset[str], DisabledPair] = {}
    for element in robot.findall("disable_collisions"):
        first, second = (_link(element, attribute, links, path) for attribute in ("link1", "link2"))
        if first == second:
            raise LoweringError(f"{_label(element, path)} pairs link {first!r} with itself; name two links")
        reason = " ".join(element.get("reason", "").split()) or "no reason given"
        reasons.setdefault(frozenset((first, second)), DisabledPair(first, second, f"SRDF: {reason}"))
    _apply_defaults(robot, links, path, reasons)
    return Srdf(tuple(_ordered(reasons, links)), _states(robot, model, path))


def _label(element: Element, path: Path) -> str:
    return f"{path}, line {element.sourceline}: <{element.tag}>"


def _link(element: Element, attribute: str, links: Collection[str], path: Path) -> str:
    name = element.get(attribute, "")
    if name not in links:
        raise LoweringError(
            f"{_label(element, path)} {attribute} names {name!r}, which is no link of the robot; remove the row, or "
            f"name one of: {', '.join(links)}"
        )
    return name


def _apply_defaults(
    robot: Element, links: Collection[str], path: Path, reasons: dict[frozenset[str], DisabledPair]
) -> None:
    """`disable_default_collisions`: all pairs of a link, but for those that `enable_collisions` names."""
    enabled = {
        frozenset(_link(element, attribute, links, path) for attribute in ("link1", "link2"))
        for element in robot.findall("enable_collisions")
    }
    for element in robot.findall("disable_default_collisions"):
        link = _link(element, "link", links, path)
        for other in links:
            pair = frozenset((link, other))
            if other != link and pair not in enabled:
                reasons.setdefault(pair, DisabledPair(link, other, f"SRDF: all pairs of {link} are disabled"))
    for pair in enabled & reasons.keys():
        del reasons[pair]


def _ordered(reasons: Mapping[frozenset[str], DisabledPair], links: Collection[str]) -> list[DisabledPair]:
    """In the order of the model's links, whatever the file's."""
    return [reasons[frozenset(pair)] for pair in combinations(links, 2) if frozenset(pair) in reasons]


def _states(robot: Element, model: RobotModel, path: Path) -> dict[str, dict[str, float]]:
    joints = {joint.name for joint in model.joints}
    virtual = {element.get("name") for element in robot.findall("virtual_joint")}
    states: dict[str, dict[str, float]] = {}
    for element in robot.findall("group_state"):
        name = element.get("name")
        if not name:
            raise LoweringError(f"{_label(element, path)} has no name; name the state")
        values = states.setdefault(name, {})
        for entry in element.findall("joint"):
            joint, label = entry.get("name", ""), f"{_label(entry, path)} of state {name!r}"
            several = len(entry.get("value", "").split()) > 1
            if joint in virtual or (several and joint not in joints):  # where the base stands is no joint's value
                continue
            if joint not in joints:
                raise LoweringError(
                    f"{label} names joint {joint!r}, which is no moving joint of the robot; remove it, or name one of: "
                    f"{', '.join(sorted(joints)) or 'none'}"
                )
            if joint not in model.mimics:
                (values[joint],) = numbers(entry.get("value", ""), 1, f"{label}: value of {joint!r}", MAX_JOINT_VALUE)
    return states
