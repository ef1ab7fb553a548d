//! Old-style JPEG (compression 6; TIFF 6.0, section 22): a whole JPEG stream in addition to the strips, or its tables in
//! tags and coded data without markers in strips.

use super::{
    directory::{Directory, TiffFile},
    tag,
};
use crate::{
    io::image::error::BoxError,
    jpeg::{ColourSource, Container, JpegFile},
};

/// Bytes that are searched for the header of a stream.
const MAX_HEADER: u64 = 1 << 20;

/// The whole stream of the page, as offset and length, if there is one.
pub fn whole_stream(file: &TiffFile<'_>, directory: &Directory) -> Option<[u64; 2]> {
    let number = |tag| file.first_number(directory, tag).ok().flatten();
    let at = number(tag::JPEG_OFFSET).filter(|&at| at > 0)?;
    let rest = file.bytes.len().saturating_sub(at);
    let stated = number(tag::JPEG_LENGTH).filter(|&length| length > 0);
    // Some writers state the length of the header alone.
    let has_image = |length: u64| {
        let bytes = file.bytes.read(at, length.min(MAX_HEADER)).ok()?;
        let container = Container { tables: &[], colour: ColourSource::FromFile };
        JpegFile::parse(&bytes, &container).ok().map(|_| length)
    };
    let length =
        stated.and_then(|length| has_image(length.min(rest))).or_else(|| has_image(rest))?;
    Some([at, length])
}

/// The beginning of a JPEG stream with the tables of the `count` components of a page.
pub fn tables(
    file: &TiffFile<'_>,
    directory: &Directory,
    count: usize,
) -> Result<Vec<u8>, BoxError> {
    let offsets = |tag| -> Result<Vec<u64>, BoxError> {
        let offsets = file.numbers(directory, tag, count)?.unwrap_or_default();
        if offsets.is_empty() {
            Err("the tables of its old-style JPEG are missing".into())
        } else {
            Ok(offsets)
        }
    };
    let read = |at: u64, length: u64| -> Result<Vec<u8>, BoxError> {
        let bytes = file.bytes.read(at, length)?.into_owned();
        match bytes.len() as u64 == length {
            true => Ok(bytes),
            false => Err("the tables of its old-style JPEG are outside of the file".into()),
        }
    };
    let mut stream = vec![0xff, 0xd8];
    for (number, at) in offsets(tag::JPEG_Q_TABLES)?.into_iter().enumerate() {
        segment(&mut stream, 0xdb, &[&[number as u8][..], &read(at, 64)?].concat());
    }
    for (class, tag) in [(0x00, tag::JPEG_DC_TABLES), (0x10, tag::JPEG_AC_TABLES)] {
        for (number, at) in offsets(tag)?.into_iter().enumerate() {
            // Number of codes of each length, then their values.
            let counts = read(at, 16)?;
            let codes: u64 = counts.iter().map(|&count| u64::from(count)).sum();
            let values = read(at + 16, codes)?;
            segment(&mut stream, 0xc4, &[&[class | number as u8][..], &counts, &values].concat());
        }
    }
    let restart = file.first_number(directory, tag::JPEG_RESTART)?.unwrap_or(0) as u16;
    if restart > 0 {
        segment(&mut stream, 0xdd, &restart.to_be_bytes());
    }
    Ok(stream)
}

/// The JPEG stream of a strip or tile of `count` components, `width` columns and `rows` rows, which begins with `tables`.
pub fn stream(
    tables: &[u8],
    packed: &[u8],
    [width, rows]: [usize; 2],
    count: usize,
    subsampling: [usize; 2],
) -> Result<Vec<u8>, BoxError> {
    let [height, width] = [u16::try_from(rows)?, u16::try_from(width)?].map(u16::to_be_bytes);
    let mut frame = [&[8][..], &height, &width, &[count as u8]].concat();
    let mut scan = vec![count as u8];
    let table = |component: usize| component.min(2) as u8;
    for component in 0..count {
        let [across, down] = if component == 0 { subsampling } else { [1, 1] };
        let sampling = (across << 4 | down) as u8;
        frame.extend([component as u8 + 1, sampling, table(component)]);
        scan.extend([component as u8 + 1, table(component) * 0x11]);
    }
    scan.extend([0, 63, 0]);
    let mut stream = tables.to_vec();
    segment(&mut stream, 0xc0, &frame);
    segment(&mut stream, 0xda, &scan);
    stream.extend(packed);
    stream.extend([0xff, 0xd9]);
    Ok(stream)
}

fn segment(stream: &mut Vec<u8>, marker: u8, content: &[u8]) {
    stream.extend([0xff, marker]);
    stream.extend((content.len() as u16 + 2).to_be_bytes());
    stream.extend(content);
}
