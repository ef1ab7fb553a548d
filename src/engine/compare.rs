//! A page that shows an image before and after a filter (`--compare`).

use std::fs;

use super::{
    image::{grid_type, result},
    job::{Job, Settings},
};
use crate::{
    data::image::Image,
    engine::session::Session,
    io::{
        Sink, allow_broken_pipe,
        image::{Encoding, ImageFile, ImageFormat},
        page::compare::Comparison,
        temporary_folder,
    },
    util::error::{Error, Result},
};

/// Reads and filters the image of `job` (the first of several pages), and writes a page that shows it before and after.
///
/// # Errors
/// When reading, filtering or writing fails.
pub fn process(job: &Job, settings: &Settings, session: &Session) -> Result<()> {
    let timings = &session.timings;
    let file = ImageFile::read(&job.source, session.limits(1 + job.filter.copies()), timings)?;
    let first = match settings.pages {
        Some(range) => range.resolve(&job.source, file.pages(timings)?.count())?.start,
        None => 0,
    };
    let image = file.pages(timings)?.decode(first, timings)?;
    // A JPEG is far smaller than the PNG of a photo.
    let format = match file.format() {
        Ok(ImageFormat::Jpeg) => ImageFormat::Jpeg,
        _ => ImageFormat::Png,
    };
    drop(file);
    let before = encoded(
        image.copy()?,
        format,
        Encoding { quality: Some(95), ..settings.encoding },
        session,
    )?;
    let are_labels = job.filter.results_in_labels(grid_type(&image));
    let format = if are_labels { ImageFormat::Png } else { format };
    let target = session.image_target(&job.sink, format, settings.encoding);
    let image = result(job, &*job.filter, &target, image, session)?;
    job.report_warning(session)?;
    let after = encoded(image, format, settings.encoding, session)?;
    let name = job.source.path().and_then(|path| path.file_name());
    let page = Comparison {
        title: name
            .map_or_else(|| job.source.to_string(), |name| name.to_string_lossy().into_owned()),
        subtitle: job.filter.summary(2),
        pictures: [before, after],
    };
    let write = || job.sink.write_with(session.no_clobber, |file| page.write(file));
    allow_broken_pipe(timings.time("write", write))
}

/// Encodes an image as the bytes of a file.
fn encoded(
    image: Image,
    format: ImageFormat,
    encoding: Encoding,
    session: &Session,
) -> Result<Vec<u8>> {
    let failed = |error| Error::io("write", "a temporary file", error);
    let folder = tempfile::tempdir_in(temporary_folder()).map_err(failed)?;
    let path = folder.path().join("picture").with_extension(format.extension());
    let sink = Sink::File(path.clone());
    session.image_target(&sink, format, encoding).write(image)?;
    fs::read(path).map_err(failed)
}
