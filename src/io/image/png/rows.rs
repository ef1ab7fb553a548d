//! PNG files read by rows, for pictures that do not fit into memory.

use std::{fs::File, io::BufReader};

use super::open::{Opened, open_file};
use crate::{
    data::{dtype::Dtype, image::Orientation},
    io::{
        Source,
        image::rows::{ReadRows, RowsInfo},
    },
    util::error::{Error, Result},
};

/// A PNG file being read. Palettes and samples of less than 8 bits are expanded to u8.
#[expect(missing_debug_implementations, reason = "the decoder has none")]
pub struct PngRows {
    reader: png::Reader<BufReader<File>>,
    name: String,
    /// The header; samples are u8 or u16.
    info: RowsInfo,
}

impl PngRows {
    /// Opens a file; `None` if it is no PNG file, interlaced, animated, or has a broken header.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(source: &Source) -> Result<Option<Self>> {
        let Some(path) = source.path() else {
            return Ok(None);
        };
        let name = source.to_string();
        if source.size()?.is_none() {
            return Ok(None);
        }
        // An error is reported when the picture is decoded as a whole instead.
        let Ok(opened) = open_file(path) else {
            return Ok(None);
        };
        let Opened { reader, size, channels, dtype, metadata, orientation, losses } = opened;
        let info = reader.info();
        // Neither the frames of an animation nor the rows of an interlaced picture are stored one after the other.
        let is_animated = info.animation_control.is_some_and(|animation| {
            // A single frame may follow a picture that is not of the animation.
            animation.num_frames > 1 || info.frame_control.is_none()
        });
        if info.interlaced || is_animated {
            return Ok(None);
        }
        Ok(Some(Self {
            name,
            info: RowsInfo {
                width: size[0],
                height: size[1],
                channels,
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
