"""A bare model file to a robot folder: robot.yaml drafted from what the file says, each guess marked as one."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from simulo.description.files import parse_robot_file
from simulo.description.load import read_text
from simulo.description.registry import ROBOT_FILE
from simulo.errors import LoweringError
from simulo.files import write_text
from simulo.lowering.hands import GuessedHand, guess_hands
from simulo.lowering.limits import MAX_XML_BYTES
from simulo.lowering.mjcf import read_mjcf, root_link_of
from simulo.lowering.model import RobotModel
from simulo.lowering.srdf import REST_NAMES, Srdf, read_srdf
from simulo.lowering.urdf import read_urdf
from simulo.lowering.xml import file_bytes, parse_xml

MODEL_SUFFIXES = (".urdf", ".xml", ".mjcf")

_FORMATS: Mapping[str, Literal["mjcf", "urdf"]] = {"robot": "urdf", "mujoco": "mjcf"}
_BASE_WORDS = re.compile(r"wheel|castor|caster|mobile_base|odom", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_YAML_WORDS = frozenset("true false yes no on off null nan inf y n".split())


@dataclass(frozen=True)
class RobotDraft:
    """robot.yaml's text, and what was guessed in it, a sentence each."""

    text: str
    guesses: tuple[str, ...]


def is_model_file(name: str) -> bool:
    """Whether a command's argument is a model file rather than a robot's name or folder."""
    return Path(name).suffix.lower() in MODEL_SUFFIXES


def draft_folder(model_file: Path, folder: Path | None = None, srdf_file: Path | None = None) -> tuple[Path, list[str]]:
    """Make the robot folder of a bare model file: `folder`, or the file's own. Returns it and what was guessed.

    A robot.yaml that is there already and names this file is kept, since it may have been corrected by hand.
    Raises LoweringError for a file that cannot be read, and for a robot.yaml of another model.
    """
    folder = model_file.parent if folder is None else folder
    path = folder / ROBOT_FILE
    source = os.path.relpath(os.path.abspath(model_file), os.path.abspath(folder))
    if path.is_file():
        declared = parse_robot_file(read_text(path), path).source
        if declared.package is not None or os.path.normpath(declared.path) != source:
            raise LoweringError(f"{path} is of another model ({declared.path}); name another folder with --out")
        return folder, []
    kind = model_format(model_file)
    model = read_urdf(model_file) if kind == "urdf" else read_mjcf(model_file, root_link_of(model_file))
    srdf = None if srdf_file is None else read_srdf(srdf_file, model)
    srdf_name = None if srdf_file is None else os.path.relpath(os.path.abspath(srdf_file), os.path.abspath(folder))
    draft = draft_robot(model, source, srdf, srdf_name)
    parse_robot_file(draft.text, path)
    write_text(path, draft.text)
    return folder, list(draft.guesses)


def model_format(path: Path) -> Literal["mjcf", "urdf"]:
    """URDF or MJCF, by the root element: either may be called .xml."""
    root = parse_xml(file_bytes(path, "a robot model", MAX_XML_BYTES), str(path), "a robot model")
    if root.tag not in _FORMATS:
        raise LoweringError(
            f"{path} is no robot model: its root element is <{root.tag}>, not <robot> (URDF) or <mujoco> (MJCF); "
            "export it as one of these"
        )
    return _FORMATS[root.tag]


def draft_robot(model: RobotModel, source: str, srdf: Srdf | None = None, srdf_name: str | None = None) -> RobotDraft:
    """robot.yaml for a model. source, srdf_name: the files' paths from robot.yaml's folder."""
    hands, doubts = guess_hands(model)
    columns = [joint for joint in model.joints if joint.name not in model.mimics]
    gripping = {hand.joint for hand in hands}
    roles = {joint.name: _role(joint.name, joint.child, gripping) for joint in columns}
    doubts += _looped(model)
    rest, rest_guess = _rest_pose(model, srdf)
    guesses = [
        *(f"role of {name}: {role}" for name, role in roles.items() if role != "arm"),
        *(f"gripper {name}: from the shape and range of its fingers" for name in _hand_names(hands)),
        *doubts,
        *rest_guess,
    ]
    if columns and len(gripping) < len(columns):
        guesses.insert(0, "role of every other joint: arm")
    name = re.sub(r"\W+", "_", Path(source).stem).strip("_") or "robot"
    lines = [
        "# Drafted by `simulo lower` from the model file. Everything marked `guessed` wants a look: correct it here,",
        "# then run `simulo lower` on this folder again. Lengths in metres, angles in radians.",
        f"name: {_scalar(name)}",
        "",
        "source:",
        f"  path: {_scalar(source)}  # from this folder",
        "  licence: unknown  # write the model's licence here before passing it on",
        f"  format: {model.format}",
        "",
        f"root_link: {_scalar(model.links[0])}",
        *([f"srdf: {_scalar(srdf_name)}"] if srdf_name is not None else []),
        "",
        "joints:  # roles are guessed" if columns else "joints: []",
        *(f"  - {{name: {_scalar(joint.name)}, role: {roles[joint.name]}}}" for joint in columns),
    ]
    lines += _mimic_lines(model) + _hand_lines(hands)
    lines += ["", *(f"# guessed: {sentence}" for sentence in rest_guess)]
    lines += ["rest_pose: {" + ", ".join(f"{_scalar(joint)}: {_value(value)}" for joint, value in rest.items()) + "}"]
    lines += [f"# open: {doubt}" for doubt in doubts]
    return RobotDraft("\n".join(lines) + "\n", tuple(guesses))


def _role(joint: str, link: str, gripping: Iterable[str]) -> str:
    if joint in gripping:
        return "gripper"
    return "base" if _BASE_WORDS.search(joint) or _BASE_WORDS.search(link) else "arm"


def _looped(model: RobotModel) -> list[str]:
    """In a loop that a connection closes, one joint leads, and which one no file says in so many words."""
    return [
        f"{joint.name} is in a closed loop: unless it leads, move it to mimic_joints or held_joints"
        for joint in model.joints
        if joint.name in model.linkage and joint.name not in model.mimics and not joint.actuated
    ]


def _rest_pose(model: RobotModel, srdf: Srdf | None) -> tuple[dict[str, float], list[str]]:
    """Joints that do not rest at 0: an SRDF's rest state, else 0 where the limits admit it, else the nearest limit."""
    states = {} if srdf is None else srdf.states
    named = next((state for state in REST_NAMES if state in states), next(iter(states), None))
    columns = [joint for joint in model.joints if joint.name not in model.mimics]
    rest, guesses = {}, []
    if named is not None:
        guesses.append(f"rest pose: state {named!r} of the SRDF")
    for joint in columns:
        value = states.get(named, {}).get(joint.name, 0.0) if named is not None else 0.0
        inside = min(max(value, joint.lower), joint.upper)
        if inside != value:
            guesses.append(f"rest pose of {joint.name}: {inside:g}, the limit nearest to {value:g}")
        if inside != 0.0:
            rest[joint.name] = float(inside)
    return rest, guesses


def _mimic_lines(model: RobotModel) -> list[str]:
    if not model.mimics:
        return []
    rows = [
        f"  - {{name: {_scalar(relation.joint)}, mimics: {_scalar(relation.leader)}, "
        f"multiplier: {_value(relation.multiplier)}, offset: {_value(relation.offset)}}}"
        for relation in model.mimics.values()
    ]
    return ["", "mimic_joints:  # the file's own relations, checked against it at each lowering", *rows]


def _hand_names(hands: list[GuessedHand]) -> list[str]:
    """`gripper`, or by side, or by joint."""
    if len(hands) == 1:
        return ["gripper"]
    sides = [next((side for side in ("left", "right") if side in hand.hand_link.lower()), "") for hand in hands]
    return sides if all(sides) and len(set(sides)) == len(hands) else [hand.joint for hand in hands]


def _hand_lines(hands: list[GuessedHand]) -> list[str]:
    if not hands:
        return []
    lines = ["", "grippers:  # guessed from the fingers' shapes and range; z of the grasp frame is the approach"]
    for name, hand in zip(_hand_names(hands), hands, strict=True):
        frame = hand.grasp_frame
        lines += [
            f"  - name: {_scalar(name)}",
            f"    joint: {_scalar(hand.joint)}",
            f"    hand_link: {_scalar(hand.hand_link)}",
            f"    jaw_links: {_flow(hand.jaw_links)}",
            f"    follower_links: {_flow(hand.follower_links)}",
            f"    open_position: {_value(hand.open_position)}",
            f"    closed_position: {_value(hand.closed_position)}",
            f"    grasp_frame: {{position: {_numbers(frame.position, 5)}, "
            f"orientation_wxyz: {_numbers(frame.orientation_wxyz, 6)}}}",
            "    pad_points:",
            *(f"      - {{link: {_scalar(link)}, position: {_numbers(point, 5)}}}" for link, point in hand.pads),
        ]
    return lines


def _flow(names: Iterable[str]) -> str:
    return "[" + ", ".join(_scalar(name) for name in names) + "]"


def _numbers(values: Iterable[float], digits: int) -> str:
    return "[" + ", ".join(_value(round(float(value), digits)) for value in values) + "]"


def _value(number: float) -> str:
    """A number as YAML: its floats have a point."""
    text = repr(float(number) + 0.0)
    return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text


def _scalar(text: str) -> str:
    """A name as YAML, quoted where YAML would read something else in it."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS and math.isnan(_number(text))
    return text if plain else json.dumps(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
