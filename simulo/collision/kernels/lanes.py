"""Kinematics and the first look at pairs, LANES configurations at once.

Numbers of configurations lie in blocks of LANES, every number LANES times in a row: arrays (blocks, ..., LANES). A CPU
thread does a whole block with each vector instruction; the threads of a GPU, one per configuration, read neighbouring
memory. C++, since of Warp's own vector types the compiler makes no vector instructions: with them kinematics take a
fifth of the time. Every lane is computed alike, whatever the others hold.
"""

import warp as wp

from simulo.collision.kernels.convex import ROUNDING, SLACK
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import LANES, Bodies, Near, Pairs, Poses, Query, Tree

# V and I are the floats and ints of the lanes at hand: one configuration's, or those of a block from its first one on.
# ALL(condition): every bit set in the lanes in which it holds. Sums of products are fused alike in both, so that what
# comes out for a configuration does not depend on its company.
ONE = f"""
#if defined(__clang__)
    #pragma clang fp contract(on)
#endif
    constexpr int N = {LANES};
    typedef float V;
    typedef int I;
    #define ALL(condition) (-(int)(condition))
    #define ANY(lanes) ((lanes) != 0)
    #define SIZE(a) wp::abs(a)
    #define FLOOR(a) wp::floor(a)
    #define INTEGER(a) (I)(a)
    #define LANE(values, lane) values
    #define NUM_LANES 1
    #define UNION(lanes) (lanes)
    #define WIDE
#if defined(__CUDA_ARCH__)
    #define APART(frames) N
#else
    #define APART(frames) frames.shape[3]
#endif
"""
# WIDE: what it is built into may use a CPU's widest vectors. APART(frames): how many places a frame's numbers are
# apart.
BLOCK = f"""
#if !defined(__CUDA_ARCH__)
    #pragma clang fp contract(on)
    constexpr int N = {LANES};
    typedef float V __attribute__((ext_vector_type(N), aligned(4)));
    typedef int I __attribute__((ext_vector_type(N), aligned(4)));
    #define ALL(condition) I(condition)
    #define ANY(lanes) (__builtin_reduce_or(lanes) != 0)
    #define SIZE(a) __builtin_elementwise_abs(a)
    #define FLOOR(a) __builtin_elementwise_floor(a)
    #define INTEGER(a) __builtin_convertvector(a, I)
    #define LANE(values, lane) values[lane]
    #define NUM_LANES N
    #define UNION(lanes) __builtin_reduce_or(lanes)
    #define WIDE __attribute__((min_vector_width(512)))
    #define APART(frames) N
"""
END = """
    #undef ALL
    #undef ANY
    #undef SIZE
    #undef FLOOR
    #undef INTEGER
    #undef LANE
    #undef NUM_LANES
    #undef UNION
    #undef WIDE
    #undef APART
"""
END_BLOCK = END + "#endif\n    ;"  # Warp closes the function on the same line

# Sine and cosine: reduction to an octant and polynomials as in Moshier's Cephes (after Cody and Waite), good to an ulp;
# angles for which the reduction is not are left to the library.
SINE = """
    const auto sine_and_cosine = [](V angle, V& sine, V& cosine) WIDE {
        V shifted = angle * 0.636619772f + 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer
        const I quadrant = __builtin_bit_cast(I, shifted);
        shifted = shifted - 12582912.0f;
        const V rest = ((angle - shifted * 1.5703125f) - shifted * 4.837512969970703125e-4f)
            - shifted * 7.549789948768648e-8f;
        const V square = rest * rest;
        const V s = rest + rest * square
            * (-1.6666654611e-1f + square * (8.3321608736e-3f + square * -1.9515295891e-4f));
        const V c = 1.0f - 0.5f * square + square * square
            * (4.166664568298827e-2f + square * (-1.388731625493765e-3f + square * 2.443315711809948e-5f));
        const I swap = ALL((quadrant & 1) != 0);
        sine = __builtin_bit_cast(V, __builtin_bit_cast(I, swap ? c : s) ^ ((quadrant & 2) << 30));
        cosine = __builtin_bit_cast(V, __builtin_bit_cast(I, swap ? s : c) ^ (((quadrant + 1) & 2) << 30));
        const I far = ALL(SIZE(angle) > 1000.0f);
        if (ANY(far))
            for (int lane = 0; lane < NUM_LANES; ++lane)
                if (LANE(far, lane)) {
                    LANE(sine, lane) = wp::sin((float)LANE(angle, lane));
                    LANE(cosine, lane) = wp::cos((float)LANE(angle, lane));
                }
    };
"""
_POSE = (
    SINE
    + """
    const size_t block = m / N, lane = m % N;
    assert(m >= 0 && lane + NUM_LANES <= N);
    assert(block < columns.shape[0] && block < out.links.shape[0] && block < out.hulls.shape[0]);
    assert(m + NUM_LANES <= out.active.shape[0]);
    const float* const values = columns.data + block * columns.shape[1] * N + lane;
    const int S = APART(out.hulls);
    assert(out.links.shape[3] == S && out.hulls.shape[3] == S);
    float* const links = out.links.data + block * out.links.shape[1] * 12 * S + lane;
    float* const hulls = out.hulls.data + block * out.hulls.shape[1] * 12 * S + lane;
    // A frame, or a constant one, in the frame at `above`.
    const auto place = [&](const float* above, const V* turn, const V* shift, float* to) {
        for (int row = 0; row < 3; ++row) {
            const V x = *(const V*)(above + 3 * row * S);
            const V y = *(const V*)(above + (3 * row + 1) * S);
            const V z = *(const V*)(above + (3 * row + 2) * S);
            for (int k = 0; k < 3; ++k)
                *(V*)(to + (3 * row + k) * S) = x * turn[k] + y * turn[3 + k] + z * turn[6 + k];
            const V moved = x * shift[0] + y * shift[1] + z * shift[2];
            *(V*)(to + (9 + row) * S) = moved + *(const V*)(above + (9 + row) * S);
        }
    };
    // A finger's measured copy is placed where somebody asks of it.
    const int active = UNION(*(const I*)(out.active.data + m));
    for (int e = 0; e < tree.ends.shape[0]; ++e) {
        if (tree.ends.data[e][3] & ~active)
            continue;
        const int parent = tree.ends.data[e][0], child = tree.ends.data[e][1], column = tree.ends.data[e][2];
        assert(parent < out.links.shape[1] && child >= 0 && child < out.links.shape[1] && column < columns.shape[1]);
        V turn[9], shift[3];
        for (int k = 0; k < 9; ++k)
            turn[k] = tree.still.data[e].data[k / 3][k % 3];
        for (int k = 0; k < 3; ++k)
            shift[k] = tree.still.data[e].data[k][3];
        if (column >= 0) {
            const V value = *(const V*)(values + column * N) * tree.relation.data[e][0] + tree.relation.data[e][1];
            V sine, cosine;
            sine_and_cosine(value, sine, cosine);
            for (int k = 0; k < 9; ++k)
                turn[k] = turn[k] + cosine * tree.cos.data[e].data[k / 3][k % 3]
                    + sine * tree.sin.data[e].data[k / 3][k % 3];
            for (int k = 0; k < 3; ++k)
                shift[k] = shift[k] + value * tree.slide.data[e].data[k][3];
        }
        float* const to = links + child * 12 * S;
        if (parent >= 0) {
            place(links + parent * 12 * S, turn, shift, to);
        } else {
            for (int k = 0; k < 9; ++k)
                *(V*)(to + k * S) = turn[k];
            for (int k = 0; k < 3; ++k)
                *(V*)(to + (9 + k) * S) = shift[k];
        }
    }
    for (int b = 0; b < bodies.body.shape[0]; ++b) {
        if (bodies.gate.data[b] & ~active)
            continue;
        assert(bodies.body.data[b][0] >= 0 && bodies.body.data[b][0] < out.links.shape[1] && b < out.hulls.shape[1]);
        V turn[9], shift[3];
        for (int k = 0; k < 9; ++k)
            turn[k] = bodies.frame.data[b].data[k / 3][k % 3];
        for (int k = 0; k < 3; ++k)
            shift[k] = bodies.frame.data[b].data[k][3];
        place(links + bodies.body.data[b][0] * 12 * S, turn, shift, hulls + b * 12 * S);
    }
"""
)


# Where frame i of configuration m begins, and how many places its numbers are apart.
_AT = f"""
    assert(m >= 0 && m / {LANES} < frames.shape[0] && i >= 0 && i < frames.shape[1]);
#if defined(__CUDA_ARCH__)
    constexpr size_t S = {LANES};
#else
    const size_t S = frames.shape[3];
    assert(m % {LANES} < S);
#endif
    const float* at = frames.data + (m / {LANES} * frames.shape[1] + i) * 12 * S + m % {LANES};
"""


@wp.func_native(
    _AT + "return {at[0], at[S], at[2 * S], at[3 * S], at[4 * S], at[5 * S], at[6 * S], at[7 * S], at[8 * S]};"
)
def rotation_at(frames: wp.array4d(dtype=wp.float32), m: wp.int32, i: wp.int32) -> wp.mat33f:
    """Rotation of frame i of configuration m; frames: `Poses.links` or `Poses.hulls`."""


@wp.func_native(_AT + "return {at[9 * S], at[10 * S], at[11 * S]};")
def position_at(frames: wp.array4d(dtype=wp.float32), m: wp.int32, i: wp.int32) -> wp.vec3f:
    """Position [m] of frame i of configuration m."""


@wp.func_native(
    """
#if defined(__CUDA_ARCH__)
    return 1;
#else
    return LANES;
#endif
""".replace("LANES", str(LANES))
)
def lanes_at_once() -> wp.int32:
    """How many configurations a thread of the functions below does."""


@wp.func_native(ONE + _POSE + END)
def pose_one(tree: Tree, bodies: Bodies, columns: wp.array3d(dtype=wp.float32), m: wp.int32, out: Poses):
    """Pose every link and hull of configuration m from the values of its columns [rad or m], shape (blocks, columns,
    LANES). Where one is no number the poses are none."""


@wp.func_native(BLOCK + _POSE + END_BLOCK)
def pose_block(tree: Tree, bodies: Bodies, columns: wp.array3d(dtype=wp.float32), m: wp.int32, out: Poses):
    """pose_one of all configurations of the block that m is the first of; not on a GPU."""


# Bound [m] of the distance of two boxes from their six face normals: of their frames, half edges and then balls, and
# the sum of their bounding spheres' radii.
FACES = """
    const auto by_faces = [&](const float* a, const float* b, const V* between, const auto& size_a, const auto& size_b,
                              auto reaches) WIDE {
        V reach_b[3], along_b[3], gap = -1.0e30f;
        for (int j = 0; j < 3; ++j)
            reach_b[j] = size_b(j), along_b[j] = 0.0f;
        for (int k = 0; k < 3; ++k) {
            const V x = *(const V*)(a + k * S), y = *(const V*)(a + (3 + k) * S), z = *(const V*)(a + (6 + k) * S);
            const V along = x * between[0] + y * between[1] + z * between[2];
            V reach = size_a(k);
            for (int j = 0; j < 3; ++j) {  // b's axes in a's frame, and its position along them
                const V turn = x * *(const V*)(b + j * S) + y * *(const V*)(b + (3 + j) * S)
                    + z * *(const V*)(b + (6 + j) * S);
                reach = reach + SIZE(turn) * size_b(j);
                reach_b[j] = reach_b[j] + SIZE(turn) * size_a(k);
                along_b[j] = along_b[j] + turn * along;
            }
            const V apart = SIZE(along) - reach;
            gap = ALL(apart > gap) ? apart : gap;
        }
        for (int j = 0; j < 3; ++j)
            gap = ALL(SIZE(along_b[j]) - reach_b[j] > gap) ? SIZE(along_b[j]) - reach_b[j] : gap;
        return gap - (size_a(3) + size_b(3) + (slack + rounding * reaches));
    };
"""
# The look at pairs in two parts; between them belong functions of a pair that say how far it has to keep apart [m]:
# kept(p), and rough(pair), which is no less. What passes the boxes was near by the spheres.
NEAR = (
    f"""
    const float slack = {float(SLACK)!r}f, rounding = {float(ROUNDING)!r}f;
"""
    + """
    const size_t block = m / N, lane = m % N;
    assert(m >= 0 && lane + NUM_LANES <= N && block < poses.hulls.shape[0] && block < near_out.pairs.shape[0]);
    assert(m + NUM_LANES <= poses.active.shape[0] && m + NUM_LANES <= poses.finite.shape[0]);
    assert(m + NUM_LANES <= near_out.above.shape[0] && m + NUM_LANES <= near_out.num.shape[0]);
    assert(m + NUM_LANES <= near_out.asked.shape[0] && m + NUM_LANES <= near_out.lower.shape[0]);
    const int S = APART(poses.hulls);
    assert(poses.hulls.shape[3] == S);
    const float* const hulls = poses.hulls.data + block * poses.hulls.shape[1] * 12 * S + lane;
    wp::uint32* const words = near_out.pairs.data + block * near_out.pairs.shape[1] * N + lane;
    const I active = *(const I*)(poses.active.data + m), finite = ALL(*(const I*)(poses.finite.data + m) != 0);
    const V above = *(const V*)(near_out.above.data + m);
"""
    + FACES
)
NEAR_LOOP = """
    for (int w = 0; w < near_out.pairs.shape[1]; ++w)
        *(I*)(words + w * N) = 0;
    I num = 0, asked = 0;
    V lower = above + room;
    const int count = query.num_asked.data[ANY(active) ? 0 : 3];
    for (int i = 0; i < count; ++i) {
        assert(i < query.pairs.shape[0]);
        const int p = query.pairs.data[i];
        assert(p >= 0 && p < pairs.pair.shape[0] && (p >> 5) < near_out.pairs.shape[1]);
        const auto& pair = pairs.pair.data[p];
        assert(pair[0] >= 0 && pair[0] < poses.hulls.shape[1] && pair[1] >= 0 && pair[1] < poses.hulls.shape[1]);
        const I ask = finite & ALL((pair[2] & ~active) == 0);
        asked = asked - ask;
        const float *const a = hulls + pair[0] * 12 * S, *const b = hulls + pair[1] * 12 * S;
        V between[3];
        for (int k = 0; k < 3; ++k)
            between[k] = *(const V*)(b + (9 + k) * S) - *(const V*)(a + (9 + k) * S);
        const V square = between[0] * between[0] + between[1] * between[1] + between[2] * between[2];
        const V most = rough(pair) + (pairs.reach.data[p] + room + slack);
        // Less a millionth: three times what float32 makes of the squares. What is no number is near.
        I near = ask & ~ALL(0.999999f * square > most * SIZE(most));
        if (!ANY(near))
            continue;
        const int shape_a = bodies.body.data[pair[0]][1], shape_b = bodies.body.data[pair[1]][1];
        assert(shape_a >= 0 && shape_a < shapes.size.shape[0] && shape_b >= 0 && shape_b < shapes.size.shape[0]);
        const auto size_a = [&](int k) WIDE { return shapes.size.data[shape_a][k]; };
        const auto size_b = [&](int k) WIDE { return shapes.size.data[shape_b][k]; };
        const V bound = by_faces(a, b, between, size_a, size_b,
                                 shapes.reach.data[shape_a] + shapes.reach.data[shape_b]);
        const I clear = near & ALL(bound > kept(p));
        lower = (clear & ALL(bound < lower)) ? bound : lower;
        near = near & ~clear;
        num = num - near;
        I* const word = (I*)(words + (p >> 5) * N);
        *word = *word | (near & (int)(1u << (p & 31)));
    }
    *(I*)(near_out.num.data + m) = num;
    *(I*)(near_out.asked.data + m) = asked;
    *(V*)(near_out.lower.data + m) = lower;
"""
_NOW = """
    const auto kept = [&](int p) WIDE { return above; };
    const auto rough = [&](const auto& pair) { return above; };
"""


@wp.func_native(ONE + NEAR + _NOW + NEAR_LOOP + END)
def near_one(
    bodies: Bodies, pairs: Pairs, shapes: Shapes, query: Query, poses: Poses, m: wp.int32, room: wp.float32,
    near_out: Near,
):  # fmt: skip
    """Find the asked pairs of configuration m that may be within `near_out.above`: whose bounding spheres are not
    `room` [m] further apart than that, nor their boxes' faces that far."""


@wp.func_native(BLOCK + NEAR + _NOW + NEAR_LOOP + END_BLOCK)
def near_block(
    bodies: Bodies, pairs: Pairs, shapes: Shapes, query: Query, poses: Poses, m: wp.int32, room: wp.float32,
    near_out: Near,
):  # fmt: skip
    """near_one of all configurations of the block that m is the first of; not on a GPU."""
