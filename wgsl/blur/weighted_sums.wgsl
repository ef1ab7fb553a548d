// Weighted sums of samples in any format, four results at once, for `rows` and `columns`.
//
// The importing shader declares FROM, TO, ARITHMETIC, `Number`, `params`, `source` and `target_`.

#import shared/multiply_add
#import blur/rounding
#import shared/samples

// Values of ARITHMETIC, with the type that is `Number`.
const EXACT_F32 = 0u;  // f32: integers below 2^24
const U32 = 1u;        // u32
const F32 = 2u;        // f32, with a rounding for each product and sum
const U48 = 3u;        // u32: samples of 24 bits times weights of 24 bits, as three sums
const U20U28 = 4u;     // u32: samples of 20 bits times weights of up to 28 bits, as two sums
const U39 = 5u;        // u32: samples of 24 bits, as two sums

// Number of taps of a partial sum. With partial sums, F32 loses less precision in long sums, and U20U28 does not
// overflow. Others need none. The CPU uses the same number for F32.
const PARTIAL = select(1u << 20u, 16u, ARITHMETIC == F32 || ARITHMETIC == U20U28);

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

// A step: four positions of a window, with the weights for four neighbouring results.
struct Step {
    p: vec4<Number>,
    q: vec4<Number>,
    r: vec4<Number>,
    s: vec4<Number>,
    before: vec4<Number>,  // weights of the previous step
    now: vec4<Number>,     // weights of the step
    tap: i32,              // tap of p in the window of the first result
}

// Adds a weighted position to `sum`. If `checked`, adds it only if it is in the window: weights outside are 0, but 0
// times NaN or infinity is NaN.
fn weigh(sum: vec4<Number>, weight: Number, lanes: vec4<Number>, tap: i32, checked: bool) -> vec4<Number> {
    if ARITHMETIC != F32 {
        return sum + weight * lanes;
    }
    let all = multiply_add(vec4(bitcast<f32>(weight)), bitcast<vec4<f32>>(lanes), bitcast<vec4<f32>>(sum));
    let is_outside = checked && (tap < 0 || tap > 2 * i32(params.radius));
    return select(bitcast<vec4<Number>>(all), sum, is_outside);
}

// Adds a step to four results. The window of each result begins one position after that of the result before:
//
//          p    q    r    s
//     a   n.x  n.y  n.z  n.w     n: `now`
//     b   b.w  n.x  n.y  n.z     b: `before`
//     c   b.z  b.w  n.x  n.y
//     d   b.y  b.z  b.w  n.x
//
// The weights `before` are added first, so that each result adds its taps in order, and a new partial sum can begin
// after them.
fn add_before(sums: Sums, v: Step, checked: bool) -> Sums {
    let c = weigh(sums.c, v.before.z, v.p, v.tap - 2, checked);
    let d = weigh(sums.d, v.before.y, v.p, v.tap - 3, checked);
    return Sums(
        sums.a,
        weigh(sums.b, v.before.w, v.p, v.tap - 1, checked),
        weigh(c, v.before.w, v.q, v.tap - 1, checked),
        weigh(weigh(d, v.before.z, v.q, v.tap - 2, checked), v.before.w, v.r, v.tap - 1, checked),
    );
}

fn add_now(sums: Sums, v: Step, checked: bool) -> Sums {
    let a = weigh(weigh(sums.a, v.now.x, v.p, v.tap, checked), v.now.y, v.q, v.tap + 1, checked);
    let b = weigh(weigh(sums.b, v.now.x, v.q, v.tap, checked), v.now.y, v.r, v.tap + 1, checked);
    let c = weigh(sums.c, v.now.x, v.r, v.tap, checked);
    return Sums(
        weigh(weigh(a, v.now.z, v.r, v.tap + 2, checked), v.now.w, v.s, v.tap + 3, checked),
        weigh(b, v.now.z, v.s, v.tap + 2, checked),
        weigh(c, v.now.y, v.s, v.tap + 1, checked),
        weigh(sums.d, v.now.x, v.s, v.tap, checked),
    );
}

fn add_both(sums: Sums, v: Step) -> Sums {
    return add_now(add_before(sums, v, false), v, false);
}

fn add_sums(one: Sums, other: Sums) -> Sums {
    return Sums(one.a + other.a, one.b + other.b, one.c + other.c, one.d + other.d);
}

// Sums from which the results are computed.
struct Totals {
    // Partial sums. For U20U28, `upper` has those of the upper bits of samples.
    part: Sums,
    upper: Sums,
    // Sums of all partial sums, for U48, U20U28 and U39 in two or three parts.
    low: Sums,
    middle: Sums,
    high: Sums,
}

// Adds step `v`, one of `steps`, to the totals.
fn add_step(totals: ptr<function, Totals>, v: Step, steps: u32) {
    if ARITHMETIC == U48 {
        (*totals).low = add_both((*totals).low, bits_of(v, 0u, 0xffu));
        (*totals).middle = add_both((*totals).middle, bits_of(v, 8u, 0xffu));
        (*totals).high = add_both((*totals).high, bits_of(v, 16u, 0xffu));
    } else if ARITHMETIC == U39 {
        (*totals).low = add_both((*totals).low, bits_of(v, 0u, 0xfffu));
        (*totals).high = add_both((*totals).high, bits_of(v, 12u, 0xfffu));
    } else if ARITHMETIC == F32 && (v.tap == 0 || v.tap + 8 >= 4 * i32(steps)) {
        // Some of the four positions are outside of some of the four windows.
        add_part(totals, v, true);
    } else {
        add_part(totals, v, false);
    }
}

fn add_part(totals: ptr<function, Totals>, v: Step, checked: bool) {
    (*totals).part = add_before((*totals).part, v, checked);
    if ARITHMETIC == U20U28 {
        (*totals).upper = add_before((*totals).upper, bits_of(v, 10u, 0x3ffu), false);
    }
    if u32(v.tap) % PARTIAL == 0u {
        end_part(totals);
    }
    (*totals).part = add_now((*totals).part, v, checked);
    if ARITHMETIC == U20U28 {
        (*totals).upper = add_now((*totals).upper, bits_of(v, 10u, 0x3ffu), false);
    }
}

// Adds the partial sums to the totals.
fn end_part(totals: ptr<function, Totals>) {
    let part = (*totals).part;
    if ARITHMETIC == U20U28 {
        (*totals).low = add_sums((*totals).low, rests(part));
        (*totals).high = add_sums((*totals).high, all_multiples(part, (*totals).upper));
        (*totals).upper = Sums();
    } else {
        (*totals).low = add_sums((*totals).low, part);
    }
    (*totals).part = Sums();
}

// Selects some bits of the samples of a step. For U48, the bytes of samples are added to three sums:
//
//     sample       | byte 2 | byte 1 | byte 0 |
//     sum of w *   |  high  | middle |  low   |       each below 2^32, since the weights sum to 2^24
//     result       (high * 2^16 + middle * 2^8 + low + 2^23) >> 24
//
// For U39, bits 0 to 11 and the upper bits are added to two sums.
//
// For U20U28, with up to 16 weights w of a partial sum, which sum to at most 2^22:
//
//     S = sum of w * sample                        modulo 2^32
//     U = sum of w * floor(sample / 2^10)          below 2^32: the sample's upper part has 10 bits
//     L = sum of w * (sample mod 2^10)             below 2^32, therefore exactly S - 2^10 U modulo 2^32
//
// The partial sum 2^10 U + L is stored as two numbers: the number of multiples of 2^16, and the rest, which is that of
// S.
fn bits_of(v: Step, shift: u32, mask: u32) -> Step {
    return Step(
        bits(v.p, shift, mask),
        bits(v.q, shift, mask),
        bits(v.r, shift, mask),
        bits(v.s, shift, mask),
        v.before,
        v.now,
        v.tap,
    );
}

fn bits(samples: vec4<Number>, shift: u32, mask: u32) -> vec4<Number> {
    return vec4<Number>((vec4<u32>(samples) >> vec4(shift)) & vec4(mask));
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

// The four results.
fn results(totals: ptr<function, Totals>) -> array<vec4<u32>, 4> {
    end_part(totals);
    let low = (*totals).low;
    let middle = (*totals).middle;
    let high = (*totals).high;
    return array(
        finish(low.a, middle.a, high.a),
        finish(low.b, middle.b, high.b),
        finish(low.c, middle.c, high.c),
        finish(low.d, middle.d, high.d),
    );
}

fn finish(low: vec4<Number>, middle: vec4<Number>, high: vec4<Number>) -> vec4<u32> {
    if ARITHMETIC == F32 {
        // Devices produce NaN with different bits.
        let bits = bitcast<vec4<u32>>(low);
        return select(bits, vec4(0x7fc00000u), (bits & vec4(0x7fffffffu)) > vec4(0x7f800000u));
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

// Stores four neighbouring samples at number 4 * `quad`.
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
