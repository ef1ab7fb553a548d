//! The public API: images, volumes and operations, typed by their samples. `lib.rs` re-exports all of it.

mod blur;
mod device;
mod filters;
mod histogram;
mod image;
mod mesh;
mod numbers;
mod raster;
mod sample;
mod volume;

pub use blur::Blur;
pub use device::{Device, DeviceInfo};
pub use filters::{Label, Morph, Projection, Resize, Threshold, auto_levels, equalize};
pub use histogram::{Counts, Histogram, histogram, statistics};
pub use image::{Channels, Image};
pub use mesh::{LabelMeshes, MarchingCubes, Mesh, mesh};
pub use numbers::{Scan, Sort, summed_area_table};
pub use raster::Raster;
pub use sample::{Number, Sample};
pub use volume::Volume;
