//! The public API: images, volumes and operations, typed by their samples. `lib.rs` re-exports all of it.

mod blur;
mod convert;
mod device;
mod filter;
mod filters;
mod geometry;
mod histogram;
mod image;
#[cfg(feature = "files")]
mod input;
mod math;
mod mesh;
mod neighbourhood;
mod numbers;
pub mod operation;
#[cfg(feature = "files")]
mod output;
mod raster;
mod sample;
mod shapes;
mod threshold;
mod volume;

pub use blur::Blur;
pub use convert::Convert;
pub use device::{Device, DeviceInfo};
pub use filter::{Chain, Filter};
pub use filters::{Label, Morph, auto_levels, equalize};
pub use geometry::{Axis, AxisOrder, Crop, Flip, Orientation, Pad, Reorient, Rotate, Transpose};
pub use histogram::{Counts, Histogram, channel_statistics, histogram, statistics};
pub use image::{Channels, Image};
#[cfg(feature = "files")]
pub use input::{Content, ReadOptions, read};
pub use math::Math;
pub use mesh::{LabelMeshes, MarchingCubes, Mesh, mesh};
pub use neighbourhood::{GradientMagnitude, Median, UnsharpMask};
pub use numbers::{Scan, Sort, summed_area_table};
pub use operation::PerAxis;
#[cfg(feature = "python")]
pub(crate) use output::writes_volume;
#[cfg(feature = "files")]
pub use output::{WriteOptions, write};
pub use raster::Raster;
pub use sample::{Number, Sample};
pub use shapes::{Projection, Resize};
pub use threshold::Threshold;
pub use volume::Volume;
