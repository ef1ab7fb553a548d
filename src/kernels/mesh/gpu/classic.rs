//! The passes of `wgsl/mesh/classic.wgsl`, the baseline of `gpuproc bench`: mark cells, scan, compact,
//! count vertices, scan, emit three vertices per triangle. Only u8, and only volumes whose cells fit one
//! binding.

use super::super::table::{CASES, CORNERS, EDGES};
use crate::{
    error::Result,
    gpu::{Batch, Buffer, Context, Shader},
    shader, shader_struct,
};

pub(super) static SHADER: Shader = shader!("mesh/classic");

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

/// Items of a workgroup.
fn size() -> u64 {
    SHADER.constant("SIZE").into()
}

/// A volume on the device, and room for all steps.
#[derive(Debug)]
pub struct Classic<'a> {
    context: &'a Context,
    params: ClassicParams,
    volume: Buffer,
    values: Buffer,
    /// Level by level: exclusive sums of the values within a workgroup, of the workgroups' totals, and so
    /// on; the total of all.
    offsets: Vec<Buffer>,
    scratch: Buffer,
    active: Buffer,
    soup: Buffer,
}

impl<'a> Classic<'a> {
    /// A volume of `dims` samples in `bytes`; at most `vertices` vertices may come out.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the driver refuses the shader or there is no memory.
    pub fn new(
        context: &'a Context,
        dims: [usize; 3],
        bytes: &[u8],
        level: f32,
        vertices: u64,
    ) -> Result<Self> {
        let cells: u64 = dims.iter().map(|&n| n as u64 - 1).product();
        let mut offsets = Vec::new();
        let mut len = cells;
        while len > 1 || offsets.len() < 2 {
            offsets.push(context.allocate("offsets", 4 * len)?);
            len = len.div_ceil(size());
        }
        offsets.push(context.allocate("total", 4)?);
        let cases = CASES.iter().flat_map(|case| {
            let mut words = [0, (case.triangles.len() as u32) << 28];
            for (i, &edge) in case.triangles.iter().flatten().enumerate() {
                words[i / 8] |= u32::from(edge) << (4 * (i % 8));
            }
            words
        });
        let edges = EDGES.map(|ends| {
            let bits = |corner: u8| {
                let [x, y, z] = CORNERS[usize::from(corner)].map(u32::from);
                x | y << 1 | z << 2
            };
            bits(ends[0]) | bits(ends[1]) << 3
        });
        let tables: Vec<u32> = cases.chain(edges).collect();
        let samples = (bytes.len() as u64).next_multiple_of(4);
        let volume = context.allocate("volume", samples + 4 * tables.len() as u64)?;
        context.write(&volume, 0, bytes)?;
        context.write(&volume, samples, &tables)?;
        let [x, y, z] = dims.map(|n| n as u32);
        let tables = (samples / 4) as u32;
        Ok(Self {
            context,
            params: ClassicParams { x, y, z, count: cells as u32, level, tables },
            volume,
            values: context.allocate("values", 4 * cells)?,
            offsets,
            scratch: context.allocate("scratch", 4 * cells.div_ceil(size()))?,
            active: context.allocate("active cells", 4 * cells)?,
            soup: context.allocate("triangle soup", 12 * vertices)?,
        })
    }

    /// All steps, with one readback of the number of active cells and one of that of vertices, which is returned.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn run(&self) -> Result<u64> {
        let context = self.context;
        let mut batch = context.batch();
        self.pass(&mut batch, "mark", self.params.count, &[("values", &self.values)])?;
        self.scan(&mut batch, self.params.count)?;
        let compact = [
            ("values", &self.values),
            ("offsets", &self.offsets[0]),
            ("active_cells", &self.active),
        ];
        self.pass(&mut batch, "compact", self.params.count, &compact)?;
        batch.run()?;
        let active = self.total(self.params.count)?;
        if active == 0 {
            return Ok(0);
        }
        let mut batch = context.batch();
        let count = [("values", &self.values), ("active_cells", &self.active)];
        self.pass(&mut batch, "count", active, &count)?;
        self.scan(&mut batch, active)?;
        batch.run()?;
        let vertices = self.total(active)?;
        let mut batch = context.batch();
        let emit =
            [("offsets", &self.offsets[0]), ("active_cells", &self.active), ("soup", &self.soup)];
        self.pass(&mut batch, "emit", active, &emit)?;
        batch.run()?;
        Ok(vertices.into())
    }

    /// The vertices of the last run.
    ///
    /// # Errors
    /// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
    pub fn soup(&self, vertices: u64) -> Result<Vec<[f32; 3]>> {
        self.context.read(&self.soup, vertices as usize)
    }

    fn pass(
        &self,
        batch: &mut Batch<'_>,
        entry: &'static str,
        count: u32,
        buffers: &[(&str, &Buffer)],
    ) -> Result<()> {
        let params = ClassicParams { count, ..self.params };
        let pipeline = self.context.pipeline(&SHADER, entry)?;
        let mut pass = batch.pass(&format!("classic {entry}"), &pipeline);
        pass = pass.uniform("params", &params);
        if matches!(entry, "mark" | "count" | "emit") {
            pass = pass.buffer("volume", &self.volume);
        }
        for (name, buffer) in buffers {
            pass = pass.buffer(name, buffer);
        }
        pass.dispatch(self.context.fold(u64::from(count).div_ceil(size()))?);
        Ok(())
    }

    /// Exclusive sums of `count` values in `offsets[0]`, and the total at the last level.
    fn scan(&self, batch: &mut Batch<'_>, count: u32) -> Result<()> {
        let lens = self.lens(count);
        for (level, &len) in lens.iter().enumerate() {
            let values = if level == 0 { &self.values } else { &self.offsets[level] };
            // Deeper levels are scanned in place, by way of `scratch`.
            let scanned = if level == 0 { &self.offsets[0] } else { &self.scratch };
            let sums = &self.offsets[level + 1];
            let buffers = [("values", values), ("offsets", scanned), ("sums", sums)];
            self.pass(batch, "scan", len, &buffers)?;
            if level > 0 {
                batch.copy(&scanned.slice(0..4 * u64::from(len)), values);
            }
        }
        for level in (0..lens.len() - 1).rev() {
            let buffers = [("offsets", &self.offsets[level]), ("sums", &self.offsets[level + 1])];
            self.pass(batch, "add", lens[level], &buffers)?;
        }
        Ok(())
    }

    /// How many values each level has. The level behind the last holds the total.
    fn lens(&self, count: u32) -> Vec<u32> {
        let mut lens = vec![count];
        while *lens.last().expect("not empty") > size() as u32 {
            lens.push(lens.last().expect("not empty").div_ceil(size() as u32));
        }
        lens
    }

    fn total(&self, count: u32) -> Result<u32> {
        let levels = self.lens(count).len();
        Ok(self.context.read::<u32>(&self.offsets[levels], 1)?[0])
    }
}
