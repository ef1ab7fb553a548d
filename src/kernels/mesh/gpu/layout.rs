//! Parameters of `wgsl/mesh/cubes.wgsl`, and the sizes and sections of its buffers.

use std::ops::Range;

use super::{
    super::{
        grid::CellGrid,
        params::{MarchingCubes, Topology},
        voxel::Isovalue,
    },
    upload::{RowBand, VoxelKind},
};
use crate::{gpu::Shader, shader, shader_struct};

pub(super) static SHADER: Shader = shader!("mesh/cubes").unchecked(
    "the host sizes every buffer by the parameters that bound the indices: words and blocks by \
         the grid, samples by the slices that the slab must hold, vertices and triangles by the \
         totals, which the emitting passes reach by the same masks and the same table as the \
         counting pass",
);

/// The shader for samples of a kind.
pub(super) fn specialised(kind: VoxelKind, has_nan: bool, topology: Topology) -> Shader {
    let shader = SHADER.with(&[("KIND", kind as u32)]);
    shader.with(&[("HAS_NAN", has_nan), ("EXACT", topology == Topology::Exact)])
}

/// The shader in every specialisation.
pub(super) fn variants() -> Vec<Shader> {
    let specialise = |topology| {
        let nan = specialised(VoxelKind::F32, true, topology);
        VoxelKind::ALL.map(|kind| specialised(kind, false, topology)).into_iter().chain([nan])
    };
    [Topology::Classic, Topology::Exact].into_iter().flat_map(specialise).collect()
}

shader_struct! {
    /// The WGSL struct of this name explains the fields.
    pub(super) struct SlabParams {
        spacing: [f32; 4],
        per_step: [f32; 4],
        origin: [f32; 4],
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
        zero: u32,
    }
}

impl SlabParams {
    pub(super) fn new(kernel: &MarchingCubes, grid: &CellGrid, iso: &Isovalue) -> Self {
        let [points_x, points_y, points_z] = grid.points.map(|n| n as u32);
        let vector = |[x, y, z]: [f64; 3]| [x as f32, y as f32, z as f32, 0.0];
        let slice_words = grid.slice_words();
        let numbered = ((grid.layers + 1) * slice_words) as u64;
        let blocks = numbered.div_ceil(block());
        Self {
            spacing: vector(kernel.spacing),
            per_step: vector(kernel.spacing).map(|v| 1.0 / v),
            origin: vector(kernel.origin),
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
            ..Self::default()
        }
    }

    /// Parameters of a dispatch that reads `band`.
    pub(super) fn for_band(self, band: &RowBand) -> Self {
        self.for_rows(&band.sample_rows, &band.rows)
    }

    /// Parameters of a dispatch over `rows` of points that reads `sample_rows`.
    pub(super) fn for_rows(self, sample_rows: &Range<usize>, rows: &Range<usize>) -> Self {
        Self {
            volume_y: sample_rows.start as u32,
            volume_rows: sample_rows.len() as u32,
            start_y: rows.start as u32,
            end_y: rows.end as u32,
            ..self
        }
    }
}

/// Number of words of a block.
pub(super) fn block() -> u64 {
    SHADER.constant("SIZE").into()
}

/// First word of a section of the buffer `blocks`. A section has one word per block.
pub(super) fn section(name: &str, blocks: u64) -> u64 {
    u64::from(SHADER.constant("SECTIONS")) + u64::from(SHADER.constant(name)) * blocks
}

/// Number of words of the buffer `blocks` before `starts`: tables, sections and totals. Padded to 256 bytes, the
/// binding alignment of every device.
fn starts_at(blocks: u64) -> u64 {
    (section("TOTALS", blocks) + size_of::<Totals>() as u64 / 4).next_multiple_of(64)
}

/// Number of words of the buffer `blocks` for `numbered` words of points.
pub(super) fn blocks_words(numbered: u64) -> u64 {
    starts_at(numbered.div_ceil(block())) + numbered
}

/// Number of words of all planes of bits.
pub(super) fn plane_words(
    slice_words: usize,
    slices: usize,
    layers: usize,
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

/// Entry point that classifies samples, if one buffer holds all of their rows.
pub(super) fn classifier(kind: VoxelKind, pad: u32, width: u32) -> &'static str {
    match kind == VoxelKind::U8 && pad == 0 && width.is_multiple_of(16) {
        true => "classify_u8",
        false => "classify",
    }
}

/// Totals of a piece, written by the pass `scan`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Totals {
    pub(super) vertices: u32,
    pub(super) triangles: u32,
    /// Number of blocks with vertices or triangles.
    pub(super) active: u32,
    pub(super) nan_cells: u32,
}
