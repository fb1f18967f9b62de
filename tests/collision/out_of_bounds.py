"""A script: asks each of the kernels' native functions, in Warp's debug mode, for the last that there is, and then for
what lies past it. Prints how the processes that asked ended, those of the one and then those of the other."""

import json
import os

import numpy as np
import warp as wp

wp.config.mode = "debug"
wp.config.optimization_level = 0

from simulo.collision.kernels.bits import any_of_columns, lowest_bit, lowest_bit64  # noqa: E402
from simulo.collision.kernels.lanes import position_at, rotation_at  # noqa: E402
from simulo.collision.kernels.shapes import cell_at, furthest_entry, furthest_point, point_at  # noqa: E402

CELLS, POINTS, ENTRIES, FRAMES = 3, 4, 5, 2  # lengths; of the frames, one block of configurations


@wp.kernel(enable_backward=False)
def read(
    function: wp.int32,
    past: wp.int32,
    cells: wp.array(dtype=wp.uint32),
    points: wp.array(dtype=wp.vec3f),
    entries: wp.array(dtype=wp.uint16),
    frames: wp.array4d(dtype=wp.float32),
    columns: wp.array(dtype=wp.uint64),
    out: wp.array(dtype=wp.float32),
):
    d = wp.vec3f(1.0, 0.0, 0.0)
    if function == 0:
        out[0] = wp.float32(cell_at(cells, CELLS - 1 + past))
    elif function == 1:
        out[0] = point_at(points, POINTS - 1 + past)[0]
    elif function == 2:
        out[0] = wp.float32(furthest_entry(points, entries, 0, 0, ENTRIES + past, d))
    elif function == 3:
        out[0] = wp.float32(furthest_entry(points, entries, past, 0, ENTRIES, d))
    elif function == 4:
        out[0] = wp.float32(furthest_point(points, 0, POINTS + past, d))
    elif function == 5:
        out[0] = rotation_at(frames, 0, FRAMES - 1 + past)[0, 0]
    elif function == 6:
        out[0] = position_at(frames, 15 + past, 0)[0]
    elif function == 7:
        out[0] = wp.float32(any_of_columns(columns, wp.vec3i(0, 0, 0), wp.vec3i(2, 2 + past, 1), 2, 1, 0))
    elif function == 8:
        out[0] = wp.float32(lowest_bit(wp.uint32(1 - past)))
    elif function == 9:
        out[0] = wp.float32(lowest_bit64(wp.uint64(1 - past)))


if __name__ == "__main__":
    arrays = (
        wp.zeros(CELLS, dtype=wp.uint32, device="cpu"),
        wp.zeros(POINTS, dtype=wp.vec3f, device="cpu"),
        wp.array(np.arange(ENTRIES, dtype=np.uint16) % POINTS, dtype=wp.uint16, device="cpu"),
        wp.zeros((1, FRAMES, 12, 16), dtype=wp.float32, device="cpu"),
        wp.zeros(4, dtype=wp.uint64, device="cpu"),
        wp.zeros(1, dtype=wp.float32, device="cpu"),
    )
    wp.load_module(device="cpu")
    ends = []
    for past in (0, 1):
        for function in range(10):
            child = os.fork()  # which may not live through it
            if child == 0:
                wp.launch(read, 1, inputs=[function, past, *arrays], device="cpu")
                os._exit(0)
            ends.append(os.waitpid(child, 0)[1])
    print(json.dumps(ends))
