//! The passes of `wgsl/mesh/cubes.wgsl` over one piece of a slab.

use std::ops::Range;

use super::{
    super::{
        grid::CellGrid,
        params::{MarchingCubes, Slab, Topology, check_count},
        table::CASES,
        variants::VARIANTS,
        voxel::Isovalue,
    },
    upload::{RowBand, VoxelKind, Voxels},
};
use crate::{
    data::surface::Surface,
    error::Result,
    gpu::{Batch, Buffer, Context, Shader},
    shader, shader_struct,
};

static SHADER: Shader = shader!("mesh/cubes").unchecked(
    "the host sizes every buffer by the parameters that bound the indices: words and blocks by \
         the grid, samples by the slices that the slab must hold, vertices and triangles by the \
         totals, which the emitting passes reach by the same masks and the same table as the \
         counting pass",
);

/// The shader for samples of a kind; `has_nan`: some are no numbers.
pub(super) fn specialised(kind: VoxelKind, has_nan: bool, topology: Topology) -> Shader {
    let (kind, is_exact) = (format!("{}u", kind as u32), topology == Topology::Exact);
    SHADER.with(&[
        ("KIND", &kind),
        ("HAS_NAN", &has_nan.to_string()),
        ("EXACT", &is_exact.to_string()),
    ])
}

/// All shaders.
pub(super) fn variants() -> Vec<Shader> {
    let of = |topology| {
        let nan = specialised(VoxelKind::F32, true, topology);
        VoxelKind::ALL.map(|kind| specialised(kind, false, topology)).into_iter().chain([nan])
    };
    [Topology::Classic, Topology::Exact].into_iter().flat_map(of).collect()
}

shader_struct! {
    /// The WGSL struct of this name explains the fields.
    pub(super) struct SlabParams {
        width: u32,
        height: u32,
        points_x: u32,
        points_y: u32,
        points_z: u32,
        pad: u32,
        words: u32,
        slice_words: u32,
        first: u32,
        slices: u32,
        layers: u32,
        sample_z: i32,
        volume_y: u32,
        volume_rows: u32,
        start_y: u32,
        end_y: u32,
        numbered: u32,
        owned: u32,
        blocks: u32,
        starts: u32,
        first_active: u32,
        active_blocks: u32,
        vertex_start: u32,
        triangle_start: u32,
        first_vertex: u32,
        threshold: f32,
        level: f32,
        spacing_x: f32,
        spacing_y: f32,
        spacing_z: f32,
        origin_x: f32,
        origin_y: f32,
        origin_z: f32,
        zero: u32,
    }
}

impl SlabParams {
    pub(super) fn new(kernel: &MarchingCubes, grid: &CellGrid, iso: &Isovalue) -> Self {
        let [points_x, points_y, points_z] = grid.points.map(|n| n as u32);
        let [spacing_x, spacing_y, spacing_z] = kernel.spacing.map(|v| v as f32);
        let [origin_x, origin_y, origin_z] = kernel.origin.map(|v| v as f32);
        let slice_words = grid.slice_words();
        let numbered = ((grid.layers + 1) * slice_words) as u64;
        let blocks = numbered.div_ceil(block());
        Self {
            width: grid.width as u32,
            height: grid.height as u32,
            points_x,
            points_y,
            points_z,
            pad: grid.pad as u32,
            words: grid.words as u32,
            slice_words: slice_words as u32,
            first: grid.first_layer as u32,
            slices: grid.slices as u32,
            layers: grid.layers as u32,
            sample_z: (grid.first_layer as isize + grid.sample_z) as i32,
            numbered: numbered as u32,
            owned: (grid.owned() * slice_words) as u32,
            blocks: blocks as u32,
            starts: starts_at(blocks) as u32,
            threshold: iso.threshold,
            level: iso.level,
            spacing_x,
            spacing_y,
            spacing_z,
            origin_x,
            origin_y,
            origin_z,
            ..Self::default()
        }
    }

    /// Those of a dispatch that reads `band`.
    fn of_band(self, band: &RowBand) -> Self {
        self.of_rows(&band.held, &band.rows)
    }

    /// Those of a dispatch that reads rows `held` of the samples for `rows` of points.
    pub(super) fn of_rows(self, held: &Range<usize>, rows: &Range<usize>) -> Self {
        Self {
            volume_y: held.start as u32,
            volume_rows: held.len() as u32,
            start_y: rows.start as u32,
            end_y: rows.end as u32,
            ..self
        }
    }
}

/// Words of a block.
pub(super) fn block() -> u64 {
    SHADER.constant("SIZE").into()
}

/// The first word of a section of `blocks`, which has a word a block.
pub(super) fn section(name: &str, blocks: u64) -> u64 {
    u64::from(SHADER.constant("SECTIONS")) + u64::from(SHADER.constant(name)) * blocks
}

/// Words of `blocks` before `starts`: tables, sections and totals, up to where every device lets a binding
/// begin, a multiple of 256 bytes.
fn starts_at(blocks: u64) -> u64 {
    (section("TOTALS", blocks) + size_of::<Totals>() as u64 / 4).next_multiple_of(64)
}

/// Words of the buffer `blocks` for `numbered` words of points.
pub(super) fn blocks_words(numbered: u64) -> u64 {
    starts_at(numbered.div_ceil(block())) + numbered
}

/// Words of all planes of bits.
pub(super) fn plane_words(
    slice_words: usize,
    (slices, layers): (usize, usize),
    has_nan: bool,
    topology: Topology,
) -> u64 {
    let variants = match topology {
        Topology::Classic => 0,
        Topology::Exact => SHADER.constant("VARIANT_PLANES") as usize * layers,
    };
    let numbers = if has_nan { slices + 1 + layers + 2 } else { 0 };
    ((slices + numbers + variants) * slice_words) as u64
}

/// Workgroups of a dispatch that is [folded](Context::fold).
pub(super) fn max_groups(context: &Context) -> u64 {
    context.limits.folded_workgroups()
}

/// The entry point that classifies samples of which all rows are at hand.
pub(super) fn classifier(kind: VoxelKind, pad: u32, width: u32) -> &'static str {
    match kind == VoxelKind::U8 && pad == 0 && width.is_multiple_of(16) {
        true => "classify_u8",
        false => "classify",
    }
}

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
    params: SlabParams,
    volume: Vec<RowBand>,
    bits: Buffer,
    blocks: Buffer,
}

/// What `scan` leaves behind.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Totals {
    pub(super) vertices: u32,
    triangles: u32,
    active: u32,
    nan_cells: u32,
}

/// Active blocks whose results fit one binding each, and where these lie in the piece's.
#[derive(Clone, Debug)]
pub(super) struct Emission {
    active: Range<u32>,
    vertices: Range<u32>,
    triangles: Range<u32>,
}

/// The buffers of an [`Emission`].
#[derive(Clone, Debug)]
pub(super) struct SurfaceBuffers {
    positions: Buffer,
    normals: Option<Buffer>,
    triangles: Buffer,
}

impl<'a> SlabPasses<'a> {
    /// Brings the samples that `layers` need to the device.
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

    /// All passes, and the surface.
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

    /// Runs the passes up to the totals, and reads these: the one readback before the results.
    pub(super) fn count(&self) -> Result<Totals> {
        let mut batch = self.context.batch();
        self.record_bits(&mut batch)?;
        self.record_counts(&mut batch)?;
        batch.run()?;
        let start = 4 * section("TOTALS", self.params.blocks.into());
        let mut totals = Totals::default();
        let bytes = start..start + size_of::<Totals>() as u64;
        self.context.read_with(&self.blocks, bytes, |bytes| {
            bytemuck::bytes_of_mut(&mut totals).copy_from_slice(bytes);
            Ok(())
        })?;
        Ok(totals)
    }

    /// Records the passes that fill the planes of bits.
    fn record_bits(&self, batch: &mut Batch<'_>) -> Result<()> {
        let Self { context, params, shader, volume, bits, has_nan, .. } = self;
        let entry = match &volume[..] {
            [_] => classifier(self.kind, params.pad, params.width),
            _ => "classify",
        };
        let name = if entry == "classify_u8" { "volume4" } else { "volume" };
        let groups = |slices: u32| {
            context.fold((u64::from(slices) * u64::from(params.slice_words)).div_ceil(block()))
        };
        for band in volume {
            batch
                .pass("mesh classify", &context.pipeline(shader, entry)?)
                .uniform("params", &params.of_band(band))
                .buffer(name, &band.samples)
                .buffer("bits", bits)
                .dispatch(groups(params.slices + u32::from(*has_nan))?);
        }
        if *has_nan {
            batch
                .pass("mesh validate", &context.pipeline(shader, "validate")?)
                .uniform("params", params)
                .buffer("bits", bits)
                .dispatch(groups(params.layers + 2)?);
        }
        if self.kernel.topology == Topology::Exact {
            for band in volume {
                batch
                    .pass("mesh resolve", &context.pipeline(shader, "resolve")?)
                    .uniform("params", &params.of_band(band))
                    .buffer("volume", &band.samples)
                    .buffer("bits", bits)
                    .buffer("blocks", &self.blocks)
                    .dispatch(groups(params.layers)?);
            }
        }
        Ok(())
    }

    /// Records the passes that count.
    fn record_counts(&self, batch: &mut Batch<'_>) -> Result<()> {
        let Self { context, params, shader, bits, .. } = self;
        let [blocks, starts] = self.blocks_and_starts();
        batch
            .pass("mesh count", &context.pipeline(shader, "count")?)
            .uniform("params", params)
            .buffer("bits", bits)
            .buffer("starts", &starts)
            .buffer("blocks", &blocks)
            .dispatch(context.fold(params.blocks.into())?);
        batch
            .pass("mesh scan", &context.pipeline(shader, "scan")?)
            .uniform("params", params)
            .buffer("starts", &starts)
            .buffer("blocks", &blocks)
            .dispatch([1, 1, 1]);
        Ok(())
    }

    /// The two parts of `blocks`.
    fn blocks_and_starts(&self) -> [Buffer; 2] {
        let start = 4 * u64::from(self.params.starts);
        [self.blocks.slice(0..start), self.blocks.slice(start..self.blocks.bytes())]
    }

    /// All active blocks in one emission, or in as many as the device's bindings need.
    pub(super) fn emissions(&self, totals: &Totals) -> Result<Vec<Emission>> {
        let Totals { vertices, triangles, active, .. } = *totals;
        if active == 0 {
            return Ok(Vec::new());
        }
        let (limit, max_groups) = (self.context.max_binding(), max_groups(self.context));
        let fits = |vertices: u32, triangles: u32, active: u32| {
            12 * u64::from(vertices.max(triangles)) <= limit && u64::from(active) <= max_groups
        };
        if fits(vertices, triangles, active) {
            let (active, vertices, triangles) = (0..active, 0..vertices, 0..triangles);
            return Ok(vec![Emission { active, vertices, triangles }]);
        }
        // The first vertex and triangle of each active block, then the totals.
        let count = u64::from(self.params.blocks);
        let [first, end] = ["VERTICES", "NAN_CELLS"].map(|name| section(name, count) as usize);
        let sections: Vec<u32> = self.context.read(&self.blocks, end)?;
        let count = count as usize;
        let (starts, listed) = sections[first..].split_at(2 * count);
        let begin = |index: u32| match listed[..active as usize].get(index as usize) {
            Some(&block) => (starts[block as usize], starts[count + block as usize]),
            None => (vertices, triangles),
        };
        let mut emissions = Vec::new();
        let mut start = 0;
        while start < active {
            let (first_vertex, first_triangle) = begin(start);
            let mut end = start + 1;
            while end < active {
                let (vertex, triangle) = begin(end + 1);
                if !fits(vertex - first_vertex, triangle - first_triangle, end + 1 - start) {
                    break;
                }
                end += 1;
            }
            let (end_vertex, end_triangle) = begin(end);
            emissions.push(Emission {
                active: start..end,
                vertices: first_vertex..end_vertex,
                triangles: first_triangle..end_triangle,
            });
            start = end;
        }
        Ok(emissions)
    }

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
        let Self { context, shader, volume, bits, blocks, .. } = self;
        let params = SlabParams {
            first_active: range.active.start,
            active_blocks: range.active.end - range.active.start,
            vertex_start: range.vertices.start,
            triangle_start: range.triangles.start,
            first_vertex: first_vertex as u32,
            ..self.params
        };
        let groups = context.fold(params.active_blocks.into())?;
        let passes = [
            ("vertices", "positions", Some(&buffers.positions)),
            ("vertex_normals", "normals", buffers.normals.as_ref()),
        ];
        for (entry, name, buffer) in passes {
            let Some(buffer) = buffer else { continue };
            for band in volume {
                batch
                    .pass(&format!("mesh {name}"), &context.pipeline(shader, entry)?)
                    .uniform("params", &params.of_band(band))
                    .buffer("bits", bits)
                    .buffer("blocks", blocks)
                    .buffer("volume", &band.samples)
                    .buffer(name, buffer)
                    .dispatch(groups);
            }
        }
        let [blocks, starts] = self.blocks_and_starts();
        batch
            .pass("mesh faces", &context.pipeline(shader, "faces")?)
            .uniform("params", &params)
            .buffer("bits", bits)
            .buffer("starts", &starts)
            .buffer("blocks", &blocks)
            .buffer("triangles", &buffers.triangles)
            .dispatch(groups);
        Ok(())
    }

    /// What the passes of [`SlabPasses::emit`] made.
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

/// [`CASES`] as the shader reads them.
pub(super) fn case_words() -> Vec<u32> {
    let info = SHADER.constant("CASE_INFO") as usize;
    let mut words = vec![0; SHADER.constant("VARIANTS") as usize];
    for (number, case) in CASES.iter().enumerate() {
        for (i, &edge) in case.triangles.iter().flatten().enumerate() {
            words[2 * number + i / 8] |= u32::from(edge) << (4 * (i % 8));
        }
        let [first, end] = [VARIANTS.first[number], VARIANTS.first[number + 1]].map(u32::from);
        let has_variants = if first < end { SHADER.constant("HAS_VARIANTS") } else { 0 };
        words[info + number] = case.triangles.len() as u32
            | u32::from(case.loops.saturating_sub(1)) << 4
            | u32::from(VARIANTS.faces[number]) << 8
            | has_variants
            | first << 16;
    }
    words
}

/// [`VARIANTS`] as the shader reads them, from its `VARIANTS` on.
pub(super) fn variant_words() -> Vec<u32> {
    let [first, size, end] =
        ["VARIANTS", "VARIANT_WORDS", "SECTIONS"].map(|name| SHADER.constant(name) as usize);
    let mut words = vec![0; end - first];
    let rows = words.chunks_exact_mut(size);
    assert_eq!(rows.len(), VARIANTS.all.len(), "the shader has room for just these");
    for (words, variant) in rows.zip(&VARIANTS.all) {
        for (i, &edge) in variant.triangles.as_flattened().iter().enumerate() {
            words[i / 8] |= u32::from(edge) << (4 * (i % 8));
        }
        words[4] = u32::from_le_bytes([
            variant.triangles.len() as u8,
            variant.discs,
            variant.tunnels,
            variant.tunnel,
        ]);
    }
    words
}
