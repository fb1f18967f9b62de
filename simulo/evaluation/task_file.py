"""Task files, run by path."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

from simulo.errors import SimuloError
from simulo.paths import data_path
from simulo.task import Task


class TaskFileError(SimuloError, ValueError):
    """A task file is not there, or does not define exactly one task."""


def find_task_file(path: str | Path) -> Path:
    """`path` as it stands (from the working folder), else among the tasks that travel with simulo.

    Raises TaskFileError, listing the packaged tasks.
    """
    given = Path(path).expanduser()
    packaged = data_path("tasks")
    inside = given.relative_to("tasks") if given.parts[:1] == ("tasks",) else given
    for candidate in (given, packaged / inside, packaged / f"{inside}.py"):
        if candidate.is_file():
            return candidate.resolve()
    known = ", ".join(f"tasks/{file.name}" for file in sorted(packaged.glob("*.py")))
    raise TaskFileError(f"no task file {str(path)!r} in {Path.cwd()} or among the packaged tasks; there are: {known}")


def load_task_module(path: str | Path) -> ModuleType:
    """The task file as a module, executed once per process: two callers get the same classes."""
    file = find_task_file(path)
    name = f"simulo_task_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise TaskFileError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and pickling look a class's module up by name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_task_class(path: str | Path) -> type[Task]:
    """The one `Task` subclass that the file itself defines. Raises TaskFileError when there is none, or several."""
    module = load_task_module(path)
    tasks = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Task) and value.__module__ == module.__name__
    ]
    if len(tasks) != 1:
        names = [task.__name__ for task in tasks]
        raise TaskFileError(f"{module.__file__} must define exactly one subclass of simulo.Task, it defines {names}")
    return tasks[0]
