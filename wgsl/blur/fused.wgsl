// Both passes of a Gaussian blur of bytes at once, for small radii. Each invocation goes down two words of the rows
// and keeps the sums along x of as many rows as there are taps, so that nothing but the result is written.
//
// Two samples share a word of sums. Their products overlap, but all is exact modulo 2^32, and the sum of the upper
// ones, which is made once more for itself, tells what to take off.

#import blur/common

struct FusedParams {
    samples: u32,  // samples a row
    pitch: u32,    // words from row to row, a multiple of 4
    height: u32,   // rows a slice
    across: u32,   // tiles side by side
    down: u32,     // tiles one below the other
    groups: u32,   // workgroups in all
    edge: u32,     // see `inside`
    unused: u32,
    fill: vec4<u32>, // what lies outside, three words of bytes
    x: array<vec4<u32>, 3>, // 2^23 in all: weights of taps 0 to RADIUS
    y: array<vec4<u32>, 3>, // 2^17 in all for bytes, 2^16 for halves
}

const RADIUS = 3u;
const CHANNELS = 4u;
const CONSTANT = false;  // whether a constant lies outside

const WIDTH = 64u;
const COLUMNS = 2u * WIDTH;          // words that a tile is wide
const TAPS = 2u * RADIUS + 1u;
const AFTER = RADIUS + 1u;
const BOTH = 2u * RADIUS;
const ROWS = (59u + TAPS) / TAPS * TAPS; // rows of sums along x
const HEIGHT = ROWS - BOTH;          // rows of the result
const LEAD = (RADIUS * CHANNELS + 7u) / 8u; // pairs of words that are read on either side
const PAIRS = 2u * LEAD + 1u;
const WORDS = 2u * PAIRS;

@group(0) @binding(0) var<uniform> params: FusedParams;
@group(0) @binding(1) var<storage, read> source: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> target_: array<vec2<u32>>;

// Halves that round the sum of one sample, and those of two in a word, modulo 2^32.
const ROUND_X = vec2(0x8000u, 0x80008000u);
const ROUND_Y = select(vec2(0x800000u), ROUND_X, HALVES);

// Of a tile that reaches outside: which rows it sees, and as many of them as there are taps.
var<workgroup> lines: array<i32, ROWS>;
const SPAN = WIDTH + 2u * LEAD;
var<workgroup> staged: array<vec2<u32>, TAPS * SPAN>;

fn word(at: u32) -> u32 {
    return source[at >> 1u][at & 1u];
}

// Which samples of a row stand for the four of a word that may lie outside, or NOWHERE. With four channels the
// first of them is enough.
const NOWHERE = 0xffffffffu;
fn places(at: i32) -> vec4<u32> {
    var found: vec4<u32>;
    let stride = i32(CHANNELS);
    for (var i = 0; i < 4; i++) { // unrolled
        if i == 0 || CHANNELS != 4u {
            let sample = 4 * at + i;
            let pixel = (sample + 64 * stride) / stride - 64;
            let x = inside(pixel, i32(params.samples) / stride, params.edge);
            found[i] = select(u32(x * stride + sample - pixel * stride), NOWHERE, x < 0);
        }
    }
    return found;
}

// The word of these samples of a row; where there are none, bytes of `fill`.
fn gathered(row: u32, places: vec4<u32>, fill: u32) -> u32 {
    var bytes = fill;
    for (var i = 0u; i < 4u; i++) { // unrolled
        if (i == 0u || CHANNELS != 4u) && (!CONSTANT || places[i] != NOWHERE) {
            let from_ = word(row + (places[i] >> 2u));
            if CHANNELS == 4u {
                bytes = from_;
            } else {
                bytes = insertBits(bytes, from_ >> (8u * (places[i] & 3u)), 8u * i, 8u);
            }
        }
    }
    return bytes;
}

// Two words that an invocation reads of each row.
struct Pair {
    here: vec4<u32>,
    next: vec4<u32>,
    fill: vec2<u32>,
}

fn pair(at: i32) -> Pair {
    let fill = vec2(params.fill[u32(at + 48) % 3u], params.fill[u32(at + 49) % 3u]);
    return Pair(places(at), places(at + 1), fill);
}

fn two(row: u32, pair: Pair) -> vec2<u32> {
    return vec2(gathered(row, pair.here, pair.fill.x), gathered(row, pair.next, pair.fill.y));
}

// Makes as many rows as there are taps, from row `n` of the tile's surroundings on.
fn stage(place: Place, pairs: array<Pair, 2>, n: u32) {
    workgroupBarrier();
    for (var k = 0u; k < TAPS; k++) { // unrolled
        let line = lines[n + k];
        let outside = CONSTANT && line < 0;
        let row = (place.slice + u32(line)) * params.pitch;
        for (var i = 0u; i < 2u; i++) { // unrolled
            if i == 0u || place.local < 2u * LEAD {
                var words = pairs[i].fill;
                if !outside {
                    words = two(row, pairs[i]);
                }
                staged[k * SPAN + i * WIDTH + place.local] = words;
            }
        }
    }
    workgroupBarrier();
}

fn loaded(at: u32) -> array<u32, WORDS> {
    var words: array<u32, WORDS>;
    for (var i = 0u; i < PAIRS; i++) { // unrolled
        words[2u * i] = staged[at + i].x;
        words[2u * i + 1u] = staged[at + i].y;
    }
    return words;
}

// The words from `at` pairs of them on.
fn load(at: u32) -> array<u32, WORDS> {
    var words: array<u32, WORDS>;
    for (var i = 0u; i < PAIRS; i++) { // unrolled
        words[2u * i] = source[at + i].x;
        words[2u * i + 1u] = source[at + i].y;
    }
    return words;
}

// Samples 0 and 2 of the four from `at` on, and 1 and 3.
fn spread(words: ptr<function, array<u32, WORDS>>, at: u32) -> vec2<u32> {
    var four = (*words)[at / 4u];
    if at % 4u != 0u {
        four = (four >> (8u * (at % 4u))) | ((*words)[at / 4u + 1u] << (32u - 8u * (at % 4u)));
    }
    return vec2(four, four >> 8u) & vec2(0x00ff00ffu);
}

// The mean along x of the four samples from `at` on, with seven bits behind the point.
fn means(words: ptr<function, array<u32, WORDS>>, at: u32) -> vec2<u32> {
    let middle = spread(words, at);
    var sum = params.x[0].x * middle + ROUND_X.y;
    var upper = params.x[0].x * (middle >> vec2(16u)) + ROUND_X.x;
    for (var k = 1u; k < AFTER; k++) { // unrolled
        let sums = spread(words, at - k * CHANNELS) + spread(words, at + k * CHANNELS);
        sum += params.x[k / 4u][k % 4u] * sums;
        upper += params.x[k / 4u][k % 4u] * (sums >> vec2(16u));
    }
    return ((sum - (upper << vec2(16u))) >> vec2(16u)) | (upper & vec2(0xffff0000u));
}

// The mean along y around the row RADIUS above the last of word `i`, in the upper byte or half of four words.
fn mean(rows: ptr<function, array<array<vec2<u32>, 2>, TAPS>>, last: u32, i: u32) -> vec4<u32> {
    let centre = last + TAPS - RADIUS;
    let middle = (*rows)[centre % TAPS][i];
    var sum = params.y[0].x * middle + ROUND_Y.y;
    var upper = params.y[0].x * (middle >> vec2(16u)) + ROUND_Y.x;
    for (var k = 1u; k < AFTER; k++) { // unrolled
        let sums = (*rows)[(centre - k) % TAPS][i] + (*rows)[(centre + k) % TAPS][i];
        sum += params.y[k / 4u][k % 4u] * sums;
        upper += params.y[k / 4u][k % 4u] * (sums >> vec2(16u));
    }
    sum -= upper << vec2(16u);
    return vec4(sum.x, sum.y, upper.x, upper.y);
}

// Where a workgroup's tile is, and where in it an invocation.
struct Place {
    left: u32,     // word
    top: u32,      // row
    slice: u32,    // row with which it begins
    first: u32,    // word of the invocation in the slice's first row
    local: u32,
}

// Makes a tile, of which `inner` says that it reaches nothing outside. Known where this is called, that spares
// the loop branches, which would keep loads and sums of different rows apart.
fn make(place: Place, inner: bool) {
    let above = (place.first + (place.top - RADIUS) * params.pitch) / 2u - LEAD;
    // Of an inner tile the next row is under way.
    var next: array<u32, WORDS>;
    var pairs: array<Pair, 2>;
    if inner {
        next = load(above);
    } else {
        let at = i32(place.left + 2u * place.local) - 2 * i32(LEAD);
        pairs = array(pair(at), pair(at + 2 * i32(WIDTH)));
        for (var n = place.local; n < ROWS; n += WIDTH) {
            lines[n] = inside(i32(place.top + n) - i32(RADIUS), i32(params.height), params.edge);
        }
    }
    // Row n of the tile's surroundings is at n modulo TAPS.
    var rows: array<array<vec2<u32>, 2>, TAPS>;
    for (var n = 0u; n < ROWS; n += TAPS) {
        if !inner {
            stage(place, pairs, n);
        }
        for (var k = 0u; k < TAPS; k++) { // unrolled
            var words = next;
            if inner {
                next = load(above + (n + k + 1u) * params.pitch / 2u);
            } else {
                words = loaded(k * SPAN + place.local);
            }
            rows[k][0] = means(&words, 8u * LEAD);
            rows[k][1] = means(&words, 8u * LEAD + 4u);
            let v = mean(&rows, k, 0u);
            let w = mean(&rows, k, 1u);
            let y = place.top + n + k - BOTH;
            let to = (place.first + y * params.pitch) / 2u;
            if n + k >= BOTH && y < params.height && (inner || place.left + 2u * place.local < params.pitch) {
                if HALVES {
                    target_[2u * to] = vec2(upper_halves(v.xy), upper_halves(v.zw));
                    target_[2u * to + 1u] = vec2(upper_halves(w.xy), upper_halves(w.zw));
                } else {
                    target_[to] = vec2(upper_bytes(v), upper_bytes(w));
                }
            }
        }
    }
}

fn upper_bytes(v: vec4<u32>) -> u32 {
    return (v.x >> 24u) | ((v.y >> 16u) & 0xff00u) | ((v.z >> 8u) & 0xff0000u) | (v.w & 0xff000000u);
}

fn upper_halves(v: vec2<u32>) -> u32 {
    return (v.x >> 16u) | (v.y & 0xffff0000u);
}

@compute @workgroup_size(WIDTH)
fn fused(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = id.y * count.x + id.x;
    if group >= params.groups {
        return;
    }
    // Tiles at the edge take longest: those at the sides come first, and in each column the lowest and the uppermost.
    let rows = params.groups / params.across;
    let sides = min(params.across, 2u);
    var column = group % sides * (params.across - 1u);
    var row = group / sides;
    if group >= sides * rows {
        let inner = group - sides * rows;
        column = 1u + inner % (params.across - sides);
        row = inner / (params.across - sides);
    }
    var place: Place;
    place.left = column * COLUMNS;
    place.top = (row + params.down - 1u) % params.down * HEIGHT;
    place.slice = row / params.down * params.height;
    place.first = place.slice * params.pitch + place.left + 2u * local;
    place.local = local;
    if place.left >= 2u * LEAD && 4u * (place.left + COLUMNS + 2u * LEAD) <= params.samples
        && place.top >= RADIUS && place.top + ROWS - RADIUS < params.height {
        make(place, true);
    } else {
        make(place, false);
    }
}
