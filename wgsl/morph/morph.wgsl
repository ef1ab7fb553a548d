// Computes the minimum or maximum of some neighbours of each sample: one pass of an erosion or a dilation.
//
// In:     `source`, whole words of samples of 8, 16 or 32 bits; `previous`, the same for the results of the pass before;
//         `offsets` of neighbours along x, y and z: those in `previous`, then those in `source`.
// Out:    `result`, as `source`. Positions outside of the grid count as the nearest one inside.
// Chosen: for all samples but those of 64 bits. A pass has at most 5,000 offsets.

#import shared/neighbourhood

// Set by the host: bits per sample, whether samples are signed integers, and whether they are floats.
const BITS = 8u;
const SIGNED = false;
const FLOAT = false;

struct MorphParams {
    // Words of the result.
    words: u32,
    channels: u32,
    width: u32,
    pitch: u32,
    height: u32,
    depth: u32,
    // First offsets in `previous` and in `source`, and the end of the latter.
    previous: u32,
    source: u32,
    end: u32,
    // 0 for minima, 0xffffffff for maxima.
    flip: u32,
}

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read> previous: array<u32>;
@group(0) @binding(2) var<storage, read> offsets: array<vec4<i32>>;
@group(0) @binding(3) var<storage, read_write> result: array<u32>;
@group(0) @binding(4) var<uniform> params: MorphParams;

// The key, flipped for maxima.
fn flipped_key(word: u32, index: u32) -> u32 {
    return canonical_key(sample_bits(word, index)) ^ params.flip;
}

// The index of the sample at an offset from a position.
fn neighbour(position: vec3<i32>, channel: u32, offset: vec4<i32>) -> u32 {
    let size = vec3(params.width, params.height, params.depth);
    let at = vec3<u32>(clamp(position + offset.xyz, vec3(0), vec3<i32>(size) - 1));
    return ((at.z * size.y + at.y) * params.pitch + at.x) * params.channels + channel;
}

// The extremum around a sample.
fn result_at(center: vec3<u32>, channel: u32) -> u32 {
    let position = vec3<i32>(center);
    var best = 0xffffffffu;
    for (var i = params.previous; i < params.source; i++) {
        let at = neighbour(position, channel, offsets[i]);
        best = min(best, flipped_key(previous[at / PER_WORD], at));
    }
    for (var i = params.source; i < params.end; i++) {
        let at = neighbour(position, channel, offsets[i]);
        best = min(best, flipped_key(source[at / PER_WORD], at));
    }
    return bits_of(best ^ params.flip);
}
