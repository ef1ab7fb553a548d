//! Reads meshes in XML: 3MF, GIfTI and VTK's.

use std::str::FromStr;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::bufread::{DeflateDecoder, ZlibDecoder};
use rawzip::{CompressionMethod, ZipArchive};

use super::decode::{add_polygon, text, triples, truncated, unpacked};
use crate::data::surface::Surface;

/// The elements of an XML file: name, attributes, and the text after the tag.
fn elements(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    text.split('<').skip(1).filter_map(|part| {
        let (tag, content) = part.split_once('>')?;
        let (name, attributes) =
            tag.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((tag, ""));
        Some((name, attributes, content))
    })
}

/// The value of an attribute, without spaces.
fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let mut words = attributes.split_ascii_whitespace();
    let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    Some(value.trim_matches(['"', '\'', '/']))
}

fn numbers<T: FromStr, const N: usize>(
    attributes: &str,
    names: [&str; N],
) -> Result<[T; N], String> {
    let number = |name| attribute(attributes, name)?.parse().ok();
    let numbers: Option<Vec<T>> = names.into_iter().map(number).collect();
    let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
    numbers.ok_or_else(|| format!("`{attributes}`: expected numbers {}", names.join(", ")))
}

/// All objects of a 3MF together, in the coordinates of their vertices.
pub(super) fn three_mf(bytes: &[u8], limit: u64) -> Result<Surface, String> {
    let text_of = |error: rawzip::Error| error.to_string();
    let archive = ZipArchive::from_slice(bytes).map_err(text_of)?;
    let mut entries = archive.entries();
    let entry = loop {
        let entry = entries.next_entry().map_err(text_of)?.ok_or("it has no 3D/3dmodel.model")?;
        if entry.file_path().as_bytes().eq_ignore_ascii_case(b"3D/3dmodel.model") {
            break entry;
        }
    };
    let content = archive.get_entry(entry.wayfinder()).map_err(text_of)?;
    let model = match entry.compression_method() {
        CompressionMethod::STORE => unpacked(content.verifying_reader(content.data()), limit),
        CompressionMethod::DEFLATE => {
            unpacked(content.verifying_reader(DeflateDecoder::new(content.data())), limit)
        }
        method => Err(format!("compression {method:?} is not supported")),
    }?;
    let (mut surface, mut first) = (Surface::default(), 0);
    for (name, attributes, _) in elements(text(&model)?) {
        match name {
            "vertices" => first = surface.positions.len() as u32,
            "vertex" => surface.positions.push(numbers(attributes, ["x", "y", "z"])?),
            "triangle" => {
                let corners = numbers(attributes, ["v1", "v2", "v3"])?;
                surface.triangles.push(corners.map(|corner: u32| corner.saturating_add(first)));
            }
            _ => {}
        }
    }
    Ok(surface)
}

/// Decodes base64, of which each part may be padded.
fn from_base64(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let mut bytes = Vec::new();
    for part in digits.chunk_by(|digit, next| *digit != b'=' || *next == b'=') {
        STANDARD.decode_vec(part, &mut bytes).map_err(|error| error.to_string())?;
    }
    Ok(bytes)
}

pub(super) fn gifti(bytes: &[u8], limit: u64) -> Result<Surface, String> {
    let (mut surface, mut found, mut array) = (Surface::default(), [false; 2], "");
    for (name, attributes, content) in elements(text(bytes)?) {
        if name == "DataArray" {
            array = attributes;
        }
        let has = |name, value| attribute(array, name) == Some(value);
        let is_points = has("Intent", "NIFTI_INTENT_POINTSET");
        if name != "Data" || !is_points && !has("Intent", "NIFTI_INTENT_TRIANGLE") {
            continue;
        }
        let dtype = if is_points { "NIFTI_TYPE_FLOAT32" } else { "NIFTI_TYPE_INT32" };
        let is_little = has("Endian", "LittleEndian") && has("ArrayIndexingOrder", "RowMajorOrder");
        if !is_little || !has("DataType", dtype) || !has("Dim1", "3") {
            return Err(
                "expected little-endian triples, float32 vertices and int32 triangles".to_owned()
            );
        }
        let data = from_base64(content)?;
        let data = match attribute(array, "Encoding") {
            Some("GZipBase64Binary") => unpacked(ZlibDecoder::new(&data[..]), limit)?,
            Some("Base64Binary") => data,
            _ => return Err("expected an encoding GZipBase64Binary or Base64Binary".to_owned()),
        };
        if numbers::<u64, 1>(array, ["Dim0"])? != [data.len() as u64 / 12] {
            return Err(truncated());
        }
        found[usize::from(is_points)] = true;
        match is_points {
            true => surface.positions.extend(triples(&data, f32::from_le_bytes)),
            false => surface.triangles.extend(triples(&data, u32::from_le_bytes)),
        }
    }
    match found {
        [true, true] => Ok(surface),
        _ => Err("expected an array of vertices and one of triangles".to_owned()),
    }
}

/// The start of an array of a VTP: the attributes of its element, and the text in it.
type VtkArray<'a> = Option<(&'a str, &'a str)>;

/// How the arrays of a VTP are stored: within the XML or after it, as bytes or in base64, also compressed by zlib.
struct VtkStorage<'a> {
    appended: &'a [u8],
    is_raw: bool,
    is_packed: bool,
    /// Bytes of a number in the header of an array.
    word: usize,
    limit: u64,
}

/// Reads one piece with polygons.
pub(super) fn vtp(bytes: &[u8], limit: u64) -> Result<Surface, String> {
    const APPENDED: &[u8] = b"<AppendedData";
    let end = bytes.windows(APPENDED.len()).position(|found| found == APPENDED);
    let (xml, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
    // An underscore precedes the appended arrays.
    let start = rest.iter().position(|byte| *byte == b'_').map_or(rest.len(), |place| place + 1);
    let (head, appended) = rest.split_at(start);
    let is_raw = head.windows(3).any(|found| found == b"raw");
    let (mut file, mut section, mut arrays) = ("", "", [None; 3]);
    for (name, attributes, content) in elements(text(xml)?) {
        let value = |name| attribute(attributes, name);
        let number = match (name, section, value("Name")) {
            ("DataArray", "Points", _) => 0,
            ("DataArray", "Polys", Some("connectivity")) => 1,
            ("DataArray", "Polys", Some("offsets")) => 2,
            ("Points" | "Polys" | "Verts" | "Lines" | "Strips" | "PointData" | "CellData", ..) => {
                section = name;
                continue;
            }
            ("VTKFile", ..) => {
                file = attributes;
                continue;
            }
            ("Piece", ..) if value("NumberOfStrips").is_some_and(|count| count != "0") => {
                return Err("triangle strips are not supported".to_owned());
            }
            _ => continue,
        };
        if arrays[number].replace((attributes, content)).is_some() {
            return Err("several pieces are not supported".to_owned());
        }
    }
    let is_packed = match attribute(file, "compressor") {
        None => false,
        Some("vtkZLibDataCompressor") => true,
        Some(other) => return Err(format!("compression by {other} is not supported")),
    };
    if attribute(file, "byte_order") != Some("LittleEndian") {
        return Err("expected little-endian arrays".to_owned());
    }
    let word = if attribute(file, "header_type") == Some("UInt64") { 8 } else { 4 };
    VtkStorage { appended, is_raw, is_packed, word, limit }.surface(arrays)
}

impl VtkStorage<'_> {
    /// The surface of the arrays of points, of corners, and of the ends of polygons among the corners.
    fn surface(&self, [points, corners, ends]: [VtkArray<'_>; 3]) -> Result<Surface, String> {
        let (points, corners) = (self.numbers(points)?, self.numbers(corners)?);
        let positions = points.as_chunks().0.iter();
        let positions = positions.map(|position| position.map(|v| v as f32)).collect();
        let mut surface = Surface { positions, ..Surface::default() };
        let mut start = 0;
        for end in self.numbers(ends)? {
            let polygon = corners.get(start..end as usize).ok_or_else(truncated)?;
            let polygon: Vec<u32> = polygon.iter().map(|&corner| corner as u32).collect();
            add_polygon(&mut surface, &polygon);
            start = end as usize;
        }
        Ok(surface)
    }

    fn numbers(&self, array: VtkArray<'_>) -> Result<Vec<f64>, String> {
        let (attributes, content) = array.ok_or("expected points and polygons")?;
        let mut data = content.as_bytes();
        let is_appended = match attribute(attributes, "format") {
            Some("binary") => false,
            Some("appended") => true,
            _ => return Err("arrays of text are not supported".to_owned()),
        };
        if is_appended {
            let [offset] = numbers(attributes, ["offset"])?;
            data = self.appended.get(offset..).ok_or_else(truncated)?;
        }
        let decoded;
        if !(is_appended && self.is_raw) {
            let end = data.iter().position(|byte| *byte == b'<').unwrap_or(data.len());
            decoded = from_base64(text(&data[..end])?)?;
            data = &decoded;
        }
        let bytes = vtk_array(data, self.word, self.is_packed, self.limit)?;
        vtk_numbers(&bytes, attribute(attributes, "type"))
    }
}

/// The bytes of an array after its header of words of `word` bytes: its length, or the number of its blocks, two sizes,
/// and the packed size of each block.
fn vtk_array(data: &[u8], word: usize, is_packed: bool, limit: u64) -> Result<Vec<u8>, String> {
    let size = |index: usize| {
        let bytes = data.get(index * word..(index + 1) * word).ok_or_else(truncated)?;
        Ok::<_, String>(bytes.iter().rev().fold(0, |size, byte| size << 8 | usize::from(*byte)))
    };
    let part =
        |start: usize, len: usize| data.get(start..start.saturating_add(len)).ok_or_else(truncated);
    if !is_packed {
        return Ok(part(word, size(0)?)?.to_vec());
    }
    let (count, mut bytes) = (size(0)?, Vec::new());
    let mut start = count.saturating_add(3).saturating_mul(word);
    for block in 0..count {
        let packed = part(start, size(3 + block)?)?;
        bytes.extend(unpacked(ZlibDecoder::new(packed), limit.saturating_sub(bytes.len() as u64))?);
        start += packed.len();
    }
    Ok(bytes)
}

fn vtk_numbers(bytes: &[u8], dtype: Option<&str>) -> Result<Vec<f64>, String> {
    fn all<const N: usize>(bytes: &[u8], number: fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks().0.iter().map(|bytes| number(*bytes)).collect()
    }
    Ok(match dtype {
        Some("Float32") => all(bytes, |bytes| f32::from_le_bytes(bytes).into()),
        Some("Float64") => all(bytes, f64::from_le_bytes),
        Some("Int32") => all(bytes, |bytes| i32::from_le_bytes(bytes).into()),
        Some("Int64") => all(bytes, |bytes| i64::from_le_bytes(bytes) as f64),
        _ => return Err("expected arrays of Float32, Float64, Int32 or Int64".to_owned()),
    })
}
