//! Reading and writing of PNG files by rows, for images that do not fit into memory.

use std::io::{self, BufReader};

use super::{
    chunk::readable,
    encode::{Png, PngWriter},
    open,
};
use crate::{
    data::{dtype::Dtype, image::Image, samples::Samples},
    io::{
        Limits, Output, RegularFile, Source,
        image::{
            pages::Encoding,
            rows::{ReadRows, RowsHeader, WriteRows},
        },
        parallel_file::ParallelFile,
    },
    util::error::{Error, Result},
};

/// A PNG file being read. Palettes and samples of less than 8 bits are expanded to u8.
struct PngRows {
    reader: png::Reader<BufReader<ParallelFile>>,
    name: String,
    /// The header; samples are u8 or u16.
    header: RowsHeader,
}

/// Opens a file; `None` for interlaced and animated files, and broken headers.
pub fn open(source: &Source, file: &RegularFile, _: Limits) -> Result<Option<Box<dyn ReadRows>>> {
    let input = BufReader::with_capacity(1 << 16, file.reader(0));
    // The error is reported when the image is decoded as a whole instead.
    let opened = open::open(input, BufReader::new(file.reader(0)));
    let Ok((reader, page)) = opened else { return Ok(None) };
    let info = reader.info();
    // Animations and interlaced images do not store their rows in order.
    let is_animated = info.animation_control.is_some_and(|animation| {
        // A single frame may follow a still image that is not part of the animation.
        animation.num_frames > 1 || info.frame_control.is_none()
    });
    if info.interlaced || is_animated {
        return Ok(None);
    }
    let header = RowsHeader { first: page, page_count: 1, reader_bytes: 0, reads_whole_file: true };
    Ok(Some(Box::new(PngRows { name: source.to_string(), header, reader })))
}

impl ReadRows for PngRows {
    fn header(&self) -> &RowsHeader {
        &self.header
    }

    fn read(&mut self, rows: &mut [u8]) -> Result<()> {
        let bytes = self.header.row_bytes();
        let wide = self.header.first.image.samples.dtype() == Dtype::U16;
        let broken = |name: &str| Error::bad_input(format_args!("cannot decode {name}"));
        for row in rows.chunks_exact_mut(bytes) {
            match self.reader.read_row(row) {
                Ok(Some(_)) => {}
                Ok(None) => return Err(broken(&self.name).caused_by("too few rows")),
                Err(error) => return Err(broken(&self.name).caused_by(readable(error))),
            }
            if wide {
                row.as_chunks_mut::<2>().0.iter_mut().for_each(|sample| sample.reverse());
            }
        }
        Ok(())
    }
}

pub fn create(head: &Image, encoding: &Encoding, output: Output) -> io::Result<Box<dyn WriteRows>> {
    Ok(Box::new(Png::for_image(head, encoding).start(output)?))
}

impl WriteRows for PngWriter<Output> {
    fn write(&mut self, mut samples: Samples) -> io::Result<()> {
        // Samples of PNG are big-endian.
        samples.swap_bytes();
        self.rows(samples.as_bytes())
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        PngWriter::finish(*self)
    }
}
