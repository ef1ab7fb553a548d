// Normals of vertices: the unit vector down the gradient, by central differences at both ends of the edge,
// interpolated.
//
// In: as `vertices`. Out: normals.

// Each result of an operation goes through its bits, so that the compiler cannot fuse it with the next one, and every
// device rounds as often as the CPU. Results below 2^-100 become 0, since devices round differently near the least
// normal number.
fn rounded(value: f32) -> f32 {
    let bits = bitcast<u32>(value);
    return bitcast<f32>(select(bits, 0u, (bits & 0x7fffffffu) < 0x0d800000u));
}

fn rounded_all(value: vec3<f32>) -> vec3<f32> {
    return vec3(rounded(value.x), rounded(value.y), rounded(value.z));
}

fn squared_length(v: vec3<f32>) -> f32 {
    let squares = rounded_all(v * v);
    return rounded(rounded(squares.x + squares.y) + squares.z);
}

// The reciprocal of the square root, to about 2 units in the last place, by Newton's method: the device's own functions
// round differently.
fn inverse_sqrt(value: f32) -> f32 {
    let half = 0.5 * value;
    var result = bitcast<f32>(0x5f375a86u - (bitcast<u32>(value) >> 1u));
    for (var i = 0; i < 3; i++) {
        let product = rounded(rounded(half * result) * result);
        result = rounded(result * rounded(1.5 - product));
    }
    return result;
}

fn gradient(point: vec3<i32>) -> vec3<f32> {
    var result: vec3<f32>;
    let per_step = vec3(params.per_step_x, params.per_step_y, params.per_step_z);
    for (var axis = 0u; axis < 3u; axis++) {
        let step = step_along(axis);
        let low = into_samples(point - step);
        let high = into_samples(point + step);
        // One step at the volume's border along this axis, two elsewhere.
        let below = (point - step)[axis];
        let above = (point + step)[axis];
        let is_border = min(abs(low[axis] - below), 1) + min(abs(high[axis] - above), 1) > 0;
        let difference = rounded(sample(sample_index(high)) - sample(sample_index(low)));
        result[axis] = rounded(difference * (per_step[axis] * select(0.5, 1.0, is_border)));
    }
    return result;
}

@compute @workgroup_size(SIZE)
fn vertex_normals(
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
    for (var i = lane; i < vertex_count; i += SIZE) {
        let vertex = vertex_at(block, i);
        if !is_here(vertex.point.y) {
            continue;
        }
        // To 24 bits after the point: below, `vertex_crossing` is not that of the CPU.
        let t = f32(u32(vertex_crossing(vertex) * 0x1p24f)) * 0x1p-24f;
        let step = step_along(vertex.axis);
        let a = gradient(vertex.point);
        let b = gradient(vertex.point + step);
        let down = -rounded_all(a + rounded_all(rounded_all(b - a) * t));
        let squared = squared_length(down);
        var normal: vec3<f32>;
        // Where both ends' gradients cancel out, only rounding is left.
        let least = rounded(1e-10 * rounded(squared_length(a) + squared_length(b)));
        if squared > least && !is_infinite(squared) && !is_nan(squared) {
            normal = rounded_all(down * inverse_sqrt(squared));
        } else {
            // A flat or infinite gradient: along the edge, towards its outer end.
            let inside = sample(sample_index(into_samples(vertex.point))) > params.threshold;
            normal[vertex.axis] = select(-1.0, 1.0, inside);
        }
        let at = 3u * (first + i);
        normals[at] = normal.x;
        normals[at + 1u] = normal.y;
        normals[at + 2u] = normal.z;
    }
}
