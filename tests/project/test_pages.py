"""The pages in docs/ do what they say: their Python runs, from top to bottom, and prints what the block below shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.project.test_readme import BLOCK

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(page.name for page in DOCS.glob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_in_their_order(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer((DOCS / page).read_text()):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], page, "exec"), names)
        if block["output"] is not None:
            assert printed.getvalue() == block["output"]


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_links_to_is_there(page: str) -> None:
    text = (DOCS / page).read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (DOCS / target).exists(), f"{page} links to {target}, which is not there"


def test_the_grippers_page_has_code() -> None:
    assert len(BLOCK.findall((DOCS / "grippers.md").read_text())) >= 4
