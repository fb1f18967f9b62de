"""Is a robot that touches itself ever called clear? A million configurations, MuJoCo on the very pieces as truth.

The counting is `simulo sweep`'s, against hull truth: uniform in-limit configurations of each robot, verdicts of every
checked pair beside MuJoCo's, disputes decided by a separating plane in double. A killed run goes on from the state it
keeps beside the JSON file.

    python benchmarks/whole_configurations.py [ROBOT...] [--poses 250000] [--json FILE]
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.progress import Progress

from simulo.description import load_description
from simulo.evaluation.sweep import SEED, sweep
from simulo.files import write_json

ROBOTS = ("openarm", "franka_panda", "ur5e", "so101")


def measure(robots: list[str], poses: int, seed: int, file: Path) -> dict[str, Any]:
    """The JSON: totals, and each robot's figures with the digest of its description."""
    rows = []
    with Progress() as bars:
        for robot in robots:
            bar = bars.add_task(robot, total=poses)
            state = file.with_name(f".{file.stem}-{robot}.state.json")
            found = sweep(
                robot, poses, seed, "hull", state, lambda _, done, total, bar=bar: bars.update(bar, completed=done)
            )
            rows.append({"digest": load_description(robot).digest, **found.figures})
    return {
        "poses": sum(row["poses"] for row in rows),
        "contacts": sum(row["contacts"] for row in rows),
        "missed": sum(row["missed"] for row in rows),
        "false_stops": sum(row["false_stops"] for row in rows),
        "seed": seed,
        "versions": {name: version(name) for name in ("simulo-sdk", "warp-lang", "mujoco", "scipy")},
        "robots": rows,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("robots", nargs="*", default=ROBOTS)
    options.add_argument("--poses", type=int, default=250_000)
    options.add_argument("--seed", type=int, default=SEED)
    options.add_argument("--json", type=Path, default=Path("benchmarks/results/whole_configurations.json"))
    given = options.parse_args()
    found = measure(list(given.robots), given.poses, given.seed, given.json)
    write_json(given.json, found)
    print({key: found[key] for key in ("poses", "contacts", "missed", "false_stops")})


if __name__ == "__main__":
    main()
