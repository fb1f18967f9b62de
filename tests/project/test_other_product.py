"""The distribution named `simulo`, another product that writes the same package folder, installed beside ours."""

import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def our_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True)
    (wheel,) = folder.glob("simulo_sdk-*.whl")
    return wheel


@pytest.fixture(scope="module")
def other_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wheel = tmp_path_factory.mktemp("other") / "simulo-9.9-py3-none-any.whl"
    files = {
        "simulo/__init__.py": "PRODUCT = 'other'\n",
        "simulo-9.9.dist-info/METADATA": "Metadata-Version: 2.1\nName: simulo\nVersion: 9.9\n",
        "simulo-9.9.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "simulo-9.9.dist-info/RECORD"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(record, "".join(f"{name},,\n" for name in [*files, record]))
    return wheel


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """An empty environment: `environment("pip", ...)` installs into it, other programs are its own."""
    venv.create(tmp_path / "env", with_pip=False)
    folder = tmp_path / "env" / "bin"

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        if program == "pip":
            command = [sys.executable, "-m", "pip", "--python", str(folder / "python"), "-q", *arguments]
            return subprocess.run(command, check=True, capture_output=True, text=True)
        return subprocess.run([str(folder / program), *arguments], cwd=tmp_path, capture_output=True, text=True)

    return run


def test_other_installed_last(environment: Callable, our_wheel: Path, other_wheel: Path) -> None:
    environment("pip", "install", "--no-deps", "--no-index", str(our_wheel))
    environment("pip", "install", "--no-deps", "--no-index", str(other_wheel))
    assert environment("python", "-c", "import simulo; print(simulo.PRODUCT)").stdout == "other\n"
    script = environment("simulo", "robots")
    assert script.returncode == 2
    assert "'simulo' 9.9 is another product" in script.stderr
    assert "pip uninstall -y simulo simulo-sdk && pip install simulo-sdk" in script.stderr
    assert "Traceback" not in script.stderr


def test_ours_installed_last(environment: Callable, our_wheel: Path, other_wheel: Path) -> None:
    environment("pip", "install", "--no-deps", "--no-index", str(other_wheel))
    environment("pip", "install", "--no-deps", "--no-index", str(our_wheel))
    script = environment("simulo", "robots")
    assert script.returncode == 2
    assert "'simulo' 9.9 is another product" in script.stderr
    imported = environment("python", "-c", "import simulo")
    assert imported.returncode == 1
    assert "ImportError: the distribution 'simulo' 9.9, another product, is installed" in imported.stderr


def test_other_removed_again_takes_our_files_along(environment: Callable, our_wheel: Path, other_wheel: Path) -> None:
    environment("pip", "install", "--no-deps", "--no-index", str(our_wheel))
    environment("pip", "install", "--no-deps", "--no-index", str(other_wheel))
    environment("pip", "uninstall", "-y", "simulo")
    script = environment("simulo", "robots")
    assert script.returncode == 2
    assert "the files of 'simulo-sdk' are incomplete" in script.stderr


def test_ours_alone_imports(environment: Callable, our_wheel: Path) -> None:
    environment("pip", "install", "--no-deps", "--no-index", str(our_wheel))
    assert environment("python", "-c", "import simulo; print(simulo.SimuloError.__name__)").stdout == "SimuloError\n"
