// Faces: one workgroup per block, one invocation per quad, SIZE at a time.
//
// In: volume, edge_bits, blocks. Out: faces. src/kernels/mesh/labels/cpu/quads.rs and sheets.rs explain the steps.

// The set of corners of a cell that have the label.
fn label_mask(label: u32, cell: vec3<u32>) -> u32 {
    var mask = 0u;
    for (var corner = 0u; corner < 8u; corner++) {
        let point = cell + vec3(corner & 1u, (corner >> 1u) & 1u, corner >> 2u);
        mask |= u32(label_at(point) == label) << corner;
    }
    return mask;
}

// The sheet of `label` in `cell` that crosses edge `edge` of the cell.
fn sheet_of(label: u32, cell: vec3<u32>, edge: u32) -> u32 {
    if label == 0u {
        return 0u;
    }
    let mask = label_mask(label, cell);
    var sheets = blocks[mask];
    let face = sheets >> 24u;
    if face != 0u {
        // The face joins corners only if it may do so in both of its cells.
        let axis = (face - 1u) / 2u;
        let step = vec3(u32(axis == 0u), u32(axis == 1u), u32(axis == 2u));
        let is_above = ((face - 1u) & 1u) == 1u;
        let other = select(cell - step, cell + step, is_above);
        if blocks[label_mask(label, other)] >> 24u == ((face - 1u) ^ 1u) + 1u {
            sheets = blocks[JOINED + mask];
        }
    }
    return (sheets >> (2u * edge)) & 3u;
}

// The four cells around an edge, counter-clockwise as seen from its upper end, as steps back from its lower end along
// the other two axes, in the cyclic order x, y, z.
fn around(corner: u32) -> vec2<u32> {
    return vec2(u32(corner == 0u || corner == 3u), u32(corner < 2u));
}

@compute @workgroup_size(SIZE)
fn quads(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let block = group_index(group, groups);
    if block >= params.blocks {
        return;
    }
    load_starts(block, lane, QUADS, 14u);
    let first = blocks[section(QUADS, block)];
    let base = params.first_vertex - params.core_vertex;
    for (var i = lane; i < block_count; i += SIZE) {
        let low = word_with(i);
        let word = block * SIZE + low;
        let position = position_of(word);
        if !is_here(position.z) {
            continue;
        }
        // The point where this edge begins: the last one with no more than `left` crossed edges before it.
        let along = vec3(edge_bits[3u * word], edge_bits[3u * word + 1u], edge_bits[3u * word + 2u]);
        var left = i - word_starts[low];
        var bit = 0u;
        for (var size = 16u; size > 0u; size /= 2u) {
            let part = countOneBits((along >> vec3(bit)) & vec3((1u << size) - 1u));
            let n = part.x + part.y + part.z;
            if left >= n {
                left -= n;
                bit += size;
            }
        }
        let has = (along >> vec3(bit)) & vec3(1u);
        var axis = 0u;
        if left >= has.x {
            left -= has.x;
            axis = select(2u, 1u, left < has.y);
        }
        let point = vec3(position.x + bit, position.y, position.z + params.first);
        let step = vec3(u32(axis == 0u), u32(axis == 1u), u32(axis == 2u));
        let ends = vec2(label_at(point), label_at(point + step));
        var corners = vec4(0u);
        var folds = 0u;
        for (var corner = 0u; corner < 4u; corner++) {
            let before = cell_before(axis, corner);
            let row = word - before.y * params.words - before.z * params.slice_words;
            corners[corner] = base + rank(row, bit) - before.x;
            let x = bit - before.x;
            if before.x > bit {
                folds |= blocks[params.starts + 3u * (row - 1u) + 2u] >> 31u;
            } else {
                folds |= (blocks[params.starts + 3u * row + 2u] >> x) & 1u;
            }
        }
        var sheets = vec2(0u);
        if folds != 0u {
            for (var corner = 0u; corner < 4u; corner++) {
                let before = cell_before(axis, corner);
                let cell = point - before;
                var edge = before.y + 2u * before.z;
                if axis == 1u {
                    edge = 4u + before.x + 2u * before.z;
                } else if axis == 2u {
                    edge = 8u + before.x + 2u * before.y;
                }
                sheets.x |= sheet_of(ends.x, cell, edge) << (2u * corner);
                sheets.y |= sheet_of(ends.y, cell, edge) << (2u * corner);
            }
        }
        var labels = ends;
        if ends.x == 0u || (ends.y != 0u && ends.y < ends.x) {
            // The quad as seen from its other side.
            corners = corners.xwzy;
            labels = ends.yx;
            let swapped = sheets.yx;
            sheets = (swapped & vec2(0x33u)) | (swapped & vec2(0x0cu)) << vec2(4u) | (swapped & vec2(0xc0u)) >> vec2(4u);
        }
        let at = 7u * (first + i);
        faces[at] = corners.x;
        faces[at + 1u] = corners.y;
        faces[at + 2u] = corners.z;
        faces[at + 3u] = corners.w;
        faces[at + 4u] = labels.x;
        faces[at + 5u] = labels.y;
        faces[at + 6u] = sheets.x | sheets.y << 8u;
    }
}

// The same as steps back along x, y and z, for an edge along `axis`.
fn cell_before(axis: u32, corner: u32) -> vec3<u32> {
    let d = around(corner);
    if axis == 0u {
        return vec3(0u, d);
    }
    if axis == 1u {
        return vec3(d.y, 0u, d.x);
    }
    return vec3(d, 0u);
}
