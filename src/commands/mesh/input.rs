//! The samples of the volume, in memory or read slab by slab, and isovalues computed from them.

use super::{
    color_by::Colors,
    coordinates::MeshCoordinates,
    job::{Iso, MeshJob, Rule},
    memory::{plan, plan_whole},
};
use crate::{
    data::{dtype::Dtype, samples::Samples, volume::Dims},
    engine::{plan::MeshPlan, reduce::for_each_block, session::Session},
    io::volume::VolumeFile,
    kernels::{
        mesh::Slab,
        otsu::{Otsu, extremes},
        quantile::Quantile,
    },
    util::error::{Error, Result},
};

/// Volumes of more bytes are meshed slab by slab, regardless of the memory.
const MAX_WHOLE: u64 = 256 << 20;

/// The source of the samples.
pub(super) enum VolumeInput {
    /// All samples are in memory.
    Whole(Box<Slab>, MeshPlan),
    /// Samples are read from the file slab by slab.
    Stream(Box<VolumeFile>, MeshPlan),
}

/// The open volume of a job, with everything that its meshes are made from.
pub(super) struct OpenVolume<'a> {
    pub(super) job: &'a MeshJob,
    pub(super) session: &'a Session,
    pub(super) input: VolumeInput,
    pub(super) coords: MeshCoordinates,
    /// The colours of the vertices, with `--color-by`.
    pub(super) colors: Option<Colors<'a>>,
    /// The description of the volume in a page.
    pub(super) about: String,
}

impl VolumeInput {
    /// Reads a small volume or a region of a volume into memory. A large volume will be read in slabs.
    pub(super) fn open(job: &MeshJob, file: VolumeFile, session: &Session) -> Result<Self> {
        if !job.region.is_all() {
            let value = |iso: &Iso| match *iso {
                Iso::Value(value) => Some(value),
                Iso::Auto(_) => None,
            };
            let isovalues: Vec<f64> = job.isovalues.iter().filter_map(value).collect();
            let volume = job.region.read(&job.volume, &file, &isovalues, session)?;
            let plan = plan_whole(&job.kernel, &volume, session);
            return Ok(Self::Whole(Box::new(Slab::whole(volume, &job.kernel)), plan));
        }
        let bytes = file.bytes().unwrap_or(u64::MAX);
        let limit = match reads_again(job) && !file.can_reopen() {
            true => session.max_memory,
            // The surface of noise takes about 64 bytes per sample.
            false => MAX_WHOLE.min(session.max_memory / 64 * file.dtype.size() as u64),
        };
        if bytes > limit {
            let plan = plan(job, &file, session)?;
            return Ok(Self::Stream(Box::new(file), plan));
        }
        let volume = file.read(session.limits(1), &session.timings)?;
        let plan = plan_whole(&job.kernel, &volume, session);
        Ok(Self::Whole(Box::new(Slab::whole(volume, &job.kernel)), plan))
    }

    /// Computes an isovalue from the samples by `rule`.
    pub(super) fn threshold(&self, job: &MeshJob, rule: Rule, session: &Session) -> Result<f64> {
        let find = || match rule {
            Rule::Percentile(percent) => self.percentile(percent, session),
            Rule::Otsu { number, of } => self.otsu(job, number, of, session),
        };
        let found = session.timings.time("threshold", find)?;
        let iso = found.ok_or_else(|| {
            Error::bad_input(format_args!("{}: no sample is a finite number", job.volume))
        })?;
        log::info!("--iso {rule}: {iso}");
        Ok(iso)
    }

    /// Threshold `number`, counted from 0, of the `of` thresholds by Otsu's method; `None` if no sample is finite.
    fn otsu(
        &self,
        job: &MeshJob,
        number: usize,
        of: usize,
        session: &Session,
    ) -> Result<Option<f64>> {
        let mut otsu = Otsu::new(self.dtype());
        if otsu.needs_range() {
            self.for_parts(session, |samples, _| otsu.widen_range(samples))?;
        }
        self.for_parts(session, |samples, times| otsu.count(samples, times))?;
        let found = otsu.thresholds(of).and_then(|all| all.get(number).copied());
        if found.is_some() || otsu.is_empty() {
            return Ok(found);
        }
        let why = match of {
            1 => "all samples are equal, so no isovalue separates them".to_owned(),
            of => format!("too few different samples for {of} isovalues; use a smaller otsu:N"),
        };
        Err(Error::bad_input(format_args!("{}: {why}", job.volume)))
    }

    /// The sample at a percentile (nearest-rank method). For types of 8 and 16 bits, 0.5 is added, so that the surface
    /// passes between samples. `None` if no sample is finite.
    fn percentile(&self, percent: f64, session: &Session) -> Result<Option<f64>> {
        let dtype = self.dtype();
        let mut quantile = Quantile::new(dtype, percent);
        loop {
            self.for_parts(session, |samples, times| quantile.count(samples, times))?;
            if !quantile.advance() {
                break;
            }
        }
        let half = if dtype.size() <= 2 { 0.5 } else { 0.0 };
        Ok(quantile.sample().map(|sample| sample + half))
    }

    fn dtype(&self) -> Dtype {
        match self {
            Self::Whole(slab, _) => slab.volume.samples.dtype(),
            Self::Stream(file, _) => file.dtype,
        }
    }

    /// Minimum and maximum sample. `None` if all samples are NaN, or if the input can be read only once.
    pub(super) fn range(&self, session: &Session) -> Result<Option<[f64; 2]>> {
        if matches!(self, Self::Stream(file, _) if !file.can_reopen()) {
            return Ok(None);
        }
        let mut range = [f64::MAX, f64::MIN];
        self.for_parts(session, |samples, _| {
            let [low, high] = extremes(samples);
            range = [range[0].min(low), range[1].max(high)];
        })?;
        Ok((range[0] <= range[1]).then_some(range))
    }

    /// The division of the memory for this input.
    pub(super) fn plan(&self) -> &MeshPlan {
        let (Self::Whole(_, plan) | Self::Stream(_, plan)) = self;
        plan
    }

    /// Calls `step` with all samples, a few slices at a time if they are not in memory, and with the number of samples
    /// of the volume that each of them represents.
    fn for_parts(&self, session: &Session, mut step: impl FnMut(&Samples, u64)) -> Result<()> {
        match self {
            Self::Whole(slab, _) => {
                step(&slab.volume.samples, 1);
                Ok(())
            }
            Self::Stream(file, _) => {
                for_each_block(file, 0..file.dims[2], "samples", session, |samples, times| {
                    step(&samples, times);
                    Ok(samples)
                })
            }
        }
    }
}

/// Refuses a volume, or a region of one, that has no cell of 2x2x2 samples to mesh, such as a single picture.
pub(super) fn check_cells(job: &MeshJob, file: &VolumeFile) -> Result<()> {
    let dims = job.region.dims(file)?;
    match job.kernel.close || dims.iter().all(|&dim| dim > 1) {
        true => Ok(()),
        false => Err(Error::bad_input(format_args!(
            "{}: no surface in {} samples, expected at least 2 along each axis; if each slice is a file, name their \
             folder or a pattern such as 'slices/*.png'",
            job.volume,
            Dims(dims)
        ))),
    }
}

/// Fails if the slices of an input do not fit into memory, or if the input must be read twice but can be read only
/// once.
pub(super) fn check(job: &MeshJob, file: &VolumeFile, session: &Session) -> Result<()> {
    check_cells(job, file)?;
    if !job.region.is_all() {
        return Ok(());
    }
    if file.bytes() > Some(session.max_memory / 64) {
        plan(job, file, session)?;
    }
    match reads_again(job) && !file.can_reopen() && file.bytes() > Some(session.max_memory) {
        true => Err(Error::usage(format_args!(
            "{}: a pipe can be read only once and exceeds the memory limit; give one number as --iso, or raise \
             --max-memory",
            job.volume
        ))),
        false => Ok(()),
    }
}

/// Whether a volume that is not in memory must be read more than once.
fn reads_again(job: &MeshJob) -> bool {
    job.isovalues.len() > 1 || job.isovalues.iter().any(|iso| matches!(iso, Iso::Auto(_)))
}
