// Normals of vertices: the unit vector opposite to the gradient, which is interpolated between central differences at
// both ends of the edge.
//
// In: as for `vertices`. Out: normals.

// Returns the value, and keeps the compiler from fusing the operations before and after it, so that every device rounds
// after each operation, as the CPU does.
fn rounded(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) ^ params.zero);
}

fn rounded_all(value: vec3<f32>) -> vec3<f32> {
    return bitcast<vec3<f32>>(bitcast<vec3<u32>>(value) ^ vec3(params.zero));
}

// The values, or 0 where they are below 2^-40.
fn flush_tiny(value: vec3<f32>) -> vec3<f32> {
    let bits = bitcast<vec3<u32>>(value);
    return bitcast<vec3<f32>>(select(bits, vec3(0u), (bits & vec3(0x7fffffffu)) < vec3(0x2b800000u)));
}

fn squared_length(v: vec3<f32>) -> f32 {
    let squares = rounded_all(v * v);
    return squares.x + squares.y + squares.z;
}

// Exponent of the largest component, plus 127.
fn exponent(a: vec3<f32>, b: vec3<f32>) -> u32 {
    let bits = max(bitcast<vec3<u32>>(a) & vec3(0x7fffffffu), bitcast<vec3<u32>>(b) & vec3(0x7fffffffu));
    return max(max(bits.x, bits.y), bits.z) >> 23u;
}

// Reciprocal square root to about 2 units in the last place, by Newton's method: the built-in functions of devices
// round differently.
fn inverse_sqrt(value: f32) -> f32 {
    let half = 0.5 * value;
    var result = bitcast<f32>(0x5f375a86u - (bitcast<u32>(value) >> 1u));
    for (var i = 0; i < 3; i++) {
        let product = rounded(rounded(half * result) * result);
        result *= 1.5 - product;
    }
    return result;
}

fn gradient(point: vec3<i32>) -> vec3<f32> {
    var result: vec3<f32>;
    for (var axis = 0u; axis < 3u; axis++) {
        let step = step_along(axis);
        let low = nearest_sample(point - step);
        let high = nearest_sample(point + step);
        // The samples are one step apart at the volume's border, two elsewhere.
        let is_border = low[axis] != (point - step)[axis] || high[axis] != (point + step)[axis];
        let difference = sample(sample_index(high)) - sample(sample_index(low));
        result[axis] = difference * (params.per_step[axis] * select(0.5, 1.0, is_border));
    }
    return rounded_all(result);
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
        // Rounded down to a multiple of 2^-24, so that smaller differences to the CPU do not matter.
        let t = f32(u32(vertex_crossing(vertex) * 0x1p24f)) * 0x1p-24f;
        let step = step_along(vertex.axis);
        var a = gradient(vertex.point);
        var b = gradient(vertex.point + step);
        var normal: vec3<f32>;
        var is_clear = false;
        // Devices differ where gradients are very small, large or infinite.
        let exponent = exponent(a, b);
        if exponent >= 47u && exponent <= 207u {
            // Scales the largest component to between 1 and 2.
            let scale = bitcast<f32>((254u - exponent) << 23u);
            a = flush_tiny(a * scale);
            b = flush_tiny(b * scale);
            let down = rounded_all(-(a + rounded_all((b - a) * t)));
            let squared = squared_length(down);
            // Where the gradients of both ends cancel out, only rounding errors are left.
            is_clear = squared > 1e-10 * (squared_length(a) + squared_length(b));
            normal = flush_tiny(down * inverse_sqrt(squared));
        }
        if !is_clear {
            // Along the edge, towards its outer end.
            let inside = sample(sample_index(nearest_sample(vertex.point))) > params.threshold;
            normal = vec3(0.0);
            normal[vertex.axis] = select(-1.0, 1.0, inside);
        }
        let at = 3u * (first + i);
        normals[at] = normal.x;
        normals[at + 1u] = normal.y;
        normals[at + 2u] = normal.z;
    }
}
