// Which variant of its case a cell is, where its corners do not tell what is joined: the numbers, and why their signs
// decide, are those of src/kernels/mesh/deciders.rs. Runs where EXACT; an invocation makes one word.
//
// In: volume, bits, blocks (the table of variants). Out: the planes of variants, at words with an ambiguous cell. No
// others are read.

// Planes of variants: bit i of a cell's variant, counted from the first of its case, is in plane i.
const VARIANT_PLANES = 7u;
// In `blocks`, a word a case: bits 0..15 its first variant; bits 16..21 the faces whose corners alternate; bit 31 whether it
// has variants.
const VARIANT_CASES = 768u;
// In `blocks`, five words a variant: 30 edge numbers of 4 bits, the corners of its triangles; then
//   bits  0..7    triangles
//   bits  8..15   discs
//   bits 16..23   tunnels that there may be
//   bits 24..31   the variant with the first of them
const VARIANTS = 1024u;
const VARIANT_WORDS = 5u;

fn variant_plane(plane: u32) -> u32 {
    let others = params.slices + select(0u, params.slices + params.layers + 3u, HAS_NAN);
    return (others + plane * params.layers) * params.slice_words;
}

fn has_variants(case_number: u32) -> bool {
    return (blocks[VARIANT_CASES + case_number] >> 31u) == 1u;
}

// Where the variant begins in `blocks` of the cell at a bit of a word, which has variants.
fn variant_at(word: u32, bit: u32, case_number: u32) -> u32 {
    var variant = blocks[VARIANT_CASES + case_number] & 0xffffu;
    for (var plane = 0u; plane < VARIANT_PLANES; plane++) {
        variant += ((bits[variant_plane(plane) + word] >> bit) & 1u) << plane;
    }
    return VARIANTS + VARIANT_WORDS * variant;
}

@compute @workgroup_size(SIZE)
fn resolve(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let word = group_index(group, groups) * SIZE + lane;
    if word >= params.layers * params.slice_words {
        return;
    }
    let place = place_of(word);
    if !is_here(i32(place.y)) {
        return;
    }
    let found = word_at(word, place);
    var left = ambiguous(found.corners) & found.cells;
    if left == 0u {
        return;
    }
    var planes: array<u32, VARIANT_PLANES>;
    while left != 0u {
        let bit = firstTrailingBit(left);
        left &= left - 1u;
        let variant = variant_of(vec3<i32>(place) + vec3(i32(bit), 0, 0), case_at(found.corners, bit));
        for (var plane = 0u; plane < VARIANT_PLANES; plane++) {
            planes[plane] |= ((variant >> plane) & 1u) << bit;
        }
    }
    for (var plane = 0u; plane < VARIANT_PLANES; plane++) {
        bits[variant_plane(plane) + word] = planes[plane];
    }
}

// The corners of a cell: bit i of `inside` for corner i, and the bits of its distance from the isovalue.
struct Cell {
    inside: u32,
    distances: array<u32, 8>,
}

// The variant of the cell at a point, counted from the first of its case.
fn variant_of(point: vec3<i32>, case_number: u32) -> u32 {
    var cell: Cell;
    cell.inside = case_number;
    for (var corner = 0u; corner < 8u; corner++) {
        // x, y: 00, 10, 11, 01, then the same above.
        let offset = vec3(((corner + 1u) >> 1u) & 1u, (corner >> 1u) & 1u, corner >> 2u);
        cell.distances[corner] = distance_at(point + vec3<i32>(offset));
    }
    let info = blocks[VARIANT_CASES + case_number];
    var choice = 0u;
    var choices = 0u;
    for (var face = 0u; face < 6u; face++) {
        if ((info >> (16u + face)) & 1u) == 1u {
            choice |= u32(joins_inside(&cell, face)) << choices;
            choices += 1u;
        }
    }
    let variant = blocks[VARIANTS + VARIANT_WORDS * ((info & 0xffffu) + choice) + 4u];
    let tunnels = (variant >> 16u) & 0xffu;
    if tunnels == 0u {
        return choice;
    }
    let found = tunnel(&cell);
    if found == 0 {
        return choice;
    }
    return (variant >> 24u) + u32(tunnels == 2u && found < 0);
}

// The bits of a point's distance from the isovalue, halved where differences may overflow. What is beyond the samples is
// outside, and no variant depends on how far.
fn distance_at(point: vec3<i32>) -> u32 {
    if params.pad == 1u && !is_sample(point) {
        return 0u;
    }
    let value = sample(sample_index(point));
    if KIND == 4u {
        let difference = bitcast<u32>(half_of(value) - half_of(params.level));
        return min(flushed(difference) & 0x7fffffffu, 0x7f7fffffu);
    }
    return bitcast<u32>(abs(value - params.level));
}

// A corner's distance as an integer, in units of the 24th bit of one with the exponent `largest`.
fn units(cell: ptr<function, Cell>, corner: u32, largest: u32) -> i32 {
    let distance = (*cell).distances[corner];
    let exponent = distance >> 23u;
    let shift = largest - exponent;
    var whole = 0u;
    if exponent > 0u && shift < 32u {
        whole = ((distance & 0x7fffffu) | 0x800000u) >> shift;
    }
    // What is inside is above the isovalue, however little.
    let is_inside = (((*cell).inside >> corner) & 1u) == 1u;
    return select(-i32(whole), i32(max(whole, 1u)), is_inside);
}

// The corners of each face, counter-clockwise as seen from outside the cube.
fn face_corners(face: u32) -> vec4<u32> {
    switch face {
        case 0u: { return vec4(0u, 3u, 2u, 1u); }
        case 1u: { return vec4(4u, 5u, 6u, 7u); }
        case 2u: { return vec4(0u, 1u, 5u, 4u); }
        case 3u: { return vec4(3u, 7u, 6u, 2u); }
        case 4u: { return vec4(0u, 4u, 7u, 3u); }
        default: { return vec4(1u, 2u, 6u, 5u); }
    }
}

// Whether the inside corners of an alternating face are joined on it.
fn joins_inside(cell: ptr<function, Cell>, face: u32) -> bool {
    let corners = face_corners(face);
    var largest = 0u;
    for (var i = 0u; i < 4u; i++) {
        largest = max(largest, (*cell).distances[corners[i]] >> 23u);
    }
    let a = units(cell, corners.x, largest);
    let b = units(cell, corners.y, largest);
    let c = units(cell, corners.z, largest);
    let d = units(cell, corners.w, largest);
    let more = wide_sign(determinant_of(a, b, c, d));
    if a > 0 {
        return more > 0;
    }
    return more < 0;
}

// a c - b d
fn determinant_of(a: i32, b: i32, c: i32, d: i32) -> Wide {
    return wide_subtract(wide_multiply(wide(a), wide(c)), wide_multiply(wide(b), wide(d)));
}

// The slices between two faces: q0, q1 and m with their coefficients of -e.
struct Slices {
    q: array<Wide, 2>,
    q_slope: array<i32, 2>,
    m: Wide,
    m_slope: i32,
}

fn slices_of(corners: ptr<function, array<i32, 8>>, from_face: vec4<u32>, to_face: vec4<u32>) -> Slices {
    let a = vec2((*corners)[from_face.x], (*corners)[to_face.x]);
    let b = vec2((*corners)[from_face.y], (*corners)[to_face.y]);
    let c = vec2((*corners)[from_face.z], (*corners)[to_face.z]);
    let d = vec2((*corners)[from_face.w], (*corners)[to_face.w]);
    let sums = a + c - b - d;
    var found: Slices;
    found.q[0] = determinant_of(a.x, b.x, c.x, d.x);
    found.q[1] = determinant_of(a.y, b.y, c.y, d.y);
    found.q_slope[0] = sums.x;
    found.q_slope[1] = sums.y;
    found.m = wide_add(determinant_of(a.x, b.x, c.y, d.y), determinant_of(a.y, b.y, c.x, d.x));
    found.m_slope = sums.x + sums.y;
    return found;
}

fn sign_or_slope(value: Wide, slope: i32) -> i32 {
    let found = wide_sign(value);
    return select(found, -sign(slope), found == 0);
}

fn has_turn(slices: ptr<function, Slices>) -> bool {
    let first = sign_or_slope((*slices).q[0], (*slices).q_slope[0]);
    let second = sign_or_slope((*slices).q[1], (*slices).q_slope[1]);
    let between = sign_or_slope((*slices).m, (*slices).m_slope);
    return first == second && first != 0 && between == -first;
}

fn twice(value: Wide) -> Wide {
    return wide_add(value, value);
}

// The sign of m^2 - 4 q0 q1.
fn discriminant_sign(slices: ptr<function, Slices>) -> i32 {
    let q0 = (*slices).q[0];
    let q1 = (*slices).q[1];
    let m = (*slices).m;
    let value = wide_subtract(wide_multiply(m, m), wide_multiply(twice(q0), twice(q1)));
    let found = wide_sign(value);
    if found != 0 {
        return found;
    }
    let s0 = (*slices).q_slope[0];
    let s1 = (*slices).q_slope[1];
    let ends = wide_add(wide_multiply(q0, wide(s1)), wide_multiply(q1, wide(s0)));
    let middle = wide_multiply(m, wide((*slices).m_slope));
    let slope = wide_sign(wide_subtract(twice(ends), middle));
    return select(slope, i32(s0 != s1), slope == 0);
}

// 0 without a tunnel; else greater where it joins inside corners, less where outside ones.
fn tunnel(cell: ptr<function, Cell>) -> i32 {
    var largest = 0u;
    for (var corner = 0u; corner < 8u; corner++) {
        largest = max(largest, (*cell).distances[corner] >> 23u);
    }
    var corners: array<i32, 8>;
    for (var corner = 0u; corner < 8u; corner++) {
        corners[corner] = units(cell, corner, largest);
    }
    var along_x = slices_of(&corners, vec4(0u, 3u, 7u, 4u), vec4(1u, 2u, 6u, 5u));
    var along_y = slices_of(&corners, vec4(0u, 4u, 5u, 1u), vec4(3u, 7u, 6u, 2u));
    var slices = slices_of(&corners, vec4(0u, 1u, 2u, 3u), vec4(4u, 5u, 6u, 7u));
    let has_turns = has_turn(&slices) && has_turn(&along_y) && has_turn(&along_x);
    if !has_turns || discriminant_sign(&slices) <= 0 {
        return 0;
    }
    let a = vec2(corners[0], corners[4]);
    let first = wide_multiply(wide(a.x), wide_subtract(slices.m, twice(slices.q[1])));
    let second = wide_multiply(wide(a.y), wide_subtract(slices.m, twice(slices.q[0])));
    var joined = wide_sign(wide_add(first, second));
    if joined == 0 {
        let slope = wide_multiply(wide(a.x - a.y), wide(slices.q_slope[1] - slices.q_slope[0]));
        let rest = wide_subtract(slices.m, wide_add(slices.q[0], slices.q[1]));
        joined = wide_sign(wide_subtract(slope, twice(rest)));
    }
    return select(-1, 1, joined > 0);
}
