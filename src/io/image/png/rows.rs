//! A PNG file read some rows at a time, for images that do not fit into memory as a whole.

use std::{fs::File, io::BufReader};

use super::beside;
use crate::{
    data::{
        dtype::Dtype,
        image::{Metadata, Orientation},
    },
    error::{Error, Result},
    io::{
        Source,
        image::{
            metadata::{capped_icc, read_exif},
            rows::{ReadRows, RowsInfo},
        },
    },
};

/// A PNG file being read, its samples expanded to u8 or u16.
#[expect(missing_debug_implementations, reason = "the decoder has none")]
pub struct PngRows {
    reader: png::Reader<BufReader<File>>,
    name: String,
    /// What its header says; samples are u8 or u16.
    info: RowsInfo,
}

impl PngRows {
    /// Opens a file; nothing where it is no PNG file, is interlaced, or has a broken header.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(source: &Source) -> Result<Option<Self>> {
        let Some(path) = source.path() else {
            return Ok(None);
        };
        let name = source.to_string();
        if source.size()?.is_none() {
            return Ok(None);
        }
        let file = File::open(path).map_err(|error| Error::io("read", path, error))?;
        let mut decoder = png::Decoder::new(BufReader::with_capacity(1 << 16, file));
        decoder.set_transformations(png::Transformations::EXPAND);
        // Decoding it as a whole reports the error.
        let Ok(reader) = decoder.read_info() else {
            return Ok(None);
        };
        let info = reader.info();
        // The frames of an animation, and the rows of an interlaced picture, do not come one after the other.
        let frames = info.animation_control.map_or(1, |animation| animation.num_frames);
        if info.interlaced || frames > 1 {
            return Ok(None);
        }
        let (colour, depth) = reader.output_color_type();
        let dtype = if depth == png::BitDepth::Sixteen { Dtype::U16 } else { Dtype::U8 };
        let mut losses = Vec::new();
        let exif = info.exif_metadata.as_deref().map(<[u8]>::to_vec);
        let (exif, orientation) = read_exif(exif, &mut losses);
        let icc = info.icc_profile.as_deref().map(<[u8]>::to_vec);
        let icc = capped_icc(icc, &mut losses);
        let mut metadata = Metadata { icc, exif, ..Metadata::default() };
        let found = beside::read_path(path, &mut metadata, &mut losses);
        let orientation = orientation.or(found).unwrap_or_default();
        Ok(Some(Self {
            name,
            info: RowsInfo {
                width: info.width as usize,
                height: info.height as usize,
                channels: colour.samples(),
                dtype,
                metadata,
                is_upright: orientation == Orientation::default(),
                held_bytes: 0,
                is_held_whole: true,
                pages: 1,
                losses,
            },
            reader,
        }))
    }
}

impl ReadRows for PngRows {
    fn info(&self) -> &RowsInfo {
        &self.info
    }

    fn read(&mut self, rows: &mut [u8]) -> Result<()> {
        let (bytes, wide) = (self.info.row_bytes(), self.info.dtype == Dtype::U16);
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
}
