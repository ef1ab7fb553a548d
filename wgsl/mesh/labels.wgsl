// Surface nets: the faces between all labels of a slab, with shared vertices.
//
// In: labels of a slab. Out: vertices and quads in the canonical order (src/kernels/mesh/labels/mod.rs). Used for all
// label volumes on a GPU; the host splits them into pieces that fit.
//
//   edges            one bit per edge of the grid: whether its ends differ
//   count            cells with a vertex, cells where a label may have several sheets; counts of vertices and quads
//   scan             first vertex and quad of each block, the totals
//   find_links       cell and neighbours of each vertex
//   smooth_step      moves all vertices by one step
//   write_vertices   coordinates of vertices
//   quads            faces with their labels and sheets
//
// A word is 32 cells along x, a block the SIZE words of one workgroup.

#import mesh/words
#import mesh/prefix_sum
#import mesh/label_cells
#import mesh/label_quads

// Type of the labels: 0 u8, 1 u16, 2 u32.
const KIND = 0u;

// Words of a block and invocations of a workgroup.
const SIZE = 256u;

// Coordinate steps per sample, and the middle of a cell.
const UNIT = 4096u;
const MIDDLE = 2048u;

struct NetParams {
    // Samples of the whole volume along x, y and z. There is one more cell along each axis.
    width: u32,
    height: u32,
    depth: u32,
    // Words of a row of cells, and of a slice.
    words: u32,
    slice_words: u32,
    // First layer within reach, counted in the whole volume, and number of layers.
    first: u32,
    layers: u32,
    // Layers that are meshed, counted within reach.
    core_start: u32,
    core_end: u32,
    // Words and blocks of all layers within reach.
    numbered: u32,
    blocks: u32,
    // First of the per-word entries in `blocks`.
    starts: u32,
    // Layers, counted within reach, whose labels this dispatch reads, and the first slice in `volume`.
    start_z: u32,
    end_z: u32,
    slice: u32,
    // Number of vertices within reach, before the layers that are meshed, and of these layers.
    vertices: u32,
    core_vertex: u32,
    core_vertices: u32,
    // Number of vertices of all slabs before this one.
    first_vertex: u32,
    // Smoothing steps before this one.
    steps: u32,
}

@group(0) @binding(0) var<uniform> params: NetParams;
@group(0) @binding(1) var<storage, read> volume: array<u32>;
// For each word of points, the crossed edges from them along x, y and z.
@group(0) @binding(2) var<storage, read_write> edge_bits: array<u32>;
// In words:
//   0 .. JOINED               sheets of the 256 cases
//   JOINED .. SECTIONS        the same if the one face that may join the label's corners does so
//   section(i, block)         one word per block: number of vertices and quads, later the first of them
//   section(TOTALS, 0..3)     vertices and quads, vertices before the layers that are meshed and before those above
//   params.starts ..          three words for each word of cells: first vertex (bits 0..13) and first quad (14..28)
//                             within the block, cells with a vertex, cells where a label may have several sheets
@group(0) @binding(3) var<storage, read_write> blocks: array<u32>;
// For each vertex, its cell as 32 * word + bit, and its links (bits 0..5) and fixed axes (6..8).
@group(0) @binding(4) var<storage, read_write> cells: array<vec2<u32>>;
// Neighbours below and above along y and z. Those along x are the previous and the next vertex.
@group(0) @binding(5) var<storage, read_write> links: array<vec4<u32>>;
// Offsets of vertices in their cells: x | y << 16, z.
@group(0) @binding(6) var<storage, read> offsets: array<vec2<u32>>;
@group(0) @binding(7) var<storage, read_write> moved: array<vec2<u32>>;
@group(0) @binding(8) var<storage, read_write> vertices: array<u32>;
// Seven words per quad: four vertices, two labels, sheets.
@group(0) @binding(9) var<storage, read_write> faces: array<u32>;

const JOINED = 256u;
const SECTIONS = 512u;
const VERTICES = 0u;
const QUADS = 1u;
const TOTALS = 2u;

// The label of a point of the whole volume; 0 beyond the samples.
fn label_at(p: vec3<u32>) -> u32 {
    let s = p - vec3(1u);
    // For points before the first sample, the difference wraps around.
    if s.x >= params.width || s.y >= params.height || s.z >= params.depth {
        return 0u;
    }
    let index = ((s.z - params.slice) * params.height + s.y) * params.width + s.x;
    if KIND == 2u {
        return volume[index];
    }
    if KIND == 1u {
        return (volume[index / 2u] >> (16u * (index % 2u))) & 0xffffu;
    }
    return (volume[index / 4u] >> (8u * (index % 4u))) & 0xffu;
}

// Whether this dispatch has the labels around a layer.
fn is_here(z: u32) -> bool {
    return z >= params.start_z && z < params.end_z;
}

// Crossed edges of the eight words that a workgroup processes at a time.
var<workgroup> found: array<atomic<u32>, 24>;

// One invocation per point.
@compute @workgroup_size(SIZE)
fn edges(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let block = group_index(group, groups);
    // There is one more slice of points than there are layers.
    let points = params.numbered + params.slice_words;
    for (var part = 0u; part < SIZE / 8u; part++) {
        let word = block * SIZE + part * 8u + lane / 32u;
        if lane < 24u {
            atomicStore(&found[lane], 0u);
        }
        workgroupBarrier();
        let position = position_of(word);
        let x = position.x + lane % 32u;
        if word < points && is_here(position.z) && x <= params.width {
            let p = vec3(x, position.y, position.z + params.first);
            let here = label_at(p);
            let bit = 1u << (lane % 32u);
            let at = 3u * (lane / 32u);
            if label_at(p + vec3(1u, 0u, 0u)) != here {
                atomicOr(&found[at], bit);
            }
            if label_at(p + vec3(0u, 1u, 0u)) != here {
                atomicOr(&found[at + 1u], bit);
            }
            // No cell within reach has an edge along z above the topmost slice of points.
            if position.z < params.layers && label_at(p + vec3(0u, 0u, 1u)) != here {
                atomicOr(&found[at + 2u], bit);
            }
        }
        workgroupBarrier();
        if lane < 24u {
            let own = block * SIZE + part * 8u + lane / 3u;
            if own < points && is_here(position_of(own).z) {
                edge_bits[3u * own + lane % 3u] = atomicLoad(&found[lane]);
            }
        }
        workgroupBarrier();
    }
}

// One invocation per word.
@compute @workgroup_size(SIZE)
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
    var n = 0u;
    var quads = 0u;
    var any = 0u;
    var folds = 0u;
    if word < params.numbered {
        let position = position_of(word);
        let e = cell_edges(word, position);
        any = any_edge(e);
        n = countOneBits(any);
        if any != 0u {
            folds = may_fold(e);
        }
        if position.z >= params.core_start && position.z < params.core_end {
            let at = 3u * word;
            quads = countOneBits(edge_bits[at]) + countOneBits(edge_bits[at + 1u])
                + countOneBits(edge_bits[at + 2u]);
        }
    }
    // At most 256 * 32 vertices and 256 * 96 quads, so both sums fit one word.
    let before = sum_before(lane, n | quads << 14u);
    if word < params.numbered {
        let at = params.starts + 3u * word;
        blocks[at] = before;
        blocks[at + 1u] = any;
        blocks[at + 2u] = folds;
    }
    if lane == 0u {
        let all = sum_of_all();
        blocks[section(VERTICES, block)] = all & 0x3fffu;
        blocks[section(QUADS, block)] = all >> 14u;
    }
}

// Consecutive blocks that an invocation of `scan` sums up.
const RUN = 8u;

// One workgroup, SIZE * RUN blocks at a time.
@compute @workgroup_size(SIZE)
fn scan(@builtin(local_invocation_index) lane: u32) {
    let n = params.blocks;
    var before_all = vec2(0u);
    for (var start = 0u; start < n; start += SIZE * RUN) {
        let first = start + lane * RUN;
        var own = vec2(0u);
        for (var block = first; block < min(first + RUN, n); block++) {
            own += vec2(blocks[section(VERTICES, block)], blocks[section(QUADS, block)]);
        }
        var before = before_all;
        for (var kind = 0u; kind < 2u; kind++) {
            before[kind] += sum_before(lane, own[kind]);
            before_all[kind] += sum_of_all();
            workgroupBarrier();
        }
        for (var block = first; block < min(first + RUN, n); block++) {
            let here = vec2(blocks[section(VERTICES, block)], blocks[section(QUADS, block)]);
            blocks[section(VERTICES, block)] = before.x;
            blocks[section(QUADS, block)] = before.y;
            before += here;
        }
    }
    storageBarrier();
    if lane == 0u {
        let totals = section(TOTALS, 0u);
        blocks[totals] = before_all.x;
        blocks[totals + 1u] = before_all.y;
        blocks[totals + 2u] = vertices_before(params.core_start * params.slice_words, before_all.x);
        blocks[totals + 3u] = vertices_before(params.core_end * params.slice_words, before_all.x);
    }
}

// Number of vertices before a word; `all` beyond the last word.
fn vertices_before(word: u32, all: u32) -> u32 {
    if word >= params.numbered {
        return all;
    }
    return blocks[section(VERTICES, word / SIZE)] + (blocks[params.starts + 3u * word] & 0x3fffu);
}

// Number of the first vertex at or after bit `bit` of a word.
fn rank(word: u32, bit: u32) -> u32 {
    let at = params.starts + 3u * word;
    let below = blocks[at + 1u] & ((1u << bit) - 1u);
    return blocks[section(VERTICES, word / SIZE)] + (blocks[at] & 0x3fffu) + countOneBits(below);
}

// First vertex or quad of each word, counted within the block, and the number of all in the block.
var<workgroup> word_starts: array<u32, SIZE>;
var<workgroup> block_count: u32;

// Fills both from section `kind` and from the bits of the words' entries from `shift` on.
fn load_starts(block: u32, lane: u32, kind: u32, shift: u32) {
    let word = block * SIZE + lane;
    word_starts[lane] = 0xffffffffu;
    if word < params.numbered {
        word_starts[lane] = (blocks[params.starts + 3u * word] >> shift) & select(0x3fffu, 0x7fffu, shift > 0u);
    }
    if lane == 0u {
        var end = blocks[section(TOTALS, kind)];
        if block + 1u < params.blocks {
            end = blocks[section(kind, block + 1u)];
        }
        block_count = end - blocks[section(kind, block)];
    }
    workgroupBarrier();
}

// The word of the block with vertex or quad `index`.
fn word_with(index: u32) -> u32 {
    var low = 0u;
    for (var size = SIZE / 2u; size > 0u; size /= 2u) {
        if word_starts[low + size] <= index {
            low += size;
        }
    }
    return low;
}

fn is_end(at: u32, last: u32) -> u32 {
    return u32(at == 0u || at == last);
}

// One workgroup per block, one invocation per vertex, SIZE at a time.
@compute @workgroup_size(SIZE)
fn find_links(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let block = group_index(group, groups);
    if block >= params.blocks {
        return;
    }
    load_starts(block, lane, VERTICES, 0u);
    let first = blocks[section(VERTICES, block)];
    for (var i = lane; i < block_count; i += SIZE) {
        let low = word_with(i);
        let word = block * SIZE + low;
        let position = position_of(word);
        let bit = select_bit(blocks[params.starts + 3u * word + 1u], i - word_starts[low]);
        let e = cell_edges(word, position);
        var linked = link_bits(e, bit);
        // Links to layers beyond reach are left out. The reach is wide enough that this does not affect meshed
        // vertices.
        linked &= select(0x3fu, 0x2fu, position.z == 0u);
        linked &= select(0x3fu, 0x1fu, position.z + 1u == params.layers);
        var near = vec4(0u);
        if (linked & 4u) != 0u {
            near.x = rank(word - params.words, bit);
        }
        if (linked & 8u) != 0u {
            near.y = rank(word + params.words, bit);
        }
        if (linked & 16u) != 0u {
            near.z = rank(word - params.slice_words, bit);
        }
        if (linked & 32u) != 0u {
            near.w = rank(word + params.slice_words, bit);
        }
        let is_fixed = is_end(position.x + bit, params.width) << 6u | is_end(position.y, params.height) << 7u
            | is_end(position.z + params.first, params.depth) << 8u;
        links[first + i] = near;
        cells[first + i] = vec2(32u * word + bit, linked | is_fixed);
    }
}

fn offset_at(vertex: u32) -> vec3<i32> {
    if params.steps == 0u {
        return vec3(i32(MIDDLE));
    }
    let offset = offsets[vertex];
    return vec3<i32>(vec3(offset.x & 0xffffu, offset.x >> 16u, offset.y));
}

// One invocation per vertex, which moves three quarters of the way to the mean of its neighbours, see
// src/kernels/mesh/labels/cpu/smooth.rs.
@compute @workgroup_size(SIZE)
fn smooth_step(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let vertex = group_index(group, groups) * SIZE + lane;
    if vertex >= params.vertices {
        return;
    }
    let kind = cells[vertex].y;
    let near = links[vertex];
    let own = offset_at(vertex);
    let unit = i32(UNIT);
    var sum = vec3(0i);
    if (kind & 1u) != 0u {
        sum += offset_at(vertex - 1u) - vec3(unit, 0, 0);
    }
    if (kind & 2u) != 0u {
        sum += offset_at(vertex + 1u) + vec3(unit, 0, 0);
    }
    if (kind & 4u) != 0u {
        sum += offset_at(near.x) - vec3(0, unit, 0);
    }
    if (kind & 8u) != 0u {
        sum += offset_at(near.y) + vec3(0, unit, 0);
    }
    if (kind & 16u) != 0u {
        sum += offset_at(near.z) - vec3(0, 0, unit);
    }
    if (kind & 32u) != 0u {
        sum += offset_at(near.w) + vec3(0, 0, unit);
    }
    let n = i32(countOneBits(kind & 0x3fu));
    var share = 0i;
    if n > 0 {
        share = (24576 + n / 2) / n;
    }
    let distance = sum - n * own;
    let next = own + ((distance * share + vec3(16384i)) >> vec3(15u));
    let is_fixed = ((vec3(kind) >> vec3(6u, 7u, 8u)) & vec3(1u)) == vec3(1u);
    let low = select(vec3(1i), vec3(i32(MIDDLE)), is_fixed);
    let high = select(vec3(unit - 1), vec3(i32(MIDDLE)), is_fixed);
    let to = vec3<u32>(clamp(next, low, high));
    moved[vertex] = vec2(to.x | to.y << 16u, to.z);
}

// One invocation per vertex of the layers that are meshed.
@compute @workgroup_size(SIZE)
fn write_vertices(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = group_index(group, groups) * SIZE + lane;
    if index >= params.core_vertices {
        return;
    }
    let vertex = params.core_vertex + index;
    let at = cells[vertex].x;
    let cell = position_of(at / 32u) + vec3(at % 32u, 0u, params.first);
    let to = cell * UNIT + vec3<u32>(offset_at(vertex)) - vec3(MIDDLE);
    vertices[3u * index] = to.x;
    vertices[3u * index + 1u] = to.y;
    vertices[3u * index + 2u] = to.z;
}
