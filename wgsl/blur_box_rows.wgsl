// Running sums along x, eight pixels an invocation, from a span of pixels in workgroup memory.

struct RowParams {
    width: u32,    // pixels a row
    height: u32,   // rows in all
    pitch: u32,    // pixels from row to row, a multiple of 8
    radius: u32,
    blocks: u32,   // groups of eight elements in the span
    tiles: u32,    // workgroups a row
    groups: u32,   // workgroups in all
    edge: u32,     // 0 clamp, 1 reflect, 2 mirror, 3 wrap, 4 constant
    up: u32,       // the sum is shifted by this,
    half: u32,     // this is added,
    shift: u32,    // and it is shifted back by this
    divisor: u32,  // or divided by this
    fill: vec4<u32>, // what lies outside, a channel
}

const CHANNELS = 4u;
const FROM = 1u;       // stored samples: 0 bytes, 1 halves
const TO = 0u;
const DIVIDE = true;
const WIDTH = 64u;
const SPAN = 1536u;    // elements in workgroup memory

// An element is four lanes: the channels of a pixel, or with one channel four rows, with two two.
const ROWS = select(1u, 4u / CHANNELS, CHANNELS < 3u);
const TILE = 8u * WIDTH;
const SHARE = (SPAN / 8u + WIDTH - 1u) / WIDTH; // groups an invocation adds up

@group(0) @binding(0) var<uniform> params: RowParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_: array<vec2<u32>>;

// Elements as four halves each. One is left free after every eight, so that invocations which read eight
// apart meet different banks.
var<workgroup> span: array<vec2<u32>, SPAN + SPAN / 8u>;
// The sums of all groups of eight elements up to each.
var<workgroup> sums: array<vec4<u32>, SPAN / 8u>;
// The same of what each invocation has added up.
var<workgroup> shares: array<vec4<u32>, 2u * WIDTH>;

fn place_of(index: u32) -> u32 {
    return index + (index >> 3u);
}

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

fn sample(row: u32, x: u32, channel: u32) -> u32 {
    let at = (row * params.pitch + x) * CHANNELS + channel;
    if FROM == 0u {
        return (source[at >> 2u] >> ((at & 3u) * 8u)) & 0xffu;
    }
    if FROM == 1u {
        return (source[at >> 1u] >> ((at & 1u) * 16u)) & 0xffffu;
    }
    return source[at];
}

// A pixel of four halves.
fn whole(pixel: u32) -> vec2<u32> {
    return vec2(source[2u * pixel], source[2u * pixel + 1u]);
}

fn element(row: u32, at: i32) -> vec2<u32> {
    let place = inside(at, i32(params.width));
    if CHANNELS == 4u && place >= 0 {
        let pixel = row * params.pitch + u32(place);
        if FROM == 1u {
            return vec2(source[2u * pixel], source[2u * pixel + 1u]);
        }
        let word = source[pixel];
        return vec2(word & 0xffu, (word >> 16u) & 0xffu)
            | (vec2((word >> 8u) & 0xffu, word >> 24u) << vec2(16u));
    }
    var lanes: vec4<u32>;
    for (var lane = 0u; lane < CHANNELS * ROWS; lane++) {
        let channel = lane % CHANNELS;
        let y = min(row + lane / CHANNELS, params.height - 1u);
        if place < 0 {
            lanes[lane] = params.fill[channel];
        } else {
            lanes[lane] = sample(y, u32(place), channel);
        }
    }
    return lanes.xz | (lanes.yw << vec2(16u));
}

fn lanes(index: u32) -> vec4<u32> {
    let pair = span[place_of(index)];
    return vec4(pair.x & 0xffffu, pair.x >> 16u, pair.y & 0xffffu, pair.y >> 16u);
}

// The sum of all elements before `index`.
fn before(index: u32) -> vec4<u32> {
    var sum: vec4<u32>;
    if index >= 8u {
        sum = sums[index / 8u - 1u];
    }
    for (var i = index & ~7u; i < index; i++) {
        sum += lanes(i);
    }
    return sum;
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

fn finish(sum: vec4<u32>) -> vec4<u32> {
    if DIVIDE {
        return divide(sum);
    }
    return (sum + vec4(params.half)) >> vec4(params.shift);
}

fn bytes(v: vec4<u32>) -> u32 {
    return v.x | (v.y << 8u) | (v.z << 16u) | (v.w << 24u);
}

@compute @workgroup_size(WIDTH)
fn rows(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = id.y * count.x + id.x;
    if group >= params.groups {
        return;
    }
    let row = group / params.tiles * ROWS;
    let start = group % params.tiles * TILE;
    // The span begins a multiple of eight before the tile.
    let lead = (params.radius + 7u) & ~7u;
    let left = i32(start) - i32(lead);
    let count_ = 8u * params.blocks;
    if CHANNELS == 4u && FROM == 1u && left >= 0 && left + i32(count_) <= i32(params.width) {
        // Four loads under way at a time.
        let from_ = row * params.pitch + u32(left);
        var i = local;
        for (; i + 3u * WIDTH < count_; i += 4u * WIDTH) {
            let a = whole(from_ + i);
            let b = whole(from_ + i + WIDTH);
            let c = whole(from_ + i + 2u * WIDTH);
            let d = whole(from_ + i + 3u * WIDTH);
            span[place_of(i)] = a;
            span[place_of(i + WIDTH)] = b;
            span[place_of(i + 2u * WIDTH)] = c;
            span[place_of(i + 3u * WIDTH)] = d;
        }
        for (; i < count_; i += WIDTH) {
            span[place_of(i)] = whole(from_ + i);
        }
    } else {
        for (var i = local; i < count_; i += WIDTH) {
            span[place_of(i)] = element(row, left + i32(i));
        }
    }
    workgroupBarrier();

    var share: vec4<u32>;
    for (var k = 0u; k < SHARE; k++) {
        let i = local * SHARE + k;
        if i < params.blocks {
            for (var j = 0u; j < 8u; j++) {
                share += lanes(8u * i + j);
            }
            sums[i] = share;
        }
    }
    let own = share;
    shares[local] = share;
    workgroupBarrier();
    // From one half to the other and back.
    var half = 0u;
    for (var step = 1u; step < WIDTH; step *= 2u) {
        if local >= step {
            share += shares[half + local - step];
        }
        half = WIDTH - half;
        shares[half + local] = share;
        workgroupBarrier();
    }
    for (var k = 0u; k < SHARE; k++) {
        let i = local * SHARE + k;
        if i < params.blocks {
            sums[i] += share - own;
        }
    }
    workgroupBarrier();

    let x = start + 8u * local;
    let first = 8u * local + lead - params.radius;
    let ahead = first + 2u * params.radius;
    var sum = before(ahead) - before(first);
    sum += lanes(ahead);
    let a = finish(sum);
    sum += lanes(ahead + 1u) - lanes(first);
    let b = finish(sum);
    sum += lanes(ahead + 2u) - lanes(first + 1u);
    let c = finish(sum);
    sum += lanes(ahead + 3u) - lanes(first + 2u);
    let d = finish(sum);
    sum += lanes(ahead + 4u) - lanes(first + 3u);
    let e = finish(sum);
    sum += lanes(ahead + 5u) - lanes(first + 4u);
    let f = finish(sum);
    sum += lanes(ahead + 6u) - lanes(first + 5u);
    let g = finish(sum);
    sum += lanes(ahead + 7u) - lanes(first + 6u);
    let h = finish(sum);

    if CHANNELS == 4u && TO == 0u {
        // By way of workgroup memory, so that neighbours write side by side.
        workgroupBarrier();
        span[9u * local] = vec2(bytes(a), bytes(b));
        span[9u * local + 1u] = vec2(bytes(c), bytes(d));
        span[9u * local + 2u] = vec2(bytes(e), bytes(f));
        span[9u * local + 3u] = vec2(bytes(g), bytes(h));
        workgroupBarrier();
        let to = (row * params.pitch + start) / 2u;
        let pairs = min(TILE, params.pitch - start) / 2u;
        for (var i = local; i < pairs; i += WIDTH) {
            target_[to + i] = span[9u * (i / 4u) + i % 4u];
        }
        return;
    }
    if x >= params.width {
        return;
    }
    var pixels = array(a, b, c, d, e, f, g, h);
    for (var y = 0u; y < ROWS; y++) {
        if row + y >= params.height {
            break;
        }
        let to = ((row + y) * params.pitch + x) / 8u * CHANNELS;
        for (var part = 0u; part < CHANNELS; part++) {
            var v: array<u32, 8>;
            for (var i = 0u; i < 8u; i++) {
                let at = 8u * part + i;
                v[i] = pixels[at / CHANNELS][y * CHANNELS + at % CHANNELS];
            }
            if TO == 0u {
                target_[to + part] = vec2(
                    v[0] | (v[1] << 8u) | (v[2] << 16u) | (v[3] << 24u),
                    v[4] | (v[5] << 8u) | (v[6] << 16u) | (v[7] << 24u),
                );
            } else {
                target_[2u * (to + part)] = vec2(v[0] | (v[1] << 16u), v[2] | (v[3] << 16u));
                target_[2u * (to + part) + 1u] = vec2(v[4] | (v[5] << 16u), v[6] | (v[7] << 16u));
            }
        }
    }
}
