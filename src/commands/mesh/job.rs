//! What `gpuproc mesh` is to do: the flags, validated.

use super::{placing::Placing, preview::Preview};
use crate::{
    io::{Sink, Source, mesh::MeshFormat, volume::Layout},
    kernels::mesh::MarchingCubes,
};

/// What is to be done.
pub(super) struct MeshJob {
    pub(super) volume: Source,
    pub(super) layout: Layout,
    pub(super) isovalues: Vec<Iso>,
    /// At whatever isovalue, in the grid's coordinates.
    pub(super) kernel: MarchingCubes,
    pub(super) placing: Placing,
    /// Whether only the largest connected part is kept.
    pub(super) largest: bool,
    /// Pairs of smoothing steps.
    pub(super) smooth: u32,
    /// The share of the triangles that is left.
    pub(super) simplify: Option<f64>,
    pub(super) stats: bool,
    /// One name for all isovalues; `{iso}` stands for them.
    pub(super) output: Sink,
    pub(super) format: MeshFormat,
    /// Whether a PLY is text.
    pub(super) ascii: bool,
    pub(super) preview: Option<Preview>,
}

/// An isovalue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Iso {
    /// Otsu's threshold.
    Auto,
    Value(f64),
}
