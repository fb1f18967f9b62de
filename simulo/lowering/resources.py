"""Where the files that a URDF names lie. Nothing depends on the working directory.

A model file says which files are read, and may come from anybody: it reaches the folder it came with and the package
roots that the user set, no others.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from simulo.errors import LoweringError
from simulo.lowering.xml import read_xml

PACKAGE_VARIABLES = ("ROS_PACKAGE_PATH", "SIMULO_MODEL_PATH", "MENAGERIE_ROOT")

PACKAGE_MARK = "package.xml"
"""The file in the top folder of a ROS package."""

REACH = 4
"""How many folders above its own a file reaches where none of them is marked as a package. Collections of models share
meshes that far apart."""


def named_file(name: str, label: str, path: Path, package_roots: Sequence[Path] = ()) -> Path:
    """The file that the model at `path` names: a plain path, file://PATH or package://NAME/PATH.

    A package is looked for in `package_roots`, in the roots of PACKAGE_VARIABLES, then in the folders above the model.
    Raises LoweringError, listing every place tried, when there is none, and when the name leads out of the folders
    that the model may reach. label: file and element, for errors.
    """
    roots = [absolute(root) for root in (*package_roots, *environment_roots())]
    if not name.strip() or "\0" in name:
        raise LoweringError(f"{label} names no mesh file ({name!r}); give it a filename")
    if "$(" in name or "${" in name:
        raise LoweringError(f"{label}: mesh {name!r} has an unexpanded macro; expand the file with xacro first")
    scheme = urlsplit(name).scheme if "://" in name else ""
    if scheme in ("package", "model"):
        return _in_packages(name.partition("://")[2], name, label, path, roots)
    if scheme not in ("", "file"):
        raise LoweringError(f"{label}: mesh {name!r} is not on this machine; download it and name its path")
    plain = unquote(name.removeprefix("file://")) if scheme else name
    place = absolute(path.parent / plain.replace("\\", "/"))
    home = home_folder(path)
    if not any(place.is_relative_to(root) for root in (home, *roots)):
        raise LoweringError(
            f"{label}: mesh {name!r} leads to {place}, out of the model's folder {home}; move it there, or add its "
            "root to SIMULO_MODEL_PATH"
        )
    return _existing([place], name, label)


def _in_packages(inside: str, name: str, label: str, path: Path, roots: Sequence[Path]) -> Path:
    package, _, rest = inside.lstrip("/").partition("/")
    above = [folder for folder in absolute(path).parents if folder != folder.parent]
    tried = []
    for root in (*roots, *above):
        # a root may be the folder of packages or, as ROS_PACKAGE_PATH allows, the package itself
        for folder in [root / package, *([root] if _is_package(root, package) else [])]:
            place = absolute(folder / rest)
            if package in ("", ".", "..") or not place.is_relative_to(folder):
                raise LoweringError(
                    f"{label}: mesh {name!r} leads out of package {package!r}; name a file inside the package"
                )
            tried.append(place)
    return _existing(tried, name, label)


def _is_package(folder: Path, package: str) -> bool:
    """Whether the folder is that package, by its own name or by what its package.xml says."""
    mark = folder / PACKAGE_MARK
    if folder.name == package or not mark.is_file():
        return folder.name == package
    name = read_xml(mark, "a package manifest", ("package",)).findtext("name")
    return name is not None and name.strip() == package


def _existing(places: Sequence[Path], name: str, label: str) -> Path:
    try:
        for place in places:
            if place.is_file():
                return place
    except OSError as error:  # such as a name too long for the file system
        raise LoweringError(
            f"{label}: mesh {name[:80]!r} cannot be looked for ({error.strerror}); correct it"
        ) from error
    listing = "\n".join(f"  - {place}" for place in places)
    raise LoweringError(
        f"{label}: mesh {name!r} does not exist as a file. Tried:\n{listing}\n"
        "Restore it, correct the name, or set ROS_PACKAGE_PATH to the folder of its package"
    )


def home_folder(path: Path) -> Path:
    """The folder that the model came with: its package, or else REACH folders up.

    Links in the file system are followed as they stand: they are the user's, not the model file's.
    """
    above = [folder for folder in absolute(path).parents if folder != folder.parent]
    for folder in above:
        if (folder / PACKAGE_MARK).is_file():
            return folder
    return above[min(REACH, len(above) - 1)] if above else absolute(path).parent


def absolute(path: Path) -> Path:
    """`..` taken out by name alone."""
    return Path(os.path.abspath(path.expanduser()))


def environment_roots() -> tuple[Path, ...]:
    lists = [os.environ.get(variable, "") for variable in PACKAGE_VARIABLES]
    return tuple(Path(root) for text in lists for root in text.split(os.pathsep) if root)
