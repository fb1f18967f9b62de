"""Bits of words, and a block of comparisons as bits: what Warp has no functions for, in C++ that runs everywhere."""

import warp as wp

from simulo.collision.kernels.types import LANES, lanesf


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __ffs(word) - 1;
#else
    return __builtin_ctz(word);
#endif
""")
def lowest_bit(word: wp.uint32) -> wp.int32:
    """Place of the lowest bit that is set; the word is not zero."""


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __ffsll(word) - 1;
#else
    return __builtin_ctzll(word);
#endif
""")
def lowest_bit64(word: wp.uint64) -> wp.int32:
    """As lowest_bit."""


# Written out because the compiler makes vector instructions of this loop, and of Warp's vector types it does not.
@wp.func_native(f"""
    unsigned bits = 0;
    for (int k = 0; k < {LANES}; ++k) {{
        const float dx = x[k] - at[0], dy = y[k] - at[1], dz = z[k] - at[2];
        const float most = reach[k] + above;
        // Less a millionth: three times what float32 makes of the squares.
        bits |= unsigned(!(0.999999f * (dx * dx + dy * dy + dz * dz) > most * (most < 0.0f ? -most : most))) << k;
    }}
    return bits;
""")
def lanes_within(x: lanesf, y: lanesf, z: lanesf, at: wp.vec3f, reach: lanesf, above: wp.float32) -> wp.uint32:
    """Bit k is set unless point (x, y, z)[k] [m] is further from `at` than reach[k] + above [m]; NaN is near, and
    nothing is where that is less than zero."""


@wp.func_native("""
    int count = 0;
    const int nz = counts[2] + 1;
    for (int x = low[0]; x < high[0]; ++x)
        for (int y = low[1]; y < high[1]; ++y) {
            const int* column = below.data + (x * counts[1] + y) * nz;
            count += column[high[2]] - column[low[2]];
        }
    return count;
""")
def sum_of_columns(below: wp.array(dtype=wp.int32), low: wp.vec3i, high: wp.vec3i, counts: wp.vec3i) -> wp.int32:
    """What the bricks low .. high - 1 hold, of counts bricks, where `below` says what each column holds below brick
    z, counts[2] included."""


@wp.func_native("""
    wp::uint64 found = 0;
    for (int x = low[0]; x < high[0]; ++x)
        for (int y = low[1]; y < high[1]; ++y)
            found |= columns.data[(x * ny + y) * words + w];
    return found;
""")
def any_of_columns(
    columns: wp.array(dtype=wp.uint64), low: wp.vec3i, high: wp.vec3i, ny: wp.int32, words: wp.int32, w: wp.int32
) -> wp.uint64:
    """Bits that are set in word w of some column x, y of low .. high - 1, of ny columns along y."""
