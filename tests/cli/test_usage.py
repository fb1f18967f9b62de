"""Wrong use: exit code 2 and one message, never a traceback."""

from collections.abc import Callable

import simulo as package


def test_version(simulo: Callable) -> None:
    run = simulo("--version")
    assert (run.code, run.out) == (0, f"simulo {package.__version__}\n")


def test_unknown_command(simulo: Callable) -> None:
    run = simulo("dance")
    assert run.code == 2
    assert "No such command 'dance'" in run.err
