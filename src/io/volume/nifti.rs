//! NIfTI-1 and NIfTI-2 (nifti.nimh.nih.gov): one file `.nii`, or a pair `.hdr` and `.img`; a binary header in either
//! byte order. World coordinates are RAS.
//!
//! Of the two maps from voxels to the world, the sform is used, else the qform, as in nibabel; without both, the first
//! sample is at 0 and samples are `pixdim` apart ("method 1").

use std::path::{Path, PathBuf};

use super::{
    fields::Fields,
    format::{
        BoxError, Endian, Format, Header, Outgoing, Packing, Placing, Scale, Start, Stored, Units,
        Writing, dims_of,
    },
    rotation::{quaternion, rotation, rotation_of},
};
use crate::data::{
    dtype::Dtype,
    placement::{Placement, Space},
};

/// The format.
pub const FORMAT: Format = Format {
    name: "NIfTI",
    extensions: &["nii", "hdr", "img"],
    has_signature,
    header_file: Some(header_file),
    read,
    write: Some(Writing {
        names: &["NIfTI"],
        extensions: &["nii"],
        may_be_packed: true,
        keeps: |(name, text)| name == "description" && text.len() < 80,
        dtypes: &Dtype::SAMPLES,
        longest: [i64::MAX as usize; 3],
        placing: Placing::Affine(Some(Space::Ras)),
        units: Units::OneOf(&["m", "mm", "um"]),
        header: header_bytes,
    }),
};

/// Bytes of the header of version 1 and of version 2.
const SIZE_1: u32 = 348;
const SIZE_2: u32 = 540;
/// Intent codes of vectors, matrices and colours, whose components the fifth axis counts.
const VECTORS: [i32; 7] = [1004, 1005, 1006, 1007, 1009, 2003, 2004];

fn has_signature(bytes: &[u8]) -> bool {
    let at = |place: usize| bytes.get(place..place + 3).unwrap_or_default();
    [b"n+1", b"ni1"].iter().any(|magic| at(344) == *magic)
        || [b"n+2", b"ni2"].iter().any(|magic| at(4) == *magic)
}

/// The `.hdr` beside an `.img`.
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

/// The fields of both versions.
struct Common {
    magic: String,
    dim: [i64; 8],
    datatype: i16,
    pixdim: [f64; 8],
    offset: f64,
    slope: f64,
    intercept: f64,
    units: i32,
    qform: i32,
    sform: i32,
    intent: i32,
    /// The qform: quaternion b, c, d, then the offset.
    quaternion: [f64; 6],
    /// The rows of the sform.
    rows: [[f64; 4]; 3],
    texts: Vec<(&'static str, String)>,
}

impl Common {
    /// Reads the fields of version 1, or of version 2 if `is_second`. Each has two offsets.
    fn of(fields: &Fields<'_>, is_second: bool) -> Self {
        let text = |first: usize, second: usize, len: usize| {
            fields.text(if is_second { second } else { first }, len)
        };
        let int = |first: usize, second: usize| match is_second {
            true => fields.i32(second),
            false => fields.i16(first).into(),
        };
        let real = |first: usize, second: usize, i: usize| match is_second {
            true => fields.f64(second + 8 * i),
            false => fields.f32(first + 4 * i),
        };
        Self {
            magic: text(344, 4, 4),
            dim: std::array::from_fn(|i| match is_second {
                true => fields.i64(16 + 8 * i),
                false => fields.i16(40 + 2 * i).into(),
            }),
            datatype: fields.i16(if is_second { 12 } else { 70 }),
            pixdim: std::array::from_fn(|i| real(76, 104, i)),
            offset: if is_second { fields.i64(168) as f64 } else { fields.f32(108) },
            slope: real(112, 176, 0),
            intercept: real(116, 184, 0),
            units: if is_second { fields.i32(500) } else { fields.bytes[123].into() },
            qform: int(252, 344),
            sform: int(254, 348),
            intent: int(68, 504),
            quaternion: std::array::from_fn(|i| real(256, 352, i)),
            rows: std::array::from_fn(|row| std::array::from_fn(|i| real(280, 400, 4 * row + i))),
            texts: vec![
                ("description", text(148, 240, 80)),
                ("auxiliary file", text(228, 320, 24)),
                ("intent", text(328, 508, 16)),
            ],
        }
    }

    fn placement(&self) -> Placement {
        let unit = match self.units & 7 {
            1 => Some("m"),
            2 => Some("mm"),
            3 => Some("um"),
            _ => None,
        };
        let unit = unit.map(str::to_owned);
        if self.sform > 0 {
            let steps = std::array::from_fn(|axis| self.rows.map(|row| row[axis]));
            return Placement {
                steps,
                first: self.rows.map(|row| row[3]),
                space: Some(Space::Ras),
                unit,
            };
        }
        let spacing = [1, 2, 3].map(|axis| match self.pixdim[axis].abs() {
            0.0 => 1.0,
            size => size,
        });
        if self.qform <= 0 {
            return Placement { unit, ..Placement::straight(spacing, [0.0; 3]) };
        }
        let [b, c, d, x, y, z] = self.quaternion;
        let rotation = rotation([b, c, d]);
        let handed = if self.pixdim[0] < 0.0 { -1.0 } else { 1.0 };
        let spacing = [spacing[0], spacing[1], handed * spacing[2]];
        let steps = std::array::from_fn(|axis| rotation.map(|row| row[axis] * spacing[axis]));
        Placement { steps, first: [x, y, z], space: Some(Space::Ras), unit }
    }
}

/// Types of samples and their codes.
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

fn stored(datatype: i16) -> Result<Stored, BoxError> {
    if let Some((_, dtype)) = TYPES.iter().find(|(code, _)| *code == datatype) {
        return Ok(Stored::As(*dtype));
    }
    let kind = match datatype {
        1 => "single bits",
        32 | 1792 | 2048 => "complex numbers",
        128 | 2304 => "colours",
        1536 => "128-bit floats",
        other => return Err(format!("samples of the unknown type {other}").into()),
    };
    Err(format!("{kind} are not supported").into())
}

fn read(start: &mut Start<'_>) -> Result<Header, BoxError> {
    let mut bytes = start.bytes::<{ SIZE_1 as usize }>()?.to_vec();
    let size = [bytes[0], bytes[1], bytes[2], bytes[3]];
    let endian = match [u32::from_le_bytes(size), u32::from_be_bytes(size)] {
        [SIZE_1 | SIZE_2, _] => Endian::Little,
        [_, SIZE_1 | SIZE_2] => Endian::Big,
        // Radiance pictures have the extension `.hdr`, too.
        _ if bytes.starts_with(b"#?") => {
            let remedy = "convert it first, as by `magick FILE out.exr`";
            return Err(
                format!("it is a Radiance picture, which is not read here: {remedy}").into()
            );
        }
        _ => return Err("it does not begin as one".into()),
    };
    let is_second = bytes[0] == SIZE_2.to_le_bytes()[0] || bytes[3] == SIZE_2.to_le_bytes()[0];
    if is_second {
        bytes.extend(start.bytes::<{ (SIZE_2 - SIZE_1) as usize }>()?);
    }
    let fields = Fields { bytes: &bytes, endian };
    let common = Common::of(&fields, is_second);
    let is_pair = match (is_second, common.magic.as_str()) {
        (false, "n+1") | (true, "n+2") => false,
        (false, "ni1") | (true, "ni2") => true,
        (false, "") => return Err("it is of the Analyze format, which says too little".into()),
        _ => return Err("it does not begin as one".into()),
    };
    header(&common, endian, is_pair, start)
}

fn header(
    common: &Common,
    endian: Endian,
    is_pair: bool,
    start: &Start<'_>,
) -> Result<Header, BoxError> {
    let axes = common.dim[0];
    if !(1..=7).contains(&axes) {
        return Err(format!("it says that there are {axes} axes").into());
    }
    let size = |axis: usize| if axis as i64 <= axes { common.dim[axis] } else { 1 };
    let dims = dims_of([size(1), size(2), size(3)])?;
    let volumes = (4..8).try_fold(1usize, |n, axis| {
        n.checked_mul(usize::try_from(size(axis)).ok().filter(|&size| size > 0)?)
    });
    let volumes = volumes.ok_or("the number of its volumes makes no sense")?;
    let least = if is_pair { 0 } else { start.position + 4 };
    let offset = common.offset;
    if !(0.0..1e15).contains(&offset) || offset.fract() != 0.0 {
        return Err(format!("its samples are said to begin at byte {offset}").into());
    }
    let mut header = Header::new(dims, stored(common.datatype)?, (offset as u64).max(least));
    header.endian = endian;
    header.volumes = volumes;
    if size(5) > 1 && VECTORS.contains(&common.intent) {
        header.each = "components of its vectors";
    }
    if common.slope.is_finite() && common.slope != 0.0 {
        let (slope, mut intercept) = (common.slope, common.intercept);
        if !intercept.is_finite() {
            header.warnings.push(format!("its scl_inter is {intercept} and taken as 0"));
            intercept = 0.0;
        }
        header.scale = (slope != 1.0 || intercept != 0.0).then_some(Scale { slope, intercept });
    }
    header.place(common.placement());
    for (name, text) in &common.texts {
        if !text.is_empty() {
            header.metadata.push(((*name).to_owned(), text.clone()));
        }
    }
    if !is_pair && header.skip.from > least {
        let bytes = header.skip.from - least;
        header.metadata.push(("extensions".into(), format!("{bytes} bytes")));
    }
    if is_pair {
        let path = start.path.ok_or("its samples are in another file")?;
        let data = sibling(path, "hdr", "img").ok_or("there is no .img file beside it")?;
        let name = data.file_name().unwrap_or_default().to_string_lossy().into_owned();
        header.packing = if name.ends_with(".gz") { Packing::Gzip } else { Packing::None };
        if header.packing == Packing::Gzip {
            // The offset counts decompressed bytes.
            header.skip.bytes = Some(std::mem::take(&mut header.skip.from));
        }
        header.files = Some(vec![name]);
    }
    Ok(header)
}

/// The header of a `.nii` file, up to its samples: version 2 where a size exceeds 32,767, else version 1.
fn header_bytes(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let Outgoing { dims, dtype, placement, metadata } = outgoing;
    let description = metadata.first().map_or("gpuproc", |(_, text)| text.as_str()).as_bytes();
    let is_second = dims.iter().any(|&dim| dim > i16::MAX as usize);
    let size = if is_second { SIZE_2 } else { SIZE_1 };
    // Four zero bytes follow the header: there are no extensions.
    let offset = size + 4;
    let unit: i32 = match placement.and_then(|placement| placement.unit.as_deref()) {
        Some("m") => 1,
        Some("mm") => 2,
        Some("um") => 3,
        _ => 0,
    };
    let spacing = placement.map_or([1.0; 3], Placement::spacing);
    let rotation = placement.and_then(rotation_of);
    let (handed, quaternion) =
        rotation.map_or((1.0, [0.0; 3]), |(handed, rows)| (handed, quaternion(rows)));
    let first = placement.map_or([0.0; 3], |placement| placement.first);
    // Without both maps, samples are `pixdim` apart from 0 on, in a space of which nothing is said.
    let is_mapped =
        placement.is_some_and(|place| place.has_orientation() || place.first != [0.0; 3]);
    let (qform, sform) = (i32::from(is_mapped && rotation.is_some()), i32::from(is_mapped));
    let dim = [3, dims[0] as i64, dims[1] as i64, dims[2] as i64, 1, 1, 1, 1];
    let pixdim = [handed, spacing[0], spacing[1], spacing[2], 1.0, 1.0, 1.0, 1.0];
    let quaternion = quaternion.iter().chain(&first).copied();
    let row = |i: usize| {
        placement.map_or([0.0; 4], |p| [p.steps[0][i], p.steps[1][i], p.steps[2][i], p.first[i]])
    };
    let rows = (0..3).flat_map(row);
    let code = TYPES.iter().find(|(_, known)| known == dtype).expect("every type").0;
    let bits = 8 * dtype.size() as i16;
    let mut bytes = vec![0; offset as usize];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &size.to_le_bytes());
    if is_second {
        put(4, b"n+2\0\r\n\x1a\n");
        put(12, &code.to_le_bytes());
        put(14, &bits.to_le_bytes());
        dim.iter().enumerate().for_each(|(i, v)| put(16 + 8 * i, &v.to_le_bytes()));
        pixdim.iter().enumerate().for_each(|(i, v)| put(104 + 8 * i, &v.to_le_bytes()));
        put(168, &i64::from(offset).to_le_bytes());
        put(176, &1f64.to_le_bytes());
        put(240, description);
        put(344, &qform.to_le_bytes());
        put(348, &sform.to_le_bytes());
        quaternion.enumerate().for_each(|(i, v)| put(352 + 8 * i, &v.to_le_bytes()));
        rows.enumerate().for_each(|(i, v)| put(400 + 8 * i, &v.to_le_bytes()));
        put(500, &unit.to_le_bytes());
    } else {
        put(38, b"r");
        dim.iter().enumerate().for_each(|(i, &v)| put(40 + 2 * i, &(v as i16).to_le_bytes()));
        put(70, &code.to_le_bytes());
        put(72, &bits.to_le_bytes());
        let short = |value: f64| (value as f32).to_le_bytes();
        pixdim.iter().enumerate().for_each(|(i, &v)| put(76 + 4 * i, &short(v)));
        put(108, &short(offset.into()));
        put(112, &short(1.0));
        put(123, &[unit as u8]);
        put(148, description);
        put(252, &(qform as i16).to_le_bytes());
        put(254, &(sform as i16).to_le_bytes());
        quaternion.enumerate().for_each(|(i, v)| put(256 + 4 * i, &short(v)));
        rows.enumerate().for_each(|(i, v)| put(280 + 4 * i, &short(v)));
        put(344, b"n+1\0");
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: [f64; 3], b: [f64; 3]) -> bool {
        (0..3).all(|i| (a[i] - b[i]).abs() < 1e-5)
    }

    fn again(placement: Option<&Placement>, dims: [usize; 3], dtype: Dtype) -> Header {
        FORMAT.write_and_parse(&Outgoing { dims, dtype, placement, metadata: Vec::new() }).1
    }

    #[test]
    fn headers_come_back() {
        for dtype in Dtype::SAMPLES {
            for dims in [[1, 2, 3], [40_000, 2, 1]] {
                let header = again(None, dims, dtype);
                assert_eq!((header.volumes, header.scale), (1, None));
            }
        }
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
                    let bytes = header_bytes(&Outgoing {
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
                        let header = FORMAT.parse(&bytes).unwrap();
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
        let place = Placement { unit, ..Placement::straight([0.5, 1.5, 2.0], [0.0; 3]) };
        for dims in [[4, 5, 6], [40_000, 2, 1]] {
            assert_eq!(again(Some(&place), dims, Dtype::U8).placement.as_ref(), Some(&place));
        }
        let elsewhere = Placement { first: [1.0, 2.0, 3.0], ..place };
        let found = again(Some(&elsewhere), [4, 5, 6], Dtype::U8).placement.unwrap();
        assert_eq!((found.first, found.spacing()), (elsewhere.first, elsewhere.spacing()));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let good = header_bytes(&Outgoing {
            dims: [4, 5, 6],
            dtype: Dtype::I16,
            placement: None,
            metadata: Vec::new(),
        });
        let with = |at: usize, value: &[u8]| {
            let mut bytes = good.clone();
            bytes[at..at + value.len()].copy_from_slice(value);
            FORMAT.parse(&bytes)
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
            assert!(FORMAT.parse(&good[..len]).is_err());
        }
    }
}
