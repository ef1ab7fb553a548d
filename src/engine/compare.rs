//! A page that shows an image before and after a filter (`--compare`).

use super::{
    image::{grid_type, result},
    job::{Job, Settings},
};
use crate::{
    engine::session::Session,
    io::{
        Finished,
        image::{Encoding, ImageFile, ImageFormat},
        page::compare::Comparison,
    },
    util::error::{Error, Result},
};

/// Reads and filters the image of `job` (the first of several pages), and makes a page that shows it before and after.
///
/// # Errors
/// When reading, filtering or writing fails.
pub fn process(job: &Job, settings: &Settings, session: &Session) -> Result<Finished> {
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
    let encoding = Encoding { quality: Some(95), ..settings.encoding };
    let before = session.image_target(&job.sink, format, encoding).encoded(image.copy()?)?;
    let are_labels = job.filter.results_in_labels(grid_type(&image));
    let format = if are_labels { ImageFormat::Png } else { format };
    let target = session.image_target(&job.sink, format, settings.encoding);
    let picture = result(job, &*job.filter, &target, image.into(), session)?;
    let after = target.encoded(picture)?;
    let name = job.source.path().and_then(|path| path.file_name());
    let page = Comparison {
        title: name
            .map_or_else(|| job.source.to_string(), |name| name.to_string_lossy().into_owned()),
        subtitle: job.filter.summary(2),
        pictures: [before, after],
    };
    let mut bytes = Vec::new();
    page.write(&mut bytes).map_err(|error| Error::io("write", job.sink.to_string(), error))?;
    Ok(Finished::Bytes { bytes, sink: job.sink.clone(), no_clobber: session.no_clobber })
}
