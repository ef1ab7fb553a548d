//! Runs jobs: reads inputs, passes them through filters with [`flow`](crate::flow), and writes the results.
//!
//! | module | holds |
//! |---|---|
//! | `computed` | volumes whose slices a filter computes when they are read |
//! | `plan` | the size of the blocks of streams and meshes, within the memory limit |
//! | `image` | images: pages in memory, or rows of large files in blocks |
//! | `volume` | volumes: slices in blocks, also by several processes |
//! | `volume_output` | outputs of volumes: files, planes and Zarr stores, which several processes may share |
//! | `compare` | a page that shows an image before and after |
//! | `reduce` | passes over all samples of a volume; part files of shards |
//! | `job` | one input, its output and the filter between them |
//! | `files` | batches of files, resumed runs, shards, the choice of the device |
//! | `batch` | many files in parallel: which threads work on which file, within which memory |
//! | `schedule` | the order in which the files of a batch run |
//! | `session` | the context of a command: device, limits, timings, progress |
//! | `progress` | messages on stderr, and progress bars below them |
//! | `events` | the log of a run, for workflow engines |
//! | `hints` | the flag to change, at the end of an error message |
//! | `signals` | early ends of the process |
//! | `restart` | starts the job again on the CPU when a driver hangs |

pub mod batch;
mod compare;
mod computed;
pub mod events;
mod files;
pub mod hints;
mod image;
mod job;
pub mod plan;
pub mod progress;
pub mod reduce;
pub(crate) mod restart;
mod schedule;
pub mod session;
pub mod signals;
mod volume;
mod volume_output;

pub use computed::filtered_volume;
pub use files::{CreateJob, run, run_each};
pub use image::filtered;
pub use job::{DescribeOnce, Job, Settings, Side, report_warning};
