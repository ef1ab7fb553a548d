//! Fixtures, files as the library reads them, and parts of files that several tests write.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::ZlibEncoder};
use gpuproc::{
    data::{image::Image, samples::Samples},
    for_samples,
    io::{
        Limits, Source,
        image::{open_rows, read_image},
        volume::{Layout, VolumeFile},
    },
    util::{error::Error, timings::Timings},
};
use serde_json::Value;

/// The path of a file or folder in `fixtures`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// Reads the first image of a file.
pub fn load_image(path: impl AsRef<Path>) -> Image {
    let source = Source::from(path.as_ref().to_owned());
    read_image(&source, u64::MAX, &Timings::new(false)).unwrap()
}

/// The bytes of the samples of the first image of a file, read by rows in several parts; `None` if it is only read as a
/// whole. Rows are those of the file, whatever its orientation.
pub fn rows_of(path: impl AsRef<Path>) -> Option<Vec<u8>> {
    let source = Source::from(path.as_ref().to_owned());
    let mut rows = open_rows(&source, Limits::from(u64::MAX)).unwrap()?;
    let row = rows.header().row_bytes();
    let mut bytes = vec![0; row * rows.header().first.image.height];
    let (mut rest, mut count) = (&mut bytes[..], 1);
    while !rest.is_empty() {
        let (part, after) = rest.split_at_mut(rest.len().min(count * row));
        rows.read(part).unwrap();
        (rest, count) = (after, count + 2);
    }
    Some(bytes)
}

/// Reads the header of a volume file.
pub fn describe(path: impl AsRef<Path>) -> Result<VolumeFile, Error> {
    describe_as(path, &Layout::default())
}

/// Like [`describe`], with the options `layout`.
pub fn describe_as(path: impl AsRef<Path>, layout: &Layout) -> Result<VolumeFile, Error> {
    VolumeFile::describe(&Source::from(path.as_ref().to_owned()), layout)
}

#[allow(clippy::useless_conversion, reason = "one of the types is f64 itself")]
pub fn as_f64(samples: &Samples) -> Vec<f64> {
    for_samples!(samples, values => values.iter().map(|&value| f64::from(value)).collect())
}

/// The numbers of a JSON array.
pub fn json_numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

/// The text between the first `before` and the next `after`.
pub fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let start = text.find(before).unwrap_or_else(|| panic!("no {before}")) + before.len();
    let len = text[start..].find(after).unwrap_or_else(|| panic!("no {after} after {before}"));
    &text[start..start + len]
}

pub fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A PNG chunk with its length and checksum.
pub fn png_chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let len = (data.len() as u32).to_be_bytes();
    let checksum = crc32fast::hash(&[name, data].concat()).to_be_bytes();
    [&len, &name[..], data, &checksum].concat()
}
