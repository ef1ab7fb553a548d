//! A job of `gpuproc mesh`: the flags, validated.

use std::{fmt, iter};

use serde::Serialize;

use super::{
    color::Color,
    color_by::ColorBy,
    label_list::LabelList,
    placing::{Placed, Placing},
    preview::Preview,
    region::Region,
};
use crate::{
    commands::flags::Share,
    data::{length, placement::Space},
    io::{
        Sink, Source,
        mesh::{Details, MeshFormat},
        volume::Layout,
    },
    kernels::{
        mesh::{
            MarchingCubes,
            post::{Goal, PartFilter},
        },
        render::Render,
    },
};

/// A volume to mesh, and how.
#[derive(Clone, Debug)]
pub(super) struct MeshJob {
    pub(super) volume: Source,
    pub(super) layout: Layout,
    /// Which samples are meshed.
    pub(super) region: Region,
    pub(super) isovalues: Vec<Iso>,
    /// The labels to mesh in place of isosurfaces.
    pub(super) labels: Option<LabelList>,
    /// The kernel without its isovalue, in coordinates of the grid.
    pub(super) kernel: MarchingCubes,
    pub(super) placing: Placing,
    /// Whether triangles without an area are left out.
    pub(super) cleans: bool,
    /// The connected parts that are kept.
    pub(super) parts: PartFilter,
    /// Pairs of smoothing steps for isosurfaces; single steps for labels.
    pub(super) smooth: u32,
    /// How far the surface is simplified.
    pub(super) simplify: Option<Goal>,
    pub(super) stats: bool,
    /// The output. `{iso}` in its name stands for the isovalue.
    pub(super) output: Sink,
    pub(super) format: MeshFormat,
    /// Colours of the first isovalues in a GLB; further ones get default colours.
    pub(super) colors: Vec<Color>,
    /// The volume whose values become the colours of the vertices.
    pub(super) color_by: Option<ColorBy>,
    /// Whether the folder of the output is created.
    pub(super) creates_folder: bool,
    /// Whether a PLY or STL is written as text.
    pub(super) ascii: bool,
    /// Azimuth and elevation, in degrees, from which a page shows the surface at first.
    pub(super) view: Option<[f32; 2]>,
    /// Whether a page also holds the volume, which it can mesh at other isovalues.
    pub(super) live: bool,
    pub(super) preview: Option<Preview>,
    /// Which shard of the work is done, and whether finished work is skipped.
    pub(super) share: Share,
}

impl MeshJob {
    /// Whether the output holds the surfaces of all isovalues.
    pub(super) fn is_together(&self) -> bool {
        holds_several(self.format)
    }

    /// The volume, the mask, and the volume whose values become colours.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Source> + Clone {
        let colors = self.color_by.as_ref().map(|by| &by.source);
        iter::once(&self.volume).chain(&self.region.mask).chain(colors)
    }

    /// Azimuth and elevation of the camera in degrees. By default, it looks at the front of a patient if the space is
    /// known.
    pub(super) fn view(&self, placed: &Placed) -> [f32; 2] {
        self.view.unwrap_or(match placed.space {
            Some(Space::Ras | Space::Las) => [210.0, 15.0],
            Some(Space::Lps) | None => [30.0, 15.0],
        })
    }

    /// The preview to draw, if any. Its view is that of surfaces in the coordinates of `placed`.
    pub(super) fn preview(&self, placed: &Placed) -> Option<Preview> {
        let [azimuth, elevation] = self.view(placed);
        let preview = self.preview.clone()?;
        Some(Preview { render: Render { azimuth, elevation, ..preview.render }, ..preview })
    }

    /// The flag that needs the whole surface in memory, if there is one. Only PLY can be written part by part.
    pub(super) fn needs_whole_surface(&self) -> Option<&'static str> {
        let PartFilter { largest, min_triangles, min_volume, fill_holes } = self.parts;
        let needs = [
            (largest.is_some(), "--largest"),
            (min_triangles > 0, "--min-triangles"),
            (min_volume > 0.0, "--min-volume"),
            (fill_holes, "--fill-holes"),
            (self.cleans, "--clean"),
            (self.color_by.is_some(), "--color-by"),
            (self.smooth > 0, "--smooth"),
            (self.simplify.is_some(), "--simplify and --max-error"),
            (self.stats, "--stats"),
            (self.preview.is_some(), "--preview"),
            (self.format != MeshFormat::Ply, "a format other than PLY"),
        ];
        needs.into_iter().find_map(|(is_given, what)| is_given.then_some(what))
    }

    /// Details of the output in the coordinates of `placed`.
    pub(super) fn details(&self, placed: &Placed) -> Details {
        let unit = placed.unit.as_deref();
        let metres = unit.and_then(|unit| length::convert(1.0, unit, "m")).unwrap_or(1.0);
        Details { ascii: self.ascii, space: placed.space, metres }
    }

    /// The kernel for the isovalue `iso`.
    pub(super) fn kernel(&self, iso: f64) -> MarchingCubes {
        MarchingCubes { iso, ..self.kernel.clone() }
    }

    /// All settings on which the surface and its file depend, except for the inputs.
    pub(super) fn parameters(&self) -> impl Serialize {
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
        let surface = (layout, region.roi, isovalues, labels, kernel, placing, improved);
        let color_by = self.color_by.as_ref().map(|by| (by.palette.to_string(), by.range));
        let written = (self.format, self.ascii, self.view, self.live, &self.colors, color_by);
        (surface, written)
    }
}

/// Whether a file of this format can hold the surfaces of several isovalues.
pub(super) fn holds_several(format: MeshFormat) -> bool {
    matches!(format, MeshFormat::Html | MeshFormat::Glb)
}

/// An isovalue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) enum Iso {
    Value(f64),
    /// An isovalue that is found in the volume's histogram.
    Found(Rule),
}

/// How an isovalue is found in a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) enum Rule {
    /// Of the `of` thresholds between `of + 1` classes by Otsu's method, the one with this number, counted from 0.
    Otsu { number: usize, of: usize },
    /// The value that this percentage of the samples do not exceed.
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
