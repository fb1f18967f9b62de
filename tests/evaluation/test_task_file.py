"""Task files are found by path and hold one task."""

from pathlib import Path

import pytest

from simulo.evaluation.task_file import TaskFileError, find_task_file, load_task_class, load_task_module

ONE = "import simulo\n\n\nclass Mine(simulo.Task):\n    observation_dim = action_dim = 1\n"


def test_the_working_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tasks").mkdir()
    mine = tmp_path / "tasks" / "pick_place.py"
    mine.write_text(ONE)
    monkeypatch.chdir(tmp_path)
    assert find_task_file("tasks/pick_place.py") == mine
    assert load_task_class("tasks/pick_place.py").__name__ == "Mine"
    assert load_task_module("tasks/pick_place.py") is load_task_module(mine)


def test_an_unknown_file_lists_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TaskFileError, match=r"no task file 'tasks/juggle.py' in .*packaged tasks"):
        find_task_file("tasks/juggle.py")


@pytest.mark.parametrize("text", ["import simulo\n", ONE + ONE.replace("Mine", "Yours"), "from simulo import Task\n"])
def test_none_or_several_tasks_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.py").write_text(text)
    with pytest.raises(TaskFileError, match=r"exactly one subclass of simulo\.Task"):
        load_task_class(tmp_path / "t.py")


def test_a_file_that_fails_is_not_remembered(tmp_path: Path) -> None:
    file = tmp_path / "t.py"
    file.write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        load_task_module(file)
    file.write_text(ONE)
    assert load_task_class(file).__name__ == "Mine"
