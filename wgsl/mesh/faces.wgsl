// Triangles: one workgroup per active block, one invocation per cell with triangles, SIZE at a time.
//
// In: bits, starts, blocks. Out: triangles.

// Number of the vertex on edge `edge` of the cell at bit `bit` of `word`. Edges are numbered as in
// src/kernels/mesh/table.rs: axis * 4 + u + 2 v, where u and v are the offsets along the other two axes.
//
//   point      7 6 5 4 3 2 1 0
//   crossed    0 1 0 1 0 0 1 0
//   number     n+2 . n+1 . . n .    number(x) = n + countOneBits(crossed & ((1 << x) - 1))
//
// where n is the first vertex of the word on edges along this axis.
fn vertex_id(word: u32, bit: u32, edge: u32) -> u32 {
    let axis = edge / 4u;
    let u = edge & 1u;
    let v = (edge >> 1u) & 1u;
    // Word and bit of the lower point of the edge.
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
    // Bit 31 lacks the next word's first point, but only bits below x are counted.
    var mask = here ^ (here >> 1u);
    if axis != 0u {
        mask = here ^ bits[at + select(params.slice_words, params.words, axis == 1u)];
    }
    if HAS_NAN {
        mask &= touches_valid(at, position_of(at))[axis];
    }
    let start = starts[at];
    var id = blocks[section(VERTICES, at / SIZE)] + (start & 0x7fffu);
    id += select(0u, (start >> 15u) & 0x3fu, axis >= 1u);
    id += select(0u, start >> 21u, axis == 2u);
    return params.first_vertex + id + countOneBits(mask & ((1u << x) - 1u));
}

// Corners of the cells of each word.
var<workgroup> corner_rows: array<vec4<u32>, SIZE>;
var<workgroup> corner_steps: array<vec4<u32>, SIZE>;
// Cells of each word with triangles, and the number of such cells before the word.
var<workgroup> active_cells: array<vec2<u32>, SIZE>;

@compute @workgroup_size(SIZE)
fn faces(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let active_index = group_index(group, groups);
    if active_index >= params.active_blocks {
        return;
    }
    let block = active_block(active_index);
    let word = block * SIZE + lane;
    var cells = 0u;
    if word < params.numbered {
        let found = word_at(word, position_of(word));
        cells = mixed(found.corners) & found.cells;
        corner_rows[lane] = found.corners.rows;
        corner_steps[lane] = found.corners.steps;
    }
    let before = sum_before(lane, countOneBits(cells));
    let cell_count = uniform_sum_of_all();
    active_cells[lane] = vec2(cells, before);
    workgroupBarrier();
    var first = blocks[section(TRIANGLES, block)] - params.triangle_start;
    for (var start = 0u; start < cell_count; start += SIZE) {
        let index = start + lane;
        var edges_at = 0u;
        var count = 0u;
        var low = 0u;
        var bit = 0u;
        if index < cell_count {
            // The word with this cell.
            for (var size = SIZE / 2u; size > 0u; size /= 2u) {
                if active_cells[low + size].y <= index {
                    low += size;
                }
            }
            bit = select_bit(active_cells[low].x, index - active_cells[low].y);
            let corners = Corners(corner_rows[low], corner_steps[low]);
            let case_number = case_at(corners, bit);
            let info = blocks[CASE_INFO + case_number];
            edges_at = 2u * case_number;
            count = info & 15u;
            if EXACT && (info & HAS_VARIANTS) != 0u {
                let before_it = ambiguous(corners) & active_cells[low].x & ((1u << bit) - 1u);
                edges_at = variant_at(block * SIZE + low, countOneBits(before_it), info);
                count = blocks[edges_at + 4u] & 0xffu;
            }
        }
        let triangles_before = sum_before(lane, count);
        let here = sum_of_all();
        var at = 3u * (first + triangles_before);
        for (var i = 0u; i < 3u * count; i++) {
            let edges = blocks[edges_at + i / 8u];
            triangles[at + i] = vertex_id(block * SIZE + low, bit, (edges >> (4u * (i % 8u))) & 15u);
        }
        first += here;
        workgroupBarrier();
    }
}
