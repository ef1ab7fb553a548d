//! Wavefront OBJ, a text: `v x y z` or with a colour `v x y z r g b`, `vn x y z`, and `f a b c` with vertices counted
//! from 1.

use std::io::{self, Write};

use super::{chunks::write_each, line, space_comment};
use crate::data::{placement::Space, surface::Surface};

pub(super) fn write(
    out: &mut impl Write,
    surface: &Surface,
    space: Option<Space>,
) -> io::Result<()> {
    if let Some(space) = space {
        writeln!(out, "# {}", space_comment(space))?;
    }
    let Surface { positions, normals, colors, triangles, .. } = surface;
    if colors.is_empty() {
        write_each(out, positions, |[x, y, z], bytes| {
            line(bytes, format_args!("v {x} {y} {z}\n"));
        })?;
    } else {
        let vertices: Vec<_> = positions.iter().zip(colors).collect();
        write_each(out, &vertices, |([x, y, z], color), bytes| {
            let [r, g, b] = color.map(|v| f32::from(v) / 255.0);
            line(bytes, format_args!("v {x} {y} {z} {r:.4} {g:.4} {b:.4}\n"));
        })?;
    }
    write_each(out, normals, |[x, y, z], bytes| line(bytes, format_args!("vn {x} {y} {z}\n")))?;
    write_each(out, triangles, |triangle, bytes| {
        let [a, b, c] = triangle.map(|i| u64::from(i) + 1);
        match normals.is_empty() {
            true => line(bytes, format_args!("f {a} {b} {c}\n")),
            false => line(bytes, format_args!("f {a}//{a} {b}//{b} {c}//{c}\n")),
        }
    })
}
