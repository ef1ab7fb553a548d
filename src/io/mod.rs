//! Files and streams: `-` for stdin and stdout, outputs that appear whole or not at all.

pub mod image;
mod sink;
mod source;
pub mod volume;

pub use sink::{Output, Sink, abandon_outputs};
pub use source::Source;
