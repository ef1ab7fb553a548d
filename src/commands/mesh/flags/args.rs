//! The flags of `gpuproc mesh`.

use std::ffi::OsString;

use super::{
    super::{color::Color, coordinates::CoordinateArgs, label_list::LabelList, region::RegionArgs},
    preview::PreviewArgs,
    values::{Isovalues, count, distance, label_list, range, size, volume},
};
use crate::{
    commands::flags::{
        FilesFromArgs, OutputArgs, ShardArgs, Steps, VolumeArgs, choice_parser, choices,
    },
    data::palette::Palette,
    io::{Source, mesh::MeshFormat},
    kernels::mesh::{Topology, labels::MAX_STEPS, post::Size},
};

/// Extract the surface of a volume at an isovalue (marching cubes).
///
/// The volume is a NIfTI, NRRD, MetaImage, MRC, DICOM, TIFF or .npy file, a folder of DICOM files or images, or raw
/// samples. The mesh is in the world coordinates of the file. Triangles share their vertices, and their normals
/// point to lower values. The mesh has the same bytes on every device. Volumes may be larger than memory.
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
    /// Volume, and mesh to write [default: the volume's name with .ply]; with -o, only volumes
    ///
    /// Volumes: .nii, .nrrd, .mha, .mhd, .mrc, .npy, .raw and others. A name like skull_256x256x256_uint8.raw
    /// states the shape and type of raw samples. .gz is unpacked. Meshes: .ply, .stl, .obj, .glb, .off, .vtp, .3mf,
    /// .gii, .mz3 or .html. {iso} in the name becomes the isovalue. - is standard input or output.
    #[arg(required_unless_present = "files_from", value_name = "VOLUME [OUTPUT]")]
    pub(super) files: Vec<OsString>,

    /// The commands whose result is meshed.
    #[arg(skip)]
    pub(super) steps: Steps,

    /// Isovalue: a number, auto (Otsu's threshold) or p80 (a percentile)
    ///
    /// It is in units of the samples. Samples above it are inside. Several, separated by commas, make one file
    /// each, with -{iso} added to the name unless {iso} is in it, or one GLB with a colour for each. otsu:2 finds
    /// two thresholds between three classes.
    #[arg(long, value_name = "VALUE", required_unless_present = "labels", value_delimiter = ',')]
    #[arg(allow_negative_numbers = true, conflicts_with = "labels")]
    pub(super) iso: Vec<Isovalues>,

    /// Mesh the labels of a segmentation: all, or some, such as 1,3,10..20
    ///
    /// Labels are whole numbers; 0 is the background. The surface of each label is closed, and neighbours share
    /// their borders. One file holds all labels, or each label has its own file if the output has {label} in its
    /// name.
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "all", value_parser = label_list)]
    pub(super) labels: Option<LabelList>,

    #[command(flatten)]
    pub(super) coordinates: CoordinateArgs,

    /// Close the surface at the border of the volume
    ///
    /// It is closed on the box of the volume, whose edges are cut off by half a sample.
    #[arg(long)]
    pub(super) close: bool,

    /// Rule for cells in which the surface is ambiguous
    #[arg(long, value_name = "RULE", value_parser = choices::<Topology>(), default_value = "classic")]
    #[arg(help_heading = "Details of the surface")]
    pub(super) topology: Topology,

    /// Write a normal for each vertex, from the gradient of the volume
    #[arg(long, help_heading = "Details of the surface")]
    pub(super) normals: bool,

    /// Join vertices at the same position, and remove triangles without an area
    ///
    /// Both occur where samples equal the isovalue. Closed surfaces stay closed, and vertices that only touch are
    /// moved apart a little. Always done for STL.
    #[arg(long, help_heading = "Details of the surface")]
    pub(super) clean: bool,

    /// Make a closed STL or 3MF for 3-D printing, or fail
    ///
    /// It implies --close and --clean.
    #[arg(long, help_heading = "Details of the surface")]
    pub(super) printable: bool,

    /// Keep the connected part with the most triangles, or the N largest
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "1", value_parser = count)]
    pub(super) largest: Option<usize>,

    /// Keep only connected parts of at least N triangles
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    #[arg(help_heading = "Details of the surface")]
    pub(super) min_triangles: u32,

    /// Keep only connected parts that enclose at least this volume
    ///
    /// In cubic units of the mesh.
    #[arg(long, value_name = "VOLUME", value_parser = volume, default_value_t = 0.0)]
    #[arg(hide_default_value = true, help_heading = "Details of the surface")]
    pub(super) min_volume: f64,

    /// Leave out the surfaces of hollows inside other parts
    #[arg(long, help_heading = "Details of the surface")]
    pub(super) fill_holes: bool,

    #[command(flatten)]
    pub(super) region: RegionArgs,

    /// Smooth by N pairs of steps (Taubin); 10 is a good start
    ///
    /// N is 0 to 1000. Closed parts keep their volume. With --labels, no vertex moves by more than half a sample;
    /// the default is 10, and 0 leaves the faces of voxels.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_STEPS)))]
    pub(super) smooth: Option<u32>,

    /// Reduce to a share (25%) or a number (10000) of triangles
    ///
    /// 0.25 means 25%. A number must be above 100. Edges whose removal changes the surface least are removed first.
    /// Parts stay connected, closed surfaces stay closed, and edges on the box of the volume stay on it. More
    /// triangles are left if the surface would otherwise tear, or move by more than about 0.5 % of its size.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) simplify: Option<Size>,

    /// Simplify as far as the surface moves by at most this distance
    ///
    /// In units of the mesh.
    #[arg(long, value_name = "DISTANCE", value_parser = distance)]
    #[arg(help_heading = "Details of the surface")]
    pub(super) max_error: Option<f64>,

    /// Print area, volume, connected parts, genus, and whether the surface is closed
    ///
    /// Also the Euler number, and how far --simplify has moved the surface.
    #[arg(long)]
    pub(super) stats: bool,

    /// Format of the mesh; also --to [default: by the extension, else ply]
    #[arg(long, alias = "to", value_name = "FORMAT", value_parser = choice_parser(&MeshFormat::CHOICES))]
    pub(super) format: Option<MeshFormat>,

    /// Add a slider to the page (-o page.html) that meshes the volume at any isovalue
    ///
    /// The page also holds the volume. It meshes by WebGPU, to the same vertices and triangles as this command.
    #[arg(long, help_heading = "Details of the surface")]
    pub(super) live: bool,

    /// Colours of the surfaces of a GLB, in the order of the isovalues
    ///
    /// Names such as ivory, tab:red, C3 or #ffe0c0.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Colours")]
    pub(super) color: Vec<Color>,

    /// Colour the vertices by the values of this volume
    ///
    /// Both volumes state world coordinates, or have the same size. For PLY, OBJ, GLB and the picture. Vertices
    /// without a value are grey.
    #[arg(long, value_name = "FILE", help_heading = "Colours")]
    pub(super) color_by: Option<Source>,

    /// Palette of --color-by, by its name in matplotlib
    ///
    /// viridis plasma inferno magma cividis turbo jet hot bone gray cool bwr seismic coolwarm RdBu Spectral; with
    /// _r, reversed.
    #[arg(long, value_name = "NAME", default_value = "viridis", requires = "color_by")]
    #[arg(help_heading = "Colours")]
    pub(super) palette: Palette,

    /// Values of the first and the last colour [default: minimum and maximum on the surface]
    #[arg(long, value_name = "LOW,HIGH", value_parser = range, allow_negative_numbers = true)]
    #[arg(requires = "color_by", help_heading = "Colours")]
    pub(super) color_range: Option<[f64; 2]>,

    /// Write PLY or STL as text
    #[arg(long, help_heading = "Details of the surface")]
    pub(super) ascii: bool,

    #[command(flatten)]
    pub(super) output: OutputArgs,

    #[command(flatten)]
    pub(super) list: FilesFromArgs,

    #[command(flatten)]
    pub(super) sharding: ShardArgs,

    #[command(flatten)]
    pub(super) preview: PreviewArgs,

    #[command(flatten)]
    pub(super) raw: VolumeArgs,
}
