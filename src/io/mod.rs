//! Files and streams: `-` for stdin and stdout, outputs that appear whole or not at all.

pub mod array;
mod exr;
pub mod image;
pub mod jpeg;
pub mod mesh;
pub mod npy;
pub mod plot;
pub mod png;
mod sink;
mod source;
mod tiff;
pub mod volume;

pub use sink::{Output, Sink, abandon_outputs};
pub use source::{Limits, Source};
