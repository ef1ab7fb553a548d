// Corners, crossed edges, cases and triangles of 32 cells at a time.

// Bits of the eight corners. The corners of a cell are at the same bit of all words.
//
//   z + 1   rows.z --- rows.w      rows    the points (x, ...) of four rows
//              |         |         steps   the points (x + 1, ...) of the same rows
//   z       rows.x --- rows.y
//              y        y + 1
struct Corners {
    rows: vec4<u32>,
    steps: vec4<u32>,
}

// The corners of the cells at a word of `plane`. The next slice is `above` words further.
fn corners_at(plane: u32, word: u32, position: vec3<u32>, above: u32) -> Corners {
    // Beyond the last row, it is repeated, so that no edge is crossed there.
    let up = select(0u, params.words, position.y + 1u < params.points_y);
    let at = plane + vec4(word, word + up, word + above, word + up + above);
    let rows = vec4(bits[at.x], bits[at.y], bits[at.z], bits[at.w]);
    var next = vec4(0u);
    if position.x + 32u < params.points_x {
        next = vec4(bits[at.x + 1u], bits[at.y + 1u], bits[at.z + 1u], bits[at.w + 1u]);
    }
    return Corners(rows, (rows >> vec4(1u)) | (next << vec4(31u)));
}

// The points of a word where crossed edges along x, y and z begin, and its cells.
//
//   point           7 6 5 4 3 2 1 0
//   inside          1 0 0 1 1 1 0 0
//   inside >> 1     . 1 0 0 1 1 1 0    bit x is point x + 1
//   XOR             . 1 0 1 0 0 1 0    the edges (x, x + 1) that are crossed
//
// Along y and z, the words of the neighbouring rows replace `inside >> 1`.
struct Word {
    crossed: vec3<u32>,
    cells: u32,
    nan_cells: u32,
    corners: Corners,
}

fn word_at(word: u32, position: vec3<u32>) -> Word {
    var found: Word;
    // The last slice is repeated, like the last row.
    let above = select(0u, params.slice_words, position.z + 1u < params.slices);
    let c = corners_at(0u, word, position, above);
    let mask = edge_mask(position.x);
    found.corners = c;
    found.crossed = vec3((c.rows.x ^ c.steps.x) & mask, c.rows.x ^ c.rows.y, c.rows.x ^ c.rows.z);
    let has_cells = position.y + 1u < params.points_y && position.z < params.layers;
    found.cells = select(0u, mask, has_cells);
    if HAS_NAN {
        found.crossed &= touches_valid(word, position);
        let valid = bits[valid_plane() + params.slice_words + word];
        found.nan_cells = countOneBits(found.cells & ~valid);
        found.cells &= valid;
    }
    return found;
}

// Cells whose corners differ.
fn mixed(c: Corners) -> u32 {
    let any = c.rows | c.steps;
    let all = c.rows & c.steps;
    return (any.x | any.y | any.z | any.w) & ~(all.x & all.y & all.z & all.w);
}

// Case of the cell at a bit. Bit i of it is corner i of src/kernels/mesh/table.rs.
fn case_at(c: Corners, bit: u32) -> u32 {
    let r = (c.rows >> vec4(bit)) & vec4(1u);
    let s = (c.steps >> vec4(bit)) & vec4(1u);
    return r.x | (s.x << 1u) | (s.y << 2u) | (r.y << 3u) | (r.z << 4u) | (s.z << 5u) | (s.w << 6u) | (r.w << 7u);
}

// Number of triangles of the cells `cells`. A loop of n crossed edges makes n - 2 triangles, so
//
//   triangles = crossed edges - 2 * mixed cells - 2 * loops after the first of a cell
//
// Only ambiguous cells may have a second loop. They are looked up one by one here or, with EXACT, by `resolve`.
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

// Crossed edges along each axis: at the near and the far side of the cells, then the same above, or at y + 1 for those
// along z.
fn along_x(c: Corners) -> vec4<u32> {
    return c.rows ^ c.steps;
}

fn along_y(c: Corners) -> vec4<u32> {
    return vec4(c.rows.xz ^ c.rows.yw, c.steps.xz ^ c.steps.yw).xzyw;
}

fn along_z(c: Corners) -> vec4<u32> {
    return vec4(c.rows.xy ^ c.rows.zw, c.steps.xy ^ c.steps.zw).xzyw;
}

// Cells that may have more than one loop: those with an alternating face or with two isolated opposite corners.
fn ambiguous(c: Corners) -> u32 {
    let r = c.rows;
    let s = c.steps;
    let x = along_x(c);
    let y = along_y(c);
    let z = along_z(c);
    // If three sides of a face are crossed, the fourth is, too, and the corners alternate.
    let faces = (x.x & x.y & y.x) | (x.z & x.w & y.z) | (x.x & x.z & z.x) | (x.y & x.w & z.z)
        | (y.x & y.z & z.x) | (y.y & y.w & z.y);
    // All three edges at both ends of a diagonal are crossed, and both ends are on the same side of the surface.
    let diagonals = (x.x & y.x & z.x & x.w & y.w & z.w & ~(r.x ^ s.w))
        | (x.x & y.y & z.y & x.w & y.z & z.z & ~(s.x ^ r.w))
        | (x.y & y.x & z.z & x.z & y.w & z.y & ~(r.y ^ s.z))
        | (x.y & y.y & z.w & x.z & y.z & z.x & ~(s.y ^ r.z));
    return faces | diagonals;
}
