// Exclusive prefix sums over the SIZE invocations of a workgroup (Hillis and Steele 1986), between two
// halves of `lane_sums` in turn. SIZE is 256.

var<workgroup> lane_sums: array<u32, 512>;

// The sum of `value` over the lanes before this one. Every lane calls it.
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

// The sum over all lanes, after `sum_before`: its eight steps end in the half of `lane_sums` where they began.
fn sum_of_all() -> u32 {
    return lane_sums[SIZE - 1u];
}

// `sum_of_all` as a bound of loops with barriers: WGSL must see that the whole workgroup has one value. Every lane
// calls it.
fn uniform_sum_of_all() -> u32 {
    return workgroupUniformLoad(&lane_sums[SIZE - 1u]);
}
