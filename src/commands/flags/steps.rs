//! The steps of a chain: `gpuproc blur in.nii --then threshold --otsu -o mask.nii`.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};

use crate::{
    data::image::Image,
    engine::{filtered, filtered_volume, session::Session},
    io::{Source, volume::VolumeFile},
    kernels::{chain::Chain, filter::Filter},
    util::error::Result,
};

/// Makes the filter of a command for an input of 2 or 3 axes.
pub type MakeFilter = Arc<dyn Fn(&Source, usize) -> Result<Box<dyn Filter>> + Send + Sync>;

/// Commands that run one after another.
#[derive(Clone, Default)]
pub struct Steps {
    makes: Vec<MakeFilter>,
    /// Whether the result of a command are classes.
    pub make_classes: bool,
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps", self.makes.len())
    }
}

/// The parameters of the commands, for images and for volumes.
impl Serialize for Steps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let filters = [2, 3].map(|axes| self.filter(&Source::Stdin, axes).ok());
        filters.map(|filter| filter.map(|filter| filter.parameters())).serialize(serializer)
    }
}

impl Steps {
    /// Adds a command at the end. `makes_classes`: whether its results are classes.
    pub fn push(&mut self, make: MakeFilter, makes_classes: bool) {
        self.makes.push(make);
        self.make_classes |= makes_classes;
    }

    /// Whether there is no command.
    pub fn is_empty(&self) -> bool {
        self.makes.is_empty()
    }

    /// The result for the volume `file`, which is computed when it is read.
    ///
    /// # Errors
    /// As [`filtered_volume`].
    pub fn volume(&self, file: VolumeFile, session: &Session) -> Result<VolumeFile> {
        match self.is_empty() {
            true => Ok(file),
            false => filtered_volume(file.clone(), self.filter(file.source(), 3)?, session),
        }
    }

    /// The result for `image`, which has been read from `source`.
    ///
    /// # Errors
    /// As [`filtered`].
    pub fn image(&self, source: &Source, image: Image, session: &Session) -> Result<Image> {
        match self.is_empty() {
            true => Ok(image),
            false => filtered(&*self.filter(source, 2)?, source, image, session),
        }
    }

    /// The filter for the input `source` of 2 or 3 axes.
    ///
    /// # Errors
    /// When the flags of a command do not suit the input.
    pub fn filter(&self, source: &Source, axes: usize) -> Result<Arc<dyn Filter>> {
        let filters = self.makes.iter().map(|make| make(source, axes).map(Arc::from));
        Ok(match <[_; 1]>::try_from(filters.collect::<Result<Vec<_>>>()?) {
            Ok([filter]) => filter,
            Err(steps) => Arc::new(Chain { steps, before: Some(0) }),
        })
    }
}
