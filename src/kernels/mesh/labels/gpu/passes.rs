//! Runs the passes of `wgsl/mesh/labels.wgsl` over one piece of a slab.

use std::ops::Range;

use super::super::{
    params::{NetGrid, SurfaceNets},
    sheets::SHEETS,
};
use crate::{
    data::{
        label_mesh::{LabelMesh, Quad},
        samples::Samples,
    },
    gpu::{Buffer, Context, Shader},
    shader, shader_struct,
    util::error::Result,
};

static SHADER: Shader = shader!("mesh/labels").unchecked(
    "the host sizes every buffer by the parameters that bound the indices: words and blocks by the grid, labels by the \
     slices that a dispatch must have, vertices and quads by the totals, which the emitting passes reach by the same \
     words as the counting pass; a neighbour's word exists where a face links to it, and the cells around a crossed \
     edge exist",
);

/// The shader for labels of 8, 16 or 32 bits: 0, 1 or 2.
fn specialised(kind: u32) -> Shader {
    SHADER.with(&[("KIND", kind)])
}

/// The shader in every specialisation.
pub(in super::super::super) fn variants() -> Vec<Shader> {
    (0..3).map(specialised).collect()
}

shader_struct! {
    /// The WGSL struct of this name explains the fields.
    struct NetParams {
        width: u32,
        height: u32,
        depth: u32,
        words: u32,
        slice_words: u32,
        first: u32,
        layers: u32,
        core_start: u32,
        core_end: u32,
        numbered: u32,
        blocks: u32,
        starts: u32,
        start_z: u32,
        end_z: u32,
        slice: u32,
        vertices: u32,
        core_vertex: u32,
        core_vertices: u32,
        first_vertex: u32,
        steps: u32,
    }
}

fn block() -> u64 {
    SHADER.constant("SIZE").into()
}

/// First word of a section of the buffer `blocks`. A section has one word per block.
fn section(name: &str, blocks: u64) -> u64 {
    u64::from(SHADER.constant("SECTIONS")) + u64::from(SHADER.constant(name)) * blocks
}

/// Slices below and above its layers that a dispatch reads to find the sheets of its quads.
const BELOW: usize = 3;
const ABOVE: usize = 2;

/// Parameters of a piece that fits the device.
pub(super) struct PiecePlan {
    /// Number of layers of points whose labels are in one buffer.
    chunk: usize,
    params: NetParams,
}

impl PiecePlan {
    /// The plan of a piece; `None` if the piece does not fit the device.
    pub(super) fn new(context: &Context, grid: &NetGrid, samples: &Samples) -> Option<Self> {
        let limit = context.max_binding();
        let words = grid.cells[0].div_ceil(32) as u64;
        let slice_words = words * grid.cells[1] as u64;
        let layers = grid.reach.len() as u64;
        let numbered = slice_words * layers;
        let blocks = numbered.div_ceil(block());
        let starts = section("TOTALS", blocks) + 4;
        let slice = (grid.width * grid.height * samples.dtype().size()) as u64;
        let chunk = (limit / slice).checked_sub((BELOW + ABOVE) as u64).filter(|&n| n > 0)?;
        let fits = 4 * (starts + 3 * numbered) <= limit
            && 12 * (numbered + slice_words) <= limit
            && (numbered + slice_words).div_ceil(block()) <= context.limits.folded_workgroups()
            // Cells are numbered in 32 bits.
            && 32 * (numbered + slice_words) <= u64::from(u32::MAX);
        let core = grid.layers.start - grid.reach.start;
        let params = NetParams {
            width: grid.width as u32,
            height: grid.height as u32,
            depth: grid.cells[2] as u32 - 1,
            words: words as u32,
            slice_words: slice_words as u32,
            first: grid.reach.start as u32,
            layers: layers as u32,
            core_start: core as u32,
            core_end: (core + grid.layers.len()) as u32,
            numbered: numbered as u32,
            blocks: blocks as u32,
            starts: starts as u32,
            ..NetParams::default()
        };
        fits.then(|| Self { chunk: chunk.min(layers + 1) as usize, params })
    }
}

/// Labels of some slices, for a range of layers counted within reach.
#[derive(Debug)]
struct Chunk {
    layers: Range<usize>,
    slice: usize,
    labels: Buffer,
}

/// A piece of a slab on the device, and the passes over it.
#[derive(Debug)]
pub(in super::super) struct NetPasses<'a> {
    pub(super) context: &'a Context,
    steps: u32,
    shader: Shader,
    params: NetParams,
    chunks: Vec<Chunk>,
    edges: Buffer,
    blocks: Buffer,
}

/// Totals of a piece, written by the pass `scan`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Totals {
    /// Number of vertices of all layers within reach.
    pub(super) vertices: u32,
    /// Number of quads of the layers that are meshed.
    pub(super) quads: u32,
    /// Number of vertices before the layers that are meshed, and before the layers above these.
    core: [u32; 2],
}

impl Totals {
    /// Number of vertices of the layers that are meshed.
    pub(super) fn core_vertices(&self) -> u32 {
        self.core[1] - self.core[0]
    }
}

impl<'a> NetPasses<'a> {
    /// Uploads the tables and the labels within reach.
    pub(super) fn upload(
        kernel: &SurfaceNets,
        context: &'a Context,
        grid: &NetGrid,
        samples: &Samples,
        plan: &PiecePlan,
    ) -> Result<Self> {
        let (kind, size) = match samples {
            Samples::U8(_) => (0, 1),
            Samples::U16(_) => (1, 2),
            _ => (2, 4),
        };
        let slice = grid.width * grid.height * size;
        let depth = grid.cells[2] - 1;
        let points = grid.reach.len() + 1;
        let chunk = |start: usize| {
            let layers = start..(start + plan.chunk).min(points);
            // Point z is sample z - 1.
            let first = (grid.reach.start + layers.start).saturating_sub(BELOW);
            let first = first.max(grid.slices.start).min(depth);
            let end = (grid.reach.start + layers.end + ABOVE).min(grid.slices.end).max(first);
            let held = (first - grid.slices.start) * slice..(end - grid.slices.start) * slice;
            let labels = context.upload("labels", &samples.as_bytes()[held])?;
            Ok(Chunk { layers, slice: first, labels })
        };
        let chunks = (0..points).step_by(plan.chunk).map(chunk).collect::<Result<_>>()?;
        let params = plan.params;
        let (numbered, slice_words) = (u64::from(params.numbered), u64::from(params.slice_words));
        let blocks = 4 * (u64::from(params.starts) + 3 * numbered);
        let blocks = context.allocate("blocks", blocks)?;
        context.write(&blocks, 0, &[SHEETS.cut, SHEETS.joined].concat())?;
        Ok(Self {
            context,
            steps: kernel.steps,
            shader: specialised(kind),
            params,
            chunks,
            edges: context.allocate("crossed edges", 12 * (numbered + slice_words))?,
            blocks,
        })
    }

    /// Runs the passes up to the totals and reads the totals, the only readback before the results.
    pub(super) fn count(&self) -> Result<Totals> {
        let Self { context, params, shader, edges, blocks, .. } = self;
        let mut batch = context.batch();
        let points = u64::from(params.numbered) + u64::from(params.slice_words);
        let points = context.fold(points.div_ceil(block()))?;
        for chunk in &self.chunks {
            let (params, buffers) =
                (chunk_params(params, chunk), [("volume", &chunk.labels), ("edge_bits", edges)]);
            batch.dispatch("labels edges", shader, "edges", &params, &buffers, points)?;
        }
        let buffers = [("edge_bits", edges), ("blocks", blocks)];
        let groups = context.fold(params.blocks.into())?;
        batch.dispatch("labels count", shader, "count", params, &buffers, groups)?;
        batch.dispatch("labels scan", shader, "scan", params, &buffers, [1; 3])?;
        batch.run()?;
        let start = 4 * section("TOTALS", params.blocks.into());
        Ok(context.read(&blocks.slice(start..start + size_of::<Totals>() as u64), 1)?[0])
    }

    /// Whether the results fit the device.
    pub(super) fn fits(&self, totals: &Totals) -> bool {
        let limit = self.context.max_binding();
        let (vertices, quads) = (u64::from(totals.vertices), u64::from(totals.quads));
        16 * vertices <= limit
            && size_of::<Quad>() as u64 * quads <= limit
            && vertices.div_ceil(block()) <= self.context.limits.folded_workgroups()
            && 7 * quads <= u64::from(u32::MAX)
    }

    /// Runs the passes that make the mesh, and reads the mesh.
    pub(super) fn mesh(&self, totals: &Totals, first_vertex: u64) -> Result<LabelMesh> {
        let Self { context, shader, edges, blocks, .. } = self;
        if totals.vertices == 0 {
            return Ok(LabelMesh::default());
        }
        let params = NetParams {
            vertices: totals.vertices,
            core_vertex: totals.core[0],
            core_vertices: totals.core_vertices(),
            first_vertex: first_vertex as u32,
            ..self.params
        };
        let allocate = |label, bytes: usize, count: u32| {
            context.allocate(label, bytes as u64 * u64::from(count))
        };
        let cells = allocate("cells", 8, totals.vertices)?;
        let links = allocate("links", 16, totals.vertices)?;
        let offsets = || allocate("offsets", 8, totals.vertices);
        let offsets = [offsets()?, offsets()?];
        let vertices = allocate("vertices", 12, params.core_vertices)?;
        let faces = allocate("faces", size_of::<Quad>(), totals.quads)?;
        let mut batch = context.batch();
        let mut record = |label, entry, params: &NetParams, more: &[(&str, &Buffer)], groups| {
            let buffers = [("edge_bits", edges), ("blocks", blocks), ("links", &links)];
            let buffers = [&buffers[..], &[("cells", &cells), ("vertices", &vertices)], more];
            batch.dispatch(label, shader, entry, params, &buffers.concat(), groups)
        };
        let all_blocks = context.fold(params.blocks.into())?;
        let groups = |count: u32| context.fold(u64::from(count).div_ceil(block()));
        record("labels links", "find_links", &params, &[], all_blocks)?;
        for steps in 0..self.steps {
            let [from, to] = [0, 1].map(|i| &offsets[(steps as usize + i) % 2]);
            let (params, moved) =
                (NetParams { steps, ..params }, [("offsets", from), ("moved", to)]);
            record("labels smooth", "smooth_step", &params, &moved, groups(params.vertices)?)?;
        }
        let last = [("offsets", &offsets[self.steps as usize % 2])];
        let all_steps = NetParams { steps: self.steps, ..params };
        record(
            "labels vertices",
            "write_vertices",
            &all_steps,
            &last,
            groups(params.core_vertices)?,
        )?;
        for chunk in &self.chunks {
            let more = [("volume", &chunk.labels), ("faces", &faces)];
            record("labels quads", "quads", &chunk_params(&params, chunk), &more, all_blocks)?;
        }
        batch.run()?;
        Ok(LabelMesh {
            vertices: context.read(&vertices, params.core_vertices as usize)?,
            quads: context.read(&faces, totals.quads as usize)?,
        })
    }
}

/// Parameters of a dispatch that reads the labels of `chunk`.
fn chunk_params(params: &NetParams, chunk: &Chunk) -> NetParams {
    NetParams {
        start_z: chunk.layers.start as u32,
        end_z: chunk.layers.end as u32,
        slice: chunk.slice as u32,
        ..*params
    }
}
