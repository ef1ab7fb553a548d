// Counts levels of interleaved 8-bit channels, and bins of their luminance, in one pass over the pixels.
//
// In:     `data`, pixels of CHANNELS bytes, padded to whole vectors of 16 bytes.
// Out:    `counts`, ROWS histograms of 256 counters; passes add to them.
// Layout: workgroups stride over the pixels, each invocation one unit at a time, count in workgroup memory, and
//         add their sums to `counts` in the end. All counters are atomic: with a plain `+= 1`, invocations
//         that increment one counter at once would lose counts.
// Chosen: for u8 and i8 channels, and for luminance of u8 in up to 256 bins over the type's range.
//
// Each counter has COPIES copies (replicated histograms: Gomez-Luna et al., An optimized approach to
// histogram computation on GPU, 2013), so that few invocations meet at one. Workgroup memory has 32 banks,
// and invocations of a subgroup that access one bank wait for each other. The bank depends on the
// invocation, never on the data:
//
//   bins[level]   | row 0: copies 0 .. C-1 | row 1: copies 0 .. C-1 | ...     LANES words, word w in bank w
//
// Invocation i uses copy i % C. Invocations that are C apart share a copy, but start with different rows, so that they
// are in different rows at any time. With 32 lanes no two of 32 neighbours access one counter at once, for any image.

// Set by the host: samples per pixel (1 to 4); histograms counted (1, 2 or 4).
const CHANNELS = 4u;
const ROWS = 4u;
// Several rows count the channel of their number each, but LUMINANCE takes the row of the channel whose
// byte begins at bit SHIFT. A single row counts the luminance, or else the byte at SHIFT.
const LUMINANCE = true;
const SHIFT = 24u;
// Words per level, a multiple of ROWS: 32 where workgroup memory has room for them, else 16.
const LANES = 32u;
const GROUP = 256u;
// Bin of a luminance: min((weights . (r, g, b)) * TIMES / DIVISOR, BINS - 1) in integers. The weights have
// 16 bits each: their upper and lower bytes, of a word like a pixel with red lowest.
const HIGH = 68868u;
const LOW = 6944807u;
const TIMES = 32u;
const DIVISOR = 159375u;
const BINS = 256u;

const COPIES = LANES / ROWS;
// Pixels and vectors of a unit, the smallest number of whole pixels in whole vectors.
const UNIT_PIXELS = select(16u / CHANNELS, 16u, CHANNELS == 3u);
const UNIT_VECTORS = select(1u, 3u, CHANNELS == 3u);

struct U8Params {
    // Pixels in `data`.
    pixels: u32,
}

@group(0) @binding(0) var<storage, read> data: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> params: U8Params;

// By level, then row, then copy.
var<workgroup> bins: array<array<atomic<u32>, LANES>, 256>;

// For each of the four bytes that this invocation counts one after the other: its first bit, and its word of `bins`.
var<private> shifts: vec4<u32>;
var<private> places: vec4<u32>;

fn prepare(local: u32) {
    let steps = vec4(0u, 1u, 2u, 3u) + (local / COPIES) % ROWS;
    shifts = 8u * (steps % 4u);
    places = (steps % ROWS) * COPIES + local % COPIES;
}

fn luma(pixel: u32) -> u32 {
    let sum = dot4U8Packed(pixel, HIGH) * 256u + dot4U8Packed(pixel, LOW);
    return min(sum * TIMES / DIVISOR, BINS - 1u);
}

// The values of a pixel that are counted, one byte per row. The first channel is in the lowest byte.
fn levels(pixel: u32) -> u32 {
    if ROWS == 1u {
        if LUMINANCE { return luma(pixel); }
        return (pixel >> SHIFT) & 255u;
    }
    if LUMINANCE { return (pixel & ~(255u << SHIFT)) | (luma(pixel) << SHIFT); }
    return pixel;
}

fn add(level: u32, place: u32) {
    atomicAdd(&bins[level][place], 1u);
}

// Counts four bytes, row by row.
fn add_bytes(bytes: u32) {
    add((bytes >> shifts.x) & 255u, places.x);
    add((bytes >> shifts.y) & 255u, places.y);
    add((bytes >> shifts.z) & 255u, places.z);
    add((bytes >> shifts.w) & 255u, places.w);
}

// Counts a word: one pixel, two of two bytes, or four of one byte.
fn add_word(word: u32) {
    if CHANNELS >= 3u && ROWS == 1u {
        add(levels(word), places.x);
    } else if CHANNELS == 2u && ROWS == 1u {
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

// Counts four pixels of three bytes in three words:
//   a = | r1 | b0 g0 r0 |     b = | g2 r2 | b1 g1 |     c = | b3 g3 r3 | b2 |
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

    let units = params.pixels / UNIT_PIXELS;
    let stride = groups.x * GROUP;
    var unit = group.x * GROUP + local;
    if CHANNELS != 3u {
        // Four loads in flight hide the memory's latency.
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
    // The rest, less than a unit: one pixel per invocation of the first workgroup.
    let last = units * UNIT_PIXELS + local;
    if group.x == 0u && last < params.pixels {
        var pixel = 0u;
        for (var c = 0u; c < CHANNELS; c++) {
            pixel |= byte(last * CHANNELS + c) << (8u * c);
        }
        for (var row = 0u; row < ROWS; row++) {
            add((levels(pixel) >> (8u * row)) & 255u, row * COPIES + local % COPIES);
        }
    }
    workgroupBarrier();

    for (var i = local; i < 256u * ROWS; i += GROUP) {
        let level = i / ROWS;
        let row = i % ROWS;
        var sum = 0u;
        for (var r = 0u; r < COPIES; r++) {
            // Each invocation begins with another copy, so that neighbours read different banks.
            sum += atomicLoad(&bins[level][row * COPIES + (r + i * COPIES / 32u) % COPIES]);
        }
        if sum != 0u {
            atomicAdd(&counts[row * 256u + level], sum);
        }
    }
}
