"""Does a support table ever lack the vertex that is extreme? Every hull of every robot against trying all vertices.

For each direction the kernel says which cell of the table it looks in; the best of that cell's vertices is compared, in
double, with the best of all vertices. A third of the directions is anything, a third lies on the borders of cells of
all sizes or one float32 step beside them, the rest on the cells' corners, the cube's edges and corners among them.
"lost": directions for which the cell lacks an extreme vertex. The vertex that the kernel then takes, by float32 dot
products, may be lower by rounding: "worst_rounding_um".

    python benchmarks/support_tables.py [ROBOT...] [--directions 100000] [--seed 0] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from rich.progress import track

from simulo.collision import CollisionModel, build_model
from simulo.collision.kernels.shapes import COUNT_BITS, COUNT_MASK, TABLE, Shapes, find_cell, support
from simulo.collision.support import FACE_CELLS, SPLIT
from simulo.description import load_description
from simulo.files import write_json
from simulo.paths import data_path

CHUNK = 20_000
NO_LOSS = 1e-15  # of the hull's size: the last bits of a sum in double


@wp.kernel(enable_backward=False)
def look_up(
    shapes: Shapes,
    shape: wp.int32,
    directions: wp.array(dtype=wp.vec3f),
    cell_out: wp.array(dtype=wp.uint32),
    point_out: wp.array(dtype=wp.vec3f),
):
    i = wp.tid()
    cell_out[i] = find_cell(shapes.cells, shapes.header[shape][3], directions[i])
    point_out[i] = support(shapes, shape, directions[i])


def draw_directions(count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Directions, shape (count, 3), as above."""
    finest = FACE_CELLS * SPLIT**2
    borders = (np.arange(finest + 1) * (2.0 / finest) - 1.0).astype(np.float32)
    steps = np.concatenate([borders, np.nextafter(borders, np.float32(2.0)), np.nextafter(borders, np.float32(-2.0))])
    anywhere = count // 3
    on_cells = count - anywhere
    u, v = rng.choice(steps, on_cells), rng.choice(steps, on_cells)
    v[::2] = rng.uniform(-1.0, 1.0, len(v[::2]))
    sides = np.stack([rng.choice([-1.0, 1.0], on_cells), u, v], axis=1)
    axis = (np.arange(3)[None] + rng.integers(0, 3, (on_cells, 1))) % 3
    return np.concatenate([rng.normal(size=(anywhere, 3)), np.take_along_axis(sides, axis, 1)]).astype(np.float32)


def check_shape(
    model: CollisionModel, on_device: Shapes, shape: int, directions: NDArray[np.float32]
) -> dict[str, Any]:
    """What one table lost."""
    arrays = model.shapes
    _kind, first, entries, _cell = (int(v) for v in arrays.header[shape])
    count = _vertices(arrays, shape)
    points = arrays.points[first : first + count].astype(np.float64)
    size = float(np.abs(points).max())
    cells = wp.zeros(len(directions), dtype=wp.uint32, device="cpu")
    found = wp.zeros(len(directions), dtype=wp.vec3f, device="cpu")
    given = wp.array(directions, dtype=wp.vec3f, device="cpu")
    wp.launch(look_up, len(directions), inputs=[on_device, shape, given], outputs=[cells, found], device="cpu")
    d = directions.astype(np.float64)
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    best, of_cell = _best(d, points), np.empty(len(d))
    words = cells.numpy()
    order = np.argsort(words, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(words[order])) + 1):
        start, number = int(words[rows[0]] >> int(COUNT_BITS)), int(words[rows[0]] & int(COUNT_MASK))
        of_cell[rows] = _best(d[rows], points[arrays.entries[entries + start : entries + start + number]])
    loss = best - of_cell
    taken = best - np.einsum("ij,ij->i", d, found.numpy().astype(np.float64))
    return {
        "lost": int((loss > NO_LOSS * size).sum()),
        "worst_loss_um": 1e6 * float(loss.max()),
        "worst_rounding_um": 1e6 * float(taken.max()),
        "cells": len(np.unique(words)),
    }


def _vertices(arrays: Any, shape: int) -> int:
    """How many points a table's shape has: up to the first point of the next shape that has any."""
    later = arrays.header[shape + 1 :]
    following = later[later[:, 1] > arrays.header[shape][1], 1]
    return int(following.min() if len(following) else len(arrays.points)) - int(arrays.header[shape][1])


def _best(d: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """max over points of d . p, shape (K,), each product and sum as written here whatever the number of points."""
    out = np.empty(len(d))
    for k in range(0, len(d), CHUNK):
        x, y, z = (np.multiply.outer(d[k : k + CHUNK, i], points[:, i]) for i in range(3))
        out[k : k + CHUNK] = (x + y + z).max(1)
    return out


def check_robot(name: str, directions: int, seed: int) -> dict[str, Any]:
    model = build_model(load_description(name))
    on_device = model.shapes.upload("cpu")
    tables = np.flatnonzero(model.shapes.header[:, 0] == int(TABLE))
    rng = np.random.default_rng(seed)
    rows = [check_shape(model, on_device, int(s), draw_directions(directions, rng)) for s in tables]
    return {
        "robot": name,
        "hulls": len(rows),
        "vertices": sum(_vertices(model.shapes, int(s)) for s in tables),
        "directions": directions * len(rows),
        "lost": sum(row["lost"] for row in rows),
        "worst_loss_um": max(row["worst_loss_um"] for row in rows),
        "worst_rounding_um": max(row["worst_rounding_um"] for row in rows),
    }


def committed_robots() -> list[str]:
    return sorted(file.parent.name for file in data_path("robots").glob("*/collision.json"))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("robots", nargs="*")
    options.add_argument("--directions", type=int, default=100_000, help="of each hull")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--json", type=Path, default=Path("benchmarks/results/support_tables.json"))
    given = options.parse_args()
    robots = given.robots or committed_robots()
    rows = [check_robot(name, given.directions, given.seed) for name in track(robots, "robots")]
    found = {
        "directions_per_hull": given.directions,
        "seed": given.seed,
        "hulls": sum(row["hulls"] for row in rows),
        "lost": sum(row["lost"] for row in rows),
        "versions": {name: version(name) for name in ("simulo-sdk", "warp-lang", "numpy")},
        "robots": rows,
    }
    write_json(given.json, found)
    print(json.dumps({key: found[key] for key in ("hulls", "directions_per_hull", "lost")}))


if __name__ == "__main__":
    main()
