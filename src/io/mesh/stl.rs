//! STL, text or binary: 80 bytes of text, the number of triangles, then 50 bytes for each: normal, corners, 2 unused bytes.
//!
//! Triangles with two equal corners are left out: readers merge equal corners to one vertex, so that the surface is
//! closed without these triangles.

use std::{borrow::Cow, io};

use super::{
    Details, Out,
    chunks::{to_count, write_each},
};
use crate::data::{
    surface::Surface,
    vec3::{dot, triangle_normal},
};

pub(super) fn write(out: &mut Out<'_>, surface: &Surface, details: Details) -> io::Result<()> {
    if details.ascii {
        return write_ascii(out, surface, details);
    }
    let triangles = with_area(surface);
    let count: u32 = to_count(triangles.len(), "STL holds at most 4,294,967,295 triangles")?;
    let mut header = b"gpuproc ".to_vec();
    details.write_space(&mut header, "", "")?;
    header.resize(80, b' ');
    out.write_all(&[&header[..], &count.to_le_bytes()].concat())?;
    write_each(out, &triangles, |&triangle, bytes| {
        let normal = unit_normal(surface.corners(triangle));
        let corners = surface.corners::<f32>(triangle);
        let values = normal.into_iter().chain(corners.into_iter().flatten());
        values.for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        bytes.extend_from_slice(&[0; 2]);
    })
}

fn write_ascii(out: &mut Out<'_>, surface: &Surface, details: Details) -> io::Result<()> {
    write!(out, "solid gpuproc ")?;
    details.write_space(out, "", "")?;
    writeln!(out)?;
    write_each(out, &with_area(surface), |&triangle, bytes| {
        let [x, y, z] = unit_normal(surface.corners(triangle));
        let corners = surface.corners::<f32>(triangle);
        let corners = corners.map(|[x, y, z]| format!("vertex {x} {y} {z}\n")).concat();
        let text = format!("facet normal {x} {y} {z}\nouter loop\n{corners}endloop\nendfacet\n");
        bytes.extend_from_slice(text.as_bytes());
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

/// The unit normal of a triangle; zeros if it has no area.
fn unit_normal(corners: [[f64; 3]; 3]) -> [f32; 3] {
    let normal = triangle_normal(corners);
    let length = dot(normal, normal).sqrt();
    if length > 0.0 { normal.map(|v| (v / length) as f32) } else { [0.0; 3] }
}
