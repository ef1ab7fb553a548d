//! Volumes whose slices a filter computes when they are read.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use super::{job::report_warning, progress::Progress, session::Session};
use crate::{
    data::reader::Reader,
    flow::{BlockSource, Division, FilterCost, Prepared},
    io::{
        Limits,
        volume::{Slices, VolumeFile},
    },
    kernels::filter::Filter,
    util::error::Result,
};

/// The result of `filter` for the volume `file`. Computing it takes at most half of the memory.
///
/// # Errors
/// When the filter does not support the volume, and when a slice with its halo takes too much memory.
pub fn filtered_volume(
    file: VolumeFile,
    filter: Arc<dyn Filter>,
    session: &Session,
) -> Result<VolumeFile> {
    let filter = filter.placed(&file.description())?.map_or(filter, Arc::from);
    let mut result = filter.describe(file.description())?;
    let own = 0..result.grid.shape.dims[2];
    let types = [file.grid_type(), result.grid];
    let cost = FilterCost::new(&*filter, types, 2, (file.reader_bytes(), file.layer()));
    let mut half = session.for_file(|| false);
    (half.progress, half.max_memory) = (Progress::new(true), session.max_memory / 2);
    let (block, spare) = cost.block(own.len(), half.max_memory).map_err(|needed| {
        let what = format_args!("{}: {}", file.source(), cost.least("slice"));
        session.exceeds_memory(what, needed.saturating_mul(2))
    })?;
    let division = Division { own, block, spare };
    let (prepared, depth) = (Mutex::default(), result.grid.shape.dims[2]);
    let slices = FilteredSlices {
        file: file.clone(),
        filter,
        session: half,
        division,
        prepared,
        depth,
        read: AtomicUsize::new(0),
    };
    if slices.filter.properties().makes_labels {
        // The type of labels is known only then.
        let description = file.description();
        result = slices.with_prepared(|_, prepared| prepared.filter().describe(description))?;
    }
    Ok(file.with_slices(result, Arc::new(slices)))
}

/// The slices of the result of a filter.
struct FilteredSlices {
    file: VolumeFile,
    filter: Arc<dyn Filter>,
    session: Session,
    division: Division,
    /// The filter once the first slice has been read.
    prepared: Mutex<Option<Prepared>>,
    /// Number of slices.
    depth: usize,
    /// Number of slices from the first one on that have been read.
    read: AtomicUsize,
}

impl FilteredSlices {
    /// Calls `work` with the volume and the filter, which the first call prepares.
    fn with_prepared<T>(
        &self,
        work: impl FnOnce(&BlockSource<'_>, &Prepared) -> Result<T>,
    ) -> Result<T> {
        let Self { file, filter, session, division, .. } = self;
        let open =
            |first: usize| -> Result<Box<dyn Reader>> { Ok(Box::new(file.reader_at(first)?)) };
        let source = BlockSource::slices(file, &open);
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let prepared = match &mut *prepared {
            Some(prepared) => prepared,
            none => none.insert(Prepared::new(&source, filter, division, session)?),
        };
        work(&source, prepared)
    }
}

impl Slices for FilteredSlices {
    fn read(&self, z: usize, samples: &mut [u8]) -> Result<()> {
        self.read_range(z, samples.len(), samples)
    }

    fn scratch(&self) -> u64 {
        self.session.max_memory
    }

    fn is_sequential(&self) -> bool {
        true
    }

    fn read_range(&self, first: usize, bytes: usize, samples: &mut [u8]) -> Result<()> {
        let end = first + samples.len() / bytes.max(1);
        let division = Division { own: first..end, ..self.division.clone() };
        self.with_prepared(|source, prepared| {
            prepared.for_each(source, &division, &self.session, &mut |at, grid| {
                let block = grid.samples.as_bytes();
                samples[(at - first) * bytes..][..block.len()].copy_from_slice(block);
                Ok(Some(grid.samples))
            })
        })?;
        // The warning is true only of all slices.
        let before = self.read.load(Relaxed);
        if first > before || end <= before {
            return Ok(());
        }
        self.read.store(end, Relaxed);
        if end < self.depth {
            return Ok(());
        }
        let findings = [self.filter.finding()];
        report_warning(&*self.filter, &findings, self.file.source(), &self.session)
    }

    fn allow(&self, limits: Limits) -> Result<()> {
        self.file.check(limits)
    }
}
