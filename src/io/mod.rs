//! Files and streams: `-` for stdin and stdout, outputs that appear whole or not at all.

pub mod array;
pub mod image;
pub mod mesh;
#[cfg(unix)]
mod parallel_file;
pub mod plot;
mod sink;
mod source;
pub mod volume;

pub use sink::{Output, Sink, abandon_outputs};
pub use source::{Limits, Source};
