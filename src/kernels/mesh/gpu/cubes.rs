//! Runs the passes of `wgsl/mesh/cubes.wgsl` over one piece of a slab.

use std::ops::Range;

use super::{
    super::{
        grid::CellGrid,
        params::{MarchingCubes, Slab, Topology, check_count},
        voxel::Isovalue,
    },
    layout::{
        SHADER, SlabParams, Totals, block, blocks_words, classifier, plane_words, section,
        specialised,
    },
    tables::{case_words, variant_words},
    upload::{RowBand, VoxelKind, Voxels},
};
use crate::{
    data::surface::Surface,
    gpu::{Batch, Buffer, Context, Shader},
    util::{error::Result, memory},
};

/// A piece of a slab on the device, and the passes over it.
#[derive(Debug)]
pub(super) struct SlabPasses<'a> {
    context: &'a Context,
    /// Layers of cells, for messages.
    layers: Range<usize>,
    kernel: MarchingCubes,
    kind: VoxelKind,
    has_nan: bool,
    shader: Shader,
    params: SlabParams,
    volume: Vec<RowBand>,
    bits: Buffer,
    blocks: Buffer,
}

/// A range of active blocks whose results fit the bindings, and the ranges of these results within those of the piece.
#[derive(Clone, Debug)]
struct Emission {
    active: Range<u32>,
    vertices: Range<u32>,
    triangles: Range<u32>,
}

/// Numbers of the first vertex and triangle of each block.
struct BlockStarts {
    /// First vertex of each block of the piece, then first triangle of each block.
    blocks: Vec<u32>,
    /// Indices of the active blocks.
    active: Vec<u32>,
    /// Number of vertices and triangles of the piece.
    totals: [u32; 2],
}

impl BlockStarts {
    /// First vertex and triangle of active block `index`; the totals after the last block.
    fn at(&self, index: u32) -> [u32; 2] {
        let (vertices, triangles) = self.blocks.split_at(self.blocks.len() / 2);
        self.active.get(index as usize).map_or(self.totals, |&block| {
            [vertices, triangles].map(|starts| starts[block as usize])
        })
    }
}

impl<'a> SlabPasses<'a> {
    /// Uploads the tables and the samples that `layers` depend on.
    pub(super) fn upload(
        kernel: &MarchingCubes,
        context: &'a Context,
        slab: &Slab,
        layers: Range<usize>,
        voxels: &Voxels<'_>,
        iso: Isovalue,
    ) -> Result<Self> {
        let slices = kernel.slices(&layers, slab.depth);
        let [width, height, _] = slab.volume.dims;
        let grid = CellGrid::for_layers(kernel, [width, height, slab.depth], &slices, &layers);
        let held = slices.start - slab.first_slice..slices.end - slab.first_slice;
        let volume = RowBand::upload(context, &grid, held, voxels)?;
        let &Voxels { kind, has_nan, .. } = voxels;
        let params = SlabParams::new(kernel, &grid, &iso);
        let bits =
            plane_words(grid.slice_words(), grid.slices, grid.layers, has_nan, kernel.topology);
        let blocks = context.allocate("blocks", 4 * blocks_words(params.numbered.into()))?;
        context.write(&blocks, 0, &case_words())?;
        if kernel.topology == Topology::Exact {
            let start = 4 * u64::from(SHADER.constant("VARIANTS"));
            context.write(&blocks, start, &variant_words())?;
        }
        Ok(Self {
            context,
            layers,
            kernel: kernel.clone(),
            kind,
            has_nan,
            shader: specialised(kind, has_nan, kernel.topology),
            params,
            volume,
            bits: context.allocate("planes of bits", 4 * bits)?,
            blocks,
        })
    }

    /// Runs all passes and reads the surface.
    pub(super) fn mesh(&self, first_vertex: u64) -> Result<Surface> {
        let totals = self.count()?;
        check_count(first_vertex, totals.vertices.into())?;
        let found = [totals.vertices.into(), totals.triangles.into()];
        self.kernel.check_bytes(&self.layers, found)?;
        let mut surface = Surface { nan_cells: totals.nan_cells.into(), ..Surface::default() };
        for range in self.emissions(&totals)? {
            surface.append(self.emit(&range, first_vertex)?)?;
        }
        Ok(surface)
    }

    /// Runs the passes up to the totals and reads the totals, the only readback before the results.
    fn count(&self) -> Result<Totals> {
        let mut batch = self.context.batch();
        self.record_bits(&mut batch)?;
        let groups = self.context.fold(self.params.blocks.into())?;
        self.record(&mut batch, "mesh count", "count", &self.params, &[], groups)?;
        self.record(&mut batch, "mesh scan", "scan", &self.params, &[], [1; 3])?;
        batch.run()?;
        let start = 4 * section("TOTALS", self.params.blocks.into());
        let totals = self.blocks.slice(start..start + size_of::<Totals>() as u64);
        Ok(self.context.read(&totals, 1)?[0])
    }

    /// Divides the piece into emissions as large as the device's bindings and workgroups allow.
    fn emissions(&self, totals: &Totals) -> Result<Vec<Emission>> {
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
            let first = starts.at(start);
            let len = |end: u32| {
                let [vertices, triangles] = starts.at(end);
                [vertices - first[0], triangles - first[1]]
            };
            // A single block fits any device.
            let mut end = start + 1;
            while end < active && fits(len(end + 1), end + 1 - start) {
                end += 1;
            }
            let after = starts.at(end);
            emissions.push(Emission {
                active: start..end,
                vertices: first[0]..after[0],
                triangles: first[1]..after[1],
            });
            start = end;
        }
        Ok(emissions)
    }

    /// Reads the consecutive sections VERTICES, TRIANGLES and ACTIVE of `blocks`.
    fn read_starts(&self, totals: &Totals) -> Result<BlockStarts> {
        let count = u64::from(self.params.blocks);
        let [first, active, end] =
            ["VERTICES", "ACTIVE", "NAN_CELLS"].map(|name| section(name, count) as usize);
        let words: Vec<u32> = self.context.read(&self.blocks, end)?;
        Ok(BlockStarts {
            blocks: memory::copied(&words[first..active])?,
            active: memory::copied(&words[active..][..totals.active as usize])?,
            totals: [totals.vertices, totals.triangles],
        })
    }

    /// Records the passes that fill the planes of bits.
    fn record_bits(&self, batch: &mut Batch<'_>) -> Result<()> {
        let Self { context, params, volume, has_nan, .. } = self;
        let entry = match &volume[..] {
            [_] => classifier(self.kind, params.pad, params.width),
            _ => "classify",
        };
        let groups = |slices: u32| {
            context.fold((u64::from(slices) * u64::from(params.slice_words)).div_ceil(block()))
        };
        for band in volume {
            let slices = params.slices + u32::from(*has_nan);
            let (params, samples) = (params.for_band(band), &band.samples);
            let buffers = [("volume", samples), ("volume4", samples)];
            self.record(batch, "mesh classify", entry, &params, &buffers, groups(slices)?)?;
        }
        if *has_nan {
            let groups = groups(params.layers + 2)?;
            self.record(batch, "mesh validate", "validate", params, &[], groups)?;
        }
        if self.kernel.topology == Topology::Exact {
            for band in volume {
                let (groups, buffers) = (groups(params.layers)?, [("volume", &band.samples)]);
                let params = params.for_band(band);
                self.record(batch, "mesh resolve", "resolve", &params, &buffers, groups)?;
            }
        }
        Ok(())
    }

    /// Records the pass `entry` on the planes, `blocks`, and the buffers `more`.
    fn record(
        &self,
        batch: &mut Batch<'_>,
        label: &str,
        entry: &str,
        params: &SlabParams,
        more: &[(&str, &Buffer)],
        groups: [u32; 3],
    ) -> Result<()> {
        let Self { context, shader, bits, blocks, .. } = self;
        let start = 4 * u64::from(self.params.starts);
        // For an entry point that uses `starts`, `blocks` is bound as two separate ranges.
        let (blocks, starts) = match context.pipeline(shader, entry)?.uses("starts") {
            true => (blocks.slice(0..start), blocks.slice(start..blocks.bytes())),
            false => (blocks.clone(), blocks.clone()),
        };
        let buffers = [&[("bits", bits), ("blocks", &blocks), ("starts", &starts)], more].concat();
        batch.dispatch(label, shader, entry, params, &buffers, groups)
    }

    /// Runs the passes of an emission and reads its results.
    fn emit(&self, range: &Emission, first_vertex: u64) -> Result<Surface> {
        let context = self.context;
        let params = SlabParams {
            first_active: range.active.start,
            active_blocks: range.active.end - range.active.start,
            vertex_start: range.vertices.start,
            triangle_start: range.triangles.start,
            first_vertex: first_vertex as u32,
            ..self.params
        };
        let groups = context.fold(params.active_blocks.into())?;
        let allocate = |label, range: &Range<u32>| context.allocate(label, 12 * range.len() as u64);
        let mut batch = context.batch();
        let mut vectors = |name, entry| -> Result<Buffer> {
            let (label, vectors) = (format!("mesh {name}"), allocate(name, &range.vertices)?);
            for band in &self.volume {
                let more = [("volume", &band.samples), (name, &vectors)];
                let params = params.for_band(band);
                self.record(&mut batch, &label, entry, &params, &more, groups)?;
            }
            Ok(vectors)
        };
        let positions = vectors("positions", "vertices")?;
        let normals = self.kernel.normals.then(|| vectors("normals", "vertex_normals"));
        let normals = normals.transpose()?;
        let triangles = allocate("triangles", &range.triangles)?;
        let more = [("triangles", &triangles)];
        self.record(&mut batch, "mesh faces", "faces", &params, &more, groups)?;
        batch.run()?;
        let read = |vectors: &Buffer| context.read(vectors, range.vertices.len());
        Ok(Surface {
            positions: read(&positions)?,
            normals: normals.map_or(Ok(Vec::new()), |normals| read(&normals))?,
            triangles: context.read(&triangles, range.triangles.len())?,
            ..Surface::default()
        })
    }
}
