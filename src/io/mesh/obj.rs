//! Wavefront OBJ, a text: `v x y z` or with a colour `v x y z r g b`, `vn x y z`, and `f a b c` with vertices counted
//! from 1. Objects begin with `o name`.

use std::{io, iter::zip};

use super::{
    Details, Out,
    chunks::{write_each, write_text},
    labels::LabelPart,
};
use crate::data::surface::Surface;

pub(super) fn write(out: &mut Out<'_>, surface: &Surface, details: Details) -> io::Result<()> {
    details.write_space(out, "# ", "\n")?;
    write_object(out, surface, 1)
}

/// Writes an OBJ with an object for each label.
pub fn write_labels(out: &mut Out<'_>, parts: &[LabelPart], details: Details) -> io::Result<()> {
    details.write_space(out, "# ", "\n")?;
    let mut first = 1;
    for (label, surface) in parts {
        writeln!(out, "o label_{label}")?;
        write_object(out, surface, first)?;
        first += surface.positions.len() as u64;
    }
    Ok(())
}

/// Writes a surface whose first vertex has the number `first`.
fn write_object(out: &mut Out<'_>, surface: &Surface, first: u64) -> io::Result<()> {
    let Surface { positions, normals, colors, triangles, .. } = surface;
    if colors.is_empty() {
        write_text!(out, positions, |[x, y, z]| "v {x} {y} {z}\n")?;
    } else {
        let vertices: Vec<_> = zip(positions, colors).collect();
        write_each(out, &vertices, |([x, y, z], color), bytes| {
            let [r, g, b] = color.map(|v| f32::from(v) / 255.0);
            let text = format!("v {x} {y} {z} {r:.4} {g:.4} {b:.4}\n");
            bytes.extend_from_slice(text.as_bytes());
        })?;
    }
    write_text!(out, normals, |[x, y, z]| "vn {x} {y} {z}\n")?;
    write_each(out, triangles, |triangle, bytes| {
        let [a, b, c] = triangle.map(|vertex| u64::from(vertex) + first);
        let text = match normals.is_empty() {
            true => format!("f {a} {b} {c}\n"),
            false => format!("f {a}//{a} {b}//{b} {c}//{c}\n"),
        };
        bytes.extend_from_slice(text.as_bytes());
    })
}
