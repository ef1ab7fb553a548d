// A box filter of u8 along y and x at once; its cost hardly depends on the radii.
//
// A workgroup processes a run of rows of its tile. Each invocation keeps the sums along y of PIXELS neighbouring
// columns in registers. For each row it
//   1. writes them to `span` and computes their prefix sums along x,
//   2. computes the sum of its first window as a difference of two prefix sums,
//   3. slides over its other windows with the sums in `span`, divides and stores,
//   4. adds the row that enters the windows along y and subtracts the row that leaves them.
//
//     span            | LEAD |  radius  |       tile       |  radius  |     PIXELS columns per invocation
//     first windows          [---- TAPS ----]                             from column LEAD of an invocation on
//
// In: u8, rows of `pitch` pixels. Out: u8 in the same layout. Chosen for box passes of u8 along y and then x, on
// devices with subgroups and 64-bit integers. `fill_margins` runs first, then for tall windows `sum_blocks`.

#import shared/edge
#import shared/lanes

struct BoxTileParams {
    width: u32,    // pixels per row
    height: u32,   // rows per slice
    pitch: u32,    // pixels of a row with padding, a multiple of 8
    tile: u32,     // pixels of a row that a workgroup computes, a multiple of PIXELS
    across: u32,   // number of tiles along x
    down: u32,     // number of runs along y
    run: u32,      // rows that a workgroup computes
    total: u32,    // number of workgroups of `blur`, of invocations of the other entry points
    radius: vec2<u32>, // radii along x and y
    margin: u32,   // pixels in `margins` on either side of the image, a multiple of 8
    half: u32,     // a sum along y becomes (sum + half) >> shift,
    shift: u32,
    factor: u32,   // a sum along x becomes (sum * factor + addend) >> (32 + shift_x)
    shift_x: u32,
    slices: u32,
    addend: vec2<u32>, // the low word first
    blocks: u32,   // blocks of rows per slice
    margin_blocks: u32, // first chunk of `blocks` for the margins
    fill: vec4<u32>, // the pixels outside, for CONSTANT: three words of u8, after which any number of channels repeats
}

const CHANNELS = 4u;
const PIXELS = 8u;       // columns per invocation
alias Chunk = vec4<u32>; // the unit of loads: 4 words, or 2 if the words of PIXELS are not a multiple of 4
const CHUNK = 4u;
const EDGE = CLAMP;
const WIDE = false;      // whether sums along y have more than 16 bits
const BLOCKS = false;    // whether `blocks` holds sums of blocks of rows
const WIDTH = 256u;
const LEAD = 7u;         // columns before an invocation's first window
const TAPS = 3u;         // taps of a window along x

const WORDS = PIXELS * CHANNELS / 4u; // words of an invocation's columns
const CHUNKS = WORDS / CHUNK;
const CHUNK_BYTES = 4u * CHUNK;
const BLOCK = 32i;       // rows per block
const LAYER = 256i;      // rows whose sums of u8 fit 16 bits: at most 257
const AHEAD = 4i;        // number of rows whose loads are in flight at once

@group(0) @binding(0) var<uniform> params: BoxTileParams;
@group(0) @binding(1) var<storage, read> source: array<Chunk>;
// Sums of the rows from the start of a layer to the end of each block: of bytes 0 and 2 of the words of a chunk, then
// of bytes 1 and 3.
@group(0) @binding(2) var<storage, read> blocks: array<Chunk>;
// For each row, `margin` pixels left of the image, and as many from its last multiple of PIXELS on.
@group(0) @binding(3) var<storage, read> margins: array<Chunk>;
@group(0) @binding(4) var<storage, read_write> target_: array<Chunk>;
@group(0) @binding(5) var<storage, read_write> made: array<Chunk>; // margins or blocks

// The sums along y of a column in two words of u16 lanes: channels 0 | 2 and 1 | 3. Column i of invocation n is at
// i * WIDTH + n.
var<workgroup> span: array<vec2<u32>, PIXELS * WIDTH>;
// For each invocation, the prefix sums of its segment at the column where the first windows of other invocations end. A
// sum has 24 bits per channel, so that four channels take three words.
//
//     | byte 0 of d |      a      |   | byte 1 of d |      b      |   | byte 2 of d |      c      |
var<workgroup> window_ends: array<u32, 3u * WIDTH>;
var<workgroup> segment_totals: array<vec4<u32>, SEGMENTS>;
const SEGMENTS = 160u;   // maximum number of segments
const STEPS = 5u;        // log2 of the largest segment

// Exclusive prefix sums over a segment: a subgroup, or 32 invocations of it, so that sums stay below 2^24. Faster
// than `subgroupExclusiveAdd` on NVIDIA.
fn sum_before(v: vec4<u32>, place: u32) -> vec4<u32> {
    var sum = v;
    for (var step = 0u; step < STEPS; step++) { // unrolled
        let below = subgroupShuffleUp(sum, 1u << step);
        sum += select(vec4(0u), below, place >= (1u << step));
    }
    return sum - v;
}

// Bytes of a word as u16 lanes: 0 | 2, and 1 | 3.
//
//     word        | b3 | b2 | b1 | b0 |
//     even_bytes  |    b2   |    b0   |
//     odd_bytes   |    b3   |    b1   |
fn even_bytes(word: u32) -> u32 {
    return word & 0x00ff00ffu;
}

fn odd_bytes(word: u32) -> u32 {
    return (word >> 8u) & 0x00ff00ffu;
}

// Sums along y of an invocation's columns, for each word of the image: x is the sum of words of two u16 lanes. With
// WIDE, lanes overflow, and y is the sum of the upper lanes (see `shared/lanes`).
struct ColumnSums {
    even: array<vec2<u32>, WORDS>,
    odd: array<vec2<u32>, WORDS>,
}

fn slide(sum: vec2<u32>, entering: u32, leaving: u32) -> vec2<u32> {
    if WIDE {
        return sum + vec2(entering, entering >> 16u) - vec2(leaving, leaving >> 16u);
    }
    return vec2(sum.x + entering - leaving, 0u);
}

// The lower (0) or upper (1) lane, rounded to 16 bits.
fn lane_sum(sum: vec2<u32>, lane: u32) -> u32 {
    if WIDE {
        return select(sum.x - (sum.y << 16u), sum.y, lane == 1u) >> params.shift;
    }
    return (sum.x >> (16u * lane)) & 0xffffu;
}

// A column in the format of `span`.
fn column(columns: ptr<function, ColumnSums>, pixel: u32) -> vec2<u32> {
    if CHANNELS == 4u && !WIDE {
        return vec2((*columns).even[pixel].x, (*columns).odd[pixel].x);
    }
    var words: vec2<u32>;
    for (var channel = 0u; channel < CHANNELS; channel++) { // unrolled
        let byte = pixel * CHANNELS + channel;
        var sum = lane_sum((*columns).even[byte / 4u], byte / 2u % 2u);
        if byte % 2u == 1u {
            sum = lane_sum((*columns).odd[byte / 4u], byte / 2u % 2u);
        }
        words[channel % 2u] |= sum << (16u * (channel / 2u));
    }
    return words;
}

// Packed sums of columns, which can be added:
//
//     x: 2^16 * channel 2 + channel 0,  y: 2^16 * channel 3 + channel 1  (modulo 2^32),  z: channel 2,  w: channel 3
fn packed(column: vec2<u32>) -> vec4<u32> {
    return vec4(column, upper_lanes(column));
}

fn channels(packed: vec4<u32>) -> vec4<u32> {
    let low = lower_sums(packed.xy, packed.zw);
    return vec4(low.x, low.y, packed.z, packed.w);
}

fn repacked(channels: vec4<u32>) -> vec4<u32> {
    return vec4(channels.xy + (channels.zw << vec2(16u)), channels.zw);
}

fn window_end(invocation: u32) -> vec4<u32> {
    let a = window_ends[invocation];
    let b = window_ends[WIDTH + invocation];
    let c = window_ends[2u * WIDTH + invocation];
    let d = (a >> 24u) | ((b >> 24u) << 8u) | ((c >> 24u) << 16u);
    return repacked(vec4(vec3(a, b, c) & vec3(0xffffffu), d));
}

// The source of an invocation's columns.
struct Columns {
    inner: bool,   // whether it is `source`; else it is `margins`
    row: u32,      // chunks per row
    first: u32,    // chunk in the first row of the slice
    block: u32,    // chunk in the first block of the slice
}

fn load(place: Columns, row: i32) -> array<u32, WORDS> {
    var words: array<u32, WORDS>;
    for (var i = 0u; i < CHUNKS; i++) { // unrolled
        var chunk: Chunk;
        if EDGE == CONSTANT && row < 0 {
            for (var j = 0u; j < CHUNK; j++) { // unrolled
                chunk[j] = params.fill[(i * CHUNK + j) % 3u];
            }
        } else if place.inner {
            chunk = source[place.first + u32(row) * place.row + i];
        } else {
            chunk = margins[place.first + u32(row) * place.row + i];
        }
        for (var j = 0u; j < CHUNK; j++) { // unrolled
            words[i * CHUNK + j] = chunk[j];
        }
    }
    return words;
}

fn row_at(y: i32) -> i32 {
    return edge_position(y, i32(params.height), EDGE);
}

// Adds a row several times.
fn add(columns: ptr<function, ColumnSums>, words: array<u32, WORDS>, times: u32) {
    for (var i = 0u; i < WORDS; i++) { // unrolled
        let even = even_bytes(words[i]);
        let odd = odd_bytes(words[i]);
        if WIDE {
            (*columns).even[i] += vec2(even, even >> 16u) * times;
            (*columns).odd[i] += vec2(odd, odd >> 16u) * times;
        } else {
            (*columns).even[i].x += even * times;
            (*columns).odd[i].x += odd * times;
        }
    }
}

fn add_rows(columns: ptr<function, ColumnSums>, place: Columns, from_: i32, to: i32) {
    var y = from_;
    for (; y + AHEAD <= to; y += AHEAD) {
        var rows: array<array<u32, WORDS>, AHEAD>;
        for (var i = 0; i < AHEAD; i++) { // unrolled
            rows[i] = load(place, row_at(y + i));
        }
        for (var i = 0; i < AHEAD; i++) { // unrolled
            add(columns, rows[i], 1u);
        }
    }
    for (; y < to; y++) {
        add(columns, load(place, row_at(y)), 1u);
    }
}

// Adds rows outside of the image.
fn add_rows_outside(columns: ptr<function, ColumnSums>, place: Columns, from_: i32, to: i32) {
    if from_ < to && (EDGE == CLAMP || EDGE == CONSTANT) {
        // These rows are equal.
        add(columns, load(place, row_at(from_)), u32(to - from_));
    } else {
        add_rows(columns, place, from_, to);
    }
}

// Adds rows of the image: whole blocks as differences of prefix sums in a layer, other rows one by one.
fn add_rows_inside(columns: ptr<function, ColumnSums>, place: Columns, from_: i32, to: i32) {
    var y = from_;
    if BLOCKS {
        let first = min((from_ + BLOCK - 1) / BLOCK * BLOCK, to);
        add_rows(columns, place, y, first);
        y = first;
        while y + BLOCK <= to {
            // Up to the last block of this layer.
            let next = min(to / BLOCK * BLOCK, (y / LAYER + 1) * LAYER);
            let last = place.block + 2u * u32(next / BLOCK - 1) * place.row;
            let before = place.block + 2u * u32(max(y / BLOCK - 1, 0)) * place.row;
            // Nothing comes before the first block of a layer.
            let mask = Chunk(select(0xffffffffu, 0u, y % LAYER == 0));
            for (var i = 0u; i < CHUNKS; i++) { // unrolled
                let even = blocks[last + 2u * i] - (blocks[before + 2u * i] & mask);
                let odd = blocks[last + 2u * i + 1u] - (blocks[before + 2u * i + 1u] & mask);
                for (var j = 0u; j < CHUNK; j++) { // unrolled
                    (*columns).even[i * CHUNK + j] = slide((*columns).even[i * CHUNK + j], even[j], 0u);
                    (*columns).odd[i * CHUNK + j] = slide((*columns).odd[i * CHUNK + j], odd[j], 0u);
                }
            }
            y = next;
        }
    }
    add_rows(columns, place, y, to);
}

@compute @workgroup_size(WIDTH)
fn blur(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) lanes: u32,
) {
    let group = id.y * count.x + id.x;
    if group >= params.total {
        return;
    }
    let run = group / params.across;
    let start = group % params.across * params.tile;
    let top = run % params.down * params.run;
    let end = min(top + params.run, params.height);
    let len = i32(params.height);
    let radius = vec2<i32>(params.radius);

    let x = i32(start + PIXELS * local) - radius.x - i32(LEAD);
    let whole = i32(params.width / PIXELS * PIXELS);
    let slice = run / params.down;
    var place: Columns;
    place.inner = x >= 0 && x < whole;
    place.row = select(2u * params.margin, params.pitch, place.inner) / PIXELS * CHUNKS;
    let outer = select(x, min(x - whole, i32(params.margin - PIXELS)), x >= whole) + i32(params.margin);
    let chunk = u32(select(outer, x, place.inner)) / PIXELS * CHUNKS;
    place.first = slice * params.height * place.row + chunk;
    place.block = select(params.margin_blocks, 0u, place.inner) + 2u * (slice * params.blocks * place.row + chunk);

    var columns: ColumnSums;
    if WIDE {
        for (var i = 0u; i < WORDS; i++) { // unrolled
            columns.even[i] = vec2(params.half | (params.half << 16u), params.half);
            columns.odd[i] = columns.even[i];
        }
    }
    let above = i32(top) - radius.y;
    let below = i32(top) + radius.y + 1;
    add_rows_outside(&columns, place, above, min(0, below));
    add_rows_inside(&columns, place, max(above, 0), min(below, len));
    add_rows_outside(&columns, place, max(above, len), below);

    let addend = (u64(params.addend.y) << 32u) | u64(params.addend.x);
    let segment = min(lanes, 32u);
    let nth = lane % segment;
    let last = local + (LEAD + TAPS) / PIXELS;
    let writes = PIXELS * local < params.tile && start + PIXELS * local < params.width;
    for (var y = top; y < end; y++) {
        // These loads are in flight while the row is computed.
        let entering = load(place, row_at(i32(y) + radius.y + 1));
        let leaving = load(place, row_at(i32(y) - radius.y));

        var sum: vec4<u32>;
        var to_start: vec4<u32>;
        var to_end: vec4<u32>;
        for (var i = 0u; i < PIXELS; i++) { // unrolled
            if i == LEAD {
                to_start = sum;
            }
            if i == (LEAD + TAPS) % PIXELS {
                to_end = sum;
            }
            let words = column(&columns, i);
            span[i * WIDTH + local] = words;
            sum += packed(words);
        }
        let before = sum_before(sum, nth);
        if nth + 1u == segment {
            segment_totals[local / segment] = before + sum;
        }
        let end_ = channels(before + to_end);
        for (var i = 0u; i < 3u; i++) { // unrolled
            window_ends[i * WIDTH + local] = end_[i] | (((end_.w >> (8u * i)) & 0xffu) << 24u);
        }
        workgroupBarrier();

        if writes {
            var words: array<u32, WORDS>;
            var window = window_end(last) - before - to_start;
            for (var i = local / segment; i < last / segment; i++) {
                window += segment_totals[i];
            }
            for (var i = 0u; i < PIXELS; i++) { // unrolled
                if i > 0u {
                    let entering_at = LEAD + TAPS + i - 1u;
                    let leaving_at = LEAD + i - 1u;
                    window += packed(span[entering_at % PIXELS * WIDTH + entering_at / PIXELS + local])
                        - packed(span[leaving_at % PIXELS * WIDTH + leaving_at / PIXELS + local]);
                }
                let sums = channels(window);
                for (var channel = 0u; channel < CHANNELS; channel++) { // unrolled
                    let to = i * CHANNELS + channel;
                    let product = u64(sums[channel]) * u64(params.factor) + addend;
                    words[to / 4u] |= (u32(product >> 32u) >> params.shift_x) << (8u * (to % 4u));
                }
            }
            let to = (((slice * params.height + y) * params.pitch + start) / PIXELS + local) * CHUNKS;
            for (var i = 0u; i < CHUNKS; i++) { // unrolled
                var chunk: Chunk;
                for (var j = 0u; j < CHUNK; j++) { // unrolled
                    chunk[j] = words[i * CHUNK + j];
                }
                target_[to + i] = chunk;
            }
        }
        // The next row overwrites the values that are read above.
        workgroupBarrier();

        for (var i = 0u; i < WORDS; i++) { // unrolled
            columns.even[i] = slide(columns.even[i], even_bytes(entering[i]), even_bytes(leaving[i]));
            columns.odd[i] = slide(columns.odd[i], odd_bytes(entering[i]), odd_bytes(leaving[i]));
        }
    }
}

fn margin_row_chunks() -> u32 {
    return 2u * params.margin / PIXELS * CHUNKS;
}

// Bytes of a margin that are copied at once: a pixel of four channels, or a single sample.
const UNIT = select(1u, 4u, CHANNELS == 4u);
const UNITS = CHUNK_BYTES / UNIT;

// Fills `margins`, one chunk per invocation.
@compute @workgroup_size(64)
fn fill_margins(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = (id.y * count.x + id.x) * 64u + local;
    if number >= params.total {
        return;
    }
    let row = margin_row_chunks();
    let chunk = number % row;
    var words: Chunk;
    for (var i = 0u; i < UNITS; i++) { // unrolled
        let word = i * UNIT / 4u;
        let shift = 8u * (i * UNIT % 4u);
        let sample = chunk * CHUNK_BYTES + i * UNIT;
        var x = i32(sample / CHANNELS) - i32(params.margin);
        if x >= 0 {
            x += i32(params.width / PIXELS * PIXELS);
        }
        x = edge_position(x, i32(params.width), EDGE);
        var bytes = params.fill[(chunk * CHUNK + word) % 3u] >> shift;
        if x >= 0 {
            let from_ = (number / row * params.pitch + u32(x)) * CHANNELS + sample % CHANNELS;
            bytes = source[from_ / CHUNK_BYTES][from_ / 4u % CHUNK] >> (8u * (from_ % 4u));
        }
        words[word] |= select(bytes & 0xffu, bytes, UNIT == 4u) << shift;
    }
    made[number] = words;
}

// Fills `blocks`. An invocation computes the prefix sums of a chunk over the rows of a layer, block by block.
@compute @workgroup_size(64)
fn sum_blocks(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    var number = (id.y * count.x + id.x) * 64u + local;
    if number >= params.total {
        return;
    }
    let layers = params.blocks / u32(LAYER / BLOCK);
    let outer = layers * params.slices * margin_row_chunks();
    let inner = number >= outer;
    number -= select(0u, outer, inner);
    let row = select(margin_row_chunks(), params.pitch / PIXELS * CHUNKS, inner);
    let layer = i32(number / row % layers);
    let slice = number / row / layers;
    let from_ = slice * params.height * row + number % row;
    let to = select(params.margin_blocks, 0u, inner) + 2u * (slice * params.blocks * row + number % row);
    var even: Chunk;
    var odd: Chunk;
    for (var y = layer * LAYER; y < (layer + 1) * LAYER && y + BLOCK <= i32(params.height); y += BLOCK) {
        var rows: array<Chunk, BLOCK>;
        if inner {
            for (var i = 0; i < BLOCK; i++) { // unrolled
                rows[i] = source[from_ + u32(y + i) * row];
            }
        } else {
            for (var i = 0; i < BLOCK; i++) { // unrolled
                rows[i] = margins[from_ + u32(y + i) * row];
            }
        }
        for (var i = 0; i < BLOCK; i++) { // unrolled
            even += rows[i] & Chunk(0x00ff00ffu);
            odd += (rows[i] >> Chunk(8u)) & Chunk(0x00ff00ffu);
        }
        made[to + 2u * u32(y / BLOCK) * row] = even;
        made[to + 2u * u32(y / BLOCK) * row + 1u] = odd;
    }
}
