// Finds the class of each sample: the number of thresholds that it exceeds.
//
// In:     `data`, whole words of samples of 8, 16 or 32 bits; `bounds`, ascending keys: a sample exceeds a threshold if
//         its key is at least the bound. Keys are unsigned integers in the order of the samples' values.
// Out:    `result`, one byte per sample: the class times `params.scale`.
// Layout: one invocation per four samples, which make one word of the result.
// Chosen: for every threshold.

#import shared/keys

// Set by the host: bits per sample, whether samples are signed integers, and whether they are floats.
const BITS = 8u;
const SIGNED = false;
const FLOAT = false;

const GROUP = 256u;

struct ThresholdParams {
    // Words of the result.
    words: u32,
    // Number of bounds.
    bounds: u32,
    // Step between classes in the result.
    scale: u32,
}

@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read> bounds: array<u32>;
@group(0) @binding(2) var<storage, read_write> result: array<u32>;
@group(0) @binding(3) var<uniform> params: ThresholdParams;

fn class_of(index: u32) -> u32 {
    let bits = sample_bits(data[index / PER_WORD], index);
    if is_nan(bits) {
        // NaN exceeds no threshold.
        return 0u;
    }
    let key = key_of(bits);
    var number = 0u;
    for (var i = 0u; i < params.bounds; i++) {
        number += u32(key >= bounds[i]);
    }
    return number;
}

@compute @workgroup_size(GROUP)
fn threshold(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let word = (group.y * groups.x + group.x) * GROUP + local;
    if word >= params.words {
        return;
    }
    var packed = 0u;
    for (var i = 0u; i < 4u; i++) {
        packed |= (class_of(4u * word + i) * params.scale) << (8u * i);
    }
    result[word] = packed;
}
