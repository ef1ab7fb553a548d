//! Crossed edges of 64 cells at a time, and the properties of cells that follow from them.

use super::edges::EdgePlanes;

/// The twelve edges of 64 cells, numbered as in `sheets`. The edges of a cell are at the same bit of all words.
///
/// ```text
/// along x: y + 2 z      along y: 4 + x + 2 z      along z: 8 + x + 2 y
/// ```
pub(super) struct CellEdges([u64; 12]);

/// The edges of each face of a cell: below and above along x, y and z.
const FACES: [[usize; 4]; 6] =
    [[4, 6, 8, 10], [5, 7, 9, 11], [0, 2, 8, 9], [1, 3, 10, 11], [0, 1, 4, 5], [2, 3, 6, 7]];

/// The edges at both ends of each diagonal of a cell.
const DIAGONALS: [[usize; 6]; 4] =
    [[0, 4, 8, 3, 7, 11], [0, 5, 9, 3, 6, 10], [1, 4, 10, 2, 7, 9], [1, 5, 11, 2, 6, 8]];

impl CellEdges {
    /// Loads the edges of word `word` of cells in row `y` of layer `z`, counted within reach.
    #[inline(always)]
    pub(super) fn load(planes: &EdgePlanes, word: usize, y: usize, z: usize) -> Self {
        let (words, slice) = (planes.words, planes.slice());
        let [along_x, along_y, along_z] = &planes.along;
        let at = z * slice + y * words + word;
        let has_next = word + 1 < words;
        // The same bits at the next point along x.
        let next = |plane: &[u64], at: usize| {
            plane[at] >> 1 | if has_next { plane[at + 1] << 63 } else { 0 }
        };
        Self([
            along_x[at],
            along_x[at + words],
            along_x[at + slice],
            along_x[at + slice + words],
            along_y[at],
            next(along_y, at),
            along_y[at + slice],
            next(along_y, at + slice),
            along_z[at],
            next(along_z, at),
            along_z[at + words],
            next(along_z, at + words),
        ])
    }

    /// Cells whose corners differ.
    #[inline(always)]
    pub(super) fn any_crossed(&self) -> u64 {
        self.0.iter().fold(0, |any, edge| any | edge)
    }

    /// For each face, the cells whose vertex it links to the vertex on the other side: faces with a crossed edge. If a
    /// cell has faces with more than two crossed edges, only those count.
    #[inline(always)]
    pub(super) fn links(&self) -> [u64; 6] {
        let face = |face: usize| FACES[face].map(|edge| self.0[edge]);
        let passed: [u64; 6] = std::array::from_fn(|i| {
            let [a, b, c, d] = face(i);
            a | b | c | d
        });
        let junctions: [u64; 6] = std::array::from_fn(|i| {
            let [a, b, c, d] = face(i);
            (a & b & (c | d)) | (c & d & (a | b))
        });
        let on_line = junctions.iter().fold(0, |any, face| any | face);
        std::array::from_fn(|i| junctions[i] | passed[i] & !on_line)
    }

    /// Cells where a label may have more than one sheet: those with a face whose four edges are crossed, or with all
    /// edges crossed at both ends of a diagonal.
    #[inline(always)]
    pub(super) fn may_fold(&self) -> u64 {
        let all = |edges: &[usize]| edges.iter().fold(u64::MAX, |all, &edge| all & self.0[edge]);
        let faces = FACES.iter().fold(0, |any, face| any | all(face));
        DIAGONALS.iter().fold(faces, |any, diagonal| any | all(diagonal))
    }
}
