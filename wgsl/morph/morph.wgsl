// Computes the minimum or maximum of some neighbours of each sample: one pass of an erosion or a dilation.
//
// In:     `source`, whole words of samples of 8, 16 or 32 bits; `previous`, the same for the results of the pass before;
//         `offsets` of neighbours along x, y and z: those in `previous`, then those in `source`.
// Out:    `result`, as `source`. Positions outside of the grid count as the nearest one inside.
// Layout: one invocation per word of the result.
// Chosen: for all samples but those of 64 bits. A pass has at most 5,000 offsets.

// Set by the host: bits per sample, whether samples are signed integers, and whether they are floats.
const BITS = 8u;
const SIGNED = false;
const FLOAT = false;

const GROUP = 256u;
const PER_WORD = 32u / BITS;
const SIGN = 1u << (BITS - 1u);
// The key of the NaN that stands for all of them, which is greater than those of numbers.
const NAN_KEY = 0xffc00000u;

struct MorphParams {
    // Words of the result.
    words: u32,
    channels: u32,
    width: u32,
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

// The unsigned integer in the order of the samples' values, flipped for maxima.
fn key_of(word: u32, index: u32) -> u32 {
    let bits = extractBits(word, BITS * (index % PER_WORD), BITS);
    var key = bits;
    if FLOAT {
        key = select(~bits, bits | SIGN, bits < SIGN);
        key = select(key, NAN_KEY, (bits & 0x7fffffffu) > 0x7f800000u);
    } else if SIGNED {
        key = bits ^ SIGN;
    }
    return key ^ params.flip;
}

fn bits_of(flipped: u32) -> u32 {
    let key = flipped ^ params.flip;
    if FLOAT {
        return select(~key, key ^ SIGN, key >= SIGN);
    }
    return select(key, key ^ SIGN, SIGNED);
}

// The index of the sample at an offset from a position.
fn neighbour(position: vec3<i32>, channel: u32, offset: vec4<i32>) -> u32 {
    let size = vec3(params.width, params.height, params.depth);
    let at = vec3<u32>(clamp(position + offset.xyz, vec3(0), vec3<i32>(size) - 1));
    return ((at.z * size.y + at.y) * size.x + at.x) * params.channels + channel;
}

fn extremum_at(sample: u32) -> u32 {
    let pixel = sample / params.channels;
    let channel = sample % params.channels;
    let row = pixel / params.width;
    let position = vec3<i32>(vec3(pixel % params.width, row % params.height, row / params.height));
    var best = 0xffffffffu;
    for (var i = params.previous; i < params.source; i++) {
        let at = neighbour(position, channel, offsets[i]);
        best = min(best, key_of(previous[at / PER_WORD], at));
    }
    for (var i = params.source; i < params.end; i++) {
        let at = neighbour(position, channel, offsets[i]);
        best = min(best, key_of(source[at / PER_WORD], at));
    }
    return bits_of(best);
}

@compute @workgroup_size(GROUP)
fn extremum(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let word = (group.y * groups.x + group.x) * GROUP + local;
    if word >= params.words {
        return;
    }
    let samples = params.channels * params.width * params.height * params.depth;
    var packed = 0u;
    for (var i = 0u; i < PER_WORD; i++) {
        let sample = word * PER_WORD + i;
        if sample < samples {
            packed = insertBits(packed, extremum_at(sample), BITS * i, BITS);
        }
    }
    result[word] = packed;
}
