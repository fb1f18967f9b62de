"""Wrong use: exit code 2 and one message, never a traceback."""

from collections.abc import Callable

import pytest

import simulo as package


def test_version(simulo: Callable) -> None:
    run = simulo("--version")
    assert (run.code, run.out) == (0, f"simulo {package.__version__}\n")


def test_unknown_command(simulo: Callable) -> None:
    run = simulo("dance")
    assert run.code == 2
    assert "No such command 'dance'" in run.err


def test_viewing_without_viser_names_the_extra(simulo: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulo.cli.view.find_spec", lambda name: None)
    run = simulo("view", "gantry")
    assert run.code == 2
    assert "pip install 'simulo-sdk[viewer]'" in run.err


def test_viewing_what_is_neither_robot_nor_run_lists_the_robots(simulo: Callable) -> None:
    run = simulo("view", "no_such_robot")
    assert run.code == 2
    assert "no_such_robot" in run.err and "openarm" in run.err
