"""What stands between an MJCF file from anybody and MuJoCo's parser and compiler, which are C++ in this process.

Both trust their input: a file that attaches itself ends in a segmentation fault, a huge count in minutes of work or
in all the machine's memory. So the XML is looked at first, which also gives errors with a line and a remedy; and the
compilation is tried in a process of its own, with limits, whose death is an error message here.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from simulo.errors import LoweringError
from simulo.lowering.limits import (
    MAX_ELEMENTS,
    MAX_MESH_BYTES,
    MAX_SHAPES,
    refuse_large_file,
)
from simulo.lowering.resources import absolute, environment_roots, home_folder
from simulo.lowering.xml import Element, local_name, read_xml

TRIAL_SECONDS = 10
"""[s] Processor time of the trial; the largest robots in use need 3."""

TRIAL_PATIENCE = 300
"""[s] Time on the clock after which a trial is ended even so, on a machine with much else to do."""

TRIAL_BYTES = 2 << 30
"""Memory of the trial; the largest robots in use need 1 GB."""

MAX_COUNT = 100_000
"""Largest of the counts by which a few words ask for many things."""

_COUNTS = {
    "replicate": ("count",),
    "composite": ("count",),
    "flexcomp": ("count",),
    "hfield": ("nrow", "ncol"),
    "texture": ("width", "height", "gridsize"),
    "size": ("nkey", "nuserdata", "njmax", "nconmax", "nstack"),
}

_USER_SIZES = "nuser_"
_MAX_USER_SIZE = 1_000

_FILES = {
    "mesh": ("meshdir", "assetdir"),
    "hfield": ("meshdir", "assetdir"),
    "skin": ("meshdir", "assetdir"),
    "texture": ("texturedir", "assetdir"),
}
_FILE_ATTRIBUTES = ("file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")
_MODELS = ("include", "model")


def refuse_hostile_mjcf(path: Path) -> None:
    """Raise LoweringError, naming file, element and remedy, unless MuJoCo gets through the model in an orderly way.

    What MuJoCo itself refuses in words passes here: its own compilation says so again.
    """
    look_at(path)
    try_compiling(path)


def look_at(path: Path) -> None:
    """Every XML file that the model pulls in, once through: sizes, counts and the files they name."""
    elements, seen = 0, set()
    waiting: list[tuple[Path, tuple[str, ...]]] = [(path, ("mujoco",))]
    compiler: dict[str, str] = {}
    while waiting:
        file, root_tags = waiting.pop()
        if not file.exists():
            raise LoweringError(f"{path}: the file {file} that it includes does not exist; restore it")
        if absolute(file) in seen:
            raise LoweringError(f"{path}: {file} is included or attached more than once, or by itself; use it once")
        seen.add(absolute(file))
        root = read_xml(file, "MJCF", root_tags)
        for element in root.iter("compiler"):
            compiler.update({str(key): str(value) for key, value in element.attrib.items()})
        for element in root.iter():
            elements += 1
            label = f"{file}, line {element.sourceline}: <{local_name(element)}>"
            if elements > MAX_ELEMENTS:
                raise LoweringError(f"{label}: the model has over {MAX_ELEMENTS} elements with its includes; use fewer")
            _refuse_counts(element, label)
            if element.tag in _MODELS and element.get("file"):
                tags = ("mujoco", "mujocoinclude") if element.tag == "include" else ("mujoco",)
                waiting.append((_reached(element.get("file"), "", path, file, label), tags))
        for element, name, folder in _named_files(root, compiler):
            place = _reached(name, folder, path, file, f"{file}, line {element.sourceline}: <{element.tag}>")
            if place.exists():  # what is missing MuJoCo misses too, and there the links that need it are known
                refuse_large_file(place, MAX_MESH_BYTES, f"{file}: <{element.tag}> file {place}", "simplify it")


def _refuse_counts(element: Element, label: str) -> None:
    for attribute, value in element.attrib.items():
        most = MAX_COUNT if attribute in _COUNTS.get(str(element.tag), ()) else None
        if element.tag == "size" and str(attribute).startswith(_USER_SIZES):
            most = _MAX_USER_SIZE
        if most is None:
            continue
        product = 1.0
        for word in str(value).split():
            product *= _magnitude(word)
        if product > most:
            raise LoweringError(f"{label} {attribute} is {value!r}, over the limit of {most}; write a smaller one")
    if element.tag == "replicate":
        product = 1.0
        for outer in (element, *element.iterancestors("replicate")):
            product *= _magnitude(outer.get("count", "1"))
        if product > MAX_SHAPES:
            raise LoweringError(f"{label} and those around it make {product:.0f} copies, over {MAX_SHAPES}; use fewer")


def _magnitude(word: str) -> float:
    """A count's size; what is no number is MuJoCo's to refuse."""
    try:
        return max(1.0, abs(float(word)))
    except ValueError:
        return 1.0


def _named_files(root: Element, compiler: dict[str, str]) -> Iterator[tuple[Element, str, str]]:
    """Elements with a file that MuJoCo opens, pictures too; the file's name, and the folder setting that applies."""
    for tag, settings in _FILES.items():
        folder = next((compiler[name] for name in settings if compiler.get(name)), "")
        for element in root.iter(tag):
            for name in filter(None, map(element.get, _FILE_ATTRIBUTES)):
                yield element, name, folder


def _reached(name: str, folder: str, path: Path, including: Path, label: str) -> Path:
    """The place that a name means, inside the model's own folder. A pipe or a device there would never end."""
    home, roots = home_folder(path), environment_roots()
    places = [absolute(base / folder / name) for base in dict.fromkeys((path.parent, including.parent))]
    if not any(place.is_relative_to(root) for place in places for root in (home, *roots)):
        raise LoweringError(
            f"{label} file {name!r} leads to {places[0]}, out of the model's folder {home}; move it there, or "
            "add its root to SIMULO_MODEL_PATH"
        )
    try:
        found = next((place for place in places if place.exists()), places[0])
    except OSError as error:  # such as a name too long for the file system
        raise LoweringError(
            f"{label} file {name[:80]!r} cannot be looked for ({error.strerror}); correct it"
        ) from error
    if found.exists() and not found.is_file():
        raise LoweringError(f"{label} file {found} is no regular file; name one")
    return found


def try_compiling(path: Path) -> None:
    child = Path(__file__).with_name("mjcf_trial.py")
    command = [sys.executable, "-P", str(child), str(absolute(path)), str(TRIAL_SECONDS), str(TRIAL_BYTES)]
    limits = f"{TRIAL_SECONDS} s of processor time or {TRIAL_BYTES / 1e9:.1f} GB"
    try:
        done = subprocess.run(command, capture_output=True, timeout=TRIAL_PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise LoweringError(f"{path}: MuJoCo needs over {limits}; use a simpler model") from error
    if done.returncode == 0:
        return
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL, 2):
        raise LoweringError(f"{path}: MuJoCo needs over {limits} to compile the model; use a simpler one")
    words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    how = f"signal {-done.returncode}" if done.returncode < 0 else words or f"exit code {done.returncode}"
    raise LoweringError(
        f"{path}: MuJoCo's compiler breaks down on the model ({how}); repair what it attaches or counts"
    )
