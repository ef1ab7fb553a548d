//! Flags that several commands share.

mod array;
mod choice;
mod volume;

pub use array::{ARRAY_FORMATS, ArrayInput, ArrayOutput};
pub use choice::{Choice, dtype_of, one_of};
pub use volume::{Triple, VolumeArgs};
