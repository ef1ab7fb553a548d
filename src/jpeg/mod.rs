//! The JPEG codec (ITU-T T.81 and T.871): converts between the bytes of a file, quantized DCT coefficients, and pixels,
//! on all cores. It reads no files. All of it is integer arithmetic with the results of libjpeg's default DCT
//! ("islow").
//!
//! [`jpeg_ls`] is the decoder of another standard, which shares only the syntax of markers.
//!
//! Existing crates give no access to coefficients, which the GPU kernels need, compute other pixels than libjpeg, and
//! do not report damage.
//!
//! ```text
//! bytes -- marker, header --> JpegFile -- huffman_decoder, entropy, scan, decode --> rows of blocks
//! rows of blocks -- stream, render --> pixels
//! pixels -- forward --> coefficients -- huffman_encoder, encode --> bytes
//! ```

mod damage;
pub mod dct;
mod decode;
mod decode_16_bits;
mod encode;
mod entropy;
pub mod forward;
mod frame;
mod header;
mod huffman_decoder;
mod huffman_encoder;
pub mod jpeg_ls;
pub mod marker;
pub mod render;
mod scan;
mod sparse;
mod stream;
mod tables;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use damage::Damage;
pub use encode::{Picture, encode};
pub use frame::{ColourModel, Component, Frame, Upsampling};
pub use header::{ColourSource, Container, JpegFile, Process};
pub use sparse::{Entry, SparseBlock, SparseCoefficients, first_entry};
pub use tables::{PixelEncoding, Quality, ZIGZAG};

use marker::Segments;

/// Segments before the first scan, and image size. It is read even from files that cannot be decoded.
#[derive(Debug)]
pub struct Summary<'a> {
    /// Second byte of the marker, and its parameters.
    pub segments: Vec<(u8, &'a [u8])>,
    /// Pixels across and down.
    pub size: [usize; 2],
    /// Channels of the decoded picture.
    pub channels: usize,
    /// Bits per sample.
    pub precision: u8,
    /// Whether the file is lossless.
    pub is_lossless: bool,
}

impl<'a> Summary<'a> {
    /// Reads the segments; `None` if there is no valid frame header.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let all = Segments::new(bytes)?.map_while(|(marker, body)| Some((marker, body?)));
        let segments: Vec<_> = all.take_while(|(marker, _)| *marker != marker::SOS).collect();
        let is_frame = |marker: u8| {
            let others = [marker::DHT, marker::JPG, marker::DAC];
            (marker::SOF0..=marker::SOF15).contains(&marker) && !others.contains(&marker)
        };
        let &(marker, frame) = segments.iter().find(|(marker, _)| is_frame(*marker))?;
        let &[precision, h1, h0, w1, w0, components] = frame.first_chunk()?;
        let size = [[w1, w0], [h1, h0]].map(|side| usize::from(u16::from_be_bytes(side)));
        let channels = if components == 1 { 1 } else { 3 };
        let is_lossless = marker == marker::SOF3;
        Some(Self { segments, size, channels, precision, is_lossless })
    }
}

/// Whether `bytes` begin as a JPEG file does. Stray bytes may follow, which the decoder skips.
pub fn has_signature(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, marker::SOI])
}
