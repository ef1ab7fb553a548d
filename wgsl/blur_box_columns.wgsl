// Running sums along y or z, four samples side by side and a run of rows an invocation.

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
    fill: vec4<u32>, // what lies outside, a channel
}

const FROM = 0u;       // stored samples: 0 bytes, 1 halves
const TO = 1u;
const DIVIDE = false;

const WIDTH = 64u;

@group(0) @binding(0) var<uniform> params: ColumnParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_: array<u32>;

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

// floor((x * 2^up + half) / divisor) for quotients below 2^16: one float multiplication, put right. The
// product with 2^up may leave 32 bits; the remainder, which decides, does not.
fn divide(x: vec4<u32>) -> vec4<u32> {
    let divisor = vec4(params.divisor);
    let whole = (x << vec4(params.up)) + vec4(params.half);
    let scale = f32(1u << params.up) / f32(params.divisor);
    var quotient = vec4<u32>(vec4<f32>(x) * scale);
    // Off by one at most: too large shows as a remainder that is huge, that is, below zero.
    var rest = bitcast<vec4<i32>>(whole - quotient * divisor);
    quotient -= select(vec4(0u), vec4(1u), rest < vec4(0));
    rest = bitcast<vec4<i32>>(whole - quotient * divisor);
    return quotient + select(vec4(0u), vec4(1u), rest >= bitcast<vec4<i32>>(divisor));
}

fn store(word: u32, sum: vec4<u32>) {
    var v = sum;
    if DIVIDE {
        v = divide(v);
    } else {
        v = (v + vec4(params.half)) >> vec4(params.shift);
    }
    if TO == 0u {
        target_[word] = v.x | (v.y << 8u) | (v.z << 16u) | (v.w << 24u);
    } else {
        target_[2u * word] = v.x | (v.y << 16u);
        target_[2u * word + 1u] = v.z | (v.w << 16u);
    }
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
        var at = start - radius;
        for (; at + 4 <= start + radius; at += 4) {
            let a = near(from_, at);
            let b = near(from_, at + 1);
            let c = near(from_, at + 2);
            let d = near(from_, at + 3);
            sum += (a + b) + (c + d);
        }
        for (; at < start + radius; at++) {
            sum += near(from_, at);
        }
        // Four rows at a time keep more loads under way.
        at = start;
        for (; at + 4 <= end; at += 4) {
            let a = near(from_, at + radius);
            let b = near(from_, at + radius + 1);
            let c = near(from_, at + radius + 2);
            let d = near(from_, at + radius + 3);
            let p = near(from_, at - radius);
            let q = near(from_, at - radius + 1);
            let r = near(from_, at - radius + 2);
            let s = near(from_, at - radius + 3);
            let to = from_ + u32(at) * params.quads;
            sum += a;
            store(to, sum);
            sum += b - p;
            store(to + params.quads, sum);
            sum += c - q;
            store(to + 2u * params.quads, sum);
            sum += d - r;
            store(to + 3u * params.quads, sum);
            sum -= s;
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
