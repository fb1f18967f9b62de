"""What the collision kernels take on a Hopper GPU: registers and spills per kernel, by compiling alone. Prints JSON.

Needs no GPU; needs CUDA's `ptxas` (in the CUDA toolkit) on the path. `--arch`: 90 for sm_90.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import warp as wp

from simulo.collision.kernels import (
    fk,
    live,
    motion,
    motion_filter,
    payload_check,
    self_check,
    verdict,
    voxels,
    world_check,
    world_reach,
)

MODULES = (live, fk, self_check, payload_check, world_reach, world_check, verdict, voxels, motion_filter, motion)

_ENTRY = re.compile(
    r"Compiling entry function '(?P<name>\w+)'.*?(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
    r".*?Used (?P<registers>\d+) registers",
    re.DOTALL,
)


def registers(folder: Path, arch: int) -> dict[str, dict[str, int]]:
    """Registers per thread and spilled bytes of every kernel, by its name."""
    found = {}
    for dtype in (wp.float32, wp.float64):  # a generic kernel is compiled for the types that it is used with
        wp.overload(live.live_kernel, {"positions": wp.array2d(dtype=dtype)})
    for module in MODULES:
        wp.compile_aot_module(module, arch=arch, module_dir=str(folder), use_ptx=True)
    for file in sorted(folder.rglob("*.ptx")):
        # NVRTC may be newer than ptxas, and ends its text with a zero byte; nothing here is younger than version 8.3,
        # which says which bytes of a wide load are used.
        text = file.read_text().rstrip("\0")
        file.write_text(re.sub(r"^\.version .*$", ".version 8.3", text, count=1, flags=re.MULTILINE))
        command = ["ptxas", f"-arch=sm_{arch}", "-v", "-o", "/dev/null", str(file)]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        for entry in _ENTRY.finditer(told):
            name = re.sub(r"_[0-9a-f]{8}_cuda_kernel_forward$", "", entry["name"])
            spilled = int(entry["stores"]) + int(entry["loads"])
            worst = found.get(name, {"registers": 0, "spilled_bytes": 0})  # of the types it is compiled for
            found[name] = {
                "registers": max(worst["registers"], int(entry["registers"])),
                "spilled_bytes": max(worst["spilled_bytes"], spilled),
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", type=int, default=90)
    arguments = parser.parse_args()
    if shutil.which("ptxas") is None:
        raise SystemExit("ptxas is not on the path: install the CUDA toolkit, or add its bin folder to PATH")
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(registers(Path(folder), arguments.arch), indent=2))


if __name__ == "__main__":
    main()
