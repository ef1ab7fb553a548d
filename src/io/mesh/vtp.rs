//! VTK's XML format for surfaces (PolyData): an XML header, then the raw arrays, each preceded by its length in bytes
//! as u64.

use std::io;

use super::{
    Details, Out,
    chunks::{write_each, write_triples},
};
use crate::data::surface::Surface;

pub(super) fn write(out: &mut Out<'_>, surface: &Surface, details: Details) -> io::Result<()> {
    let Surface { positions, normals, triangles, .. } = surface;
    let count = 3 * triangles.len() as u64;
    // The integer type of vertex indices, and of the end of each triangle among them.
    let (integer, size) = match count.max(positions.len() as u64) <= i32::MAX as u64 {
        true => ("Int32", 4),
        false => ("Int64", 8),
    };
    let [points, vectors] = [positions, normals].map(|array| size_of_val(&array[..]) as u64);
    // Offsets count the lengths of the arrays before, too.
    let (mut offset, mut arrays) = (0, Vec::new());
    for (kind, name, components, length) in [
        ("Float32", "Points", 3, points),
        ("Float32", "Normals", 3, vectors),
        (integer, "connectivity", 1, count * size),
        (integer, "offsets", 1, count / 3 * size),
    ] {
        if name == "Normals" && normals.is_empty() {
            arrays.push(String::new());
            continue;
        }
        arrays.push(format!(
            "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\" format=\"appended\" \
             offset=\"{offset}\"/>\n"
        ));
        offset += 8 + length;
    }
    writeln!(out, "<?xml version=\"1.0\"?>")?;
    details.write_space(out, "<!-- ", " -->\n")?;
    write!(
        out,
        "<VTKFile type=\"PolyData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n\
         <PolyData>\n\
         <Piece NumberOfPoints=\"{}\" NumberOfVerts=\"0\" NumberOfLines=\"0\" NumberOfStrips=\"0\" \
         NumberOfPolys=\"{}\">\n\
         <PointData{}>\n{}</PointData>\n<Points>\n{}</Points>\n\
         <Polys>\n{}{}</Polys>\n</Piece>\n</PolyData>\n\
         <AppendedData encoding=\"raw\">\n_",
        positions.len(),
        triangles.len(),
        if normals.is_empty() { "" } else { " Normals=\"Normals\"" },
        arrays[1],
        arrays[0],
        arrays[2],
        arrays[3],
    )?;
    out.write_all(&points.to_le_bytes())?;
    write_triples(out, positions)?;
    if !normals.is_empty() {
        out.write_all(&vectors.to_le_bytes())?;
        write_triples(out, normals)?;
    }
    let put = |value: u64, bytes: &mut Vec<u8>| {
        bytes.extend_from_slice(&value.to_le_bytes()[..size as usize]);
    };
    out.write_all(&(count * size).to_le_bytes())?;
    write_each(out, triangles, |triangle, bytes| {
        triangle.iter().for_each(|&number| put(number.into(), bytes));
    })?;
    out.write_all(&(count / 3 * size).to_le_bytes())?;
    for start in (0..triangles.len()).step_by(1 << 16) {
        let mut bytes = Vec::new();
        let end = triangles.len().min(start + (1 << 16));
        (start..end).for_each(|triangle| put(3 * (triangle as u64 + 1), &mut bytes));
        out.write_all(&bytes)?;
    }
    out.write_all(b"\n</AppendedData>\n</VTKFile>\n")
}
