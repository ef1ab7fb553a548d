//! NIfTI-1 and NIfTI-2 (nifti.nimh.nih.gov): one file `.nii`, or a pair `.hdr` and `.img`; a binary header in either
//! byte order. World coordinates are RAS.
//!
//! Of the two maps from voxels to the world, the sform is used, else the qform, as in nibabel; without both, the first
//! sample is at 0 and samples are `pixdim` apart ("method 1").

use std::path::{Path, PathBuf};

use super::{
    fields::BinaryFields,
    format::{Format, HeaderContent, PlacementSupport, UnitSupport, WriteSupport},
    header::{
        BoxError, Description, Encoding, Endian, HeaderReader, Scale, StoredType, checked_dims,
    },
    rotation::{placement_rotation, quaternion, rotation},
};
use crate::data::{
    dtype::Dtype,
    placement::{Placement, Space},
};

/// The format.
pub const FORMAT: Format = Format {
    has_signature,
    header_file: Some(header_file),
    write: Some(WriteSupport {
        extensions: &["nii"],
        can_gzip: true,
        keeps_metadata: |(name, text)| name == "description" && text.len() < 80,
        max_dims: [i64::MAX as usize; 3],
        placement: PlacementSupport::Affine(Some(Space::Ras)),
        units: UnitSupport::OneOf(&["m", "mm", "um"]),
        header: header_bytes,
        ..WriteSupport::BASE
    }),
    ..Format::new("NIfTI", &["nii", "hdr", "img"], |input| input.with_header(parse))
};

/// Bytes of the header of version 1 and of version 2.
const SIZE_1: u32 = 348;
const SIZE_2: u32 = 540;
/// Intent codes of vectors, matrices and colours, whose components the fifth axis counts.
const VECTORS: [i32; 7] = [1004, 1005, 1006, 1007, 1009, 2003, 2004];
/// Units of length by their codes.
const UNITS: [Option<&str>; 8] = [None, Some("m"), Some("mm"), Some("um"), None, None, None, None];
/// Sample types and their codes.
const TYPES: [(i16, Dtype); 10] = [
    (2, Dtype::U8),
    (4, Dtype::I16),
    (8, Dtype::I32),
    (16, Dtype::F32),
    (64, Dtype::F64),
    (256, Dtype::I8),
    (512, Dtype::U16),
    (768, Dtype::U32),
    (1024, Dtype::I64),
    (1280, Dtype::U64),
];

/// The offsets of a field in version 1 and in version 2.
type Field = [usize; 2];
const MAGIC: Field = [344, 4];
const DIM: Field = [40, 16];
const INTENT: Field = [68, 504];
const DATATYPE: Field = [70, 12];
const BITS: Field = [72, 14];
const PIXDIM: Field = [76, 104];
const OFFSET: Field = [108, 168];
const SLOPE: Field = [112, 176];
const INTERCEPT: Field = [116, 184];
const UNIT: Field = [123, 500];
const QFORM: Field = [252, 344];
const SFORM: Field = [254, 348];
/// Quaternion b, c, d, then the offset.
const QUATERNION: Field = [256, 352];
/// The rows of the sform.
const ROWS: Field = [280, 400];
const DESCRIPTION: Field = [148, 240];
const AUXILIARY: Field = [228, 320];
const INTENT_NAME: Field = [328, 508];

fn has_signature(bytes: &[u8]) -> bool {
    let at = |offset: usize| bytes.get(offset..offset + 3).unwrap_or_default();
    [b"n+1", b"ni1"].iter().any(|magic| at(MAGIC[0]) == *magic)
        || [b"n+2", b"ni2"].iter().any(|magic| at(MAGIC[1]) == *magic)
}

/// The `.hdr` that belongs to an `.img`.
fn header_file(path: &Path) -> Option<PathBuf> {
    sibling(path, "img", "hdr")
}

/// The existing file with the extension `to` in place of `from`, with or without `.gz`.
fn sibling(path: &Path, from: &str, to: &str) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".gz").unwrap_or(name);
    let (stem, extension) = stem.rsplit_once('.')?;
    if !extension.eq_ignore_ascii_case(from) {
        return None;
    }
    let to = if extension.starts_with(char::is_uppercase) { to.to_uppercase() } else { to.into() };
    let names = [format!("{stem}.{to}"), format!("{stem}.{to}.gz")];
    names.iter().map(|name| path.with_file_name(name)).find(|path| path.is_file())
}

/// The fields of a header of version 1, or of version 2.
struct Fields<'a> {
    bytes: BinaryFields<'a>,
    is_version_2: bool,
}

impl Fields<'_> {
    fn offset(&self, field: Field) -> usize {
        field[usize::from(self.is_version_2)]
    }

    fn text(&self, field: Field, len: usize) -> String {
        self.bytes.text(self.offset(field), len)
    }

    fn int(&self, field: Field) -> i32 {
        match self.is_version_2 {
            true => self.bytes.i32(field[1]),
            false => self.bytes.i16(field[0]).into(),
        }
    }

    /// The number `i` of a field of floats.
    fn real(&self, field: Field, i: usize) -> f64 {
        match self.is_version_2 {
            true => self.bytes.f64(field[1] + 8 * i),
            false => self.bytes.f32(field[0] + 4 * i),
        }
    }

    fn dim(&self, axis: usize) -> i64 {
        match self.is_version_2 {
            true => self.bytes.i64(DIM[1] + 8 * axis),
            false => self.bytes.i16(DIM[0] + 2 * axis).into(),
        }
    }

    /// Offset of the samples.
    fn sample_offset(&self) -> f64 {
        match self.is_version_2 {
            true => self.bytes.i64(OFFSET[1]) as f64,
            false => self.bytes.f32(OFFSET[0]),
        }
    }

    fn stored(&self) -> Result<StoredType, BoxError> {
        let datatype = self.bytes.i16(self.offset(DATATYPE));
        if let Some((_, dtype)) = TYPES.iter().find(|(code, _)| *code == datatype) {
            return Ok(StoredType::As(*dtype));
        }
        let kind = match datatype {
            1 => "single bits",
            32 | 1792 | 2048 => "complex numbers",
            128 | 2304 => "colours",
            1536 => "128-bit floats",
            other => return Err(format!("unknown sample type {other}").into()),
        };
        Err(format!("{kind} are not supported").into())
    }

    fn placement(&self) -> Placement {
        let code = match self.is_version_2 {
            true => self.bytes.i32(UNIT[1]),
            false => self.bytes.bytes[UNIT[0]].into(),
        };
        let unit = UNITS[(code & 7) as usize].map(str::to_owned);
        if self.int(SFORM) > 0 {
            let row = |i: usize| std::array::from_fn(|axis| self.real(ROWS, 4 * i + axis));
            let rows: [[f64; 4]; 3] = std::array::from_fn(row);
            return Placement {
                steps: std::array::from_fn(|axis| rows.map(|row| row[axis])),
                first: rows.map(|row| row[3]),
                space: Some(Space::Ras),
                unit,
            };
        }
        let spacing = [1, 2, 3].map(|axis| match self.real(PIXDIM, axis).abs() {
            0.0 => 1.0,
            size => size,
        });
        if self.int(QFORM) <= 0 {
            return Placement { unit, ..Placement::axis_aligned(spacing, [0.0; 3]) };
        }
        let [b, c, d, x, y, z] = std::array::from_fn(|i| self.real(QUATERNION, i));
        let rotation = rotation([b, c, d]);
        let handedness = if self.real(PIXDIM, 0) < 0.0 { -1.0 } else { 1.0 };
        let spacing = [spacing[0], spacing[1], handedness * spacing[2]];
        let steps = std::array::from_fn(|axis| rotation.map(|row| row[axis] * spacing[axis]));
        Placement { steps, first: [x, y, z], space: Some(Space::Ras), unit }
    }
}

fn parse(reader: &mut HeaderReader<'_>) -> Result<Description, BoxError> {
    let mut bytes = reader.bytes::<{ SIZE_1 as usize }>()?.to_vec();
    let size = [bytes[0], bytes[1], bytes[2], bytes[3]];
    let (endian, size) = match [u32::from_le_bytes(size), u32::from_be_bytes(size)] {
        [size @ (SIZE_1 | SIZE_2), _] => (Endian::Little, size),
        [_, size @ (SIZE_1 | SIZE_2)] => (Endian::Big, size),
        // Radiance pictures have the extension `.hdr`, too.
        _ if bytes.starts_with(b"#?") => {
            return Err(
                "Radiance pictures are not supported; convert the file first, for example by `magick FILE out.exr`".into()
            );
        }
        _ => return Err("header size is neither 348 nor 540".into()),
    };
    let is_version_2 = size == SIZE_2;
    if is_version_2 {
        bytes.extend(reader.bytes::<{ (SIZE_2 - SIZE_1) as usize }>()?);
    }
    let fields = Fields { bytes: BinaryFields { bytes: &bytes, endian }, is_version_2 };
    let is_pair = match (is_version_2, fields.text(MAGIC, 4).as_str()) {
        (false, "n+1") | (true, "n+2") => false,
        (false, "ni1") | (true, "ni2") => true,
        (false, "") => return Err(
            "Analyze files are not supported; convert the file first, for example by `fslchfiletype NIFTI FILE`"
                .into(),
        ),
        _ => return Err("bad magic number".into()),
    };
    let mut header = header(&fields, is_pair, reader.position + 4)?;
    if is_pair {
        let path = reader
            .path
            .ok_or("the samples are in a separate .img file, which cannot be found from a pipe")?;
        let data = sibling(path, "hdr", "img").ok_or("the .img file is missing")?;
        let name = data.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".gz") {
            header.encoding = Encoding::Gzip;
            // The offset counts decompressed bytes.
            header.skip.bytes = Some(std::mem::take(&mut header.skip.from));
        }
        header.files = Some(vec![name]);
    }
    Ok(header)
}

/// The header of a pair of files, or of one file with samples from offset `min_offset` on.
fn header(fields: &Fields<'_>, is_pair: bool, min_offset: u64) -> Result<Description, BoxError> {
    let axes = fields.dim(0);
    if !(1..=7).contains(&axes) {
        return Err(format!("invalid number of axes: {axes}").into());
    }
    let size = |axis: usize| if axis as i64 <= axes { fields.dim(axis) } else { 1 };
    let dims = checked_dims([size(1), size(2), size(3)])?;
    let volumes = (4..8).try_fold(1usize, |n, axis| {
        n.checked_mul(usize::try_from(size(axis)).ok().filter(|&size| size > 0)?)
    });
    let offset = fields.sample_offset();
    if !(0.0..1e15).contains(&offset) || offset.fract() != 0.0 {
        return Err(format!("invalid offset of the samples: {offset}").into());
    }
    let min_offset = if is_pair { 0 } else { min_offset };
    let mut header = Description::new(dims, fields.stored()?, (offset as u64).max(min_offset));
    header.endian = fields.bytes.endian;
    header.volumes = volumes.ok_or("invalid number of volumes")?;
    if size(5) > 1 && VECTORS.contains(&fields.int(INTENT)) {
        header.volume_noun = "components of its vectors";
    }
    let (slope, mut intercept) = (fields.real(SLOPE, 0), fields.real(INTERCEPT, 0));
    if slope.is_finite() && slope != 0.0 {
        if !intercept.is_finite() {
            header.warnings.push(format!("scl_inter is {intercept}; assuming 0"));
            intercept = 0.0;
        }
        let is_scaled = slope != 1.0 || intercept != 0.0;
        header.set_scale(is_scaled.then_some(Scale { slope, intercept }));
    }
    header.set_placement(fields.placement());
    for (name, field, len) in [
        ("description", DESCRIPTION, 80),
        ("auxiliary file", AUXILIARY, 24),
        ("intent", INTENT_NAME, 16),
    ] {
        let text = fields.text(field, len);
        if !text.is_empty() {
            header.metadata.push((name.to_owned(), text));
        }
    }
    if !is_pair && header.skip.from > min_offset {
        let bytes = header.skip.from - min_offset;
        header.metadata.push(("extensions".into(), format!("{bytes} bytes")));
    }
    Ok(header)
}

/// Writes the fields of a header of version 1, or of version 2.
struct FieldWriter {
    bytes: Vec<u8>,
    is_version_2: bool,
}

impl FieldWriter {
    fn put(&mut self, field: Field, value: &[u8]) {
        let at = field[usize::from(self.is_version_2)];
        self.bytes[at..at + value.len()].copy_from_slice(value);
    }

    fn int(&mut self, field: Field, value: i32) {
        match self.is_version_2 {
            true => self.put(field, &value.to_le_bytes()),
            false => self.put(field, &(value as i16).to_le_bytes()),
        }
    }

    fn reals(&mut self, field: Field, values: impl IntoIterator<Item = f64>) {
        for (i, value) in values.into_iter().enumerate() {
            match self.is_version_2 {
                true => self.put([0, field[1] + 8 * i], &value.to_le_bytes()),
                false => self.put([field[0] + 4 * i, 0], &(value as f32).to_le_bytes()),
            }
        }
    }
}

/// The header of a `.nii` file, up to its samples: version 2 if a size exceeds 32,767, else version 1.
fn header_bytes(content: &HeaderContent<'_>) -> Vec<u8> {
    let HeaderContent { dims, dtype, placement, metadata } = content;
    let is_version_2 = dims.iter().any(|&dim| dim > i16::MAX as usize);
    let size = if is_version_2 { SIZE_2 } else { SIZE_1 };
    // Four zero bytes follow the header: there are no extensions.
    let offset = size + 4;
    let mut fields = FieldWriter { bytes: vec![0; offset as usize], is_version_2 };
    fields.bytes[..4].copy_from_slice(&size.to_le_bytes());
    fields.put(MAGIC, if is_version_2 { &b"n+2\0\r\n\x1a\n"[..] } else { &b"n+1\0"[..] });
    let code = TYPES.iter().find(|(_, known)| known == dtype).expect("every type").0;
    fields.put(DATATYPE, &code.to_le_bytes());
    fields.put(BITS, &(8 * dtype.size() as i16).to_le_bytes());
    for (axis, size) in [3, dims[0], dims[1], dims[2], 1, 1, 1, 1].into_iter().enumerate() {
        match is_version_2 {
            true => fields.put([0, DIM[1] + 8 * axis], &(size as i64).to_le_bytes()),
            false => fields.put([DIM[0] + 2 * axis, 0], &(size as i16).to_le_bytes()),
        }
    }
    match is_version_2 {
        true => fields.put(OFFSET, &i64::from(offset).to_le_bytes()),
        false => {
            fields.reals(OFFSET, [offset.into()]);
            fields.bytes[38] = b'r';
        }
    }
    fields.reals(SLOPE, [1.0]);
    let unit = placement.and_then(|placement| placement.unit.as_deref());
    let unit = UNITS.iter().position(|known| known.is_some() && *known == unit).unwrap_or(0);
    fields.put(UNIT, &[unit as u8]);
    let description = metadata.first().map_or("gpuproc", |(_, text)| text.as_str());
    fields.put(DESCRIPTION, description.as_bytes());
    put_placement(&mut fields, *placement);
    fields.bytes
}

fn put_placement(fields: &mut FieldWriter, placement: Option<&Placement>) {
    let rotation = placement.and_then(placement_rotation);
    let (handedness, quaternion) =
        rotation.map_or((1.0, [0.0; 3]), |(handedness, rows)| (handedness, quaternion(rows)));
    let [x, y, z] = placement.map_or([1.0; 3], Placement::spacing);
    fields.reals(PIXDIM, [handedness, x, y, z, 1.0, 1.0, 1.0, 1.0]);
    // Without both maps, the first sample is at 0 and samples are `pixdim` apart, in an unknown space.
    let is_mapped =
        placement.is_some_and(|place| place.has_orientation() || place.first != [0.0; 3]);
    fields.int(QFORM, i32::from(is_mapped && rotation.is_some()));
    fields.int(SFORM, i32::from(is_mapped));
    let first = placement.map_or([0.0; 3], |placement| placement.first);
    fields.reals(QUATERNION, quaternion.into_iter().chain(first));
    if let Some(Placement { steps: [x, y, z], first, .. }) = placement {
        fields.reals(ROWS, (0..3).flat_map(|i| [x[i], y[i], z[i], first[i]]));
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{format::write_and_parse, header::parse_bytes},
        *,
    };

    fn close(a: [f64; 3], b: [f64; 3]) -> bool {
        (0..3).all(|i| (a[i] - b[i]).abs() < 1e-5)
    }

    fn again(placement: Option<&Placement>, dims: [usize; 3], dtype: Dtype) -> Description {
        let content = HeaderContent { dims, dtype, placement, metadata: Vec::new() };
        write_and_parse(&FORMAT, parse, &content)
    }

    #[test]
    fn both_maps_come_back() {
        // Mirrored, half a turn about each axis, and in between.
        let turns =
            [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.1, -0.5, 0.7]];
        for turn in turns {
            for handed in [1.0, -1.0] {
                let rows = rotation(turn);
                let spacing = [0.5, 1.5, 2.0 * handed];
                let steps = std::array::from_fn(|axis| rows.map(|row| row[axis] * spacing[axis]));
                let unit = Some("mm".to_owned());
                let place =
                    Placement { steps, first: [9.0, -8.0, 7.0], space: Some(Space::Ras), unit };
                for dims in [[4, 5, 6], [40_000, 2, 1]] {
                    let bytes = header_bytes(&HeaderContent {
                        dims,
                        dtype: Dtype::U8,
                        placement: Some(&place),
                        metadata: Vec::new(),
                    });
                    for without_sform in [false, true] {
                        let mut bytes = bytes.clone();
                        if without_sform {
                            bytes[if dims[0] == 4 { 254 } else { 348 }] = 0;
                        }
                        let header = parse_bytes(parse, &bytes).unwrap();
                        let found = header.placement.unwrap();
                        assert_eq!(found.unit, place.unit);
                        for at in [[0.0; 3], [1.0, 0.0, 0.0], [3.0, 4.0, 5.0]] {
                            assert!(
                                close(found.at(at), place.at(at)),
                                "{turn:?} {handed} {dims:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    /// A spacing alone stays one: a map would claim that x leads to the right.
    #[test]
    fn no_orientation_is_claimed_where_none_is_known() {
        let unit = Some("mm".to_owned());
        let place = Placement { unit, ..Placement::axis_aligned([0.5, 1.5, 2.0], [0.0; 3]) };
        for dims in [[4, 5, 6], [40_000, 2, 1]] {
            assert_eq!(again(Some(&place), dims, Dtype::U8).placement.as_ref(), Some(&place));
        }
        let elsewhere = Placement { first: [1.0, 2.0, 3.0], ..place };
        let found = again(Some(&elsewhere), [4, 5, 6], Dtype::U8).placement.unwrap();
        assert_eq!((found.first, found.spacing()), (elsewhere.first, elsewhere.spacing()));
    }

    #[test]
    fn invalid_fields_are_refused() {
        let good = header_bytes(&HeaderContent {
            dims: [4, 5, 6],
            dtype: Dtype::I16,
            placement: None,
            metadata: Vec::new(),
        });
        let with = |at: usize, value: &[u8]| {
            let mut bytes = good.clone();
            bytes[at..at + value.len()].copy_from_slice(value);
            parse_bytes(parse, &bytes)
        };
        assert!(with(0, &[0]).is_err());
        assert!(with(40, &[9]).is_err());
        assert!(with(42, &[0, 0]).is_err() && with(42, &[0xff, 0xff]).is_err());
        assert!(with(70, &[128, 0]).is_err() && with(70, &[3, 0]).is_err());
        assert!(with(108, &f32::NAN.to_le_bytes()).is_err());
        assert!(with(108, &(-1f32).to_le_bytes()).is_err());
        assert!(with(344, b"ni1").is_err(), "without a name there is no other file");
        assert_eq!(with(112, &2f32.to_le_bytes()).unwrap().scale.unwrap().slope, 2.0);
        assert_eq!(with(112, &f32::NAN.to_le_bytes()).unwrap().scale, None);
        // A fourth axis counts volumes.
        assert_eq!(with(40, &[4, 0, 4, 0, 5, 0, 6, 0, 7, 0]).unwrap().volumes, 7);
        for len in 0..348 {
            assert!(parse_bytes(parse, &good[..len]).is_err());
        }
    }
}
