// Replaces colour samples by entries of a table, or adds the entry for the luminance of a pixel to all its colours.
//
// In:     `data`, whole words of 8-bit or 16-bit samples, beginning with a pixel; `table`, by sample value.
// Out:    `result`, as `data`; alpha is copied.
// Layout: one invocation per word.
// Chosen: for every adjustment.

// Set by the host: bits per sample (8 or 16), samples per pixel, whether the last of them is alpha, and whether
// the table holds shifts by luminance (true) or new samples by old ones (false).
const BITS = 8u;
const CHANNELS = 3u;
const ALPHA = false;
const SHIFTS = true;
// Luminance = (RED r + GREEN g + BLUE b) / (RED + GREEN + BLUE).
const RED = 1063u;
const GREEN = 3576u;
const BLUE = 361u;

const GROUP = 256u;
const PER_WORD = 32u / BITS;
const MOST = (1u << BITS) - 1u;

struct AdjustParams {
    // 32-bit words of samples.
    words: u32,
}

@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read> table: array<i32>;
@group(0) @binding(2) var<storage, read_write> result: array<u32>;
@group(0) @binding(3) var<uniform> params: AdjustParams;

fn sample(index: u32) -> u32 {
    return (data[index / PER_WORD] >> (BITS * (index % PER_WORD))) & MOST;
}

// The luminance of the pixel whose first sample is at `index`, rounded to a sample value, halves up.
fn level(index: u32) -> u32 {
    if CHANNELS < 3u {
        return sample(index);
    }
    let sum = RED + GREEN + BLUE;
    return (RED * sample(index) + GREEN * sample(index + 1u) + BLUE * sample(index + 2u) + sum / 2u) / sum;
}

@compute @workgroup_size(GROUP)
fn adjust(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let word = (group.y * groups.x + group.x) * GROUP + local;
    if word >= params.words {
        return;
    }
    var packed = 0u;
    for (var i = 0u; i < PER_WORD; i++) {
        let index = word * PER_WORD + i;
        let channel = index % CHANNELS;
        var value = i32(sample(index));
        if !ALPHA || channel != CHANNELS - 1u {
            if SHIFTS {
                value += table[level(index - channel)];
            } else {
                value = table[value];
            }
        }
        packed |= u32(clamp(value, 0, i32(MOST))) << (BITS * i);
    }
    result[word] = packed;
}
