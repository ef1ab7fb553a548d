//! Boundaries between the labels of a volume: one mesh of quads for all labels, which neighbours share.

use crate::util::{error::Result, memory};

/// Number of steps of a vertex coordinate per sample.
pub const UNIT: u32 = 4096;

/// The faces between labels, or the part of them that a slab contributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelMesh {
    /// Coordinates in the grid, [`UNIT`] per sample, from the corner of the volume's box.
    pub vertices: Vec<[u32; 3]>,
    /// The faces, one for each edge of the grid whose ends have different labels.
    pub quads: Vec<Quad>,
}

/// A face between two labels.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Quad {
    /// Vertex numbers, counter-clockwise as seen from the second label.
    pub vertices: [u32; 4],
    /// The labels on both sides: the smaller one first; but 0, the outside of all labels, always second.
    pub labels: [u32; 2],
    /// For each corner, the sheet of each label's surface within the cell that it belongs to, in two bits:
    ///
    /// ```text
    /// bit     15 14 | 13 12 | 11 10 | 9 8 | 7 6 | 5 4 | 3 2 | 1 0
    /// label        second label          |     first label
    /// corner    3   |   2   |   1   |  0  |  3  |  2  |  1  |  0
    /// ```
    pub sheets: u32,
}

impl Quad {
    /// The corners on side 0 or 1, counter-clockwise as seen from outside of that side's label, each as four times the
    /// vertex number plus the sheet. If a label touches itself only at a vertex, each sheet has its own vertex, so
    /// that the label's surface is a closed manifold.
    ///
    /// # Panics
    /// When `side` is neither 0 nor 1.
    pub fn side(&self, side: usize) -> [u64; 4] {
        let sheets = self.sheets >> (8 * side);
        let own = |corner: usize| {
            u64::from(self.vertices[corner]) << 2 | u64::from(sheets >> (2 * corner) & 3)
        };
        match side {
            0 => [0, 1, 2, 3].map(own),
            _ => {
                assert_eq!(side, 1, "a quad has two sides");
                [0, 3, 2, 1].map(own)
            }
        }
    }

    /// Whether the diagonal from its first corner is the shorter one in the grid, along which the quad is cut.
    pub fn splits_from_first(&self, vertices: &[[u32; 3]]) -> bool {
        Self::is_first_shorter(self.vertices.map(|vertex| vertices[vertex as usize]))
    }

    /// Whether the diagonal from `a` to `c` is no longer than the one from `b` to `d`.
    pub fn is_first_shorter([a, b, c, d]: [[u32; 3]; 4]) -> bool {
        let length = |a: [u32; 3], b: [u32; 3]| -> i64 {
            (0..3).map(|axis| (i64::from(a[axis]) - i64::from(b[axis])).pow(2)).sum()
        };
        length(a, c) <= length(b, d)
    }

    /// Records the diagonal that divides the quad: the one from its first corner, or the other one. Replaces the sheets,
    /// which a file of all labels does not need.
    pub fn split(&mut self, from_first: bool) {
        self.sheets = u32::from(from_first);
    }

    /// The triangles into which [`split`](Self::split) has divided the quad, counter-clockwise as seen from the second
    /// label.
    pub fn triangles(&self) -> [[u32; 3]; 2] {
        let [a, b, c, d] = self.vertices;
        if self.sheets == 1 { [[a, b, c], [a, c, d]] } else { [[b, c, d], [b, d, a]] }
    }
}

impl LabelMesh {
    /// Size of the vectors in bytes.
    pub fn bytes(&self) -> u64 {
        (size_of_val(&self.vertices[..]) + size_of_val(&self.quads[..])) as u64
    }

    /// Adds the next part of the same mesh, whose quads already number the vertices of the whole.
    pub fn append(&mut self, mut next: Self) -> Result<()> {
        if self.vertices.is_empty() && self.quads.is_empty() {
            *self = next;
            return Ok(());
        }
        memory::append(&mut self.vertices, &mut next.vertices)?;
        memory::append(&mut self.quads, &mut next.quads)
    }
}
