// 32 cells at a time: their corners, which the surface passes, crossed edges, cases, triangles.

// Bits of the eight corners: those of a cell are all at the same bit.
//
//   z + 1   rows.z --- rows.w      rows    the points (x, ...) of four rows
//              |         |         steps   the points (x + 1, ...) of the same rows
//   z       rows.x --- rows.y
//              y        y + 1
struct Corners {
    rows: vec4<u32>,
    steps: vec4<u32>,
}

// The corners of the cells at a word of `plane`; the next slice is `above` words further.
fn corners_at(plane: u32, word: u32, place: vec3<u32>, above: u32) -> Corners {
    // The last row stands in for the one beyond it: no edge is crossed there.
    let up = select(0u, params.words, place.y + 1u < params.points_y);
    let at = plane + vec4(word, word + up, word + above, word + up + above);
    let rows = vec4(bits[at.x], bits[at.y], bits[at.z], bits[at.w]);
    var next = vec4(0u);
    if place.x + 32u < params.points_x {
        next = vec4(bits[at.x + 1u], bits[at.y + 1u], bits[at.z + 1u], bits[at.w + 1u]);
    }
    return Corners(rows, (rows >> vec4(1u)) | (next << vec4(31u)));
}

// The points of a word from which crossed edges run along x, y and z, and its cells.
//
//   point           7 6 5 4 3 2 1 0
//   inside          1 0 0 1 1 1 0 0
//   inside >> 1     . 1 0 0 1 1 1 0    bit x is point x + 1
//   XOR             . 1 0 1 0 0 1 0    the edges (x, x + 1) that are crossed
//
// Along y and z, the words of the neighbouring rows take the place of `inside >> 1`.
struct Word {
    crossed: vec3<u32>,
    cells: u32,
    nan_cells: u32,
    corners: Corners,
}

fn word_at(word: u32, place: vec3<u32>) -> Word {
    var found: Word;
    // The last slice stands in for the one beyond it, like the last row.
    let above = select(0u, params.slice_words, place.z + 1u < params.slices);
    let c = corners_at(0u, word, place, above);
    let mask = edge_mask(place.x);
    found.corners = c;
    found.crossed = vec3((c.rows.x ^ c.steps.x) & mask, c.rows.x ^ c.rows.y, c.rows.x ^ c.rows.z);
    let has_cells = place.y + 1u < params.points_y && place.z < params.layers;
    found.cells = select(0u, mask, has_cells);
    if HAS_NAN {
        found.crossed &= beside_valid(word, place);
        let valid = bits[valid_plane() + params.slice_words + word];
        found.nan_cells = countOneBits(found.cells & ~valid);
        found.cells &= valid;
    }
    return found;
}

// The cells that the surface passes: their corners differ.
fn mixed(c: Corners) -> u32 {
    let any = c.rows | c.steps;
    let all = c.rows & c.steps;
    return (any.x | any.y | any.z | any.w) & ~(all.x & all.y & all.z & all.w);
}

// The case of the cell at a bit: bit i is corner i of src/kernels/mesh/table.rs.
fn case_at(c: Corners, bit: u32) -> u32 {
    let r = (c.rows >> vec4(bit)) & vec4(1u);
    let s = (c.steps >> vec4(bit)) & vec4(1u);
    return r.x | (s.x << 1u) | (s.y << 2u) | (r.y << 3u) | (r.z << 4u) | (s.z << 5u) | (s.w << 6u) | (r.w << 7u);
}

// The triangles of the cells `cells`. A loop of n crossed edges makes n - 2, so
//
//   triangles = crossed edges - 2 * mixed cells - 2 * loops beyond the first of a cell
//
// Only ambiguous cells may have a second loop: they are looked up one by one, or were when they were resolved.
fn count_triangles(word: u32, c: Corners, cells: u32) -> u32 {
    let any = mixed(c) & cells;
    if any == 0u {
        return 0u;
    }
    let m = vec4(any);
    let n = countOneBits(along_x(c) & m) + countOneBits(along_y(c) & m) + countOneBits(along_z(c) & m);
    var look_up = ambiguous(c) & any;
    var more_loops = 0u;
    if EXACT {
        if look_up != 0u {
            more_loops = starts[word];
        }
    } else {
        while look_up != 0u {
            let bit = firstTrailingBit(look_up);
            more_loops += (blocks[CASE_INFO + case_at(c, bit)] >> 4u) & 15u;
            look_up &= look_up - 1u;
        }
    }
    return n.x + n.y + n.z + n.w - 2u * countOneBits(any) - 2u * more_loops;
}

// The crossed edges along each axis: near and far side, then the same above, or behind those along z.
fn along_x(c: Corners) -> vec4<u32> {
    return c.rows ^ c.steps;
}

fn along_y(c: Corners) -> vec4<u32> {
    return vec4(c.rows.xz ^ c.rows.yw, c.steps.xz ^ c.steps.yw).xzyw;
}

fn along_z(c: Corners) -> vec4<u32> {
    return vec4(c.rows.xy ^ c.rows.zw, c.steps.xy ^ c.steps.zw).xzyw;
}

// The cells that may have more than one loop: with an alternating face or with two lone opposite corners.
fn ambiguous(c: Corners) -> u32 {
    let r = c.rows;
    let s = c.steps;
    let x = along_x(c);
    let y = along_y(c);
    let z = along_z(c);
    // Three crossed sides of a face: the fourth is crossed, too, and its corners alternate.
    let faces = (x.x & x.y & y.x) | (x.z & x.w & y.z) | (x.x & x.z & z.x) | (x.y & x.w & z.z)
        | (y.x & y.z & z.x) | (y.y & y.w & z.y);
    // All three edges of both ends of a diagonal, whose ends are on the same side.
    let diagonals = (x.x & y.x & z.x & x.w & y.w & z.w & ~(r.x ^ s.w))
        | (x.x & y.y & z.y & x.w & y.z & z.z & ~(s.x ^ r.w))
        | (x.y & y.x & z.z & x.z & y.w & z.y & ~(r.y ^ s.z))
        | (x.y & y.y & z.w & x.z & y.z & z.x & ~(s.y ^ r.z));
    return faces | diagonals;
}
