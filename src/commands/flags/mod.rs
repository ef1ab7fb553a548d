//! Flags that several commands share.

mod array;
mod batch;
mod choice;
mod filter;
mod image;
mod output;
mod pictures;
mod target;
mod volume;

pub use array::{ARRAY_FORMATS, ArrayInput, ArrayOutput, input_or_pipe};
pub use batch::{ListArgs, Share};
pub use choice::{Choice, dtype_of, one_of};
pub use filter::FilterArgs;
pub use image::IMAGE_FORMATS;
pub use output::{OutputArgs, Outputs, Planned};
pub use pictures::FolderArgs;
pub use target::{Destination, FIELDS, Target, Tree, check_fields, refuse_terminal};
pub use volume::{VolumeArgs, refuse_picture};
