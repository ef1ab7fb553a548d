// Finds the class of each pixel: the number of thresholds that its grey value exceeds.
//
// In:     `data`, whole words of samples of 8, 16 or 32 bits; `bounds`, ascending keys: a value exceeds a threshold if
//         its key is at least the bound. Keys are unsigned integers in the order of the values.
// Out:    `threshold`: `result`, one byte per pixel: the class times `params.scale`.
//         `find`: `extremes` of the keys.
// Layout: one invocation per four pixels, which make one word of the result.
// Chosen: for every threshold; `find`, until samples of two classes have been found.

#import shared/keys

// Set by the host: bits per sample, whether samples are signed integers, and whether they are floats.
const BITS = 8u;
const SIGNED = false;
const FLOAT = false;

// Set by the host: samples per pixel, and the weights of red, green and blue in the luminance. That is the grey value of
// pixels of three or four unsigned samples of at most 16 bits. Otherwise, the grey value is the first sample.
const CHANNELS = 1u;
const RED = 1u;
const GREEN = 1u;
const BLUE = 1u;

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

fn bits_at(index: u32) -> u32 {
    return sample_bits(data[index / PER_WORD], index);
}

// The bits of the grey value of a pixel.
fn grey_bits(pixel: u32) -> u32 {
    let first = pixel * CHANNELS;
    if CHANNELS < 3u {
        return bits_at(first);
    }
    let sum = RED * bits_at(first) + GREEN * bits_at(first + 1u) + BLUE * bits_at(first + 2u);
    return (sum + (RED + GREEN + BLUE) / 2u) / (RED + GREEN + BLUE);
}

fn class_of(pixel: u32) -> u32 {
    let bits = grey_bits(pixel);
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

struct ExtremesParams {
    // Pixels with the padding of their rows.
    pixels: u32,
    // Pixels of a row, and from one row to the next.
    width: u32,
    pitch: u32,
}

// Maxima of ~key and of key for all values but NaN, the same for finite values, and 1 if there is a NaN. All of them
// are 0 before.
@group(0) @binding(4) var<storage, read_write> extremes: array<atomic<u32>, 5>;
@group(0) @binding(5) var<uniform> extent: ExtremesParams;

var<workgroup> found: array<atomic<u32>, 5>;

@compute @workgroup_size(GROUP)
fn find(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let first = 4u * ((group.y * groups.x + group.x) * GROUP + local);
    if local < 5u {
        atomicStore(&found[local], 0u);
    }
    workgroupBarrier();
    for (var pixel = first; pixel < min(first + 4u, extent.pixels); pixel++) {
        if pixel % extent.pitch >= extent.width {
            continue;
        }
        let bits = grey_bits(pixel);
        if is_nan(bits) {
            atomicStore(&found[4], 1u);
            continue;
        }
        let key = key_of(bits);
        atomicMax(&found[0], ~key);
        atomicMax(&found[1], key);
        if !FLOAT || (bits & 0x7fffffffu) < 0x7f800000u {
            atomicMax(&found[2], ~key);
            atomicMax(&found[3], key);
        }
    }
    workgroupBarrier();
    if local < 5u {
        atomicMax(&extremes[local], atomicLoad(&found[local]));
    }
}
