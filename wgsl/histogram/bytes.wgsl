// Counts the 256 levels of interleaved 8-bit channels, and the bins of their luminance, in one pass.
//
// Workgroup memory has 32 banks, and lanes that meet in a bank wait for each other. So the lane, not
// the data, decides the bank: a level's counters are LANES words side by side, COPIES of each slot.
// Lanes that share a copy are in different slots at any time: each group of COPIES lanes begins with
// another one. With 32 lanes no two of a subgroup ever meet, whatever the picture.

// What the host sets: samples a pixel (1 to 4); slots counted a pixel (1, 2 or 4).
const CHANNELS = 4u;
const SLOTS = 4u;
// Several slots count the channel of their number each; LUMINANCE takes the place of the channel whose
// byte begins at bit SHIFT. A single slot counts the luminance, or else the byte at SHIFT.
const LUMINANCE = true;
const SHIFT = 24u;
// Words a level, a multiple of SLOTS: 32 where workgroup memory has room for it, else 16.
const LANES = 32u;
const GROUP = 256u;
// Bin of the luminance = (weights . (r, g, b)) * TIMES / DIVISOR, in integers, BINS - 1 at most. The
// weights' upper bytes are in HIGH, their lower ones in LOW, red's lowest.
const HIGH = 68868u;
const LOW = 6944807u;
const TIMES = 32u;
const DIVISOR = 159375u;
const BINS = 256u;

const COPIES = LANES / SLOTS;
// Pixels and vectors of 16 bytes in the least unit that is whole in both.
const UNIT_PIXELS = select(16u / CHANNELS, 16u, CHANNELS == 3u);
const UNIT_VECTORS = select(1u, 3u, CHANNELS == 3u);

struct BytesJob {
    // Pixels in `data`.
    pixels: u32,
}

@group(0) @binding(0) var<storage, read> data: array<vec4<u32>>;
// 256 counters a slot; passes add to them.
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> job: BytesJob;

// By level, then slot, then copy.
var<workgroup> bins: array<array<atomic<u32>, LANES>, 256>;

// Where this invocation finds the byte that it counts first, second ..., and in which word of a level.
var<private> shifts: vec4<u32>;
var<private> places: vec4<u32>;

fn prepare(local: u32) {
    let steps = vec4(0u, 1u, 2u, 3u) + (local / COPIES) % SLOTS;
    shifts = 8u * (steps % 4u);
    places = (steps % SLOTS) * COPIES + local % COPIES;
}

fn luma(pixel: u32) -> u32 {
    let sum = dot4U8Packed(pixel, HIGH) * 256u + dot4U8Packed(pixel, LOW);
    return min(sum * TIMES / DIVISOR, BINS - 1u);
}

// The levels that a pixel, whose first channel is in the lowest byte, adds to: a byte a slot.
fn levels(pixel: u32) -> u32 {
    if SLOTS == 1u {
        if LUMINANCE { return luma(pixel); }
        return (pixel >> SHIFT) & 255u;
    }
    if LUMINANCE { return (pixel & ~(255u << SHIFT)) | (luma(pixel) << SHIFT); }
    return pixel;
}

fn add(level: u32, place: u32) {
    atomicAdd(&bins[level][place], 1u);
}

// Counts four bytes, slot by slot.
fn add_bytes(bytes: u32) {
    add((bytes >> shifts.x) & 255u, places.x);
    add((bytes >> shifts.y) & 255u, places.y);
    add((bytes >> shifts.z) & 255u, places.z);
    add((bytes >> shifts.w) & 255u, places.w);
}

// Counts what is in a word: a pixel, or two or four small ones.
fn add_word(word: u32) {
    if CHANNELS >= 3u && SLOTS == 1u {
        add(levels(word), places.x);
    } else if CHANNELS == 2u && SLOTS == 1u {
        add(levels(word & 65535u), places.x);
        add(levels(word >> 16u), places.x);
    } else {
        add_bytes(select(word, levels(word), CHANNELS >= 3u));
    }
}

fn add_vector(words: vec4<u32>) {
    add_word(words.x);
    add_word(words.y);
    add_word(words.z);
    add_word(words.w);
}

// Four pixels of three bytes out of three words.
fn add_spread(a: u32, b: u32, c: u32) {
    add_vector(vec4(a, (a >> 24u) | (b << 8u), (b >> 16u) | (c << 16u), c >> 8u) & vec4(0xffffffu));
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
    for (var i = local; i < 256u * LANES; i += GROUP) {
        atomicStore(&bins[i / LANES][i % LANES], 0u);
    }
    prepare(local);
    workgroupBarrier();

    let units = job.pixels / UNIT_PIXELS;
    let stride = groups.x * GROUP;
    var unit = group.x * GROUP + local;
    if CHANNELS != 3u {
        // Four loads on their way at a time hide the memory's latency.
        for (; unit + 3u * stride < units; unit += 4u * stride) {
            let first = data[unit];
            let second = data[unit + stride];
            let third = data[unit + 2u * stride];
            let fourth = data[unit + 3u * stride];
            add_vector(first);
            add_vector(second);
            add_vector(third);
            add_vector(fourth);
        }
    }
    for (; unit < units; unit += stride) {
        let first = data[unit * UNIT_VECTORS];
        if CHANNELS == 3u {
            let second = data[unit * UNIT_VECTORS + 1u];
            let third = data[unit * UNIT_VECTORS + 2u];
            add_spread(first.x, first.y, first.z);
            add_spread(first.w, second.x, second.y);
            add_spread(second.z, second.w, third.x);
            add_spread(third.y, third.z, third.w);
        } else {
            add_vector(first);
        }
    }
    // What is left, less than a unit, a pixel an invocation of the first workgroup.
    let last = units * UNIT_PIXELS + local;
    if group.x == 0u && last < job.pixels {
        var pixel = 0u;
        for (var c = 0u; c < CHANNELS; c++) {
            pixel |= byte(last * CHANNELS + c) << (8u * c);
        }
        for (var slot = 0u; slot < SLOTS; slot++) {
            add((levels(pixel) >> (8u * slot)) & 255u, slot * COPIES + local % COPIES);
        }
    }
    workgroupBarrier();

    for (var i = local; i < 256u * SLOTS; i += GROUP) {
        let level = i / SLOTS;
        let slot = i % SLOTS;
        var sum = 0u;
        for (var r = 0u; r < COPIES; r++) {
            // Each invocation starts at another copy, so that the reads fall into different banks.
            sum += atomicLoad(&bins[level][slot * COPIES + (r + i * COPIES / 32u) % COPIES]);
        }
        if sum != 0u {
            atomicAdd(&counts[slot * 256u + level], sum);
        }
    }
}
