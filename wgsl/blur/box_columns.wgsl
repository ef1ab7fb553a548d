// Running sums along y or z, four samples side by side and a run of rows an invocation.

#import blur/common

struct ColumnParams {
    quads: u32,    // samples / 4 that lie side by side in a row
    len: u32,      // rows along the axis
    tiles: u32,    // runs along the axis
    total: u32,    // invocations in all
    radius: u32,
    blocks: u32,   // rows a run
    edge: u32,     // 0 clamp, 1 reflect, 2 mirror, 3 wrap, 4 constant
    up: u32,       // the sum is shifted by this,
    half: u32,     // this is added,
    shift: u32,    // and it is shifted back by this
    divisor: u32,  // or divided by this
    channels: u32,
    split: u32,    // unused here
    skip: u32,     // unused here
    unused: vec2<u32>,
    fill: vec4<u32>, // what lies outside, a channel
}

const FROM = 0u;       // stored samples: 0 bytes, 1 halves
const DIVIDE = false;

const WIDTH = 64u;
const ROWS = 8i;       // rows whose loads are under way together

@group(0) @binding(0) var<uniform> params: ColumnParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_: array<STORED>;

fn near(from_: u32, at: i32) -> vec4<u32> {
    let word = from_ + u32(at) * params.quads;
    if FROM == 0u {
        let w = source[word];
        return vec4(w & 0xffu, (w >> 8u) & 0xffu, (w >> 16u) & 0xffu, w >> 24u);
    }
    let pair = vec2(source[2u * word], source[2u * word + 1u]);
    return vec4(pair.x & 0xffffu, pair.x >> 16u, pair.y & 0xffffu, pair.y >> 16u);
}

fn far(from_: u32, at: i32) -> vec4<u32> {
    let y = inside(at, i32(params.len), params.edge);
    if y < 0 {
        var values: vec4<u32>;
        for (var lane = 0u; lane < 4u; lane++) {
            values[lane] = params.fill[(4u * (from_ % params.quads) + lane) % params.channels];
        }
        return values;
    }
    return near(from_, y);
}

fn store(word: u32, sum: vec4<u32>) {
    var v = sum;
    if DIVIDE {
        v = divide(v, params.up, params.half, params.divisor);
    } else {
        v = (v + vec4(params.half)) >> vec4(params.shift);
    }
    target_[word] = stored(v);
}

@compute @workgroup_size(WIDTH)
fn columns(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = (id.y * count.x + id.x) * WIDTH + local;
    if number >= params.total {
        return;
    }
    let quad = number % params.quads;
    let run = number / params.quads % params.tiles;
    let line = number / params.quads / params.tiles;
    let from_ = line * params.len * params.quads + quad;
    let start = i32(run * params.blocks);
    let end = min(start + i32(params.blocks), i32(params.len));
    let radius = i32(params.radius);
    var sum: vec4<u32>;
    // Only the first and the last runs look outside.
    if start >= radius && end + radius <= i32(params.len) {
        // Many rows at a time keep many loads under way.
        var at = start - radius;
        for (; at + ROWS <= start + radius; at += ROWS) {
            for (var i = 0; i < ROWS; i++) { // unrolled
                sum += near(from_, at + i);
            }
        }
        for (; at < start + radius; at++) {
            sum += near(from_, at);
        }
        at = start;
        for (; at + ROWS <= end; at += ROWS) {
            var come: array<vec4<u32>, ROWS>;
            var go: array<vec4<u32>, ROWS>;
            for (var i = 0; i < ROWS; i++) { // unrolled
                come[i] = near(from_, at + radius + i);
                go[i] = near(from_, at - radius + i);
            }
            for (var i = 0; i < ROWS; i++) { // unrolled
                sum += come[i];
                store(from_ + u32(at + i) * params.quads, sum);
                sum -= go[i];
            }
        }
        for (; at < end; at++) {
            sum += near(from_, at + radius);
            store(from_ + u32(at) * params.quads, sum);
            sum -= near(from_, at - radius);
        }
    } else {
        for (var at = start - radius; at < start + radius; at++) {
            sum += far(from_, at);
        }
        for (var at = start; at < end; at++) {
            sum += far(from_, at + radius);
            store(from_ + u32(at) * params.quads, sum);
            sum -= far(from_, at - radius);
        }
    }
}
