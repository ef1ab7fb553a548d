// Exclusive prefix sums over the SIZE = 256 invocations of a workgroup (Hillis and Steele 1986). The two halves of
// `lane_sums` alternate as source and target.

var<workgroup> lane_sums: array<u32, 512>;

// Sum of `value` over the lanes before this one. All lanes must call it.
fn sum_before(lane: u32, value: u32) -> u32 {
    var base = 0u;
    lane_sums[lane] = value;
    workgroupBarrier();
    for (var step = 1u; step < SIZE; step *= 2u) {
        var sum = lane_sums[base + lane];
        if lane >= step {
            sum += lane_sums[base + lane - step];
        }
        base = SIZE - base;
        lane_sums[base + lane] = sum;
        workgroupBarrier();
    }
    return lane_sums[base + lane] - value;
}

// Sum over all lanes, after `sum_before`, whose eight steps end in the half of `lane_sums` where they began.
fn sum_of_all() -> u32 {
    return lane_sums[SIZE - 1u];
}

// `sum_of_all` for the bound of a loop with barriers, where WGSL requires a value that is uniform in the workgroup. All
// lanes must call it.
fn uniform_sum_of_all() -> u32 {
    return workgroupUniformLoad(&lane_sums[SIZE - 1u]);
}
