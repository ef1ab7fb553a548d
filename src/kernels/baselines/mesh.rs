//! The published marching cubes pipeline for GPUs: mark active cells, scan, compact, count vertices, scan, write three
//! vertices per triangle. For u8 volumes whose cells fit one binding.

use crate::{
    data::dtype::Dtype,
    device::Kernel,
    gpu::{Batch, Buffer, Context, Shader},
    kernels::{
        mesh::{
            MarchingCubes, Slab,
            table::{CASES, CORNERS, EDGES},
        },
        scan::{Algorithm, Op, ScanBuffers, ScanSpec},
    },
    shader, shader_struct,
    util::{error::Result, memory},
};

pub(super) static SHADER: Shader = shader!("baselines/mesh");

shader_struct! {
    /// The WGSL struct of this name explains the fields.
    struct ClassicParams {
        x: u32,
        y: u32,
        z: u32,
        count: u32,
        level: f32,
        tables: u32,
    }
}

/// The corners of the triangles of an isosurface, in the order of the cells.
#[derive(Clone, Copy, Debug)]
pub struct ClassicCubes {
    /// The isovalue.
    pub iso: f64,
}

impl Kernel for ClassicCubes {
    type In = Slab;
    type Out = Vec<[f32; 3]>;
    const NAME: &'static str = "classic marching cubes";

    fn cpu(&self, slab: &Slab) -> Result<Vec<[f32; 3]>> {
        let surface = MarchingCubes::new(self.iso).cpu(slab)?;
        let corners = surface.triangles.as_flattened().iter();
        Ok(corners.map(|&corner| surface.positions[corner as usize]).collect())
    }

    fn gpu(&self, context: &Context, slab: &Slab) -> Result<Vec<[f32; 3]>> {
        let mut pipeline = Pipeline::new(context, slab, self.iso as f32)?;
        let cells = pipeline.params.count;
        let mut batch = context.batch();
        pipeline.record(&mut batch, "mark", cells)?;
        let active = pipeline.scan(&mut batch, cells)?;
        pipeline.record(&mut batch, "compact", cells)?;
        batch.run()?;
        let active = total(context, &active)?;
        if active == 0 {
            return Ok(Vec::new());
        }
        let mut batch = context.batch();
        pipeline.record(&mut batch, "count", active)?;
        let vertices = pipeline.scan(&mut batch, active)?;
        batch.run()?;
        let vertices = total(context, &vertices)?;
        pipeline.corners = context.allocate("triangle corners", 12 * u64::from(vertices))?;
        let mut batch = context.batch();
        pipeline.record(&mut batch, "emit", active)?;
        batch.run()?;
        context.read(&pipeline.corners, vertices as usize)
    }
}

/// The sum of all scanned numbers, the last number in the carry buffer.
fn total(context: &Context, carry: &Buffer) -> Result<u32> {
    let len = carry.bytes() as usize / 4;
    Ok(context.read::<u32>(carry, len)?[len - 1])
}

/// The buffers of all passes.
struct Pipeline<'a> {
    context: &'a Context,
    params: ClassicParams,
    volume: Buffer,
    values: Buffer,
    offsets: Buffer,
    active_cells: Buffer,
    corners: Buffer,
}

impl<'a> Pipeline<'a> {
    fn new(context: &'a Context, slab: &Slab, level: f32) -> Result<Self> {
        let [x, y, z] = slab.volume.dims.map(|len| len as u32);
        let count = (x - 1) * (y - 1) * (z - 1);
        let samples = slab.volume.samples.as_bytes();
        let sample_bytes = (samples.len() as u64).next_multiple_of(4);
        let tables = tables();
        let volume = context.allocate("volume", sample_bytes + 4 * tables.len() as u64)?;
        context.write(&volume, 0, samples)?;
        context.write(&volume, sample_bytes, &tables)?;
        // Scans work on whole vectors of four.
        let numbers = |label| context.allocate(label, 4 * u64::from(count).next_multiple_of(4));
        Ok(Self {
            context,
            params: ClassicParams { x, y, z, count, level, tables: (sample_bytes / 4) as u32 },
            volume,
            values: numbers("values")?,
            offsets: numbers("offsets")?,
            active_cells: numbers("active cells")?,
            corners: context.allocate("triangle corners", 0)?,
        })
    }

    /// Records the pass `entry` over `count` cells.
    fn record(&self, batch: &mut Batch<'_>, entry: &'static str, count: u32) -> Result<()> {
        let params = ClassicParams { count, ..self.params };
        let buffers = [
            ("volume", &self.volume),
            ("values", &self.values),
            ("offsets", &self.offsets),
            ("active_cells", &self.active_cells),
            ("corners", &self.corners),
        ];
        let label = format!("classic {entry}");
        batch.dispatch_over(&label, &SHADER, entry, &params, &buffers, count as usize)
    }

    /// Records the exclusive scan of `count` values. Returns the carry buffer, whose last number will be the sum.
    fn scan(&self, batch: &mut Batch<'_>, count: u32) -> Result<Buffer> {
        let (algorithm, len) = (Algorithm::Blelloch, count as usize);
        let spec = ScanSpec { dtype: Dtype::U32, op: Op::Sum, inclusive: false, algorithm };
        let carry = memory::filled(0u32, spec.carry_len(self.context, len));
        let carry = self.context.upload("carry", &carry)?;
        let (source, result) = (&self.values, &self.offsets);
        spec.record(self.context, batch, ScanBuffers { source, result, len, carry: &carry })?;
        Ok(carry)
    }
}

/// Two words per case: 15 edge numbers of 4 bits, which are the corners of its triangles, and in the upper 4 bits the
/// number of triangles. Then one word per edge: x, y and z of one end in bits 0 to 2, of the other end in bits 3 to 5.
fn tables() -> Vec<u32> {
    let cases = CASES.iter().flat_map(|case| {
        let mut words = [0, (case.triangles.len() as u32) << 28];
        for (i, &edge) in case.triangles.iter().flatten().enumerate() {
            words[i / 8] |= u32::from(edge) << (4 * (i % 8));
        }
        words
    });
    let bits = |corner: u8| {
        let [x, y, z] = CORNERS[usize::from(corner)].map(u32::from);
        x | y << 1 | z << 2
    };
    cases.chain(EDGES.map(|[from, to]| bits(from) | bits(to) << 3)).collect()
}
