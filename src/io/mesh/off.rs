//! OFF, a text: `OFF` (with normals `NOFF`), the counts, then `x y z` (`x y z nx ny nz`), then `3 a b c`.

use std::io::{self, Write};

use super::{chunks::write_each, line, space_comment};
use crate::data::{placement::Space, surface::Surface};

pub(super) fn write(
    out: &mut impl Write,
    surface: &Surface,
    space: Option<Space>,
) -> io::Result<()> {
    let Surface { positions, normals, triangles, .. } = surface;
    writeln!(out, "{}", if normals.is_empty() { "OFF" } else { "NOFF" })?;
    if let Some(space) = space {
        writeln!(out, "# {}", space_comment(space))?;
    }
    writeln!(out, "{} {} 0", positions.len(), triangles.len())?;
    match normals.is_empty() {
        true => write_each(out, positions, |[x, y, z], bytes| {
            line(bytes, format_args!("{x} {y} {z}\n"));
        })?,
        false => {
            let vertices: Vec<_> = positions.iter().zip(normals).collect();
            write_each(out, &vertices, |([x, y, z], [nx, ny, nz]), bytes| {
                line(bytes, format_args!("{x} {y} {z} {nx} {ny} {nz}\n"));
            })?;
        }
    }
    write_each(out, triangles, |[a, b, c], bytes| line(bytes, format_args!("3 {a} {b} {c}\n")))
}
