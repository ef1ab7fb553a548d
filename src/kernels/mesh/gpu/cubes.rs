//! The passes of `wgsl/mesh/cubes.wgsl` over one piece of a slab.

use std::ops::Range;

use super::{
    super::{
        grid::CellGrid,
        params::{MarchingCubes, Slab, Topology, check_count},
        voxel::Isovalue,
    },
    emission::{Emission, SurfaceBuffers},
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
    util::error::Result,
};

/// A piece of a slab on the device, and the passes over it.
#[derive(Debug)]
pub(super) struct SlabPasses<'a> {
    pub(super) context: &'a Context,
    /// The layers of cells, for messages.
    layers: Range<usize>,
    kernel: MarchingCubes,
    kind: VoxelKind,
    has_nan: bool,
    shader: Shader,
    pub(super) params: SlabParams,
    volume: Vec<RowBand>,
    bits: Buffer,
    pub(super) blocks: Buffer,
}

impl<'a> SlabPasses<'a> {
    /// Uploads the samples that `layers` depend on, and the tables.
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
        let grid = CellGrid::of(kernel, [width, height, slab.depth], &slices, &layers);
        let held = slices.start - slab.first_slice..slices.end - slab.first_slice;
        let volume = RowBand::upload(context, &grid, held, voxels)?;
        let &Voxels { kind, has_nan, .. } = voxels;
        let params = SlabParams::new(kernel, &grid, &iso);
        let counts = (grid.slices, grid.layers);
        let bits = plane_words(grid.slice_words(), counts, has_nan, kernel.topology);
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
            let buffers = self.buffers(&range)?;
            let mut batch = self.context.batch();
            self.emit(&mut batch, &range, &buffers, first_vertex)?;
            batch.run()?;
            surface.append(self.read(&range, &buffers)?)?;
        }
        Ok(surface)
    }

    /// Runs the passes up to the totals and reads the totals: the one readback before the results.
    pub(super) fn count(&self) -> Result<Totals> {
        let mut batch = self.context.batch();
        self.record_bits(&mut batch)?;
        self.record_counts(&mut batch)?;
        batch.run()?;
        let start = 4 * section("TOTALS", self.params.blocks.into());
        let totals = self.blocks.slice(start..start + size_of::<Totals>() as u64);
        Ok(self.context.read(&totals, 1)?[0])
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
            let (params, samples) = (params.of_band(band), &band.samples);
            let buffers = [("volume", samples), ("volume4", samples)];
            self.record(batch, ("mesh classify", entry), &params, &buffers, groups(slices)?)?;
        }
        if *has_nan {
            let groups = groups(params.layers + 2)?;
            self.record(batch, ("mesh validate", "validate"), params, &[], groups)?;
        }
        if self.kernel.topology == Topology::Exact {
            for band in volume {
                let (groups, buffers) = (groups(params.layers)?, [("volume", &band.samples)]);
                let params = params.of_band(band);
                self.record(batch, ("mesh resolve", "resolve"), &params, &buffers, groups)?;
            }
        }
        Ok(())
    }

    /// Records the passes that count.
    fn record_counts(&self, batch: &mut Batch<'_>) -> Result<()> {
        let groups = self.context.fold(self.params.blocks.into())?;
        self.record(batch, ("mesh count", "count"), &self.params, &[], groups)?;
        self.record(batch, ("mesh scan", "scan"), &self.params, &[], [1; 3])
    }

    /// Records a pass, given its label and its entry point. It reads and writes the planes, `blocks`, and `more`.
    fn record(
        &self,
        batch: &mut Batch<'_>,
        (label, entry): (&str, &str),
        params: &SlabParams,
        more: &[(&str, &Buffer)],
        groups: [u32; 3],
    ) -> Result<()> {
        let Self { context, shader, bits, blocks, .. } = self;
        let start = 4 * u64::from(self.params.starts);
        // An entry point that uses `starts` has the two parts of `blocks` apart.
        let (blocks, starts) = match context.pipeline(shader, entry)?.uses("starts") {
            true => (blocks.slice(0..start), blocks.slice(start..blocks.bytes())),
            false => (blocks.clone(), blocks.clone()),
        };
        let buffers = [&[("bits", bits), ("blocks", &blocks), ("starts", &starts)], more].concat();
        batch.dispatch(label, (shader, entry), params, &buffers, groups)
    }

    /// Buffers for the results of an emission.
    pub(super) fn buffers(&self, range: &Emission) -> Result<SurfaceBuffers> {
        let bytes = |range: &Range<u32>| 12 * u64::from(range.end - range.start);
        let allocate = |label, range| self.context.allocate(label, bytes(range));
        Ok(SurfaceBuffers {
            positions: allocate("positions", &range.vertices)?,
            normals: match self.kernel.normals {
                true => Some(allocate("normals", &range.vertices)?),
                false => None,
            },
            triangles: allocate("triangles", &range.triangles)?,
        })
    }

    /// Records the passes that fill `buffers`.
    pub(super) fn emit(
        &self,
        batch: &mut Batch<'_>,
        range: &Emission,
        buffers: &SurfaceBuffers,
        first_vertex: u64,
    ) -> Result<()> {
        let params = SlabParams {
            first_active: range.active.start,
            active_blocks: range.active.end - range.active.start,
            vertex_start: range.vertices.start,
            triangle_start: range.triangles.start,
            first_vertex: first_vertex as u32,
            ..self.params
        };
        let groups = self.context.fold(params.active_blocks.into())?;
        let passes = [
            ("mesh positions", "vertices", "positions", Some(&buffers.positions)),
            ("mesh normals", "vertex_normals", "normals", buffers.normals.as_ref()),
        ];
        for (label, entry, name, buffer) in passes {
            let Some(buffer) = buffer else { continue };
            for band in &self.volume {
                let buffers = [("volume", &band.samples), (name, buffer)];
                self.record(batch, (label, entry), &params.of_band(band), &buffers, groups)?;
            }
        }
        let triangles = [("triangles", &buffers.triangles)];
        self.record(batch, ("mesh faces", "faces"), &params, &triangles, groups)
    }

    /// Reads the results of [`SlabPasses::emit`].
    pub(super) fn read(&self, range: &Emission, buffers: &SurfaceBuffers) -> Result<Surface> {
        let context = self.context;
        Ok(Surface {
            positions: context.read(&buffers.positions, range.vertices.len())?,
            normals: match &buffers.normals {
                Some(normals) => context.read(normals, range.vertices.len())?,
                None => Vec::new(),
            },
            triangles: context.read(&buffers.triangles, range.triangles.len())?,
            ..Surface::default()
        })
    }
}
