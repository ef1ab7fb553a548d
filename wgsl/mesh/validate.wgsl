// Finds the valid cells: those without NaN at a corner. Other cells have no triangles, and an edge has a vertex only if
// it touches a valid cell. Runs with HAS_NAN only. An invocation computes one word.
//
// In: the plane `numbers`. Out: the plane `valid`, from the layer below the first on.

fn numbers_plane() -> u32 {
    return params.slices * params.slice_words;
}

fn valid_plane() -> u32 {
    return (2u * params.slices + 1u) * params.slice_words;
}

@compute @workgroup_size(SIZE)
fn validate(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let word = group_index(group, groups) * SIZE + lane;
    if word >= (params.layers + 2u) * params.slice_words {
        return;
    }
    let position = position_of(word);
    let layer = params.first + position.z;
    var valid = 0u;
    if layer >= 1u && layer < params.points_z && position.y + 1u < params.points_y {
        let n = corners_at(numbers_plane(), word, position, params.slice_words);
        let four = n.rows & n.steps;
        valid = four.x & four.y & four.z & four.w & edge_mask(position.x);
    }
    bits[valid_plane() + word] = valid;
}

// Edges along x, y and z from the points of a word that touch a valid cell which begins at the same x.
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

// Edges along x, y and z from the points of a word that touch a valid cell. Edges along y and z also touch cells that
// begin at x - 1, one bit lower.
fn touches_valid(word: u32, position: vec3<u32>) -> vec3<u32> {
    var found = valid_around(word, position.y);
    found |= (found << vec3(1u)) & vec3(0u, 0xffffffffu, 0xffffffffu);
    if position.x > 0u {
        found |= (valid_around(word - 1u, position.y) >> vec3(31u)) & vec3(0u, 1u, 1u);
    }
    return found;
}
