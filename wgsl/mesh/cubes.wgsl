// Marching cubes on one inside-bit a sample: classify, count, scan, then vertices and triangles.

// How samples are stored: 0 u8, 1 i8, 2 u16, 3 i16, 4 f32.
const KIND = 0u;
// Whether some samples are not a number; two more planes of bits then tell where.
const HAS_NAN = false;

struct Params {
    // Samples of a row and rows of a slice.
    width: u32,
    height: u32,
    // Grid points along x, y and z of the whole volume: the samples, and `pad` more on every side.
    points_x: u32,
    points_y: u32,
    points_z: u32,
    pad: u32,
    // Words of 32 points a row, words a slice.
    words: u32,
    slice_words: u32,
    // The first slice of points here in the whole grid, slices at hand, layers of cells.
    first: u32,
    slices: u32,
    layers: u32,
    // What to add to a slice's number in the grid to get its number in `volume`.
    sample_z: i32,
    // Rows of samples of each slice in `volume`: the first, and how many. Rows of points that this
    // dispatch reads samples for.
    volume_y: u32,
    volume_rows: u32,
    start_y: u32,
    end_y: u32,
    // Words whose vertices are numbered, words whose vertices are emitted, blocks of words.
    numbered: u32,
    owned: u32,
    blocks: u32,
    // Where `starts` begins in `blocks`.
    starts: u32,
    // Emission: the first active block of this dispatch, and what comes before it.
    first_active: u32,
    active_blocks: u32,
    vertex_start: u32,
    triangle_start: u32,
    // Vertices of all slabs before.
    first_vertex: u32,
    threshold: f32,
    level: f32,
    spacing_x: f32,
    spacing_y: f32,
    spacing_z: f32,
    origin_x: f32,
    origin_y: f32,
    origin_z: f32,
    // Always 0, which the compiler cannot know.
    zero: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> volume: array<u32>;
@group(0) @binding(2) var<storage, read> volume4: array<vec4<u32>>;
// The plane of inside-bits. Where there is NaN, two more behind it, which begin a slice lower: the
// points that are numbers, and the cells all of whose corners are.
@group(0) @binding(3) var<storage, read_write> bits: array<u32>;
// For each word: where its vertices begin in the block (15 bits), how many lie on edges along x and
// along y (6 bits each).
@group(0) @binding(4) var<storage, read_write> starts: array<u32>;
// First the cases: 512 words of edge numbers, 256 words of triangle count and further loops. Then
// sections of one word a block: first vertex, first triangle, numbers of active blocks, cells with
// NaN. Then the four totals. Last, the same memory as `starts`, for passes that would take five buffers
// otherwise: some devices grant a shader four.
@group(0) @binding(5) var<storage, read_write> blocks: array<u32>;
@group(0) @binding(6) var<storage, read_write> positions: array<f32>;
@group(0) @binding(7) var<storage, read_write> normals: array<f32>;
@group(0) @binding(8) var<storage, read_write> triangles: array<u32>;

const CASE_INFO = 512u;
const SECTIONS = 768u;
const SIZE = 256u;

// ---- samples ----

fn sample(index: u32) -> f32 {
    if KIND == 4u {
        return bitcast<f32>(volume[index]);
    }
    if KIND >= 2u {
        let half = volume[index / 2u] >> (16u * (index % 2u));
        return select(f32(half & 0xffffu), f32(extractBits(i32(half), 0u, 16u)), KIND == 3u);
    }
    let byte = volume[index / 4u] >> (8u * (index % 4u));
    return select(f32(byte & 0xffu), f32(extractBits(i32(byte), 0u, 8u)), KIND == 1u);
}

fn is_nan(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}

fn is_infinite(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) == 0x7f800000u;
}

// Whether a point of this slab is a sample, and not beyond the volume.
fn is_sample(point: vec3<i32>) -> bool {
    let pad = i32(params.pad);
    let x = point.x - pad;
    let y = point.y - pad;
    let z = point.z + i32(params.first) - pad;
    return x >= 0 && x < i32(params.width) && y >= 0 && y < i32(params.height) && z >= 0
        && z < i32(params.points_z) - 2 * pad;
}

// The index of a point that is a sample.
fn sample_index(point: vec3<i32>) -> u32 {
    let pad = i32(params.pad);
    let z = u32(point.z + params.sample_z);
    let y = u32(point.y - pad) - params.volume_y;
    return (z * params.volume_rows + y) * params.width + u32(point.x - pad);
}

// ---- one bit a point ----

fn group_index(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}

// x of the first point, y and z of a word.
fn place_of(word: u32) -> vec3<u32> {
    let z = word / params.slice_words;
    let rest = word - z * params.slice_words;
    let y = rest / params.words;
    return vec3(32u * (rest - y * params.words), y, z);
}

@compute @workgroup_size(256)
fn classify(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let word = group_index(group, groups) * SIZE + lane;
    let below = u32(HAS_NAN);
    if word >= (params.slices + below) * params.slice_words {
        return;
    }
    let place = vec3<i32>(place_of(word)) - vec3(0, 0, i32(below));
    if !is_here(place.y) {
        return;
    }
    var inside = 0u;
    var number = 0xffffffffu;
    for (var bit = 0; bit < 32; bit++) {
        let point = place + vec3(bit, 0, 0);
        if is_sample(point) {
            let value = sample(sample_index(point));
            if HAS_NAN && is_nan(value) {
                number &= ~(1u << u32(bit));
            } else if value > params.threshold {
                inside |= 1u << u32(bit);
            }
        }
    }
    if place.z >= 0 {
        bits[word - below * params.slice_words] = inside;
    }
    if HAS_NAN {
        bits[numbers_plane() + word] = number;
    }
}

// Whether this dispatch has the samples of a row of points.
fn is_here(y: i32) -> bool {
    return y >= i32(params.start_y) && y < i32(params.end_y);
}

fn numbers_plane() -> u32 {
    return params.slices * params.slice_words;
}

fn valid_plane() -> u32 {
    return (2u * params.slices + 1u) * params.slice_words;
}

// Finds the cells all of whose corners are numbers, from the layer below the first on.
@compute @workgroup_size(256)
fn validate(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let word = group_index(group, groups) * SIZE + lane;
    if word >= (params.layers + 2u) * params.slice_words {
        return;
    }
    let place = place_of(word);
    let layer = params.first + place.z;
    var valid = 0u;
    if layer >= 1u && layer < params.points_z && place.y + 1u < params.points_y {
        let n = corners_at(numbers_plane(), word, place, params.slice_words);
        let four = n.rows & n.steps;
        valid = four.x & four.y & four.z & four.w & edge_mask(place.x);
    }
    bits[valid_plane() + word] = valid;
}

// Whether cells around the edges along x, y and z from the points of a word are valid, but for those
// at x - 1.
fn valid_around(word: u32, y: u32) -> vec3<u32> {
    let at = valid_plane() + word;
    let below = bits[at];
    let here = bits[at + params.slice_words];
    var before = vec2(0u);
    if y > 0u {
        before = vec2(bits[at - params.words], bits[at + params.slice_words - params.words]);
    }
    return vec3(here | below | before.x | before.y, here | below, here | before.y);
}

// Which edges along x, y and z from the points of a word have a valid cell beside them: others carry
// no vertex.
fn beside_valid(word: u32, place: vec3<u32>) -> vec3<u32> {
    var found = valid_around(word, place.y);
    found |= (found << vec3(1u)) & vec3(0u, 0xffffffffu, 0xffffffffu);
    if place.x > 0u {
        found |= (valid_around(word - 1u, place.y) >> vec3(31u)) & vec3(0u, 1u, 1u);
    }
    return found;
}

// Which of four bytes are greater than the threshold, as four bits.
fn compare(bytes: u32, low: u32, is_high: bool) -> u32 {
    // The low seven bits carry into the eighth where they reach those of the threshold + 1.
    let carry = (bytes & 0x7f7f7f7fu) + low;
    let above = select(carry | bytes, carry & bytes, is_high);
    return (((above >> 7u) & 0x01010101u) * 0x10204080u) >> 28u;
}

// The same for unsigned bytes whose rows are multiples of 16 long, and all there.
@compute @workgroup_size(256)
fn classify_bytes(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let word = group_index(group, groups) * SIZE + lane;
    if word >= params.slices * params.slice_words {
        return;
    }
    let row = word / params.words;
    let column = word - row * params.words;
    let quarters = params.width / 16u;
    let least = i32(clamp(floor(params.threshold), -1.0, 255.0)) + 1;
    let low = (0x80u - (u32(least) & 0x7fu)) * 0x01010101u;
    let first_row = u32(i32(params.height) * params.sample_z);
    var inside = 0u;
    for (var half = 0u; half < 2u; half++) {
        let quarter = 2u * column + half;
        if quarter < quarters && least < 256 {
            let bytes = volume4[(first_row + row) * quarters + quarter];
            let high = least >= 128;
            let found = compare(bytes.x, low, high) | compare(bytes.y, low, high) << 4u
                | compare(bytes.z, low, high) << 8u | compare(bytes.w, low, high) << 12u;
            inside |= found << (16u * half);
        }
    }
    bits[word] = inside;
}

// The words of the corners of 32 cells: the points of rows (y, z), (y + 1, z), (y, z + 1) and
// (y + 1, z + 1), and those one step along x.
struct Corners {
    rows: vec4<u32>,
    steps: vec4<u32>,
}

// `above` is how many words further the next slice is.
fn corners_at(plane: u32, word: u32, place: vec3<u32>, above: u32) -> Corners {
    // The last row stands in for what is beyond it: no edge is crossed there.
    let up = select(0u, params.words, place.y + 1u < params.points_y);
    let at = plane + vec4(word, word + up, word + above, word + up + above);
    let rows = vec4(bits[at.x], bits[at.y], bits[at.z], bits[at.w]);
    var next = vec4(0u);
    if place.x + 32u < params.points_x {
        next = vec4(bits[at.x + 1u], bits[at.y + 1u], bits[at.z + 1u], bits[at.w + 1u]);
    }
    return Corners(rows, (rows >> vec4(1u)) | (next << vec4(31u)));
}

// Which points of a word have a neighbour at x + 1.
fn edge_mask(x: u32) -> u32 {
    let left = params.points_x - 1u - min(x, params.points_x - 1u);
    return select((1u << (left & 31u)) - 1u, 0xffffffffu, left >= 32u);
}

// The points of a word from which an edge along x, y and z is crossed, and the cells.
struct Word {
    crossed: vec3<u32>,
    cells: u32,
    nan_cells: u32,
    corners: Corners,
}

fn word_at(word: u32, place: vec3<u32>) -> Word {
    var found: Word;
    // The same for the last slice.
    let above = select(0u, params.slice_words, place.z + 1u < params.slices);
    let c = corners_at(0u, word, place, above);
    let mask = edge_mask(place.x);
    found.corners = c;
    found.crossed = vec3((c.rows.x ^ c.steps.x) & mask, c.rows.x ^ c.rows.y, c.rows.x ^ c.rows.z);
    let has_cells = place.y + 1u < params.points_y && place.z < params.layers;
    found.cells = select(0u, mask, has_cells);
    if HAS_NAN {
        found.crossed &= beside_valid(word, place);
        let valid = bits[valid_plane() + params.slice_words + word];
        found.nan_cells = countOneBits(found.cells & ~valid);
        found.cells &= valid;
    }
    return found;
}

// The cells that the surface passes.
fn mixed(c: Corners) -> u32 {
    let any = c.rows | c.steps;
    let all = c.rows & c.steps;
    return (any.x | any.y | any.z | any.w) & ~(all.x & all.y & all.z & all.w);
}

fn case_at(c: Corners, bit: u32) -> u32 {
    let r = (c.rows >> vec4(bit)) & vec4(1u);
    let s = (c.steps >> vec4(bit)) & vec4(1u);
    return r.x | s.x << 1u | s.y << 2u | r.y << 3u | r.z << 4u | s.z << 5u | s.w << 6u | r.w << 7u;
}

fn ones(a: u32, b: u32, c: u32, d: u32) -> u32 {
    return countOneBits(a) + countOneBits(b) + countOneBits(c) + countOneBits(d);
}

// Each loop of n crossed edges makes n - 2 triangles; only cells that may have a second loop, those
// with an alternating face or two lone opposite corners, are looked at one by one.
fn count_triangles(c: Corners, cells: u32) -> u32 {
    let any = mixed(c) & cells;
    if any == 0u {
        return 0u;
    }
    let r = c.rows;
    let s = c.steps;
    let x = r ^ s;
    let y = vec4(r.x ^ r.y, s.x ^ s.y, r.z ^ r.w, s.z ^ s.w);
    let z = vec4(r.x ^ r.z, s.x ^ s.z, r.y ^ r.w, s.y ^ s.w);
    let m = vec4(any);
    let n = countOneBits(x & m) + countOneBits(y & m) + countOneBits(z & m);
    let faces = (x.x & x.y & y.x) | (x.z & x.w & y.z) | (x.x & x.z & z.x) | (x.y & x.w & z.z)
        | (y.x & y.z & z.x) | (y.y & y.w & z.y);
    let diagonals = (x.x & y.x & z.x & x.w & y.w & z.w & ~(r.x ^ s.w))
        | (x.x & y.y & z.y & x.w & y.z & z.z & ~(s.x ^ r.w))
        | (x.y & y.x & z.z & x.z & y.w & z.y & ~(r.y ^ s.z))
        | (x.y & y.y & z.w & x.z & y.z & z.x & ~(s.y ^ r.z));
    var look = (faces | diagonals) & any;
    var more = 0u;
    while look != 0u {
        more += blocks[CASE_INFO + case_at(c, firstTrailingBit(look))] >> 8u;
        look &= look - 1u;
    }
    return n.x + n.y + n.z + n.w - 2u * countOneBits(any) - 2u * more;
}

// ---- counts ----

var<workgroup> sums: array<u32, 512>;

// The sum of `value` over the lanes before this one. Every lane calls it.
fn sum_before(lane: u32, value: u32) -> u32 {
    var base = 0u;
    sums[lane] = value;
    workgroupBarrier();
    for (var step = 1u; step < SIZE; step *= 2u) {
        var sum = sums[base + lane];
        if lane >= step {
            sum += sums[base + lane - step];
        }
        base = SIZE - base;
        sums[base + lane] = sum;
        workgroupBarrier();
    }
    return sums[base + lane] - value;
}

// The sum over all lanes, after `sum_before`.
fn sum_of_all() -> u32 {
    // Eight steps: the result is in the half where it began.
    return sums[SIZE - 1u];
}

@compute @workgroup_size(256)
fn count(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let block = group_index(group, groups);
    if block >= params.blocks {
        return;
    }
    let word = block * SIZE + lane;
    var n = vec3(0u);
    var found_triangles = 0u;
    var nan_cells = 0u;
    if word < params.numbered {
        let found = word_at(word, place_of(word));
        n = countOneBits(found.crossed);
        found_triangles = count_triangles(found.corners, found.cells);
        nan_cells = found.nan_cells;
    }
    // At most 256 * 96 vertices and 256 * 160 triangles: both sums fit 16 bits.
    let vertices = n.x + n.y + n.z;
    let before = sum_before(lane, vertices | found_triangles << 16u);
    if word < params.numbered {
        starts[word] = (before & 0xffffu) | n.x << 15u | n.y << 21u;
    }
    if lane == 0u {
        let all = sum_of_all();
        blocks[SECTIONS + block] = all & 0xffffu;
        blocks[SECTIONS + params.blocks + block] = all >> 16u;
    }
    if HAS_NAN {
        workgroupBarrier();
        _ = sum_before(lane, nan_cells);
        if lane == 0u {
            blocks[SECTIONS + 3u * params.blocks + block] = sum_of_all();
        }
    }
}

// Vertices, triangles, whether there is something to emit, cells with NaN.
fn block_counts(block: u32) -> vec4<u32> {
    let n = params.blocks;
    let vertices = blocks[SECTIONS + block];
    let found_triangles = blocks[SECTIONS + n + block];
    let is_owned = block * SIZE < params.owned;
    var nan_cells = 0u;
    if HAS_NAN {
        nan_cells = blocks[SECTIONS + 3u * n + block];
    }
    let is_active = is_owned && (vertices | found_triangles) != 0u;
    return vec4(vertices, found_triangles, u32(is_active), nan_cells);
}

// Blocks that a lane of `scan` adds up by itself.
const RUN = 8u;

// One workgroup turns the blocks' counts into where each begins, lists the active blocks, and leaves
// the totals: vertices to emit, triangles, active blocks, cells with NaN.
@compute @workgroup_size(256)
fn scan(@builtin(local_invocation_index) lane: u32) {
    let n = params.blocks;
    // Vertices, triangles, active blocks, cells with NaN.
    var before_all = vec4(0u);
    for (var start = 0u; start < n; start += SIZE * RUN) {
        let first = start + lane * RUN;
        var own = vec4(0u);
        for (var block = first; block < min(first + RUN, n); block++) {
            own += block_counts(block);
        }
        var before = before_all;
        for (var kind = 0u; kind < select(3u, 4u, HAS_NAN); kind++) {
            before[kind] += sum_before(lane, own[kind]);
            before_all[kind] += sum_of_all();
            workgroupBarrier();
        }
        for (var block = first; block < min(first + RUN, n); block++) {
            let here = block_counts(block);
            blocks[SECTIONS + block] = before.x;
            blocks[SECTIONS + n + block] = before.y;
            if here.z == 1u {
                blocks[SECTIONS + 2u * n + before.z] = block;
            }
            before += here;
        }
    }
    var vertices = before_all.x;
    let found_triangles = before_all.y;
    let active_blocks = before_all.z;
    let nan_cells = before_all.w;
    storageBarrier();
    if lane == 0u {
        let totals = SECTIONS + 4u * n;
        if params.owned < params.numbered {
            // The topmost slice is numbered here but emitted by the next slab.
            vertices = blocks[SECTIONS + params.owned / SIZE] + (starts[params.owned] & 0x7fffu);
        }
        blocks[totals] = vertices;
        blocks[totals + 1u] = found_triangles;
        blocks[totals + 2u] = active_blocks;
        blocks[totals + 3u] = nan_cells;
    }
}

// ---- vertices ----

// The place of the set bit with `rank` set bits below it.
fn select_bit(mask: u32, rank: u32) -> u32 {
    var rest = mask;
    var left = rank;
    var bit = 0u;
    for (var size = 16u; size > 0u; size /= 2u) {
        let low = countOneBits(rest & ((1u << size) - 1u));
        if left >= low {
            left -= low;
            rest >>= size;
            bit += size;
        }
    }
    return bit;
}

// n / d rounded to nearest, for quotients from 0 to 1, whatever the device's division does: corrected
// by whole numbers, so that every device gives the same bits.
fn divide(n: f32, d: f32) -> f32 {
    // Reciprocals of the largest values may be flushed to 0.
    let scale = select(1.0, 0x1p-64f, abs(d) > 0x1p64f);
    let quotient = abs((n * scale) / (d * scale));
    // Smaller ones vanish when a half is added, and 0/0 is nothing.
    if !(quotient >= 1e-9) {
        return 0.0;
    }
    let n_bits = bitcast<u32>(n) & 0x7fffffffu;
    let d_bits = bitcast<u32>(d) & 0x7fffffffu;
    let n_whole = (n_bits & 0x7fffffu) | 0x800000u;
    let d_whole = (d_bits & 0x7fffffu) | 0x800000u;
    // Certainly below the quotient.
    let q_bits = bitcast<u32>(quotient) - 8u;
    let q_whole = (q_bits & 0x7fffffu) | 0x800000u;
    // The remainder n - q * d in units of the last places of q and d. The terms overflow, their
    // difference does not.
    let shift = (n_bits >> 23u) + 150u - (q_bits >> 23u) - (d_bits >> 23u);
    let remainder = (n_whole << (shift & 31u)) - q_whole * d_whole;
    let more = remainder / d_whole;
    let rest = remainder - more * d_whole;
    let sum = q_whole + more;
    if sum < 0x1000000u {
        return bitcast<f32>(q_bits + more + u32(2u * rest > d_whole));
    }
    // Past a power of two the last place is worth twice as much.
    let half = sum >> 1u;
    let is_up = (sum & 1u) == 1u && (rest > 0u || (half & 1u) == 1u);
    return bitcast<f32>((((q_bits >> 23u) + 1u) << 23u) + (half - 0x800000u) + u32(is_up));
}

// Where between values `a` and `b`, one inside and one not, the surface passes: 0 at a, 1 at b.
fn crossing(a: f32, b: f32) -> f32 {
    if KIND == 4u {
        let far = vec2(is_infinite(a), is_infinite(b));
        if any(far) {
            return select(select(0.0, 1.0, far.x), 0.5, all(far));
        }
    }
    let start = half_of(a);
    return clamp(divide(half_of(params.level) - start, half_of(b) - start), 0.0, 1.0);
}

// Half of a value, lest the difference of the largest be infinite. The round trip through `zero`
// keeps the device from halving after the difference.
fn half_of(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value * 0.5) ^ params.zero);
}

// For each word of the block: crossed edges along x, y, z, and the first vertex.
var<workgroup> masks: array<vec4<u32>, 256>;
var<workgroup> vertex_count: u32;

// Fills `masks` and `vertex_count`.
fn load_masks(block: u32, lane: u32) {
    let word = block * SIZE + lane;
    masks[lane] = vec4(0u, 0u, 0u, 0xffffffffu);
    if word < params.owned {
        let start = blocks[params.starts + word];
        let first = start & 0x7fffu;
        let crossed = word_at(word, place_of(word)).crossed;
        masks[lane] = vec4(crossed, first);
        if lane == SIZE - 1u || word == params.owned - 1u {
            let n = countOneBits(crossed);
            vertex_count = first + n.x + n.y + n.z;
        }
    }
    workgroupBarrier();
}

struct Vertex {
    // The lower point of its edge, the edge's axis.
    point: vec3<i32>,
    axis: u32,
}

fn vertex_at(block: u32, index: u32) -> Vertex {
    // The last word that begins at or before the vertex.
    var low = 0u;
    for (var size = SIZE / 2u; size > 0u; size /= 2u) {
        if masks[low + size].w <= index {
            low += size;
        }
    }
    let found = masks[low];
    var rank = index - found.w;
    var axis = 0u;
    var mask = found.x;
    let n = countOneBits(found.xyz);
    if rank >= n.x {
        rank -= n.x;
        axis = 1u;
        mask = found.y;
        if rank >= n.y {
            rank -= n.y;
            axis = 2u;
            mask = found.z;
        }
    }
    let place = place_of(block * SIZE + low);
    return Vertex(vec3<i32>(place + vec3(select_bit(mask, rank), 0u, 0u)), axis);
}

fn step_along(axis: u32) -> vec3<i32> {
    return vec3(i32(axis == 0u), i32(axis == 1u), i32(axis == 2u));
}

fn vertex_crossing(vertex: Vertex) -> f32 {
    let end = vertex.point + step_along(vertex.axis);
    if params.pad == 1u && !(is_sample(vertex.point) && is_sample(end)) {
        // Beyond the samples: the surface closes on the volume's box.
        return 0.5;
    }
    return crossing(sample(sample_index(vertex.point)), sample(sample_index(end)));
}

@compute @workgroup_size(256)
fn vertices(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let active_index = group_index(group, groups);
    if active_index >= params.active_blocks {
        return;
    }
    let block = blocks[SECTIONS + 2u * params.blocks + params.first_active + active_index];
    load_masks(block, lane);
    let first = blocks[SECTIONS + block] - params.vertex_start;
    let grid_z = i32(params.first);
    let spacing = vec3(params.spacing_x, params.spacing_y, params.spacing_z);
    let origin = vec3(params.origin_x, params.origin_y, params.origin_z);
    for (var i = lane; i < vertex_count; i += SIZE) {
        let vertex = vertex_at(block, i);
        if !is_here(vertex.point.y) {
            continue;
        }
        let t = vertex_crossing(vertex);
        let point = vertex.point + vec3(0, 0, grid_z) - vec3(i32(params.pad));
        let place = (vec3<f32>(point) + vec3(0.5)) + vec3<f32>(step_along(vertex.axis)) * t;
        // The round trip through `zero` keeps the device from fusing product and sum, which would
        // round once where the CPU rounds twice.
        let scaled = bitcast<vec3<f32>>(bitcast<vec3<u32>>(place * spacing) ^ vec3(params.zero));
        let moved = scaled + origin;
        let at = 3u * (first + i);
        positions[at] = moved.x;
        positions[at + 1u] = moved.y;
        positions[at + 2u] = moved.z;
    }
}

// The point moved along the axes into the samples.
fn into_samples(point: vec3<i32>) -> vec3<i32> {
    let pad = i32(params.pad);
    let shift = vec3(0, 0, i32(params.first));
    let points = vec3<i32>(vec3(params.points_x, params.points_y, params.points_z));
    return clamp(point, vec3(pad) - shift, points - vec3(pad + 1) - shift);
}

fn gradient(point: vec3<i32>) -> vec3<f32> {
    var result: vec3<f32>;
    let spacing = vec3(params.spacing_x, params.spacing_y, params.spacing_z);
    for (var axis = 0u; axis < 3u; axis++) {
        let step = step_along(axis);
        let low = into_samples(point - step);
        let high = into_samples(point + step);
        // One step at the border, two elsewhere; off the border along other axes, too.
        let below = (point - step)[axis];
        let above = (point + step)[axis];
        let steps = max(2 - min(abs(low[axis] - below), 1) - min(abs(high[axis] - above), 1), 1);
        let difference = sample(sample_index(high)) - sample(sample_index(low));
        result[axis] = difference / (f32(steps) * spacing[axis]);
    }
    return result;
}

@compute @workgroup_size(256)
fn vertex_normals(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let active_index = group_index(group, groups);
    if active_index >= params.active_blocks {
        return;
    }
    let block = blocks[SECTIONS + 2u * params.blocks + params.first_active + active_index];
    load_masks(block, lane);
    let first = blocks[SECTIONS + block] - params.vertex_start;
    for (var i = lane; i < vertex_count; i += SIZE) {
        let vertex = vertex_at(block, i);
        if !is_here(vertex.point.y) {
            continue;
        }
        let t = vertex_crossing(vertex);
        let step = step_along(vertex.axis);
        let a = gradient(vertex.point);
        let b = gradient(vertex.point + step);
        let down = -(a + (b - a) * t);
        let squared = dot(down, down);
        var normal: vec3<f32>;
        // Where both ends' gradients cancel out, only rounding is left, which devices do differently.
        let least = 1e-10 * (dot(a, a) + dot(b, b));
        if squared > least && !is_infinite(squared) && !is_nan(squared) {
            normal = down / sqrt(squared);
        } else {
            // A flat or endless gradient: along the edge, towards its outer end.
            let inside = sample(sample_index(into_samples(vertex.point))) > params.threshold;
            normal = vec3<f32>(step) * select(-1.0, 1.0, inside);
        }
        let at = 3u * (first + i);
        normals[at] = normal.x;
        normals[at + 1u] = normal.y;
        normals[at + 2u] = normal.z;
    }
}

// ---- triangles ----

// The number of the vertex on edge `edge` of the cell at bit `bit` of `word`.
fn vertex_id(word: u32, bit: u32, edge: u32) -> u32 {
    let axis = edge / 4u;
    let u = edge & 1u;
    let v = (edge >> 1u) & 1u;
    // The edge's lower point: offsets along the other two axes.
    var at = word;
    var x = bit;
    if axis == 0u {
        at += u * params.words + v * params.slice_words;
    } else {
        at += v * select(params.words, params.slice_words, axis == 1u);
        x += u;
        at += x / 32u;
        x %= 32u;
    }
    let here = bits[at];
    var mask = here ^ (here >> 1u);
    if axis != 0u {
        mask = here ^ bits[at + select(params.slice_words, params.words, axis == 1u)];
    }
    if HAS_NAN {
        mask &= beside_valid(at, place_of(at))[axis];
    }
    let start = starts[at];
    var id = blocks[SECTIONS + at / SIZE] + (start & 0x7fffu);
    id += select(0u, (start >> 15u) & 0x3fu, axis >= 1u);
    id += select(0u, start >> 21u, axis == 2u);
    return params.first_vertex + id + countOneBits(mask & ((1u << x) - 1u));
}

var<workgroup> corner_rows: array<vec4<u32>, 256>;
var<workgroup> corner_steps: array<vec4<u32>, 256>;
// The cells of each word that the surface passes, and how many come before them.
var<workgroup> passed: array<vec2<u32>, 256>;

@compute @workgroup_size(256)
fn faces(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let active_index = group_index(group, groups);
    if active_index >= params.active_blocks {
        return;
    }
    let block = blocks[SECTIONS + 2u * params.blocks + params.first_active + active_index];
    let word = block * SIZE + lane;
    var cells = 0u;
    if word < params.numbered {
        let found = word_at(word, place_of(word));
        cells = mixed(found.corners) & found.cells;
        corner_rows[lane] = found.corners.rows;
        corner_steps[lane] = found.corners.steps;
    }
    let before = sum_before(lane, countOneBits(cells));
    let cell_count = sum_of_all();
    passed[lane] = vec2(cells, before);
    workgroupBarrier();
    var first = blocks[SECTIONS + params.blocks + block] - params.triangle_start;
    // A cell each, 256 at a time.
    for (var start = 0u; start < cell_count; start += SIZE) {
        let index = start + lane;
        var case_number = 0u;
        var count = 0u;
        var low = 0u;
        var bit = 0u;
        if index < cell_count {
            for (var size = SIZE / 2u; size > 0u; size /= 2u) {
                if passed[low + size].y <= index {
                    low += size;
                }
            }
            bit = select_bit(passed[low].x, index - passed[low].y);
            case_number = case_at(Corners(corner_rows[low], corner_steps[low]), bit);
            count = blocks[CASE_INFO + case_number] & 0xffu;
        }
        let triangles_before = sum_before(lane, count);
        let here = sum_of_all();
        var at = 3u * (first + triangles_before);
        for (var i = 0u; i < 3u * count; i++) {
            let edges = blocks[2u * case_number + i / 8u];
            triangles[at + i] = vertex_id(block * SIZE + low, bit, (edges >> (4u * (i % 8u))) & 15u);
        }
        first += here;
        workgroupBarrier();
    }
}
