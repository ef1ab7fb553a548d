// Points of the grid and their samples in `volume`.

// Points of the word that begins at x that have a neighbour at x + 1.
fn edge_mask(x: u32) -> u32 {
    let left = params.points_x - 1u - min(x, params.points_x - 1u);
    return select((1u << (left & 31u)) - 1u, 0xffffffffu, left >= 32u);
}

// Whether this dispatch processes a row of points.
fn is_here(y: i32) -> bool {
    return y >= i32(params.start_y) && y < i32(params.end_y);
}

// Whether a point of the slab is a sample, not a point beyond the volume.
fn is_sample(point: vec3<i32>) -> bool {
    let pad = i32(params.pad);
    let x = point.x - pad;
    let y = point.y - pad;
    let z = point.z + i32(params.first) - pad;
    return x >= 0 && x < i32(params.width) && y >= 0 && y < i32(params.height) && z >= 0
        && z < i32(params.points_z) - 2 * pad;
}

// Index in `volume` of a point that is a sample.
fn sample_index(point: vec3<i32>) -> u32 {
    let pad = i32(params.pad);
    let z = u32(point.z + params.sample_z);
    let y = u32(point.y - pad) - params.volume_y;
    return (z * params.volume_rows + y) * params.width + u32(point.x - pad);
}

// The nearest point that is a sample.
fn nearest_sample(point: vec3<i32>) -> vec3<i32> {
    let pad = i32(params.pad);
    let shift = vec3(0, 0, i32(params.first));
    let points = vec3<i32>(vec3(params.points_x, params.points_y, params.points_z));
    return clamp(point, vec3(pad) - shift, points - vec3(pad + 1) - shift);
}

fn step_along(axis: u32) -> vec3<i32> {
    return vec3(i32(axis == 0u), i32(axis == 1u), i32(axis == 2u));
}
