// Surface nets of labels: the faces between all labels of a slab, with shared vertices.
//
// In: labels of a slab. Out: vertices and quads in the canonical order (src/kernels/mesh/labels/mod.rs). Chosen for
// every volume of labels on a GPU; the host splits it into slabs that fit.
//
//   edges         one bit per edge of the grid: its ends differ
//   count         cells with a vertex, cells where a label may have several sheets; vertices and quads of each word
//                 and block
//   scan          where each block's begin, the totals
//   find_links    each vertex's cell and neighbours
//   smooth_step   moves all vertices by one step
//   place         coordinates
//   quads         faces with their labels and sheets
//
// A word is 32 cells along x, a block the SIZE words of one workgroup.

#import mesh/words
#import mesh/prefix_sum
#import mesh/label_cells
#import mesh/label_quads

// How labels are stored: 0 u8, 1 u16, 2 u32.
const KIND = 0u;

// Words of a block, invocations of a workgroup.
const SIZE = 256u;

// Steps of a coordinate a sample, and the middle of a cell.
const UNIT = 4096u;
const MIDDLE = 2048u;

struct NetParams {
    // Samples along x, y and z of the whole volume; there is one more cell along each.
    width: u32,
    height: u32,
    depth: u32,
    // Words of a row of cells, words of a slice.
    words: u32,
    slice_words: u32,
    // The first layer within reach in the whole volume, and how many layers.
    first: u32,
    layers: u32,
    // Layers that are meshed, counted within reach.
    core_start: u32,
    core_end: u32,
    // Words of all layers within reach, and the blocks that they make.
    numbered: u32,
    blocks: u32,
    // Where the words begin in `blocks`.
    starts: u32,
    // Layers, counted within reach, that this dispatch reads labels for, and the first slice in `volume`.
    start_z: u32,
    end_z: u32,
    slice: u32,
    // Vertices within reach; those before the layers that are meshed, and those of these layers.
    vertices: u32,
    core_vertex: u32,
    core_vertices: u32,
    // Vertices of all slabs before.
    first_vertex: u32,
    // Steps of smoothing before this one.
    steps: u32,
}

@group(0) @binding(0) var<uniform> params: NetParams;
@group(0) @binding(1) var<storage, read> volume: array<u32>;
// For each word of points, which edges along x, y and z from them are crossed.
@group(0) @binding(2) var<storage, read_write> edge_bits: array<u32>;
// In words:
//   0 .. JOINED               the sheets of the 256 cases
//   JOINED .. SECTIONS        the same where the one face that may join the label's corners does
//   section(i, block)         one word per block: vertices and quads, then where they begin
//   section(TOTALS, 0..3)     vertices and quads, vertices before the layers that are meshed, and before those above
//   params.starts ..          three words for each word of cells: where its vertices (bits 0..13) and quads (14..28)
//                             begin in the block, cells with a vertex, cells where a label may have several sheets
@group(0) @binding(3) var<storage, read_write> blocks: array<u32>;
// The place of a cell, 32 * word + bit, and its links (bits 0..5) and fixed axes (6..8).
@group(0) @binding(4) var<storage, read_write> cells: array<vec2<u32>>;
// Neighbours below and above along y and z. Those along x are the vertices before and behind.
@group(0) @binding(5) var<storage, read_write> links: array<vec4<u32>>;
// Places in cells: x | y << 16, z.
@group(0) @binding(6) var<storage, read> places: array<vec2<u32>>;
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
    // Below the first sample, the difference wraps around.
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

// The edges of the eight words that a workgroup looks at together, and those of all words before them.
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
        let place = place_of(word);
        let x = place.x + lane % 32u;
        if word < points && is_here(place.z) && x <= params.width {
            let p = vec3(x, place.y, place.z + params.first);
            let here = label_at(p);
            let bit = 1u << (lane % 32u);
            let at = 3u * (lane / 32u);
            if label_at(p + vec3(1u, 0u, 0u)) != here {
                atomicOr(&found[at], bit);
            }
            if label_at(p + vec3(0u, 1u, 0u)) != here {
                atomicOr(&found[at + 1u], bit);
            }
            // No cell within reach has an edge along z above its topmost slice of points.
            if place.z < params.layers && label_at(p + vec3(0u, 0u, 1u)) != here {
                atomicOr(&found[at + 2u], bit);
            }
        }
        workgroupBarrier();
        if lane < 24u {
            let own = block * SIZE + part * 8u + lane / 3u;
            if own < points && is_here(place_of(own).z) {
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
        let place = place_of(word);
        let e = cell_edges(word, place);
        any = any_edge(e);
        n = countOneBits(any);
        if any != 0u {
            folds = may_fold(e);
        }
        if place.z >= params.core_start && place.z < params.core_end {
            let at = 3u * word;
            quads = countOneBits(edge_bits[at]) + countOneBits(edge_bits[at + 1u])
                + countOneBits(edge_bits[at + 2u]);
        }
    }
    // At most 256 * 32 vertices and 256 * 96 quads: both sums fit a word.
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

// Blocks that an invocation of `scan` adds up by itself.
const RUN = 8u;

// One workgroup: SIZE * RUN blocks at a time.
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

// The vertices before a word, or `all`.
fn vertices_before(word: u32, all: u32) -> u32 {
    if word >= params.numbered {
        return all;
    }
    return blocks[section(VERTICES, word / SIZE)] + (blocks[params.starts + 3u * word] & 0x3fffu);
}

// The number of the vertex of the cell at bit `bit` of a word, or of the next one.
fn rank(word: u32, bit: u32) -> u32 {
    let at = params.starts + 3u * word;
    let below = blocks[at + 1u] & ((1u << bit) - 1u);
    return blocks[section(VERTICES, word / SIZE)] + (blocks[at] & 0x3fffu) + countOneBits(below);
}

// Where each word of the block begins among its vertices or quads.
var<workgroup> word_starts: array<u32, SIZE>;
var<workgroup> block_count: u32;

// Fills both from bits `shift` on of the words' starts. `kind`: the section.
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

// The last word of the block that begins at or before its vertex or quad `index`.
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
        let place = place_of(word);
        let bit = select_bit(blocks[params.starts + 3u * word + 1u], i - word_starts[low]);
        let e = cell_edges(word, place);
        var linked = link_bits(e, bit);
        // Links to layers beyond reach are left out. The reach is so wide that this moves no vertex that is meshed.
        linked &= select(0x3fu, 0x2fu, place.z == 0u);
        linked &= select(0x3fu, 0x1fu, place.z + 1u == params.layers);
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
        let is_fixed = is_end(place.x + bit, params.width) << 6u | is_end(place.y, params.height) << 7u
            | is_end(place.z + params.first, params.depth) << 8u;
        links[first + i] = near;
        cells[first + i] = vec2(32u * word + bit, linked | is_fixed);
    }
}

fn place_at(vertex: u32) -> vec3<i32> {
    if params.steps == 0u {
        return vec3(i32(MIDDLE));
    }
    let place = places[vertex];
    return vec3<i32>(vec3(place.x & 0xffffu, place.x >> 16u, place.y));
}

// One invocation per vertex: three quarters of the way to the mean of its neighbours, see
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
    let own = place_at(vertex);
    let unit = i32(UNIT);
    var sum = vec3(0i);
    if (kind & 1u) != 0u {
        sum += place_at(vertex - 1u) - vec3(unit, 0, 0);
    }
    if (kind & 2u) != 0u {
        sum += place_at(vertex + 1u) + vec3(unit, 0, 0);
    }
    if (kind & 4u) != 0u {
        sum += place_at(near.x) - vec3(0, unit, 0);
    }
    if (kind & 8u) != 0u {
        sum += place_at(near.y) + vec3(0, unit, 0);
    }
    if (kind & 16u) != 0u {
        sum += place_at(near.z) - vec3(0, 0, unit);
    }
    if (kind & 32u) != 0u {
        sum += place_at(near.w) + vec3(0, 0, unit);
    }
    let n = i32(countOneBits(kind & 0x3fu));
    var share = 0i;
    if n > 0 {
        share = (24576 + n / 2) / n;
    }
    let way = sum - n * own;
    let next = own + ((way * share + vec3(16384i)) >> vec3(15u));
    let is_fixed = ((vec3(kind) >> vec3(6u, 7u, 8u)) & vec3(1u)) == vec3(1u);
    let low = select(vec3(1i), vec3(i32(MIDDLE)), is_fixed);
    let high = select(vec3(unit - 1), vec3(i32(MIDDLE)), is_fixed);
    let to = vec3<u32>(clamp(next, low, high));
    moved[vertex] = vec2(to.x | to.y << 16u, to.z);
}

// One invocation per vertex of the layers that are meshed.
@compute @workgroup_size(SIZE)
fn place(
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
    let cell = place_of(at / 32u) + vec3(at % 32u, 0u, params.first);
    let to = cell * UNIT + vec3<u32>(place_at(vertex)) - vec3(MIDDLE);
    vertices[3u * index] = to.x;
    vertices[3u * index + 1u] = to.y;
    vertices[3u * index + 2u] = to.z;
}
