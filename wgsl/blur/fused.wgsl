// A small Gaussian of u8 along x and y at once: only the result is written to memory.
//
// An invocation processes two words (eight samples) of each row, from top to bottom. A ring buffer in registers holds
// the last TAPS rows, filtered along x. Each new row completes one row of the result, the weighted sum of the ring
// along y:
//
//     row n of the tile's halo and tile      filtered along x into ring[n % TAPS], as u16 with 7 fraction bits
//     row n - RADIUS of the result           the weighted sum along y of all of `ring`
//
// Sums are computed in packed lanes (see `shared/lanes`). The loop over rows is unrolled by TAPS, so that each element
// of the ring is a register. Tiles whose halo lies inside load rows from memory directly; tiles at the edges gather
// them in workgroup memory first.
//
// In: u8, rows of `pitch` words. Out: u8 or u16 (TO) in the same layout. Chosen for the first passes of a Gaussian
// along x and y with radii up to 5. With larger radii, the ring takes too many registers.

#import shared/edge
#import shared/lanes
#import shared/samples

struct FusedParams {
    samples: u32,  // samples per row
    pitch: u32,    // words of a row with padding, a multiple of 4
    height: u32,   // rows per slice
    across: u32,   // number of tiles along x
    down: u32,     // number of tiles along y
    rows: u32,     // `down` times the slices
    groups: u32,   // workgroups in all
    edge: u32,     // see `edge_position`
    fill: vec4<u32>, // the pixels outside, for CONSTANT: three words of u8, after which any number of channels repeats
    x: array<vec4<u32>, 3>, // weights at distances 0 to RADIUS, which sum to 2^23
    y: array<vec4<u32>, 3>, // they sum to 2^17 for u8, 2^16 for u16: results are the upper 8 or 16 bits of sums
}

const RADIUS = 3u;       // the larger of both radii
const CHANNELS = 4u;
const HAS_FILL = false;  // whether `edge` is CONSTANT
const TO = U8;           // or U16

const WIDTH = 64u;
const TILE_WORDS = 2u * WIDTH;
const TAPS = 2u * RADIUS + 1u;
const DISTANCES = RADIUS + 1u;
const HALO = 2u * RADIUS;
const ROWS = (59u + TAPS) / TAPS * TAPS; // rows of a tile and its halo
const HEIGHT = ROWS - HALO;
const LEAD = (RADIUS * CHANNELS + 7u) / 8u; // pairs of words read on either side of an invocation's
const PAIRS = 2u * LEAD + 1u;
const WORDS = 2u * PAIRS;

@group(0) @binding(0) var<uniform> params: FusedParams;
@group(0) @binding(1) var<storage, read> source: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> target_: array<vec2<u32>>;

// One half, for rounding: of U, and of both lanes of S.
const HALF_X = vec2(0x8000u, 0x80008000u);
const HALF_Y = select(vec2(0x800000u), HALF_X, TO == U16);

// For tiles at an edge: the row of the image for each row of the tile and its halo, and TAPS of these rows.
var<workgroup> lines: array<i32, ROWS>;
const SPAN = WIDTH + 2u * LEAD;
var<workgroup> staged: array<vec2<u32>, TAPS * SPAN>;

fn word(at: u32) -> u32 {
    return source[at >> 1u][at & 1u];
}

// The samples of a row that are used for the four of word `at`, which may lie outside; NOWHERE for CONSTANT. With four
// channels the first is enough.
const NOWHERE = 0xffffffffu;
fn sample_positions(at: i32) -> vec4<u32> {
    var found: vec4<u32>;
    let stride = i32(CHANNELS);
    for (var i = 0; i < 4; i++) { // unrolled
        if i == 0 || CHANNELS != 4u {
            let sample = 4 * at + i;
            let pixel = (sample + 64 * stride) / stride - 64; // rounded down also below 0
            let x = edge_position(pixel, i32(params.samples) / stride, params.edge);
            found[i] = select(u32(x * stride + sample - pixel * stride), NOWHERE, x < 0);
        }
    }
    return found;
}

// The word of these samples of a row, with those of `fill` for NOWHERE.
fn gather(row: u32, positions: vec4<u32>, fill: u32) -> u32 {
    var bytes = fill;
    for (var i = 0u; i < 4u; i++) { // unrolled
        if (i == 0u || CHANNELS != 4u) && (!HAS_FILL || positions[i] != NOWHERE) {
            let from_ = word(row + (positions[i] >> 2u));
            if CHANNELS == 4u {
                bytes = from_;
            } else {
                bytes = insertBits(bytes, from_ >> (8u * (positions[i] & 3u)), 8u * i, 8u);
            }
        }
    }
    return bytes;
}

// The samples that are used for two neighbouring words, in all rows.
struct Pair {
    first: vec4<u32>,
    second: vec4<u32>,
    fill: vec2<u32>,
}

fn pair(at: i32) -> Pair {
    let fill = vec2(params.fill[u32(at + 48) % 3u], params.fill[u32(at + 49) % 3u]);
    return Pair(sample_positions(at), sample_positions(at + 1), fill);
}

fn gather_pair(row: u32, pair: Pair) -> vec2<u32> {
    return vec2(gather(row, pair.first, pair.fill.x), gather(row, pair.second, pair.fill.y));
}

// Stages TAPS rows, from row `n` of the tile and its halo on.
fn stage(place: Place, pairs: array<Pair, 2>, n: u32) {
    workgroupBarrier();
    for (var k = 0u; k < TAPS; k++) { // unrolled
        let line = lines[n + k];
        let outside = HAS_FILL && line < 0;
        let row = (place.slice + u32(line)) * params.pitch;
        for (var i = 0u; i < 2u; i++) { // unrolled
            if i == 0u || place.local < 2u * LEAD {
                var words = pairs[i].fill;
                if !outside {
                    words = gather_pair(row, pairs[i]);
                }
                staged[k * SPAN + i * WIDTH + place.local] = words;
            }
        }
    }
    workgroupBarrier();
}

fn load_staged(at: u32) -> array<u32, WORDS> {
    var words: array<u32, WORDS>;
    for (var i = 0u; i < PAIRS; i++) { // unrolled
        words[2u * i] = staged[at + i].x;
        words[2u * i + 1u] = staged[at + i].y;
    }
    return words;
}

// The words of an invocation and of LEAD pairs on either side, from pair `at` of the image.
fn load(at: u32) -> array<u32, WORDS> {
    var words: array<u32, WORDS>;
    for (var i = 0u; i < PAIRS; i++) { // unrolled
        words[2u * i] = source[at + i].x;
        words[2u * i + 1u] = source[at + i].y;
    }
    return words;
}

// Four u8 samples from sample `at` on as u16 lanes: 0 | 2 and 1 | 3.
//
//     words     | s3 | s2 | s1 | s0 |
//     x         |    s2   |    s0   |
//     y         |    s3   |    s1   |
fn lanes_at(words: ptr<function, array<u32, WORDS>>, at: u32) -> vec2<u32> {
    var four = (*words)[at / 4u];
    if at % 4u != 0u {
        four = (four >> (8u * (at % 4u))) | ((*words)[at / 4u + 1u] << (32u - 8u * (at % 4u)));
    }
    return vec2(four, four >> 8u) & vec2(0x00ff00ffu);
}

// Four samples from sample `at` on, filtered along x: u16 lanes with seven fraction bits.
fn filter_x(words: ptr<function, array<u32, WORDS>>, at: u32) -> vec2<u32> {
    let middle = lanes_at(words, at);
    var sums = params.x[0].x * middle + HALF_X.y;
    var upper_sums = params.x[0].x * upper_lanes(middle) + HALF_X.x;
    for (var k = 1u; k < DISTANCES; k++) { // unrolled
        let both = lanes_at(words, at - k * CHANNELS) + lanes_at(words, at + k * CHANNELS);
        sums += params.x[k / 4u][k % 4u] * both;
        upper_sums += params.x[k / 4u][k % 4u] * upper_lanes(both);
    }
    return (lower_sums(sums, upper_sums) >> vec2(16u)) | (upper_sums & vec2(0xffff0000u));
}

// The four samples of word `i` filtered along y, in the upper 8 or 16 bits, where `last` is the ring's newest row.
fn filter_y(ring: ptr<function, array<array<vec2<u32>, 2>, TAPS>>, last: u32, i: u32) -> vec4<u32> {
    let centre = last + TAPS - RADIUS;
    let middle = (*ring)[centre % TAPS][i];
    var sums = params.y[0].x * middle + HALF_Y.y;
    var upper_sums = params.y[0].x * upper_lanes(middle) + HALF_Y.x;
    for (var k = 1u; k < DISTANCES; k++) { // unrolled
        let both = (*ring)[(centre - k) % TAPS][i] + (*ring)[(centre + k) % TAPS][i];
        sums += params.y[k / 4u][k % 4u] * both;
        upper_sums += params.y[k / 4u][k % 4u] * upper_lanes(both);
    }
    let lower = lower_sums(sums, upper_sums);
    return vec4(lower.x, lower.y, upper_sums.x, upper_sums.y);
}

// A workgroup's tile, and an invocation in it.
struct Place {
    left: u32,     // word
    top: u32,      // row
    slice: u32,    // its first row
    first: u32,    // the invocation's first word in the slice's first row
    local: u32,
}

// Computes a tile, whose halo lies inside if it is `inner`. That is a literal in each call: a branch in the loop would
// keep the compiler from moving the loads of a row between the sums of another.
fn blur_tile(place: Place, inner: bool) {
    let above = (place.first + (place.top - RADIUS) * params.pitch) / 2u - LEAD;
    // The next row of an inner tile, whose load is in flight.
    var next: array<u32, WORDS>;
    var pairs: array<Pair, 2>;
    if inner {
        next = load(above);
    } else {
        let at = i32(place.left + 2u * place.local) - 2 * i32(LEAD);
        pairs = array(pair(at), pair(at + 2 * i32(WIDTH)));
        for (var n = place.local; n < ROWS; n += WIDTH) {
            lines[n] = edge_position(i32(place.top + n) - i32(RADIUS), i32(params.height), params.edge);
        }
    }
    var ring: array<array<vec2<u32>, 2>, TAPS>;
    for (var n = 0u; n < ROWS; n += TAPS) {
        if !inner {
            stage(place, pairs, n);
        }
        for (var k = 0u; k < TAPS; k++) { // unrolled
            var words = next;
            if inner {
                next = load(above + (n + k + 1u) * params.pitch / 2u);
            } else {
                words = load_staged(k * SPAN + place.local);
            }
            ring[k][0] = filter_x(&words, 8u * LEAD);
            ring[k][1] = filter_x(&words, 8u * LEAD + 4u);
            let v = filter_y(&ring, k, 0u);
            let w = filter_y(&ring, k, 1u);
            let y = place.top + n + k - HALO;
            let to = (place.first + y * params.pitch) / 2u;
            if n + k >= HALO && y < params.height && (inner || place.left + 2u * place.local < params.pitch) {
                if TO == U16 {
                    target_[2u * to] = vec2(upper_u16(v.xy), upper_u16(v.zw));
                    target_[2u * to + 1u] = vec2(upper_u16(w.xy), upper_u16(w.zw));
                } else {
                    target_[to] = vec2(upper_u8(v), upper_u8(w));
                }
            }
        }
    }
}

fn upper_u8(v: vec4<u32>) -> u32 {
    return (v.x >> 24u) | ((v.y >> 16u) & 0xff00u) | ((v.z >> 8u) & 0xff0000u) | (v.w & 0xff000000u);
}

fn upper_u16(v: vec2<u32>) -> u32 {
    return (v.x >> 16u) | (v.y & 0xffff0000u);
}

@compute @workgroup_size(WIDTH)
fn blur(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = id.y * count.x + id.x;
    if group >= params.groups {
        return;
    }
    // Tiles at an edge take longest and start first: the two outer columns of tiles, then the lowest and the uppermost
    // tile of each other column.
    let sides = min(params.across, 2u);
    var column = group % sides * (params.across - 1u);
    var row = group / sides;
    if group >= sides * params.rows {
        let inner = group - sides * params.rows;
        column = 1u + inner % (params.across - sides);
        row = inner / (params.across - sides);
    }
    var place: Place;
    place.left = column * TILE_WORDS;
    place.top = (row + params.down - 1u) % params.down * HEIGHT;
    place.slice = row / params.down * params.height;
    place.first = place.slice * params.pitch + place.left + 2u * local;
    place.local = local;
    if place.left >= 2u * LEAD && 4u * (place.left + TILE_WORDS + 2u * LEAD) <= params.samples
        && place.top >= RADIUS && place.top + ROWS - RADIUS < params.height {
        blur_tile(place, true);
    } else {
        blur_tile(place, false);
    }
}
