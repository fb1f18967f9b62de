"""The only configuration that there is room for, on a CPU: joints, rows of frames, bodies and pairs take the lanes that
configurations take in `lanes`, and its frames lie in a piece.

What comes out is what the functions of `lanes` find, to the bit: every number is made by the same sums in the same
order.
"""

import warp as wp

from simulo.collision.kernels.convex import ROUNDING, SLACK
from simulo.collision.kernels.lanes import BLOCK, END_BLOCK, FACES, SINE, pose_block, pose_one
from simulo.collision.kernels.shapes import Shapes
from simulo.collision.kernels.types import Bodies, Near, Pairs, Poses, Query, Tree

_POSE = (
    SINE
    + """
    typedef float Row __attribute__((ext_vector_type(4), aligned(4)));
    assert(m == 0 && columns.shape[0] == 1 && out.links.shape[0] == 1 && out.hulls.shape[0] == 1);
    const float* const values = columns.data;
    assert(out.links.shape[3] == 1 && out.hulls.shape[3] == 1);
    float *const links = out.links.data, *const hulls = out.hulls.data;
    // A frame, by its rows, in the frame at `above`; in the base frame where there is none.
    const auto place = [](const float* above, const Row* frame, float* to) {
        Row rows[3];
        for (int i = 0; i < 3; ++i) {
            rows[i] = frame[i];
            if (above) {
                const float* const at = above + 3 * i;
                rows[i] = at[0] * frame[0] + at[1] * frame[1] + at[2] * frame[2];
                rows[i][3] = rows[i][3] + above[9 + i];
            }
        }
        for (int i = 0; i < 3; ++i)
            *(Row*)(to + 3 * i) = rows[i];  // and the next row's first number, which is written next
        for (int i = 0; i < 3; ++i)
            to[9 + i] = rows[i][3];
    };
    const int active = out.active.data[m], num_edges = tree.ends.shape[0];
    for (int first = 0; first < num_edges; first += N) {
        float value[N] = {};
        for (int i = 0; i < N && first + i < num_edges; ++i) {
            const int column = tree.ends.data[first + i][2];
            assert(column < columns.shape[1]);
            const auto& relation = tree.relation.data[first + i];
            if (column >= 0)
                value[i] = values[column * N] * relation[0] + relation[1];
        }
        V sine, cosine;
        sine_and_cosine(*(const V*)value, sine, cosine);
        for (int e = first; e < first + N && e < num_edges; ++e) {
            const auto& ends = tree.ends.data[e];
            if (ends[3] & ~active)
                continue;
            assert(ends[0] < out.links.shape[1] && ends[1] >= 0 && ends[1] < out.links.shape[1]);
            Row frame[3];
            for (int k = 0; k < 3; ++k) {
                frame[k] = *(const Row*)tree.still.data[e].data[k];
                if (ends[2] >= 0) {
                    frame[k] = frame[k] + cosine[e - first] * *(const Row*)tree.cos.data[e].data[k]
                        + sine[e - first] * *(const Row*)tree.sin.data[e].data[k];
                    frame[k] = frame[k] + value[e - first] * *(const Row*)tree.slide.data[e].data[k];
                }
            }
            place(ends[0] < 0 ? nullptr : links + ends[0] * 12, frame, links + ends[1] * 12);
        }
    }
    for (int b = 0; b < bodies.body.shape[0]; ++b) {
        if (bodies.gate.data[b] & ~active)
            continue;
        const int link = bodies.body.data[b][0];
        assert(link >= 0 && link < out.links.shape[1] && b < out.hulls.shape[1]);
        place(links + link * 12, (const Row*)bodies.frame.data[b].data, hulls + b * 12);
    }
"""
)


@wp.func_native(BLOCK + _POSE + END_BLOCK)
def pose_alone(tree: Tree, bodies: Bodies, columns: wp.array3d(dtype=wp.float32), m: wp.int32, out: Poses):
    """`lanes.pose_one` of the only configuration there is room for; not on a GPU."""


@wp.func
def pose_lanes(
    tree: Tree, bodies: Bodies, columns: wp.array3d(dtype=wp.float32), m: wp.int32, end: wp.int32, out: Poses
):
    """pose_one of configurations m .. end - 1, of which m is the first of a block if there is more than one."""
    if end - m > 1:
        pose_block(tree, bodies, columns, m, out)
    elif out.links.shape[3] == 1:
        pose_alone(tree, bodies, columns, m, out)
    else:
        pose_one(tree, bodies, columns, m, out)


_NEAR = (
    f"""
    const float slack = {float(SLACK)!r}f, rounding = {float(ROUNDING)!r}f;
"""
    + "    constexpr int S = N;\n"
    + FACES
    + """
    constexpr int ROW = 64;  // bits of a word
    typedef bool Lanes __attribute__((ext_vector_type(N)));
    const int num_bodies = pairs.number.shape[0], width = pairs.number.shape[1], num_words = near_out.pairs.shape[1];
    assert(m == 0 && poses.hulls.shape[0] == 1 && poses.hulls.shape[3] == 1 && near_out.pairs.shape[0] == 1);
    assert(num_bodies == poses.hulls.shape[1] && width % ROW == 0 && width >= num_bodies);
    assert(pairs.pair.shape[0] <= 32 * num_words);
    const float* const hulls = poses.hulls.data;
    wp::uint32* const words = near_out.pairs.data;
    for (int w = 0; w < num_words; ++w)
        words[w * N] = 0;
    const float above = near_out.above.data[m];
    float lower = above + room;
    int num = 0, asked = 0, num_left = 0, left[N + ROW + 3];

    const auto far = [&](auto x, auto y, auto z, auto reach) WIDE {
        const auto square = x * x + y * y + z * z;
        const auto most = above + (reach + room + slack);
        return 0.999999f * square > most * SIZE(most);
    };
    // The boxes of the first LANES pairs that are left.
    const auto look_at_boxes = [&]() WIDE {
        const int count = wp::min(num_left, N);
        float frames[2][12 * N], sizes[2][4 * N], reaches[N];
        for (int i = 0; i < count; ++i) {
            assert(left[i] >= 0 && left[i] < pairs.pair.shape[0]);
            const auto& pair = pairs.pair.data[left[i]];
            assert(pair[0] >= 0 && pair[0] < num_bodies && pair[1] >= 0 && pair[1] < num_bodies);
            const int shape[2] = {bodies.body.data[pair[0]][1], bodies.body.data[pair[1]][1]};
            for (int side = 0; side < 2; ++side) {
                assert(shape[side] >= 0 && shape[side] < shapes.size.shape[0]);
                for (int k = 0; k < 12; ++k)
                    frames[side][k * N + i] = hulls[pair[side] * 12 + k];
                for (int k = 0; k < 4; ++k)
                    sizes[side][k * N + i] = shapes.size.data[shape[side]][k];
            }
            reaches[i] = shapes.reach.data[shape[0]] + shapes.reach.data[shape[1]];
        }
        V between[3];
        for (int k = 0; k < 3; ++k)
            between[k] = *(const V*)(frames[1] + (9 + k) * N) - *(const V*)(frames[0] + (9 + k) * N);
        const auto size_a = [&](int k) WIDE { return *(const V*)(sizes[0] + k * N); };
        const auto size_b = [&](int k) WIDE { return *(const V*)(sizes[1] + k * N); };
        const V bound = by_faces(frames[0], frames[1], between, size_a, size_b, *(const V*)reaches);
        for (int i = 0; i < count; ++i) {
            const bool clear = bound[i] > above;
            lower = clear && bound[i] < lower ? bound[i] : lower;
            words[(left[i] >> 5) * N] |= wp::uint32(!clear) << (left[i] & 31);
            num += !clear;
        }
        num_left -= count;
        for (int i = 0; i < num_left; ++i)
            left[i] = left[N + i];
    };
    const int active = poses.active.data[m], plain = query.num_asked.data[3];
    const int count = poses.finite.data[m] ? query.num_asked.data[active ? 0 : 3] : 0;
    if (count > 0 && query.num_asked.data[0] == pairs.pair.shape[0]) {
        asked = plain;
        for (int first = 0; first < num_bodies; first += ROW) {
            float center[3][ROW];
            for (int i = 0; i < ROW; ++i)
                for (int k = 0; k < 3; ++k)
                    center[k][i] = hulls[wp::min(first + i, num_bodies - 1) * 12 + 9 + k];
            for (int one = 0; one < wp::min(first + ROW, num_bodies); ++one) {
                const float* const at = hulls + one * 12 + 9;
                const int row = one * width + first;
                wp::uint64 near = 0;
                for (int i = wp::max(one - first, 0) / N * N; i < wp::min(ROW, num_bodies - first); i += N) {
                    const V x = *(const V*)(center[0] + i) - at[0], y = *(const V*)(center[1] + i) - at[1],
                        z = *(const V*)(center[2] + i) - at[2];
                    const V reach = *(const V*)(pairs.reaches.data + row + i);
                    const auto close = ALL(reach >= 0.0f) & ~ALL(far(x, y, z, reach));
                    near |= wp::uint64(__builtin_bit_cast(wp::uint16, __builtin_convertvector(close, Lanes))) << i;
                }
                // Seldom more than a few: written whether they are there or not, since a branch would be mispredicted.
                const int more = __builtin_popcountll(near);
                for (int i = 0; i < 4 || i < more; ++i, near &= near - 1)
                    left[num_left + i] = pairs.number.data[row + __builtin_ctzll(near | 1ull << (ROW - 1))];
                num_left += more;
                while (num_left >= N)
                    look_at_boxes();
            }
        }
    }
    for (int i = asked; i < count; ++i) {
        assert(i < query.pairs.shape[0]);
        const int p = query.pairs.data[i];
        assert(p >= 0 && p < pairs.pair.shape[0]);
        const auto& pair = pairs.pair.data[p];
        if (pair[2] & ~active)
            continue;
        ++asked;
        const float *const a = hulls + pair[0] * 12 + 9, *const b = hulls + pair[1] * 12 + 9;
        if (far(b[0] - a[0], b[1] - a[1], b[2] - a[2], pairs.reach.data[p]))
            continue;
        left[num_left++] = p;
        if (num_left == N)
            look_at_boxes();
    }
    if (num_left > 0)
        look_at_boxes();
    near_out.num.data[m] = num;
    near_out.asked.data[m] = asked;
    near_out.lower.data[m] = lower;
"""
)


@wp.func_native(BLOCK + _NEAR + END_BLOCK)
def near_alone(
    bodies: Bodies, pairs: Pairs, shapes: Shapes, query: Query, poses: Poses, m: wp.int32, room: wp.float32,
    near_out: Near,
):  # fmt: skip
    """`lanes.near_one` of the only configuration there is room for; not on a GPU."""
