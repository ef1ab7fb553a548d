//! Flags that several commands share.

mod array;
mod batch;
mod choice;
mod image;
mod volume;

pub use array::{ARRAY_FORMATS, ArrayInput, ArrayOutput};
pub use batch::{ListArgs, ShardArgs, Share, below};
pub use choice::{Choice, dtype_of, one_of};
pub use image::{IMAGE_FORMATS, PageRange};
pub use volume::{Triple, VolumeArgs};
