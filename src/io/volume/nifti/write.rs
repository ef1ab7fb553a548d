//! Writes NIfTI headers.

use super::fields::{
    AUXILIARY, BITS, DATATYPE, DESCRIPTION, DIM, DIM_INFO, DISPLAY_RANGE, Field, Fields,
    INTENT_CODE as INTENT_CODE_FIELD, INTENT_NAME, INTENT_PARAMETERS as INTENT_PARAMETERS_FIELD,
    MAGIC, OFFSET, PIXDIM, QFORM, QUATERNION, ROWS, SFORM, SIZE_1, SIZE_2, SLICE_CODE,
    SLICE_DURATION, SLICE_END, SLICE_START, SLOPE, TIME_OFFSET, TYPES, UNIT, UNITS, color_type,
};
use crate::{
    data::placement::Placement,
    io::volume::{
        format::HeaderContent,
        header::NiftiHeader,
        rotation::{placement_rotation, quaternion},
    },
};

/// Entries of metadata of the intent: its name, its code and its three parameters.
pub const INTENT: &str = "intent";
pub const INTENT_CODE: &str = "intent code";
pub const INTENT_PARAMETERS: &str = "intent parameters";
/// Entry of metadata of a file whose qform is another map than its sform.
pub const OTHER_QFORM: (&str, &str) = ("qform", "differs from the sform");

/// Whether an entry of metadata can be written.
pub fn keeps_metadata((name, text): &(String, String)) -> bool {
    match name.as_str() {
        "description" => text.len() <= 80,
        "auxiliary file" => text.len() <= 24,
        INTENT => text.len() <= 16,
        INTENT_CODE => text.parse::<i16>().is_ok(),
        INTENT_PARAMETERS => parameters(text).is_some(),
        name => (name, text.as_str()) == OTHER_QFORM,
    }
}

/// The three parameters of an intent.
fn parameters(text: &str) -> Option<[f64; 3]> {
    let numbers: Option<Vec<f64>> = text.split(' ').map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
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

    /// Sets the number `i` of a field of sizes.
    fn size(&mut self, field: Field, i: usize, value: i64) {
        match self.is_version_2 {
            true => self.put([0, field[1] + 8 * i], &value.to_le_bytes()),
            false => self.put([field[0] + 2 * i, 0], &(value as i16).to_le_bytes()),
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

/// The header of a `.nii` file, up to its samples: version 2 if the volume is from such a file or a size exceeds 32,767,
/// else version 1. Of a NIfTI input, the fields that stay true are kept.
pub fn header_bytes(content: &HeaderContent<'_>) -> Vec<u8> {
    let HeaderContent { dims, channels, dtype, placement, metadata, nifti } = content;
    let input = nifti.and_then(|input| Some((Fields::new(&input.bytes)?, input)));
    let is_version_2 = dims.iter().any(|&dim| dim > i16::MAX as usize)
        || input.as_ref().is_some_and(|(own, _)| own.is_version_2);
    let size = if is_version_2 { SIZE_2 } else { SIZE_1 };
    // Four zero bytes follow the header: there are no extensions.
    let offset = size + 4;
    let mut fields = FieldWriter { bytes: vec![0; offset as usize], is_version_2 };
    fields.bytes[..4].copy_from_slice(&size.to_le_bytes());
    fields.put(MAGIC, if is_version_2 { &b"n+2\0\r\n\x1a\n"[..] } else { &b"n+1\0"[..] });
    let code = color_type(*dtype, *channels)
        .unwrap_or_else(|| TYPES.iter().find(|(_, known)| known == dtype).expect("every type").0);
    fields.put(DATATYPE, &code.to_le_bytes());
    fields.put(BITS, &((8 * channels * dtype.size()) as i16).to_le_bytes());
    for (axis, size) in [3, dims[0], dims[1], dims[2], 1, 1, 1, 1].into_iter().enumerate() {
        fields.size(DIM, axis, size as i64);
    }
    match is_version_2 {
        true => fields.size(OFFSET, 0, offset.into()),
        false => {
            fields.reals(OFFSET, [offset.into()]);
            fields.bytes[38] = b'r';
        }
    }
    fields.reals(SLOPE, [1.0]);
    let unit = placement.and_then(|placement| placement.unit.as_deref());
    let unit = UNITS.iter().position(|known| known.is_some() && *known == unit).unwrap_or(0);
    let time_unit = input.as_ref().map_or(0, |(own, _)| own.code(UNIT) & 0x38);
    fields.put(UNIT, &[unit as u8 | time_unit as u8]);
    let entry =
        |name: &str| metadata.iter().find(|(own, _)| own == name).map(|(_, text)| text.as_str());
    let texts = [
        (DESCRIPTION, 80, entry("description")),
        (AUXILIARY, 24, entry("auxiliary file")),
        (INTENT_NAME, 16, entry(INTENT)),
    ];
    for (field, len, text) in texts {
        match (&input, text) {
            // As in the input, in any encoding.
            (Some((own, _)), Some(_)) => fields.put(field, own.raw(field, len)),
            (None, None) if field == DESCRIPTION => fields.put(field, b"gpuproc"),
            (_, text) => fields.put(field, text.unwrap_or_default().as_bytes()),
        }
    }
    if let Some(code) = entry(INTENT_CODE).and_then(|text| text.parse().ok()) {
        fields.int(INTENT_CODE_FIELD, code);
    }
    fields.reals(
        INTENT_PARAMETERS_FIELD,
        entry(INTENT_PARAMETERS).and_then(parameters).into_iter().flatten(),
    );
    if let Some((own, input)) = &input {
        put_kept(&mut fields, own, input);
    }
    put_placement(&mut fields, *placement, input.as_ref());
    fields.bytes
}

/// Copies fields of the input that the placement does not state.
fn put_kept(fields: &mut FieldWriter, own: &Fields<'_>, input: &NiftiHeader) {
    fields.put(DIM_INFO, own.raw(DIM_INFO, 1));
    // The times of volumes have the distance `pixdim[4]`, in a unit of time.
    let is_time = [8, 16, 24].contains(&(own.code(UNIT) & 0x38));
    let before = if is_time { input.volume as i64 % own.dim(4) } else { 0 };
    let step = if before == 0 { 0.0 } else { own.real(PIXDIM, 4) };
    fields.reals(TIME_OFFSET, [own.real(TIME_OFFSET, 0) + before as f64 * step]);
    if input.has_same_slices {
        fields.size(SLICE_START, 0, own.size(SLICE_START, 0));
        fields.size(SLICE_END, 0, own.size(SLICE_END, 0));
        fields.put(SLICE_CODE, &[own.code(SLICE_CODE) as u8]);
        fields.reals(SLICE_DURATION, [own.real(SLICE_DURATION, 0)]);
    }
    if input.has_same_quantity {
        DISPLAY_RANGE.iter().for_each(|&field| fields.reals(field, [own.real(field, 0)]));
    }
}

/// Writes both maps with the codes of the input, or with 1 (scanner) if the anatomical space is known. Without both maps,
/// the first sample is at 0 and samples are `pixdim` apart, in an unknown space.
fn put_placement(
    fields: &mut FieldWriter,
    placement: Option<&Placement>,
    input: Option<&(Fields<'_>, &NiftiHeader)>,
) {
    let qform = input.and_then(|(_, input)| input.qform.as_ref());
    let rotation = qform.or(placement).and_then(placement_rotation);
    let is_anatomical = placement.is_some_and(|placement| placement.space.is_some());
    let [has_qform, has_sform] = [is_anatomical && rotation.is_some(), is_anatomical];
    let codes = match input {
        None => [i32::from(has_qform), i32::from(has_sform)],
        Some((own, _)) => {
            let has_qform = has_qform && qform.is_some();
            [own.int(QFORM) * i32::from(has_qform), own.int(SFORM) * i32::from(has_sform)]
        }
    };
    let [q, s] = codes.map(|code| code.max(0));
    fields.int(QFORM, q);
    fields.int(SFORM, s);
    let times: [f64; 4] =
        std::array::from_fn(|i| input.map_or(1.0, |(own, _)| own.real(PIXDIM, 4 + i)));
    match input {
        // The same numbers, although rotations are rounded.
        Some((own, _)) if qform == Some(&own.qform()) => {
            fields.reals(PIXDIM, (0..8).map(|i| own.real(PIXDIM, i)));
            fields.reals(QUATERNION, (0..6).map(|i| own.real(QUATERNION, i)));
        }
        _ => {
            let (handedness, quaternion) = rotation
                .map_or((1.0, [0.0; 3]), |(handedness, rows)| (handedness, quaternion(rows)));
            let placement = qform.or(placement);
            let spacing = placement.map_or([1.0; 3], Placement::spacing);
            fields.reals(PIXDIM, [handedness].into_iter().chain(spacing).chain(times));
            let first = placement.map_or([0.0; 3], |placement| placement.first);
            fields.reals(QUATERNION, quaternion.into_iter().chain(first));
        }
    }
    if let Some((own, _)) = input.filter(|_| s == 0) {
        // Rows without a code state nothing.
        let is_same = qform == Some(&own.qform());
        fields.reals(ROWS, (0..12).map(|i| if is_same { own.real(ROWS, i) } else { 0.0 }));
    } else if let Some(Placement { steps: [x, y, z], first, .. }) = placement {
        fields.reals(ROWS, (0..3).flat_map(|i| [x[i], y[i], z[i], first[i]]));
    }
}
