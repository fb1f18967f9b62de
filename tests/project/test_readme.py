"""The README does what it says: its Python runs, and prints what the block below it shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest
import warp

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n*```text\n(?P<output>.*?)^```$)?", re.MULTILINE | re.DOTALL)
BLOCKS = [(m["code"], m["output"]) for m in BLOCK.finditer(README.read_text())]


def test_there_is_code_to_run() -> None:
    assert BLOCKS, "README.md shows no Python"


@pytest.mark.parametrize(("code", "output"), BLOCKS)
def test_block(code: str, output: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warp.config, "log_level", 40)  # Warp's greeting and its loaded kernels are not ours to show
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    if output is not None:
        assert printed.getvalue() == output


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    text = README.read_text()
    assert text.count("\n") < 150
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (README.parent / target).exists(), f"README.md links to {target}, which is not there"
