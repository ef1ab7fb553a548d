// Finds a percentile of the samples in a box around each sample: of the keys in the box, the one with `params.rank` smaller
// or equal ones before it. Its bits are found one after the other, the highest first, by counting keys.
//
// In:     `source`, whole words of samples of 8, 16 or 32 bits.
// Out:    `result`, as `source`. Positions outside of the grid count as the nearest one inside.
// Chosen: for boxes of at most 900 samples, and not for samples of 64 bits.

#import shared/neighbourhood

// Set by the host: bits per sample, whether samples are signed integers, and whether they are floats.
const BITS = 8u;
const SIGNED = false;
const FLOAT = false;

struct MedianParams {
    // Words of the result.
    words: u32,
    channels: u32,
    width: u32,
    pitch: u32,
    height: u32,
    depth: u32,
    // Radius of the box along each axis.
    x: u32,
    y: u32,
    z: u32,
    // Number of keys in the box that are sorted before the result.
    rank: u32,
}

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@group(0) @binding(2) var<uniform> params: MedianParams;

// The position at `offset` from the start of a window around `at`, or the nearest one inside.
fn inside(at: u32, offset: u32, radius: u32, len: u32) -> u32 {
    return u32(clamp(i32(at + offset) - i32(radius), 0, i32(len) - 1));
}

// Number of keys in the box that are less than `key`.
fn count_less(position: vec3<u32>, channel: u32, key: u32) -> u32 {
    var count = 0u;
    for (var k = 0u; k <= 2u * params.z; k++) {
        let z = inside(position.z, k, params.z, params.depth);
        for (var j = 0u; j <= 2u * params.y; j++) {
            let y = inside(position.y, j, params.y, params.height);
            let row = (z * params.height + y) * params.pitch;
            for (var i = 0u; i <= 2u * params.x; i++) {
                let x = inside(position.x, i, params.x, params.width);
                let at = (row + x) * params.channels + channel;
                count += u32(canonical_key(sample_bits(source[at / PER_WORD], at)) < key);
            }
        }
    }
    return count;
}

// The percentile around a sample.
fn result_at(position: vec3<u32>, channel: u32) -> u32 {
    // The largest key with at most `rank` smaller ones in the box.
    var key = 0u;
    for (var bit = BITS; bit > 0u; bit--) {
        let larger = key | (1u << (bit - 1u));
        if count_less(position, channel, larger) <= params.rank {
            key = larger;
        }
    }
    return bits_of(key);
}
