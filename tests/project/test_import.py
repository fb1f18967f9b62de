"""What `import simulo` costs and offers."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import simulo

HEAVY = ("torch", "warp", "mujoco", "trimesh", "scipy", "numpy", "pydantic", "typer", "matplotlib", "isaaclab")


def test_import_loads_no_heavy_package_and_no_gpu_runtime() -> None:
    program = (
        "import sys, simulo; "
        f"print([name for name in {HEAVY!r} if name in sys.modules]); "
        "print([line.split()[-1] for line in open('/proc/self/maps') if 'libcuda' in line])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["[]", "[]"]
    assert run.stderr == ""


@pytest.mark.parametrize("name", simulo.__all__)
def test_public_name_resolves(name: str) -> None:
    assert getattr(simulo, name) is not None
    assert name in dir(simulo)


def test_type_checkers_see_the_same_names_from_the_same_modules() -> None:
    source = ast.parse(Path(simulo.__file__).read_text())
    block = next(n for n in source.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    table = next(n for n in source.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "_HOME")
    assert seen == ast.literal_eval(table.value)


def test_gripper_presets_need_no_import_of_their_own() -> None:
    program = "import simulo; print(simulo.grippers.preset('openarm').robot)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "openarm\n"


def test_unknown_name_lists_the_public_ones() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'LearningEnvironment'.*'LearningEnv'"):
        simulo.LearningEnvironment  # noqa: B018
