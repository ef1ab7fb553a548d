// Counts the 256 levels of interleaved 8-bit channels, and the bins of their luminance, in one pass.

// What the host sets: samples a pixel (1 to 4), the row of counters of each channel and of the
// luminance (NONE leaves one out), how many rows there are, and the luminance bins, 256 at most.
const CHANNELS = 4u;
const FIRST = 0u;
const SECOND = 1u;
const THIRD = 2u;
const FOURTH = 4294967295u;
const LUMA = 3u;
const ROWS = 4u;
const BINS = 256u;
// Copies of every counter, a power of two up to 32: neighbours in a subgroup use different ones.
const REPLICAS = 4u;
const GROUP = 256u;
// Bin of the luminance = (RED r + GREEN g + BLUE b) / DIVISOR, in integers.
const RED = 34016u;
const GREEN = 114432u;
const BLUE = 11552u;
const DIVISOR = 159375u;

const NONE = 4294967295u;
const COUNTERS = ROWS * 256u;
// Pixels and vectors of 16 bytes in the least unit that is whole in both.
const UNIT_PIXELS = select(16u / CHANNELS, 16u, CHANNELS == 3u);
const UNIT_VECTORS = select(1u, 3u, CHANNELS == 3u);

struct BytesJob {
    // Pixels in `data`.
    pixels: u32,
}

@group(0) @binding(0) var<storage, read> data: array<vec4<u32>>;
// 256 counters a row; passes add to them.
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> job: BytesJob;

var<workgroup> bins: array<atomic<u32>, COUNTERS * REPLICAS>;

fn add(row: u32, level: u32, copy: u32, times: u32) {
    atomicAdd(&bins[(row * 256u + level) * REPLICAS + copy], times);
}

// Counts a pixel whose first channel is in the lowest byte; bytes past CHANNELS are ignored.
fn add_pixel(pixel: u32, copy: u32, times: u32) {
    if FIRST != NONE { add(FIRST, pixel & 255u, copy, times); }
    if SECOND != NONE { add(SECOND, (pixel >> 8u) & 255u, copy, times); }
    if THIRD != NONE { add(THIRD, (pixel >> 16u) & 255u, copy, times); }
    if FOURTH != NONE { add(FOURTH, pixel >> 24u, copy, times); }
    if LUMA != NONE {
        let luma = RED * (pixel & 255u) + GREEN * ((pixel >> 8u) & 255u)
            + BLUE * ((pixel >> 16u) & 255u);
        add(LUMA, min(luma / DIVISOR, BINS - 1u), copy, times);
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

// The same for a word of four 1-channel or two 2-channel pixels.
fn add_small(word: u32, copy: u32) {
    if CHANNELS == 1u {
        add_pixels((vec4(word) >> vec4(0u, 8u, 16u, 24u)) & vec4(255u), copy);
    } else if (word & 65535u) == word >> 16u {
        add_pixel(word & 65535u, copy, 2u);
    } else {
        add_pixel(word & 65535u, copy, 1u);
        add_pixel(word >> 16u, copy, 1u);
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

@compute @workgroup_size(GROUP)
fn count(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var i = local; i < COUNTERS * REPLICAS; i += GROUP) {
        atomicStore(&bins[i], 0u);
    }
    workgroupBarrier();

    let copy = local % REPLICAS;
    let units = job.pixels / UNIT_PIXELS;
    let stride = groups.x * GROUP;
    var unit = group.x * GROUP + local;
    if CHANNELS == 4u {
        // Two loads on their way at a time hide more of the memory's latency than one.
        for (; unit + stride < units; unit += 2u * stride) {
            let first = data[unit];
            let second = data[unit + stride];
            add_pixels(first, copy);
            add_pixels(second, copy);
        }
    }
    for (; unit < units; unit += stride) {
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
            add_small(first.x, copy);
            add_small(first.y, copy);
            add_small(first.z, copy);
            add_small(first.w, copy);
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

    for (var i = local; i < COUNTERS; i += GROUP) {
        var sum = 0u;
        for (var r = 0u; r < REPLICAS; r++) {
            // Each invocation starts at another copy, so that the reads fall into different banks.
            sum += atomicLoad(&bins[i * REPLICAS + (r + i * REPLICAS / 32u) % REPLICAS]);
        }
        if sum != 0u {
            atomicAdd(&counts[i], sum);
        }
    }
}
