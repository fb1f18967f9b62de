"""Bits of words and numbers: what Warp has no functions for, or slow ones."""

import warp as wp


@wp.func
def is_number(value: wp.float32) -> wp.bool:
    """Neither NaN nor infinite. Warp's own is a call into a library, of which a check would take hundreds."""
    return value - value == 0.0


@wp.func
def are_numbers(values: wp.vec3f) -> wp.bool:
    return is_number(values[0]) and is_number(values[1]) and is_number(values[2])


@wp.func_native("""
    assert(word != 0);
#if defined(__CUDA_ARCH__)
    return __ffs(word) - 1;
#else
    return __builtin_ctz(word);
#endif
""")
def lowest_bit(word: wp.uint32) -> wp.int32:
    """Place of the lowest bit that is set; the word is not zero."""


@wp.func_native("""
    assert(word != 0);
#if defined(__CUDA_ARCH__)
    return __ffsll(word) - 1;
#else
    return __builtin_ctzll(word);
#endif
""")
def lowest_bit64(word: wp.uint64) -> wp.int32:
    """As lowest_bit."""


@wp.func_native("""
    wp::uint64 found = 0;
    for (int x = low[0]; x < high[0]; ++x)
        for (int y = low[1]; y < high[1]; ++y) {
            const int i = (x * ny + y) * words + w;
            assert(i >= 0 && i < columns.shape[0]);
            found |= columns.data[i];
        }
    return found;
""")
def any_of_columns(
    columns: wp.array(dtype=wp.uint64), low: wp.vec3i, high: wp.vec3i, ny: wp.int32, words: wp.int32, w: wp.int32
) -> wp.uint64:
    """Bits that are set in word w of some column x, y of low .. high - 1, of ny columns along y."""
