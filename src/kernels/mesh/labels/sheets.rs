//! The sheets of a label's surface within a cell: the loops of crossed edges around the cell, for each of the 256 sets
//! of corners with the label.
//!
//! Crossed edges that follow each other around the cell, from face to face, belong to one sheet. On a face whose
//! corners alternate, the four edges can be paired differently. Each corner with the label is cut off, so that a label
//! is never joined across a diagonal:
//!
//! ```text
//! a --- .      a /-- .         a and . alternate: the edges of each `a` follow each other
//! |     |      |/    |
//! |     |      |    /|
//! . --- a      . --/ a
//! ```
//! The two pairs may still belong to one sheet if the rest of the cell joins the two corners. If this is so in both
//! cells of the face, four quads would meet at an edge of the mesh. In this case, the face joins the label's corners in
//! both cells, and the two pairs belong to different sheets.
//!
//! ```text
//! corner  x + 2 y + 4 z
//! edge    along x: y + 2 z      along y: 4 + x + 2 z      along z: 8 + x + 2 y
//! face    2 axis + 1 at the upper end of the axis
//! ```

use std::sync::LazyLock;

/// For each set of corners with the label, bits 2 e and 2 e + 1 are the sheet of edge e. The bits from [`FACE`] on are
/// 1 plus the number of the one face that may join the label's corners, or 0.
pub(super) struct SheetTable {
    /// Sheets if all faces cut off the label's corners.
    pub(super) cut: [u32; 256],
    /// Sheets if the face that may join the label's corners does so.
    pub(super) joined: [u32; 256],
}

/// Lowest bit of the face in an entry of a [`SheetTable`].
pub(super) const FACE: u32 = 24;

pub(super) static SHEETS: LazyLock<SheetTable> = LazyLock::new(|| {
    let mut table = SheetTable { cut: [0; 256], joined: [0; 256] };
    for mask in 0..256 {
        let alternating: Vec<usize> =
            (0..6).filter(|&face| crossed(mask, face).count() == 4).collect();
        let sheets = trace(mask, None);
        table.cut[mask] = packed(&sheets);
        table.joined[mask] = table.cut[mask];
        if let [face] = alternating[..] {
            let mut edges = crossed(mask, face).map(|edge| sheets[edge]);
            let first = edges.next();
            if edges.all(|sheet| Some(sheet) == first) {
                table.cut[mask] |= (face as u32 + 1) << FACE;
                table.joined[mask] = packed(&trace(mask, Some(face)));
            }
        }
    }
    table
});

fn ends(edge: usize) -> [usize; 2] {
    let (axis, low, high) = (edge / 4, edge & 1, edge >> 1 & 1);
    let corner = match axis {
        0 => 2 * low + 4 * high,
        1 => low + 4 * high,
        _ => low + 2 * high,
    };
    [corner, corner + (1 << axis)]
}

/// The crossed edges of a face.
fn crossed(mask: usize, face: usize) -> impl Iterator<Item = usize> {
    let (axis, end) = (face / 2, face % 2);
    (0..12).filter(move |&edge| {
        let [a, b] = ends(edge);
        let is_on_face = a >> axis & 1 == end && b >> axis & 1 == end;
        is_on_face && (mask >> a ^ mask >> b) & 1 == 1
    })
}

/// The sheet of each crossed edge. Sheets are numbered in the order of their first edges. The face `joined` joins the
/// label's corners.
fn trace(mask: usize, joined: Option<usize>) -> [u32; 12] {
    let mut sheets: [usize; 12] = std::array::from_fn(|edge| edge);
    let mut unite = |a: usize, b: usize| {
        let (from, to) = (sheets[a].max(sheets[b]), sheets[a].min(sheets[b]));
        sheets.iter_mut().filter(|sheet| **sheet == from).for_each(|sheet| *sheet = to);
    };
    for face in 0..6 {
        let edges: Vec<usize> = crossed(mask, face).collect();
        for (i, &one) in edges.iter().enumerate() {
            for &other in &edges[i + 1..] {
                let shared = ends(one).into_iter().find(|corner| ends(other).contains(corner));
                let follow = match (edges.len(), shared) {
                    (2, _) => true,
                    (_, Some(corner)) => (mask >> corner & 1 == 1) != (joined == Some(face)),
                    _ => false,
                };
                if follow {
                    unite(one, other);
                }
            }
        }
    }
    let is_crossed = |edge: usize| ends(edge).map(|corner| mask >> corner & 1);
    let firsts: Vec<usize> = (0..12)
        .filter(|&edge| sheets[edge] == edge && is_crossed(edge)[0] != is_crossed(edge)[1])
        .collect();
    sheets.map(|sheet| firsts.iter().position(|&first| first == sheet).unwrap_or(0) as u32)
}

fn packed(sheets: &[u32; 12]) -> u32 {
    sheets.iter().enumerate().fold(0, |all, (edge, sheet)| all | sheet << (2 * edge))
}
