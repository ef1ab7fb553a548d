// Sums of weighed neighbours along y or z of halves, eight rows an invocation and both sides of the
// centre together: the fast path of blur_columns.

struct ColumnParams {
    quads: u32,    // samples / 4 that lie side by side in a row
    len: u32,      // rows along the axis
    tiles: u32,    // workgroups along the axis
    total: u32,    // workgroups in all
    radius: u32,   // rounded up to a multiple of 8; the weights have zeros there
    blocks: u32,   // workgroups along a row
    edge: u32,     // 0 clamp, 1 reflect, 2 mirror, 3 wrap, 4 constant
    up: u32,       // unused here
    half: u32,     // added to the sum,
    shift: u32,    // which is then shifted by this
    divisor: u32,  // unused here
    channels: u32,
    fill: vec4<u32>, // what lies outside, a channel
}

const TO = 0u;         // 0 bytes, 1 halves
const WIDTH = 32u;     // quads a workgroup
const DEPTH = 4u;      // invocations along the axis, of eight rows each

@group(0) @binding(0) var<uniform> params: ColumnParams;
@group(0) @binding(1) var<storage, read> source: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> target_: array<u32>;

// The position inside that stands for `at`, or -1 for the constant.
fn inside(at: i32, len: i32) -> i32 {
    if at >= 0 && at < len {
        return at;
    }
    switch params.edge {
        case 0u: {
            return clamp(at, 0, len - 1);
        }
        case 1u: {
            let period = 2 * len;
            let to = ((at % period) + period) % period;
            return min(to, period - 1 - to);
        }
        case 2u: {
            let period = max(2 * len - 2, 1);
            let to = ((at % period) + period) % period;
            return min(min(to, period - to), len - 1);
        }
        case 3u: {
            return ((at % len) + len) % len;
        }
        default: {
            return -1;
        }
    }
}

fn lanes(pair: vec2<u32>) -> vec4<u32> {
    return vec4(pair.x & 0xffffu, pair.x >> 16u, pair.y & 0xffffu, pair.y >> 16u);
}

// The four samples of a row that lies inside, and of one that may not.
fn near(from_: u32, at: i32) -> vec4<u32> {
    return lanes(source[from_ + u32(at) * params.quads]);
}

fn far(from_: u32, at: i32) -> vec4<u32> {
    let y = inside(at, i32(params.len));
    if y < 0 {
        var values: vec4<u32>;
        for (var lane = 0u; lane < 4u; lane++) {
            values[lane] = params.fill[(4u * (from_ % params.quads) + lane) % params.channels];
        }
        return values;
    }
    return near(from_, y);
}

struct Sums {
    a: vec4<u32>,
    b: vec4<u32>,
    c: vec4<u32>,
    d: vec4<u32>,
    e: vec4<u32>,
    f: vec4<u32>,
    g: vec4<u32>,
    h: vec4<u32>,
}

fn weigh(s: Sums, w: u32,
        l0: vec4<u32>, l1: vec4<u32>, l2: vec4<u32>, l3: vec4<u32>,
        l4: vec4<u32>, l5: vec4<u32>, l6: vec4<u32>, l7: vec4<u32>,
        r0: vec4<u32>, r1: vec4<u32>, r2: vec4<u32>, r3: vec4<u32>,
        r4: vec4<u32>, r5: vec4<u32>, r6: vec4<u32>, r7: vec4<u32>) -> Sums {
    return Sums(
        s.a + w * (l0 + r0),
        s.b + w * (l1 + r1),
        s.c + w * (l2 + r2),
        s.d + w * (l3 + r3),
        s.e + w * (l4 + r4),
        s.f + w * (l5 + r5),
        s.g + w * (l6 + r6),
        s.h + w * (l7 + r7),
    );
}

fn store(word: u32, sum: vec4<u32>) {
    let v = (sum + vec4(params.half)) >> vec4(params.shift);
    if TO == 0u {
        target_[word] = v.x | (v.y << 8u) | (v.z << 16u) | (v.w << 24u);
    } else {
        target_[2u * word] = v.x | (v.y << 16u);
        target_[2u * word + 1u] = v.z | (v.w << 16u);
    }
}

@compute @workgroup_size(WIDTH, DEPTH)
fn columns(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let group = id.y * count.x + id.x;
    if group >= params.total {
        return;
    }
    let quad = group % params.blocks * WIDTH + local.x;
    let tile = group / params.blocks % params.tiles;
    let line = group / params.blocks / params.tiles;
    let start = (tile * DEPTH + local.y) * 8u;
    if quad >= params.quads || start >= params.len {
        return;
    }
    let from_ = line * params.len * params.quads + quad;
    let y0 = i32(start);
    let radius = i32(params.radius);

    // Eight rows on either side. With each step outwards one row leaves each and one comes; which
    // register that is goes round, so that nothing is moved.
    var sums: Sums;
    let centre = weights[0].x;
    var l0 = far(from_, y0 + 0);
    var l1 = far(from_, y0 + 1);
    var l2 = far(from_, y0 + 2);
    var l3 = far(from_, y0 + 3);
    var l4 = far(from_, y0 + 4);
    var l5 = far(from_, y0 + 5);
    var l6 = far(from_, y0 + 6);
    var l7 = far(from_, y0 + 7);
    sums.a = centre * l0;
    sums.b = centre * l1;
    sums.c = centre * l2;
    sums.d = centre * l3;
    sums.e = centre * l4;
    sums.f = centre * l5;
    sums.g = centre * l6;
    sums.h = centre * l7;
    var r0 = l0;
    var r1 = l1;
    var r2 = l2;
    var r3 = l3;
    var r4 = l4;
    var r5 = l5;
    var r6 = l6;
    var r7 = l7;

    if y0 >= radius && y0 + 7 + radius < i32(params.len) {
        for (var i = 0; i < radius; i += 8) {
            let v = weights[1 + i / 4];
            let w = weights[2 + i / 4];
            l7 = near(from_, y0 - i - 1);
            r0 = near(from_, y0 + i + 8);
            sums = weigh(sums, v.x, l7, l0, l1, l2, l3, l4, l5, l6, r1, r2, r3, r4, r5, r6, r7, r0);
            l6 = near(from_, y0 - i - 2);
            r1 = near(from_, y0 + i + 9);
            sums = weigh(sums, v.y, l6, l7, l0, l1, l2, l3, l4, l5, r2, r3, r4, r5, r6, r7, r0, r1);
            l5 = near(from_, y0 - i - 3);
            r2 = near(from_, y0 + i + 10);
            sums = weigh(sums, v.z, l5, l6, l7, l0, l1, l2, l3, l4, r3, r4, r5, r6, r7, r0, r1, r2);
            l4 = near(from_, y0 - i - 4);
            r3 = near(from_, y0 + i + 11);
            sums = weigh(sums, v.w, l4, l5, l6, l7, l0, l1, l2, l3, r4, r5, r6, r7, r0, r1, r2, r3);
            l3 = near(from_, y0 - i - 5);
            r4 = near(from_, y0 + i + 12);
            sums = weigh(sums, w.x, l3, l4, l5, l6, l7, l0, l1, l2, r5, r6, r7, r0, r1, r2, r3, r4);
            l2 = near(from_, y0 - i - 6);
            r5 = near(from_, y0 + i + 13);
            sums = weigh(sums, w.y, l2, l3, l4, l5, l6, l7, l0, l1, r6, r7, r0, r1, r2, r3, r4, r5);
            l1 = near(from_, y0 - i - 7);
            r6 = near(from_, y0 + i + 14);
            sums = weigh(sums, w.z, l1, l2, l3, l4, l5, l6, l7, l0, r7, r0, r1, r2, r3, r4, r5, r6);
            l0 = near(from_, y0 - i - 8);
            r7 = near(from_, y0 + i + 15);
            sums = weigh(sums, w.w, l0, l1, l2, l3, l4, l5, l6, l7, r0, r1, r2, r3, r4, r5, r6, r7);
        }
    } else {
        for (var i = 0; i < radius; i += 8) {
            let v = weights[1 + i / 4];
            let w = weights[2 + i / 4];
            l7 = far(from_, y0 - i - 1);
            r0 = far(from_, y0 + i + 8);
            sums = weigh(sums, v.x, l7, l0, l1, l2, l3, l4, l5, l6, r1, r2, r3, r4, r5, r6, r7, r0);
            l6 = far(from_, y0 - i - 2);
            r1 = far(from_, y0 + i + 9);
            sums = weigh(sums, v.y, l6, l7, l0, l1, l2, l3, l4, l5, r2, r3, r4, r5, r6, r7, r0, r1);
            l5 = far(from_, y0 - i - 3);
            r2 = far(from_, y0 + i + 10);
            sums = weigh(sums, v.z, l5, l6, l7, l0, l1, l2, l3, l4, r3, r4, r5, r6, r7, r0, r1, r2);
            l4 = far(from_, y0 - i - 4);
            r3 = far(from_, y0 + i + 11);
            sums = weigh(sums, v.w, l4, l5, l6, l7, l0, l1, l2, l3, r4, r5, r6, r7, r0, r1, r2, r3);
            l3 = far(from_, y0 - i - 5);
            r4 = far(from_, y0 + i + 12);
            sums = weigh(sums, w.x, l3, l4, l5, l6, l7, l0, l1, l2, r5, r6, r7, r0, r1, r2, r3, r4);
            l2 = far(from_, y0 - i - 6);
            r5 = far(from_, y0 + i + 13);
            sums = weigh(sums, w.y, l2, l3, l4, l5, l6, l7, l0, l1, r6, r7, r0, r1, r2, r3, r4, r5);
            l1 = far(from_, y0 - i - 7);
            r6 = far(from_, y0 + i + 14);
            sums = weigh(sums, w.z, l1, l2, l3, l4, l5, l6, l7, l0, r7, r0, r1, r2, r3, r4, r5, r6);
            l0 = far(from_, y0 - i - 8);
            r7 = far(from_, y0 + i + 15);
            sums = weigh(sums, w.w, l0, l1, l2, l3, l4, l5, l6, l7, r0, r1, r2, r3, r4, r5, r6, r7);
        }
    }
    let last = min(params.len - start, 8u);
    if last > 0u {
        store(from_ + (start + 0u) * params.quads, sums.a);
    }
    if last > 1u {
        store(from_ + (start + 1u) * params.quads, sums.b);
    }
    if last > 2u {
        store(from_ + (start + 2u) * params.quads, sums.c);
    }
    if last > 3u {
        store(from_ + (start + 3u) * params.quads, sums.d);
    }
    if last > 4u {
        store(from_ + (start + 4u) * params.quads, sums.e);
    }
    if last > 5u {
        store(from_ + (start + 5u) * params.quads, sums.f);
    }
    if last > 6u {
        store(from_ + (start + 6u) * params.quads, sums.g);
    }
    if last > 7u {
        store(from_ + (start + 7u) * params.quads, sums.h);
    }
}
