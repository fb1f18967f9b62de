"""Warp's debug mode checks the indices of arrays, but not those in native code, which checks its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("out_of_bounds.py")


def test_native_code_stops_in_debug_mode_where_an_index_is_past_the_end() -> None:
    run = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    ends = json.loads(run.stdout.splitlines()[-1])
    assert len(ends) == 20
    assert ends[:10] == [0] * 10, "what there is can be asked for"
    assert all(end != 0 for end in ends[10:]), ends
    assert run.stderr.count("Assertion failed") == 10, run.stderr
