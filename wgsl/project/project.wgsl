// Reduces the samples of a block along one axis: maximum, minimum, sum, or sum and sum of squares.
//
// In:     `data`, whole words of samples of 8, 16 or 32 bits, as an array [lines, length, inner]: the samples along the
//         axis are `inner` samples apart.
// Out:    `state`, the reduced samples of `lines * inner` lines, WORDS words each, to which the block is added, or which
//         it begins if `params.is_first` is not 0.
// Layout: one invocation per line.
// Chosen: for every projection, except for sums of floats, which shaders cannot hold exactly.
//
// Samples are reduced as keys: unsigned integers in their order, which for integers are their distances from the minimum
// of the type. Sums have two words, sums of squares three.

#import shared/keys

// Set by the host: bits per sample, whether samples are signed integers or floats, and the operation.
const BITS = 8u;
const SIGNED = false;
const FLOAT = false;
const OPERATION = 0u;

const MAX = 0u;
const MIN = 1u;
const SUM = 2u;
const SQUARES = 3u;

const GROUP = 64u;
// The states of a maximum or minimum with a NaN: the keys of a NaN.
const NAN_MAX = 0xffffffffu;
const NAN_MIN = 0u;

struct ProjectParams {
    lines: u32,
    length: u32,
    inner: u32,
    is_first: u32,
}

@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> state: array<u32>;
@group(0) @binding(2) var<uniform> params: ProjectParams;

fn key_at(index: u32) -> u32 {
    let bits = sample_bits(data[index / PER_WORD], index);
    return select(key_of(bits), select(NAN_MAX, NAN_MIN, OPERATION == MIN), is_nan(bits));
}

// The 64 bits of `key * key`: low and high word.
fn square(key: u32) -> vec2<u32> {
    let low = key & 0xffffu;
    let high = key >> 16u;
    let middle = low * high;
    // 2^17 * middle is added to the square of the low half; its upper bits go to the high word.
    let sum = low * low + (middle << 17u);
    return vec2(sum, high * high + (middle >> 15u) + u32(sum < (middle << 17u)));
}

@compute @workgroup_size(GROUP)
fn project(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let line = (group.y * groups.x + group.x) * GROUP + local;
    if line >= params.lines * params.inner {
        return;
    }
    var index = line / params.inner * params.length * params.inner + line % params.inner;
    if OPERATION == MAX || OPERATION == MIN {
        var best = select(state[line], key_at(index), params.is_first != 0u);
        for (var i = 0u; i < params.length; i++) {
            let key = key_at(index);
            best = select(max(best, key), min(best, key), OPERATION == MIN);
            index += params.inner;
        }
        state[line] = best;
        return;
    }
    let at = line * select(2u, 5u, OPERATION == SQUARES);
    var sum = vec2(0u);
    var squares = vec3(0u);
    if params.is_first == 0u {
        sum = vec2(state[at], state[at + 1u]);
        if OPERATION == SQUARES {
            squares = vec3(state[at + 2u], state[at + 3u], state[at + 4u]);
        }
    }
    for (var i = 0u; i < params.length; i++) {
        let key = key_at(index);
        sum.x += key;
        sum.y += u32(sum.x < key);
        if OPERATION == SQUARES {
            let more = square(key);
            squares.x += more.x;
            // The high word of a square is at most 2^32 - 2, so the carry fits.
            let high = more.y + u32(squares.x < more.x);
            squares.y += high;
            squares.z += u32(squares.y < high);
        }
        index += params.inner;
    }
    state[at] = sum.x;
    state[at + 1u] = sum.y;
    if OPERATION == SQUARES {
        state[at + 2u] = squares.x;
        state[at + 3u] = squares.y;
        state[at + 4u] = squares.z;
    }
}
