// Resamples along one axis: each result is a weighted sum of neighbouring samples.
//
// In:     `data`, samples of 8, 16 or 32 bits, an array [outer, params.length, params.inner] whose middle axis is
//         resampled; `table`, for each position of the result the first sample that it depends on, the
//         number of them, and `params.taps` weights: i32, or f32.
// Out:    `result`, an array [outer, params.count, params.inner] of samples of 8, 16 or 32 bits.
// Layout: one invocation per word of the result, which has one, two or four samples.
// Chosen: for every resampling, except in f64 and with more than `MAX_TAPS` taps.

#import shared/multiply_add

// Set by the host: bits of samples and results, the arithmetic, and whether samples have a sign.
const FROM = 8u;
const TO = 8u;
const ARITHMETIC = 0u;
const SIGNED = 0u;

const I32 = 0u;    // samples of up to 13 bits and a sign, and weights of 18: sums fit i32
const I44 = 1u;    // samples of up to 25 bits and a sign, as two sums: of their lower 12 bits, and of their upper bits
const F32 = 2u;    // one rounding for each product and sum

const GROUP = 64u;
const FROM_WORD = 32u / FROM;
const TO_WORD = 32u / TO;

struct ResizeParams {
    words: u32,
    samples: u32,
    length: u32,
    count: u32,
    inner: u32,
    taps: u32,
    // First position of a part of the result, and the input position of the first sample in `data`.
    first: u32,
    skipped: u32,
    // Of integers: the sum is rounded to a multiple of 2^shift and divided by that, and clamped to min..=max.
    shift: u32,
    min: i32,
    max: i32,
}

@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> result: array<u32>;
@group(0) @binding(3) var<uniform> params: ResizeParams;

fn sample_at(index: u32) -> i32 {
    let word = data[index / FROM_WORD];
    let first = FROM * (index % FROM_WORD);
    if SIGNED == 1u {
        return extractBits(bitcast<i32>(word), first, FROM);
    }
    return bitcast<i32>(extractBits(word, first, FROM));
}

fn resampled(index: u32) -> u32 {
    let column = index % params.inner;
    let row = index / params.inner;
    var entry = (row % params.count + params.first) * (params.taps + 2u);
    let count = table[entry + 1u];
    var at = (row / params.count * params.length + table[entry] - params.skipped) * params.inner + column;
    entry += 2u;
    if ARITHMETIC == F32 {
        var sum = vec4(0.0);
        for (var tap = 0u; tap < count; tap++) {
            let weight = vec4(bitcast<f32>(table[entry + tap]));
            sum = multiply_add(weight, vec4(bitcast<f32>(data[at])), sum);
            at += params.inner;
        }
        return bitcast<u32>(sum.x);
    }
    var low = 0;
    var high = 0;
    for (var tap = 0u; tap < count; tap++) {
        let weight = bitcast<i32>(table[entry + tap]);
        let sample = sample_at(at);
        if ARITHMETIC == I44 {
            low += weight * (sample & 0xfff);
            high += weight * (sample >> 12u);
        } else {
            low += weight * sample;
        }
        at += params.inner;
    }
    // The sum is high * 2^12 + low.
    var value = 0;
    if ARITHMETIC == I44 && params.shift > 12u {
        value = (high + (low >> 12u) + (1 << (params.shift - 13u))) >> (params.shift - 12u);
    } else {
        // With a shift of less than 12, samples have 16 bits, and `high` has few.
        value = ((low + (1 << (params.shift - 1u))) >> params.shift) + (high << ((12u - params.shift) % 32u));
    }
    return bitcast<u32>(clamp(value, params.min, params.max));
}

@compute @workgroup_size(GROUP)
fn resize(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let word = (group.y * groups.x + group.x) * GROUP + local;
    if word >= params.words {
        return;
    }
    var packed = 0u;
    for (var i = 0u; i < TO_WORD; i++) {
        let index = word * TO_WORD + i;
        if index < params.samples {
            packed = insertBits(packed, resampled(index), TO * i % 32u, TO);
        }
    }
    result[word] = packed;
}
