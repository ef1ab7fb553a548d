//! Jobs of the engine: an input, its output and the filter between them.

use std::{
    fmt::Display,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use crate::{
    data::{description::Description, shard::Shard},
    engine::session::Session,
    flow::{BlockSource, Division, Prepared},
    io::{
        Sink, Source,
        image::{Encoding, ImageFormat, PageRange},
        losses,
        volume::{Layout, PyramidOptions, VolumeFile},
    },
    kernels::{filter::Filter, label::Observer},
    util::error::Result,
};

/// Reports the warning of `filter` about `subject`, if there is one. Each process that took part has a finding.
///
/// # Errors
/// If there is one and the session is strict.
pub fn report_warning(
    filter: &dyn Filter,
    findings: &[Value],
    subject: impl Display,
    session: &Session,
) -> Result<()> {
    let report = |warning| losses::report(subject, warning, session.strict);
    filter.warning(findings).map_or(Ok(()), report)
}

/// The volume of a job, which is described once.
#[derive(Clone, Debug, Default)]
pub struct DescribeOnce(OnceLock<VolumeFile>);

impl DescribeOnce {
    /// The volume that `layout` selects in `source`, the input of the job.
    ///
    /// # Errors
    /// As [`VolumeFile::describe`].
    pub fn get(&self, source: &Source, layout: &Layout) -> Result<VolumeFile> {
        if let Some(file) = self.0.get() {
            return Ok(file.clone());
        }
        let file = VolumeFile::describe(source, layout)?;
        Ok(self.0.get_or_init(|| file).clone())
    }
}

/// One input, its output and the filter between them.
#[derive(Debug)]
pub struct Job {
    /// The input.
    pub source: Source,
    /// The output.
    pub sink: Sink,
    /// The filter.
    pub filter: Arc<dyn Filter>,
    /// The filter with its preparation for the input; `None` before it is prepared.
    pub prepared: Option<Arc<Prepared>>,
    /// How to read a volume; `None` for an image.
    pub volume: Option<Box<Layout>>,
    /// The volume that `volume` selects.
    pub described: DescribeOnce,
    /// Whether the output is a page that shows the image before and after.
    pub compares: bool,
    /// Format of the output image; `None` for the format of the input.
    pub format: Option<ImageFormat>,
    /// Whether missing folders of the output path are created.
    pub makes_folder: bool,
    /// How a Zarr output is written.
    pub pyramid: PyramidOptions,
    /// Further inputs and outputs of the filter.
    pub side: Side,
}

/// Further inputs and outputs of a filter, such as a table.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Inputs.
    pub reads: Vec<Source>,
    /// Outputs.
    pub writes: Vec<Sink>,
    /// The outputs that are committed after the result.
    pub pending: Vec<Arc<dyn Observer>>,
}

impl Job {
    /// The volume that `layout` selects, the layout of the job.
    ///
    /// # Errors
    /// As [`VolumeFile::describe`].
    pub fn describe(&self, layout: &Layout) -> Result<VolumeFile> {
        self.described.get(&self.source, layout)
    }

    /// The filter, prepared for `source`.
    ///
    /// # Errors
    /// When reading or the filter fails.
    pub fn prepared(
        &self,
        source: &BlockSource<'_>,
        division: &Division,
        session: &Session,
    ) -> Result<Arc<Prepared>> {
        match &self.prepared {
            Some(prepared) => Ok(prepared.clone()),
            None => Prepared::new(source, &self.filter, division, session).map(Arc::new),
        }
    }

    /// The same job with a [prepared](Filter::prepare) filter, which knows the type of its labels; `None` if the filter
    /// makes no labels.
    ///
    /// # Errors
    /// When reading or the filter fails.
    pub fn labelled(
        &self,
        source: &BlockSource<'_>,
        division: &Division,
        session: &Session,
    ) -> Result<Option<Self>> {
        if !self.filter.properties().makes_labels {
            return Ok(None);
        }
        let prepared = self.prepared(source, division, session)?;
        Ok(Some(Self { prepared: Some(prepared.clone()), ..self.with(prepared.filter()) }))
    }

    /// The same job with the filter for an input at this [place](Filter::placed); `None` if it is the same.
    ///
    /// # Errors
    /// When the filter does not support such an input.
    pub fn placed(&self, input: &Description) -> Result<Option<Self>> {
        Ok(self.filter.placed(input)?.map(|filter| self.with(filter.into())))
    }

    /// The same job with another filter.
    fn with(&self, filter: Arc<dyn Filter>) -> Self {
        let (source, sink) = (self.source.clone(), self.sink.clone());
        let (volume, side) = (self.volume.clone(), self.side.clone());
        let described = self.described.clone();
        Self { source, sink, volume, described, filter, side, prepared: None, ..*self }
    }

    /// Commits the further outputs. Call this after the result is committed.
    ///
    /// # Errors
    /// `Kind::Io`.
    pub fn finish_side(&self) -> Result<()> {
        self.side.pending.iter().try_for_each(|output| output.finish())
    }

    /// Number of axes that the filter works along.
    pub fn axes(&self) -> usize {
        if self.volume.is_some() { 3 } else { 2 }
    }

    /// Reports the warning of the filter, if there is one. Call this before the output is committed.
    ///
    /// # Errors
    /// If there is one and the session is strict.
    pub fn report_warning(&self, session: &Session) -> Result<()> {
        self.report_warning_of(&[self.filter.finding()], session)
    }

    /// As [`Job::report_warning`], for the findings of all shards.
    ///
    /// # Errors
    /// As [`Job::report_warning`].
    pub fn report_warning_of(&self, findings: &[Value], session: &Session) -> Result<()> {
        report_warning(&*self.filter, findings, &self.sink, session)
    }

    /// Measured number of copies of an image in memory while it is read or written.
    pub fn copies(&self, encoding: &Encoding) -> u64 {
        let written = match self.format {
            // Grey pixels of one byte, and 8 bytes for each in the encoder.
            Some(ImageFormat::WebP) if encoding.quality.is_some() => 10,
            // Floats of four bytes, or bands that are compressed at the same time, and the file.
            None
            | Some(
                ImageFormat::Png | ImageFormat::WebP | ImageFormat::OpenExr | ImageFormat::Pfm,
            ) => 6,
            _ => 3,
        };
        self.filter.copies().max(written)
    }
}

/// Settings that all jobs of a command share.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How images are encoded.
    pub encoding: Encoding,
    /// Pages of images to read; `None` for all that the output can hold.
    pub pages: Option<PageRange>,
    /// Whether the job is a batch, even of a single file: inputs from a list, or outputs in a folder.
    pub is_batch: bool,
    /// Part of the job that this process does; `None` for all of it.
    pub shard: Option<Shard>,
    /// Whether finished work is skipped, and newly finished work is marked.
    pub resumes: bool,
    /// Whether jobs are described instead of done.
    pub dry_run: bool,
}
