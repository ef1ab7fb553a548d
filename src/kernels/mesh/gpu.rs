//! The GPU host code: slabs that fit the device, and the passes of one slab.

use std::ops::Range;

use rayon::prelude::*;

use super::{Grid, Level, MarchingCubes, Sample, Slab, Surface, check_count, table::CASES};
use crate::{
    data::samples::Samples,
    error::{Error, Result},
    for_samples,
    gpu::{Batch, Buffer, Context, Shader},
    memory, shader, shader_struct,
};

pub(in crate::kernels) static SHADER: Shader = shader!("mesh/cubes").unchecked(
    "the host sizes every buffer by the parameters that bound the indices: words and blocks by \
         the grid, samples by the slices that the slab must hold, vertices and triangles by the \
         totals, which the emitting passes reach by the same masks and the same table as the \
         counting pass",
);

shader_struct! {
    /// The WGSL struct of this name explains the fields.
    struct Params {
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

/// Samples as the shader reads them.
struct Field<'a> {
    bytes: &'a [u8],
    /// Bytes a sample.
    size: usize,
    /// `KIND` in the shader.
    kind: u32,
    has_nan: bool,
}

/// Samples that f32 does not hold exactly, as distances from the isovalue; nothing for the others.
fn wide(samples: &Samples, level: &Level) -> Result<Vec<f32>> {
    match samples {
        Samples::U32(_) | Samples::I32(_) | Samples::F64(_) => {
            for_samples!(samples, v => memory::collect(v.par_iter().map(|v| v.field(level))))
        }
        _ => Ok(Vec::new()),
    }
}

impl<'a> Field<'a> {
    fn new(samples: &'a Samples, wide: &'a [f32]) -> Self {
        let kind = match samples {
            Samples::U8(_) => 0,
            Samples::I8(_) => 1,
            Samples::U16(_) => 2,
            Samples::I16(_) => 3,
            _ => 4,
        };
        Self {
            bytes: if wide.is_empty() { samples.as_bytes() } else { bytemuck::cast_slice(wide) },
            size: [1, 1, 2, 2, 4][kind as usize],
            kind,
            has_nan: match samples {
                Samples::F32(values) => values.par_iter().any(|v| v.is_nan()),
                Samples::F64(values) => values.par_iter().any(|v| v.is_nan()),
                _ => false,
            },
        }
    }
}

pub(super) fn mesh(kernel: &MarchingCubes, context: &Context, slab: &Slab) -> Result<Surface> {
    let Some(whole) = Grid::new(kernel, slab) else { return Ok(Surface::default()) };
    let level = kernel.level(&slab.volume.samples);
    let wide = wide(&slab.volume.samples, &level)?;
    let field = Field::new(&slab.volume.samples, &wide);
    let mut surface = Surface::default();
    for layers in split(context, slab, &whole, &field)? {
        let first_vertex = slab.first_vertex + surface.positions.len() as u64;
        let resident = Resident::upload(kernel, context, slab, layers, &field, level)?;
        surface.append(resident.mesh(first_vertex)?)?;
    }
    Ok(surface)
}

/// The slab's layers in pieces that fit the device's bindings; a single layer's samples may be
/// [bands](Band).
fn split(
    context: &Context,
    slab: &Slab,
    grid: &Grid,
    field: &Field<'_>,
) -> Result<Vec<Range<usize>>> {
    let limit = context.max_binding();
    let bits_fit = |layers: usize| {
        let words = (grid.slice_words() * (layers + 1)) as u64;
        let bits = plane_words(grid.slice_words(), layers + 2, layers, field.has_nan);
        let blocks = starts_at(words.div_ceil(BLOCK)) + words;
        let max_groups = u64::from(context.limits.max_compute_workgroups_per_dimension).pow(2);
        // Up to three vertices a point and five triangles a cell are counted in 32 bits.
        let points = (grid.points[0] * grid.points[1] * (layers + 1)) as u64;
        4 * bits <= limit
            && 4 * blocks <= limit
            && bits.div_ceil(BLOCK) <= max_groups
            && 5 * points <= u64::from(u32::MAX)
    };
    let fits = |layers: usize| {
        // The first slab has fewer slices below it; leave room for as many as others have.
        let slices = (layers + 3).min(slab.depth);
        (grid.width * grid.height * slices * field.size) as u64 <= limit && bits_fit(layers)
    };
    let fitting = (1..=slab.layers.len()).rev().find(|&layers| fits(layers));
    let height = fitting.or_else(|| bits_fit(1).then_some(1)).ok_or_else(|| {
        Error::gpu(format_args!(
            "{} cannot hold a bit for each of three slices of {}x{} samples in one binding of \
             {limit} bytes",
            context.info.name, grid.width, grid.height
        ))
    })?;
    let Range { start, end } = slab.layers;
    Ok((start..end).step_by(height).map(|start| start..(start + height).min(end)).collect())
}

/// Rows of all slices of a slab whose samples fit one binding: those that some rows of points need.
#[derive(Debug)]
struct Band {
    samples: Buffer,
    /// Rows of samples.
    held: Range<usize>,
    /// Rows of points.
    rows: Range<usize>,
}

impl Band {
    /// Brings `slices`, as they are held in `bytes`, to the device.
    fn upload(
        context: &Context,
        grid: &Grid,
        slices: Range<usize>,
        field: &Field<'_>,
    ) -> Result<Vec<Self>> {
        let row = grid.width * field.size;
        let slice = row * grid.height;
        let bytes = &field.bytes[slices.start * slice..slices.end * slice];
        let most = (context.max_binding() / (row * slices.len()) as u64) as usize;
        if most >= grid.height {
            let (held, rows) = (0..grid.height, 0..grid.points[1]);
            return Ok(vec![Self { samples: context.upload("volume", bytes)?, held, rows }]);
        }
        // An edge ends a row further, and gradients at its ends look at another on either side.
        let height = most.checked_sub(3).filter(|&height| height > 0).ok_or_else(|| {
            Error::gpu(format_args!(
                "{} cannot hold four rows of {} slices of {} samples in one binding",
                context.info.name,
                slices.len(),
                grid.width
            ))
        })?;
        let band = |start: usize| {
            let rows = start..(start + height).min(grid.points[1]);
            let sample = |y: usize| y.saturating_sub(grid.pad).min(grid.height);
            let held = sample(rows.start.saturating_sub(1))..sample(rows.end + 2);
            let mut part = memory::room(held.len() * row * slices.len())?;
            for slice in bytes.chunks_exact(slice) {
                part.extend_from_slice(&slice[held.start * row..held.end * row]);
            }
            Ok(Self { samples: context.upload("volume", &part)?, held, rows })
        };
        (0..grid.points[1]).step_by(height).map(band).collect()
    }

    /// The parameters of a dispatch that reads it.
    fn params(&self, params: Params) -> Params {
        Params {
            volume_y: self.held.start as u32,
            volume_rows: self.held.len() as u32,
            start_y: self.rows.start as u32,
            end_y: self.rows.end as u32,
            ..params
        }
    }
}

/// Words a workgroup.
const BLOCK: u64 = 256;
/// Words of `blocks` before the sections.
const SECTIONS: u64 = 768;

/// Words of `blocks` before the words' starts: the cases, four sections, and the totals, up to where
/// every device lets a binding begin.
fn starts_at(blocks: u64) -> u64 {
    (SECTIONS + 4 * blocks + 4).next_multiple_of(64)
}

/// Words of all planes of bits.
fn plane_words(slice_words: usize, slices: usize, layers: usize, has_nan: bool) -> u64 {
    let slices = slices + if has_nan { slices + 1 + layers + 2 } else { 0 };
    (slices * slice_words) as u64
}

/// What a slab on the device is.
#[derive(Clone, Copy, Debug)]
struct Problem {
    grid: Grid,
    level: Level,
    kind: u32,
    has_nan: bool,
}

/// A slab that lies on the device, and the passes over it.
#[derive(Debug)]
struct Resident<'a> {
    context: &'a Context,
    kernel: MarchingCubes,
    problem: Problem,
    shader: Shader,
    params: Params,
    volume: Vec<Band>,
    bits: Buffer,
    blocks: Buffer,
}

/// What `count` found.
#[derive(Clone, Copy, Debug)]
struct Totals {
    vertices: u32,
    triangles: u32,
    active: u32,
    nan_cells: u32,
}

/// Active blocks whose results fit one binding each, and where these lie in the slab's.
#[derive(Clone, Debug)]
struct Emission {
    active: Range<u32>,
    vertices: Range<u32>,
    triangles: Range<u32>,
}

/// The buffers of an [`Emission`].
#[derive(Clone, Debug)]
struct Output {
    positions: Buffer,
    normals: Option<Buffer>,
    triangles: Buffer,
}

impl<'a> Resident<'a> {
    /// Brings the samples that `layers` need to the device.
    fn upload(
        kernel: &MarchingCubes,
        context: &'a Context,
        slab: &Slab,
        layers: Range<usize>,
        field: &Field<'_>,
        level: Level,
    ) -> Result<Self> {
        let slices = kernel.slices(&layers, slab.depth);
        let [width, height, _] = slab.volume.dims;
        let grid = Grid::of(kernel, [width, height, slab.depth], &slices, &layers);
        let held = slices.start - slab.first_slice..slices.end - slab.first_slice;
        let volume = Band::upload(context, &grid, held, field)?;
        let problem = Problem { grid, level, kind: field.kind, has_nan: field.has_nan };
        Self::new(context, kernel, problem, volume)
    }

    /// All passes, and the surface.
    fn mesh(&self, first_vertex: u64) -> Result<Surface> {
        let context = self.context;
        let mut batch = context.batch();
        self.count(&mut batch)?;
        batch.run()?;
        let totals = self.totals()?;
        check_count(first_vertex, totals.vertices.into())?;
        let mut surface = Surface { nan_cells: totals.nan_cells.into(), ..Surface::default() };
        for range in self.ranges(&totals)? {
            let output = self.output(&range)?;
            let mut batch = context.batch();
            self.emit(&mut batch, &range, &output, first_vertex)?;
            batch.run()?;
            surface.append(Surface {
                positions: context.read(&output.positions, range.vertices.len())?,
                normals: match &output.normals {
                    Some(normals) => context.read(normals, range.vertices.len())?,
                    None => Vec::new(),
                },
                triangles: context.read(&output.triangles, range.triangles.len())?,
                nan_cells: 0,
            })?;
        }
        Ok(surface)
    }

    fn new(
        context: &'a Context,
        kernel: &MarchingCubes,
        problem: Problem,
        volume: Vec<Band>,
    ) -> Result<Self> {
        let Problem { grid, level, kind, has_nan } = problem;
        let slice_words = grid.slice_words();
        let bits = plane_words(slice_words, grid.slices, grid.layers, has_nan);
        let numbered = ((grid.layers + 1) * slice_words) as u64;
        let blocks = numbered.div_ceil(BLOCK);
        let [spacing_x, spacing_y, spacing_z] = kernel.spacing.map(|v| v as f32);
        let [origin_x, origin_y, origin_z] = kernel.origin.map(|v| v as f32);
        let params = Params {
            width: grid.width as u32,
            height: grid.height as u32,
            points_x: grid.points[0] as u32,
            points_y: grid.points[1] as u32,
            points_z: grid.points[2] as u32,
            pad: grid.pad as u32,
            words: grid.words as u32,
            slice_words: slice_words as u32,
            first: grid.first as u32,
            slices: grid.slices as u32,
            layers: grid.layers as u32,
            sample_z: (grid.first as isize + grid.sample_z) as i32,
            numbered: numbered as u32,
            owned: (grid.owned() * slice_words) as u32,
            blocks: blocks as u32,
            starts: starts_at(blocks) as u32,
            threshold: level.threshold,
            level: level.level,
            spacing_x,
            spacing_y,
            spacing_z,
            origin_x,
            origin_y,
            origin_z,
            ..Params::default()
        };
        let resident = Self {
            context,
            kernel: kernel.clone(),
            problem,
            shader: SHADER
                .with(&[("KIND", &format!("{kind}u")), ("HAS_NAN", &has_nan.to_string())]),
            params,
            volume,
            bits: context.allocate("planes of bits", 4 * bits)?,
            blocks: context.allocate("blocks", 4 * (starts_at(blocks) + numbered))?,
        };
        context.write(&resident.blocks, 0, &case_words())?;
        Ok(resident)
    }

    /// Records the passes up to the totals.
    fn count(&self, batch: &mut Batch<'_>) -> Result<()> {
        let Self { context, params, shader, volume, bits, .. } = self;
        let [blocks, starts] = self.counts();
        let pipeline = |entry| context.pipeline(shader, entry);
        let is_plain = self.problem.kind == 0
            && params.pad == 0
            && params.width.is_multiple_of(16)
            && volume.len() == 1;
        let (entry, name) =
            if is_plain { ("classify_bytes", "volume4") } else { ("classify", "volume") };
        let has_nan = self.problem.has_nan;
        let groups = |slices: u32| {
            context.fold((u64::from(slices) * u64::from(params.slice_words)).div_ceil(BLOCK))
        };
        for band in volume {
            batch
                .pass("mesh classify", &pipeline(entry)?)
                .uniform("params", &band.params(*params))
                .buffer(name, &band.samples)
                .buffer("bits", bits)
                .dispatch(groups(params.slices + u32::from(has_nan))?);
        }
        if has_nan {
            batch
                .pass("mesh validate", &pipeline("validate")?)
                .uniform("params", params)
                .buffer("bits", bits)
                .dispatch(groups(params.layers + 2)?);
        }
        batch
            .pass("mesh count", &pipeline("count")?)
            .uniform("params", params)
            .buffer("bits", bits)
            .buffer("starts", &starts)
            .buffer("blocks", &blocks)
            .dispatch(context.fold(params.blocks.into())?);
        batch
            .pass("mesh scan", &pipeline("scan")?)
            .uniform("params", params)
            .buffer("starts", &starts)
            .buffer("blocks", &blocks)
            .dispatch([1, 1, 1]);
        Ok(())
    }

    /// `blocks` without the words' starts, and these.
    fn counts(&self) -> [Buffer; 2] {
        let start = 4 * u64::from(self.params.starts);
        [self.blocks.slice(0..start), self.blocks.slice(start..self.blocks.bytes())]
    }

    /// What the counting passes found: the one readback before the results.
    fn totals(&self) -> Result<Totals> {
        let start = 4 * (SECTIONS + 4 * u64::from(self.params.blocks));
        let mut words = [0u32; 4];
        self.context.read_with(&self.blocks, start..start + 16, |bytes| {
            words.copy_from_slice(bytemuck::cast_slice(bytes));
            Ok(())
        })?;
        let [vertices, triangles, active, nan_cells] = words;
        Ok(Totals { vertices, triangles, active, nan_cells })
    }

    /// All active blocks in one piece, or in as many as the device's bindings need.
    fn ranges(&self, totals: &Totals) -> Result<Vec<Emission>> {
        let Totals { vertices, triangles, active, .. } = *totals;
        if active == 0 {
            return Ok(Vec::new());
        }
        let limit = self.context.max_binding();
        let max_groups = u64::from(self.context.limits.max_compute_workgroups_per_dimension).pow(2);
        let fits = |vertices: u32, triangles: u32, active: u32| {
            12 * u64::from(vertices.max(triangles)) <= limit && u64::from(active) <= max_groups
        };
        if fits(vertices, triangles, active) {
            return Ok(vec![Emission {
                active: 0..active,
                vertices: 0..vertices,
                triangles: 0..triangles,
            }]);
        }
        // Where each active block begins decides.
        let count = self.params.blocks as usize;
        let sections: Vec<u32> = self.context.read(&self.blocks, SECTIONS as usize + 3 * count)?;
        let (starts, listed) = sections[SECTIONS as usize..].split_at(2 * count);
        let begin = |index: u32| match listed[..active as usize].get(index as usize) {
            Some(&block) => (starts[block as usize], starts[count + block as usize]),
            None => (vertices, triangles),
        };
        let mut ranges = Vec::new();
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
            ranges.push(Emission {
                active: start..end,
                vertices: first_vertex..end_vertex,
                triangles: first_triangle..end_triangle,
            });
            start = end;
        }
        Ok(ranges)
    }

    fn output(&self, range: &Emission) -> Result<Output> {
        let bytes = |range: &Range<u32>| 12 * u64::from(range.end - range.start);
        let allocate = |label, range| self.context.allocate(label, bytes(range));
        Ok(Output {
            positions: allocate("positions", &range.vertices)?,
            normals: match self.kernel.normals {
                true => Some(allocate("normals", &range.vertices)?),
                false => None,
            },
            triangles: allocate("triangles", &range.triangles)?,
        })
    }

    /// Records the passes that fill `output`.
    fn emit(
        &self,
        batch: &mut Batch<'_>,
        range: &Emission,
        output: &Output,
        first_vertex: u64,
    ) -> Result<()> {
        let Self { context, shader, volume, bits, blocks, .. } = self;
        let params = Params {
            first_active: range.active.start,
            active_blocks: range.active.end - range.active.start,
            vertex_start: range.vertices.start,
            triangle_start: range.triangles.start,
            first_vertex: first_vertex as u32,
            ..self.params
        };
        let pipeline = |entry| context.pipeline(shader, entry);
        let groups = context.fold(params.active_blocks.into())?;
        let passes = [
            ("vertices", "positions", Some(&output.positions)),
            ("vertex_normals", "normals", output.normals.as_ref()),
        ];
        for (entry, name, buffer) in passes {
            let Some(buffer) = buffer else { continue };
            for band in volume {
                batch
                    .pass(&format!("mesh {name}"), &pipeline(entry)?)
                    .uniform("params", &band.params(params))
                    .buffer("bits", bits)
                    .buffer("blocks", blocks)
                    .buffer("volume", &band.samples)
                    .buffer(name, buffer)
                    .dispatch(groups);
            }
        }
        let [head, starts] = self.counts();
        batch
            .pass("mesh faces", &pipeline("faces")?)
            .uniform("params", &params)
            .buffer("bits", bits)
            .buffer("starts", &starts)
            .buffer("blocks", &head)
            .buffer("triangles", &output.triangles)
            .dispatch(groups);
        Ok(())
    }
}

/// [`CASES`] as the shader reads them.
fn case_words() -> Vec<u32> {
    let mut words = vec![0; SECTIONS as usize];
    for (number, case) in CASES.iter().enumerate() {
        for (i, &edge) in case.triangles.iter().flatten().enumerate() {
            words[2 * number + i / 8] |= u32::from(edge) << (4 * (i % 8));
        }
        words[512 + number] =
            case.triangles.len() as u32 | u32::from(case.loops.saturating_sub(1)) << 8;
    }
    words
}

/// All slabs of a volume on the device, and the outputs, to be meshed again and again.
pub(super) struct Prepared<'a> {
    parts: Vec<(Resident<'a>, Vec<(Emission, Output)>)>,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(kernel: &MarchingCubes, context: &'a Context, slab: &Slab) -> Result<Self> {
        let level = kernel.level(&slab.volume.samples);
        let wide = wide(&slab.volume.samples, &level)?;
        let field = Field::new(&slab.volume.samples, &wide);
        let grid = Grid::new(kernel, slab).expect("a problem with cells");
        let mut parts = Vec::new();
        for layers in split(context, slab, &grid, &field)? {
            let resident = Resident::upload(kernel, context, slab, layers, &field, level)?;
            let mut batch = context.batch();
            resident.count(&mut batch)?;
            batch.run()?;
            let outputs = resident
                .ranges(&resident.totals()?)?
                .into_iter()
                .map(|range| Ok((range.clone(), resident.output(&range)?)))
                .collect::<Result<Vec<_>>>()?;
            parts.push((resident, outputs));
        }
        Ok(Self { parts })
    }

    /// All passes, with the readback of the totals between them, but not of the results.
    pub(super) fn run(&self) -> Result<()> {
        let mut first_vertex = 0;
        for (resident, outputs) in &self.parts {
            let context = resident.context;
            let mut batch = context.batch();
            resident.count(&mut batch)?;
            batch.run()?;
            let totals = resident.totals()?;
            let mut batch = context.batch();
            for (range, output) in outputs {
                resident.emit(&mut batch, range, output, first_vertex)?;
            }
            batch.run()?;
            first_vertex += u64::from(totals.vertices);
        }
        Ok(())
    }

    /// What the last run made.
    pub(super) fn surface(&self) -> Result<Surface> {
        let mut surface = Surface::default();
        for (resident, outputs) in &self.parts {
            for (range, output) in outputs {
                surface.append(Surface {
                    positions: resident.context.read(&output.positions, range.vertices.len())?,
                    triangles: resident.context.read(&output.triangles, range.triangles.len())?,
                    ..Surface::default()
                })?;
            }
        }
        Ok(surface)
    }
}
