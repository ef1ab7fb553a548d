//! Flags that several commands share.

mod array;
mod axes;
mod batch;
mod choice;
mod filter;
mod image;
mod labels;
mod operation;
mod output;
mod pictures;
mod steps;
mod target;
mod volume;

pub use array::{ARRAY_FORMATS, ArrayInput, ArrayOutput, input_or_pipe};
pub use axes::parse_per_axis;
pub use batch::{FilesFromArgs, ShardArgs};
pub use choice::{Choice, choice_parser, dtype_parser};
pub use filter::{FilterArgs, FilterCommand};
pub use image::IMAGE_FORMATS;
pub use operation::{OperationArgs, choices};
pub use output::{OutputArgs, Outputs, PlannedOutput, is_volume_name};
pub use pictures::FolderArgs;
pub use steps::{SideFiles, Step, Steps, named_file};
pub use target::{Destination, FIELDS, KeptFolders, Target, check_fields, refuse_terminal};
pub use volume::{VolumeArgs, check_image_flags, note_pages, with_pages_hint};
