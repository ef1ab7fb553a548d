//! MetaImage (itk.org/Wiki/MetaIO): lines `Key = Value`, the last of which says where the samples are: in the same file
//! (`.mha`), or in others (`.mhd`).
//!
//! World coordinates are LPS in millimetres, as in ITK, unless `DistanceUnits` states another unit; `?` stands for an
//! unknown one. ITK takes all lengths for millimetres, so they are written as such. `Offset` is the centre of the first
//! sample.

use super::{
    format::{
        BoxError, Endian, Format, Header, Outgoing, Packing, Placing, Start, Stored, UNITS_OF_ITK,
        Writing, dims_of,
    },
    text::{data_files, sizes_of},
};
use crate::data::{
    dtype::Dtype,
    placement::{Placement, Space},
};

/// The format.
pub const FORMAT: Format = Format {
    name: "MetaImage",
    extensions: &["mha", "mhd"],
    has_signature: |bytes| {
        [&b"ObjectType"[..], b"NDims", b"Comment = "].iter().any(|start| bytes.starts_with(start))
    },
    header_file: None,
    read,
    write: Some(Writing {
        names: &["MetaImage"],
        extensions: &["mha"],
        may_be_packed: false,
        keeps: |_| false,
        dtypes: &Dtype::SAMPLES,
        longest: [usize::MAX; 3],
        placing: Placing::Affine(Some(Space::Lps)),
        units: UNITS_OF_ITK,
        header: header_bytes,
    }),
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

/// Fields that are understood or need not be kept; all others are metadata.
const KNOWN: [&str; 27] = [
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
    "ElementDataFile",
    "HeaderSize",
    "DistanceUnits",
    "ID",
    "ParentID",
    "AnatomicalOrientation",
];

struct Fields(Vec<(String, String)>);

impl Fields {
    /// The value of the first of several names of a field that is there.
    fn get(&self, names: &[&str]) -> Option<&str> {
        let named = |name: &&str| self.0.iter().find(|(key, _)| key == name);
        names.iter().find_map(named).map(|(_, value)| value.as_str())
    }

    /// At least `count` numbers; `None` where the field is missing.
    fn numbers(&self, names: &[&str], count: usize) -> Result<Option<Vec<f64>>, BoxError> {
        let Some(text) = self.get(names) else { return Ok(None) };
        let numbers: Option<Vec<f64>> =
            text.split_whitespace().map(|part| part.parse().ok()).collect();
        match numbers.filter(|numbers| numbers.len() >= count) {
            Some(numbers) => Ok(Some(numbers)),
            None => Err(format!("its `{}` is no list of {count} numbers", names[0]).into()),
        }
    }

    fn is_true(&self, names: &[&str]) -> bool {
        self.get(names).is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
    }
}

fn read(start: &mut Start<'_>) -> Result<Header, BoxError> {
    let mut fields = Fields(Vec::new());
    loop {
        let Some(line) = start.line()? else {
            return Err("its header does not say where the samples are".into());
        };
        let Some((name, value)) = line.split_once('=') else {
            match line.trim().is_empty() {
                true => continue,
                false => return Err("it does not begin as one".into()),
            }
        };
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        let is_last = name == "ElementDataFile";
        fields.0.push((name, value));
        if is_last {
            break;
        }
    }
    let place = fields.get(&["ElementDataFile"]).unwrap_or_default().to_owned();
    if place.eq_ignore_ascii_case("LOCAL") {
        return header(&fields, start.position);
    }
    let files = data_files(&place, start)?;
    let mut header = header(&fields, 0)?;
    header.files = Some(files);
    Ok(header)
}

fn header(fields: &Fields, position: u64) -> Result<Header, BoxError> {
    let sizes = sizes(fields)?;
    let size = |axis: usize| sizes.get(axis).copied().unwrap_or(1);
    let dims = dims_of([size(0), size(1), size(2)])?;
    let volumes = (3..sizes.len()).map(size).fold(1, u64::saturating_mul);
    let mut header = Header::new(dims, Stored::As(dtype(fields)?), position);
    header.volumes = usize::try_from(volumes)?;
    if fields.is_true(&["BinaryDataByteOrderMSB", "ElementByteOrderMSB"]) {
        header.endian = Endian::Big;
    }
    let is_text =
        fields.get(&["BinaryData"]).is_some_and(|value| value.eq_ignore_ascii_case("false"));
    header.packing = match fields.is_true(&["CompressedData"]) {
        true => Packing::Zlib,
        false if is_text => Packing::Text,
        false => Packing::None,
    };
    if let Some(bytes) = fields.get(&["HeaderSize"]) {
        header.skip.bytes = match bytes.parse::<i64>() {
            Ok(-1) if header.packing == Packing::None => None,
            Ok(bytes @ 0..) => Some(bytes as u64),
            _ => return Err("its HeaderSize makes no sense".into()),
        };
    }
    place(&mut header, fields, sizes.len())?;
    let is_metadata =
        |(name, value): &&(String, String)| !KNOWN.contains(&name.as_str()) && !value.is_empty();
    header.metadata = fields.0.iter().filter(is_metadata).cloned().collect();
    Ok(header)
}

/// The number of samples along each axis, the first axis fastest.
fn sizes(fields: &Fields) -> Result<Vec<u64>, BoxError> {
    let axes = fields.get(&["NDims"]).and_then(|text| text.parse::<usize>().ok());
    let axes = axes
        .filter(|axes| (1..=10).contains(axes))
        .ok_or("it does not tell how many axes there are")?;
    let sizes = sizes_of(fields.get(&["DimSize"]).unwrap_or_default());
    sizes.filter(|sizes| sizes.len() == axes).ok_or_else(|| {
        format!("its DimSize is no list of {axes} whole numbers greater than 0").into()
    })
}

fn dtype(fields: &Fields) -> Result<Dtype, BoxError> {
    if let Some(channels) =
        fields.get(&["ElementNumberOfChannels"]).filter(|&channels| channels != "1")
    {
        return Err(format!("each of its samples is a vector of {channels} numbers").into());
    }
    let kind = fields.get(&["ElementType"]).unwrap_or_default();
    let known = TYPES.iter().find(|(name, _)| *name == kind);
    let dtype = known.map(|&(_, dtype)| dtype);
    dtype.ok_or_else(|| format!("samples of type `{kind}` are not supported").into())
}

/// Places the samples by spacing, offset and directions, if the header has one of them.
fn place(header: &mut Header, fields: &Fields, axes: usize) -> Result<(), BoxError> {
    let spacing = fields.numbers(&["ElementSpacing", "ElementSize"], axes)?;
    let offset = fields.numbers(&["Offset", "Position", "Origin"], axes)?;
    let matrix = fields.numbers(&["TransformMatrix", "Rotation", "Orientation"], axes * axes)?;
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
    header.place_in(placement, [Some(fields.get(&["DistanceUnits"]).unwrap_or("mm")); 3]);
    Ok(())
}

/// The header of a new `.mha` file.
fn header_bytes(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let Outgoing { dims: [x, y, z], dtype, placement, .. } = outgoing;
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
    use super::*;

    fn parse(text: &str) -> Result<Header, BoxError> {
        FORMAT.parse(text.as_bytes())
    }

    const PLAIN: &str =
        "NDims = 3\nDimSize = 4 5 6\nElementType = MET_SHORT\nElementDataFile = LOCAL\n";

    #[test]
    fn headers_come_back() {
        let steps = [[0.0, 0.5, 0.0], [-2.0, 0.0, 0.0], [0.0, 0.0, -2.0]];
        let place = |unit: Option<&str>| {
            let unit = unit.map(str::to_owned);
            Placement { steps, first: [0.1, -20.0, 1e-9], space: Some(Space::Lps), unit }
        };
        for place in [None, Some(place(None)), Some(place(Some("mm")))] {
            for dtype in Dtype::SAMPLES {
                let placement = place.as_ref();
                let outgoing = Outgoing { dims: [4, 5, 6], dtype, placement, metadata: Vec::new() };
                let (_, header) = FORMAT.write_and_parse(&outgoing);
                assert_eq!((header.placement.as_ref(), header.warnings.len()), (placement, 0));
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let header = parse(PLAIN).unwrap();
        assert_eq!((header.placement, header.packing, header.volumes), (None, Packing::None, 1));
        for (from, to) in [
            ("NDims = 3", "NDims = 4"),
            ("4 5 6", "4 5 x"),
            ("4 5 6", "4 0 6"),
            ("MET_SHORT", "MET_STRING"),
            ("ElementType", "ElementSpacing = 1 2\nElementType"),
            ("ElementType", "ElementNumberOfChannels = 3\nElementType"),
            ("ElementType", "HeaderSize = -2\nElementType"),
            ("ElementDataFile = LOCAL\n", ""),
        ] {
            assert!(parse(&PLAIN.replace(from, to)).is_err(), "{to}");
        }
        let more = "Offset = 1 2 3\nCompressedData = True\nModality = MET_MOD_CT\nElementType";
        let header = parse(&PLAIN.replace("ElementType", more)).unwrap();
        assert_eq!(header.placement.unwrap().first, [1.0, 2.0, 3.0]);
        assert_eq!((header.packing, header.metadata.len()), (Packing::Zlib, 1));
        let unit = |text: &str| {
            let more = format!("ElementSpacing = 1 2 3\n{text}ElementType");
            parse(&PLAIN.replace("ElementType", &more)).unwrap().placement.unwrap().unit
        };
        assert_eq!(unit("").as_deref(), Some("mm"));
        assert_eq!(unit("DistanceUnits = um\n").as_deref(), Some("um"));
        assert_eq!(unit("DistanceUnits = ?\n"), None);
        let header = parse(&PLAIN.replace("3\nDimSize = 4 5 6", "4\nDimSize = 4 5 6 7")).unwrap();
        assert_eq!(header.volumes, 7);
        let other = parse(&PLAIN.replace("LOCAL", "a b.raw")).unwrap();
        assert_eq!(other.files.unwrap(), ["a b.raw"]);
    }
}
