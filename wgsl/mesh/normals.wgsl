// Normals of vertices: the unit vector down the gradient, by central differences at both ends of the edge,
// interpolated.
//
// In: as `vertices`. Out: normals.

fn gradient(point: vec3<i32>) -> vec3<f32> {
    var result: vec3<f32>;
    let spacing = vec3(params.spacing_x, params.spacing_y, params.spacing_z);
    for (var axis = 0u; axis < 3u; axis++) {
        let step = step_along(axis);
        let low = into_samples(point - step);
        let high = into_samples(point + step);
        // One step at the volume's border along this axis, two elsewhere.
        let below = (point - step)[axis];
        let above = (point + step)[axis];
        let steps = max(2 - min(abs(low[axis] - below), 1) - min(abs(high[axis] - above), 1), 1);
        let difference = sample(sample_index(high)) - sample(sample_index(low));
        result[axis] = difference / (f32(steps) * spacing[axis]);
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
        let t = vertex_crossing(vertex);
        let step = step_along(vertex.axis);
        let a = gradient(vertex.point);
        let b = gradient(vertex.point + step);
        let down = -(a + (b - a) * t);
        let squared = dot(down, down);
        var normal: vec3<f32>;
        // Where both ends' gradients cancel out, only rounding is left, which differs between devices.
        let least = 1e-10 * (dot(a, a) + dot(b, b));
        if squared >= 0x1p-126f && squared > least && !is_infinite(squared) && !is_nan(squared) {
            normal = down / sqrt(squared);
        } else {
            // A flat or infinite gradient: along the edge, towards its outer end.
            let inside = sample(sample_index(into_samples(vertex.point))) > params.threshold;
            normal = vec3<f32>(step) * select(-1.0, 1.0, inside);
        }
        let at = 3u * (first + i);
        normals[at] = normal.x;
        normals[at + 1u] = normal.y;
        normals[at + 2u] = normal.z;
    }
}
