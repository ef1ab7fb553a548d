// Counts vertices and triangles: one invocation per word and one workgroup per block, then one workgroup for all
// blocks.
//
// In: bits. Out: `count` writes starts, and counts to the sections VERTICES, TRIANGLES and NAN_CELLS. `scan` replaces
// the first two by their exclusive prefix sums and writes ACTIVE and TOTALS.

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
    var n = vec3(0u);
    var found_triangles = 0u;
    var nan_cells = 0u;
    if word < params.numbered {
        let found = word_at(word, position_of(word));
        n = countOneBits(found.crossed);
        found_triangles = count_triangles(word, found.corners, found.cells);
        nan_cells = found.nan_cells;
    }
    // At most 256 * 96 vertices and 256 * 320 triangles, so the sums fit 15 and 17 bits of one word.
    let vertices = n.x + n.y + n.z;
    let before = sum_before(lane, vertices | (found_triangles << 15u));
    if word < params.numbered {
        starts[word] = (before & 0x7fffu) | (n.x << 15u) | (n.y << 21u);
    }
    if lane == 0u {
        let all = sum_of_all();
        blocks[section(VERTICES, block)] = all & 0x7fffu;
        blocks[section(TRIANGLES, block)] = all >> 15u;
    }
    if HAS_NAN {
        workgroupBarrier();
        _ = sum_before(lane, nan_cells);
        if lane == 0u {
            blocks[section(NAN_CELLS, block)] = sum_of_all();
        }
    }
}

// Vertices, triangles, whether the block is active, cells with NaN.
fn block_counts(block: u32) -> vec4<u32> {
    let vertices = blocks[section(VERTICES, block)];
    let found_triangles = blocks[section(TRIANGLES, block)];
    let is_owned = block * SIZE < params.owned;
    var nan_cells = 0u;
    if HAS_NAN {
        nan_cells = blocks[section(NAN_CELLS, block)];
    }
    let is_active = is_owned && (vertices | found_triangles) != 0u;
    return vec4(vertices, found_triangles, u32(is_active), nan_cells);
}

// Consecutive blocks that an invocation of `scan` sums up.
const RUN = 8u;

// One workgroup, SIZE * RUN blocks at a time.
@compute @workgroup_size(SIZE)
fn scan(@builtin(local_invocation_index) lane: u32) {
    let n = params.blocks;
    // The sums of `block_counts` over all blocks before `start`.
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
            blocks[section(VERTICES, block)] = before.x;
            blocks[section(TRIANGLES, block)] = before.y;
            if here.z == 1u {
                blocks[section(ACTIVE, before.z)] = block;
            }
            before += here;
        }
    }
    var vertices = before_all.x;
    storageBarrier();
    if lane == 0u {
        if params.owned < params.numbered {
            // The vertices of the topmost slice are numbered here but emitted by the next slab.
            vertices = blocks[section(VERTICES, params.owned / SIZE)] + (starts[params.owned] & 0x7fffu);
        }
        let totals = section(TOTALS, 0u);
        blocks[totals] = vertices;
        blocks[totals + 1u] = before_all.y;
        blocks[totals + 2u] = before_all.z;
        blocks[totals + 3u] = before_all.w;
    }
}
