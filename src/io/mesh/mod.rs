//! Meshes: PLY in parts of any number, STL, OBJ, GLB, folders for Neuroglancer; HTML by its name.

mod chunks;
mod glb;
pub mod labels;
mod obj;
pub mod ply;
mod precomputed;
mod stl;

use std::{
    io::{self, Write},
    path::PathBuf,
    str::FromStr,
};

pub use ply::PlyWriter;
pub use precomputed::{EXTENSION as FOLDER_EXTENSION, MeshFolder, nanometres};

use crate::data::{placement::Space, surface::Surface};

/// A file format for meshes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeshFormat {
    /// Stanford polygons: shared vertices, normals.
    Ply,
    /// Stereolithography, binary: three corners a triangle.
    Stl,
    /// Wavefront, text: shared vertices, normals.
    Obj,
    /// Binary glTF 2.0: shared vertices, normals.
    Glb,
    /// A page for web browsers, which [`page`](super::page) writes.
    Html,
    /// Neuroglancer's fragments, a folder ([`MeshFolder`]).
    Precomputed,
}

impl MeshFormat {
    const ALL: [Self; 6] =
        [Self::Ply, Self::Stl, Self::Obj, Self::Glb, Self::Html, Self::Precomputed];

    /// The extension of its files.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Ply => "ply",
            Self::Stl => "stl",
            Self::Obj => "obj",
            Self::Glb => "glb",
            Self::Html => "html",
            Self::Precomputed => precomputed::EXTENSION,
        }
    }
}

impl FromStr for MeshFormat {
    type Err = String;

    /// From a file's extension.
    fn from_str(extension: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|format| format.extension() == extension);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::extension).join(" ");
            format!("`{extension}` is none of {known}")
        })
    }
}

/// What a header says of coordinates of `space`, in the words of 3D Slicer, which turns a mesh by them.
fn space_comment(space: Space) -> String {
    format!("SPACE={}", space.name())
}

/// Writes a whole surface in coordinates of `space`; `ascii` makes a PLY text.
///
/// # Errors
/// When writing fails, or the surface is too large for the format.
pub fn write(
    out: &mut impl Write,
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
        MeshFormat::Stl => stl::write(out, &surface, space),
        MeshFormat::Obj => obj::write(out, &surface, space),
        MeshFormat::Glb => glb::write(out, &surface),
        MeshFormat::Html => {
            Err(io::Error::new(io::ErrorKind::Unsupported, "pages are written by themselves"))
        }
        MeshFormat::Precomputed => precomputed::write(out, &surface),
    }
}
