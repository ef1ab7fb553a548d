//! The flags of `gpuproc mesh`, and the [`MeshJob`] that they make.

mod preview;
mod values;

use std::{
    ffi::OsString,
    mem::take,
    path::{Path, PathBuf},
};

use self::{
    preview::PreviewArgs,
    values::{Isovalues, count, distance, label_list, range, size, spacing, volume},
};
use super::{
    color::Color,
    color_by::ColorBy,
    job::{Iso, MeshJob, holds_several},
    labels::{self, LabelList},
    names::with_isovalue,
    placing::{Coordinates, Placing},
    preview::Preview,
    region::{Region, Roi},
};
use crate::{
    commands::flags::{
        Choice, ListArgs, OutputArgs, Outputs, Planned, ShardArgs, Share, Target, Triple,
        VolumeArgs, one_of,
    },
    data::{palette::Palette, placement::Space},
    engine::{batch::check_all, session::Session},
    io::{Sink, Source, Sources, mesh::MeshFormat},
    kernels::mesh::{
        MarchingCubes, Topology,
        post::{Goal, Parts, Size},
    },
    util::error::{Error, Result},
};

/// Mesh the surface of a volume at an isovalue (marching cubes).
///
/// The volume is a NIfTI, NRRD, MetaImage, MRC, DICOM, TIFF or .npy file, a folder of DICOM files or images, or raw
/// samples, x fastest. The mesh is in the world coordinates of the file. It has shared vertices and triangles whose
/// normals point to lower values; its bytes are the same on every device. Volumes may be larger than memory: they are
/// meshed in slabs.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc mesh skull_256x256x256_uint8.raw --iso 80
  gpuproc mesh head.nii.gz --iso auto --largest head.ply
  gpuproc mesh ct.raw --dims 512x512x300 --dtype i16 --iso 300 -o bone.stl
  gpuproc mesh engine_256x256x128_uint8.raw --iso 60,120 -o 'engine-{iso}.ply'
  gpuproc mesh head_256x256x225_uint16.raw.gz --iso auto --smooth 10 -o h.glb
  gpuproc mesh organs.nii.gz --labels -o organs.html
  gpuproc mesh organs.nii.gz --labels 1,3,10..20 -o 'organ-{label}.stl'
  gpuproc mesh skull_256x256x256_uint8.raw --iso 80 --preview skull.png
  gpuproc mesh skull_256x256x256_uint8.raw --iso 80,140 -o skull.html
  gpuproc mesh field_200x100x50_float32.raw --iso 0.5 - | meshlab /dev/stdin")]
pub struct Args {
    /// Volume: .nii, .nrrd, .mha, .mhd, .mrc, .npy, .raw and others; a name like skull_256x256x256_uint8.raw
    /// tells the shape and type of raw samples; .gz is unpacked; - is standard input. Then the mesh to write: .ply,
    /// .stl, .obj, .glb, .off, .vtp, .3mf, .gii, .mz3 or .html; {iso} becomes the isovalue; - is standard output
    /// [default: the volume's name with .ply, in the current folder]. With -o, volumes only
    #[arg(required_unless_present = "files_from", value_name = "VOLUME [OUTPUT]")]
    files: Vec<OsString>,

    /// Isovalue, in the samples' units: samples above it are inside. Several, separated by commas, make a file each,
    /// named with -{iso} unless {iso} is in the name, or one GLB with a colour each; auto takes Otsu's threshold of the
    /// volume's histogram, otsu:2 two between three classes, p80 the 80th percentile
    #[arg(long, value_name = "VALUE", required_unless_present = "labels", value_delimiter = ',')]
    #[arg(allow_negative_numbers = true, conflicts_with = "labels")]
    iso: Vec<Isovalues>,

    /// Mesh the labels of a label volume instead, whole numbers: all but 0, or those of a list such as 1,3,10..20. Each
    /// label's surface is closed, and neighbours share their borders. One file has all of them, or each one its own
    /// where the output has {label} in its name
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "all", value_parser = label_list)]
    labels: Option<LabelList>,

    /// Coordinates of the mesh
    #[arg(long, value_name = "SPACE", value_parser = one_of(&SPACES), default_value = "world")]
    space: Coordinates,

    /// Distance between samples along x, y and z, or one for all, in any unit [default: the file's, else 1]
    #[arg(long, value_name = "X,Y,Z", value_parser = spacing)]
    spacing: Option<Triple>,

    /// Corner of the volume's box, in the same unit; the first sample sits half a spacing from it
    /// [default: the file's, else 0,0,0]
    #[arg(long, value_name = "X,Y,Z", allow_negative_numbers = true)]
    origin: Option<Triple>,

    /// Close the surface where it leaves the volume, on the volume's box; edges of the box are cut off by half a sample
    #[arg(long)]
    close: bool,

    /// How to join the surface in cells whose samples leave that open
    #[arg(long, value_name = "WAY", value_parser = one_of(&TOPOLOGIES), default_value = "classic")]
    topology: Topology,

    /// Give every vertex a normal, from the volume's gradient
    #[arg(long)]
    normals: bool,

    /// Join vertices at the same position and remove triangles without an area, which samples that equal the isovalue
    /// cause; closed surfaces stay closed. Vertices that only touch are moved apart a little. Always done for STL
    #[arg(long)]
    clean: bool,

    /// Keep only the connected part with the most triangles, or the N with the most
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "1", value_parser = count)]
    largest: Option<usize>,

    /// Keep only connected parts with at least N triangles
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    min_triangles: u32,

    /// Keep only connected parts that enclose at least this volume, in cubic units of the mesh
    #[arg(long, value_name = "VOLUME", value_parser = volume, default_value_t = 0.0)]
    #[arg(hide_default_value = true)]
    min_volume: f64,

    /// Leave out the closed surfaces of hollows inside of other parts
    #[arg(long)]
    fill_holes: bool,

    /// Mesh only this box of samples: its first sample, and the number of samples along x, y and z.
    /// Coordinates stay those of the whole volume
    #[arg(long, value_name = "X,Y,Z,WIDTH,HEIGHT,DEPTH")]
    roi: Option<Roi>,

    /// Replace samples by the volume's least value where this volume of the same size is 0
    #[arg(long, value_name = "FILE")]
    mask: Option<Source>,

    /// Smooth by N pairs of steps (Taubin); 10 is a good start. Closed parts keep their volume. With --labels, by N
    /// steps that move no vertex by more than half a sample [default: 10]; 0 leaves the faces of voxels
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1000))]
    smooth: Option<u32>,

    /// Keep this share of the triangles, as 0.25 or 25%, or this number of them, as 10000 (above 100); those that matter
    /// least are removed. Parts stay connected, closed surfaces stay closed, and edges on the volume's box stay on it.
    /// More triangles are left if the surface would otherwise tear, or move by more than about 0.5 % of its size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    simplify: Option<Size>,

    /// Simplify as far as the surface moves by no more than this distance, in the mesh's units
    #[arg(long, value_name = "DISTANCE", value_parser = distance)]
    max_error: Option<f64>,

    /// Say area, enclosed volume, connected parts, Euler number, genus, whether the surface is closed, and how far
    /// --simplify has moved it
    #[arg(long)]
    stats: bool,

    /// Format of the mesh, also as --to stl [default: by the output's extension, else ply]
    #[arg(long, alias = "to", value_name = "FORMAT", value_parser = one_of(&MeshFormat::CHOICES))]
    format: Option<MeshFormat>,

    /// Also put the volume into the page, which then meshes it at any isovalue in the browser, by
    /// WebGPU, to the same vertices and triangles as this command
    #[arg(long)]
    live: bool,

    /// Colours of the surfaces in a GLB, in the order of the isovalues: names such as ivory, tab:red, C3 or #ffe0c0
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    color: Vec<Color>,

    /// Colour the vertices by the values of this volume at their positions. Both volumes state world coordinates or
    /// have the same size. In PLY, OBJ, GLB and the picture; gray where there is no value
    #[arg(long, value_name = "FILE")]
    color_by: Option<Source>,

    /// Colours from the least to the greatest value, by matplotlib's name: viridis plasma inferno magma cividis turbo
    /// jet hot bone gray cool bwr seismic coolwarm RdBu Spectral; with _r, reversed
    #[arg(long, value_name = "NAME", default_value = "viridis", requires = "color_by")]
    palette: Palette,

    /// Values that have the first and the last colour [default: the least and the greatest on the surface]
    #[arg(long, value_name = "LOW,HIGH", value_parser = range, allow_negative_numbers = true)]
    #[arg(requires = "color_by")]
    color_range: Option<[f64; 2]>,

    /// Write PLY or STL as text
    #[arg(long)]
    ascii: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    list: ListArgs,

    #[command(flatten)]
    share: ShardArgs,

    #[command(flatten)]
    preview: PreviewArgs,

    #[command(flatten)]
    raw: VolumeArgs,
}

const TOPOLOGIES: [Choice<Topology>; 2] = [
    (
        "classic",
        Topology::Classic,
        "The inside is joined on every face whose corners alternate, by the table of 256 cases",
    ),
    (
        "exact",
        Topology::Exact,
        "As the trilinear interpolation of the samples: with its handles, tunnels and parts",
    ),
];

const SPACES: [Choice<Coordinates>; 4] = [
    ("world", Coordinates::World, "The file's own, where it states them, else as voxel"),
    (
        "voxel",
        Coordinates::Voxel,
        "Samples one unit apart, the first one at 0.5, as for raw volumes",
    ),
    (
        "ras",
        Coordinates::In(Space::Ras),
        "The file's, turned so that x leads right, y to the front, z up",
    ),
    (
        "lps",
        Coordinates::In(Space::Lps),
        "The file's, turned so that x leads left, y to the back, z up",
    ),
];

/// Makes the job of each volume.
#[derive(Debug)]
pub(super) struct Jobs {
    flags: Args,
    /// Where the results go; `None` for the default output of one volume.
    outputs: Option<Outputs>,
    /// Whether the volume is the only one, with an output that is not in a folder.
    is_alone: bool,
    /// Whether there is more than one volume.
    are_several: bool,
}

impl Jobs {
    /// Which shard of the work is done, and whether finished work is skipped.
    pub(super) fn share(&self) -> Share {
        self.flags.share.share()
    }

    /// Whether the job is one volume, whose layers shards divide among themselves.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// The job that meshes the volume `source`.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::util::error::Kind::Usage) for flags that contradict each other.
    pub(super) fn of(&self, source: Source) -> Result<MeshJob> {
        let Some(outputs) = &self.outputs else { return self.flags.job(source, None) };
        let extension = self.flags.extension()?;
        let extension = (!self.is_alone).then_some(extension);
        let Planned { source, sink, makes_folder } = outputs.of(source, extension)?;
        let job = self.flags.job(source, Some(sink))?;
        match job.preview {
            Some(_) if self.are_several => Err(Error::usage(
                "--preview draws one volume, not several: mesh them one at a time",
            )),
            _ => Ok(MeshJob { creates_folder: makes_folder, ..job }),
        }
    }
}

impl Args {
    /// Validates the flags and makes the jobs.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::util::error::Kind::Usage) for flags that contradict each other.
    pub(super) fn work(mut self, session: &Session) -> Result<(Sources, Jobs)> {
        let mut files = take(&mut self.files);
        if let Some(list) = self.labels_behind(&mut files) {
            self.labels = Some(list);
        }
        self.work_of(files, session)
    }

    /// Takes the list of labels out of `files`. In `--labels 1,3`, without `=`, the parser takes the list for a file.
    fn labels_behind(&self, files: &mut Vec<OsString>) -> Option<LabelList> {
        if self.labels != Some(LabelList::All) {
            return None;
        }
        let list = |file: &OsString| file.to_str().and_then(|text| text.parse().ok());
        let at = files.iter().position(|file| list(file).is_some() && !Path::new(file).exists())?;
        list(&files.remove(at))
    }

    fn work_of(self, mut files: Vec<OsString>, session: &Session) -> Result<(Sources, Jobs)> {
        let mut output = None;
        if !self.output.is_given() {
            output = match (files.len(), &self.list.files_from) {
                (1, None) => None,
                (2, None) => files.pop().map(Target::from),
                _ => {
                    return Err(Error::usage(
                        "give one volume and one output, or volumes and -o DIR/",
                    ));
                }
            };
        }
        let extension = |_: &Source| Ok(Some(self.extension()?.to_owned()));
        let mut sources = self.list.inputs(files, session)?;
        let outputs = self.output.plan(&sources, output, extension)?;
        let is_for_each = outputs.as_ref().is_some_and(Outputs::is_for_each);
        let is_listed = outputs.is_some() && self.list.files_from.is_some();
        let is_alone = outputs.is_none() || sources.len() == 1 && !is_listed && !is_for_each;
        let jobs = Jobs { flags: self, outputs, is_alone, are_several: sources.len() > 1 };
        // Jobs are made anew when they run. What is wrong with any of them is told before the first one runs.
        check_all(&sources, |source| jobs.of(source).map(drop))?;
        if !is_alone {
            sources = jobs.share().files(sources.iter()).collect();
        }
        Ok((sources, jobs))
    }

    /// The extension of outputs that are named like the inputs.
    fn extension(&self) -> Result<&'static str> {
        Ok(self.format(None)?.extension())
    }

    /// The job that meshes `volume`, to `output` or by default to a file named like the volume.
    fn job(&self, volume: Source, output: Option<Sink>) -> Result<MeshJob> {
        let share = self.share.share();
        // The name of a shard's part file does not tell the format of the mesh.
        let is_part = share.shard.is_some() && !self.output.is_for_each();
        let format = self.format(output.as_ref().filter(|_| !is_part))?;
        let isovalues: Vec<Iso> = self.iso.iter().flat_map(|iso| iso.0.clone()).collect();
        let several = isovalues.len() > 1 && !holds_several(format);
        let output = self.output_name(&volume, output, format, several)?;
        self.check_colors(format)?;
        self.check_live(format)?;
        if self.labels.is_some() {
            self.check_labels(&output, format)?;
        }
        let preview = self.picture(&output, format, isovalues.len() > 1)?;
        Ok(MeshJob {
            volume,
            layout: self.raw.layout(),
            labels: self.labels.clone(),
            region: Region { roi: self.roi, mask: self.mask.clone() },
            isovalues,
            kernel: MarchingCubes {
                close: self.close,
                // Viewers of glTF draw facets where there are no normals.
                normals: self.normals || (format == MeshFormat::Glb && self.labels.is_none()),
                topology: self.topology,
                ..MarchingCubes::new(0.0)
            },
            placing: Placing {
                coordinates: self.space,
                spacing: self.spacing.map(|spacing| spacing.0),
                origin: self.origin.map(|origin| origin.0),
            },
            cleans: self.clean,
            parts: Parts {
                largest: self.largest,
                least_triangles: self.min_triangles,
                least_volume: self.min_volume,
                fills_holes: self.fill_holes,
            },
            smooth: self.smooth.unwrap_or(if self.labels.is_some() { labels::STEPS } else { 0 }),
            simplify: self.goal(),
            stats: self.stats,
            output,
            creates_folder: false,
            format,
            colors: self.color.clone(),
            color_by: self.color_by.clone().map(|source| ColorBy {
                source,
                palette: self.palette,
                range: self.color_range,
            }),
            ascii: self.ascii,
            view: self.preview.view(),
            live: self.live,
            preview,
            share,
        })
    }

    /// The name of the output, with `{iso}` in it where `several` isovalues need a file each.
    fn output_name(
        &self,
        volume: &Source,
        output: Option<Sink>,
        format: MeshFormat,
        several: bool,
    ) -> Result<Sink> {
        match output {
            Some(sink) if several && sink.is_stream() => {
                Err(Error::usage("several --iso need an output each: name a file"))
            }
            Some(sink) if several => Ok(with_isovalue(sink)),
            Some(sink) => Ok(sink),
            None if self.share.share().shard.is_some() => {
                Err(Error::usage("with --shard, name the part to write, as 3.part"))
            }
            None if several => Ok(with_isovalue(default_output(volume, format)?)),
            None => default_output(volume, format),
        }
    }

    /// Refuses colours that the format cannot hold, and two kinds of colours.
    fn check_colors(&self, format: MeshFormat) -> Result<()> {
        if !self.color.is_empty() && format != MeshFormat::Glb {
            return Err(Error::usage("--color is for GLB only"));
        }
        if self.color_by.is_some() && !format.has_colors() {
            return Err(Error::usage(format_args!(
                "--color-by colours the vertices of PLY, OBJ and GLB; {} is written without colours",
                format.extension()
            )));
        }
        if self.color_by.is_some() && !self.color.is_empty() {
            return Err(Error::usage("give --color or --color-by"));
        }
        Ok(())
    }

    /// Refuses `--live` for other formats than pages, and with flags that a page cannot apply.
    fn check_live(&self, format: MeshFormat) -> Result<()> {
        if self.live && format != MeshFormat::Html {
            return Err(Error::usage("--live is for pages: name an output that ends with .html"));
        }
        let changed = self.chooses_parts() || self.clean || self.topology != Topology::Classic;
        let changed = changed || self.roi.is_some() || self.mask.is_some();
        let smoothed = self.smooth.is_some_and(|steps| steps > 0);
        if self.live && (changed || smoothed || self.goal().is_some()) {
            return Err(Error::usage(
                "--live meshes anew what the volume says: it goes without --topology, --roi, --mask, --clean, choosing parts, --smooth and --simplify",
            ));
        }
        Ok(())
    }

    /// The picture that is drawn beside `output`, if one is asked for.
    fn picture(&self, output: &Sink, format: MeshFormat, several: bool) -> Result<Option<Preview>> {
        let in_one = format == MeshFormat::Glb && !output.to_string().contains("{iso}");
        let preview = self.preview.job(several, in_one)?;
        match preview.as_ref().is_some_and(|preview| preview.sink.is_same(output)) {
            true => Err(Error::usage(format_args!("{output} would be the mesh and its preview"))),
            false => Ok(preview),
        }
    }

    /// Refuses flags and formats that do not go with `--labels`.
    fn check_labels(&self, output: &Sink, format: MeshFormat) -> Result<()> {
        let region = self.roi.is_some() || self.mask.is_some();
        let refused = [
            (
                self.goal().is_some(),
                "--simplify would tear the borders that neighbouring labels share",
            ),
            (self.normals, "--normals are those of a volume's gradient, which labels have not"),
            (
                self.chooses_parts(),
                "--labels keeps all parts of each label: leave out --largest, --min-triangles, --min-volume, \
                 --fill-holes",
            ),
            (region, "--labels meshes whole volumes: not with --roi or --mask"),
            (!self.color.is_empty(), "--color is for isovalues"),
            (
                self.color_by.is_some(),
                "--color-by is for isovalues: labels have colours of their own",
            ),
            (
                self.clean,
                "--clean is for isovalues: surfaces of labels have no triangles without an area",
            ),
            (format == MeshFormat::Precomputed, "--labels makes no precomputed folders"),
            (self.live, "--live meshes anew at isovalues, not labels"),
            (self.topology != Topology::Classic, "--topology is for isovalues"),
            (
                format == MeshFormat::Html && output.to_string().contains(labels::PLACE),
                "a page shows all labels: leave {label} out of its name",
            ),
            (
                self.share.share().shard.is_some() && !self.output.is_for_each(),
                "--shard does not divide a volume of labels",
            ),
        ];
        if let Some((_, why)) = refused.iter().find(|(is_so, _)| *is_so) {
            return Err(Error::usage(why));
        }
        let is_each = output.to_string().contains(labels::PLACE);
        let has_parts = matches!(
            format,
            MeshFormat::Ply | MeshFormat::Glb | MeshFormat::Obj | MeshFormat::Html
        );
        match is_each || has_parts {
            true => Ok(()),
            false => Err(Error::usage(format_args!(
                "one {} file holds one surface: put {} into the output's name for a file a label",
                format.extension(),
                labels::PLACE
            ))),
        }
    }

    /// Whether flags may leave out connected parts of the surface.
    fn chooses_parts(&self) -> bool {
        let least = self.min_triangles > 0 || self.min_volume > 0.0;
        self.largest.is_some() || least || self.fill_holes
    }

    fn goal(&self) -> Option<Goal> {
        (self.simplify.is_some() || self.max_error.is_some()).then(|| Goal {
            size: self.simplify.unwrap_or_default(),
            max_error: self.max_error,
            measures: self.stats,
        })
    }

    fn format(&self, output: Option<&Sink>) -> Result<MeshFormat> {
        let format = match (self.format, output) {
            (Some(format), _) => format,
            (None, Some(sink)) if !sink.extension().is_empty() => {
                sink.extension().parse().map_err(|error| {
                    Error::usage(format_args!("{sink}: {error}; name the format with --format"))
                })?
            }
            _ => MeshFormat::Ply,
        };
        match self.ascii && !format.may_be_text() {
            true => Err(Error::usage("--ascii is for PLY and STL only")),
            false => Ok(format),
        }
    }
}

/// The default output: the volume's name with the extension of the mesh, in the current folder.
fn default_output(source: &Source, format: MeshFormat) -> Result<Sink> {
    let Some(path) = source.path() else {
        return Err(Error::usage("name an output: standard input has no name to make one from"));
    };
    // A path such as `.` has no file name. Reading it fails later, with a better message.
    let name = Path::new(path.file_name().unwrap_or(path.as_os_str()));
    Ok(Sink::File(with_extension(name.to_owned(), format)))
}

/// Replaces the extension of a volume's name by that of the mesh; `.nii.gz` counts as one extension.
fn with_extension(name: PathBuf, format: MeshFormat) -> PathBuf {
    let is_packed = name.extension().is_some_and(|extension| extension == "gz");
    let name = if is_packed { name.with_extension("") } else { name };
    name.with_extension(format.extension())
}
