//! GIfTI: XML with arrays compressed by zlib and encoded in base64.

use std::io::{self, Write};

use base64::{engine::general_purpose::STANDARD, write::EncoderWriter};
use flate2::{Compression, write::ZlibEncoder};

use super::chunks::{too_large, write_each};
use crate::data::{placement::Space, surface::Surface};

pub(super) fn write(
    out: &mut impl Write,
    surface: &Surface,
    space: Option<Space>,
) -> io::Result<()> {
    let Surface { positions, normals, triangles, .. } = surface;
    if i32::try_from(positions.len()).is_err() {
        return Err(too_large("GIfTI numbers at most 2,147,483,647 vertices"));
    }
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE GIFTI SYSTEM \"http://www.nitrc.org/frs/download.php/115/gifti.dtd\">\n\
         <GIFTI Version=\"1.0\" NumberOfDataArrays=\"{}\">",
        if normals.is_empty() { 2 } else { 3 }
    )?;
    let triple = |values: &[f32; 3], bytes: &mut Vec<u8>| {
        values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
    };
    array(out, ("POINTSET", "FLOAT32"), positions, &coordinates(space), triple)?;
    array(out, ("TRIANGLE", "INT32"), triangles, "", |triangle, bytes| {
        triangle.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    })?;
    if !normals.is_empty() {
        array(out, ("VECTOR", "FLOAT32"), normals, "", triple)?;
    }
    writeln!(out, "</GIFTI>")
}

/// The transform from coordinates of `space` to those of the scanner, which are RAS in GIfTI.
fn coordinates(space: Option<Space>) -> String {
    let (to, signs) = match space {
        None => ("UNKNOWN", [1, 1, 1]),
        Some(Space::Ras) => ("SCANNER_ANAT", [1, 1, 1]),
        Some(Space::Lps) => ("SCANNER_ANAT", [-1, -1, 1]),
        Some(Space::Las) => ("SCANNER_ANAT", [-1, 1, 1]),
    };
    let from = if space == Some(Space::Ras) { to } else { "UNKNOWN" };
    let [x, y, z] = signs;
    format!(
        "<CoordinateSystemTransformMatrix>\n\
         <DataSpace><![CDATA[NIFTI_XFORM_{from}]]></DataSpace>\n\
         <TransformedSpace><![CDATA[NIFTI_XFORM_{to}]]></TransformedSpace>\n\
         <MatrixData>{x} 0 0 0 0 {y} 0 0 0 0 {z} 0 0 0 0 1</MatrixData>\n\
         </CoordinateSystemTransformMatrix>\n"
    )
}

/// Writes one array of triples; `inside` is XML before its data.
fn array<T: Sync>(
    out: &mut impl Write,
    (intent, kind): (&str, &str),
    items: &[T],
    inside: &str,
    format: impl Fn(&T, &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    write!(
        out,
        "<DataArray Intent=\"NIFTI_INTENT_{intent}\" DataType=\"NIFTI_TYPE_{kind}\" \
         ArrayIndexingOrder=\"RowMajorOrder\" Dimensionality=\"2\" Dim0=\"{}\" Dim1=\"3\" \
         Encoding=\"GZipBase64Binary\" Endian=\"LittleEndian\" ExternalFileName=\"\" ExternalFileOffset=\"\">\n\
         {inside}<Data>",
        items.len()
    )?;
    let mut packed =
        ZlibEncoder::new(EncoderWriter::new(&mut *out, &STANDARD), Compression::fast());
    write_each(&mut packed, items, format)?;
    packed.finish()?.finish()?;
    writeln!(out, "</Data>\n</DataArray>")
}
