// Sums of weighed neighbours along y or z, four samples side by side and four rows an invocation.

#import blur/common

struct ColumnParams {
    quads: u32,    // samples / 4 that lie side by side in a row
    len: u32,      // rows along the axis
    tiles: u32,    // groups of four rows along the axis
    total: u32,    // invocations in all
    radius: u32,
    blocks: u32,   // weights / 4, but for the leading zeros
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

const FROM = 1u;       // stored samples: 0 bytes, 1 halves, 2 words
const TO = 0u;
const MATH = 1u;       // 0 whole numbers in f32, 1 in u32, 2 floats, 3 sums of 48 bits
const DIVIDE = false;
alias Number = u32;

const WIDTH = 64u;
const FLUSH = 16u;     // blocks that are summed up before they go to the total

@group(0) @binding(0) var<uniform> params: ColumnParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read> weights: array<vec4<Number>>;
@group(0) @binding(3) var<storage, read_write> target_: array<u32>;

fn number(bits: u32) -> Number {
    if MATH == 2u {
        return bitcast<Number>(bits);
    }
    return Number(bits);
}

fn samples(line: u32, quad: u32, at: i32) -> vec4<Number> {
    let y = inside(at, i32(params.len), params.edge);
    var lanes: vec4<u32>;
    if y < 0 {
        for (var lane = 0u; lane < 4u; lane++) {
            lanes[lane] = params.fill[(4u * quad + lane) % params.channels];
        }
    } else {
        let word = (line * params.len + u32(y)) * params.quads + quad;
        if FROM == 0u {
            lanes = (vec4(source[word]) >> vec4(0u, 8u, 16u, 24u)) & vec4(0xffu);
        } else if FROM == 1u {
            let pair = vec2(source[2u * word], source[2u * word + 1u]);
            lanes = (pair.xxyy >> vec4(0u, 16u, 0u, 16u)) & vec4(0xffffu);
        } else {
            let at = 4u * word;
            lanes = vec4(source[at], source[at + 1u], source[at + 2u], source[at + 3u]);
        }
    }
    return vec4<Number>(number(lanes.x), number(lanes.y), number(lanes.z), number(lanes.w));
}

// Four rows of sums, four samples wide.
struct Sums {
    a: vec4<Number>,
    b: vec4<Number>,
    c: vec4<Number>,
    d: vec4<Number>,
}

// Adds four rows to the sums of the four that they may reach: `before` and `now` hold the weights of
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
fn columns(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number_ = (id.y * count.x + id.x) * WIDTH + local;
    if number_ >= params.total {
        return;
    }
    let quad = number_ % params.quads;
    let tile = number_ / params.quads % params.tiles;
    let line = number_ / params.quads / params.tiles;
    let start = 4u * tile;

    var low: Sums;
    var middle: Sums;
    var high: Sums;
    for (var flush = 0u; flush < params.blocks; flush += FLUSH) {
        var part: Sums;
        for (var i = flush; i < min(flush + FLUSH, params.blocks); i++) {
            let before = weights[i];
            let now = weights[i + 1u];
            let at = i32(start + 4u * i) - i32(params.radius);
            let p = samples(line, quad, at);
            let q = samples(line, quad, at + 1);
            let r = samples(line, quad, at + 2);
            let s = samples(line, quad, at + 3);
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

    var rows = array<vec4<u32>, 4>(
        finish(low.a, middle.a, high.a),
        finish(low.b, middle.b, high.b),
        finish(low.c, middle.c, high.c),
        finish(low.d, middle.d, high.d),
    );
    for (var y = 0u; y < 4u; y++) {
        if start + y < params.len {
            pack(rows[y], (line * params.len + start + y) * params.quads + quad);
        }
    }
}
