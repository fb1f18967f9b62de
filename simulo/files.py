"""Result files, written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_bytes(path: str | Path, data: bytes) -> Path:
    """Write `data` to `path` so that a reader, or a run killed half way, never meets half a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def write_text(path: str | Path, text: str) -> Path:
    """As `write_bytes`, in UTF-8 and with the text's own line ends."""
    return write_bytes(path, text.encode())


def write_json(path: str | Path, data: Any) -> Path:
    """Write `data` as JSON. A value JSON has no name for (NaN, infinity, an array) is an error, not a quiet `NaN`."""
    return write_text(path, json.dumps(data, indent=2, allow_nan=False) + "\n")
