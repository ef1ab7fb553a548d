//! Files and streams: `-` for stdin and stdout, outputs that appear whole or not at all.

pub mod image;
pub mod png;
mod sink;
mod source;
pub mod volume;

pub use sink::Sink;
pub use source::Source;
