"""Running `simulo ...` in this process."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import simulo_sdk


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str


@pytest.fixture
def simulo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Run]:
    def run(*arguments: str) -> Run:
        monkeypatch.setattr("sys.argv", ["simulo", *arguments])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as exit_info:
            simulo_sdk.main()
        printed = capsys.readouterr()
        return Run(int(exit_info.value.code or 0), printed.out, printed.err)

    return run
