//! Flags that several commands share, and how clap reads values of types from the floors below.

mod array;
mod volume;

pub use volume::{Triple, VolumeArgs};
