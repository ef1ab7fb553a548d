// Converts 8-bit samples to the space in which light is averaged, and back, as `kernels/blur/working_space.rs` does.
//
// In:     `source`; samples of 8 bits for `to_working`, u32 below 2^24 for `to_stored`; `table`, a
//         lookup table: for `to_working`, from opaque colours to u32; for `to_stored` with LINEAR, from linear light (0 to
//         65535) to bytes of sRGB.
// Out:    `target_`, the samples in the other space.
// Layout: one invocation per sample in `to_working`, and per word of four samples in `to_stored`.
// Chosen: for 8-bit images with alpha or in linear light.

// Set by the host: samples per pixel, whether the last of them is alpha, whether colours are multiplied by it, and whether
// they are in linear light.
const CHANNELS = 4u;
const ALPHA = true;
const PREMULTIPLY = true;
const LINEAR = false;

const GROUP = 256u;
// Full intensity of a colour, and a unit of alpha.
const FULL = (255u * 255u) << 8u;
const UNIT = 255u << 8u;

struct WorkingSpaceParams {
    samples: u32,
}

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_: array<u32>;
@group(0) @binding(3) var<uniform> params: WorkingSpaceParams;

fn byte_at(index: u32) -> u32 {
    return extractBits(source[index / 4u], 8u * (index % 4u), 8u);
}

// Index of the alpha of a sample's pixel.
fn alpha_index(index: u32) -> u32 {
    return index - index % CHANNELS + CHANNELS - 1u;
}

@compute @workgroup_size(GROUP)
fn to_working(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = (group.y * groups.x + group.x) * GROUP + local;
    if index >= params.samples {
        return;
    }
    if ALPHA && index == alpha_index(index) {
        target_[index] = byte_at(index) * UNIT;
        return;
    }
    let alpha = select(255u, byte_at(alpha_index(index)), PREMULTIPLY);
    // Below 2^32: FULL * 255 + 127.
    target_[index] = (table[byte_at(index)] * alpha + 127u) / 255u;
}

fn stored(index: u32) -> u32 {
    var full = FULL;
    if ALPHA {
        let alpha = source[alpha_index(index)];
        let stored_alpha = (alpha + UNIT / 2u) / UNIT;
        if stored_alpha == 0u || index == alpha_index(index) {
            return stored_alpha;
        }
        full = select(FULL, alpha, PREMULTIPLY);
    }
    // Below 2^32, as all that follows: `source[index]` is below 2^24, and `full` is from UNIT / 2 to FULL.
    let product = source[index] * 255u;
    if !LINEAR {
        return min((product + full / 2u) / full, 255u);
    }
    // 65535 is 255 times 257.
    let light = product / full * 257u + (product % full * 257u + full / 2u) / full;
    let entry = min(light, 65535u);
    return extractBits(table[entry / 4u], 8u * (entry % 4u), 8u);
}

@compute @workgroup_size(GROUP)
fn to_stored(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let word = (group.y * groups.x + group.x) * GROUP + local;
    if word >= (params.samples + 3u) / 4u {
        return;
    }
    var packed = 0u;
    for (var i = 0u; i < 4u; i++) {
        let index = 4u * word + i;
        if index < params.samples {
            packed |= stored(index) << (8u * i);
        }
    }
    target_[word] = packed;
}
