//! File formats and streams. `-` stands for standard input or output. An output file is complete or absent.

pub mod array;
pub mod file_roles;
pub mod folders;
pub mod identity;
pub mod image;
mod input_file;
pub mod losses;
pub mod marker;
pub mod mesh;
mod packing;
#[cfg(feature = "cli")]
pub mod page;
pub mod parallel_file;
#[cfg(feature = "cli")]
pub mod part_file;
#[cfg(feature = "cli")]
pub mod plot;
pub mod shared_output;
mod sink;
pub mod source;
mod sources;
pub mod standard;
mod temporary;
mod unfinished;
pub mod volume;

pub use input_file::RegularFile;
pub use sink::{Finished, Output, OutputFolder, Sink, allow_broken_pipe};
pub use source::{Limits, Source};
pub use sources::Sources;
pub use temporary::{temporary_file, temporary_folder};
pub use unfinished::{link_target, remove_unfinished_outputs};
