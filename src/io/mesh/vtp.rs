//! VTK's XML format for surfaces (PolyData): an XML header, then the raw arrays, each preceded by its length in bytes
//! as u64.

use std::io::{self, Write};

use super::{chunks::write_each, space_comment};
use crate::data::{placement::Space, surface::Surface};

/// The integer type of vertex indices, and of the end of each triangle among them.
#[derive(Clone, Copy)]
struct Integer {
    name: &'static str,
    size: u64,
}

pub(super) fn write(
    out: &mut impl Write,
    surface: &Surface,
    space: Option<Space>,
) -> io::Result<()> {
    let Surface { positions, normals, triangles, .. } = surface;
    let count = 3 * triangles.len() as u64;
    let integer = match count.max(positions.len() as u64) <= i32::MAX as u64 {
        true => Integer { name: "Int32", size: 4 },
        false => Integer { name: "Int64", size: 8 },
    };
    // Bytes of each array.
    let lengths = [
        size_of_val(&positions[..]) as u64,
        size_of_val(&normals[..]) as u64,
        count * integer.size,
        count / 3 * integer.size,
    ];
    out.write_all(head(surface, space, integer, lengths).as_bytes())?;
    let triple = |values: &[f32; 3], bytes: &mut Vec<u8>| {
        values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
    };
    let put = |value: u64, bytes: &mut Vec<u8>| {
        bytes.extend_from_slice(&value.to_le_bytes()[..integer.size as usize]);
    };
    out.write_all(&lengths[0].to_le_bytes())?;
    write_each(out, positions, triple)?;
    if !normals.is_empty() {
        out.write_all(&lengths[1].to_le_bytes())?;
        write_each(out, normals, triple)?;
    }
    out.write_all(&lengths[2].to_le_bytes())?;
    write_each(out, triangles, |triangle, bytes| {
        triangle.iter().for_each(|&number| put(number.into(), bytes));
    })?;
    out.write_all(&lengths[3].to_le_bytes())?;
    for start in (0..triangles.len()).step_by(1 << 16) {
        let mut bytes = Vec::new();
        let end = triangles.len().min(start + (1 << 16));
        (start..end).for_each(|triangle| put(3 * (triangle as u64 + 1), &mut bytes));
        out.write_all(&bytes)?;
    }
    out.write_all(b"\n</AppendedData>\n</VTKFile>\n")
}

/// The XML up to the first array. Offsets of arrays count their lengths, of eight bytes each, too.
fn head(surface: &Surface, space: Option<Space>, integer: Integer, lengths: [u64; 4]) -> String {
    let mut head = String::from("<?xml version=\"1.0\"?>\n");
    if let Some(space) = space {
        head += &format!("<!-- {} -->\n", space_comment(space));
    }
    let mut offset = 0;
    let mut array = |kind: &str, name: &str, components: u32, length: u64| {
        let text = format!(
            "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\" format=\"appended\" \
             offset=\"{offset}\"/>\n"
        );
        offset += 8 + length;
        text
    };
    let points = array("Float32", "Points", 3, lengths[0]);
    let (attributes, vectors) = match surface.normals.is_empty() {
        true => ("", String::new()),
        false => (" Normals=\"Normals\"", array("Float32", "Normals", 3, lengths[1])),
    };
    let connectivity = array(integer.name, "connectivity", 1, lengths[2]);
    let offsets = array(integer.name, "offsets", 1, lengths[3]);
    head + &format!(
        "<VTKFile type=\"PolyData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n\
         <PolyData>\n\
         <Piece NumberOfPoints=\"{}\" NumberOfVerts=\"0\" NumberOfLines=\"0\" NumberOfStrips=\"0\" \
         NumberOfPolys=\"{}\">\n\
         <PointData{attributes}>\n{vectors}</PointData>\n<Points>\n{points}</Points>\n\
         <Polys>\n{connectivity}{offsets}</Polys>\n</Piece>\n</PolyData>\n\
         <AppendedData encoding=\"raw\">\n_",
        surface.positions.len(),
        surface.triangles.len(),
    )
}
