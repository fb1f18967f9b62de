"""The pages in docs/ do what they say: their Python runs, from top to bottom, and prints what the block below shows."""

import contextlib
import importlib.util
import io
import re
import sys
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


def test_the_grasp_is_still_the_one_that_the_grippers_page_tells_of() -> None:
    spec = importlib.util.spec_from_file_location("gripper_pictures", DOCS / "gripper_pictures.py")
    assert spec and spec.loader
    pictures = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = pictures  # where its dataclass looks for itself
    spec.loader.exec_module(pictures)
    grasp = pictures.record()
    first = {name: 1e3 * grasp.time[list(states).index(1)] for name, states in grasp.states.items()}
    told = re.findall(r"(\d+) ms", re.search(r"!\[Finger speed[^\]]*", (DOCS / "grippers.md").read_text())[0])  # type: ignore[index]
    told_by = ("one sample", "two samples", "two, each step", "ten, each step")
    assert [first[name] for name in told_by] == pytest.approx([float(ms) for ms in told[1:]], abs=4.0)
