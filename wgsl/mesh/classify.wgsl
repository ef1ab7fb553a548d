// One bit per point: whether its sample is greater than the threshold; 0 beyond the samples. An invocation computes one
// word of 32 points.
//
// In: volume. Out: the planes `inside` and, with NaN, `numbers`.

@compute @workgroup_size(SIZE)
fn classify(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let word = group_index(group, groups) * SIZE + lane;
    let below = u32(HAS_NAN);
    if word >= (params.slices + below) * params.slice_words {
        return;
    }
    let position = vec3<i32>(position_of(word)) - vec3(0, 0, i32(below));
    if !is_here(position.y) {
        return;
    }
    var inside = 0u;
    var number = 0xffffffffu;
    for (var bit = 0; bit < 32; bit++) {
        let point = position + vec3(bit, 0, 0);
        if is_sample(point) {
            let value = sample(sample_index(point));
            if HAS_NAN && is_nan(value) {
                number &= ~(1u << u32(bit));
            } else if value > params.threshold {
                inside |= 1u << u32(bit);
            }
        }
    }
    if position.z >= 0 {
        bits[word - below * params.slice_words] = inside;
    }
    if HAS_NAN {
        bits[numbers_plane() + word] = number;
    }
}

// `classify` for u8, sixteen samples at a time. Used if the width is a multiple of 16, no point lies beyond the
// samples, and all rows are in one buffer.
@compute @workgroup_size(SIZE)
fn classify_u8(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let word = group_index(group, groups) * SIZE + lane;
    if word >= params.slices * params.slice_words {
        return;
    }
    let row = word / params.words;
    let column = word - row * params.words;
    let row_vectors = params.width / 16u;
    let min_inside = i32(clamp(floor(params.threshold), -1.0, 255.0)) + 1;
    let low = (0x80u - (u32(min_inside) & 0x7fu)) * 0x01010101u;
    let first_row = u32(i32(params.height) * params.sample_z);
    var inside = 0u;
    for (var half = 0u; half < 2u; half++) {
        let vector = 2u * column + half;
        if vector < row_vectors && min_inside < 256 {
            let lanes = volume4[(first_row + row) * row_vectors + vector];
            let high = min_inside >= 128;
            let found = at_least(lanes.x, low, high) | (at_least(lanes.y, low, high) << 4u)
                | (at_least(lanes.z, low, high) << 8u) | (at_least(lanes.w, low, high) << 12u);
            inside |= found << (16u * half);
        }
    }
    bits[word] = inside;
}

// Compares four packed u8 lanes v with L and returns four bits, set where v >= L (SWAR). With l = L % 128 and
// `low` = 128 - l in each lane, the seven low bits of v carry into the eighth if they are at least l:
//
//   v               hvvvvvvv
//   v & 0x7f        0vvvvvvv
//     + 128 - l     cxxxxxxx      c = (v % 128 >= l), no carry into the next lane
//   v >= L  =       c or h where L < 128, c and h where L >= 128 (`is_high`)
//
// After the shift, bit 8 i times 2^(28 - 7 i) is bit 28 + i.
fn at_least(lanes: u32, low: u32, is_high: bool) -> u32 {
    let carry = (lanes & 0x7f7f7f7fu) + low;
    let above = select(carry | lanes, carry & lanes, is_high);
    return (((above >> 7u) & 0x01010101u) * 0x10204080u) >> 28u;
}
