// Converts samples to floats for the passes of the blur, and combines the results of the passes sample by sample: into the
// root of the sum of squares (gradient magnitude), or into a sharpened sample (unsharp mask). The arithmetic is that of the
// CPU, in f64.
//
// In:     `source`, whole words of samples of 8 or 16 bits; `floats`, results of passes; `table`, see `root` and `sharpen`.
// Out:    `floats` for `to_floats`; `sums` of squares for `add_squares`; `result`, as `source`, for `root` and `sharpen`.
// Layout: one invocation per sample in `to_floats` and `add_squares`, and per word in `root` and `sharpen`.
// Chosen: for integers of 8 and 16 bits, if the device has f64.

#import shared/keys

// Set by the host: bits per sample, whether samples are signed integers, and the largest number below 1/2. FLOAT stays
// false.
const BITS = 8u;
const SIGNED = false;
const HALF = 0.5;
const FLOAT = false;

const GROUP = 256u;
const MIN = select(0, -i32(SIGN), SIGNED);
const MAX = MIN + i32(2u * SIGN - 1u);

struct CombineParams {
    samples: u32,
    // Samples per pixel if the last one is alpha, which is copied; else 0.
    channels: u32,
    // Whether these are the first squares of the sums.
    is_first: u32,
}

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> floats: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums: array<f64>;
@group(0) @binding(3) var<storage, read> table: array<f64>;
@group(0) @binding(4) var<storage, read_write> result: array<u32>;
@group(0) @binding(5) var<uniform> params: CombineParams;

fn value_at(index: u32) -> i32 {
    let bits = sample_bits(source[index / PER_WORD], index);
    return select(i32(bits), extractBits(i32(bits), 0u, BITS), SIGNED);
}

@compute @workgroup_size(GROUP)
fn to_floats(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = (group.y * groups.x + group.x) * GROUP + local;
    if index < params.samples {
        floats[index] = f32(value_at(index));
    }
}

@compute @workgroup_size(GROUP)
fn add_squares(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = (group.y * groups.x + group.x) * GROUP + local;
    if index < params.samples {
        // The square is exact, so that one rounding, if the product and the sum are fused, is the same as two.
        let value = f64(floats[index]);
        sums[index] = value * value + select(sums[index], f64(0.0), params.is_first != 0u);
    }
}

// The rounded root of a sum of squares: the number of entries in the table that are not larger than the sum.
fn rounded_root(sum: f64) -> i32 {
    var root = i32(min(sqrt(f32(sum)) + 0.5, f32(MAX)));
    while root < MAX && sum >= table[root] {
        root++;
    }
    while root > 0 && sum < table[root - 1] {
        root--;
    }
    return root;
}

// With amount = table[0], threshold = table[1] and difference = sample - blurred: sample + amount * difference, rounded and
// clamped, where |difference| > threshold; else the sample.
fn sharpened(index: u32) -> i32 {
    let sample = f64(value_at(index));
    let difference = sample - f64(floats[index]);
    // Without `min`, the product and the sum could be fused, with another rounding than that of the CPU.
    let product = min(table[0] * difference, f64(0x1p1000));
    let sharp = sample + select(f64(0.0), product, abs(difference) > table[1]);
    let rounded = sharp + select(f64(HALF), f64(-HALF), sharp < f64(0.0));
    return i32(clamp(rounded, f64(MIN), f64(MAX)));
}

// The word that holds `bits` of the sample at `index`, or the alpha of the input.
fn packed(word: u32, index: u32, bits: i32) -> u32 {
    let is_alpha = params.channels > 0u && index % params.channels == params.channels - 1u;
    let kept = sample_bits(source[index / PER_WORD], index);
    return insertBits(word, select(u32(bits), kept, is_alpha), BITS * (index % PER_WORD), BITS);
}

// `root` and `sharpen` are two entry points because one for both would use five storage buffers; some devices have four.
@compute @workgroup_size(GROUP)
fn root(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let first = ((group.y * groups.x + group.x) * GROUP + local) * PER_WORD;
    var word = 0u;
    for (var index = first; index < min(first + PER_WORD, params.samples); index++) {
        word = packed(word, index, rounded_root(sums[index]));
    }
    if first < params.samples {
        result[first / PER_WORD] = word;
    }
}

@compute @workgroup_size(GROUP)
fn sharpen(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let first = ((group.y * groups.x + group.x) * GROUP + local) * PER_WORD;
    var word = 0u;
    for (var index = first; index < min(first + PER_WORD, params.samples); index++) {
        word = packed(word, index, sharpened(index));
    }
    if first < params.samples {
        result[first / PER_WORD] = word;
    }
}
