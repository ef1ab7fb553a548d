//! Emissions: the surface of a piece in parts that fit the device's bindings.

use std::ops::Range;

use super::{
    cubes::SlabPasses,
    layout::{Totals, section},
};
use crate::{gpu::Buffer, util::error::Result};

/// Active blocks whose results fit one binding each, and where these results lie in those of the piece.
#[derive(Clone, Debug)]
pub(super) struct Emission {
    pub(super) active: Range<u32>,
    pub(super) vertices: Range<u32>,
    pub(super) triangles: Range<u32>,
}

/// The buffers of an [`Emission`].
#[derive(Clone, Debug)]
pub(super) struct SurfaceBuffers {
    pub(super) positions: Buffer,
    pub(super) normals: Option<Buffer>,
    pub(super) triangles: Buffer,
}

/// Where the results of each active block begin.
struct Starts {
    /// The first vertex of each block of the piece, then the first triangle of each block.
    blocks: Vec<u32>,
    /// The numbers of the active blocks.
    active: Vec<u32>,
    /// Vertices and triangles of the piece.
    totals: [u32; 2],
}

impl Starts {
    /// The first vertex and triangle of active block `index`; the totals behind the last.
    fn of(&self, index: u32) -> [u32; 2] {
        let (vertices, triangles) = self.blocks.split_at(self.blocks.len() / 2);
        self.active.get(index as usize).map_or(self.totals, |&block| {
            [vertices, triangles].map(|starts| starts[block as usize])
        })
    }
}

impl SlabPasses<'_> {
    /// The piece as one emission, or as several, each as large as the device's bindings and workgroups allow.
    pub(super) fn emissions(&self, totals: &Totals) -> Result<Vec<Emission>> {
        let Totals { vertices, triangles, active, .. } = *totals;
        if active == 0 {
            return Ok(Vec::new());
        }
        let (limit, groups) = (self.context.max_binding(), self.context.limits.folded_workgroups());
        let fits = |[vertices, triangles]: [u32; 2], active: u32| {
            12 * u64::from(vertices.max(triangles)) <= limit && u64::from(active) <= groups
        };
        if fits([vertices, triangles], active) {
            let (active, vertices, triangles) = (0..active, 0..vertices, 0..triangles);
            return Ok(vec![Emission { active, vertices, triangles }]);
        }
        let starts = self.read_starts(totals)?;
        let mut emissions = Vec::new();
        let mut start = 0;
        while start < active {
            let first = starts.of(start);
            let len = |end: u32| {
                let [vertices, triangles] = starts.of(end);
                [vertices - first[0], triangles - first[1]]
            };
            // At least one block, whose results fit any device.
            let mut end = start + 1;
            while end < active && fits(len(end + 1), end + 1 - start) {
                end += 1;
            }
            let behind = starts.of(end);
            emissions.push(Emission {
                active: start..end,
                vertices: first[0]..behind[0],
                triangles: first[1]..behind[1],
            });
            start = end;
        }
        Ok(emissions)
    }

    /// Reads the sections VERTICES, TRIANGLES and ACTIVE of `blocks`, which follow each other.
    fn read_starts(&self, totals: &Totals) -> Result<Starts> {
        let count = u64::from(self.params.blocks);
        let [first, active, end] =
            ["VERTICES", "ACTIVE", "NAN_CELLS"].map(|name| section(name, count) as usize);
        let words: Vec<u32> = self.context.read(&self.blocks, end)?;
        Ok(Starts {
            blocks: words[first..active].to_vec(),
            active: words[active..][..totals.active as usize].to_vec(),
            totals: [totals.vertices, totals.triangles],
        })
    }
}
