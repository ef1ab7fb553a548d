//! Emits triangles: the numbers of the vertices on the edges of each cell, in the order of its case.
//!
//! The vertices of a word of 32 points are numbered by axis, then by x. For each set of edges, a running number is
//! advanced bit by bit:
//!
//! ```text
//! point      7 6 5 4 3 2 1 0
//! crossed    0 1 0 1 0 0 1 0
//! number     n+2 . n+1 . . n .    number(x) = first + popcount(crossed & ((1 << x) - 1))
//! ```

use std::mem;

use pulp::{NullaryFnOnce, cast};

use super::{
    super::variants::Variant,
    cells::{CASE_TABLE, CaseTable, Corners, SLOTS},
    exact::VariantLookup,
    mesher::SlicePart,
    planes::{BitPlanes, PointRows},
    simd_ops::SimdOps,
};

/// Numbers of the first vertices on the edges of 32 points along x, y and z.
#[derive(Clone, Copy, Default, bytemuck::Zeroable)]
pub(super) struct VertexStart {
    x: u32,
    /// Offsets from `x` to the first vertices along y and along z.
    to_y: u8,
    to_z: u8,
}

impl VertexStart {
    #[inline(always)]
    fn y(self) -> u32 {
        self.x.wrapping_add(self.to_y.into())
    }

    #[inline(always)]
    fn z(self) -> u32 {
        self.x.wrapping_add(self.to_z.into())
    }
}

/// Writes the triangles of consecutive slices.
pub(super) struct EmitFaces<'a, 'b, S> {
    pub(super) planes: &'a BitPlanes,
    pub(super) exact: Option<&'a VariantLookup<'a>>,
    pub(super) simd: S,
    pub(super) parts: &'a mut [SlicePart<'b>],
    /// Buffers for the vertex numbers of two slices.
    pub(super) starts: [Vec<VertexStart>; 2],
}

impl<S: SimdOps> NullaryFnOnce for EmitFaces<'_, '_, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { planes, exact, simd, parts, starts: [mut here, mut above] } = self;
        for (i, part) in parts.iter_mut().enumerate() {
            let SlicePart { z, first, end, .. } = *part;
            if z == planes.grid.layers {
                break;
            }
            if i == 0 {
                planes.number(z, first as u32, &mut here);
            }
            // The numbers wrap only after the last vertex of a surface with exactly 2^32 vertices.
            planes.number(z + 1, end as u32, &mut above);
            let triangles = mem::take(&mut part.triangles);
            planes.triangles(simd, exact, z, [&here, &above], triangles);
            mem::swap(&mut here, &mut above);
        }
    }
}

impl BitPlanes {
    /// Numbers the vertices of slice `z` from `next` on. Rows without vertices are skipped.
    #[inline(always)]
    fn number(&self, z: usize, mut next: u32, starts: &mut [VertexStart]) {
        for (y, starts) in starts.chunks_exact_mut(2 * self.words).enumerate() {
            let rows = self.rows(y, z);
            if self.are_uniform(&rows) {
                continue;
            }
            for (word, starts) in starts.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let crossed = self.crossed(&rows, word);
                for (half, start) in starts.iter_mut().enumerate() {
                    let [mut x, mut y, mut z] = crossed;
                    for set in [&mut x, &mut y, &mut z] {
                        *set = u64::from(((*set >> (32 * half)) as u32).count_ones());
                    }
                    let (x, y, z) = (x as u32, y as u32, z as u32);
                    *start = VertexStart { x: next, to_y: x as u8, to_z: (x + y) as u8 };
                    next = next.wrapping_add(x + y + z);
                }
            }
        }
    }

    /// Sets of crossed edges around the cells of a word that begin at the point of the cell: along x on all four rows,
    /// along y on both slices, along z on both rows.
    #[inline(always)]
    fn sets(&self, corners: &Corners, rows: &PointRows, word: usize) -> [u64; 8] {
        /// Axis, and offsets of row and slice in y and z.
        const EDGES: [[usize; 3]; 8] = [
            [0, 0, 0],
            [0, 1, 0],
            [0, 0, 1],
            [0, 1, 1],
            [1, 0, 0],
            [1, 0, 1],
            [2, 0, 0],
            [2, 1, 0],
        ];
        let [a, b, c, d] = corners.rows;
        let mask = self.edge_mask(word);
        let x = corners.along_x();
        let sets = [x[0] & mask, x[1] & mask, x[2] & mask, x[3] & mask, a ^ b, c ^ d, a ^ c, b ^ d];
        if self.valid.is_empty() {
            return sets;
        }
        std::array::from_fn(|i| {
            let [axis, y, z] = EDGES[i];
            sets[i] & self.touches_valid(axis, rows.y + y, rows.z + z, word)
        })
    }

    /// Writes the triangles of the layer above slice `z`. `starts` holds the vertex numbers of this slice and of the
    /// next.
    #[inline(always)]
    fn triangles<S: SimdOps>(
        &self,
        simd: S,
        exact: Option<&VariantLookup<'_>>,
        z: usize,
        starts: [&[VertexStart]; 2],
        triangles: &mut [[u32; 3]],
    ) {
        let table = &*CASE_TABLE;
        let mut out = triangles.as_flattened_mut();
        let row = 2 * self.words;
        for y in 0..self.grid.points[1] - 1 {
            let rows = self.rows(y, z);
            if self.are_uniform(&rows) {
                continue;
            }
            for word in 0..self.words {
                let corners = self.corners(&rows, word);
                let mixed = corners.mixed();
                if mixed == 0 {
                    continue;
                }
                let mut cells = mixed & self.edge_mask(word);
                if !self.valid.is_empty() {
                    cells &= self.valid_at(y as isize, z + 1, word as isize);
                }
                let sets = self.sets(&corners, &rows, word);
                let ambiguous = exact.map_or(0, |_| corners.ambiguous());
                for half in 0..2 {
                    let shift = 32 * half as u32;
                    let mut half_sets = [0; 8];
                    for (half_set, set) in half_sets.iter_mut().zip(sets) {
                        *half_set = (set >> shift) as u32;
                    }
                    let half_word = HalfWord {
                        table,
                        corners: &corners,
                        shift,
                        mixed: (mixed >> shift) as u32,
                        cells: (cells >> shift) as u32,
                        ambiguous: (ambiguous >> shift) as u32,
                        exact,
                        first: [64 * word, y, z],
                        sets: half_sets,
                        starts,
                        at: y * row + 2 * word + half,
                        row,
                    };
                    out = half_word.emit(simd, out);
                }
            }
        }
        debug_assert!(out.is_empty());
    }
}

/// 32 cells of a row.
struct HalfWord<'a> {
    table: &'a CaseTable,
    /// Corners of 64 cells, and the index of the first of these 32 among them.
    corners: &'a Corners,
    shift: u32,
    /// Cells whose corners differ, so that their edges may have vertices.
    mixed: u32,
    /// Cells with triangles.
    cells: u32,
    /// Cells that are looked up in `exact`.
    ambiguous: u32,
    exact: Option<&'a VariantLookup<'a>>,
    /// Point where the 64 cells begin.
    first: [usize; 3],
    /// Crossed edges, see [`BitPlanes::sets`].
    sets: [u32; 8],
    /// Vertex numbers of both slices, index of the half word in them, and half words per row.
    starts: [&'a [VertexStart]; 2],
    at: usize,
    row: usize,
}

impl HalfWord<'_> {
    /// First vertex number of each set, at the half word `ahead` of this one.
    #[inline(always)]
    fn numbers(&self, ahead: usize) -> [u32; 8] {
        let [here, above] = self.starts;
        let at = self.at + ahead;
        let [a, b] = [here[at], here[at + self.row]];
        let [c, d] = [above[at], above[at + self.row]];
        [a.x, b.x, c.x, d.x, a.y(), c.y(), a.z(), b.z()]
    }

    /// Writes the triangles to the start of `out` and returns the rest of it.
    #[inline(always)]
    fn emit<S: SimdOps>(self, simd: S, mut out: &mut [u32]) -> &mut [u32] {
        if self.cells == 0 {
            return out;
        }
        let sets = cast(self.sets);
        let corners = cast(self.corners.halves(self.shift));
        let mut next = cast(self.numbers(0));
        let mut visit = self.mixed;
        while visit != 0 {
            let x = visit.trailing_zeros();
            visit &= visit - 1;
            let numbers = next;
            next = simd.add_bit(numbers, sets, x);
            if self.cells >> x & 1 == 0 {
                continue;
            }
            if x == 31 {
                // The edges along y and z at the far side of the cell begin in the next half word.
                next = simd.join(next, cast(self.numbers(1)));
            }
            if let (1, Some(exact)) = (self.ambiguous >> x & 1, self.exact) {
                let variant = exact.variant(self.corners, self.shift + x, self.first);
                out = write_variant(variant, [cast(numbers), cast(next)], out);
                continue;
            }
            let case = simd.gather_bit(corners, x) as usize & 255;
            let len = 3 * usize::from(self.table.count[case]);
            let order = &self.table.corners[case];
            // All sixteen are written if there is room; the next cell overwrites those after `len`.
            match out.first_chunk_mut::<16>() {
                Some(out) => simd.permute(numbers, next, order, out),
                None => copy_some(out, [cast(numbers), cast(next)], order),
            }
            out = &mut mem::take(&mut out)[len..];
        }
        out
    }
}

/// Writes the triangles of a variant to the start of `out` and returns the rest of it.
#[cold]
#[inline(never)]
fn write_variant<'a>(
    variant: &Variant,
    numbers: [[u32; 8]; 2],
    out: &'a mut [u32],
) -> &'a mut [u32] {
    let edges = variant.triangles.as_flattened();
    let (own, rest) = out.split_at_mut(edges.len());
    for (out, &edge) in own.iter_mut().zip(edges) {
        *out = numbers.as_flattened()[usize::from(SLOTS[usize::from(edge)])];
    }
    rest
}

/// Writes as many of the sixteen numbers as fit into `out`.
#[cold]
#[inline(never)]
fn copy_some(out: &mut [u32], numbers: [[u32; 8]; 2], order: &[u8; 16]) {
    for (out, &slot) in out.iter_mut().zip(order) {
        *out = numbers.as_flattened()[usize::from(slot)];
    }
}
