// Copies a buffer. The bandwidth of other kernels is compared with that of this copy.

@group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> target_: array<vec4<u32>>;

@compute @workgroup_size(256)
fn copy(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    // Four vectors per invocation, 256 apart, so that several loads are in flight.
    let base = (group.y * groups.x + group.x) * 1024u + lane;
    let end = arrayLength(&source);
    for (var i = 0u; i < 4u; i++) {
        let at = base + i * 256u;
        if at < end {
            target_[at] = source[at];
        }
    }
}
