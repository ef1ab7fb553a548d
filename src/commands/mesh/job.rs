//! What `gpuproc mesh` is to do: the flags, validated.

use super::{labels::LabelList, placing::Placing, preview::Preview};
use crate::{
    commands::flags::Share,
    io::{Sink, Source, mesh::MeshFormat, volume::Layout},
    kernels::mesh::{
        MarchingCubes,
        post::{Goal, Parts},
    },
    session::Session,
};

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) struct MeshJob {
    pub(super) volume: Source,
    pub(super) layout: Layout,
    pub(super) isovalues: Vec<Iso>,
    /// The labels that are meshed instead.
    pub(super) labels: Option<LabelList>,
    /// At whatever isovalue, in the grid's coordinates.
    pub(super) kernel: MarchingCubes,
    pub(super) placing: Placing,
    /// The connected parts that are kept.
    pub(super) parts: Parts,
    /// Pairs of smoothing steps; steps where labels are meshed.
    pub(super) smooth: u32,
    /// How far the surface is simplified.
    pub(super) simplify: Option<Goal>,
    pub(super) stats: bool,
    /// One name for all isovalues; `{iso}` stands for them.
    pub(super) output: Sink,
    pub(super) format: MeshFormat,
    /// Whether the output's folder is made.
    pub(super) creates_folder: bool,
    /// Whether a PLY is text.
    pub(super) ascii: bool,
    /// Degrees: how a page looks at the surface at first.
    pub(super) view: [f32; 2],
    /// Whether a page holds the volume, too.
    pub(super) live: bool,
    pub(super) preview: Option<Preview>,
    /// Which part of the work is done.
    pub(super) share: Share,
}

impl MeshJob {
    /// All that the surface and its file depend on, beside the volume.
    pub(super) fn parameters(&self, session: &Session) -> String {
        let Self { layout, isovalues, labels, kernel, placing, parts, smooth, simplify, .. } = self;
        let kernel = (kernel.close, kernel.normals, kernel.topology);
        let surface = (layout, isovalues, labels, kernel, placing, parts, smooth, simplify);
        let written =
            (self.format, self.ascii, self.view.map(f32::to_bits), self.live, session.strict);
        format!("{surface:?} {written:?}")
    }
}

/// An isovalue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Iso {
    /// Otsu's threshold.
    Auto,
    Value(f64),
}
