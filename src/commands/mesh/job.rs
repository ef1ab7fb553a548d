//! What `gpuproc mesh` is to do: the flags, validated.

use std::fmt;

use super::{
    color::Color, color_by::ColorBy, labels::LabelList, placing::Placing, preview::Preview,
    region::Region,
};
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
    /// Which samples are meshed.
    pub(super) region: Region,
    pub(super) isovalues: Vec<Iso>,
    /// The labels that are meshed instead.
    pub(super) labels: Option<LabelList>,
    /// At whatever isovalue, in the grid's coordinates.
    pub(super) kernel: MarchingCubes,
    pub(super) placing: Placing,
    /// Whether triangles without an area are left out.
    pub(super) cleans: bool,
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
    /// Colours of the isovalues in a GLB, as far as they are named.
    pub(super) colors: Vec<Color>,
    /// What decides the colours of vertices.
    pub(super) color_by: Option<ColorBy>,
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
    /// Whether one output takes the surfaces of all isovalues.
    pub(super) fn is_together(&self) -> bool {
        holds_several(self.format)
    }

    /// All that the surface and its file depend on, beside the volume.
    pub(super) fn parameters(&self, session: &Session) -> String {
        let Self {
            layout,
            region,
            isovalues,
            labels,
            kernel,
            placing,
            cleans,
            parts,
            smooth,
            simplify,
            ..
        } = self;
        let kernel = (kernel.close, kernel.normals, kernel.topology);
        let improved = (cleans, parts, smooth, simplify);
        let surface = (layout, region, isovalues, labels, kernel, placing, improved);
        let view = self.view.map(f32::to_bits);
        let colors = (&self.colors, &self.color_by);
        let written = (self.format, self.ascii, view, self.live, colors, session.strict);
        format!("{surface:?} {written:?}")
    }
}

/// Whether an output of the format takes the surfaces of several isovalues.
pub(super) fn holds_several(format: MeshFormat) -> bool {
    matches!(format, MeshFormat::Html | MeshFormat::Glb)
}

/// An isovalue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Iso {
    Value(f64),
    /// Found in the volume's histogram.
    Found(Rule),
}

/// How an isovalue is found in a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// The threshold with this number, from 0 on, of so many between Otsu's classes.
    Otsu { number: usize, of: usize },
    /// As many percent of the samples are not above it.
    Percentile(f64),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Otsu { of: 1, .. } => write!(f, "auto"),
            Self::Otsu { number, of } => write!(f, "otsu:{of}, {} of {of}", number + 1),
            Self::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}
