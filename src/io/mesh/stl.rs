//! STL, as text or binary: 80 bytes of text, the count, then 50 bytes for each triangle: normal, corners, 2 unused
//! bytes.
//!
//! Triangles with two equal corners are left out: readers merge equal corners to one vertex, so that the surface is
//! closed without these triangles.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use super::{
    chunks::{too_large, write_each},
    line, space_comment,
};
use crate::data::{
    placement::Space,
    surface::Surface,
    vec3::{dot, triangle_normal},
};

pub(super) fn write(
    out: &mut impl Write,
    surface: &Surface,
    space: Option<Space>,
) -> io::Result<()> {
    let triangles = with_area(surface);
    let count = u32::try_from(triangles.len())
        .map_err(|_| too_large("STL holds at most 4,294,967,295 triangles"))?;
    let mut header = [b' '; 80];
    let text = format!("gpuproc {}", space.map(space_comment).unwrap_or_default());
    header[..text.len()].copy_from_slice(text.as_bytes());
    out.write_all(&header)?;
    out.write_all(&count.to_le_bytes())?;
    write_each(out, &triangles, |&triangle, bytes| {
        let normal = unit_normal(surface.corners(triangle));
        let corners = surface.corners::<f32>(triangle);
        let values = normal.into_iter().chain(corners.into_iter().flatten());
        values.for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        bytes.extend_from_slice(&[0; 2]);
    })
}

pub(super) fn write_text(
    out: &mut impl Write,
    surface: &Surface,
    space: Option<Space>,
) -> io::Result<()> {
    writeln!(out, "solid gpuproc {}", space.map(space_comment).unwrap_or_default())?;
    write_each(out, &with_area(surface), |&triangle, bytes| {
        let [x, y, z] = unit_normal(surface.corners(triangle));
        line(bytes, format_args!("facet normal {x} {y} {z}\nouter loop\n"));
        for [x, y, z] in surface.corners::<f32>(triangle) {
            line(bytes, format_args!("vertex {x} {y} {z}\n"));
        }
        line(bytes, format_args!("endloop\nendfacet\n"));
    })?;
    writeln!(out, "endsolid gpuproc")
}

/// The triangles with three different corners.
fn with_area(surface: &Surface) -> Cow<'_, [[u32; 3]]> {
    if surface.flat_triangles() == 0 {
        return Cow::Borrowed(&surface.triangles);
    }
    let all = surface.triangles.iter();
    Cow::Owned(all.filter(|triangle| !surface.is_flat(**triangle)).copied().collect())
}

/// The unit normal of a triangle; zeros where it has no area.
fn unit_normal(corners: [[f64; 3]; 3]) -> [f32; 3] {
    let normal = triangle_normal(corners);
    let length = dot(normal, normal).sqrt();
    if length > 0.0 { normal.map(|v| (v / length) as f32) } else { [0.0; 3] }
}
