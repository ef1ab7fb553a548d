//! Flags that several commands share.

mod array;
mod choice;
mod image;
mod volume;

pub use array::{ARRAY_FORMATS, ArrayInput, ArrayOutput};
pub use choice::{Choice, dtype_of, one_of};
pub use image::{IMAGE_FORMATS, PageRange};
pub use volume::{Triple, VolumeArgs};
