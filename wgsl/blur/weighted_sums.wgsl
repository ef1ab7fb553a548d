// Weighted sums of samples in any format, four results at a time, for `rows` and `columns`.
//
// The importing shader declares FROM, TO, ARITHMETIC, `Number`, `params`, `source` and `target_`.

#import blur/rounding
#import shared/samples

// Values of ARITHMETIC, with the type that is `Number`.
const EXACT_F32 = 0u;  // f32: whole numbers below 2^24
const U32 = 1u;        // u32
const F32 = 2u;        // f32, with its rounding
const U48 = 3u;        // u32: samples of 24 bits times weights of 24 bits, as three sums
const U20U28 = 4u;     // u32: samples of 20 bits times weights of up to 28 bits, as two sums
const U39 = 5u;        // u32: samples of 24 bits, as two sums

// Steps of a partial sum: so that F32 loses less where many are added up, and U20U28 does not overflow.
const FLUSH = select(16u, 4u, ARITHMETIC == U20U28);

fn number(bits: u32) -> Number {
    if ARITHMETIC == F32 {
        return bitcast<Number>(bits);
    }
    return Number(bits);
}

fn numbers(bits: vec4<u32>) -> vec4<Number> {
    return vec4<Number>(number(bits.x), number(bits.y), number(bits.z), number(bits.w));
}

// Four neighbouring results, of four lanes each.
struct Sums {
    a: vec4<Number>,
    b: vec4<Number>,
    c: vec4<Number>,
    d: vec4<Number>,
}

// Steps of four positions that four neighbouring results depend on.
fn window_steps(radius: u32) -> u32 {
    return (2u * radius + 7u) / 4u;
}

// Adds the positions p to s of a step to four results: `now` are the step's four weights, `before` those of the
// step before.
//
//          p    q    r    s
//     a   n.x  n.y  n.z  n.w     the result next to the right sees each position one tap further left
//     b   b.w  n.x  n.y  n.z
//     c   b.z  b.w  n.x  n.y
//     d   b.y  b.z  b.w  n.x
fn accumulate(sums: Sums, before: vec4<Number>, now: vec4<Number>, p: vec4<Number>, q: vec4<Number>,
        r: vec4<Number>, s: vec4<Number>) -> Sums {
    return Sums(
        sums.a + now.x * p + now.y * q + now.z * r + now.w * s,
        sums.b + before.w * p + now.x * q + now.y * r + now.z * s,
        sums.c + before.z * p + before.w * q + now.x * r + now.y * s,
        sums.d + before.y * p + before.z * q + before.w * r + now.x * s,
    );
}

// Whether a step of four positions has some that are outside of the windows of some of the four results.
fn is_at_end(step: u32, steps: u32) -> bool {
    return step == 0u || step + 2u >= steps;
}

// A weighted position, `tap` from the window's first; 0 where that is outside of the window. There weights are 0, but
// 0 times NaN or infinity is NaN.
fn weigh(weight: Number, lanes: vec4<Number>, tap: i32) -> vec4<Number> {
    return select(vec4<Number>(), weight * lanes, tap >= 0 && tap <= 2 * i32(params.radius));
}

// The same as `accumulate` for F32, at the ends of windows: p is `tap` positions from the first result's first.
fn accumulate_ends(sums: Sums, before: vec4<Number>, now: vec4<Number>, p: vec4<Number>, q: vec4<Number>,
        r: vec4<Number>, s: vec4<Number>, tap: i32) -> Sums {
    return Sums(
        sums.a + weigh(now.x, p, tap) + weigh(now.y, q, tap + 1) + weigh(now.z, r, tap + 2) + weigh(now.w, s, tap + 3),
        sums.b + weigh(before.w, p, tap - 1) + weigh(now.x, q, tap) + weigh(now.y, r, tap + 1) + weigh(now.z, s, tap + 2),
        sums.c + weigh(before.z, p, tap - 2) + weigh(before.w, q, tap - 1) + weigh(now.x, r, tap) + weigh(now.y, s, tap + 1),
        sums.d + weigh(before.y, p, tap - 3) + weigh(before.z, q, tap - 2) + weigh(before.w, r, tap - 1) + weigh(now.x, s, tap),
    );
}

fn add_sums(one: Sums, other: Sums) -> Sums {
    return Sums(one.a + other.a, one.b + other.b, one.c + other.c, one.d + other.d);
}

// For U48 samples go into three sums by their bytes:
//
//     sample       | byte 2 | byte 1 | byte 0 |
//     sum of w *   |  high  | middle |  low   |       each below 2^32, since the weights add up to 2^24
//     result       (high * 2^16 + middle * 2^8 + low + 2^23) >> 24
fn byte_of(samples: vec4<Number>, byte: u32) -> vec4<Number> {
    return vec4<Number>((vec4<u32>(samples) >> vec4(8u * byte)) & vec4(0xffu));
}

// For U20U28, with the weights w of a partial sum, 16 at most, that add up to 2^22 at most:
//
//     S = sum of w * sample                        modulo 2^32
//     U = sum of w * floor(sample / 2^10)          below 2^32: the sample's upper part has 10 bits
//     L = sum of w * (sample mod 2^10)             below 2^32, therefore exactly S - 2^10 U modulo 2^32
//
// The partial sum, 2^10 U + L, is kept as two numbers: multiples of 2^16, and the rest, which is that of S.
fn upper_bits(samples: vec4<Number>) -> vec4<Number> {
    return vec4<Number>(vec4<u32>(samples) >> vec4(10u));
}

fn rest(sum: vec4<Number>) -> vec4<Number> {
    return vec4<Number>(vec4<u32>(sum) & vec4(0xffffu));
}

fn multiples(sum: vec4<Number>, upper: vec4<Number>) -> vec4<Number> {
    let lower = vec4<u32>(sum) - (vec4<u32>(upper) << vec4(10u));
    return vec4<Number>((vec4<u32>(upper) + (lower >> vec4(10u))) >> vec4(6u));
}

fn rests(sum: Sums) -> Sums {
    return Sums(rest(sum.a), rest(sum.b), rest(sum.c), rest(sum.d));
}

fn all_multiples(sum: Sums, upper: Sums) -> Sums {
    return Sums(multiples(sum.a, upper.a), multiples(sum.b, upper.b), multiples(sum.c, upper.c), multiples(sum.d, upper.d));
}

// For U39.
fn lower_of(samples: vec4<Number>) -> vec4<Number> {
    return vec4<Number>(lower_part(vec4<u32>(samples)));
}

fn upper_of(samples: vec4<Number>) -> vec4<Number> {
    return vec4<Number>(upper_part(vec4<u32>(samples)));
}

fn finish(low: vec4<Number>, middle: vec4<Number>, high: vec4<Number>) -> vec4<u32> {
    if ARITHMETIC == F32 {
        return bitcast<vec4<u32>>(low);
    }
    if ARITHMETIC == U48 {
        // Bits that cannot carry into the result are shifted out first.
        let carry = vec4<u32>(middle) + (vec4<u32>(low) >> vec4(8u));
        return (vec4<u32>(high) + (carry >> vec4(8u)) + vec4(128u)) >> vec4(8u);
    }
    if ARITHMETIC == U20U28 {
        let sum = vec4<u32>(high) + (vec4<u32>(low) >> vec4(16u));
        return (sum + vec4(params.rounding.half >> 16u)) >> vec4(params.rounding.shift - 16u);
    }
    if ARITHMETIC == U39 {
        return divided_parts(vec4<u32>(low), vec4<u32>(high), params.rounding);
    }
    return rounded(vec4<u32>(low), params.rounding);
}

// Stores four samples that lie side by side, `quad` fours from the start.
fn store(v: vec4<u32>, quad: u32) {
    if TO == U8 {
        target_[quad] = v.x | (v.y << 8u) | (v.z << 16u) | (v.w << 24u);
    } else if TO == U16 {
        target_[2u * quad] = v.x | (v.y << 16u);
        target_[2u * quad + 1u] = v.z | (v.w << 16u);
    } else {
        target_[4u * quad] = v.x;
        target_[4u * quad + 1u] = v.y;
        target_[4u * quad + 2u] = v.z;
        target_[4u * quad + 3u] = v.w;
    }
}
