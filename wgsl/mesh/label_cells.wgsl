// Crossed edges of 32 cells at a time, and the links and sheets that follow from them, as in
// src/kernels/mesh/labels/cpu/cells.rs. The edges of a cell are numbered
//
//   along x: y + 2 z      along y: 4 + x + 2 z      along z: 8 + x + 2 y

// Crossed edges of a row of points along one axis; none if it is not a row of cells. `at` is 3 * word + axis.
fn edges_from(at: u32, is_row: bool) -> u32 {
    if is_row {
        return edge_bits[at];
    }
    return 0u;
}

// The same at the next point along x.
fn edges_next(at: u32, is_row: bool, has_next: bool) -> u32 {
    var next = 0u;
    if is_row {
        next = edge_bits[at] >> 1u;
        if has_next {
            next |= edge_bits[at + 3u] << 31u;
        }
    }
    return next;
}

fn cell_edges(word: u32, position: vec3<u32>) -> array<u32, 12> {
    // After the last row of cells comes a row of points beyond the samples, where no edge is crossed.
    let is_row = position.y < params.height;
    let has_next = position.x + 32u <= params.width;
    let at = 3u * word;
    let next_row = at + 3u * params.words;
    let above = at + 3u * params.slice_words;
    return array<u32, 12>(
        edge_bits[at],
        edges_from(next_row, is_row),
        edge_bits[above],
        edges_from(above + 3u * params.words, is_row),
        edge_bits[at + 1u],
        edges_next(at + 1u, true, has_next),
        edge_bits[above + 1u],
        edges_next(above + 1u, true, has_next),
        edge_bits[at + 2u],
        edges_next(at + 2u, true, has_next),
        edges_from(next_row + 2u, is_row),
        edges_next(next_row + 2u, is_row, has_next),
    );
}

// Cells whose corners differ.
fn any_edge(e: array<u32, 12>) -> u32 {
    return e[0] | e[1] | e[2] | e[3] | e[4] | e[5] | e[6] | e[7] | e[8] | e[9] | e[10] | e[11];
}

// Cells where a label may have more than one sheet: those with a face whose four edges are crossed, or with all edges
// crossed at both ends of a diagonal.
fn may_fold(e: array<u32, 12>) -> u32 {
    let faces = (e[4] & e[6] & e[8] & e[10]) | (e[5] & e[7] & e[9] & e[11]) | (e[0] & e[2] & e[8] & e[9])
        | (e[1] & e[3] & e[10] & e[11]) | (e[0] & e[1] & e[4] & e[5]) | (e[2] & e[3] & e[6] & e[7]);
    let diagonals = (e[0] & e[4] & e[8] & e[3] & e[7] & e[11]) | (e[0] & e[5] & e[9] & e[3] & e[6] & e[10])
        | (e[1] & e[4] & e[10] & e[2] & e[7] & e[9]) | (e[1] & e[5] & e[11] & e[2] & e[6] & e[8]);
    return faces | diagonals;
}

// For a face with these four edges, whether any is crossed (bit 0), and whether more than two are (bit 1).
fn face_link(a: u32, b: u32, c: u32, d: u32, bit: u32) -> u32 {
    let n = ((a >> bit) & 1u) + ((b >> bit) & 1u) + ((c >> bit) & 1u) + ((d >> bit) & 1u);
    return u32(n > 0u) | u32(n > 2u) << 1u;
}

// Faces that link the vertex of the cell at `bit` to its neighbours: below and above along x, y and z. If there are
// faces with more than two crossed edges, only those count.
fn link_bits(e: array<u32, 12>, bit: u32) -> u32 {
    let all = face_link(e[4], e[6], e[8], e[10], bit)
        | face_link(e[5], e[7], e[9], e[11], bit) << 2u
        | face_link(e[0], e[2], e[8], e[9], bit) << 4u
        | face_link(e[1], e[3], e[10], e[11], bit) << 6u
        | face_link(e[0], e[1], e[4], e[5], bit) << 8u
        | face_link(e[2], e[3], e[6], e[7], bit) << 10u;
    let on_line = (all & 0xaaau) != 0u;
    let chosen = select(all, all >> 1u, on_line) & 0x555u;
    // Gathers the even bits.
    let pairs = (chosen | chosen >> 1u) & 0x333u;
    return (pairs & 0x3u) | (pairs & 0x30u) >> 2u | (pairs & 0x300u) >> 4u;
}
