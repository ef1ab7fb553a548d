//! Description of the passes over a whole volume, for a program that drives a GPU itself, such as a web page: the same
//! shader, buffer sizes and workgroup counts that [`SlabPasses`](super::cubes::SlabPasses) uses.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    super::{
        grid::CellGrid,
        params::{MarchingCubes, Slab, Topology},
        voxel::Isovalue,
    },
    layout::{SlabParams, block, blocks_words, classifier, plane_words, section, specialised},
    tables::{case_words, variant_words},
    upload::Voxels,
};
use crate::{
    gpu::ShaderStruct,
    util::error::{Error, Result},
};

/// Everything that a program needs to mesh one volume at any isovalue.
#[derive(Clone, Debug, Serialize)]
pub struct PipelineManifest {
    /// WGSL source of the shader.
    shader: String,
    /// Words of the uniform `params`. The program sets the fields that depend on the isovalue or on the totals.
    params: Vec<u32>,
    /// Offset of each field of `params`, in words.
    fields: BTreeMap<&'static str, usize>,
    /// Initial content of the buffer `blocks`, from its start.
    tables: Vec<u32>,
    /// Sizes of the buffers in bytes. `starts` is bound to the end of `blocks`.
    buffers: BTreeMap<&'static str, u64>,
    /// Offset of `starts` in `blocks`, in bytes.
    starts: u64,
    /// Offset of the totals (vertices, triangles, active blocks) in `blocks`, in bytes.
    totals: u64,
    /// The passes in order. A pass without `groups` has as many workgroups as there are active blocks; the totals are
    /// read before the first such pass.
    passes: Vec<ManifestPass>,
}

/// A pass of a [`PipelineManifest`].
#[derive(Clone, Debug, Serialize)]
struct ManifestPass {
    entry: &'static str,
    groups: Option<u64>,
    /// Binding numbers by variable.
    bindings: BTreeMap<String, u32>,
}

impl PipelineManifest {
    /// The manifest for `slab`, which must be a whole volume. Refuses sample types that are converted anew for each
    /// isovalue, and volumes without cells.
    pub fn new(kernel: &MarchingCubes, slab: &Slab) -> Result<Self> {
        let samples = &slab.volume.samples;
        let iso = Isovalue::new(kernel.iso, samples);
        let voxels = Voxels::new(samples, &iso)?;
        if voxels.is_converted() {
            return Err(Error::usage(format_args!(
                "samples of type {} cannot be meshed at other isovalues: expected 8 or 16 bits, or f32",
                samples.dtype()
            )));
        }
        let [width, height, _] = slab.volume.dims;
        if CellGrid::new(kernel, slab).is_none() {
            return Err(Error::usage("a volume without cells has no surface"));
        }
        let dims = [width, height, slab.depth];
        let grid = CellGrid::for_layers(kernel, dims, &(0..slab.depth), &slab.layers);
        let params =
            SlabParams::new(kernel, &grid, &iso).for_rows(&(0..height), &(0..grid.points[1]));
        let has_nan = voxels.has_nan;
        let shader = specialised(voxels.kind, has_nan, kernel.topology);
        let blocks = u64::from(params.blocks);
        let is_exact = kernel.topology == Topology::Exact;
        let classify = classifier(voxels.kind, params.pad, params.width);
        let passes = passes(classify, has_nan, is_exact, &grid, blocks);
        let reflection = shader.reflection();
        let pass = |(entry, groups)| {
            let bindings = reflection.bindings(entry);
            let bindings =
                bindings.into_iter().map(|binding| (binding.name, binding.number)).collect();
            ManifestPass { entry, groups, bindings }
        };
        let fields = SlabParams::FIELDS.iter().map(|&(name, at)| (name, at / 4)).collect();
        let bits =
            plane_words(grid.slice_words(), grid.slices, grid.layers, has_nan, kernel.topology);
        let mut tables = case_words();
        if is_exact {
            tables.extend(variant_words());
        }
        let buffers = [
            ("volume", (samples.as_bytes().len() as u64).next_multiple_of(16)),
            ("bits", 4 * bits),
            ("blocks", 4 * blocks_words(params.numbered.into())),
        ];
        Ok(Self {
            shader: reflection.source().to_owned(),
            params: bytemuck::cast_slice(&[params]).to_vec(),
            fields,
            tables,
            buffers: buffers.into(),
            starts: 4 * u64::from(params.starts),
            totals: 4 * section("TOTALS", blocks),
            passes: passes.into_iter().map(pass).collect(),
        })
    }
}

/// Entry points of the passes over a volume, in order, and their numbers of workgroups if known in advance.
fn passes(
    classify: &'static str,
    has_nan: bool,
    is_exact: bool,
    grid: &CellGrid,
    blocks: u64,
) -> Vec<(&'static str, Option<u64>)> {
    let groups = |slices: usize| Some(((slices * grid.slice_words()) as u64).div_ceil(block()));
    let mut passes = vec![(classify, groups(grid.slices + usize::from(has_nan)))];
    if has_nan {
        passes.push(("validate", groups(grid.layers + 2)));
    }
    if is_exact {
        passes.push(("resolve", groups(grid.layers)));
    }
    passes.extend([("count", Some(blocks)), ("scan", Some(1))]);
    passes.extend([("vertices", None), ("vertex_normals", None), ("faces", None)]);
    passes
}
