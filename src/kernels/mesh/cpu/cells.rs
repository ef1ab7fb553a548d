//! Corners of 64 cells at a time, and the case table in the order of their bits.

use std::sync::LazyLock;

use super::super::table::{CASES, CORNERS};

/// [`CASES`], renumbered so that bit `x + 2 y + 4 z` of a case is the corner x, y, z: four pairs of neighbouring bits,
/// as in [`Corners`].
pub(super) struct CaseTable {
    /// Number of triangles of each case.
    pub(super) count: [u8; 256],
    /// Corners of the triangles of each case, as indices into the sixteen vertex numbers around a cell: eight at its
    /// point, eight at the next point along x.
    pub(super) corners: [[u8; 16]; 256],
    /// Number of closed loops of crossed edges after the first.
    pub(super) more_loops: [u8; 256],
}

/// Index of each edge in the sixteen vertex numbers around a cell. Edges 5, 7, 9 and 11 begin at the next point along
/// x, whose numbers are the last eight.
pub(super) const SLOTS: [u8; 12] = [0, 1, 2, 3, 4, 12, 5, 13, 6, 14, 7, 15];

pub(super) static CASE_TABLE: LazyLock<CaseTable> = LazyLock::new(|| {
    let mut table = CaseTable { count: [0; 256], corners: [[0; 16]; 256], more_loops: [0; 256] };
    for (number, case) in CASES.iter().enumerate() {
        let number = CORNERS.iter().enumerate().fold(0, |own, (corner, [x, y, z])| {
            own | (number >> corner & 1) << (x + 2 * y + 4 * z)
        });
        table.count[number] = case.triangles.len() as u8;
        for (own, &edge) in table.corners[number].iter_mut().zip(case.triangles.as_flattened()) {
            *own = SLOTS[usize::from(edge)];
        }
        table.more_loops[number] = case.loops.saturating_sub(1);
    }
    table
});

/// Bits of the eight corners of 64 cells. The corners of a cell are at the same bit of all words.
///
/// ```text
/// z + 1   rows[2] --- rows[3]      rows[i]    the points (x, ...) of one row
///            |           |         steps[i]   the points (x + 1, ...) of the same row
/// z       rows[0] --- rows[1]
///            y         y + 1
/// ```
pub(super) struct Corners {
    pub(super) rows: [u64; 4],
    steps: [u64; 4],
}

impl Corners {
    /// Loads word `word` of the four rows that begin at `first` and have `words` words.
    #[inline(always)]
    pub(super) fn load(plane: &[u64], first: &[usize; 4], word: usize, words: usize) -> Self {
        let (mut rows, mut steps) = ([0; 4], [0; 4]);
        for row in 0..4 {
            rows[row] = plane[first[row] + word];
            steps[row] = rows[row] >> 1;
            if word + 1 < words {
                steps[row] |= plane[first[row] + word + 1] << 63;
            }
        }
        Self { rows, steps }
    }

    /// Cells whose corners are all set.
    #[inline(always)]
    pub(super) fn all_set(&self) -> u64 {
        let ([a, b, c, d], [e, f, g, h]) = (self.rows, self.steps);
        a & b & c & d & e & f & g & h
    }

    /// Cells whose corners differ. The last point of a row counts as a cell whose corners beyond the row are outside;
    /// the caller masks it.
    #[inline(always)]
    pub(super) fn mixed(&self) -> u64 {
        let ([a, b, c, d], [e, f, g, h]) = (self.rows, self.steps);
        (a | b | c | d | e | f | g | h) & !self.all_set()
    }

    /// Crossed edges along x, by row.
    #[inline(always)]
    pub(super) fn along_x(&self) -> [u64; 4] {
        let ([a, b, c, d], [e, f, g, h]) = (self.rows, self.steps);
        [a ^ e, b ^ f, c ^ g, d ^ h]
    }

    /// The case of the cell at bit `x`, as [`CaseTable`] numbers them.
    #[inline(always)]
    pub(super) fn case(&self, x: u32) -> usize {
        let pair = |row: usize| (self.rows[row] >> x & 1) | (self.steps[row] >> x & 1) << 1;
        (pair(0) | pair(1) << 2 | pair(2) << 4 | pair(3) << 6) as usize
    }

    /// Corners of 32 cells from bit `shift` on, in the order of the bits of a [case](Self::case).
    #[inline(always)]
    pub(super) fn halves(&self, shift: u32) -> [u32; 8] {
        let ([a, b, c, d], [e, f, g, h]) = (self.rows, self.steps);
        let mut halves = [0; 8];
        for (half, word) in halves.iter_mut().zip([a, e, b, f, c, g, d, h]) {
            *half = (word >> shift) as u32;
        }
        halves
    }

    /// Number of triangles of the cells `cells`. A loop of n crossed edges makes n - 2 triangles, so
    ///
    /// ```text
    /// triangles = crossed edges - 2 * mixed cells - 2 * loops after the first of a cell
    /// ```
    /// Only [ambiguous](Self::ambiguous) cells may have more than one loop; `more_loops` counts those after the first.
    #[inline(always)]
    pub(super) fn triangles(&self, cells: u64, more_loops: impl FnOnce(u64) -> i32) -> u32 {
        let mut crossed = 0;
        for edges in [self.along_x(), self.along_y(), self.along_z()] {
            for edge in edges {
                crossed += (edge & cells).count_ones();
            }
        }
        let ambiguous = self.ambiguous() & cells;
        let more_loops = if ambiguous == 0 { 0 } else { more_loops(ambiguous) };
        let first_loops = (self.mixed() & cells).count_ones();
        crossed.wrapping_sub(2 * first_loops).wrapping_sub_signed(2 * more_loops)
    }

    /// Number of loops after the first in the classic cases of `cells`.
    #[inline(always)]
    pub(super) fn more_loops(&self, mut cells: u64, table: &CaseTable) -> i32 {
        let mut more_loops = 0;
        while cells != 0 {
            more_loops += i32::from(table.more_loops[self.case(cells.trailing_zeros())]);
            cells &= cells - 1;
        }
        more_loops
    }

    /// Cells that may have more than one loop: those with an alternating face, or with two isolated opposite corners.
    #[inline(always)]
    pub(super) fn ambiguous(&self) -> u64 {
        let (r, s) = (&self.rows, &self.steps);
        let [x0, x1, x2, x3] = self.along_x();
        let [y0, y1, y2, y3] = self.along_y();
        let [z0, z1, z2, z3] = self.along_z();
        // If three sides of a face are crossed, the fourth is, too, and the corners alternate.
        let faces =
            x0 & x1 & y0 | x2 & x3 & y2 | x0 & x2 & z0 | x1 & x3 & z2 | y0 & y2 & z0 | y1 & y3 & z1;
        // All three edges at both ends of a diagonal are crossed, and both ends are on the same side of the surface.
        let diagonals = x0 & y0 & z0 & x3 & y3 & z3 & !(r[0] ^ s[3])
            | x0 & y1 & z1 & x3 & y2 & z2 & !(s[0] ^ r[3])
            | x1 & y0 & z2 & x2 & y3 & z1 & !(r[1] ^ s[2])
            | x1 & y1 & z3 & x2 & y2 & z0 & !(s[1] ^ r[2]);
        faces | diagonals
    }

    /// Crossed edges along y: at the near and the far side of the cells, then the same above.
    #[inline(always)]
    fn along_y(&self) -> [u64; 4] {
        let ([a, b, c, d], [e, f, g, h]) = (self.rows, self.steps);
        [a ^ b, e ^ f, c ^ d, g ^ h]
    }

    /// Crossed edges along z: at the near and the far side of the cells, then the same at y + 1.
    #[inline(always)]
    fn along_z(&self) -> [u64; 4] {
        let ([a, b, c, d], [e, f, g, h]) = (self.rows, self.steps);
        [a ^ c, e ^ g, b ^ d, f ^ h]
    }
}
