// Sums of weighed neighbours along x, from a span of pixels in workgroup memory.

#import blur/common

struct RowParams {
    width: u32,    // pixels a row
    height: u32,   // rows in all
    pitch: u32,    // pixels from row to row, a multiple of 4
    radius: u32,
    blocks: u32,   // weights / 4, but for the leading zeros
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
const FROM = 0u;       // stored samples: 0 bytes, 1 halves, 2 words
const TO = 1u;
const MATH = 0u;       // 0 whole numbers in f32, 1 in u32, 2 floats, 3 sums of 48 bits
const DIVIDE = false;
alias Number = f32;

// Pixels of four lanes: with one channel, four rows side by side; with two, two rows.
const ROWS = select(1u, 4u / CHANNELS, CHANNELS < 3u);
const WIDTH = 128u;    // invocations, of four pixels each
const TILE = 4u * WIDTH;
const TAPS = 512u;     // taps between two fillings of the span
const SPAN = TILE + TAPS;
const FLUSH = 16u;     // blocks that are summed up before they go to the total

@group(0) @binding(0) var<uniform> params: RowParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read> weights: array<vec4<Number>>;
@group(0) @binding(3) var<storage, read_write> target_: array<u32>;

var<workgroup> span: array<vec4<Number>, SPAN>;

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

fn number(bits: u32) -> Number {
    if MATH == 2u {
        return bitcast<Number>(bits);
    }
    return Number(bits);
}

fn pixel(row: u32, at: i32) -> vec4<Number> {
    let x = inside(at, i32(params.width), params.edge);
    var lanes = vec4<u32>();
    for (var lane = 0u; lane < 4u; lane++) {
        let channel = lane % CHANNELS;
        // Rows past the last repeat it; what comes of them is not stored.
        let y = min(row + lane / CHANNELS, params.height - 1u);
        if lane < CHANNELS * ROWS {
            if x < 0 {
                lanes[lane] = params.fill[channel];
            } else {
                lanes[lane] = sample(y, u32(x), channel);
            }
        }
    }
    return vec4<Number>(number(lanes.x), number(lanes.y), number(lanes.z), number(lanes.w));
}

// Four pixels of sums.
struct Sums {
    a: vec4<Number>,
    b: vec4<Number>,
    c: vec4<Number>,
    d: vec4<Number>,
}

// Adds four pixels to the sums of the four that they may reach: `before` and `now` hold the weights of
// the taps that lead there.
fn weigh(sums: Sums, before: vec4<Number>, now: vec4<Number>, p: vec4<Number>, q: vec4<Number>,
        r: vec4<Number>, s: vec4<Number>) -> Sums {
    return Sums(
        sums.a + now.x * p + now.y * q + now.z * r + now.w * s,
        sums.b + before.w * p + now.x * q + now.y * r + now.z * s,
        sums.c + before.z * p + before.w * q + now.x * r + now.y * s,
        sums.d + before.y * p + before.z * q + before.w * r + now.x * s,
    );
}

fn plus(one: Sums, other: Sums) -> Sums {
    return Sums(one.a + other.a, one.b + other.b, one.c + other.c, one.d + other.d);
}

fn eight(value: vec4<Number>, shift: u32) -> vec4<Number> {
    return vec4<Number>((vec4<u32>(value) >> vec4(shift)) & vec4(0xffu));
}

fn finish(low: vec4<Number>, middle: vec4<Number>, high: vec4<Number>) -> vec4<u32> {
    if MATH == 2u {
        return bitcast<vec4<u32>>(low);
    }
    if MATH == 3u {
        // Sums of the lowest, middle and highest bytes; bits below the last carry do not matter.
        let carry = vec4<u32>(middle) + (vec4<u32>(low) >> vec4(8u));
        return (vec4<u32>(high) + (carry >> vec4(8u)) + vec4(128u)) >> vec4(8u);
    }
    if DIVIDE {
        return divide(vec4<u32>(low), params.up, params.half, params.divisor);
    }
    return (vec4<u32>(low) + vec4(params.half)) >> vec4(params.shift);
}

fn pack(values: vec4<u32>, word: u32) {
    if TO == 0u {
        target_[word] = values.x | (values.y << 8u) | (values.z << 16u) | (values.w << 24u);
    } else if TO == 1u {
        target_[2u * word] = values.x | (values.y << 16u);
        target_[2u * word + 1u] = values.z | (values.w << 16u);
    } else {
        target_[4u * word] = values.x;
        target_[4u * word + 1u] = values.y;
        target_[4u * word + 2u] = values.z;
        target_[4u * word + 3u] = values.w;
    }
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
    let first = local * 4u;

    var low: Sums;
    var middle: Sums;
    var high: Sums;
    for (var from_ = 0u; from_ < params.blocks; from_ += TAPS / 4u) {
        let blocks = min(params.blocks - from_, TAPS / 4u);
        workgroupBarrier();
        for (var i = local; i < TILE + 4u * blocks; i += WIDTH) {
            let at = start + 4u * from_ + i;
            span[i] = pixel(row, i32(at) - i32(params.radius));
        }
        workgroupBarrier();
        for (var flush = 0u; flush < blocks; flush += FLUSH) {
            var part: Sums;
            for (var i = flush; i < min(flush + FLUSH, blocks); i++) {
                let before = weights[from_ + i];
                let now = weights[from_ + i + 1u];
                let at = first + 4u * i;
                let p = span[at];
                let q = span[at + 1u];
                let r = span[at + 2u];
                let s = span[at + 3u];
                if MATH == 3u {
                    low = weigh(low, before, now, eight(p, 0u), eight(q, 0u), eight(r, 0u), eight(s, 0u));
                    middle = weigh(middle, before, now, eight(p, 8u), eight(q, 8u), eight(r, 8u), eight(s, 8u));
                    high = weigh(high, before, now, eight(p, 16u), eight(q, 16u), eight(r, 16u), eight(s, 16u));
                } else {
                    part = weigh(part, before, now, p, q, r, s);
                }
            }
            low = plus(low, part);
        }
    }

    let x = start + first;
    if x >= params.width {
        return;
    }
    var pixels = array<vec4<u32>, 4>(
        finish(low.a, middle.a, high.a),
        finish(low.b, middle.b, high.b),
        finish(low.c, middle.c, high.c),
        finish(low.d, middle.d, high.d),
    );
    for (var y = 0u; y < ROWS; y++) {
        if row + y >= params.height {
            break;
        }
        for (var word = 0u; word < CHANNELS; word++) {
            var values: vec4<u32>;
            for (var i = 0u; i < 4u; i++) {
                let at = 4u * word + i;
                values[i] = pixels[at / CHANNELS][y * CHANNELS + at % CHANNELS];
            }
            pack(values, ((row + y) * params.pitch + x) / 4u * CHANNELS + word);
        }
    }
}
