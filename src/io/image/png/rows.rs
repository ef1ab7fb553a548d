//! A PNG file read some rows at a time, for images that do not fit into memory as a whole.

use std::{fs::File, io::BufReader};

use crate::{
    data::{
        dtype::Dtype,
        image::{Metadata, Orientation},
    },
    error::{Error, Result},
    io::{
        Source,
        image::metadata::{capped_icc, read_exif},
    },
};

/// A PNG file being read, its samples expanded to u8 or u16.
#[expect(missing_debug_implementations, reason = "the decoder has none")]
pub struct PngRows {
    reader: png::Reader<BufReader<File>>,
    name: String,
    /// Pixels a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    pub channels: usize,
    /// u8 or u16.
    pub dtype: Dtype,
    /// ICC profile and EXIF.
    pub metadata: Metadata,
    /// Whether rows from the file's start are rows from the picture's top; else EXIF says how it is
    /// rotated or mirrored.
    pub is_upright: bool,
}

impl PngRows {
    /// Opens a file; nothing where it is no PNG file, is interlaced, or has a broken header.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(source: &Source) -> Result<Option<Self>> {
        let Some(path) = source.path() else { return Ok(None) };
        let name = source.to_string();
        if source.size()?.is_none() {
            return Ok(None);
        }
        let file = File::open(path).map_err(|error| Error::io("read", path, error))?;
        let mut decoder = png::Decoder::new(BufReader::with_capacity(1 << 16, file));
        decoder.set_transformations(png::Transformations::EXPAND);
        // Decoding it as a whole reports the error.
        let Ok(reader) = decoder.read_info() else { return Ok(None) };
        let info = reader.info();
        if info.interlaced {
            return Ok(None);
        }
        let (colour, depth) = reader.output_color_type();
        let dtype = if depth == png::BitDepth::Sixteen { Dtype::U16 } else { Dtype::U8 };
        let mut losses = Vec::new();
        let exif = info.exif_metadata.as_deref().map(<[u8]>::to_vec);
        let (exif, orientation) = read_exif(exif, &mut losses);
        let icc = info.icc_profile.as_deref().map(<[u8]>::to_vec);
        let icc = capped_icc(icc, &mut losses);
        losses.iter().for_each(|loss| log::warn!("{source}: {loss}"));
        let orientation = orientation.unwrap_or_default();
        Ok(Some(Self {
            name,
            width: info.width as usize,
            height: info.height as usize,
            channels: colour.samples(),
            dtype,
            metadata: Metadata { icc, exif, ..Metadata::default() },
            is_upright: orientation == Orientation::default(),
            reader,
        }))
    }

    /// Bytes a row.
    pub fn row_bytes(&self) -> usize {
        self.width * self.channels * self.dtype.size()
    }

    /// Reads the next rows, as many as `rows` takes.
    ///
    /// # Errors
    /// When the file is broken.
    pub fn read(&mut self, rows: &mut [u8]) -> Result<()> {
        let (bytes, wide) = (self.row_bytes(), self.dtype == Dtype::U16);
        let broken = |name: &str| Error::bad_input(format_args!("cannot decode {name}"));
        for row in rows.chunks_exact_mut(bytes) {
            match self.reader.read_row(row) {
                Ok(Some(_)) => {}
                Ok(None) => return Err(broken(&self.name).caused_by("there are too few rows")),
                Err(error) => return Err(broken(&self.name).caused_by(error)),
            }
            if wide && cfg!(target_endian = "little") {
                row.as_chunks_mut::<2>().0.iter_mut().for_each(|sample| sample.reverse());
            }
        }
        Ok(())
    }

    /// Whether any of the rows to come has a pixel that is not opaque.
    ///
    /// # Errors
    /// When the file is broken.
    pub fn any_transparent(&mut self) -> Result<bool> {
        let pixel = self.channels * self.dtype.size();
        let mut row = vec![0; self.row_bytes()];
        for _ in 0..self.height {
            self.read(&mut row)?;
            let alpha = pixel - self.dtype.size();
            if row.chunks_exact(pixel).any(|pixel| pixel[alpha..].iter().any(|&byte| byte != 255)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
