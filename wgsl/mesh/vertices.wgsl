// Vertices: one workgroup per active block, one invocation per vertex, SIZE at a time.
//
// In: volume, bits, blocks (with starts). Out: positions. The edge of a vertex is found by its number in the block:
// first the word with this vertex, then the axis, then the bit.

// Crossed edges along x, y, z of each word of the block, and its first vertex in the block.
var<workgroup> masks: array<vec4<u32>, SIZE>;
var<workgroup> vertex_count: u32;

// Fills `masks` and `vertex_count`.
fn load_masks(block: u32, lane: u32) {
    let word = block * SIZE + lane;
    masks[lane] = vec4(0u, 0u, 0u, 0xffffffffu);
    if word < params.owned {
        let start = blocks[params.starts + word];
        let first = start & 0x7fffu;
        let crossed = word_at(word, position_of(word)).crossed;
        masks[lane] = vec4(crossed, first);
        if lane == SIZE - 1u || word == params.owned - 1u {
            let n = countOneBits(crossed);
            vertex_count = first + n.x + n.y + n.z;
        }
    }
    workgroupBarrier();
}

struct Vertex {
    // Lower point and axis of its edge.
    point: vec3<i32>,
    axis: u32,
}

fn vertex_at(block: u32, index: u32) -> Vertex {
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
    let position = position_of(block * SIZE + low);
    return Vertex(vec3<i32>(position + vec3(select_bit(mask, rank), 0u, 0u)), axis);
}

fn vertex_crossing(vertex: Vertex) -> f32 {
    let end = vertex.point + step_along(vertex.axis);
    if params.pad == 1u && !(is_sample(vertex.point) && is_sample(end)) {
        // One end lies beyond the samples: the surface is closed on the volume's box.
        return 0.5;
    }
    return crossing(sample(sample_index(vertex.point)), sample(sample_index(end)));
}

// The block of a workgroup.
fn active_block(active_index: u32) -> u32 {
    return blocks[section(ACTIVE, params.first_active + active_index)];
}

@compute @workgroup_size(SIZE)
fn vertices(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let active_index = group_index(group, groups);
    if active_index >= params.active_blocks {
        return;
    }
    let block = active_block(active_index);
    load_masks(block, lane);
    let first = blocks[section(VERTICES, block)] - params.vertex_start;
    let grid_z = i32(params.first);
    for (var i = lane; i < vertex_count; i += SIZE) {
        let vertex = vertex_at(block, i);
        if !is_here(vertex.point.y) {
            continue;
        }
        let t = vertex_crossing(vertex);
        let point = vertex.point + vec3(0, 0, grid_z) - vec3(i32(params.pad));
        let index = (vec3<f32>(point) + vec3(0.5)) + vec3<f32>(step_along(vertex.axis)) * t;
        // The XOR with `zero` keeps the compiler from fusing product and sum, which would round once instead of twice.
        let scaled = bitcast<vec3<f32>>(bitcast<vec3<u32>>(index * params.spacing.xyz) ^ vec3(params.zero));
        let moved = scaled + params.origin.xyz;
        let at = 3u * (first + i);
        positions[at] = moved.x;
        positions[at + 1u] = moved.y;
        positions[at + 2u] = moved.z;
    }
}
