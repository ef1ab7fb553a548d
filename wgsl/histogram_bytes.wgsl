// Counts the 256 levels of interleaved 8-bit channels, and the bins of their luminance, in one pass.

// What the host sets: samples a pixel (1 to 4), the first slot of each channel's 256 levels and of
// the luminance bins (NONE leaves a channel out), and all slots together.
const CHANNELS = 4u;
const FIRST_AT = 0u;
const SECOND_AT = 256u;
const THIRD_AT = 512u;
const FOURTH_AT = 4294967295u;
const LUMA_AT = 768u;
const SLOTS = 1025u;
// Copies of every slot, a power of two up to 32: neighbours in a subgroup count in different copies.
const REPLICAS = 4u;
// Bin of the luminance = (RED r + GREEN g + BLUE b) / DIVISOR, in integers; full white alone reaches
// one bin past the last, a slot of its own that the host adds to the last bin.
const RED = 34016u;
const GREEN = 114432u;
const BLUE = 11552u;
const DIVISOR = 159375u;

const NONE = 4294967295u;
const GROUP = 256u;
// Pixels and vectors of 16 bytes in the least unit that is whole in both.
const UNIT_PIXELS = select(16u / CHANNELS, 16u, CHANNELS == 3u);
const UNIT_VECTORS = select(1u, 3u, CHANNELS == 3u);

struct BytesJob {
    // Pixels in `data`.
    pixels: u32,
}

@group(0) @binding(0) var<storage, read> data: array<vec4<u32>>;
// One counter a slot; passes add to it.
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> job: BytesJob;

var<workgroup> bins: array<atomic<u32>, SLOTS * REPLICAS>;

fn add(slot: u32, copy: u32, times: u32) {
    atomicAdd(&bins[slot * REPLICAS + copy], times);
}

// Counts a pixel whose first channel is in the lowest byte; bytes past CHANNELS are ignored.
fn add_pixel(pixel: u32, copy: u32, times: u32) {
    if FIRST_AT != NONE { add(FIRST_AT + (pixel & 255u), copy, times); }
    if SECOND_AT != NONE { add(SECOND_AT + ((pixel >> 8u) & 255u), copy, times); }
    if THIRD_AT != NONE { add(THIRD_AT + ((pixel >> 16u) & 255u), copy, times); }
    if FOURTH_AT != NONE { add(FOURTH_AT + (pixel >> 24u), copy, times); }
    if LUMA_AT != NONE {
        let luma = RED * (pixel & 255u) + GREEN * ((pixel >> 8u) & 255u)
            + BLUE * ((pixel >> 16u) & 255u);
        add(LUMA_AT + luma / DIVISOR, copy, times);
    }
}

// Four pixels of equal colour, common in drawings and skies, are counted at once: that keeps one
// counter from being the whole image's bottleneck.
fn add_pixels(pixels: vec4<u32>, copy: u32) {
    if all(pixels == pixels.xxxx) {
        add_pixel(pixels.x, copy, 4u);
    } else {
        add_pixel(pixels.x, copy, 1u);
        add_pixel(pixels.y, copy, 1u);
        add_pixel(pixels.z, copy, 1u);
        add_pixel(pixels.w, copy, 1u);
    }
}

// The same for four words of 1-channel or 2-channel pixels.
fn add_small(words: vec4<u32>, copy: u32) {
    for (var i = 0u; i < 4u; i++) {
        let word = words[i];
        if CHANNELS == 1u {
            add_pixels((vec4(word) >> vec4(0u, 8u, 16u, 24u)) & vec4(255u), copy);
        } else {
            let pair = vec2(word & 65535u, word >> 16u);
            if pair.x == pair.y {
                add_pixel(pair.x, copy, 2u);
            } else {
                add_pixel(pair.x, copy, 1u);
                add_pixel(pair.y, copy, 1u);
            }
        }
    }
}

// Four pixels of three bytes out of three words.
fn spread(a: u32, b: u32, c: u32) -> vec4<u32> {
    let pixels = vec4(a, (a >> 24u) | (b << 8u), (b >> 16u) | (c << 16u), c >> 8u);
    return pixels & vec4(0xffffffu);
}

fn byte(index: u32) -> u32 {
    return (data[index >> 4u][(index >> 2u) & 3u] >> (8u * (index & 3u))) & 255u;
}

@compute @workgroup_size(256)
fn count(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var i = local; i < SLOTS * REPLICAS; i += GROUP) {
        atomicStore(&bins[i], 0u);
    }
    workgroupBarrier();

    let copy = local % REPLICAS;
    let units = job.pixels / UNIT_PIXELS;
    for (var unit = group.x * GROUP + local; unit < units; unit += groups.x * GROUP) {
        let first = data[unit * UNIT_VECTORS];
        if CHANNELS == 4u {
            add_pixels(first, copy);
        } else if CHANNELS == 3u {
            let second = data[unit * UNIT_VECTORS + 1u];
            let third = data[unit * UNIT_VECTORS + 2u];
            add_pixels(spread(first.x, first.y, first.z), copy);
            add_pixels(spread(first.w, second.x, second.y), copy);
            add_pixels(spread(second.z, second.w, third.x), copy);
            add_pixels(spread(third.y, third.z, third.w), copy);
        } else {
            add_small(first, copy);
        }
    }
    // What is left, less than a unit, a pixel an invocation of the first workgroup.
    let last = units * UNIT_PIXELS + local;
    if group.x == 0u && last < job.pixels {
        var pixel = 0u;
        for (var c = 0u; c < CHANNELS; c++) {
            pixel |= byte(last * CHANNELS + c) << (8u * c);
        }
        add_pixel(pixel, copy, 1u);
    }
    workgroupBarrier();

    for (var slot = local; slot < SLOTS; slot += GROUP) {
        var sum = 0u;
        for (var r = 0u; r < REPLICAS; r++) {
            // Each invocation starts at another copy, so that the reads fall into different banks.
            sum += atomicLoad(&bins[slot * REPLICAS + (r + slot * REPLICAS / 32u) % REPLICAS]);
        }
        if sum != 0u {
            atomicAdd(&counts[slot], sum);
        }
    }
}
