//! Contents of a mesh file besides its surface.

use std::io::{self, Write};

use crate::data::placement::Space;

/// An output of meshes.
pub type Out<'a> = dyn Write + Send + 'a;

/// Details of a file besides the surface.
#[derive(Clone, Copy, Debug)]
pub struct Details {
    /// Whether PLY and STL are written as text.
    pub ascii: bool,
    /// The space of the coordinates, if known.
    pub space: Option<Space>,
    /// The unit of coordinates in metres; 1 if unknown.
    pub metres: f64,
}

impl Details {
    /// Writes the comment that states the space of coordinates, as 3D Slicer reads and writes it.
    pub(super) fn write_space(
        self,
        out: &mut (impl Write + ?Sized),
        before: &str,
        after: &str,
    ) -> io::Result<()> {
        self.space.map_or(Ok(()), |space| write!(out, "{before}SPACE={}{after}", space.name()))
    }
}
