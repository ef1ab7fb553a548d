//! NIfTI-1 and NIfTI-2 (nifti.nimh.nih.gov): one file `.nii`, or a pair `.hdr` and `.img`; a binary header in either
//! byte order. World coordinates are RAS.
//!
//! Of the two maps from voxels to the world, the sform is used, else the qform, as in nibabel; without both, the first
//! sample is at 0 and samples are `pixdim` apart ("method 1").

mod fields;
mod write;

use std::path::{Path, PathBuf};

use self::fields::{
    AUXILIARY, DESCRIPTION, DIM, Fields, INTENT_CODE as INTENT_CODE_FIELD, INTENT_NAME, INTERCEPT,
    MAGIC, QFORM, SIZE_1, SIZE_2, SLOPE,
};
use self::write::{INTENT, INTENT_CODE, INTENT_PARAMETERS, OTHER_QFORM};
use super::{
    format::{Format, PlacementSupport, UnitSupport, WriteSupport},
    header::{
        BoxError, Description, Encoding, HeaderReader, NiftiHeader, Scale, VECTORS, checked_dims,
    },
};
use crate::data::placement::{Placement, Space};

/// The format.
pub const FORMAT: Format = Format {
    has_signature,
    header_file: Some(header_file),
    write: Some(WriteSupport {
        extensions: &["nii"],
        can_gzip: true,
        keeps_metadata: write::keeps_metadata,
        max_dims: [i64::MAX as usize; 3],
        placement: PlacementSupport::Anatomical(Space::Ras),
        units: UnitSupport::OneOf(&["m", "mm", "um"]),
        holds_colors: |dtype, colors| fields::color_type(dtype, colors).is_some(),
        header: write::header_bytes,
        ..WriteSupport::BASE
    }),
    ..Format::new("NIfTI", &["nii", "hdr", "img"], |input| input.with_header(parse))
};

/// Intents of vectors, matrices and colours, with components along the fifth axis.
const VECTOR_INTENTS: [i32; 7] = [1004, 1005, 1006, 1007, 1009, 2003, 2004];

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

fn parse(reader: &mut HeaderReader<'_>) -> Result<Description, BoxError> {
    let mut bytes = reader.bytes::<{ SIZE_1 as usize }>()?.to_vec();
    // Radiance pictures have the extension `.hdr`, too.
    if bytes.starts_with(b"#?") {
        return Err(
            "Radiance pictures are not supported; convert the file first, for example by `magick FILE out.exr`".into()
        );
    }
    let is_version_2 =
        Fields::new(&bytes).ok_or("header size is neither 348 nor 540")?.is_version_2;
    if is_version_2 {
        bytes.extend(reader.bytes::<{ (SIZE_2 - SIZE_1) as usize }>()?);
    }
    let fields = Fields::new(&bytes).expect("its size is known");
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
    let axes = fields.size(DIM, 0);
    if !(1..=7).contains(&axes) {
        return Err(format!("invalid number of axes: {axes}").into());
    }
    let size = |axis: usize| fields.dim(axis);
    let dims = checked_dims([size(1), size(2), size(3)])?;
    let volumes = (4..8).try_fold(1usize, |n, axis| {
        n.checked_mul(usize::try_from(size(axis)).ok().filter(|&size| size > 0)?)
    });
    let offset = fields.sample_offset();
    if !(0.0..1e15).contains(&offset) || offset.fract() != 0.0 {
        return Err(format!("invalid offset of the samples: {offset}").into());
    }
    let min_offset = if is_pair { 0 } else { min_offset };
    let (stored, colors) = fields.stored()?;
    let mut header = Description::new(dims, stored, (offset as u64).max(min_offset));
    header.colors = colors;
    header.endian = fields.bytes.endian;
    header.volumes = volumes.ok_or("invalid number of volumes")?;
    if size(5) > 1 && VECTOR_INTENTS.contains(&fields.int(INTENT_CODE_FIELD)) {
        header.volume_noun = VECTORS;
    }
    let (slope, mut intercept) = (fields.real(SLOPE, 0), fields.real(INTERCEPT, 0));
    // Colours are not scaled.
    if slope.is_finite() && slope != 0.0 && colors == 1 {
        if !intercept.is_finite() {
            header.warnings.push(format!("scl_inter is {intercept}; assuming 0"));
            intercept = 0.0;
        }
        let is_scaled = slope != 1.0 || intercept != 0.0;
        header.set_scale(is_scaled.then_some(Scale { slope, intercept }));
    }
    header.set_placement(fields.placement());
    add_metadata(&mut header, fields);
    if !is_pair && header.skip.from > min_offset {
        let bytes = header.skip.from - min_offset;
        header.metadata.push(("extensions".into(), format!("{bytes} bytes")));
    }
    Ok(header)
}

/// Adds the texts and the intent to the metadata, and what a NIfTI output keeps.
fn add_metadata(header: &mut Description, fields: &Fields<'_>) {
    let mut add = |name: &str, text: String| {
        if !text.is_empty() {
            header.metadata.push((name.to_owned(), text));
        }
    };
    add("description", fields.text(DESCRIPTION, 80));
    add("auxiliary file", fields.text(AUXILIARY, 24));
    // With a fifth axis, the intent is that of all numbers along it.
    if fields.dim(5) <= 1 {
        add(INTENT, fields.text(INTENT_NAME, 16));
        let (code, parameters) = (fields.int(INTENT_CODE_FIELD), fields.intent_parameters());
        if code != 0 {
            add(INTENT_CODE, code.to_string());
        }
        if parameters.iter().any(|&parameter| parameter != 0.0) {
            add(INTENT_PARAMETERS, parameters.map(|parameter| parameter.to_string()).join(" "));
        }
    }
    let qform = Some(fields.qform()).filter(Placement::is_regular);
    if let (Some(qform), Some(own)) = (&qform, &header.placement)
        && fields.int(QFORM) > 0
        && !qform.is_close(own, header.dims)
    {
        add(OTHER_QFORM.0, OTHER_QFORM.1.to_owned());
    }
    header.nifti = Some(NiftiHeader {
        bytes: fields.bytes.bytes.to_vec(),
        qform,
        volume: 0,
        has_same_slices: true,
        has_same_quantity: true,
    });
}

/// Whether an entry of metadata states the intent of the samples.
pub fn is_intent(name: &str) -> bool {
    [INTENT, INTENT_CODE, INTENT_PARAMETERS].contains(&name)
}

/// Whether an entry of metadata states that samples are numbers of objects or regions.
pub fn is_label_intent((name, text): &(String, String)) -> bool {
    name == INTENT_CODE && ["1002", "1003"].contains(&text.as_str())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            format::{HeaderContent, write_and_parse},
            header::parse_bytes,
            rotation::rotation,
        },
        write::header_bytes,
        *,
    };
    use crate::data::dtype::Dtype;

    fn close(a: [f64; 3], b: [f64; 3]) -> bool {
        (0..3).all(|i| (a[i] - b[i]).abs() < 1e-5)
    }

    fn again(placement: Option<&Placement>, dims: [usize; 3], dtype: Dtype) -> Description {
        let content = HeaderContent {
            dims,
            channels: 1,
            dtype,
            placement,
            metadata: Vec::new(),
            nifti: None,
        };
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
                        channels: 1,
                        dtype: Dtype::U8,
                        placement: Some(&place),
                        metadata: Vec::new(),
                        nifti: None,
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
    }

    #[test]
    fn invalid_fields_are_refused() {
        let good = header_bytes(&HeaderContent {
            dims: [4, 5, 6],
            channels: 1,
            dtype: Dtype::I16,
            placement: None,
            metadata: Vec::new(),
            nifti: None,
        });
        let with = |at: usize, value: &[u8]| {
            let mut bytes = good.clone();
            bytes[at..at + value.len()].copy_from_slice(value);
            parse_bytes(parse, &bytes)
        };
        assert!(with(0, &[0]).is_err());
        assert!(with(40, &[9]).is_err());
        assert!(with(42, &[0, 0]).is_err() && with(42, &[0xff, 0xff]).is_err());
        assert!(with(70, &[32, 0]).is_err() && with(70, &[3, 0]).is_err());
        assert_eq!(with(70, &[128, 0]).unwrap().colors, 3);
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
