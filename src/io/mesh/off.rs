//! OFF, a text: `OFF` (with normals `NOFF`), the counts, then `x y z` (`x y z nx ny nz`), then `3 a b c`.

use std::{io, iter::zip};

use super::{Details, Out, chunks::write_text};
use crate::data::surface::Surface;

pub(super) fn write(out: &mut Out<'_>, surface: &Surface, details: Details) -> io::Result<()> {
    let Surface { positions, normals, triangles, .. } = surface;
    writeln!(out, "{}", if normals.is_empty() { "OFF" } else { "NOFF" })?;
    details.write_space(out, "# ", "\n")?;
    writeln!(out, "{} {} 0", positions.len(), triangles.len())?;
    if normals.is_empty() {
        write_text!(out, positions, |[x, y, z]| "{x} {y} {z}\n")?;
    } else {
        let vertices: Vec<_> = zip(positions, normals).collect();
        write_text!(out, &vertices, |([x, y, z], [nx, ny, nz])| "{x} {y} {z} {nx} {ny} {nz}\n")?;
    }
    write_text!(out, triangles, |[a, b, c]| "3 {a} {b} {c}\n")
}
