//! Mesh files. PLY is written part by part, the other formats as a whole. Folders for Neuroglancer are here, too; HTML
//! pages are written by [`page`](super::page).

mod chunks;
mod gifti;
mod glb;
mod glb_meshopt;
mod glb_surfaces;
pub mod labels;
mod mz3;
mod obj;
mod off;
pub mod ply;
mod precomputed;
mod stl;
mod three_mf;
mod vtp;

use std::{
    fmt,
    io::{self, Write},
    path::PathBuf,
    str::FromStr,
};

pub use glb_surfaces::{ColoredSurface, write_colored};
pub use ply::PlyWriter;
pub use precomputed::{EXTENSION as FOLDER_EXTENSION, MeshFolder};

use crate::data::{placement::Space, surface::Surface};

/// A file format for meshes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeshFormat {
    /// Stanford polygons: shared vertices, normals.
    Ply,
    /// Stereolithography, binary or text: three corners for each triangle, no shared vertices.
    Stl,
    /// Wavefront, text: shared vertices, normals.
    Obj,
    /// Binary glTF 2.0: shared vertices, normals.
    Glb,
    /// Binary glTF with positions of 16 bits and compressed arrays (EXT_meshopt_compression).
    GlbMeshopt,
    /// Object file format, text: shared vertices, normals.
    Off,
    /// VTK polygons: shared vertices, normals.
    Vtp,
    /// 3D manufacturing format: shared vertices.
    ThreeMf,
    /// Neuroimaging surfaces: shared vertices, normals.
    Gifti,
    /// Surf Ice: shared vertices.
    Mz3,
    /// A page for web browsers, written by [`page`](super::page).
    Html,
    /// Neuroglancer's precomputed mesh, a folder ([`MeshFolder`]).
    Precomputed,
}

impl MeshFormat {
    /// Formats that an extension names.
    const NAMED: [Self; 11] = [
        Self::Ply,
        Self::Stl,
        Self::Obj,
        Self::Glb,
        Self::Off,
        Self::Vtp,
        Self::ThreeMf,
        Self::Gifti,
        Self::Mz3,
        Self::Html,
        Self::Precomputed,
    ];

    /// The extension of its files.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Ply => "ply",
            Self::Stl => "stl",
            Self::Obj => "obj",
            Self::Glb | Self::GlbMeshopt => "glb",
            Self::Off => "off",
            Self::Vtp => "vtp",
            Self::ThreeMf => "3mf",
            Self::Gifti => "gii",
            Self::Mz3 => "mz3",
            Self::Html => "html",
            Self::Precomputed => precomputed::EXTENSION,
        }
    }

    /// The unit of all lengths in files of the format; `None` where a file has those of its volume.
    pub fn unit(self) -> Option<&'static str> {
        match self {
            Self::ThreeMf => Some("mm"),
            Self::Precomputed => Some("nm"),
            _ => None,
        }
    }

    /// Whether the format has a text and a binary form.
    pub fn may_be_text(self) -> bool {
        matches!(self, Self::Ply | Self::Stl)
    }

    /// Whether vertices may have colours.
    pub fn has_colors(self) -> bool {
        matches!(self, Self::Ply | Self::Obj | Self::Glb)
    }

    /// Number of triangles of `surface` that are not written: those with equal corners, in a format without shared
    /// vertices.
    pub fn leaves_out(self, surface: &Surface) -> usize {
        if self == Self::Stl { surface.flat_triangles() } else { 0 }
    }

    /// How far rounding may move a vertex of `surface` along each axis; `None` where positions stay exact.
    pub fn precision(self, surface: &Surface) -> Option<f64> {
        (self == Self::GlbMeshopt).then(|| glb_meshopt::precision(surface))
    }

    /// Bytes of memory that writing takes beside `surface`; 0 where they are few.
    pub fn bytes(self, surface: &Surface) -> u64 {
        if self == Self::GlbMeshopt { glb_meshopt::bytes(surface) } else { 0 }
    }
}

impl FromStr for MeshFormat {
    type Err = String;

    /// Parses a file's extension.
    fn from_str(extension: &str) -> Result<Self, String> {
        let found = Self::NAMED.into_iter().find(|format| format.extension() == extension);
        found.ok_or_else(|| {
            let known = Self::NAMED.map(Self::extension).join(" ");
            format!("`{extension}` is none of {known}")
        })
    }
}

/// The comment that states the space of coordinates, as 3D Slicer reads and writes it.
fn space_comment(space: Space) -> String {
    format!("SPACE={}", space.name())
}

/// Appends text to a chunk.
fn line(bytes: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    io::Write::write_fmt(bytes, text).expect("memory takes every byte");
}

/// Writes a surface in coordinates of `space`; `ascii` chooses the text form of PLY and STL.
///
/// # Errors
/// When writing fails, or the surface is too large for the format.
pub fn write(
    out: &mut (impl Write + Send),
    surface: Surface,
    format: MeshFormat,
    ascii: bool,
    space: Option<Space>,
) -> io::Result<()> {
    match format {
        MeshFormat::Ply => {
            let mut ply = PlyWriter::new(ascii, space, u64::MAX, PathBuf::new());
            ply.push(surface)?;
            ply.finish(out)
        }
        MeshFormat::Stl if ascii => stl::write_text(out, &surface, space),
        MeshFormat::Stl => stl::write(out, &surface, space),
        MeshFormat::Obj => obj::write(out, &surface, space),
        MeshFormat::Glb => glb::write(out, &surface),
        MeshFormat::GlbMeshopt => glb_meshopt::write(out, &surface),
        MeshFormat::Off => off::write(out, &surface, space),
        MeshFormat::Vtp => vtp::write(out, &surface, space),
        MeshFormat::ThreeMf => three_mf::write(out, &surface, space),
        MeshFormat::Gifti => gifti::write(out, &surface, space),
        MeshFormat::Mz3 => mz3::write(out, &surface),
        MeshFormat::Html => {
            Err(io::Error::new(io::ErrorKind::Unsupported, "pages are written by themselves"))
        }
        MeshFormat::Precomputed => precomputed::write(out, &surface),
    }
}
