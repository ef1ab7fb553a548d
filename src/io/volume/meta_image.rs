//! MetaImage (itk.org/Wiki/MetaIO): lines `Key = Value`, the last of which names the file of the samples: the same file
//! (`.mha`), or others (`.mhd`).
//!
//! World coordinates are LPS in millimetres, as in ITK, unless `DistanceUnits` states another unit; `?` stands for an
//! unknown one. ITK takes all lengths for millimetres, so they are written as such. `Offset` is the centre of the first
//! sample.

use super::{
    format::{Format, HeaderContent, ITK_UNITS, PlacementSupport, WriteSupport},
    header::{
        BoxError, Description, Encoding, Endian, HeaderReader, InnerAxis, StoredType, VECTORS,
        checked_dims, excerpt,
    },
    text::{TextFields, data_files, sizes},
};
use crate::data::{
    dtype::Dtype,
    placement::{Placement, Space},
};

/// The format.
pub const FORMAT: Format = Format {
    has_signature: |bytes| {
        [&b"ObjectType"[..], b"NDims", b"Comment = "].iter().any(|start| bytes.starts_with(start))
    },
    write: Some(WriteSupport {
        extensions: &["mha"],
        placement: PlacementSupport::Affine(Some(Space::Lps)),
        units: ITK_UNITS,
        header: header_bytes,
        ..WriteSupport::BASE
    }),
    ..Format::new("MetaImage", &["mha", "mhd"], |input| input.with_header(parse))
};

const TYPES: [(&str, Dtype); 12] = [
    ("MET_UCHAR", Dtype::U8),
    ("MET_CHAR", Dtype::I8),
    ("MET_USHORT", Dtype::U16),
    ("MET_SHORT", Dtype::I16),
    ("MET_UINT", Dtype::U32),
    ("MET_INT", Dtype::I32),
    ("MET_FLOAT", Dtype::F32),
    ("MET_DOUBLE", Dtype::F64),
    ("MET_ULONG_LONG", Dtype::U64),
    ("MET_LONG_LONG", Dtype::I64),
    // MetaIO defines 32 bits, whatever `long` is on a machine.
    ("MET_ULONG", Dtype::U32),
    ("MET_LONG", Dtype::I32),
];

/// Fields that are understood or need not be kept. All others are metadata.
const KNOWN: [&str; 26] = [
    "ObjectType",
    "ObjectSubType",
    "NDims",
    "DimSize",
    "BinaryData",
    "BinaryDataByteOrderMSB",
    "ElementByteOrderMSB",
    "CompressedData",
    "CompressedDataSize",
    "CompressionLevel",
    "TransformMatrix",
    "Rotation",
    "Orientation",
    "Offset",
    "Position",
    "Origin",
    "CenterOfRotation",
    "ElementSpacing",
    "ElementSize",
    "ElementType",
    "ElementNumberOfChannels",
    "HeaderSize",
    "DistanceUnits",
    "ID",
    "ParentID",
    "AnatomicalOrientation",
];

/// Parses at least `count` numbers; `None` if the field is missing.
fn vector(fields: &TextFields, names: &[&str], count: usize) -> Result<Option<Vec<f64>>, BoxError> {
    let Some(text) = fields.get(names) else { return Ok(None) };
    let numbers: Option<Vec<f64>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
    let numbers = numbers.filter(|numbers| numbers.len() >= count);
    numbers.map(Some).ok_or_else(|| format!("{}: expected {count} numbers", names[0]).into())
}

/// Whether the value of a field begins as `True`, `true` or `1`, as in MetaIO; `None` if the field is missing.
fn flag(fields: &TextFields, names: &[&str]) -> Option<bool> {
    fields.get(names).map(|value| value.starts_with(['T', 't', '1']))
}

fn parse(reader: &mut HeaderReader<'_>) -> Result<Description, BoxError> {
    let mut fields = TextFields::default();
    let location = loop {
        let line = reader.line()?.ok_or("ElementDataFile is missing")?;
        let Some((name, value)) = line.split_once('=') else {
            match line.trim().is_empty() {
                true => continue,
                false => return Err(format!("invalid header line `{}`", excerpt(&line)).into()),
            }
        };
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        if name == "ElementDataFile" {
            break value;
        }
        fields.0.push((name, value));
    };
    if location.eq_ignore_ascii_case("LOCAL") {
        return header(&fields, reader.position);
    }
    let files = data_files(&location, reader)?;
    let mut header = header(&fields, 0)?;
    header.files = Some(files);
    Ok(header)
}

fn header(fields: &TextFields, position: u64) -> Result<Description, BoxError> {
    let axes = fields.count("NDims")? as usize;
    if !(1..=10).contains(&axes) {
        return Err("NDims: expected a number of axes from 1 to 10".into());
    }
    let sizes = sizes(fields.get(&["DimSize"]).unwrap_or_default())
        .filter(|sizes| sizes.len() == axes)
        .ok_or_else(|| format!("DimSize: expected {axes} whole numbers greater than 0"))?;
    let size = |axis: usize| sizes.get(axis).copied().unwrap_or(1);
    let dims = checked_dims([size(0), size(1), size(2)])?;
    let channels = fields.get(&["ElementNumberOfChannels"]).unwrap_or("1");
    let channels: usize = channels
        .parse()
        .ok()
        .filter(|&channels| channels > 0)
        .ok_or("ElementNumberOfChannels: expected a whole number greater than 0")?;
    let volumes = (3..sizes.len()).map(size).fold(channels as u64, u64::saturating_mul);
    let mut header = Description::new(dims, StoredType::As(dtype(fields)?), position);
    header.volumes = usize::try_from(volumes)?;
    if channels > 1 {
        header.inner_axes = vec![InnerAxis { run: 1, size: channels }];
        header.volume_noun = VECTORS;
    }
    if flag(fields, &["BinaryDataByteOrderMSB", "ElementByteOrderMSB"]) == Some(true) {
        header.endian = Endian::Big;
    }
    header.encoding = match (flag(fields, &["CompressedData"]), flag(fields, &["BinaryData"])) {
        (Some(true), _) => Encoding::Zlib,
        (_, Some(false)) => Encoding::Text,
        _ => Encoding::Raw,
    };
    if let Some(bytes) = fields.get(&["HeaderSize"]) {
        header.skip.bytes = match bytes.parse::<i64>() {
            Ok(-1) if header.encoding == Encoding::Raw => None,
            Ok(bytes @ 0..) => Some(bytes as u64),
            _ => return Err(format!("invalid HeaderSize `{}`", excerpt(bytes)).into()),
        };
    }
    place(&mut header, fields, axes)?;
    let is_metadata =
        |(name, value): &&(String, String)| !KNOWN.contains(&name.as_str()) && !value.is_empty();
    header.metadata = fields.0.iter().filter(is_metadata).cloned().collect();
    Ok(header)
}

fn dtype(fields: &TextFields) -> Result<Dtype, BoxError> {
    let kind = fields.get(&["ElementType"]).unwrap_or_default();
    let own = kind.strip_suffix("_ARRAY").unwrap_or(kind);
    let known = TYPES.iter().find(|(name, _)| *name == own);
    let dtype = known.map(|&(_, dtype)| dtype);
    dtype.ok_or_else(|| format!("samples of type `{}` are not supported", excerpt(kind)).into())
}

/// Places the samples by spacing, offset and directions, if the header has one of them.
fn place(header: &mut Description, fields: &TextFields, axes: usize) -> Result<(), BoxError> {
    let spacing = vector(fields, &["ElementSpacing", "ElementSize"], axes)?;
    let offset = vector(fields, &["Offset", "Position", "Origin"], axes)?;
    let matrix = vector(fields, &["TransformMatrix", "Rotation", "Orientation"], axes * axes)?;
    if spacing.is_none() && offset.is_none() && matrix.is_none() {
        return Ok(());
    }
    let value = |list: &Option<Vec<f64>>, axis: usize, default: f64| match list {
        Some(list) if axis < axes => list[axis],
        _ => default,
    };
    let mut steps = [[0.0; 3]; 3];
    for (axis, step) in steps.iter_mut().enumerate() {
        for (world, step) in step.iter_mut().enumerate() {
            let diagonal = f64::from(axis == world);
            // Each row of the matrix is the direction of an axis of the grid.
            let direction = match &matrix {
                Some(matrix) if axis.max(world) < axes => matrix[axis * axes + world],
                _ => diagonal,
            };
            *step = direction * value(&spacing, axis, 1.0);
        }
    }
    let placement = Placement {
        steps,
        first: std::array::from_fn(|axis| value(&offset, axis, 0.0)),
        space: Some(Space::Lps),
        unit: None,
    };
    header.set_placement_in(placement, [Some(fields.get(&["DistanceUnits"]).unwrap_or("mm")); 3]);
    Ok(())
}

fn header_bytes(content: &HeaderContent<'_>) -> Vec<u8> {
    let HeaderContent { dims: [x, y, z], dtype, placement, .. } = content;
    let kind = TYPES.iter().find(|(_, known)| known == dtype).map_or("MET_FLOAT", |(name, _)| name);
    let list =
        |numbers: &[f64]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let mut text =
        "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n\
                    CompressedData = False\n"
            .to_owned();
    if let Some(placement) = placement {
        let directions = placement.directions();
        text += &format!(
            "TransformMatrix = {}\nOffset = {}\nCenterOfRotation = 0 0 0\n",
            list(directions.as_flattened()),
            list(&placement.first)
        );
        text += &format!(
            "DistanceUnits = {}\nElementSpacing = {}\n",
            placement.unit.as_deref().unwrap_or("?"),
            list(&placement.spacing())
        );
    }
    text += &format!("DimSize = {x} {y} {z}\nElementType = {kind}\nElementDataFile = LOCAL\n");
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::{super::header::parse_bytes, *};

    fn parse(text: &str) -> Result<Description, BoxError> {
        parse_bytes(super::parse, text.as_bytes())
    }

    const PLAIN: &str =
        "NDims = 3\nDimSize = 4 5 6\nElementType = MET_SHORT\nElementDataFile = LOCAL\n";

    #[test]
    fn invalid_fields_are_refused() {
        let header = parse(PLAIN).unwrap();
        assert_eq!((header.placement, header.encoding, header.volumes), (None, Encoding::Raw, 1));
        for (from, to) in [
            ("NDims = 3", "NDims = 4"),
            ("4 5 6", "4 5 x"),
            ("4 5 6", "4 0 6"),
            ("MET_SHORT", "MET_STRING"),
            ("ElementType", "ElementSpacing = 1 2\nElementType"),
            ("ElementType", "ElementNumberOfChannels = 0\nElementType"),
            ("ElementType", "HeaderSize = -2\nElementType"),
            ("ElementDataFile = LOCAL\n", ""),
        ] {
            assert!(parse(&PLAIN.replace(from, to)).is_err(), "{to}");
        }
        let more = "Offset = 1 2 3\nCompressedData = True\nModality = MET_MOD_CT\nElementType";
        let header = parse(&PLAIN.replace("ElementType", more)).unwrap();
        assert_eq!(header.placement.unwrap().first, [1.0, 2.0, 3.0]);
        assert_eq!((header.encoding, header.metadata.len()), (Encoding::Zlib, 1));
        let header = parse(&PLAIN.replace("3\nDimSize = 4 5 6", "4\nDimSize = 4 5 6 7")).unwrap();
        assert_eq!(header.volumes, 7);
        let other = parse(&PLAIN.replace("LOCAL", "a b.raw")).unwrap();
        assert_eq!(other.files.unwrap(), ["a b.raw"]);
    }
}
