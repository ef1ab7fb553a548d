//! Raw volumes: samples without a header, x fastest, then y, then z. The shape comes from flags, from the name of the
//! file or from its size.

use std::path::Path;

use super::{
    format::{Format, OpenedVolume, RecognizedInput, WriteSupport},
    header::{Description, Endian, StoredType},
    layout::Layout,
    stream::{PipeRest, SampleLocation},
};
use crate::{
    data::{dtype::Dtype, volume::Dims},
    io::{Source, packing::packed_extension},
    util::error::{Error, Hint, Result},
};

/// The format.
pub const FORMAT: Format = Format {
    is_raw: true,
    write: Some(WriteSupport { extensions: EXTENSIONS, can_gzip: true, ..WriteSupport::BASE }),
    ..Format::new("raw", EXTENSIONS, open)
};

const EXTENSIONS: &[&str] = &["raw", "bin", "vol", "dat"];

fn open(input: RecognizedInput<'_>) -> Result<OpenedVolume> {
    let RecognizedInput { source, layout, opened, .. } = input;
    let description = describe(&source, layout)?;
    let packing = packed_extension(source.path()).1;
    let pipe = opened.filter(|opened| !opened.can_reopen);
    let packing = packing.filter(|_| pipe.as_ref().is_none_or(|opened| opened.packing.is_some()));
    let pipe = match pipe {
        Some(opened) => Some(PipeRest { input: opened.input, position: 0 }),
        None if source == Source::Stdin && source.size()?.is_none() => {
            Some(PipeRest { input: source.open_at(0)?, position: 0 })
        }
        None => None,
    };
    let location = SampleLocation::HeaderFile { source, packing };
    Ok(OpenedVolume { description, location, pipe, zarr: None })
}

/// Describes a raw volume: its shape comes from `layout`, else from the name of the file, else from its size.
fn describe(source: &Source, layout: &Layout) -> Result<Description> {
    let (named_dims, named_dtype) = source.path().map_or((None, None), from_name);
    let stated_dtype = layout.dtype.or(named_dtype);
    let dtype = stated_dtype.unwrap_or(StoredType::As(Dtype::U8));
    let is_packed = packed_extension(source.path()).1.is_some();
    // The size of a compressed file does not depend on the shape alone.
    let size = source.size()?.filter(|_| !is_packed);
    let body = size.map(|size| size.saturating_sub(layout.header_bytes));
    let stated_dims = layout.dims.or(named_dims);
    let Some(Dims(dims)) = stated_dims.or_else(|| cube(body?, dtype)) else {
        return Err(unknown_shape(source, body));
    };
    let mut header = Description::new(dims, dtype, layout.header_bytes);
    header.endian = layout.endian.unwrap_or(Endian::Little);
    let count = dims.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim as u64));
    let bytes = count.and_then(|count| count.checked_mul(dtype.size() as u64));
    if let (Some(body), Some(bytes)) = (body, bytes)
        && body != bytes
    {
        return Err(wrong_size(source, &header, body, bytes));
    }
    if stated_dims.is_none() {
        let guess = Dims(dims);
        header.warnings.push(format!(
            "shape is unknown; assuming {guess} samples of {} from the size of the file",
            dtype.name()
        ));
    } else if stated_dtype.is_none() {
        header.warnings.push(format!("sample type is unknown; assuming {}", dtype.name()));
    }
    Ok(header)
}

/// The cube of samples of `dtype` that takes `bytes` bytes.
fn cube(bytes: u64, dtype: StoredType) -> Option<Dims> {
    let count = bytes / dtype.size() as u64;
    let side = (count as f64).cbrt().round() as u64;
    let fits = side > 0 && side.checked_pow(3)?.checked_mul(dtype.size() as u64) == Some(bytes);
    fits.then_some(Dims([usize::try_from(side).ok()?; 3]))
}

fn unknown_shape(source: &Source, bytes: Option<u64>) -> Error {
    let known = match bytes {
        Some(bytes) => {
            let of = |size: u64, names: &str| {
                bytes.is_multiple_of(size).then(|| format!("{} samples of {names}", bytes / size))
            };
            let fits =
                [of(1, "u8 or i8"), of(2, "u16 or i16"), of(4, "u32, i32 or f32"), of(8, "f64")];
            let fits: Vec<String> = fits.into_iter().flatten().collect();
            format!("; its {bytes} bytes may be {}", fits.join(", or "))
        }
        None => String::new(),
    };
    Error::bad_input(format_args!("{source}: unknown shape of a raw volume{known}"))
        .with_hint(Hint::VolumeShape)
}

fn wrong_size(source: &Source, header: &Description, body: u64, bytes: u64) -> Error {
    let Description { dims, stored, .. } = header;
    let count = bytes / stored.size() as u64;
    let fits: Vec<&str> = Dtype::SAMPLES
        .iter()
        .filter(|dtype| count.checked_mul(dtype.size() as u64) == Some(body))
        .map(|dtype| dtype.name())
        .collect();
    let fits = match fits[..] {
        [] => String::new(),
        _ => format!(", which fits {}", fits.join(" or ")),
    };
    let header_bytes = header.skip.from;
    let (bytes, size) = (bytes.saturating_add(header_bytes), body.saturating_add(header_bytes));
    Error::bad_input(format_args!(
        "{source}: {} samples of {} take {bytes} bytes, but the file has {size}{fits}",
        Dims(*dims),
        stored.name()
    ))
}

/// Parses dims and type from a name such as `skull_256x256x256_uint8.raw`: parts between underscores, dots or spaces, at
/// any position.
pub fn from_name(path: &Path) -> (Option<Dims>, Option<StoredType>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The last part that fits: a name may begin with a word such as `short`.
    let mut parts = name.split(['_', '.', ' ']).rev();
    let dims = parts.clone().find_map(|part| part.parse().ok());
    (dims, parts.find_map(|part| StoredType::parse(part).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_state_shape_and_type() {
        let read = |name: &str| from_name(Path::new(name));
        let dims = Some(Dims([70, 123, 66]));
        assert_eq!(read("bolt_70x123x66_uint8.raw"), (dims, Some(StoredType::As(Dtype::U8))));
        assert_eq!(
            read("a/b_c_70x123x66_float32.raw.gz"),
            (dims, Some(StoredType::As(Dtype::F32)))
        );
        assert_eq!(read("short_1x2x3_uint8.raw").1, Some(StoredType::As(Dtype::U8)));
        assert_eq!(read("a_1x2x3_float16.raw").1, Some(StoredType::F16));
        assert_eq!(read("plain.raw"), (None, None));
    }
}
