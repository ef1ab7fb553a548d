//! A job of `gpuproc mesh`: its validated flags.

use std::{fmt, iter};

use serde::Serialize;

use super::{
    color::Color,
    color_by::ColorBy,
    coordinates::{CoordinateArgs, MeshCoordinates},
    label_list::LabelList,
    preview::Preview,
    region::RegionArgs,
};
use crate::{
    commands::flags::{ShardArgs, Steps},
    data::{length, placement::Space},
    engine::session::Session,
    io::{
        Sink, Source,
        file_roles::{FileRoles, INPUT},
        mesh::{Details, MeshFormat},
        volume::{Layout, VolumeFile},
    },
    kernels::{
        mesh::{
            MarchingCubes,
            post::{Goal, PartFilter},
        },
        render::Render,
    },
    util::error::Result,
};

/// A volume to mesh, with all settings.
#[derive(Clone, Debug)]
pub(super) struct MeshJob {
    pub(super) volume: Source,
    pub(super) layout: Layout,
    /// The commands whose result is meshed.
    pub(super) steps: Steps,
    /// The samples that are meshed.
    pub(super) region: RegionArgs,
    pub(super) isovalues: Vec<Iso>,
    /// The labels to mesh instead of isosurfaces.
    pub(super) labels: Option<LabelList>,
    /// The kernel without isovalue, spacing and origin.
    pub(super) kernel: MarchingCubes,
    pub(super) coordinates: CoordinateArgs,
    /// Whether degenerate triangles are removed.
    pub(super) cleans: bool,
    /// Whether a mesh that is not closed is an error.
    pub(super) printable: bool,
    /// Conditions for connected parts to be kept.
    pub(super) parts: PartFilter,
    /// Number of pairs of smoothing steps for isosurfaces, of single steps for labels.
    pub(super) smooth: u32,
    /// Goal of the simplification, if any.
    pub(super) simplify: Option<Goal>,
    pub(super) stats: bool,
    /// The output. `{iso}` in its name stands for the isovalue.
    pub(super) output: Sink,
    pub(super) format: MeshFormat,
    /// Colours of the first isovalues in a GLB. The others get default colours.
    pub(super) colors: Vec<Color>,
    /// The volume whose values become the colours of the vertices.
    pub(super) color_by: Option<ColorBy>,
    /// Whether the folder of the output is created.
    pub(super) creates_folder: bool,
    /// Whether a PLY or STL is written as text.
    pub(super) ascii: bool,
    /// Azimuth and elevation of the camera in degrees, if chosen by the user.
    pub(super) view: Option<[f32; 2]>,
    /// Whether a page also holds the volume, so that it can mesh it at other isovalues.
    pub(super) live: bool,
    pub(super) preview: Option<Preview>,
    /// The shard of this process, and whether finished work is skipped.
    pub(super) sharding: ShardArgs,
}

impl MeshJob {
    /// Reads the header of the volume and returns the volume to mesh.
    pub(super) fn describe(&self, session: &Session) -> Result<VolumeFile> {
        self.steps.volume(VolumeFile::describe(&self.volume, &self.layout)?, session)
    }

    /// Whether one output holds the surfaces of all isovalues.
    pub(super) fn is_together(&self) -> bool {
        holds_several(self.format)
    }

    /// The volume, the mask, and the volume whose values become colours.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Source> + Clone {
        let colors = self.color_by.as_ref().map(|by| &by.source);
        iter::once(&self.volume).chain(&self.region.mask).chain(colors)
    }

    /// Adds the inputs to the files of a run.
    pub(super) fn declare_inputs(&self, roles: &mut FileRoles) -> Result<()> {
        let colors = self.color_by.as_ref().map(|by| &by.source);
        let flags = [("--mask", self.region.mask.as_ref()), ("--color-by", colors)];
        roles.reads(INPUT, &self.volume)?;
        flags.into_iter().try_for_each(|(flag, source)| {
            source.map_or(Ok(()), |source| roles.reads(flag, source))
        })
    }

    /// Azimuth and elevation of the camera in degrees. By default, it faces the front of the patient if the space is
    /// known.
    pub(super) fn view(&self, coords: &MeshCoordinates) -> [f32; 2] {
        self.view.unwrap_or(match coords.space {
            Some(Space::Ras | Space::Las) => [210.0, 15.0],
            Some(Space::Lps) | None => [30.0, 15.0],
        })
    }

    /// The preview to draw, if any, with the view for surfaces in these coordinates.
    pub(super) fn preview(&self, coords: &MeshCoordinates) -> Option<Preview> {
        let [azimuth, elevation] = self.view(coords);
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

    /// Details of an output in these coordinates.
    pub(super) fn details(&self, coords: &MeshCoordinates) -> Details {
        let unit = coords.unit.as_deref();
        let metres = unit.and_then(|unit| length::convert(1.0, unit, "m")).unwrap_or(1.0);
        Details { ascii: self.ascii, space: coords.space, metres }
    }

    /// The kernel for the isovalue `iso`.
    pub(super) fn kernel(&self, iso: f64) -> MarchingCubes {
        MarchingCubes { iso, ..self.kernel.clone() }
    }

    /// All settings that the surface and its file depend on, except for the inputs.
    pub(super) fn parameters(&self) -> impl Serialize {
        let kernel = (self.kernel.close, self.kernel.normals, self.kernel.topology);
        let improved = (self.cleans, self.printable, self.parts, self.smooth, self.simplify);
        let meshed = (&self.layout, &self.steps, self.region.roi, &self.isovalues, &self.labels);
        let surface = (meshed, kernel, &self.coordinates, improved);
        let color_by = self.color_by.as_ref().map(|by| (by.palette.to_string(), by.range));
        let written = (self.format, self.ascii, self.view, self.live, &self.colors, color_by);
        let drawn = |preview: &Preview| (preview.render.size, preview.render.background);
        (surface, written, self.preview.as_ref().map(drawn))
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
    /// An isovalue that is computed from the volume's histogram.
    Auto(Rule),
}

/// How an isovalue is computed from a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) enum Rule {
    /// Threshold `number`, counted from 0, of the `of` thresholds between `of + 1` classes by Otsu's method.
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
