// A box blur of bytes along y and x at once. Each invocation keeps the sums of some columns while its workgroup
// goes down the rows. For each row these go to workgroup memory, and with the sums of all before the place where
// the window of an invocation's first pixel ends; it slides on from there.

#import blur/common

struct BoxParams {
    width: u32,    // pixels a row
    height: u32,   // rows a slice
    pitch: u32,    // pixels from row to row, a multiple of 8
    tile: u32,     // pixels of a row that a workgroup makes, a multiple of PIXELS
    across: u32,   // tiles side by side
    down: u32,     // runs of rows one below the other
    rows: u32,     // rows a run
    groups: u32,   // workgroups in all, or invocations
    radius: vec2<u32>, // along x and y
    margin: u32,   // pixels left and right of the image in `margins`, a multiple of 8
    half: u32,     // added to the sums along y,
    shift: u32,    // which are then shifted by this
    factor: u32,   // what the sums along x are multiplied by,
    after: u32,    // before they are shifted by 32 bits and these
    slices: u32,
    addend: vec2<u32>, // added to the product, low word first
    blocks: u32,   // blocks of rows a slice
    first: u32,    // chunks in `blocks` before those of the margins
    fill: vec4<u32>, // what lies outside, three words of bytes
}

const CHANNELS = 4u;
const PIXELS = 8u;       // that an invocation has
alias Chunk = vec4<u32>; // as many words as divide those of its pixels
const CHUNK = 4u;
const EDGE = 0u;         // see `inside`
const WIDE = false;      // whether sums along y take more than 16 bits
const BLOCKS = false;    // whether there are sums of blocks of rows
const WIDTH = 256u;
const LEAD = 7u;         // pixels from the start of the span to the first window, below PIXELS
const TAPS = 3u;         // pixels of a window

const WORDS = PIXELS * CHANNELS / 4u; // of an invocation's pixels
const CHUNKS = WORDS / CHUNK;
const BYTES = 4u * CHUNK;
const BLOCK = 32i;       // rows a block
const LAYER = 256i;      // rows that are summed up one after the other: no more fit 16 bits
const AHEAD = 4i;        // rows whose loads are under way together

@group(0) @binding(0) var<uniform> params: BoxParams;
@group(0) @binding(1) var<storage, read> source: array<Chunk>;
@group(0) @binding(2) var<storage, read> blocks: array<Chunk>;
// For each row what is left of it, and what is right of its last pixels whose number is a multiple of PIXELS.
@group(0) @binding(3) var<storage, read> margins: array<Chunk>;
@group(0) @binding(4) var<storage, read_write> target_: array<Chunk>;

// The sums of the columns, two channels a word: 0 and 2, 1 and 3. Those that lie PIXELS apart are side by side.
var<workgroup> span: array<vec2<u32>, PIXELS * WIDTH>;
// For each invocation what its segment has before the end of another's first window: four sums of 24 bits.
var<workgroup> ends: array<u32, 3u * WIDTH>;
// What each segment has in all.
var<workgroup> totals: array<vec4<u32>, SEGMENTS>;
const SEGMENTS = 160u;   // as many as there may be
const STEPS = 5u;        // in which a segment of the largest size doubles

// What comes before an invocation in its segment, a subgroup or 32 invocations of it, where sums stay below
// 2^24. By hand this is faster than subgroupExclusiveAdd.
fn sum_before(v: vec4<u32>, place: u32) -> vec4<u32> {
    var sum = v;
    for (var step = 0u; step < STEPS; step++) { // unrolled
        let below = subgroupShuffleUp(sum, 1u << step);
        sum += select(vec4(0u), below, place >= (1u << step));
    }
    return sum - v;
}

// Bytes 0 and 2 of a word, or 1 and 3, in 16 bits each.
fn evens(word: u32) -> u32 {
    return word & 0x00ff00ffu;
}

fn odds(word: u32) -> u32 {
    return (word >> 8u) & 0x00ff00ffu;
}

// Sums of bytes 0 and 2 of each word, and of 1 and 3: of their 16 bits each as one number, and with WIDE, where
// these overflow, of the upper ones again, from which the lower ones follow.
struct Columns {
    even: array<vec2<u32>, WORDS>,
    odd: array<vec2<u32>, WORDS>,
}

fn moved(sum: vec2<u32>, come: u32, go: u32) -> vec2<u32> {
    if WIDE {
        return sum + vec2(come, come >> 16u) - vec2(go, go >> 16u);
    }
    return vec2(sum.x + come - go, 0u);
}

fn column(sum: vec2<u32>, which: u32) -> u32 {
    if WIDE {
        return select(sum.x - (sum.y << 16u), sum.y, which == 1u) >> params.shift;
    }
    return (sum.x >> (16u * which)) & 0xffffu;
}

// A pixel of sums as it goes to workgroup memory.
fn pairs(columns: ptr<function, Columns>, pixel: u32) -> vec2<u32> {
    if CHANNELS == 4u && !WIDE {
        return vec2((*columns).even[pixel].x, (*columns).odd[pixel].x);
    }
    var both: vec2<u32>;
    for (var channel = 0u; channel < CHANNELS; channel++) { // unrolled
        let at = pixel * CHANNELS + channel;
        var sum = column((*columns).even[at / 4u], at / 2u % 2u);
        if at % 2u == 1u {
            sum = column((*columns).odd[at / 4u], at / 2u % 2u);
        }
        both[channel % 2u] |= sum << (16u * (channel / 2u));
    }
    return both;
}

// Sums of such pairs as whole words, which may overflow, and of their upper halves: the lower ones follow.
fn parts(both: vec2<u32>) -> vec4<u32> {
    return vec4(both, both >> vec2(16u));
}

fn channels(sum: vec4<u32>) -> vec4<u32> {
    let low = sum.xy - (sum.zw << vec2(16u));
    return vec4(low.x, low.y, sum.z, sum.w);
}

// The opposite.
fn united(v: vec4<u32>) -> vec4<u32> {
    return vec4(v.xy + (v.zw << vec2(16u)), v.zw);
}

fn sums_at(end_: u32) -> vec4<u32> {
    let a = ends[end_];
    let b = ends[WIDTH + end_];
    let c = ends[2u * WIDTH + end_];
    let last = (a >> 24u) | ((b >> 24u) << 8u) | ((c >> 24u) << 16u);
    return united(vec4(vec3(a, b, c) & vec3(0xffffffu), last));
}

// Where an invocation's pixels come from.
struct Place {
    inner: bool,   // the image or the margins
    row: u32,      // chunks from row to row
    first: u32,    // chunk in the slice's first row
    block: u32,    // chunk in the sums of the slice's first block
}

fn load(place: Place, row: i32) -> array<u32, WORDS> {
    var words: array<u32, WORDS>;
    for (var i = 0u; i < CHUNKS; i++) { // unrolled
        var chunk: Chunk;
        if EDGE == 4u && row < 0 {
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
    return inside(y, i32(params.height), EDGE);
}

// Adds a row several times.
fn add(columns: ptr<function, Columns>, words: array<u32, WORDS>, times: u32) {
    for (var i = 0u; i < WORDS; i++) { // unrolled
        let even = evens(words[i]);
        let odd = odds(words[i]);
        if WIDE {
            (*columns).even[i] += vec2(even, even >> 16u) * times;
            (*columns).odd[i] += vec2(odd, odd >> 16u) * times;
        } else {
            (*columns).even[i].x += even * times;
            (*columns).odd[i].x += odd * times;
        }
    }
}

fn add_rows(columns: ptr<function, Columns>, place: Place, from_: i32, to: i32) {
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

// Adds rows that lie outside.
fn add_outer(columns: ptr<function, Columns>, place: Place, from_: i32, to: i32) {
    if from_ < to && (EDGE == 0u || EDGE == 4u) {
        // They are all the same.
        add(columns, load(place, row_at(from_)), u32(to - from_));
    } else {
        add_rows(columns, place, from_, to);
    }
}

// Adds rows that lie inside.
fn add_inner(columns: ptr<function, Columns>, place: Place, from_: i32, to: i32) {
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
            let mask = Chunk(select(0xffffffffu, 0u, y % LAYER == 0));
            for (var i = 0u; i < CHUNKS; i++) { // unrolled
                let even = blocks[last + 2u * i] - (blocks[before + 2u * i] & mask);
                let odd = blocks[last + 2u * i + 1u] - (blocks[before + 2u * i + 1u] & mask);
                for (var j = 0u; j < CHUNK; j++) { // unrolled
                    (*columns).even[i * CHUNK + j] = moved((*columns).even[i * CHUNK + j], even[j], 0u);
                    (*columns).odd[i * CHUNK + j] = moved((*columns).odd[i * CHUNK + j], odd[j], 0u);
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
    if group >= params.groups {
        return;
    }
    let run = group / params.across;
    let start = group % params.across * params.tile;
    let top = run % params.down * params.rows;
    let end = min(top + params.rows, params.height);
    let len = i32(params.height);
    let radius = vec2<i32>(params.radius);

    let x = i32(start + PIXELS * local) - radius.x - i32(LEAD);
    let whole = i32(params.width / PIXELS * PIXELS);
    let slice = run / params.down;
    var place: Place;
    place.inner = x >= 0 && x < whole;
    place.row = select(2u * params.margin, params.pitch, place.inner) / PIXELS * CHUNKS;
    let outer = select(x, min(x - whole, i32(params.margin - PIXELS)), x >= whole) + i32(params.margin);
    let chunk = u32(select(outer, x, place.inner)) / PIXELS * CHUNKS;
    place.first = slice * params.height * place.row + chunk;
    place.block = select(params.first, 0u, place.inner) + 2u * (slice * params.blocks * place.row + chunk);

    var columns: Columns;
    if WIDE {
        for (var i = 0u; i < WORDS; i++) { // unrolled
            columns.even[i] = vec2(params.half | (params.half << 16u), params.half);
            columns.odd[i] = columns.even[i];
        }
    }
    let above = i32(top) - radius.y;
    let below = i32(top) + radius.y + 1;
    add_outer(&columns, place, above, min(0, below));
    add_inner(&columns, place, max(above, 0), min(below, len));
    add_outer(&columns, place, max(above, len), below);

    let addend = (u64(params.addend.y) << 32u) | u64(params.addend.x);
    let segment = min(lanes, 32u);
    let nth = lane % segment;
    let last = local + (LEAD + TAPS) / PIXELS;
    let writes = PIXELS * local < params.tile && start + PIXELS * local < params.width;
    for (var y = top; y < end; y++) {
        // These are under way while the row is made.
        let come = load(place, row_at(i32(y) + radius.y + 1));
        let go = load(place, row_at(i32(y) - radius.y));

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
            let both = pairs(&columns, i);
            span[i * WIDTH + local] = both;
            sum += parts(both);
        }
        let before = sum_before(sum, nth);
        if nth + 1u == segment {
            totals[local / segment] = before + sum;
        }
        let end_ = channels(before + to_end);
        for (var i = 0u; i < 3u; i++) { // unrolled
            ends[i * WIDTH + local] = end_[i] | (((end_.w >> (8u * i)) & 0xffu) << 24u);
        }
        workgroupBarrier();

        if writes {
            var words: array<u32, WORDS>;
            var window = sums_at(last) - before - to_start;
            for (var i = local / segment; i < last / segment; i++) {
                window += totals[i];
            }
            for (var i = 0u; i < PIXELS; i++) { // unrolled
                if i > 0u {
                    let come = LEAD + TAPS + i - 1u;
                    let go = LEAD + i - 1u;
                    window += parts(span[come % PIXELS * WIDTH + come / PIXELS + local])
                        - parts(span[go % PIXELS * WIDTH + go / PIXELS + local]);
                }
                let sums = channels(window);
                for (var channel = 0u; channel < CHANNELS; channel++) { // unrolled
                    let to = i * CHANNELS + channel;
                    let product = u64(sums[channel]) * u64(params.factor) + addend;
                    words[to / 4u] |= (u32(product >> 32u) >> params.after) << (8u * (to % 4u));
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
        // What is written to the span next is read now.
        workgroupBarrier();

        for (var i = 0u; i < WORDS; i++) { // unrolled
            columns.even[i] = moved(columns.even[i], evens(come[i]), evens(go[i]));
            columns.odd[i] = moved(columns.odd[i], odds(come[i]), odds(go[i]));
        }
    }
}

@group(0) @binding(5) var<storage, read_write> made: array<Chunk>;

fn chunks_of_margins() -> u32 {
    return 2u * params.margin / PIXELS * CHUNKS;
}

// Bytes that lie side by side wherever they come from.
const SIDE = select(1u, 4u, CHANNELS == 4u);
const PLACES = BYTES / SIDE;

// A chunk of the margins.
@compute @workgroup_size(64)
fn margin(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = (id.y * count.x + id.x) * 64u + local;
    if number >= params.groups {
        return;
    }
    let row = chunks_of_margins();
    let chunk = number % row;
    var words: Chunk;
    for (var i = 0u; i < PLACES; i++) { // unrolled
        let word = i * SIDE / 4u;
        let shift = 8u * (i * SIDE % 4u);
        let sample = chunk * BYTES + i * SIDE;
        var x = i32(sample / CHANNELS) - i32(params.margin);
        if x >= 0 {
            x += i32(params.width / PIXELS * PIXELS);
        }
        x = inside(x, i32(params.width), EDGE);
        var bytes = params.fill[(chunk * CHUNK + word) % 3u] >> shift;
        if x >= 0 {
            let from_ = (number / row * params.pitch + u32(x)) * CHANNELS + sample % CHANNELS;
            bytes = source[from_ / BYTES][from_ / 4u % CHUNK] >> (8u * (from_ % 4u));
        }
        words[word] |= select(bytes & 0xffu, bytes, SIDE == 4u) << shift;
    }
    made[number] = words;
}

// Sums of the blocks of each layer from its first row on, for a chunk of the margins or of the rows.
@compute @workgroup_size(64)
fn layers(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    var number = (id.y * count.x + id.x) * 64u + local;
    if number >= params.groups {
        return;
    }
    let layers = params.blocks / u32(LAYER / BLOCK);
    let outer = layers * params.slices * chunks_of_margins();
    let inner = number >= outer;
    number -= select(0u, outer, inner);
    let row = select(chunks_of_margins(), params.pitch / PIXELS * CHUNKS, inner);
    let layer = i32(number / row % layers);
    let slice = number / row / layers;
    let from_ = slice * params.height * row + number % row;
    let to = select(params.first, 0u, inner) + 2u * (slice * params.blocks * row + number % row);
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
