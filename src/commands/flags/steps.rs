//! The steps of a chain: `gpuproc blur in.nii --then threshold --otsu -o mask.nii`.

use std::{ffi::OsStr, fmt, sync::Arc};

use serde::{Serialize, Serializer};

use crate::{
    data::image::Image,
    engine::{filtered, filtered_volume, report_warning, session::Session},
    io::{
        Sink, Source,
        file_roles::{FileRoles, INPUT},
        volume::{Layout, VolumeFile, is_volume},
    },
    kernels::{chain::Chain, filter::Filter, label::Observer, math::name_len},
    util::error::Result,
};

/// Makes the filter of a command for an input of 2 or 3 axes.
pub type MakeFilter = Arc<dyn Fn(&Source, usize) -> Result<Box<dyn Filter>> + Send + Sync>;

/// Makes the same filter, and returns its side files, such as a table.
pub type MakeObserved =
    Arc<dyn Fn(&Source, usize) -> Result<(Box<dyn Filter>, SideFiles)> + Send + Sync>;

/// Files of a command, other than the input and the output of its filter, each with the flag that names it.
#[derive(Clone, Debug, Default)]
pub struct SideFiles {
    /// Further inputs.
    pub reads: Vec<(&'static str, Source)>,
    /// Further outputs.
    pub writes: Vec<(&'static str, Sink)>,
    /// The further outputs that are written while the filter runs. They are committed after its result.
    pub pending: Vec<Arc<dyn Observer>>,
}

impl SideFiles {
    /// Commits the further outputs.
    fn finish(&self) -> Result<()> {
        self.pending.iter().try_for_each(|output| output.finish())
    }

    /// Adds the files to those of a run.
    ///
    /// # Errors
    /// As [`FileRoles::writes`].
    pub fn declare(&self, roles: &mut FileRoles) -> Result<()> {
        self.reads.iter().try_for_each(|(flag, source)| roles.reads(flag, source))?;
        self.writes.iter().try_for_each(|(flag, sink)| roles.writes(flag, sink))
    }
}

/// The name and the file of a word such as `b=flat.tif`.
pub fn named_file(word: &OsStr) -> Option<(&str, &str)> {
    let (name, file) = word.to_str()?.split_once('=')?;
    (!name.is_empty() && name_len(name) == name.len()).then_some((name, file))
}

/// A command of a chain.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "it holds functions")]
pub struct Step {
    /// Makes the filter alone.
    pub make: MakeFilter,
    /// Makes the filter with its further outputs, if the command has any.
    pub observed: Option<MakeObserved>,
    /// Whether the results are classes.
    pub makes_classes: bool,
    /// Further inputs, on which the results depend.
    pub reads: Vec<Source>,
}

/// Commands that run one after another.
#[derive(Clone, Default)]
pub struct Steps {
    /// The commands in order.
    pub all: Vec<Step>,
    /// Whether only the results of the last step are written, since an earlier run writes the side files.
    pub leaves_side_files: bool,
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps", self.all.len())
    }
}

/// The parameters of the commands, for images and for volumes.
impl Serialize for Steps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let plain = Self { leaves_side_files: true, ..self.clone() };
        let filters = [2, 3].map(|axes| plain.filter(&Source::Stdin, axes).ok());
        filters.map(|filter| filter.map(|filter| filter.parameters())).serialize(serializer)
    }
}

impl Steps {
    /// Adds a command at the end.
    pub fn push(&mut self, step: Step) {
        self.all.push(step);
    }

    /// Whether there is no command.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether the results of any command are classes.
    pub fn make_classes(&self) -> bool {
        self.all.iter().any(|step| step.makes_classes)
    }

    /// The side files of all commands for the input `source` of 2 or 3 axes.
    ///
    /// # Errors
    /// As [`Steps::filter`].
    pub fn side_files(&self, source: &Source, axes: usize) -> Result<SideFiles> {
        self.observed(source, axes).map(|(_, files)| files)
    }

    /// The side files of all commands for the input `source`, which is a volume if `layout` or its name says so.
    ///
    /// # Errors
    /// As [`Steps::filter`].
    pub fn side_files_of(&self, source: &Source, layout: &Layout) -> Result<SideFiles> {
        if self.all.iter().all(|step| step.observed.is_none()) {
            return Ok(SideFiles::default());
        }
        self.side_files(source, if is_volume(source, layout) { 3 } else { 2 })
    }

    /// The result for the volume `file`, which is computed when it is read.
    ///
    /// # Errors
    /// As [`filtered_volume`].
    pub fn volume(&self, file: VolumeFile, session: &Session) -> Result<VolumeFile> {
        if self.is_empty() {
            return Ok(file);
        }
        let (filter, files) = self.observed(file.source(), 3)?;
        let result = filtered_volume(file, filter, session)?;
        files.finish().map(|()| result)
    }

    /// The result for `image`, which has been read from `source`.
    ///
    /// # Errors
    /// As [`filtered`].
    pub fn image(&self, source: &Source, image: Image, session: &Session) -> Result<Image> {
        if self.is_empty() {
            return Ok(image);
        }
        let (filter, files) = self.observed(source, 2)?;
        let image = filtered(&*filter, source, image, session)?;
        report_warning(&*filter, &[filter.finding()], source, session)?;
        files.finish().map(|()| image)
    }

    /// Whether the result for the image `source` has an axis of length 1.
    pub fn flatten(&self, source: &Source) -> bool {
        self.filter(source, 2).is_ok_and(|filter| filter.flat_axis().is_some())
    }

    /// The filter for the input `source` of 2 or 3 axes.
    ///
    /// # Errors
    /// When the flags of a command do not suit the input.
    pub fn filter(&self, source: &Source, axes: usize) -> Result<Arc<dyn Filter>> {
        self.observed(source, axes).map(|(filter, _)| filter)
    }

    /// The filter for the input `source` of 2 or 3 axes, and the side files of all commands.
    ///
    /// # Errors
    /// As [`Steps::filter`].
    pub fn observed(&self, source: &Source, axes: usize) -> Result<(Arc<dyn Filter>, SideFiles)> {
        let (mut steps, mut all) = (Vec::<Arc<dyn Filter>>::new(), SideFiles::default());
        for step in &self.all {
            let observed = step.observed.as_ref().filter(|_| !self.leaves_side_files);
            let (filter, files) = match observed {
                Some(make) => make(source, axes)?,
                None => ((step.make)(source, axes)?, SideFiles::default()),
            };
            steps.push(filter.into());
            all.reads.extend(files.reads);
            all.reads.extend(step.reads.iter().map(|source| (INPUT, source.clone())));
            all.writes.extend(files.writes);
            all.pending.extend(files.pending);
        }
        Ok(match <[_; 1]>::try_from(steps) {
            Ok([filter]) => (filter, all),
            Err(steps) => (Arc::new(Chain { steps, before: Some(0) }), all),
        })
    }
}
