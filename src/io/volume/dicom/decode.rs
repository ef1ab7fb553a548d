//! Decompression of DICOM frames (PS3.5, annexes A and G).

use flate2::bufread::DeflateDecoder;
use std::io::Read;

use super::{pixel_format::PixelFormat, syntax::Compression};
use crate::{
    io::volume::header::BoxError,
    jpeg::{ColourModel, ColourSource, Container, JpegFile, Process, jpeg_ls},
    util::{
        error::{self, Error},
        memory,
    },
};

/// Decodes `packed` into `stored`, in the machine's byte order, and updates `format` to describe the result.
pub fn decode(
    packed: &[u8],
    compression: Compression,
    format: &mut PixelFormat,
    stored: &mut [u8],
) -> Result<(), BoxError> {
    match compression {
        Compression::Rle => {
            decode_rle(packed, format, stored)?;
            // Decoding interleaved the planes.
            format.planar = false;
        }
        Compression::Jpeg | Compression::JpegOf12Bits | Compression::JpegLossless => {
            memory::catch(|| decode_jpeg(packed, format, stored))?;
        }
        #[cfg(feature = "jpeg2000")]
        Compression::Jpeg2000 => {
            format.ybr &= !super::jpeg2000::decode(packed, format, stored)?;
            format.planar = false;
        }
        Compression::JpegLs => {
            decode_jpeg_ls(packed, format, stored)?;
            format.planar = false;
        }
        Compression::Deflate => inflate(packed, stored)?,
        Compression::None | Compression::Refused(_) => unreachable!("refused before"),
    }
    Ok(())
}

/// Inflates a frame that is a deflate stream.
pub fn inflate(packed: &[u8], stored: &mut [u8]) -> Result<(), BoxError> {
    Ok(DeflateDecoder::new(packed).read_exact(stored)?)
}

/// Decodes a JPEG-LS picture.
fn decode_jpeg_ls(packed: &[u8], format: &PixelFormat, stored: &mut [u8]) -> Result<(), BoxError> {
    let file = jpeg_ls::Header::parse(packed)?;
    check("JPEG-LS", file.size, file.components, file.precision, format)?;
    store(&file.decode()?, format, stored);
    Ok(())
}

/// Refuses a picture of another size, with another number of components, or with more bits than `format`.
fn check(
    name: &str,
    [width, height]: [usize; 2],
    count: usize,
    precision: u32,
    format: &PixelFormat,
) -> error::Result<()> {
    if [width, height, count] != [format.columns, format.rows, format.samples] {
        return Err(Error::bad_input(format_args!(
            "{name} picture of {width}x{height} pixels of {count} samples; expected {}x{} of {}",
            format.columns, format.rows, format.samples
        )));
    }
    if precision > format.allocated || format.allocated > 16 {
        let expected = format.allocated.min(16);
        return Err(Error::bad_input(format_args!(
            "{name} picture of {precision} bits per sample; expected {expected}"
        )));
    }
    Ok(())
}

/// Stores samples in the bytes that `format` allocates.
fn store(samples: &[u16], format: &PixelFormat, stored: &mut [u8]) {
    if format.allocated == 8 {
        stored.iter_mut().zip(samples).for_each(|(to, &sample)| *to = sample as u8);
    } else {
        stored.copy_from_slice(bytemuck::cast_slice(samples));
    }
}

/// Decodes RLE (PS3.5, annex G): one segment for each byte of a pixel, the high byte of a sample first.
fn decode_rle(packed: &[u8], format: &PixelFormat, stored: &mut [u8]) -> Result<(), BoxError> {
    let bytes = format.allocated as usize / 8;
    let pixel = bytes * format.samples;
    let header = packed.get(..64).ok_or("RLE data end within their header")?;
    let word =
        |i: usize| u32::from_le_bytes(header[4 * i..][..4].try_into().expect("four")) as usize;
    if word(0) != pixel || pixel > 15 {
        return Err(format!("{} segments of RLE data; expected {pixel}", word(0)).into());
    }
    for segment in 0..pixel {
        // Byte of the little-endian pixel that this segment fills.
        let byte = segment / bytes * bytes + (bytes - 1 - segment % bytes);
        let mut input =
            packed.get(word(segment + 1)..).ok_or("invalid offset of a segment of RLE data")?;
        let mut out = stored.iter_mut().skip(byte).step_by(pixel);
        let short = "RLE data end early";
        while out.len() > 0 {
            let (&control, rest) = input.split_first().ok_or(short)?;
            input = rest;
            match control {
                0..128 => {
                    let count = usize::from(control) + 1;
                    let count = count.min(out.len());
                    let (literal, rest) = input.split_at_checked(count).ok_or(short)?;
                    input = rest;
                    literal.iter().zip(&mut out).for_each(|(&byte, out)| *out = byte);
                }
                128 => {}
                _ => {
                    let (&byte, rest) = input.split_first().ok_or(short)?;
                    input = rest;
                    out.by_ref().take(257 - usize::from(control)).for_each(|out| *out = byte);
                }
            }
        }
    }
    Ok(())
}

/// Decodes a JPEG picture. A byte of padding may follow it.
fn decode_jpeg(packed: &[u8], format: &mut PixelFormat, stored: &mut [u8]) -> error::Result<()> {
    let colour = match format.samples == 3 && !format.ybr {
        true => ColourSource::Fallback(ColourModel::Rgb),
        false => ColourSource::FromFile,
    };
    let file = JpegFile::parse(packed, &Container { colour, tables: &[] })?;
    check("JPEG", file.frame.size, file.frame.components.len(), file.precision, format)?;
    format.planar = false;
    if format.allocated == 8 && file.process != Process::Lossless {
        let (samples, damage) = file.decode(1)?;
        stored.copy_from_slice(&samples);
        format.ybr = false;
        return damage.map_or(Ok(()), |damage| Err(Error::bad_input(damage)));
    }
    store(&file.decode_16_bits()?, format, stored);
    Ok(())
}
