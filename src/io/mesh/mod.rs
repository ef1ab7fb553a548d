//! Mesh formats. PLY is written block by block, the other formats as a whole. HTML pages are written by
//! [`page`](super::page).

mod chunks;
mod decode;
mod details;
mod gifti;
mod glb;
mod glb_meshopt;
pub mod labels;
mod mz3;
mod obj;
mod off;
pub mod ply;
mod precomputed;
mod read;
mod read_xml;
mod stl;
mod three_mf;
mod vtp;

use std::{io, str::FromStr};

use serde::Serialize;

pub use details::{Details, Out};
pub use glb::{ColoredSurface, write_colored};
pub use obj::write_labels as write_obj_labels;
pub use ply::PlyWriter;
pub use precomputed::{EXTENSION as FOLDER_EXTENSION, MeshFolder};
pub use read::{Mesh, parse_mesh, read_mesh};

use crate::data::surface::Surface;

/// A mesh format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    /// The names of all formats (an alias after a bar), and their help.
    pub const CHOICES: [(&'static str, Self, &'static str); 12] = {
        let mut choices = [("", Self::Ply, ""); 12];
        let mut i = 0;
        while i < choices.len() {
            let (format, names, _, _, help) = FORMATS[i];
            choices[i] = (names, format, help);
            i += 1;
        }
        choices
    };

    fn entry(self) -> &'static Entry {
        FORMATS.iter().find(|entry| entry.0 == self).expect("an entry for each format")
    }

    /// The file extension.
    pub fn extension(self) -> &'static str {
        self.entry().2
    }

    /// The unit that the format requires; `None` if lengths have the unit of the volume.
    pub fn unit(self) -> Option<&'static str> {
        match self {
            Self::ThreeMf => Some("mm"),
            Self::Precomputed => Some("nm"),
            _ => None,
        }
    }

    /// Whether the format has a text and a binary form.
    pub fn has_text_form(self) -> bool {
        matches!(self, Self::Ply | Self::Stl)
    }

    /// Whether its files are binary, unless a text form is chosen.
    pub fn is_binary(self) -> bool {
        !matches!(self, Self::Obj | Self::Off | Self::Vtp | Self::Gifti | Self::Html)
    }

    /// Whether vertices may have colours.
    pub fn has_colors(self) -> bool {
        matches!(self, Self::Ply | Self::Obj | Self::Glb)
    }

    /// Whether the format is for 3D printing, which needs closed surfaces.
    pub fn is_for_printing(self) -> bool {
        matches!(self, Self::Stl | Self::ThreeMf)
    }

    /// Number of triangles of `surface` that are not written: those with equal corners, in a format without shared
    /// vertices.
    pub fn skipped_triangles(self, surface: &Surface) -> usize {
        if self == Self::Stl { surface.flat_triangles() } else { 0 }
    }

    /// Maximum rounding error of vertices of `surface` along each axis; `None` if positions are exact.
    pub fn precision(self, surface: &Surface) -> Option<f64> {
        (self == Self::GlbMeshopt).then(|| glb_meshopt::precision(surface))
    }

    /// Bytes of memory that writing needs besides `surface`; 0 if it needs little.
    pub fn bytes(self, surface: &Surface) -> u64 {
        if self == Self::GlbMeshopt { glb_meshopt::bytes(surface) } else { 0 }
    }
}

impl FromStr for MeshFormat {
    type Err = String;

    /// Parses a file's extension.
    fn from_str(extension: &str) -> Result<Self, String> {
        // Compressed GLB is chosen by its name only.
        let named = || FORMATS.iter().filter(|entry| entry.0 != Self::GlbMeshopt);
        let found = named().find(|entry| entry.2 == extension);
        found.map(|entry| entry.0).ok_or_else(|| {
            let known: Vec<_> = named().map(|entry| entry.2).collect();
            format!("unknown mesh format `{extension}`: expected one of {}", known.join(" "))
        })
    }
}

type Entry = (
    MeshFormat,
    &'static str,
    &'static str,
    fn(&mut Out<'_>, &Surface, Details) -> io::Result<()>,
    &'static str,
);

/// All formats: names, extension, function that writes a surface, and help.
const FORMATS: [Entry; 12] = [
    (MeshFormat::Ply, "ply", "ply", ply::write, "Stanford polygons: shared vertices, normals"),
    (MeshFormat::Stl, "stl", "stl", stl::write, "Stereolithography: three corners a triangle"),
    (MeshFormat::Obj, "obj", "obj", obj::write, "Wavefront, text: shared vertices, normals"),
    (MeshFormat::Glb, "glb", "glb", glb::write, "Binary glTF 2.0: shared vertices, normals"),
    (
        MeshFormat::GlbMeshopt,
        "glb-meshopt",
        "glb",
        glb_meshopt::write,
        "Binary glTF, packed (EXT_meshopt_compression). Positions are rounded to a 65,535th of the box's longest side, \
         normals to a 127th",
    ),
    (
        MeshFormat::Html,
        "html",
        "html",
        |_, _, _| Err(io::Error::new(io::ErrorKind::Unsupported, "pages are written by io::page")),
        "A page for web browsers that shows the surface, of all isovalues together; one file, no \
         network. Coordinates are rounded to a 65,535th of the box's longest side",
    ),
    (
        MeshFormat::Precomputed,
        "precomputed",
        precomputed::EXTENSION,
        precomputed::write,
        "A folder for Neuroglancer: segment 1, in nanometres",
    ),
    (
        MeshFormat::Off,
        "off",
        "off",
        off::write,
        "Object file format, text: shared vertices, normals",
    ),
    (MeshFormat::Vtp, "vtp", "vtp", vtp::write, "VTK polygons, binary: shared vertices, normals"),
    (
        MeshFormat::ThreeMf,
        "3mf",
        "3mf",
        three_mf::write,
        "3D manufacturing format: shared vertices, in millimetres",
    ),
    (
        MeshFormat::Gifti,
        "gifti|gii",
        "gii",
        gifti::write,
        "GIfTI of neuroimaging: shared vertices, normals",
    ),
    (MeshFormat::Mz3, "mz3", "mz3", mz3::write, "MZ3 of Surf Ice: shared vertices"),
];

/// Writes a surface.
pub fn write(
    out: &mut Out<'_>,
    surface: &Surface,
    format: MeshFormat,
    details: Details,
) -> io::Result<()> {
    (format.entry().3)(out, surface, details)
}
