"""The console script of `simulo-sdk`, outside the package it starts.

Another product is distributed under the name `simulo` and writes the same package folder. Whichever is installed last
overwrites the other's files, so the check that tells them apart cannot live in that folder.
"""

import sys
from importlib import import_module, metadata

REINSTALL = "pip uninstall -y simulo simulo-sdk && pip install simulo-sdk"


def conflict() -> str | None:
    """What stands between this script and its own package, as a message for a person; None when nothing does."""
    try:
        other = metadata.distribution("simulo")
    except metadata.PackageNotFoundError:
        other = None
    if other is not None:
        return (
            f"the distribution 'simulo' {other.version} is another product and is installed beside 'simulo-sdk'. Both "
            f"write the package folder 'simulo', so neither can be trusted now. Remove both, then install this one:\n"
            f"    {REINSTALL}"
        )
    missing = _missing_module()
    if missing is not None:
        return (
            f"the files of 'simulo-sdk' are incomplete ({missing} is missing): another product named 'simulo' probably "
            f"overwrote or removed them. Install again:\n    {REINSTALL}"
        )
    return None


def _missing_module() -> str | None:
    """The first of our own modules that is not there; a missing dependency is not ours and raises."""
    try:
        if import_module("simulo").__file__ is None:  # the folder without its __init__.py still imports, as a namespace
            return "simulo.__init__"
        import_module("simulo.cli")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "simulo":
            raise
        return error.name
    return None


def main() -> None:
    message = conflict()
    if message is not None:
        print(f"simulo: {message}", file=sys.stderr)
        sys.exit(2)
    import_module("simulo.cli").main()


if __name__ == "__main__":
    main()
