//! The one place that moves data: reads inputs in blocks, runs filters on them, and writes the results.
//!
//! | module | holds |
//! |---|---|
//! | `blocks` | the loop: read a block with its halo, filter it, write it; three threads |
//! | `plan` | how large blocks are, within the memory limit |
//! | `image` | images: pages in memory, or rows of large files in blocks |
//! | `volume` | volumes: slices in blocks, also by several processes |
//! | `pyramid` | volumes into Zarr stores |
//! | `compare` | a page that shows an image before and after |
//! | `reduce` | all samples of a volume in parts; part files of shards |
//! | `files` | batches of files, resumed runs, shards, the choice of the device |
//! | `batch` | many files side by side: which threads work on which file, within which memory |
//! | `schedule` | the order in which the files of a batch run |
//! | `session` | the context of a command: device, limits, timings, progress |
//! | `progress` | messages on stderr, and progress bars below them |
//! | `events` | the log of a run, for workflow engines |
//! | `hints` | the flag that helps, at the end of an error message |
//! | `signals` | early ends of the process |
//! | `restart` | begins the job again on the CPU when a driver hangs |

pub mod batch;
mod blocks;
mod compare;
pub mod events;
mod files;
pub mod hints;
mod image;
mod plan;
pub mod progress;
mod pyramid;
pub mod reduce;
pub(crate) mod restart;
mod schedule;
pub mod session;
pub mod signals;
mod volume;

use crate::{
    data::shard::Shard,
    io::{
        Sink, Source,
        image::{Encoding, ImageFormat, PageRange},
        volume::{Layout, PyramidOptions},
    },
    kernels::filter::Filter,
};

pub use blocks::{BlockSource, Blocks, Window, read_blocks, write_behind};
pub use files::{Jobs, run, run_each};

/// One input, its output and the filter between them.
#[derive(Debug)]
pub struct Job {
    /// The input.
    pub source: Source,
    /// The output.
    pub sink: Sink,
    /// The filter.
    pub filter: Box<dyn Filter>,
    /// How to read a volume; `None` for an image.
    pub volume: Option<Box<Layout>>,
    /// Whether the output is a page that shows the image before and after.
    pub compares: bool,
    /// Format of the output image; `None` for that of the input.
    pub format: Option<ImageFormat>,
    /// Whether the folder of the output is created.
    pub makes_folder: bool,
    /// How a Zarr output is written.
    pub pyramid: PyramidOptions,
}

impl Job {
    /// Number of axes along which the filter works.
    fn axes(&self) -> usize {
        if self.volume.is_some() { 3 } else { 2 }
    }
}

/// Settings that all jobs of a command share.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How images are encoded.
    pub encoding: Encoding,
    /// Pages of images to take; `None` for all that the output can hold.
    pub pages: Option<PageRange>,
    /// Whether the job is a batch of files, even if of a single one: inputs from a list, or outputs in a folder.
    pub is_batch: bool,
    /// The part of the job that this process does; `None` for all of it.
    pub shard: Option<Shard>,
    /// Whether finished work is skipped, and newly finished work is marked.
    pub resumes: bool,
    /// Whether jobs are described instead of done.
    pub dry_run: bool,
}
