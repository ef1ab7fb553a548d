//! GIfTI: XML with arrays compressed by zlib and encoded in base64.

use std::io;

use base64::{engine::general_purpose::STANDARD, write::EncoderWriter};
use bytemuck::Pod;
use flate2::{Compression, write::ZlibEncoder};

use super::{
    Details, Out,
    chunks::{to_count, write_triples},
};
use crate::data::{placement::Space, surface::Surface};

pub(super) fn write(out: &mut Out<'_>, surface: &Surface, details: Details) -> io::Result<()> {
    let Surface { positions, normals, triangles, .. } = surface;
    to_count::<i32>(positions.len(), "GIfTI holds at most 2,147,483,647 vertices")?;
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE GIFTI SYSTEM \"http://www.nitrc.org/frs/download.php/115/gifti.dtd\">\n\
         <GIFTI Version=\"1.0\" NumberOfDataArrays=\"{}\">",
        if normals.is_empty() { 2 } else { 3 }
    )?;
    write_array(out, "POINTSET", "FLOAT32", positions, &coordinates(details.space))?;
    write_array(out, "TRIANGLE", "INT32", triangles, "")?;
    if !normals.is_empty() {
        write_array(out, "VECTOR", "FLOAT32", normals, "")?;
    }
    writeln!(out, "</GIFTI>")
}

/// The transform from coordinates of `space` to those of the scanner, which are RAS in GIfTI.
fn coordinates(space: Option<Space>) -> String {
    let (to, [x, y, z]) = match space {
        None => ("UNKNOWN", [1, 1, 1]),
        Some(Space::Ras) => ("SCANNER_ANAT", [1, 1, 1]),
        Some(Space::Lps) => ("SCANNER_ANAT", [-1, -1, 1]),
        Some(Space::Las) => ("SCANNER_ANAT", [-1, 1, 1]),
    };
    let from = if space == Some(Space::Ras) { to } else { "UNKNOWN" };
    format!(
        "<CoordinateSystemTransformMatrix>\n\
         <DataSpace><![CDATA[NIFTI_XFORM_{from}]]></DataSpace>\n\
         <TransformedSpace><![CDATA[NIFTI_XFORM_{to}]]></TransformedSpace>\n\
         <MatrixData>{x} 0 0 0 0 {y} 0 0 0 0 {z} 0 0 0 0 1</MatrixData>\n\
         </CoordinateSystemTransformMatrix>\n"
    )
}

/// Writes one array of triples; `inside` is XML before its data.
fn write_array<T: Pod>(
    out: &mut Out<'_>,
    intent: &str,
    kind: &str,
    triples: &[[T; 3]],
    inside: &str,
) -> io::Result<()> {
    write!(
        out,
        "<DataArray Intent=\"NIFTI_INTENT_{intent}\" DataType=\"NIFTI_TYPE_{kind}\" \
         ArrayIndexingOrder=\"RowMajorOrder\" Dimensionality=\"2\" Dim0=\"{}\" Dim1=\"3\" \
         Encoding=\"GZipBase64Binary\" Endian=\"LittleEndian\" ExternalFileName=\"\" ExternalFileOffset=\"\">\n\
         {inside}<Data>",
        triples.len()
    )?;
    let mut packed =
        ZlibEncoder::new(EncoderWriter::new(&mut *out, &STANDARD), Compression::fast());
    write_triples(&mut packed, triples)?;
    packed.finish()?.finish()?;
    writeln!(out, "</Data>\n</DataArray>")
}
