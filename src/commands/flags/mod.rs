//! Flags that several commands share.

mod array;
mod batch;
mod choice;
mod filter;
mod image;
mod output;
mod volume;

pub use array::{ARRAY_FORMATS, ArrayInput, ArrayOutput, input_or_pipe};
pub use batch::{ListArgs, Share};
pub use choice::{Choice, dtype_of, one_of};
pub use filter::FilterArgs;
pub use image::IMAGE_FORMATS;
pub use output::{OutputArgs, Outputs, Place, Planned, Target, Tree};
pub use volume::{VolumeArgs, refuse_picture};
