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
    try:
        import_module("simulo.errors")
        import_module("simulo.cli")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "simulo":
            raise
        return (
            f"the files of 'simulo-sdk' are incomplete ({error.name} is missing): another product named 'simulo' "
            f"probably overwrote or removed them. Install again:\n    {REINSTALL}"
        )
    return None


def main() -> None:
    message = conflict()
    if message is not None:
        print(f"simulo: {message}", file=sys.stderr)
        sys.exit(2)
    import_module("simulo.cli").main()


if __name__ == "__main__":
    main()
