// Decides the variant of each ambiguous cell, by the signs of polynomials that src/kernels/mesh/deciders.rs derives.
// Runs with EXACT only. A workgroup processes a block of words.
//
// In: volume, bits, blocks (the tables). Out: the planes of variants and `starts`, only for words with an ambiguous
// cell; they are not read for other words.

// The variants of the ambiguous cells of a word, counted from the first variant of the case, are packed in bytes, in
// order:
//
//   ambiguous cells   . . 4 . . 3 2 . 1 . 0      from the highest to the lowest bit of the word
//   plane 0           3 2 1 0                    bytes of the word, from the highest to the lowest
//   plane 1           . . . 4
const VARIANT_PLANES = 8u;
// In `blocks`, five words per variant: 30 edge numbers of 4 bits, the corners of its triangles; then
//   bits  0..7    number of triangles
//   bits  8..15   number of discs
//   bits 16..23   number of possible tunnels
//   bits 24..31   variant with the first tunnel
const VARIANTS = 768u;
const VARIANT_WORDS = 5u;

fn variant_plane(plane: u32) -> u32 {
    let others = params.slices + select(0u, params.slices + params.layers + 3u, HAS_NAN);
    return (others + plane * params.layers) * params.slice_words;
}

// Offset in `blocks` of the variant of an ambiguous cell. `rank` is the number of ambiguous cells before it in the
// word, `info` the word of its case from CASE_INFO on.
fn variant_at(word: u32, rank: u32, info: u32) -> u32 {
    let variants = bits[variant_plane(rank / 4u) + word];
    return VARIANTS + VARIANT_WORDS * ((info >> 16u) + ((variants >> (8u * (rank % 4u))) & 0xffu));
}

// Maximum number of cells that an invocation lists in a round.
const LISTED = 4u;
// Ambiguous cells of the block: case | lane of the word << 8 | bit << 16 | rank in the word << 21.
var<workgroup> listed: array<u32, 1024>;
var<workgroup> listed_count: atomic<u32>;
var<workgroup> listed_total: u32;
// For each word of the block, its words in the planes of variants, and the number of discs after the first of each
// cell.
var<workgroup> found_variants: array<atomic<u32>, 2048>;
var<workgroup> found_loops: array<atomic<u32>, SIZE>;

// Few words have ambiguous cells, but those have several. Therefore, the cells of the block are listed in rounds,
// LISTED of each word, and then distributed over all invocations.
@compute @workgroup_size(SIZE)
fn resolve(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = group_index(group, groups) * SIZE;
    let word = first + lane;
    let position = position_of(word);
    var corners: Corners;
    var left = 0u;
    if word < params.layers * params.slice_words && is_here(i32(position.y)) {
        let found = word_at(word, position);
        corners = found.corners;
        left = ambiguous(corners) & found.cells;
    }
    let count = countOneBits(left);
    let planes = (count + 3u) / 4u;
    for (var plane = 0u; plane < planes; plane++) {
        atomicStore(&found_variants[plane * SIZE + lane], 0u);
    }
    atomicStore(&found_loops[lane], 0u);
    loop {
        if lane == 0u {
            atomicStore(&listed_count, 0u);
        }
        workgroupBarrier();
        list(corners, lane, &left, count);
        workgroupBarrier();
        if lane == 0u {
            listed_total = atomicLoad(&listed_count);
        }
        let total = workgroupUniformLoad(&listed_total);
        if total == 0u {
            break;
        }
        for (var i = lane; i < total; i += SIZE) {
            resolve_cell(first, listed[i]);
        }
        workgroupBarrier();
    }
    for (var plane = 0u; plane < planes; plane++) {
        bits[variant_plane(plane) + word] = atomicLoad(&found_variants[plane * SIZE + lane]);
    }
    if count > 0u {
        blocks[params.starts + word] = atomicLoad(&found_loops[lane]);
    }
}

// Moves up to LISTED ambiguous cells of a word from `left` to the list. The word has `count` of them in total.
fn list(corners: Corners, lane: u32, left: ptr<function, u32>, count: u32) {
    let cells = min(countOneBits(*left), LISTED);
    if cells == 0u {
        return;
    }
    let at = atomicAdd(&listed_count, cells);
    for (var i = 0u; i < cells; i++) {
        let bit = firstTrailingBit(*left);
        let rank = count - countOneBits(*left);
        listed[at + i] = case_at(corners, bit) | (lane << 8u) | (bit << 16u) | (rank << 21u);
        *left &= *left - 1u;
    }
}

// Resolves a listed cell of the block that begins at word `first`.
fn resolve_cell(first: u32, cell: u32) {
    let lane = (cell >> 8u) & 0xffu;
    let rank = cell >> 21u;
    let point = vec3<i32>(position_of(first + lane)) + vec3(i32((cell >> 16u) & 31u), 0, 0);
    let info = blocks[CASE_INFO + (cell & 0xffu)];
    let variant = variant_of(point, cell & 0xffu, info);
    let discs = (blocks[VARIANTS + VARIANT_WORDS * ((info >> 16u) + variant) + 4u] >> 8u) & 0xffu;
    atomicOr(&found_variants[(rank / 4u) * SIZE + lane], variant << (8u * (rank % 4u)));
    // -1 if a tunnel leaves no disc; the sum is correct modulo 2^32.
    atomicAdd(&found_loops[lane], discs - 1u);
}

// The corners of a cell: bit i of `inside` is corner i; `low` and `high` are the bits of the distances from the
// isovalue.
struct Cell {
    inside: u32,
    low: vec4<u32>,
    high: vec4<u32>,
}

// The variant of the cell at a point, counted from the first variant of its case.
fn variant_of(point: vec3<i32>, case_number: u32, info: u32) -> u32 {
    let cell = Cell(case_number, face_distances(point), face_distances(point + vec3(0, 0, 1)));
    var choice = 0u;
    var choices = 0u;
    var faces = (info >> 8u) & 0x3fu;
    while faces != 0u {
        choice |= u32(joins_inside(cell, firstTrailingBit(faces))) << choices;
        choices += 1u;
        faces &= faces - 1u;
    }
    let variant = blocks[VARIANTS + VARIANT_WORDS * ((info >> 16u) + choice) + 4u];
    let tunnels = (variant >> 16u) & 0xffu;
    if tunnels == 0u {
        return choice;
    }
    let found = tunnel(cell);
    if found == 0 {
        return choice;
    }
    return (variant >> 24u) + u32(tunnels == 2u && found < 0);
}

// Distances of four points in the order of the corners of a face, x, y: 00, 10, 11, 01.
fn face_distances(point: vec3<i32>) -> vec4<u32> {
    return vec4(
        distance_at(point),
        distance_at(point + vec3(1, 0, 0)),
        distance_at(point + vec3(1, 1, 0)),
        distance_at(point + vec3(0, 1, 0)),
    );
}

// Bits of the distance of a point from the isovalue, halved for types whose differences may overflow. A point beyond
// the samples is outside at distance 0; no variant depends on its distance.
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

fn largest(values: vec4<u32>) -> u32 {
    let pair = max(values.xy, values.zw);
    return max(pair.x, pair.y);
}

// Distances as integers, in units of the 24th bit of a distance with the exponent `largest_exponent`. An inside corner
// lies above the isovalue, so it has at least one unit.
fn units(distances: vec4<u32>, is_inside: vec4<bool>, largest_exponent: u32) -> vec4<u32> {
    let exponents = distances >> vec4(23u);
    let shifts = vec4(largest_exponent) - exponents;
    let whole = ((distances & vec4(0x7fffffu)) | vec4(0x800000u)) >> min(shifts, vec4(31u));
    let some = select(whole, vec4(0u), exponents == vec4(0u));
    return max(some, select(vec4(0u), vec4(1u), is_inside));
}

// Corners of each face, counter-clockwise as seen from outside the cube.
fn face_of(cell: Cell, face: u32) -> vec4<u32> {
    let low = cell.low;
    let high = cell.high;
    switch face {
        case 0u: { return low.xwzy; }
        case 1u: { return high; }
        case 2u: { return vec4(low.xy, high.yx); }
        case 3u: { return vec4(low.w, high.wz, low.z); }
        case 4u: { return vec4(low.x, high.xw, low.w); }
        default: { return vec4(low.yz, high.zy); }
    }
}

// Whether the inside corners of an alternating face are joined on it: whether the product of their distances is larger.
fn joins_inside(cell: Cell, face: u32) -> bool {
    let distances = face_of(cell, face);
    // Faces begin at corners 0, 4, 0, 3, 0 and 1.
    let is_first_inside = ((cell.inside >> ((0x103040u >> (4u * face)) & 15u)) & 1u) == 1u;
    let is_inside = vec4<bool>(is_first_inside, !is_first_inside, is_first_inside, !is_first_inside);
    let corners = units(distances, is_inside, largest(distances) >> 23u);
    let one = product(corners.x, corners.z);
    let other = product(corners.y, corners.w);
    let is_greater = one.y > other.y || (one.y == other.y && one.x > other.x);
    let is_less = one.y < other.y || (one.y == other.y && one.x < other.x);
    return select(is_less, is_greater, is_first_inside);
}

// Signed corners of two opposite faces. Corners at the same index share an edge.
struct Slices {
    from_face: vec4<i32>,
    to_face: vec4<i32>,
}

// a c - b d
fn determinant_of(a: i32, b: i32, c: i32, d: i32) -> Long {
    return long_subtract(long_product(a, c), long_product(b, d));
}

// q0, q1 and m of slices between two faces, and their coefficients of -e.
struct Numbers {
    q0: Long,
    q1: Long,
    m: Long,
    q0_slope: i32,
    q1_slope: i32,
}

fn numbers_of(slices: Slices) -> Numbers {
    let a = slices.from_face;
    let b = slices.to_face;
    let q0 = determinant_of(a.x, a.y, a.z, a.w);
    let q1 = determinant_of(b.x, b.y, b.z, b.w);
    let m = long_add(determinant_of(a.x, a.y, b.z, b.w), determinant_of(b.x, b.y, a.z, a.w));
    return Numbers(q0, q1, m, a.x + a.z - a.y - a.w, b.x + b.z - b.y - b.w);
}

fn sign_or_slope(value: Long, slope: i32) -> i32 {
    let found = long_sign(value);
    return select(found, -sign(slope), found == 0);
}

fn has_turn(n: Numbers) -> bool {
    let first = sign_or_slope(n.q0, n.q0_slope);
    let second = sign_or_slope(n.q1, n.q1_slope);
    let between = sign_or_slope(n.m, n.q0_slope + n.q1_slope);
    return first == second && first != 0 && between == -first;
}

fn twice(value: Wide) -> Wide {
    return wide_add(value, value);
}

// The sign of m^2 - 4 q0 q1.
fn discriminant_sign(n: Numbers) -> i32 {
    let q0 = wide_of(n.q0);
    let q1 = wide_of(n.q1);
    let m = wide_of(n.m);
    let value = wide_subtract(wide_multiply(m, m), wide_multiply(twice(q0), twice(q1)));
    let found = wide_sign(value);
    if found != 0 {
        return found;
    }
    let s0 = n.q0_slope;
    let s1 = n.q1_slope;
    let ends = wide_add(wide_multiply(q0, wide(s1)), wide_multiply(q1, wide(s0)));
    let middle = wide_multiply(m, wide(s0 + s1));
    let slope = wide_sign(wide_subtract(twice(ends), middle));
    return select(slope, i32(s0 != s1), slope == 0);
}

// 1 for a tunnel that joins inside corners, -1 for one that joins outside corners, 0 for none.
fn tunnel(cell: Cell) -> i32 {
    let largest_exponent = max(largest(cell.low), largest(cell.high)) >> 23u;
    let low = signed_units(cell.low, cell.inside, largest_exponent);
    let high = signed_units(cell.high, cell.inside >> 4u, largest_exponent);
    let n = numbers_of(Slices(low, high));
    if !has_turn(n)
        || !has_turn(numbers_of(Slices(vec4(low.xw, high.wx), vec4(low.yz, high.zy))))
        || !has_turn(numbers_of(Slices(vec4(low.x, high.xy, low.y), vec4(low.w, high.wz, low.z))))
        || discriminant_sign(n) <= 0 {
        return 0;
    }
    let q0 = wide_of(n.q0);
    let q1 = wide_of(n.q1);
    let m = wide_of(n.m);
    let first = wide_multiply(wide(low.x), wide_subtract(m, twice(q1)));
    let second = wide_multiply(wide(high.x), wide_subtract(m, twice(q0)));
    var joined = wide_sign(wide_add(first, second));
    if joined == 0 {
        let slope = wide_multiply(wide(low.x - high.x), wide(n.q1_slope - n.q0_slope));
        let rest = wide_subtract(m, wide_add(q0, q1));
        joined = wide_sign(wide_subtract(slope, twice(rest)));
    }
    return select(-1, 1, joined > 0);
}

fn signed_units(distances: vec4<u32>, inside: u32, largest_exponent: u32) -> vec4<i32> {
    let is_inside = ((vec4(inside) >> vec4(0u, 1u, 2u, 3u)) & vec4(1u)) == vec4(1u);
    let whole = vec4<i32>(units(distances, is_inside, largest_exponent));
    return select(-whole, whole, is_inside);
}
